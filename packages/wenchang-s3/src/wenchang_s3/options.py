"""The options of the S3 backend: URL parameters, keys of `[storage.options]`, arguments of code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import urlsplit

from wenchang.storage import StorageConfigurationError
from wenchang.storage.keys import check_namespace
from wenchang.storage.outcomes import RetryPolicy

__all__ = ["S3Options", "check_bucket", "check_prefix"]

MAX_CONCURRENCY: Final = 512

_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]")
_ARN: Final = re.compile(
    r"arn:[a-z0-9-]+:s3[a-z-]*:[a-z0-9-]*:[0-9]*:accesspoint[/:][A-Za-z0-9.-]+"
)
_DIRECTORY: Final = re.compile(r"--x[a-z]?-s3$")
_REGION: Final = re.compile(r"[A-Za-z0-9-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Options:
    """What the backend can be told besides bucket and prefix; each option may be left out.

    Credentials are no option: they come from the places where every AWS tool looks for them
    (environment, shared files, container or instance role), or from there under `profile`. Raises
    `StorageConfigurationError` for a wrong value.
    """

    region: str | None = None
    """The bucket's region. Without it the AWS configuration decides."""
    endpoint_url: str | None = None
    """The address of an S3-compatible server, `https://host[:port]`."""
    profile: str | None = None
    """A profile of the shared AWS configuration."""
    addressing_style: Literal["auto", "path", "virtual"] = "auto"
    """Whether the bucket stands in the path or in the host name; many servers need `path`."""
    deadline: float = 30.0
    """Seconds after which every call ends, attempts and back-off included."""
    attempt_timeout: float = 5.0
    """Seconds for one attempt. A lost answer is easier to settle the sooner it is noticed."""
    concurrency: int = 32
    """Requests of one handle at a time, and connections that it keeps; others wait for one."""

    def __post_init__(self) -> None:
        """Check every value."""
        _check_text("region", self.region, _REGION, "the name of a region, such as eu-west-1")
        _check_text("profile", self.profile, None, "the name of a profile")
        if self.endpoint_url is not None:
            _check_endpoint(self.endpoint_url)
        if self.addressing_style not in {"auto", "path", "virtual"}:
            raise StorageConfigurationError(
                "option 'addressing_style' must be one of: auto, path, virtual"
            )
        concurrency = self.concurrency
        if type(concurrency) is not int or not 1 <= concurrency <= MAX_CONCURRENCY:
            raise StorageConfigurationError(
                f"option 'concurrency' must be a whole number from 1 to {MAX_CONCURRENCY}"
            )
        _ = self.policy  # checks both times

    @property
    def policy(self) -> RetryPolicy:
        """The bounds of a call."""
        return RetryPolicy(deadline=self.deadline, attempt_timeout=self.attempt_timeout)


def check_bucket(bucket: str) -> None:
    """Raise TypeError or `StorageConfigurationError` unless `bucket` can hold a memory.

    A bucket's name, the alias or the ARN of an access point. Directory buckets are refused.
    """
    if not isinstance(bucket, str):
        raise TypeError(f"bucket must be a str, not {type(bucket).__name__}")
    if _DIRECTORY.search(bucket):
        raise StorageConfigurationError(
            "directory buckets (S3 Express, names that end in --x-s3) list their keys in no order "
            "and cannot hold a memory; use a general purpose bucket"
        )
    if not (_BUCKET.fullmatch(bucket) or _ARN.fullmatch(bucket)):
        raise StorageConfigurationError(
            "the bucket must be a name of 3 to 255 letters, digits, '.', '_' and '-', or the ARN of "
            "an access point; an S3 URL looks like s3://bucket/prefix"
        )


def check_prefix(prefix: str) -> None:
    """Raise TypeError or `StorageConfigurationError` unless all keys may lie below `prefix`."""
    if not isinstance(prefix, str):
        raise TypeError(f"prefix must be a str, not {type(prefix).__name__}")
    check_namespace(prefix)


def _check_text(name: str, value: object, form: re.Pattern[str] | None, wanted: str) -> None:
    """Check an optional option that is text."""
    if value is None:
        return
    if not isinstance(value, str) or not value or (form and not form.fullmatch(value)):
        raise StorageConfigurationError(f"option '{name}' must be {wanted}")


def _check_endpoint(url: object) -> None:
    """Check the address of a server, without a path, a query or a user in it."""
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        usable = (
            parts is not None
            and parts.scheme in {"http", "https"}
            and bool(parts.hostname)
            and parts.path in {"", "/"}
            and not (parts.query or parts.fragment or "@" in parts.netloc)
            and (parts.port is None or parts.port > 0)
        )
    except ValueError:
        usable = False
    if not usable:
        raise StorageConfigurationError(
            "option 'endpoint_url' must be https://host or https://host:port (or http://), "
            "without user, path or query"
        )
