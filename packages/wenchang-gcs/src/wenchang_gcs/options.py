"""The options of a location `gs://bucket/prefix`."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["GcsOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GcsOptions:
    """URL parameters and keys of `[storage.options]`. Times are in seconds.

    Credentials are found by the Google client itself (Application Default Credentials).
    """

    project: str | None = None
    """The project that is billed for requests; the client finds one by itself without."""
    endpoint_url: str | None = None
    """Another JSON API endpoint, such as an emulator's or a private one."""
    anonymous: bool = False
    """Send no credentials: for emulators."""
    deadline: float = 30.0
    """The longest that a whole call may take, repetitions included."""
    attempt_timeout: float = 10.0
    """The longest that one attempt may take."""
    concurrency: int = 32
    """Requests in flight at once; more callers wait."""
