"""Google Cloud Storage as a storage: the generation is the version, custom metadata the metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from wenchang.storage import (
    ListedObject,
    PreconditionFailedError,
    StorageRejectedError,
    StoredObject,
)
from wenchang.storage.keys import (
    check_body,
    check_expected,
    check_key,
    check_listing,
    check_metadata,
    check_namespace,
)
from wenchang.storage.outcomes import (
    Ambiguous,
    Attempt,
    Delete,
    Done,
    Found,
    LineageMemory,
    NotSent,
    ReadAttempt,
    Rejected,
    Write,
    WriteKind,
    new_write_id,
)
from wenchang_gcs.calls import Call, Timer
from wenchang_gcs.clients import BucketHandle
from wenchang_gcs.heads import check_format
from wenchang_gcs.listing import list_heads
from wenchang_gcs.marks import encode_marks
from wenchang_gcs.options import GcsOptions
from wenchang_gcs.requests import Requests, conditions_of
from wenchang_gcs.tokens import Token, parse_token

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from google.cloud.storage import Bucket

__all__ = ["GcsStorage"]


class GcsStorage:
    """A bucket, or what lies under a prefix in it. Keeps the storage contract, version 1.0.

    The version is the object's generation, which the service never reuses for a name, with the
    metageneration added when it is not 1 (somebody patched the metadata). Metadata is the
    object's custom metadata. Every conditional write names both; the client's own retries are off,
    and lost answers are settled by write id and lineage. One name takes about one write a second;
    more are refused by the service as busy and repeated within the deadline.

    Requests: get 2, put_if_version 1, delete_if_version 1, list_page 1 for each 1,000 objects, put 2
    (it looks first whether only a newer release may replace the object). A refusal takes a get more,
    to tell it from a write of one's own.
    """

    def __init__(
        self,
        bucket: Bucket,
        *,
        prefix: str = "",
        deadline: float = 30.0,
        attempt_timeout: float = 10.0,
        concurrency: int = 32,
    ) -> None:
        """Use `bucket`, a `google.cloud.storage.Bucket`; times are in seconds.

        All keys lie below `prefix`, which is written without outer slashes. At most `concurrency`
        requests are in flight at once. The HTTP session of the bucket's client is built here, given
        as many connections, and its retries are switched off; a wrong mTLS set-up raises here.
        Makes no network call. Raises `StorageConfigurationError` for a wrong option.
        """
        if not hasattr(bucket, "client"):
            msg = f"bucket must be a google.cloud.storage.Bucket, not {type(bucket).__name__}"
            raise TypeError(msg)
        check_namespace(prefix)
        options = GcsOptions(
            deadline=deadline, attempt_timeout=attempt_timeout, concurrency=concurrency
        )
        self._policy = options.policy
        self._root = f"{prefix}/" if prefix else ""
        self._requests = Requests(BucketHandle(bucket, concurrency), concurrency)
        self._memory = LineageMemory()

    def __repr__(self) -> str:
        """Name the class only: bucket and prefix are the operator's matter."""
        return f"<{type(self).__module__}.{type(self).__qualname__}>"

    def __enter__(self) -> Self:
        """Return the storage itself; leaving closes it."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def close(self) -> None:
        """Close idle connections and threads. A later call opens new ones."""
        self._requests.close()

    # --- the contract -------------------------------------------------------------------------

    def get(self, key: str) -> StoredObject | None:
        """See `Storage.get`. Two requests, pinned to one generation."""
        check_key(key)
        found = Call(self._policy).read(lambda seconds: self._found(key, seconds))
        return None if found is None else found.current

    def put(self, key: str, data: bytes, metadata: Mapping[str, str]) -> str:
        """See `Storage.put`. Two requests."""
        check_key(key)
        check_body(data)
        return self._write(key, data, check_metadata(metadata), "put", None)

    def put_if_version(
        self, key: str, data: bytes, metadata: Mapping[str, str], expected: str | None
    ) -> str:
        """See `Storage.put_if_version`. One request."""
        check_key(key)
        check_body(data)
        kept = check_metadata(metadata)
        check_expected(expected, optional=True)
        if expected is None:
            return self._write(key, data, kept, "create", None)
        return self._write(key, data, kept, "replace", _token(key, expected))

    def delete_if_version(self, key: str, expected: str) -> None:
        """See `Storage.delete_if_version`. One request."""
        check_key(key)
        check_expected(expected, optional=False)
        token = _token(key, expected)
        Call(self._policy).settler().delete(
            Delete(key=key, expected=expected),
            lambda seconds: self._requests.delete(self._root + key, token, seconds),
            lambda seconds: self._found(key, seconds),
        )

    def list_page(self, prefix: str, start_after: str | None, limit: int) -> Sequence[ListedObject]:
        """See `Storage.list_page`. One request for each 1,000 objects."""
        check_listing(prefix, start_after, limit)
        heads = list_heads(
            Call(self._policy), self._requests, self._root, prefix, start_after, limit
        )
        for key, head in heads:
            head.remember(self._memory, key)
        return [head.listed(key) for key, head in heads]

    def list_versions(
        self, prefix: str, start_after: str | None, limit: int
    ) -> Sequence[tuple[str, str]]:
        """See `VersionLister.list_versions`. It costs what `list_page` does."""
        return [(one.key, one.version) for one in self.list_page(prefix, start_after, limit)]

    # --- inside -------------------------------------------------------------------------------

    def _write(
        self, key: str, data: bytes, metadata: dict[str, str], kind: WriteKind, token: Token | None
    ) -> str:
        """Store an object and settle what became of it; return its version."""
        expected = None if token is None else str(token)
        lineage = () if expected is None else self._memory.lineage_for_replace(key, expected)
        write = Write(
            key=key, kind=kind, expected=expected, write_id=new_write_id(), lineage=lineage
        )
        sending = _Sending(self._requests, self._root + key, data, metadata, write, token)
        settler = Call(self._policy).settler()
        version = settler.write(write, sending.attempt, lambda seconds: self._found(key, seconds))
        self._memory.remember(key, version, write.write_id, lineage)
        return version

    def _found(self, key: str, seconds: float) -> ReadAttempt[Found | None]:
        """Read an object whole, and keep what it tells of its past."""
        answer = self._requests.get(self._root + key, seconds)
        if not isinstance(answer, Done):
            return answer
        if answer.value is None:
            return Done(value=None)
        head, body = answer.value
        head.remember(self._memory, key)
        return Done(value=head.found(body))


class _Sending:
    """The attempts of one write. They send the same bytes under the same id."""

    def __init__(
        self,
        requests: Requests,
        name: str,
        data: bytes,
        metadata: Mapping[str, str],
        write: Write,
        token: Token | None,
    ) -> None:
        """Prepare a write that replaces the object at `token`, if any."""
        self._requests = requests
        self._name = name
        self._data = data
        self._metadata = metadata
        self._write = write
        self._conditions: Mapping[str, int] = {}
        if token is not None:
            self._conditions = conditions_of(token)
        elif write.kind == "create":
            self._conditions = {"if_generation_match": 0}
        self._extra: Mapping[str, str] = {}
        self._has_looked = write.kind != "put" and not (token is not None and token.extra)

    def attempt(self, seconds: float) -> Attempt:
        """Send once; where it is not known yet what may be overwritten, look first."""
        timer = Timer(seconds)
        if not self._has_looked:
            answer = self._look(timer.left())
            if answer is not None:
                return answer
        write = self._write
        stored = encode_marks(self._metadata, write.write_id, write.lineage, self._extra)
        return self._requests.upload(self._name, self._data, stored, self._conditions, timer.left())

    def _look(self, seconds: float) -> Attempt | None:
        """Learn what the object guards and what has to be kept of it; None when it may be written."""
        answer = self._requests.head(self._name, seconds)
        if isinstance(answer, Ambiguous):
            # It was a read: nothing of the write has been sent.
            return NotSent(error=answer.error, timed_out=answer.timed_out)
        if not isinstance(answer, Done):
            return answer
        if answer.value is not None:
            try:
                check_format(answer.value.token.min_writer)
            except StorageRejectedError as error:
                return Rejected(error=error)
            self._extra = answer.value.marks.extra
        self._has_looked = True
        return None


def _token(key: str, expected: str) -> Token:
    """Return the token to send, or refuse what this backend or this release cannot match."""
    token = parse_token(expected)
    if token is None:
        raise PreconditionFailedError(key)
    check_format(token.min_writer)
    return token
