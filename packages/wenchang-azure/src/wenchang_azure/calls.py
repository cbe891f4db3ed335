"""The requests this backend sends, each bounded in time and classified.

Every call takes the seconds of one attempt. The SDK's own time-outs bound each wait for bytes;
`BoundedCalls` bounds the whole, also where a server drips or a resolver hangs. The SDK's retries and
redirects are off: it would report a conflict with its own landed write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from azure.core import MatchConditions
from azure.core.exceptions import AzureError, HttpResponseError

from wenchang.storage.bounded import BoundedCalls
from wenchang.storage.outcomes import (
    Ambiguous,
    Applied,
    Attempt,
    Done,
    ReadAttempt,
    Refused,
)
from wenchang_azure.errors import (
    HIERARCHY,
    TornAnswerError,
    attempt_of,
    code_of,
    is_absent,
    rejected,
)
from wenchang_azure.marks import METADATA_NAME, Marks, decode_marks
from wenchang_azure.tokens import Token, quoted_etag

if TYPE_CHECKING:
    from azure.storage.blob import BlobProperties, ContainerClient

    from wenchang_azure.clients import Clients

__all__ = ["Blob", "Calls", "Page", "marks_of", "token_of"]

T = TypeVar("T")

# The SDK is to notice first, since it can tell a connection that was never made.
_SDK_SHARE: Final = 0.9
_CONNECT_SHARE: Final = 0.45
_MIN_WAIT: Final = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """A blob as read. `body` is b"" where only the head was asked for."""

    token: Token
    marks: Marks
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One answer of the service to a listing; `marker` leads to the next, None ends it."""

    items: list[BlobProperties]
    marker: str | None
    began_at_start: bool
    """The service was asked to begin at a name, and did not refuse."""


class Calls:
    """Sends requests of one container, at most `concurrency` at once."""

    def __init__(self, clients: Clients, concurrency: int) -> None:
        """Send nothing yet."""
        self._clients = clients
        self._bounded = BoundedCalls(concurrency)
        self._hierarchical: bool | None = None

    def close(self) -> None:
        """Close idle threads and, if they are ours, connections."""
        self._bounded.close()
        self._clients.close()

    # --- writing ------------------------------------------------------------------------------

    def create(self, name: str, body: bytes, value: str, seconds: float) -> Attempt:
        """Store a blob where there is none."""
        return self._upload(
            name, body, value, seconds, {"match_condition": MatchConditions.IfMissing}
        )

    def replace(self, name: str, body: bytes, value: str, token: Token, seconds: float) -> Attempt:
        """Store a blob in place of this version."""
        return self._upload(name, body, value, seconds, _matching(token))

    def put(self, name: str, body: bytes, value: str, seconds: float) -> Attempt:
        """Store a blob whatever is there."""
        answer = self._upload(name, body, value, seconds, {})
        # Nothing was asked of the service that it could refuse.
        return Ambiguous(error=TornAnswerError()) if isinstance(answer, Refused) else answer

    def delete(self, name: str, token: Token, seconds: float) -> Attempt:
        """Delete this version."""

        def call(client: ContainerClient, limits: Mapping[str, Any]) -> Attempt:
            self._check_account(client, limits)
            client.get_blob_client(name).delete_blob(**_matching(token), **limits)
            return Applied(version="")

        return self._attempt(call, seconds)

    def _upload(
        self, name: str, body: bytes, value: str, seconds: float, conditions: Mapping[str, Any]
    ) -> Attempt:
        def call(client: ContainerClient, limits: Mapping[str, Any]) -> Attempt:
            self._check_account(client, limits)
            answer = client.get_blob_client(name).upload_blob(
                body, metadata={METADATA_NAME: value}, overwrite=True, **conditions, **limits
            )
            etag = quoted_etag(answer.get("etag"))
            return Ambiguous(error=TornAnswerError()) if etag is None else Applied(version=etag)

        return self._attempt(call, seconds)

    def _attempt(
        self, call: Callable[[ContainerClient, Mapping[str, Any]], Attempt], seconds: float
    ) -> Attempt:
        try:
            return self._run(call, seconds)
        except Exception as error:  # noqa: BLE001 - what is not known is ambiguous
            return attempt_of(error)

    # --- reading ------------------------------------------------------------------------------

    def read(self, name: str, seconds: float) -> ReadAttempt[Blob | None]:
        """Read a blob whole: body, marks and version of one write, in one request.

        An empty blob takes two: the service refuses to send a range of it, and its head is all.
        """

        def call(client: ContainerClient, limits: Mapping[str, Any]) -> Blob | None:
            blob = client.get_blob_client(name)
            seen = _Seen()
            try:
                # With an offset the SDK does not resolve the refusal by itself. It would take an
                # empty body together with the version of whatever has been written since.
                stream = blob.download_blob(
                    offset=0, decompress=False, raw_response_hook=seen, **limits
                )
                _refuse_folders(seen)
                body = stream.readall()
            except HttpResponseError as error:
                if error.status_code != 416:
                    raise
                return self._read_head(client, name, limits, empty=True)
            finally:
                # An answer that the SDK stumbled over would keep its connection until it is collected.
                seen.close()
            if len(body) != stream.size:
                raise TornAnswerError
            return _blob(stream.properties, body)

        return self._read_blob(call, seconds)

    def head(self, name: str, seconds: float) -> ReadAttempt[Blob | None]:
        """Read version and marks of a blob."""

        def call(client: ContainerClient, limits: Mapping[str, Any]) -> Blob | None:
            return self._read_head(client, name, limits, empty=False)

        return self._read_blob(call, seconds)

    def _read_head(
        self, client: ContainerClient, name: str, limits: Mapping[str, Any], *, empty: bool
    ) -> Blob:
        seen = _Seen()
        properties = client.get_blob_client(name).get_blob_properties(
            raw_response_hook=seen, **limits
        )
        _refuse_folders(seen)
        # A head has no body whose absence would show that it ended early, and the marks may be in the
        # part that is missing. Servers put the date behind what they have to say.
        if "date" not in seen.headers or "content-length" not in seen.headers:
            raise TornAnswerError
        if empty and seen.headers["content-length"] != "0":
            # Written between the two requests; the attempt begins anew.
            raise TornAnswerError
        return _blob(properties, b"")

    def list(
        self, prefix: str, start: str | None, marker: str | None, count: int, seconds: float
    ) -> ReadAttempt[Page]:
        """Ask for one answer of a listing: at most `count` blobs from `start` or `marker` on."""

        def call(client: ContainerClient, limits: Mapping[str, Any]) -> Page:
            self._check_account(client, limits)
            if start is not None:
                try:
                    return _page(client, prefix, start, marker, count, limits)
                except HttpResponseError as error:
                    # An older service does not know the parameter and may say so.
                    if error.status_code != 400:
                        raise
            return _page(client, prefix, None, marker, count, limits)

        return self._read(call, seconds)

    def _read_blob(
        self, call: Callable[[ContainerClient, Mapping[str, Any]], Blob | None], seconds: float
    ) -> ReadAttempt[Blob | None]:
        """Read a blob; the service's own word that there is none is an answer too."""

        def read(client: ContainerClient, limits: Mapping[str, Any]) -> Blob | None:
            try:
                return call(client, limits)
            except HttpResponseError as error:
                if is_absent(error):
                    return None
                raise

        return self._read(read, seconds)

    def _read(
        self, call: Callable[[ContainerClient, Mapping[str, Any]], T], seconds: float
    ) -> ReadAttempt[T]:
        try:
            return Done(value=self._run(call, seconds))
        except Exception as error:  # noqa: BLE001 - a read that failed is repeated
            attempt = attempt_of(error)
            # A read has no condition of the caller's: it was overtaken by a writer.
            return Ambiguous(error=error) if isinstance(attempt, Refused) else attempt

    # --- both ---------------------------------------------------------------------------------

    def _run(self, call: Callable[[ContainerClient, Mapping[str, Any]], T], seconds: float) -> T:
        """Run a call within its time. Raises what the SDK raises, and the errors of `bounded`."""
        usable = max(seconds * _SDK_SHARE, _MIN_WAIT)
        limits = {
            "retry_total": 0,
            "permit_redirects": False,
            "connection_timeout": max(seconds * _CONNECT_SHARE, _MIN_WAIT),
            "read_timeout": usable,
        }
        # The client is made on the caller's thread: an error of its options is not one of an attempt.
        client = self._clients.get()
        return self._bounded.run(lambda: call(client, limits), seconds)

    def _check_account(self, client: ContainerClient, limits: Mapping[str, Any]) -> None:
        """Refuse an account with a hierarchical namespace before the first write and listing.

        Costs one request for each handle. Where the credentials do not permit to ask, the order of the
        listings and the refusals of the service have to tell.
        """
        if self._hierarchical is None:
            try:
                about = client.get_account_information(**limits)
            except HttpResponseError as error:
                if error.status_code in (400, 403, 404, 405) or code_of(error):
                    self._hierarchical = False
                return
            except AzureError:
                # The request behind this one meets the same trouble, and has an outcome.
                return
            self._hierarchical = bool(about.get("is_hns_enabled"))
        if self._hierarchical:
            raise rejected("unsupported", None, detail=HIERARCHY).error


