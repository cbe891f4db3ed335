"""The options of a location `gs://bucket/prefix`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from wenchang.storage import StorageConfigurationError
from wenchang.storage.outcomes import RetryPolicy

__all__ = ["GcsOptions"]

_MOST_CONNECTIONS: Final = 1000
_ENDPOINT: Final = re.compile(r"https?://[A-Za-z0-9._:\[\]-]+(?:/[A-Za-z0-9._~/-]*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class GcsOptions:
    """URL parameters and keys of `[storage.options]`. Times are in seconds.

    Credentials are found by the Google client itself (Application Default Credentials) at the first
    call. Raises `StorageConfigurationError` for a value that cannot be right.
    """

    project: str | None = None
    """The project that is billed for requests, where the bucket makes requesters pay."""
    endpoint_url: str | None = None
    """Another endpoint of the JSON API, such as an emulator's or a private one."""
    anonymous: bool = False
    """Send no credentials: for emulators."""
    deadline: float = 30.0
    """The longest that a whole call may take, repetitions included."""
    attempt_timeout: float = 10.0
    """The longest that one attempt may take."""
    concurrency: int = 32
    """Requests in flight at once; more callers wait."""

    def __post_init__(self) -> None:
        """Check the values."""
        if type(self.concurrency) is not int or not 1 <= self.concurrency <= _MOST_CONNECTIONS:
            msg = f"option 'concurrency' must be a whole number from 1 to {_MOST_CONNECTIONS}"
            raise StorageConfigurationError(msg)
        if self.endpoint_url is not None and not _ENDPOINT.fullmatch(self.endpoint_url):
            msg = "option 'endpoint_url' must be http://host or https://host, without user or query"
            raise StorageConfigurationError(msg)
        if self.project == "":
            msg = "option 'project' must not be empty"
            raise StorageConfigurationError(msg)
        _ = self.policy

    @property
    def policy(self) -> RetryPolicy:
        """The bounds of one call."""
        return RetryPolicy(deadline=self.deadline, attempt_timeout=self.attempt_timeout)
