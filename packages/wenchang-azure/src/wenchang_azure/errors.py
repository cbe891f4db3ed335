"""What each error of the SDK means for the outcome of an attempt. The one place that decides it.

The code that the service put into its answer decides, not the class of the exception and, with few
exceptions, not the status: a proxy on the way can say 404, 409, 412 or 503 as well, and may say it
after the request was carried out. The SDK's `ServiceRequestError` claims that nothing was sent, but
is also raised for connections that broke later; only the causes beneath it are believed.

Our errors chain the SDK's. Their texts take nothing from it but the service's code.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError, ReadTimeoutError

from wenchang.storage import StorageConfigurationError, StorageRejectedError
from wenchang.storage.bounded import CallNotStartedError, CallTimedOutError
from wenchang.storage.outcomes import Ambiguous, Busy, NotSent, Refused, Rejected

if TYPE_CHECKING:
    from wenchang.storage.errors import RejectionKind

__all__ = ["HIERARCHY", "TornAnswerError", "attempt_of", "code_of", "is_absent", "rejected"]

HIERARCHY: Final = (
    "the storage account has a hierarchical namespace, which cannot hold memory: a name cannot be a "
    "file and a folder at once, and listings come in another order; use an account without one"
)


class TornAnswerError(Exception):
    """An answer without a whole ETag, or with another body than it announced."""

    def __init__(self) -> None:
        super().__init__("the service's answer is not whole")


_ABSENT: Final = "BlobNotFound"
_REFUSALS: Final = frozenset({"ConditionNotMet", "BlobAlreadyExists", _ABSENT})
# "Try again" in the service's own words. Its time-outs and internal errors leave the outcome open.
_BUSY: Final = frozenset({"ServerBusy", "PendingCopyOperation", "TooManyRequests"})
_KINDS: Final[dict[str, RejectionKind]] = {
    "AuthenticationFailed": "credentials",
    "InvalidAuthenticationInfo": "credentials",
    "NoAuthenticationInformation": "credentials",
    "ContainerNotFound": "missing_container",
    "ContainerBeingDeleted": "missing_container",
    "ContainerDisabled": "missing_container",
    "ResourceNotFound": "missing_container",
    "AccountBeingCreated": "missing_container",
    "SnapshotsPresent": "locked",
    "BlobArchived": "locked",
    "BlobBeingRehydrated": "locked",
    "InvalidHeaderValue": "unsupported",
    "UnsupportedHeader": "unsupported",
    "UnsupportedHttpVerb": "unsupported",
    "UnsupportedQueryParameter": "unsupported",
    "UnsupportedRestVersion": "unsupported",
}
_HIERARCHY_CODES: Final = frozenset(
    {"ResourceTypeMismatch", "PathAlreadyExists", "PathConflict", "DirectoryNotEmpty"}
)
_STATUSES: Final[dict[int, RejectionKind]] = {
    400: "invalid",
    401: "credentials",
    403: "permission",
    405: "unsupported",
    411: "invalid",
    413: "invalid",
    414: "invalid",
    431: "invalid",
    501: "unsupported",
    505: "unsupported",
    507: "full",
}
_ADVICE: Final[dict[RejectionKind, str]] = {
    "credentials": "the storage account refused the credentials; check the account key, the signature "
    "and its expiry, or the identity",
    "permission": "the storage account does not permit this; the identity needs the role Storage Blob "
    "Data Contributor on the container, a signature the permissions racwdl",
    "missing_container": "the container does not exist or cannot be reached with these credentials; "
    "create it first",
    "unsupported": "the service does not support the request; if it speaks an older version of the "
    "interface, set the option api_version",
    "invalid": "the service refused the request as invalid",
    "locked": "a lease, a retention policy, a legal hold, a snapshot or the archive tier protects the "
    "blob",
    "full": "the storage account has no space left",
}
_CODE: Final = re.compile(r"[A-Za-z]{1,64}")
_MAX_RETRY_AFTER: Final = 60.0
_MAX_CAUSES: Final = 12


def attempt_of(error: Exception) -> Ambiguous | Busy | NotSent | Refused | Rejected:
    """Classify what an attempt raised. Whatever is not known is ambiguous."""
    if isinstance(error, StorageRejectedError | StorageConfigurationError):
        return Rejected(error=error)
    if isinstance(error, CallNotStartedError):
        return NotSent(error=error, timed_out=True)
    if isinstance(error, CallTimedOutError):
        return Ambiguous(error=error, timed_out=True)
    if isinstance(error, HttpResponseError):
        return _of_answer(error)
    return _of_connection(error)


def code_of(error: BaseException) -> str:
    """Return the service's own code in an answer, "" where there is none."""
    code = getattr(error, "error_code", None)
    if code is None:
        headers = getattr(getattr(error, "response", None), "headers", None)
        code = headers.get("x-ms-error-code") if headers is not None else None
    code = getattr(code, "value", code)
    return code if isinstance(code, str) and _CODE.fullmatch(code) else ""


