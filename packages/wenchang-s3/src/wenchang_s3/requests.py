"""One attempt of each request: sent once, waited for within its time, its answer looked at.

Nothing here repeats anything; that is the settling's business. An answer counts only if it is whole:
Python's HTTP client takes a connection that ends inside an answer's head for the end of that head,
so an ETag with one quote, or a body without a length, would pass for a success.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from wenchang.storage import StorageRejectedError
from wenchang.storage.bounded import BoundedCalls, CallTimedOutError
from wenchang.storage.envelope import (
    HEAD_BYTES,
    USUAL_HEAD_BYTES,
    Head,
    NeedMore,
    NotOurs,
    decode_head,
)
from wenchang.storage.keys import MAX_BODY_BYTES
from wenchang.storage.outcomes import (
    Ambiguous,
    Applied,
    Attempt,
    Busy,
    Done,
    NotSent,
    ReadAttempt,
    Rejected,
)
from wenchang_s3.clients import ClientSource
from wenchang_s3.errors import (
    Condition,
    classify,
    classify_read,
    is_absent,
    is_denied,
    is_past_end,
    no_list_permission,
)
from wenchang_s3.versions import etag_of, listed_etag

__all__ = ["Body", "Found", "Listed", "Page", "Requests", "UntrustworthyAnswerError"]

T = TypeVar("T")

MAX_STORED_BYTES: Final = MAX_BODY_BYTES + HEAD_BYTES
"""The largest object that a get reads: a body and its block."""

_RANGE: Final = re.compile(r"bytes 0-[0-9]+/([0-9]+)")


class UntrustworthyAnswerError(Exception):
    """The answer says that it succeeded but is not whole, or is none of this service's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """A whole stored object."""

    etag: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The block of an object, and the ETag that it was read at."""

    etag: str
    head: Head | NotOurs


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One entry of a listing. `name` is the whole name in the bucket."""

    name: str
    etag: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of a listing as the service gave it."""

    entries: Sequence[Listed]
    truncated: bool
    token: str | None


class Requests:
    """Sends single requests to one bucket. Safe over threads and fork."""

    def __init__(self, source: ClientSource, bucket: str, concurrency: int) -> None:
        """Send at most `concurrency` requests at once; others wait within their time."""
        self._source = source
        self._bucket = bucket
        self._calls = BoundedCalls(concurrency)

    def close(self) -> None:
        """End idle threads and connections."""
        self._calls.close()
        self._source.close()

    # --- writing -------------------------------------------------------------------------------

    def put(
        self,
        name: str,
        data: bytes,
        seconds: float,
        *,
        condition: Condition = "none",
        etag: str = "",
    ) -> Attempt:
        """Store an object, under a condition or none. `Applied` carries its ETag."""
        arguments: dict[str, Any] = {}
        if condition == "absent":
            arguments["IfNoneMatch"] = "*"
        elif condition == "version":
            arguments["IfMatch"] = f'"{etag}"'
        if name.endswith(".md"):
            arguments["ContentType"] = "text/markdown; charset=utf-8"

        def send(client: Any) -> Applied:
            answer = client.put_object(Bucket=self._bucket, Key=name, Body=data, **arguments)
            new = etag_of(answer.get("ETag"))
            if new is None:
                raise UntrustworthyAnswerError
            return Applied(version=new)

        return self._write(send, seconds, condition)

    def delete(self, name: str, seconds: float, *, etag: str | None) -> Attempt:
        """Delete an object at `etag`; None deletes whatever is there (exclusive use only)."""
        arguments = {} if etag is None else {"IfMatch": f'"{etag}"'}

        def send(client: Any) -> Applied:
            answer = client.delete_object(Bucket=self._bucket, Key=name, **arguments)
            if answer["ResponseMetadata"]["HTTPStatusCode"] != 204:
                raise UntrustworthyAnswerError
            return Applied(version="")

        return self._write(send, seconds, "none" if etag is None else "version")

    # --- reading -------------------------------------------------------------------------------

    def get(self, name: str, seconds: float) -> ReadAttempt[Body | None]:
        """Read a whole object; None means that there is none."""
        ends = time.monotonic() + seconds
        answer = self._read(partial(self._whole, name), seconds)
        if isinstance(answer, Rejected) and is_denied(answer.error.__cause__ or answer.error):
            return self._explained(answer, ends)
        return answer

    def head(self, name: str, seconds: float) -> ReadAttempt[Found | None]:
        """Read the block of an object; None means that there is no object."""
        return self._read(partial(self._head, name), seconds)

    def heads(
        self, names: Sequence[str], into: dict[str, Found | None], seconds: float
    ) -> ReadAttempt[None]:
        """Read the blocks of many objects at once and put what was read into `into`.

        Names in it are left out, so that an attempt goes on where the one before it ended.
        """
        failures: list[Rejected | Busy | NotSent | Ambiguous] = []
        ends = time.monotonic() + seconds
        client = self._client(seconds)
        if not isinstance(client, Done):
            return client

        def fetch(name: str) -> None:
            # After a failure the rest would fail alike, and be asked again by the next attempt.
            if failures:
                return
            try:
                into[name] = self._head(name, client.value)
            except Exception as error:  # noqa: BLE001 - classified, whatever it is
                failures.append(_failed_read(error))

        try:
            missing = [name for name in names if name not in into]
            self._calls.map(fetch, missing, ends - time.monotonic())
        except Exception as error:  # noqa: BLE001 - not begun or not ended in time
            return _failed_read(error)
        rejected = next((one for one in failures if isinstance(one, Rejected)), None)
        return rejected or (failures[0] if failures else Done(value=None))

    def page(
        self,
        prefix: str,
        seconds: float,
        *,
        start_after: str | None,
        token: str | None,
        size: int,
    ) -> ReadAttempt[Page]:
        """List one page of names that begin with `prefix`, behind `start_after`, or from `token` on."""
        arguments: dict[str, Any] = {"Prefix": prefix, "MaxKeys": size}
        if token is not None:
            arguments["ContinuationToken"] = token
        if start_after:
            arguments["StartAfter"] = start_after

        def send(client: Any) -> Page:
            return _page(client.list_objects_v2(Bucket=self._bucket, **arguments))

        return self._read(send, seconds)

    def amazon(self, seconds: float, tell: Callable[[Any], bool]) -> ReadAttempt[bool]:
        """Return what `tell` says of the client; sends nothing."""
        client = self._client(seconds)
        return Done(value=tell(client.value)) if isinstance(client, Done) else client

    # --- attempts ------------------------------------------------------------------------------

    def _client(self, seconds: float) -> Done[Any] | Rejected | NotSent:
        """Return the client, making it if need be: nothing has been sent yet, whatever happens."""
        client = self._source.ready
        if client is not None:
            return Done(value=client)
        try:
            return Done(value=self._calls.run(self._source.get, seconds))
        except Exception as error:  # noqa: BLE001 - the SDK raises more than its own errors
            attempt = classify(error)
            if isinstance(attempt, Rejected):
                return attempt
            return NotSent(error=error, timed_out=isinstance(error, CallTimedOutError))

    def _write(
        self, send: Callable[[Any], Applied], seconds: float, condition: Condition
    ) -> Attempt:
        ends = time.monotonic() + seconds
        client = self._client(seconds)
        if not isinstance(client, Done):
            return client
        try:
            return self._calls.run(partial(send, client.value), ends - time.monotonic())
        except Exception as error:  # noqa: BLE001 - classified, whatever it is
            return classify(error, condition)

    def _read(self, send: Callable[[Any], T], seconds: float) -> ReadAttempt[T]:
        ends = time.monotonic() + seconds
        client = self._client(seconds)
        if not isinstance(client, Done):
            return client
        try:
            return Done(value=self._calls.run(partial(send, client.value), ends - time.monotonic()))
        except Exception as error:  # noqa: BLE001 - classified, whatever it is
            return _failed_read(error)

    def _explained(self, denied: Rejected, ends: float) -> Rejected:
        """Say so where access was denied because missing objects are hidden from the credentials."""
        remaining = ends - time.monotonic()
        if remaining <= 0:
            return denied
        listing = self.page("", remaining, start_after=None, token=None, size=1)
        if isinstance(listing, Rejected) and is_denied(listing.error.__cause__ or listing.error):
            return no_list_permission(denied.error.__cause__ or denied.error)
        return denied

    # --- answers -------------------------------------------------------------------------------

    def _whole(self, name: str, client: Any) -> Body | None:
        try:
            answer = client.get_object(Bucket=self._bucket, Key=name)
        except Exception as error:
            if is_absent(error):
                return None
            raise
        with answer["Body"] as stream:
            etag, length = _start(answer)
            if length is not None and length > MAX_STORED_BYTES:
                raise StorageRejectedError(
                    "invalid",
                    f"the stored object has more than the {MAX_BODY_BYTES} bytes that a memory may "
                    "hold; somebody else put it there",
                )
            data: bytes = stream.read(MAX_STORED_BYTES + 1)
        if len(data) > MAX_STORED_BYTES or (length is not None and len(data) != length):
            raise UntrustworthyAnswerError
        return Body(etag=etag, data=data)

    def _head(self, name: str, client: Any) -> Found | None:
        for size in (USUAL_HEAD_BYTES, HEAD_BYTES):
            try:
                answer = client.get_object(
                    Bucket=self._bucket, Key=name, Range=f"bytes=0-{size - 1}"
                )
            except Exception as error:
                if is_absent(error):
                    return None
                if is_past_end(error):
                    return self._empty(name, client)
                raise
            with answer["Body"] as stream:
                etag, length = _start(answer)
                data: bytes = stream.read(size)
            if length is not None and len(data) != min(length, size):
                raise UntrustworthyAnswerError
            # A server that ignores the range sends all of the object; its length is then the whole.
            total = _total(answer) if "ContentRange" in answer else length
            head = decode_head(data, size=total)
            if not isinstance(head, NeedMore):
                return Found(etag=etag, head=head)
        raise UntrustworthyAnswerError

    def _empty(self, name: str, client: Any) -> Found | None:
        """Read an object that had nothing in it a moment ago."""
        body = self._whole(name, client)
        if body is None:
            return None
        head = decode_head(body.data, size=len(body.data))
        if isinstance(head, NeedMore):
            raise UntrustworthyAnswerError
        return Found(etag=body.etag, head=head)


def _start(answer: Any) -> tuple[str, int | None]:
    """Return ETag and length of an answer with a body; the length is None where it comes in chunks."""
    etag, length = etag_of(answer.get("ETag")), answer.get("ContentLength")
    headers = answer["ResponseMetadata"]["HTTPHeaders"]
    if etag is None or (length is None and headers.get("transfer-encoding") != "chunked"):
        raise UntrustworthyAnswerError
    return etag, length


def _total(answer: Any) -> int:
    """Return the size of the whole object, of which the answer is the beginning."""
    match = _RANGE.fullmatch(answer["ContentRange"])
    if match is None:
        raise UntrustworthyAnswerError
    return int(match[1])


def _page(answer: Any) -> Page:
    """Take a listing apart."""
    truncated = answer.get("IsTruncated")
    if not isinstance(truncated, bool):
        raise UntrustworthyAnswerError
    entries = []
    for item in answer.get("Contents", ()):
        etag = listed_etag(item.get("ETag"))
        if etag is None:
            raise StorageRejectedError(
                "unsupported",
                "the server lists ETags of a form that no condition can carry; it cannot hold a memory",
            )
        entries.append(Listed(name=item["Key"], etag=etag, size=item["Size"]))
    return Page(
        entries=entries, truncated=truncated, token=answer.get("NextContinuationToken") or None
    )


def _failed_read(error: Exception) -> Rejected | Busy | NotSent | Ambiguous:
    """Classify what a read raised, our own refusals included."""
    if isinstance(error, StorageRejectedError):
        return Rejected(error=error)
    return classify_read(error)
