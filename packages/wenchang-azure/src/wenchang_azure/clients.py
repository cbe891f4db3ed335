"""The SDK's client: one in each process, opened under a lock, with as many connections as calls.

Connections inherited over fork would mix the answers of parent and child, so a child makes a client
of its own.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import requests
import requests.adapters
from azure.core.pipeline.transport import RequestsTransport
from azure.storage.blob import ContainerClient
from urllib3.util.retry import Retry

from wenchang.storage import StorageConfigurationError
from wenchang.storage.keys import MAX_BODY_BYTES

if TYPE_CHECKING:
    from azure.core.credentials import (
        AzureNamedKeyCredential,
        AzureSasCredential,
        TokenCredential,
    )

    Credential: TypeAlias = AzureNamedKeyCredential | AzureSasCredential | TokenCredential

__all__ = ["Clients", "make_client"]

_HOSTS: Final = 4
"""Hosts with a pool of connections: the service, and where identities come from."""


def make_client(
    account_url: str,
    container: str,
    *,
    credential: Callable[[], Credential],
    api_version: str | None,
    concurrency: int,
) -> ContainerClient:
    """Make a client of our own: no retries, one request for each body, a pool that suffices.

    `credential` is called for each client, since an identity keeps connections too.
    """
    session = requests.Session()
    # As the SDK's own session: a failed connection is its own error, not one about retries.
    retries = Retry(total=False, redirect=False, raise_on_status=False)
    for scheme in ("https://", "http://"):
        adapter = requests.adapters.HTTPAdapter(
            pool_connections=_HOSTS, pool_maxsize=concurrency, max_retries=retries
        )
        session.mount(scheme, adapter)
    versions: dict[str, Any] = {} if api_version is None else {"api_version": api_version}
    try:
        return ContainerClient(
            account_url,
            container,
            credential=credential(),
            transport=RequestsTransport(session=session),
            retry_total=0,
            max_single_put_size=2 * MAX_BODY_BYTES,
            max_single_get_size=8 * MAX_BODY_BYTES,
            **versions,
        )
    except ValueError as error:
        if api_version is None or "API version" not in str(error):
            raise
        msg = "option 'api_version' is none that this SDK speaks; leave it out or name an older one"
        raise StorageConfigurationError(msg) from error


class Clients:
    """Gives the client of this process. Safe over threads and fork."""

    def __init__(
        self, make: Callable[[], ContainerClient], *, given: ContainerClient | None = None
    ) -> None:
        """Make nothing yet. A `given` client serves this process and stays its owner's."""
        self._make = make
        self._given = given
        self._lock = threading.Lock()
        self._client = given
        self._ready = False
        _instances.add(self)

    def _renew(self) -> None:
        """Begin anew, as in a forked child: the lock may be held by a thread that is not there."""
        self._lock = threading.Lock()
        self._client = None
        self._ready = False

    def get(self) -> ContainerClient:
        """Return the client; make and open it at the first call."""
        client = self._client
        if self._ready and client is not None:
            return client
        with self._lock:
            if self._client is None:
                self._client = self._make()
            if not self._ready:
                # Sessions are opened by the first request otherwise, by several threads at once.
                self._client.__enter__()
                self._ready = True
            return self._client

    def close(self) -> None:
        """Close the connections, unless the client was given. A later call opens new ones."""
        with self._lock:
            client = self._client
            if client is None or client is self._given:
                return
            self._client, self._ready = None, False
        client.close()


_instances: weakref.WeakSet[Clients] = weakref.WeakSet()


def _renew_after_fork() -> None:
    for clients in list(_instances):
        clients._renew()  # noqa: SLF001 - the class and its fork hook are one subject


os.register_at_fork(after_in_child=_renew_after_fork)
