"""Google Cloud Storage as a storage: the generation is the version, custom metadata the metadata."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from wenchang.storage import (
    ListedObject,
    PreconditionFailedError,
    StorageConfigurationError,
    StorageRejectedError,
    StoredObject,
)
from wenchang.storage.bounded import BoundedCalls
from wenchang.storage.keys import (
    check_body,
    check_expected,
    check_key,
    check_listing,
    check_metadata,
    check_namespace,
    is_valid_key,
)
from wenchang.storage.outcomes import (
    Ambiguous,
    Applied,
    Attempt,
    Delete,
    Done,
    Found,
    LineageMemory,
    ReadAttempt,
    Refused,
    RetryPolicy,
    Settler,
    Write,
    WriteKind,
    new_write_id,
)
from wenchang_gcs.clients import BucketHandle
from wenchang_gcs.errors import classify, is_absent
from wenchang_gcs.marks import FORMAT, decode_marks, encode_marks
from wenchang_gcs.tokens import Token, parse_token

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from google.cloud.storage import Blob, Bucket

__all__ = ["GcsStorage"]

T = TypeVar("T")

_PAGE: Final = 1000
"""Objects in one answer of the service at most."""
_FIELDS: Final = "items(name,generation,metageneration,metadata),nextPageToken"
_PINNED_READS: Final = 3
"""How often a read that a writer overtook is begun anew within one attempt."""
_CONTENT_TYPE: Final = "text/markdown; charset=utf-8"


class GcsStorage:
    """A bucket, or what lies under a prefix in it. Keeps the storage contract, version 1.0.

    The version is the object's generation, which Google never reuses for a name, with the
    metageneration added when it is not 1 (somebody patched the metadata). Metadata is the
    object's custom metadata. Every write names both; the client's own retries are off, and lost
    answers are settled by write id and lineage. One name takes about one write a second, more are
    refused by the service as busy and repeated within the deadline.

    Requests: get 2, put_if_version 1, delete_if_version 1, list_page 1 per 1,000 objects, put 2
    (it looks first whether only a newer release may replace the object).
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

        Builds the client's HTTP session, so a wrong mTLS set-up raises here. Makes no network call.
        Raises `StorageConfigurationError` for a wrong option.
        """
        check_namespace(prefix)
        if type(concurrency) is not int or not 1 <= concurrency <= 1000:
            msg = "option 'concurrency' must be a whole number from 1 to 1000"
            raise StorageConfigurationError(msg)
        policy = RetryPolicy(deadline=deadline, attempt_timeout=attempt_timeout)
        self._prefix = f"{prefix}/" if prefix else ""
        self._bucket = BucketHandle(bucket, concurrency)
        self._settler = Settler(policy, confirm_refusals=True)
        self._calls = BoundedCalls(concurrency)
        self._memory = LineageMemory()

    def __repr__(self) -> str:
        """Name the class only: bucket and prefix are the operator's matter."""
        return f"{type(self).__name__}()"

    def __enter__(self) -> Self:
        """Return the storage itself."""
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
        self._calls.close()
        self._bucket.close()

    # --- the contract -------------------------------------------------------------------------

    def get(self, key: str) -> StoredObject | None:
        """See `Storage.get`."""
        check_key(key)
        found = self._settler.read(lambda seconds: self._read(key, seconds))
        return None if found is None else found.current

    def put(self, key: str, data: bytes, metadata: Mapping[str, str]) -> str:
        """See `Storage.put`."""
        check_key(key)
        check_body(data)
        kept = check_metadata(metadata)
        stored = self._settler.read(lambda seconds: self._look(key, seconds))
        if stored is not None:
            _check_writable(stored)
        return self._write(key, data, kept, "put", None)

    def put_if_version(
        self, key: str, data: bytes, metadata: Mapping[str, str], expected: str | None
    ) -> str:
        """See `Storage.put_if_version`."""
        check_key(key)
        check_body(data)
        kept = check_metadata(metadata)
        check_expected(expected, optional=True)
        if expected is None:
            return self._write(key, data, kept, "create", None)
        return self._write(key, data, kept, "replace", _token(key, expected))

    def delete_if_version(self, key: str, expected: str) -> None:
        """See `Storage.delete_if_version`."""
        check_key(key)
        check_expected(expected, optional=False)
        token = _token(key, expected)

        def send(seconds: float) -> Attempt:
            return self._attempt(lambda: self._delete(key, token, seconds), seconds)

        self._settler.delete(
            Delete(key=key, expected=expected), send, lambda seconds: self._read(key, seconds)
        )

    def list_page(self, prefix: str, start_after: str | None, limit: int) -> Sequence[ListedObject]:
        """See `Storage.list_page`."""
        check_listing(prefix, start_after, limit)
        return [self._listed(key, blob) for key, blob in self._blobs(prefix, start_after, limit)]

    def list_versions(
        self, prefix: str, start_after: str | None, limit: int
    ) -> Sequence[tuple[str, str]]:
        """See `VersionLister.list_versions`."""
        return [(one.key, one.version) for one in self.list_page(prefix, start_after, limit)]

    # --- writing ------------------------------------------------------------------------------

    def _write(
        self, key: str, data: bytes, metadata: dict[str, str], kind: WriteKind, token: Token | None
    ) -> str:
        expected = None if token is None else str(token)
        lineage = () if expected is None else self._memory.lineage_for_replace(key, expected)
        write = Write(
            key=key, kind=kind, expected=expected, write_id=new_write_id(), lineage=lineage
        )
        stored = encode_marks(metadata, write)

        def send(seconds: float) -> Attempt:
            return self._attempt(lambda: self._upload(write, data, stored, token, seconds), seconds)

        version = self._settler.write(write, send, lambda seconds: self._read(key, seconds))
        self._memory.remember(key, version, write.write_id, lineage)
        return version

    def _upload(
        self,
        write: Write,
        data: bytes,
        metadata: dict[str, str],
        token: Token | None,
        seconds: float,
    ) -> Attempt:
        """Send one upload: body and metadata in one request."""
        blob = self._blob(write.key)
        blob.metadata = metadata
        conditions: dict[str, int] = {}
        if write.kind == "create":
            conditions["if_generation_match"] = 0
        elif token is not None:
            conditions["if_generation_match"] = token.generation
            conditions["if_metageneration_match"] = token.metageneration
        blob.upload_from_string(
            data, content_type=_CONTENT_TYPE, retry=None, timeout=seconds, **conditions
        )
        if not _is_whole(blob.generation) or blob.metageneration != 1:
            return Ambiguous(error=ValueError("the answer named no generation"))
        return Applied(version=str(Token(generation=int(blob.generation))))

    def _delete(self, key: str, token: Token, seconds: float) -> Attempt:
        """Send one conditional delete."""
        self._blob(key).delete(
            if_generation_match=token.generation,
            if_metageneration_match=token.metageneration,
            retry=None,
            timeout=seconds,
        )
        return Applied(version="")

    def _attempt(self, send: Callable[[], Attempt], seconds: float) -> Attempt:
        """Run one attempt of a write within its time."""
        try:
            return self._calls.run(send, seconds)
        except Exception as error:  # noqa: BLE001 - whatever is not known is ambiguous
            return classify(error)

    # --- reading ------------------------------------------------------------------------------

    def _read(self, key: str, seconds: float) -> ReadAttempt[Found | None]:
        """Read an object whole, body and metadata of one generation."""

        def read() -> Found | None:
            for left in reversed(range(_PINNED_READS)):
                blob = self._blob(key)
                try:
                    blob.reload(retry=None, timeout=seconds)
                    body = blob.download_as_bytes(
                        if_generation_match=blob.generation, retry=None, timeout=seconds
                    )
                except Exception as error:
                    if is_absent(error) and blob.generation is None:
                        return None
                    if left and isinstance(classify(error), Refused):
                        # Replaced or deleted between the two requests.
                        continue
                    raise
                return self._found(key, blob, body)
            raise AssertionError

        return self._read_attempt(read, seconds)

    def _look(self, key: str, seconds: float) -> ReadAttempt[Blob | None]:
        """Read an object's head."""

        def look() -> Blob | None:
            blob = self._blob(key)
            try:
                blob.reload(retry=None, timeout=seconds)
            except Exception as error:
                if is_absent(error):
                    return None
                raise
            return blob

        return self._read_attempt(look, seconds)

    def _read_attempt(self, read: Callable[[], T], seconds: float) -> ReadAttempt[T]:
        try:
            return Done(value=self._calls.run(read, seconds))
        except Exception as error:  # noqa: BLE001 - a read that failed is simply repeated
            failure = classify(error)
            # A read has no precondition of the caller's: it was overtaken, and is begun anew.
            return Ambiguous(error=error) if isinstance(failure, Refused) else failure

    def _found(self, key: str, blob: Blob, body: bytes) -> Found:
        marks = decode_marks(blob.metadata)
        token = _token_of(blob)
        edited = token.metageneration != 1
        if not edited:
            self._memory.remember(key, str(token), marks.write_id, marks.lineage)
        return Found(
            current=StoredObject(body, dict(marks.metadata), str(token)),
            write_id=marks.write_id,
            lineage=marks.lineage,
            edited=edited,
        )

    # --- listing ------------------------------------------------------------------------------

    def _blobs(
        self, prefix: str, start_after: str | None, limit: int
    ) -> Sequence[tuple[str, Blob]]:
        """Return the entries of a page, over as many answers of the service as it takes."""
        entries: list[tuple[str, Blob]] = []
        page_token: str | None = None
        last = start_after
        while len(entries) < limit:
            # The start is inclusive, so the one entry that is dropped is asked for too.
            wanted = min(_PAGE, limit - len(entries) + (page_token is None))
            token, start = page_token, None if start_after is None else self._prefix + start_after
            blobs, page_token = self._settler.read(
                lambda seconds, token=token, start=start, wanted=wanted: self._read_attempt(  # type: ignore[misc] # a lambda with defaults has no inferable type
                    lambda: self._answer(prefix, start, wanted, token, seconds), seconds
                )
            )
            for blob in blobs:
                key = blob.name.removeprefix(self._prefix)
                if not is_valid_key(key) or (start_after is not None and key <= start_after):
                    continue
                if last is not None and key <= last:
                    msg = "the service lists out of order; it cannot be used as storage"
                    raise StorageRejectedError("unsupported", msg)
                last = key
                entries.append((key, blob))
            if page_token is None:
                break
        return entries[:limit]

    def _answer(
        self, prefix: str, start: str | None, wanted: int, token: str | None, seconds: float
    ) -> tuple[list[Blob], str | None]:
        """Ask for one answer of a listing; return its objects and where the next begins."""
        bucket = self._bucket.get()
        iterator = bucket.client.list_blobs(
            bucket,
            prefix=self._prefix + prefix,
            start_offset=start,
            page_size=wanted,
            page_token=token,
            fields=_FIELDS,
            retry=None,
            timeout=seconds,
        )
        page = next(iterator.pages, None)
        blobs = [] if page is None else list(page)
        following = iterator.next_page_token
        if following is not None and following == token:
            msg = "the service repeats a page; it cannot be used as storage"
            raise StorageRejectedError("unsupported", msg)
        return blobs, following

    def _listed(self, key: str, blob: Blob) -> ListedObject:
        marks = decode_marks(blob.metadata)
        token = _token_of(blob)
        if token.metageneration == 1:
            self._memory.remember(key, str(token), marks.write_id, marks.lineage)
        return ListedObject(key, dict(marks.metadata), str(token))

    def _blob(self, key: str) -> Blob:
        return self._bucket.get().blob(self._prefix + key)


def _token(key: str, expected: str) -> Token:
    """Return the token to send, or refuse what this backend or this release cannot match."""
    token = parse_token(expected)
    if token is None:
        raise PreconditionFailedError(key)
    _check_format(token.min_writer)
    return token


def _token_of(blob: Blob) -> Token:
    return Token(
        generation=int(blob.generation),
        metageneration=int(blob.metageneration),
        min_writer=decode_marks(blob.metadata).min_writer,
    )


def _check_writable(blob: Blob) -> None:
    _check_format(decode_marks(blob.metadata).min_writer)


def _check_format(min_writer: int) -> None:
    if min_writer > FORMAT:
        raise StorageRejectedError(
            "unsupported",
            f"the stored object needs a writer of format {min_writer} and this release writes format "
            f"{FORMAT}; upgrade wenchang in every process that writes here",
        )


def _is_whole(generation: object) -> bool:
    return generation is not None and str(generation).isascii() and str(generation).isdecimal()
