"""The SDK's client: made once, at the first call, from a session of its own; made anew in a fork.

Sessions are not safe over threads and boto3's default session belongs to the application, so each
handle makes its own under a lock. Nothing is made in the constructor: looking for credentials can ask
the network.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from typing import Any, Final
from urllib.parse import urlsplit

import botocore.session
from botocore.config import Config
from botocore.loaders import create_loader

from wenchang.storage import StorageConfigurationError
from wenchang_s3.forks import RenewedAfterFork
from wenchang_s3.options import S3Options

__all__ = ["ClientSource", "GivenClient", "OwnClient", "is_amazon"]

_AMAZON: Final = (".amazonaws.com", ".amazonaws.com.cn", ".amazonaws.eu", ".api.aws")
_MAX_CONNECT_SECONDS: Final = 5.0
# The descriptions of the service, read once in a process: they are most of what a client costs.
_LOADER: Final = create_loader()


class ClientSource(RenewedAfterFork):
    """Gives the client of this process. Safe over threads and fork."""

    def __init__(self) -> None:
        """Make no client yet."""
        super().__init__()
        self._lock = threading.Lock()
        self._client: Any = None

    @property
    def ready(self) -> Any:
        """The client, or None if it has still to be made."""
        return self._client

    def get(self) -> Any:
        """Return the client; make it if it is not there. May ask the network for credentials."""
        with self._lock:
            if self._client is None:
                self._client = self._make()
            return self._client

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._client = None

    @abstractmethod
    def _make(self) -> Any:
        """Make the client of this process."""

    def close(self) -> None:
        """Close the client's connections, if it is ours. A later call opens new ones."""


class OwnClient(ClientSource):
    """A client made from options."""

    def __init__(self, options: S3Options) -> None:
        """Keep the options."""
        super().__init__()
        self._options = options

    def _make(self) -> Any:
        options = self._options
        session = botocore.session.Session(profile=options.profile)
        session.register_component("data_loader", _LOADER)
        return session.create_client(
            "s3",
            region_name=options.region,
            endpoint_url=options.endpoint_url,
            config=Config(
                # The settling of outcomes owns every retry: the SDK's own would report a conflict with
                # the write of its first attempt.
                retries={"total_max_attempts": 1, "mode": "standard"},
                max_pool_connections=options.concurrency,
                connect_timeout=min(_MAX_CONNECT_SECONDS, options.attempt_timeout),
                read_timeout=options.attempt_timeout,
                # Many compatible servers reject or even store the trailers of newer checksums.
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
                s3={"addressing_style": options.addressing_style},
                tcp_keepalive=True,
                user_agent_extra="wenchang-s3",
            ),
        )

    def close(self) -> None:
        """Close all connections."""
        # Without the lock, which the making of a client may hold for long.
        client, self._client = self._client, None
        if client is not None:
            client.close()


class GivenClient(ClientSource):
    """A client that the application made and keeps; `close` leaves it alone."""

    def __init__(self, client: Any) -> None:
        """Raise TypeError or `StorageConfigurationError` unless the client can be used."""
        super().__init__()
        _check_given(client)
        self._given = client
        self._client = client

    def _make(self) -> Any:
        # In a forked child: its connections are the parent's, and would mix the answers of both.
        self._given.close()
        return self._given


def _check_given(client: Any) -> None:
    """Refuse what is no S3 client, and one that sends a request again on its own."""
    meta = getattr(client, "meta", None)
    model = getattr(meta, "service_model", None)
    if getattr(model, "service_name", None) != "s3":
        raise TypeError('client must be an S3 client, as boto3.client("s3") makes it')
    if (client.meta.config.retries or {}).get("total_max_attempts") != 1:
        raise StorageConfigurationError(
            "the client sends requests again on its own, and would then report conflicts with its own "
            'writes; make it with config=Config(retries={"total_max_attempts": 1})'
        )


def is_amazon(client: Any) -> bool:
    """Tell whether the client speaks to Amazon itself: by the host's name, which TLS has to prove."""
    parts = urlsplit(client.meta.endpoint_url)
    return parts.scheme == "https" and (parts.hostname or "").endswith(_AMAZON)
