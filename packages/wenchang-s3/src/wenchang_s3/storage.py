"""`S3Storage`: the five methods of the storage contract over one bucket."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, Self

from wenchang.storage import (
    ListedObject,
    PreconditionFailedError,
    StorageConfigurationError,
    StoredObject,
    outcomes,
)
from wenchang.storage.envelope import Envelope, Head, check_writable, decode, encode
from wenchang.storage.keys import (
    check_body,
    check_expected,
    check_key,
    check_listing,
    check_metadata,
)
from wenchang.storage.outcomes import (
    Ambiguous,
    Applied,
    Attempt,
    Busy,
    Delete,
    Done,
    LineageMemory,
    NotSent,
    ReadAttempt,
    Rejected,
    Write,
    WriteKind,
    new_write_id,
)
from wenchang_s3.calls import Call
from wenchang_s3.clients import ClientSource, GivenClient, OwnClient
from wenchang_s3.errors import Condition
from wenchang_s3.heads import HeadCache, Known
from wenchang_s3.listing import Lister
from wenchang_s3.options import S3Options, check_bucket, check_prefix
from wenchang_s3.proof import EndpointProof, Prover
from wenchang_s3.requests import Requests
from wenchang_s3.versions import Version, parse_version, version_of

__all__ = ["S3Storage"]

_CONDITIONS: Final[Mapping[WriteKind, Condition]] = {
    "create": "absent",
    "replace": "version",
    "put": "none",
}
_SWEEP: Final = 1000


class S3Storage:
    """Objects in an S3 bucket, or in a bucket of a compatible server; see `Storage`.

    Each object begins with a block of front matter that holds its metadata and write id, followed by
    the exact body (`wenchang.storage.envelope`). A version is the ETag of both together.

    A get is one request, and so are a conditional put and a conditional delete. An unconditional `put`
    reads the head of what it replaces first. A listing is one LIST for each 1,000 keys, and one
    ranged GET for each object that this handle has not met at its present ETag.

    On endpoints other than Amazon's own the first write of a handle proves that they honour conditions
    (`prove`), and raises `StorageRejectedError` where they do not. Nothing is sent before the
    first call, and credentials are looked for only then.

    One handle serves any number of threads and works in a forked child.
    """

    def __init__(
        self,
        bucket: str,
        *,
        prefix: str = "",
        client: Any = None,
        region: str | None = None,
        endpoint_url: str | None = None,
        profile: str | None = None,
        addressing_style: Literal["auto", "path", "virtual"] = "auto",
        deadline: float = 30.0,
        attempt_timeout: float = 5.0,
        concurrency: int = 32,
    ) -> None:
        """Open `bucket`, in which all keys lie below `prefix` (without outer slashes).

        `client` is an S3 client of boto3 with its own retries off, used instead of one of our own;
        region, endpoint, profile and addressing style are then its matter. In a forked child it is
        closed once, so that parent and child share no connection. The other options are those of
        `S3Options`. Raises TypeError or `StorageConfigurationError` for what cannot be right.
        """
        check_bucket(bucket)
        check_prefix(prefix)
        options = S3Options(
            region=region,
            endpoint_url=endpoint_url,
            profile=profile,
            addressing_style=addressing_style,
            deadline=deadline,
            attempt_timeout=attempt_timeout,
            concurrency=concurrency,
        )
        source = _source(client, options)
        connections = concurrency
        if client is not None:
            connections = min(concurrency, client.meta.config.max_pool_connections)
        self._policy = options.policy
        self._root = f"{prefix}/" if prefix else ""
        self._memory = LineageMemory()
        self._heads = HeadCache()
        self._requests = Requests(source, bucket, connections)
        self._prover = Prover(self._requests, self._root)
        self._lister = Lister(self._requests, self._root, self._heads, self._memory)

    # --- the contract --------------------------------------------------------------------------

    def get(self, key: str) -> StoredObject | None:
        """See `Storage.get`. One request."""
        check_key(key)
        name = self._root + key
        body = Call(self._policy).read(lambda seconds: self._requests.get(name, seconds))
        if body is None:
            return None
        stored = decode(body.data)
        version = self._learn(key, body.etag, stored)
        return None if stored.tombstone else stored.stored(version)

    def put(self, key: str, data: bytes, metadata: Mapping[str, str]) -> str:
        """See `Storage.put`. Reads the head of what it replaces, which a later release may guard."""
        check_key(key)
        check_body(data)
        metadata = check_metadata(metadata)
        call = Call(self._policy)
        self._prover.ensure(call)
        head = self._head(call, key)
        check_writable(head)
        return self._write(call, key, data, metadata, "put", extra=head.extra if head else {})

    def put_if_version(
        self, key: str, data: bytes, metadata: Mapping[str, str], expected: str | None
    ) -> str:
        """See `Storage.put_if_version`. One request, and one more if it is refused."""
        check_key(key)
        check_body(data)
        metadata = check_metadata(metadata)
        check_expected(expected, optional=True)
        if expected is None:
            call = Call(self._policy)
            self._prover.ensure(call)
            return self._create(call, key, data, metadata)
        version = self._expected(key, expected)
        call = Call(self._policy)
        self._prover.ensure(call)
        extra: Mapping[str, object] = {}
        if version.has_extra:
            head = self._head(call, key)
            extra = head.extra if head else {}
        return self._write(call, key, data, metadata, "replace", expected=expected, extra=extra)

    def delete_if_version(self, key: str, expected: str) -> None:
        """See `Storage.delete_if_version`. One request, and one more if it is refused.

        Where the endpoint has no conditional delete, a tombstone replaces the object.
        """
        check_key(key)
        check_expected(expected, optional=False)
        version = self._expected(key, expected)
        call = Call(self._policy)
        if not self._prover.ensure(call).conditional_delete:
            self._write(call, key, b"", {}, "replace", expected=expected, tombstone=True)
            return
        name = self._root + key

        def send(seconds: float) -> Attempt:
            return self._requests.delete(name, seconds, etag=version.etag)

        call.settler().delete(
            Delete(key=key, expected=expected), send, _ReadBack(self, key).attempt
        )

    def list_page(self, prefix: str, start_after: str | None, limit: int) -> list[ListedObject]:
        """See `Storage.list_page`. One LIST, and the heads of objects not met before."""
        check_listing(prefix, start_after, limit)
        return self._lister.page(Call(self._policy), prefix, start_after, limit)

    # --- besides the contract ------------------------------------------------------------------

    def list_versions(
        self, prefix: str, start_after: str | None, limit: int
    ) -> list[tuple[str, str]]:
        """See `VersionLister.list_versions`. One LIST for each 1,000 keys and no heads.

        Such a version does not tell whether a later release guards the object. Where tombstones
        may lie around, or that is not known yet, it costs what `list_page` costs.
        """
        check_listing(prefix, start_after, limit)
        call = Call(self._policy)
        proof = self._prover.known or self._prover.own(call)
        if proof is not None and proof.conditional_delete:
            return self._lister.versions(call, prefix, start_after, limit)
        page = self._lister.page(call, prefix, start_after, limit)
        return [(entry.key, entry.version) for entry in page]

    def prove(self) -> EndpointProof:
        """Try what the endpoint honours, whoever's it is; return what was found.

        About a dozen requests on an object that no key names and that is removed again. Raises
        `StorageRejectedError` (`unsupported`) that names the condition without which nothing may be
        written. One writer alone cannot see the races inside a server.
        """
        return self._prover.prove(Call(self._policy))

    def remove_tombstones(self) -> int:
        """Remove the marks that deletes left on an endpoint without conditional delete; return how many.

        **Only while nobody else writes below the prefix.** The deletes are not conditional where the
        endpoint has no conditional ones: what was created at that moment would be lost.
        """
        conditional = self._prover.ensure(Call(self._policy)).conditional_delete
        removed = 0
        start: str | None = None
        while True:
            call = Call(self._policy)
            graves = self._lister.tombstones(call, start, _SWEEP)
            for key, version in graves:
                self._bury(key, version, conditional=conditional)
                removed += 1
            if len(graves) < _SWEEP:
                return removed
            start = graves[-1][0]

    def close(self) -> None:
        """Close connections that are ours. A later call opens new ones."""
        self._requests.close()

    def __enter__(self) -> Self:
        """Return the storage; leaving closes it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def __repr__(self) -> str:
        """Return a text without bucket, prefix or endpoint."""
        return "<wenchang_s3.S3Storage>"

    # --- inside --------------------------------------------------------------------------------

    def _expected(self, key: str, expected: str) -> Version:
        """Take the version of a conditional call apart; refuse what no condition may carry."""
        version = parse_version(expected)
        if version is None:
            raise PreconditionFailedError(key)
        version.check_writable()
        return version

    def _head(self, call: Call, key: str) -> Head | None:
        """Return the block of what is stored under `key`, or None where there is no block."""
        name = self._root + key
        found = call.read(lambda seconds: self._requests.head(name, seconds))
        return found.head if found is not None and isinstance(found.head, Head) else None

    def _create(self, call: Call, key: str, data: bytes, metadata: Mapping[str, str]) -> str:
        """Create, over a tombstone too: that is a key which is absent and yet occupied."""
        while True:
            back = _ReadBack(self, key)
            try:
                return self._write(call, key, data, metadata, "create", back=back)
            except PreconditionFailedError:
                if back.tombstone is None:
                    raise
            try:
                return self._write(call, key, data, metadata, "replace", expected=back.tombstone)
            except PreconditionFailedError as refused:
                if refused.current is not None:
                    raise

    def _write(
        self,
        call: Call,
        key: str,
        data: bytes,
        metadata: Mapping[str, str],
        kind: WriteKind,
        *,
        expected: str | None = None,
        extra: Mapping[str, object] | None = None,
        tombstone: bool = False,
        back: _ReadBack | None = None,
    ) -> str:
        """Write one object and settle what became of it; return its version."""
        write_id = new_write_id()
        lineage = () if expected is None else self._memory.lineage_for_replace(key, expected)
        stored = encode(data, metadata, write_id, lineage, tombstone=tombstone, extra=extra)
        version = None if expected is None else parse_version(expected)
        name = self._root + key
        mark = ":x" if extra else ""

        def send(seconds: float) -> Attempt:
            attempt = self._requests.put(
                name,
                stored,
                seconds,
                condition=_CONDITIONS[kind],
                etag="" if version is None else version.etag,
            )
            return (
                Applied(version=attempt.version + mark) if isinstance(attempt, Applied) else attempt
            )

        write = Write(key=key, kind=kind, expected=expected, write_id=write_id, lineage=lineage)
        landed = call.settler().write(write, send, (back or _ReadBack(self, key)).attempt)
        self._memory.remember(key, landed, write_id, lineage)
        known = Known(metadata=metadata, version=landed, tombstone=tombstone)
        self._heads.put(key, landed.removesuffix(":x"), known)
        return landed

    def _learn(self, key: str, etag: str, stored: Envelope) -> str:
        """Keep what a whole object tells; return its version."""
        version = version_of(etag, stored)
        self._memory.remember(key, version, stored.remembered_id, stored.lineage)
        self._heads.put(
            key,
            etag,
            Known(metadata=stored.metadata, version=version, tombstone=stored.tombstone),
        )
        return version

    def _read_back(self, key: str, seconds: float) -> ReadAttempt[outcomes.Found | None]:
        """Read an object to settle what became of a write to it."""
        answer = self._requests.get(self._root + key, seconds)
        if not isinstance(answer, Done):
            return answer
        if answer.value is None:
            return Done(value=None)
        stored = decode(answer.value.data)
        return Done(value=stored.found(self._learn(key, answer.value.etag, stored)))

    def _bury(self, key: str, version: str, *, conditional: bool) -> None:
        """Remove one tombstone."""
        if conditional:
            self.delete_if_version(key, version)
            return
        name = self._root + key

        def attempt(seconds: float) -> ReadAttempt[None]:
            answer = self._requests.delete(name, seconds, etag=None)
            if isinstance(answer, Applied):
                return Done(value=None)
            if isinstance(answer, Rejected | Busy | NotSent | Ambiguous):
                return answer
            # Without a condition nothing can be refused.
            raise AssertionError

        # Nobody else writes, so that it may be sent again.
        Call(self._policy).read(attempt)


class _ReadBack:
    """Reads an object back for the settling, and keeps the version of a tombstone that it met."""

    def __init__(self, storage: S3Storage, key: str) -> None:
        self._storage = storage
        self._key = key
        self.tombstone: str | None = None

    def attempt(self, seconds: float) -> ReadAttempt[outcomes.Found | None]:
        """Read it once."""
        answer = self._storage._read_back(self._key, seconds)  # noqa: SLF001 - one subject in two classes
        if isinstance(answer, Done):
            found = answer.value
            self.tombstone = (
                found.current.version if found is not None and found.tombstone else None
            )
        return answer


def _source(client: Any, options: S3Options) -> ClientSource:
    """Return where the client comes from."""
    if client is None:
        return OwnClient(options)
    named = ("region", "endpoint_url", "profile")
    wrong = [name for name in named if getattr(options, name) is not None]
    if options.addressing_style != "auto":
        wrong.append("addressing_style")
    if wrong:
        raise StorageConfigurationError(
            f"option '{wrong[0]}' is the client's matter where one is given; make the client with it"
        )
    return GivenClient(client)
