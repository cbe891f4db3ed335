"""The one place that says what an error of the Google client means for the attempt that met it.

Only the service's own codes count as an answer. What a proxy, a load balancer or a broken connection
may have caused is ambiguous: the request may have been carried out all the same.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

import requests
import urllib3
from google.api_core import exceptions as api
from google.auth import exceptions as auth
from google.cloud.storage import exceptions as media

from wenchang.storage import StorageRejectedError
from wenchang.storage.bounded import CallNotStartedError, CallTimedOutError
from wenchang.storage.errors import RejectionKind
from wenchang.storage.outcomes import Ambiguous, Busy, NotSent, Refused, Rejected

__all__ = ["Failure", "Subject", "classify", "is_absent"]

Failure = Refused | Rejected | Busy | NotSent | Ambiguous
Subject = Literal["object", "bucket"]
"""What a request names: an existing object, or (uploads, listings) the bucket alone."""

_BUSY: Final = frozenset({"rateLimitExceeded", "userRateLimitExceeded"})
_LOCKED: Final = frozenset({"retentionPolicyNotMet", "objectUnderActiveHold"})
_POLICY: Final = frozenset({"orgPolicyConstraintFailed"})
_CREDENTIALS: Final = "the credentials were refused; check Application Default Credentials"
_NO_CREDENTIALS: Final = (
    "no usable credentials were found; set up Application Default Credentials, or option 'anonymous' "
    "for an emulator"
)
_PERMISSION: Final = (
    "permission denied; the account needs storage.objects.get, storage.objects.list, "
    "storage.objects.create and storage.objects.delete on the bucket"
)
_NO_BUCKET: Final = "there is no such bucket; check its name and option 'endpoint_url'"
_UNSUPPORTED: Final = "the endpoint does not support this request; check option 'endpoint_url'"
_INVALID: Final = "the service refused the request as invalid; check bucket and 'endpoint_url'"
_UNMAKEABLE: Final = "the request could not be made; check option 'endpoint_url'"
_HELD: Final = "a retention policy or a hold of the bucket protects the object"
_CONSTRAINT: Final = "a policy of the organization forbids the request"

_NOT_CONNECTED: Final = (
    urllib3.exceptions.NewConnectionError,
    urllib3.exceptions.ConnectTimeoutError,
    urllib3.exceptions.ProxyError,
    ssl.SSLCertVerificationError,
)
_NOT_MADE: Final = (
    requests.exceptions.InvalidURL,
    requests.exceptions.InvalidSchema,
    requests.exceptions.MissingSchema,
    requests.exceptions.InvalidHeader,
    requests.exceptions.InvalidProxyURL,
)
_SECONDS: Final = re.compile(r"[0-9]{1,6}")


def is_absent(error: BaseException) -> bool:
    """Tell whether the service said that the object, and not the bucket, is missing."""
    if not isinstance(error, api.NotFound):
        return False
    return not _answer(error).misses_bucket("object")


def classify(error: Exception, subject: Subject = "object") -> Failure:
    """Say what an attempt came to that ended in `error`.

    `Refused` stands for a failed precondition or a missing object: calls that have no precondition
    must look at `is_absent` first.
    """
    if isinstance(error, CallNotStartedError):
        return NotSent(error=error, timed_out=True)
    if isinstance(error, CallTimedOutError):
        return Ambiguous(error=error, timed_out=True)
    if isinstance(error, api.GoogleAPICallError | media.InvalidResponse):
        return _by_answer(_answer(error), error, subject)
    if isinstance(error, auth.GoogleAuthError):
        return _by_credentials(error)
    if isinstance(error, requests.exceptions.RequestException):
        return _by_transport(error)
    # Torn answers surface as errors of whatever parsed them.
    return Ambiguous(error=error)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What of an error is the service's own."""

    status: int
    message: str
    reasons: frozenset[str]
    retry_after: float | None

    def misses_bucket(self, subject: Subject) -> bool:
        """Tell whether a 404 is about the bucket.

        The service says which one is missing. Where a server does not, a request that names no object can
        only mean the bucket.
        """
        if self.message.startswith("The specified bucket does not exist"):
            return True
        return subject == "bucket" and not self.message.startswith("No such object")


def _answer(error: Any) -> _Answer:
    """Read the answer behind an error: for uploads and downloads the client does not take it apart."""
    response: Any = getattr(error, "response", None)
    status = int(getattr(error, "code", None) or getattr(response, "status_code", None) or 0)
    message, reasons = "", list(getattr(error, "errors", None) or ())
    try:
        told = response.json()["error"]
        message, reasons = str(told["message"]), [*reasons, *told.get("errors", ())]
    except (AttributeError, ValueError, KeyError, TypeError):
        # Media downloads answer in plain text, boxes on the way in HTML.
        message = str(getattr(response, "text", ""))
    wait = str(getattr(response, "headers", {}).get("Retry-After", ""))
    return _Answer(
        status=status,
        message=message,
        reasons=frozenset(str(one.get("reason")) for one in reasons if isinstance(one, dict)),
        retry_after=float(wait) if _SECONDS.fullmatch(wait) else None,
    )


def _by_answer(answer: _Answer, error: Exception, subject: Subject) -> Failure:
    status, reasons = answer.status, answer.reasons
    if reasons & _BUSY:
        return Busy(error=error, retry_after=answer.retry_after)
    if reasons & _LOCKED:
        return _rejected("locked", _HELD, error)
    if reasons & _POLICY:
        return _rejected("permission", _CONSTRAINT, error)
    if status == 404 and answer.misses_bucket(subject):
        return _rejected("missing_container", _NO_BUCKET, error)
    if status in {404, 412}:
        return Refused()
    if status == 401:
        return _rejected("credentials", _CREDENTIALS, error)
    if status == 403:
        return _rejected("permission", _PERMISSION, error)
    if status in {405, 501}:
        return _rejected("unsupported", _UNSUPPORTED, error)
    if status in {400, 411, 413, 414, 416} or 300 <= status < 400:
        return _rejected("invalid", _INVALID, error)
    return Ambiguous(error=error, timed_out=status in {408, 504})


def _by_credentials(error: auth.GoogleAuthError) -> Failure:
    # Credentials are fetched before a request is sent, and again after it was refused for them.
    if isinstance(error, auth.TransportError) or error.retryable:
        return NotSent(error=error)
    return _rejected("credentials", _NO_CREDENTIALS, error)


def _by_transport(error: requests.exceptions.RequestException) -> Failure:
    if isinstance(error, requests.exceptions.ConnectTimeout):
        return NotSent(error=error, timed_out=True)
    if isinstance(error, _NOT_MADE):
        return _rejected("invalid", _UNMAKEABLE, error)
    if isinstance(error, requests.exceptions.ProxyError):
        return NotSent(error=error)
    if any(isinstance(cause, _NOT_CONNECTED) for cause in _wrapped(error)):
        return NotSent(error=error)
    return Ambiguous(error=error, timed_out=isinstance(error, requests.exceptions.Timeout))


def _rejected(kind: RejectionKind, detail: str, cause: Exception) -> Rejected:
    error = StorageRejectedError(kind, detail)
    error.__cause__ = cause
    return Rejected(error=error)


def _wrapped(error: BaseException) -> Iterator[BaseException]:
    """Yield what an error wraps: its cause, its reason and the errors among its arguments.

    Not its context, which may be of another request.
    """
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        inner = (current.__cause__, getattr(current, "reason", None), *current.args)
        waiting += [one for one in inner if isinstance(one, BaseException)]
