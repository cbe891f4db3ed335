"""`AzureStorage`: the storage contract on a container of Azure Blob Storage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from azure.storage.blob import ContainerClient

from wenchang.storage import ListedObject, PreconditionFailedError, StoredObject
from wenchang.storage.keys import (
    check_body,
    check_expected,
    check_key,
    check_listing,
    check_metadata,
    check_namespace,
)
from wenchang.storage.outcomes import (
    Delete,
    Done,
    Found,
    LineageMemory,
    ReadAttempt,
    RetryPolicy,
    Settler,
    Write,
    WriteKind,
    new_write_id,
)
from wenchang_azure.calls import Calls
from wenchang_azure.clients import Clients
from wenchang_azure.listing import Lister, Remaining, can_begin_at
from wenchang_azure.marks import check_writable, encode_marks
from wenchang_azure.names import encode_name
from wenchang_azure.options import check_concurrency
from wenchang_azure.tokens import Token, parse_token

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from wenchang.storage.outcomes import Attempt, Lineage
    from wenchang_azure.calls import Blob
    from wenchang_azure.marks import Marks

__all__ = ["AzureStorage"]

_POOL_OF_THE_SDK: Final = 10
"""Connections that a client keeps unless it is told otherwise."""


class AzureStorage:
    """A `Storage` in one container; see there for what each method promises.

    `container_client` is a `ContainerClient` of azure-storage-blob. It is used as it is, apart from
    its retries, and stays the caller's: `close` leaves it open. With more than ten for
    `concurrency` give it a pool of that many connections. A forked child makes a client of its own from
    the address, the credential and the service version of this one.

    A key is the blob name after `prefix/`, the version is the blob's ETag, and metadata is packed
    into one value of the blob's metadata. The container must exist, in an account without a
    hierarchical namespace; others are refused at the first write or listing. Constructing sends
    nothing.
    """

    def __init__(
        self,
        container_client: ContainerClient,
        *,
        prefix: str = "",
        deadline: float = 30.0,
        attempt_timeout: float = 10.0,
        concurrency: int = _POOL_OF_THE_SDK,
    ) -> None:
        """Raise `StorageConfigurationError` for a wrong option, TypeError for a wrong client."""
        if not isinstance(container_client, ContainerClient):
            msg = "container_client must be an azure.storage.blob.ContainerClient"
            raise TypeError(msg)
        given = container_client

        def again() -> ContainerClient:
            return ContainerClient.from_container_url(
                given.url, credential=given.credential, api_version=given.api_version
            )

        self._begin(
            Clients(again, given=given),
            prefix=prefix,
            policy=RetryPolicy(deadline=deadline, attempt_timeout=attempt_timeout),
            concurrency=concurrency,
            api_version=given.api_version,
        )

    @classmethod
    def from_clients_of_ours(
        cls,
        clients: Clients,
        *,
        prefix: str,
        policy: RetryPolicy,
        concurrency: int,
        api_version: str | None,
    ) -> Self:
        """Return a storage whose clients this package makes (`wenchang_azure.opening`)."""
        storage = cls.__new__(cls)
        storage._begin(  # noqa: SLF001 - a second constructor
            clients,
            prefix=prefix,
            policy=policy,
            concurrency=concurrency,
            api_version=api_version,
        )
        return storage

    def _begin(
        self,
        clients: Clients,
        *,
        prefix: str,
        policy: RetryPolicy,
        concurrency: int,
        api_version: str | None,
    ) -> None:
        check_namespace(prefix)
        check_concurrency(concurrency)
        self._root = f"{encode_name(prefix)}/" if prefix else ""
        self._policy = policy
        self._settler = Settler(policy, confirm_refusals=True)
        self._memory = LineageMemory()
        self._calls = Calls(clients, concurrency)
        begins_at = api_version is None or can_begin_at(api_version)
        self._lister = Lister(self._calls, policy, self._root, begins_at=begins_at)

    def __repr__(self) -> str:
        """Name the class only: the address may hold a signature."""
        return f"<{type(self).__name__}>"

    def __enter__(self) -> Self:
        """Return the storage itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close the connections of a storage opened by URL. A later call connects anew."""
        self._calls.close()

    # --- reading ------------------------------------------------------------------------------

    def get(self, key: str) -> StoredObject | None:
        """Return the object at `key`, or None; see `Storage.get`. One request; two if it is empty."""
        check_key(key)
        name = self._name(key)
        blob = self._settler.read(lambda seconds: self._calls.read(name, seconds))
        return None if blob is None else self._found(key, blob).current

    def list_page(self, prefix: str, start_after: str | None, limit: int) -> list[ListedObject]:
        """Return a page of a listing; see `Storage.list_page`. One request for each 2,000."""
        check_listing(prefix, start_after, limit)
        page = []
        for entry in self._lister.page(prefix, start_after, limit):
            version = str(entry.token)
            self._remember(entry.key, version, entry.marks)
            page.append(ListedObject(entry.key, dict(entry.marks.metadata), version))
        return page

    # --- writing ------------------------------------------------------------------------------

    def put(self, key: str, data: bytes, metadata: Mapping[str, str]) -> str:
        """Create or replace the object; see `Storage.put`.

        Two requests: a blob that only a newer release may replace has to be seen first.
        """
        check_key(key)
        check_body(data)
        copied = check_metadata(metadata)
        name = self._name(key)
        remaining = Remaining(self._policy)
        there = remaining.settler().read(lambda seconds: self._calls.head(name, seconds))
        extra = b""
        if there is not None:
            check_writable(there.token.min_writer)
            extra = there.marks.extra
        write_id = new_write_id()
        value = encode_marks(data, copied, write_id, extra=extra)

        def send(seconds: float) -> Attempt:
            return self._calls.put(name, data, value, seconds)

        return self._store(
            remaining.settler(), key, "put", None, write_id, (), send, has_extra=bool(extra)
        )

    def put_if_version(
        self, key: str, data: bytes, metadata: Mapping[str, str], expected: str | None
    ) -> str:
        """Replace at `expected`, or create where it is None; see `Storage.put_if_version`."""
        check_key(key)
        check_body(data)
        copied = check_metadata(metadata)
        check_expected(expected, optional=True)
        name, write_id = self._name(key), new_write_id()
        if expected is None:
            value = encode_marks(data, copied, write_id)
            return self._store(
                self._settler,
                key,
                "create",
                None,
                write_id,
                (),
                lambda seconds: self._calls.create(name, data, value, seconds),
            )
        token = _token(key, expected)
        remaining = Remaining(self._policy)
        extra = self._extra(name, token, remaining)
        lineage = self._memory.lineage_for_replace(key, expected)
        value = encode_marks(data, copied, write_id, lineage, extra=extra)
        return self._store(
            remaining.settler(),
            key,
            "replace",
            expected,
            write_id,
            lineage,
            lambda seconds: self._calls.replace(name, data, value, token, seconds),
            has_extra=bool(extra),
        )

    def delete_if_version(self, key: str, expected: str) -> None:
        """Delete at `expected`; see `Storage.delete_if_version`. One request."""
        check_key(key)
        check_expected(expected, optional=False)
        token, name = _token(key, expected), self._name(key)
        self._settler.delete(
            Delete(key=key, expected=expected),
            lambda seconds: self._calls.delete(name, token, seconds),
            lambda seconds: self._read_back(key, seconds),
        )

    def _store(
        self,
        settler: Settler,
        key: str,
        kind: WriteKind,
        expected: str | None,
        write_id: str,
        lineage: Lineage,
        send: Callable[[float], Attempt],
        *,
        has_extra: bool = False,
    ) -> str:
        """Carry out one of the three puts; every attempt sends the same bytes."""
        version = settler.write(
            Write(key=key, kind=kind, expected=expected, write_id=write_id, lineage=lineage),
            send,
            lambda seconds: self._read_back(key, seconds),
        )
        token = parse_token(version)
        if has_extra and token is not None and not token.has_extra:
            # The acknowledgement names the ETag alone, a reading also what it kept.
            version = str(Token(etag=token.etag, has_extra=True))
        self._memory.remember(key, version, write_id, lineage)
        return version

    def _read_back(self, key: str, seconds: float) -> ReadAttempt[Found | None]:
        """Read the object with the marks by which a landed write is recognised."""
        answer = self._calls.read(self._name(key), seconds)
        if not isinstance(answer, Done):
            return answer
        blob = answer.value
        return Done(value=None if blob is None else self._found(key, blob))

    def _extra(self, name: str, token: Token, remaining: Remaining) -> bytes:
        """Return the fields of a newer format that a replacement has to keep."""
        if not token.has_extra:
            return b""
        there = remaining.settler().read(lambda seconds: self._calls.head(name, seconds))
        # Where the blob is another one by now, the condition of the write says so.
        return b"" if there is None else there.marks.extra

    def _found(self, key: str, blob: Blob) -> Found:
        """Return a blob as the settling of outcomes sees it, and remember it."""
        version, marks = str(blob.token), blob.marks
        edited = marks.edited(blob.body)
        if not edited:
            self._remember(key, version, marks)
        return Found(
            current=StoredObject(blob.body, dict(marks.metadata), version),
            write_id=marks.write_id,
            lineage=marks.lineage,
            edited=edited,
        )

    def _remember(self, key: str, version: str, marks: Marks) -> None:
        self._memory.remember(key, version, marks.write_id, marks.lineage)

    def _name(self, key: str) -> str:
        return self._root + encode_name(key)


def _token(key: str, expected: str) -> Token:
    """Take apart the version that a caller names, or refuse it before anything is sent."""
    token = parse_token(expected)
    if token is None:
        raise PreconditionFailedError(key)
    check_writable(token.min_writer)
    return token
