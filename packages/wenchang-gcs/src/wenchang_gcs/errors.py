"""The one place that says what an error of the Google client means for the attempt that met it.

Only the service's own codes count as an answer. What a proxy, a load balancer or a broken connection
may have caused is ambiguous: the request may have been carried out all the same.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from typing import Final

import requests
import urllib3
from google.api_core import exceptions as api
from google.auth import exceptions as auth
from google.cloud.storage import exceptions as storage_exceptions

from wenchang.storage import StorageRejectedError
from wenchang.storage.bounded import CallNotStartedError, CallTimedOutError
from wenchang.storage.outcomes import Ambiguous, Busy, NotSent, Refused, Rejected

__all__ = ["classify", "is_absent"]

Failure = Refused | Rejected | Busy | NotSent | Ambiguous

_BUSY_REASONS: Final = frozenset({"rateLimitExceeded", "userRateLimitExceeded"})
_NOT_CONNECTED: Final = (
    urllib3.exceptions.NewConnectionError,
    urllib3.exceptions.ConnectTimeoutError,
    urllib3.exceptions.NameResolutionError,
    urllib3.exceptions.ProxyError,
    ssl.SSLCertVerificationError,
)


def is_absent(error: BaseException) -> bool:
    """Tell whether the service said that the object, and not the bucket, is missing."""
    return isinstance(error, api.NotFound) and not _is_missing_bucket(error)


def classify(error: Exception) -> Failure:
    """Say what an attempt came to that ended in `error`.

    `Refused` stands for a failed precondition or a missing object: calls that have no precondition
    must look at `is_absent` first.
    """
    if isinstance(error, CallNotStartedError):
        return NotSent(error=error, timed_out=True)
    if isinstance(error, CallTimedOutError | requests.exceptions.ReadTimeout):
        return Ambiguous(error=error, timed_out=True)
    if isinstance(error, storage_exceptions.InvalidResponse):
        return _by_status(int(getattr(error.response, "status_code", 0)), "", error)
    if isinstance(error, api.GoogleAPICallError):
        return _by_call_error(error)
    if isinstance(error, auth.GoogleAuthError):
        return _by_credentials(error)
    if isinstance(error, requests.exceptions.RequestException):
        return _by_transport(error)
    # Torn answers surface as errors of whatever parsed them.
    return Ambiguous(error=error)


def _by_call_error(error: api.GoogleAPICallError) -> Failure:
    reasons = {
        str(detail.get("reason")) for detail in error.errors or () if isinstance(detail, dict)
    }
    if isinstance(error, api.NotFound) and _is_missing_bucket(error):
        detail = "there is no such bucket, or it may not be seen; check its name"
        return Rejected(error=_chained("missing_container", detail, error))
    busy = _BUSY_REASONS & reasons
    return _by_status(int(error.code or 0), "busy" if busy else "", error)


def _by_status(status: int, reason: str, error: Exception) -> Failure:
    if reason == "busy":
        return Busy(error=error)
    if status in (404, 412):
        return Refused()
    if status == 401:
        detail = "the credentials were refused; check Application Default Credentials"
        return Rejected(error=_chained("credentials", detail, error))
    if status == 403:
        detail = (
            "permission denied; the account needs storage.objects.get, list, create, update and "
            "delete on the bucket"
        )
        return Rejected(error=_chained("permission", detail, error))
    if status in (405, 501):
        detail = "the endpoint does not support this request; check option 'endpoint_url'"
        return Rejected(error=_chained("unsupported", detail, error))
    if status in (400, 411, 413, 414, 416) or 300 <= status < 400:
        detail = "the service refused the request as invalid; check bucket and endpoint"
        return Rejected(error=_chained("invalid", detail, error))
    return Ambiguous(error=error, timed_out=status in (408, 504))


def _by_credentials(error: auth.GoogleAuthError) -> Failure:
    # Credentials are fetched before the request is sent.
    if isinstance(error, auth.TransportError) or error.retryable:
        return NotSent(error=error)
    detail = "no usable credentials were found; set up Application Default Credentials"
    return Rejected(error=_chained("credentials", detail, error))


def _by_transport(error: requests.exceptions.RequestException) -> Failure:
    if isinstance(error, requests.exceptions.ConnectTimeout):
        return NotSent(error=error, timed_out=True)
    if isinstance(error, requests.exceptions.ProxyError):
        return NotSent(error=error)
    if any(isinstance(cause, _NOT_CONNECTED) for cause in _causes(error)):
        return NotSent(error=error)
    if isinstance(
        error,
        requests.exceptions.InvalidURL
        | requests.exceptions.InvalidSchema
        | requests.exceptions.MissingSchema
        | requests.exceptions.InvalidHeader,
    ):
        detail = "the request could not be made; check option 'endpoint_url'"
        return Rejected(error=_chained("invalid", detail, error))
    return Ambiguous(error=error, timed_out=isinstance(error, requests.exceptions.Timeout))


def _is_missing_bucket(error: api.NotFound) -> bool:
    return "specified bucket does not exist" in str(error.message).lower()


def _chained(kind: str, detail: str, cause: Exception) -> StorageRejectedError:
    rejected = StorageRejectedError(kind, detail)  # type: ignore[arg-type] # literals of this module
    rejected.__cause__ = cause
    return rejected


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield what an error wraps: causes, contexts and the errors among its arguments."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        inner = (current.__cause__, current.__context__, getattr(current, "reason", None))
        waiting += [one for one in (*inner, *current.args) if isinstance(one, BaseException)]