class _Seen:
    """Keeps an answer, of which the SDK hands out pieces, and none of one it cannot make sense of."""

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}
        self._answer: Any = None

    def __call__(self, response: Any) -> None:
        """Take an answer: the SDK's hook."""
        self._answer = response.http_response
        self.headers = {name.lower(): value for name, value in self._answer.headers.items()}

    def close(self) -> None:
        """Give the connection back; one whose answer was not read to its end is closed."""
        if self._answer is not None:
            self._answer.internal_response.close()


def _matching(token: Token) -> dict[str, Any]:
    return {"etag": token.condition, "match_condition": MatchConditions.IfNotModified}


def _refuse_folders(seen: _Seen) -> None:
    """Refuse what only an account with a hierarchical namespace says."""
    if "x-ms-resource-type" in seen.headers:
        raise rejected("unsupported", None, detail=HIERARCHY).error


def _blob(properties: BlobProperties, body: bytes) -> Blob:
    etag = quoted_etag(properties.etag)
    if etag is None:
        raise TornAnswerError
    marks = marks_of(properties)
    return Blob(token=token_of(etag, marks), marks=marks, body=body)


def marks_of(properties: BlobProperties) -> Marks:
    """Return the marks in a blob's metadata; services return names in the case they like."""
    for name, value in (properties.metadata or {}).items():
        if name.lower() == METADATA_NAME:
            return decode_marks(value or "")
    return decode_marks(None)


def token_of(etag: str, marks: Marks) -> Token:
    """Return the version of a blob with these marks."""
    return Token(etag=etag, min_writer=marks.min_writer, has_extra=bool(marks.extra))


def _page(
    client: ContainerClient,
    prefix: str,
    start: str | None,
    marker: str | None,
    count: int,
    limits: Mapping[str, Any],
) -> Page:
    optional: dict[str, Any] = {} if start is None else {"start_from": start}
    pages: Any = client.list_blobs(
        name_starts_with=prefix or None,
        include=["metadata"],
        results_per_page=count,
        **optional,
        **limits,
    ).by_page(continuation_token=marker)
    items = list(next(pages))
    return Page(
        items=items, marker=pages.continuation_token or None, began_at_start=start is not None
    )
