"""The requests to the service: each within its time, and each answer classified."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from google.api_core.exceptions import GoogleAPICallError

from wenchang.storage.bounded import BoundedCalls
from wenchang.storage.outcomes import Ambiguous, Applied, Attempt, Done, ReadAttempt, Refused
from wenchang_gcs.calls import Timer
from wenchang_gcs.errors import Subject, classify, is_absent
from wenchang_gcs.heads import Blob, Head, HeadCache
from wenchang_gcs.marks import decode_marks
from wenchang_gcs.tokens import Token

if TYPE_CHECKING:
    from wenchang_gcs.clients import BucketHandle

__all__ = ["Page", "Requests", "conditions_of"]

T = TypeVar("T")

_FIELDS: Final = "items(name,generation,metageneration,metadata),nextPageToken"
_PINNED_READS: Final = 3
"""How often a read that a writer overtook is begun anew within one attempt."""
_CONTENT_TYPE: Final = "text/markdown; charset=utf-8"


class _OvertakenError(Exception):
    """Writers replaced the object between the two requests of each read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One answer of a listing."""

    entries: tuple[tuple[str, Head], ...]
    """Names as stored, with what is known of each object."""
    following: str | None
    """Where the next answer begins; None at the end."""


class Requests:
    """Sends requests about the objects of one bucket. The client's own retries are off."""

    def __init__(self, bucket: BucketHandle, concurrency: int) -> None:
        """Send at most `concurrency` requests at once."""
        self._bucket = bucket
        self._calls = BoundedCalls(concurrency)
        self._heads = HeadCache()

    def close(self) -> None:
        """Close idle connections and threads."""
        self._calls.close()
        self._bucket.close()

    # --- writing ------------------------------------------------------------------------------

    def upload(
        self,
        name: str,
        data: bytes,
        metadata: Mapping[str, str],
        conditions: Mapping[str, int],
        seconds: float,
    ) -> Attempt:
        """Store body and custom metadata in one request."""

        def send() -> Attempt:
            blob = self._blob(name)
            blob.metadata = metadata
            blob.upload_from_string(
                data, content_type=_CONTENT_TYPE, retry=None, timeout=seconds, **conditions
            )
            head = Head.of(blob)
            if head.token.metageneration != 1:
                return Ambiguous(error=ValueError("the answer is not about a new object"))
            # The service repeats the metadata, but the marks that make the token are those sent.
            extra = bool(decode_marks(metadata).extra)
            return Applied(version=str(Token(generation=head.token.generation, extra=extra)))

        return self._write(send, seconds, "bucket")

    def delete(self, name: str, token: Token, seconds: float) -> Attempt:
        """Delete an object at exactly `token`."""

        def send() -> Attempt:
            self._blob(name).delete(retry=None, timeout=seconds, **conditions_of(token))
            return Applied(version="")

        return self._write(send, seconds, "object")

    def _write(self, send: Callable[[], Attempt], seconds: float, subject: Subject) -> Attempt:
        try:
            return self._calls.run(send, seconds)
        except Exception as error:  # noqa: BLE001 - whatever is not known is ambiguous
            return classify(error, subject)

    # --- reading ------------------------------------------------------------------------------

    def head(self, name: str, seconds: float) -> ReadAttempt[Head | None]:
        """Read what is told of an object besides its bytes; None when it is absent."""
        return self._read(lambda: self._look(name, seconds)[0], seconds, "object")

    def get(self, name: str, seconds: float) -> ReadAttempt[tuple[Head, bytes] | None]:
        """Read an object whole, head and body of one generation; None when it is absent."""
        timer = Timer(seconds)

        def read() -> tuple[Head, bytes] | None:
            for _ in range(_PINNED_READS):
                head, blob = self._look(name, timer.left())
                if head is None:
                    return None
                body = self._body(head, blob, timer.left())
                if body is not None:
                    return head, body
            raise _OvertakenError

        return self._read(read, seconds, "object")

    def page(
        self, prefix: str, start: str | None, size: int, token: str | None, seconds: float
    ) -> ReadAttempt[Page]:
        """Ask for one answer of a listing that begins at `start`, itself included."""

        def read() -> Page:
            bucket = self._bucket.get()
            iterator = bucket.client.list_blobs(
                bucket,
                prefix=prefix,
                start_offset=start,
                page_size=size,
                page_token=token,
                fields=_FIELDS,
                retry=None,
                timeout=seconds,
            )
            blobs = next(iterator.pages, ())
            entries = tuple((blob.name, self._heads.of(blob)) for blob in blobs)
            return Page(entries=entries, following=iterator.next_page_token)

        return self._read(read, seconds, "bucket")

    def _look(self, name: str, seconds: float) -> tuple[Head | None, Blob]:
        blob = self._blob(name)
        try:
            blob.reload(retry=None, timeout=seconds)
        except GoogleAPICallError as error:
            if is_absent(error):
                return None, blob
            raise
        return Head.of(blob), blob

    def _body(self, head: Head, told: Blob, seconds: float) -> bytes | None:
        """Read the bytes of exactly this generation; None when they are not to be had any more.

        Asked of a new blob: an answered one would follow the address in the answer, which leads past a
        configured endpoint.
        """
        generation = head.token.generation
        blob = self._blob(told.name)
        try:
            body: bytes = blob.download_as_bytes(
                if_generation_match=generation, retry=None, timeout=seconds
            )
        except GoogleAPICallError as error:
            if isinstance(classify(error), Refused):
                return None
            raise
        # An answer that was cut off inside its head looks like a whole one without a body.
        cut = not told.content_encoding and len(body) != told.size
        other = blob.generation is not None and int(blob.generation) != generation
        return None if cut or other else body

    def _read(self, read: Callable[[], T], seconds: float, subject: Subject) -> ReadAttempt[T]:
        try:
            return Done(value=self._calls.run(read, seconds))
        except Exception as error:  # noqa: BLE001 - a read that failed is simply repeated
            failure = classify(error, subject)
            # A read has no precondition of the caller's: it was overtaken, and is begun anew.
            return Ambiguous(error=error) if isinstance(failure, Refused) else failure

    def _blob(self, name: str) -> Blob:
        return self._bucket.get().blob(name)


def conditions_of(token: Token) -> dict[str, int]:
    """Return the conditions that hold at exactly `token`."""
    return {
        "if_generation_match": token.generation,
        "if_metageneration_match": token.metageneration,
    }