def is_absent(error: BaseException) -> bool:
    """Tell whether the service itself said that there is no such blob."""
    return isinstance(error, HttpResponseError) and code_of(error) == _ABSENT


def rejected(
    kind: RejectionKind, cause: BaseException | None, *, code: str = "", detail: str = ""
) -> Rejected:
    """Make the attempt of a refusal for good; its error says what to check."""
    text = detail or _ADVICE[kind]
    error = StorageRejectedError(kind, f"{text} ({code})" if code else text)
    error.__cause__ = cause
    return Rejected(error=error)


def _of_answer(error: HttpResponseError) -> Ambiguous | Busy | Refused | Rejected:
    """Judge by the service's code, then by the status."""
    status, code = error.status_code, code_of(error)
    if code in _REFUSALS:
        return Refused()
    if code in _BUSY:
        return Busy(error=error, retry_after=_retry_after(error))
    if code in _HIERARCHY_CODES:
        return rejected("unsupported", error, code=code, detail=HIERARCHY)
    if status is None:
        if isinstance(error, ClientAuthenticationError):
            # No answer of the service: the credential itself gave up, before anything was sent.
            return rejected("credentials", error)
        return Ambiguous(error=error, timed_out=_timed_out(error))
    kind = _KINDS.get(code) or _locked(code) or _STATUSES.get(status)
    if kind is None and code and 400 <= status < 500 and status not in (408, 429):
        # A refusal that this list does not know; the service has spoken, and repeats itself.
        kind = "invalid"
    if kind is None:
        return Ambiguous(error=error, timed_out=_timed_out(error))
    return rejected(kind, error, code=code)


def _locked(code: str) -> RejectionKind | None:
    """Recognise leases (which answer 409 and 412) and immutability by their many codes."""
    return "locked" if code.startswith("Lease") or "Immutable" in code else None


def _of_connection(error: Exception) -> Ambiguous | NotSent:
    """Judge an error without an answer by what lies beneath it."""
    causes = list(_causes(error))
    timed_out = any(isinstance(cause, TimeoutError | ReadTimeoutError) for cause in causes)
    if not isinstance(error, AzureError):
        return Ambiguous(error=error, timed_out=timed_out)
    for cause in causes:
        # A refused connection first: some releases of urllib3 count it among the time-outs.
        if isinstance(cause, NewConnectionError | ssl.SSLCertVerificationError):
            return NotSent(error=error)
        if isinstance(cause, ConnectTimeoutError):
            return NotSent(error=error, timed_out=True)
    return Ambiguous(error=error, timed_out=timed_out)


def _timed_out(error: Exception) -> bool:
    return any(isinstance(cause, TimeoutError | ReadTimeoutError) for cause in _causes(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and whatever it wraps: each library on the way has a place of its own."""
    waiting: list[object] = [error]
    seen: list[BaseException] = []
    while waiting and len(seen) < _MAX_CAUSES:
        cause = waiting.pop(0)
        if not isinstance(cause, BaseException) or any(cause is one for one in seen):
            continue
        seen.append(cause)
        yield cause
        waiting += [
            getattr(cause, "inner_exception", None),
            getattr(cause, "reason", None),
            cause.__cause__,
            cause.__context__,
            *cause.args,
        ]


def _retry_after(error: HttpResponseError) -> float | None:
    """Return the seconds to wait, where the service says so in seconds."""
    headers = getattr(error.response, "headers", None)
    text = headers.get("Retry-After") if headers is not None else None
    if not isinstance(text, str) or not text.isascii() or not text.isdigit():
        return None
    return min(float(text), _MAX_RETRY_AFTER)
