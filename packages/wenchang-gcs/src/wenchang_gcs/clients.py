"""The HTTP session behind a bucket: built at once, sized for its threads, renewed after a fork."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, Final

import requests
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage

from wenchang.storage import StorageConfigurationError

if TYPE_CHECKING:
    from google.cloud.storage import Bucket

    from wenchang_gcs.options import GcsOptions

__all__ = ["BucketHandle", "make_bucket"]

_NO_BACKGROUND_REQUEST: Final = "DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA"


class BucketHandle:
    """A bucket whose session serves any number of threads, in forked children too."""

    def __init__(self, bucket: Bucket, concurrency: int) -> None:
        """Build the session, mTLS included, so that a wrong set-up raises here. No network call."""
        self._bucket = bucket
        self._concurrency = concurrency
        self._lock = threading.Lock()
        self._pid = os.getpid()
        # The client would ask for the bucket itself in the background, for tracing: a request that
        # needs a permission of its own and that nobody here looks at.
        os.environ.setdefault(_NO_BACKGROUND_REQUEST, "true")
        self._size_pool()

    def get(self) -> Bucket:
        """Return the bucket, with connections of this process only."""
        if self._pid != os.getpid():
            # Nobody but this thread exists in the child, but others may come before it is done; the
            # lock of the parent may be held for ever.
            self._lock = threading.Lock()
            with self._lock:
                if self._pid != os.getpid():
                    self._renew()
                    self._pid = os.getpid()
        return self._bucket

    def close(self) -> None:
        """Close the idle connections."""
        self._session().close()

    def _session(self) -> requests.Session:
        # The client builds its session on first use of this property, which is the documented
        # parameter `_http` of its constructor.
        session: Any = self._bucket.client._http  # noqa: SLF001 - as said above
        return session  # type: ignore[no-any-return] # the SDK has no types

    def _size_pool(self) -> None:
        """Give the session as many connections as there may be requests."""
        session = self._session()
        for prefix, adapter in list(session.adapters.items()):
            if type(adapter) is requests.adapters.HTTPAdapter:
                # Another class is the mTLS channel's, which knows its certificate.
                session.mount(prefix, self._adapter())

    def _renew(self) -> None:
        """Leave the parent's connections alone and begin with none."""
        session = self._session()
        if getattr(session, "is_mtls", False):
            session.configure_mtls_channel()  # type: ignore[attr-defined] # an AuthorizedSession
        for prefix, adapter in list(session.adapters.items()):
            if type(adapter) is requests.adapters.HTTPAdapter:
                session.mount(prefix, self._adapter())

    def _adapter(self) -> requests.adapters.HTTPAdapter:
        return requests.adapters.HTTPAdapter(
            pool_connections=4, pool_maxsize=self._concurrency, max_retries=0
        )


def make_bucket(name: str, options: GcsOptions) -> Bucket:
    """Return the bucket of a location. Makes no network call; credentials are looked up locally."""
    client_options = {"api_endpoint": options.endpoint_url} if options.endpoint_url else None
    try:
        client = storage.Client(
            project=options.project or ("anonymous" if options.anonymous else None),
            credentials=AnonymousCredentials() if options.anonymous else None,  # type: ignore[no-untyped-call] # the SDK has no types
            client_options=client_options,
        )
        return client.bucket(name)
    except OSError as error:
        # The client raises this where it finds no project.
        msg = "no Google Cloud project is known here; set option 'project'"
        raise StorageConfigurationError(msg) from error
