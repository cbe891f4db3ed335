"""Application Default Credentials that are looked for when the first request needs them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import google.auth
from google.auth.credentials import Credentials

from wenchang_gcs.forks import renew_in_children

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["DefaultCredentials"]


class DefaultCredentials(Credentials):
    """Stands for the credentials of this machine. On a machine of Google's, finding them asks a server."""

    def __init__(self, scopes: Sequence[str]) -> None:
        """Look for nothing yet."""
        super().__init__()  # type: ignore[no-untyped-call] # the SDK has no types
        self._scopes = tuple(scopes)
        self._found: Credentials | None = None
        self._lock = threading.Lock()
        renew_in_children(self)

    def renew(self) -> None:
        """Replace the lock, which a thread of the parent may have held."""
        self._lock = threading.Lock()

    def refresh(self, request: Any) -> None:
        """See `Credentials.refresh`."""
        self._default().refresh(request)

    def before_request(self, request: Any, method: str, url: str, headers: Any) -> None:
        """See `Credentials.before_request`. Raises `DefaultCredentialsError` where there are none."""
        self._default().before_request(request, method, url, headers)

    def _default(self) -> Any:
        with self._lock:
            if self._found is None:
                self._found, _ = google.auth.default(scopes=self._scopes)
            return self._found
