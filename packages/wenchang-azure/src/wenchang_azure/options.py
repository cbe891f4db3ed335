"""The options of `az://account/container/prefix`: URL parameters and keys of `[storage.options]`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from wenchang.storage import StorageConfigurationError
from wenchang.storage.outcomes import RetryPolicy

__all__ = ["DEFAULT_CONCURRENCY", "AzureOptions", "check_concurrency"]

DEFAULT_CONCURRENCY: Final = 32
MAX_CONCURRENCY: Final = 1000

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_API_VERSION: Final = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureOptions:
    """What a location can say. Raises `StorageConfigurationError` for a wrong value.

    Secrets are never options: the three `..._env` options name the environment variables that may
    hold one. The first of the three that is set is used; where none is, the identity that
    `azure-identity` finds (`pip install "wenchang-azure[identity]"`).
    """

    endpoint: str | None = None
    """URL of the Blob service, where it is not `https://ACCOUNT.blob.core.windows.net`."""
    api_version: str | None = None
    """The service version to speak, such as 2026-02-06, for services that are behind the SDK."""
    connection_string_env: str = "AZURE_STORAGE_CONNECTION_STRING"
    """The variable that may hold a connection string."""
    account_key_env: str = "AZURE_STORAGE_KEY"
    """The variable that may hold a key of the account."""
    sas_token_env: str = "AZURE_STORAGE_SAS_TOKEN"  # noqa: S105 - the name of a variable, no secret
    """The variable that may hold a shared access signature."""
    deadline: float = 30.0
    """Seconds after which every call ends, attempts and back-off included."""
    attempt_timeout: float = 10.0
    """Seconds for one attempt, connecting included."""
    concurrency: int = DEFAULT_CONCURRENCY
    """Requests at once, and connections kept; more threads than that wait within the deadline."""

    def __post_init__(self) -> None:
        """Check every value."""
        if self.endpoint is not None:
            _check_endpoint(self.endpoint)
        if self.api_version is not None and not _API_VERSION.fullmatch(self.api_version):
            msg = "option 'api_version' must be a date such as 2026-02-06"
            raise StorageConfigurationError(msg)
        for name in ("connection_string_env", "account_key_env", "sas_token_env"):
            if not _VARIABLE.fullmatch(getattr(self, name)):
                msg = f"option '{name}' must be the name of an environment variable, not a secret"
                raise StorageConfigurationError(msg)
        check_concurrency(self.concurrency)
        _ = self.policy  # checks both times

    @property
    def policy(self) -> RetryPolicy:
        """The bounds of a call."""
        return RetryPolicy(deadline=self.deadline, attempt_timeout=self.attempt_timeout)


def check_concurrency(concurrency: int) -> None:
    """Raise `StorageConfigurationError` unless `concurrency` is a sensible whole number."""
    if type(concurrency) is not int or not 1 <= concurrency <= MAX_CONCURRENCY:
        msg = f"option 'concurrency' must be a whole number from 1 to {MAX_CONCURRENCY}"
        raise StorageConfigurationError(msg)


def _check_endpoint(endpoint: str) -> None:
    """Refuse what is no plain URL, above all one with a signature in it."""
    try:
        parts = urlsplit(endpoint)
        usable = parts.scheme in {"https", "http"} and bool(parts.hostname)
        plain = not (parts.query or parts.fragment or parts.username or parts.password)
        _ = parts.port
    except ValueError:
        usable = plain = False
    if not usable or not plain:
        msg = (
            "option 'endpoint' must be a URL without user and query, such as "
            "https://account.blob.core.usgovcloudapi.net"
        )
        raise StorageConfigurationError(msg)
