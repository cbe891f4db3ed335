"""The HTTP session behind a bucket: built at once, sized for its threads, renewed after a fork."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from google.auth.credentials import AnonymousCredentials, Credentials
from google.auth.exceptions import GoogleAuthError
from google.cloud import storage
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from wenchang.storage import StorageConfigurationError
from wenchang_gcs.credentials import DefaultCredentials
from wenchang_gcs.forks import renew_in_children

if TYPE_CHECKING:
    import requests
    from google.cloud.storage import Bucket

    from wenchang_gcs.options import GcsOptions

__all__ = ["BucketHandle", "make_bucket"]

_NO_BACKGROUND_REQUEST: Final = "DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA"
_EMULATOR: Final = "STORAGE_EMULATOR_HOST"
_NO_PROJECT: Final = "none"
_HOSTS: Final = 4


class BucketHandle:
    """A bucket whose session serves any number of threads, in forked children too."""

    def __init__(self, bucket: Bucket, concurrency: int) -> None:
        """Build the session of the bucket's client, with its client certificate. No network call.

        Raises `StorageConfigurationError` where mutual TLS is set up wrongly.
        """
        self._bucket = bucket
        # The client would ask for the bucket itself in the background, for tracing: a request that
        # needs a permission of its own and that nobody here looks at.
        os.environ.setdefault(_NO_BACKGROUND_REQUEST, "true")
        for adapter in _adapters(self._session()):
            # Repeating a request is the settler's matter: a client that repeats a conditional write
            # meets its own.
            adapter.max_retries = Retry(0, read=False)
            _renew_pools(adapter, concurrency)
        renew_in_children(self)

    def get(self) -> Bucket:
        """Return the bucket."""
        return self._bucket

    def close(self) -> None:
        """Close the idle connections."""
        self._session().close()

    def renew(self) -> None:
        """Leave the parent's connections alone and begin with none."""
        session = self._session()
        for one in (session, getattr(session, "_auth_request_session", None)):
            for adapter in () if one is None else _adapters(one):
                _renew_pools(adapter, 1)

    def _session(self) -> requests.Session:
        # What the client's documented parameter `_http` gives, or what the client then builds itself.
        try:
            session: requests.Session = self._bucket.client._http  # noqa: SLF001 - as said above
        except (GoogleAuthError, ImportError, OSError, ValueError) as error:
            msg = (
                "the client certificate for mutual TLS cannot be used; check it, or set "
                "GOOGLE_API_USE_CLIENT_CERTIFICATE=false"
            )
            raise StorageConfigurationError(msg) from error
        return session


def make_bucket(name: str, options: GcsOptions) -> Bucket:
    """Return the bucket of a location. Makes no network call, and looks for no credentials yet."""
    anonymous = options.anonymous or _EMULATOR in os.environ
    credentials: Credentials = (
        AnonymousCredentials()  # type: ignore[no-untyped-call] # the SDK has no types
        if anonymous
        else DefaultCredentials(storage.Client.SCOPE or ())
    )
    client = storage.Client(
        # Objects belong to buckets; a project is only needed to make those.
        project=options.project or _NO_PROJECT,
        credentials=credentials,
        client_options={"api_endpoint": options.endpoint_url} if options.endpoint_url else None,
    )
    return client.bucket(name, user_project=options.project)


def _adapters(session: requests.Session) -> Iterator[HTTPAdapter]:
    """Yield each adapter that has pools of connections."""
    adapters: dict[int, Any] = {id(one): one for one in session.adapters.values()}
    return (one for one in adapters.values() if isinstance(one, HTTPAdapter))


def _renew_pools(adapter: HTTPAdapter, connections: int) -> None:
    """Give an adapter new, empty pools of at least `connections`, with the certificate that it has."""
    # Where a user made it larger, that is meant.
    connections = max(connections, getattr(adapter, "_pool_maxsize", 1))
    adapter.proxy_manager.clear()
    adapter.init_poolmanager(_HOSTS, connections)
