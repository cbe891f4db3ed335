"""Every error of the SDK has a meaning, and the service's own code decides it."""

from __future__ import annotations

import importlib
import pkgutil
import socket
import ssl
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import azure.core.exceptions
import azure.storage.blob
import pytest
import requests
from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    IncompleteReadError,
    ServiceRequestError,
    ServiceRequestTimeoutError,
    ServiceResponseError,
    ServiceResponseTimeoutError,
)
from urllib3.exceptions import ConnectTimeoutError, MaxRetryError, NewConnectionError, ProtocolError

from wenchang.storage import StorageRejectedError
from wenchang.storage.bounded import CallNotStartedError, CallTimedOutError
from wenchang.storage.outcomes import Ambiguous, Busy, NotSent, Refused, Rejected
from wenchang_azure.errors import attempt_of, code_of, is_absent

SECRET = "https://account.blob.core.windows.net/container/key.md?sig=secret"


def answer(status: int, code: str = "", **headers: str) -> HttpResponseError:
    response = SimpleNamespace(
        status_code=status, reason=SECRET, headers=dict(headers), text=lambda: ""
    )
    error = HttpResponseError(message=SECRET, response=response)  # type: ignore[arg-type] # as much of a response as is looked at
    if code:
        error.error_code = code  # type: ignore[attr-defined] # as the SDK sets it
    return error


def classes(base: type[BaseException]) -> Iterator[type[BaseException]]:
    for one in base.__subclasses__():
        yield one
        yield from classes(one)


def every_class() -> list[type[BaseException]]:
    """Every exception class that azure-core and azure-storage-blob define, private ones included."""
    for package in (azure.storage.blob,):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if ".aio" not in module.name and "async" not in module.name:
                importlib.import_module(module.name)
    found = {one for base in (Exception,) for one in classes(base)}
    return sorted(
        (one for one in found if one.__module__.startswith("azure.")),
        key=lambda one: one.__qualname__,
    )


def test_out_mapped_every_class_of_the_sdk_is_judged_and_gives_nothing_away():
    seen = 0
    for one in every_class():
        error: Any = one.__new__(one)
        error.args = (SECRET,)
        error.__dict__.update(message=SECRET, status_code=None, response=None, inner_exception=None)
        attempt = attempt_of(error)
        # Without an answer of the service nothing is certain, except that a credential gave up.
        if isinstance(error, ClientAuthenticationError):
            assert isinstance(attempt, Rejected), one
            assert attempt.error.__cause__ is error
            assert SECRET not in f"{attempt.error} {attempt.error!r}"
        else:
            assert isinstance(attempt, Ambiguous), one
            assert attempt.error is error
        seen += 1
    assert seen >= 15
    assert issubclass(HttpResponseError, AzureError)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (412, "ConditionNotMet"),
        (409, "BlobAlreadyExists"),
        (412, "BlobAlreadyExists"),
        (404, "BlobNotFound"),
    ],
)
def test_a_failed_precondition_is_a_refusal_by_its_code(status: int, code: str):
    assert attempt_of(answer(status, code)) == Refused()


@pytest.mark.parametrize("status", [300, 307, 404, 408, 409, 412, 416, 429, 500, 502, 503, 504])
def test_a_bare_status_that_a_proxy_may_say_is_ambiguous(status: int):
    assert isinstance(attempt_of(answer(status)), Ambiguous)
    assert not is_absent(answer(404))


@pytest.mark.parametrize("status", [200, 201, 202, 206])
def test_a_success_that_the_sdk_did_not_understand_is_ambiguous(status: int):
    assert isinstance(attempt_of(answer(status)), Ambiguous)


@pytest.mark.parametrize("code", ["OperationTimedOut", "InternalError"])
def test_trouble_inside_the_service_is_ambiguous(code: str):
    assert isinstance(attempt_of(answer(500, code)), Ambiguous)


def test_out_busy_the_services_own_code_is_busy():
    for status, code in (
        (503, "ServerBusy"),
        (409, "PendingCopyOperation"),
        (429, "TooManyRequests"),
    ):
        assert isinstance(attempt_of(answer(status, code)), Busy)


@pytest.mark.parametrize(
    ("text", "seconds"), [("3", 3.0), ("0", 0.0), ("86400", 60.0), ("soon", None), ("-1", None)]
)
def test_out_busy_the_wait_that_the_service_asks_for_is_heeded(text: str, seconds: float | None):
    attempt = attempt_of(answer(503, "ServerBusy", **{"Retry-After": text}))
    assert isinstance(attempt, Busy)
    assert attempt.retry_after == seconds


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "", "invalid"),
        (400, "MetadataTooLarge", "invalid"),
        (400, "InvalidHeaderValue", "unsupported"),
        (401, "", "credentials"),
        (401, "InvalidAuthenticationInfo", "credentials"),
        (403, "", "permission"),
        (403, "AuthenticationFailed", "credentials"),
        (403, "AuthorizationPermissionMismatch", "permission"),
        (404, "ContainerNotFound", "missing_container"),
        (404, "ResourceNotFound", "missing_container"),
        (405, "", "unsupported"),
        (409, "ContainerBeingDeleted", "missing_container"),
        (409, "SnapshotsPresent", "locked"),
        (409, "BlobImmutableDueToPolicy", "locked"),
        (409, "BlobArchived", "locked"),
        (409, "LeaseAlreadyPresent", "locked"),
        (412, "LeaseIdMissing", "locked"),
        (412, "LeaseIdMismatchWithBlobOperation", "locked"),
        (409, "ResourceTypeMismatch", "unsupported"),
        (409, "PathAlreadyExists", "unsupported"),
        (409, "SomethingNew", "invalid"),
        (413, "", "invalid"),
        (501, "", "unsupported"),
        (507, "", "full"),
    ],
)
def test_a_refusal_for_good_says_what_to_check(status: int, code: str, kind: str):
    cause = answer(status, code)
    attempt = attempt_of(cause)
    assert isinstance(attempt, Rejected)
    assert isinstance(attempt.error, StorageRejectedError)
    assert attempt.error.kind == kind
    assert attempt.error.__cause__ is cause
    assert code in str(attempt.error)
    assert SECRET not in f"{attempt.error} {attempt.error!r}"


def test_a_code_is_found_where_the_sdk_left_it():
    assert code_of(answer(503, "ServerBusy")) == "ServerBusy"
    assert code_of(answer(503, **{"x-ms-error-code": "ServerBusy"})) == "ServerBusy"
    assert code_of(answer(503, SECRET)) == ""
    assert code_of(answer(503)) == ""
    assert code_of(ValueError("x")) == ""


def test_what_the_bounds_of_a_call_say_is_kept():
    assert attempt_of(CallTimedOutError()).timed_out  # type: ignore[union-attr] # ambiguous, in time
    not_started = attempt_of(CallNotStartedError())
    assert isinstance(not_started, NotSent)
    assert not_started.timed_out


def wrapped(inner: Exception, outer: type[AzureError] = ServiceRequestError) -> AzureError:
    return outer(inner, error=inner)


def test_a_connection_that_was_never_made_is_not_sent():
    never = NewConnectionError(None, "refused")  # type: ignore[arg-type] # no connection to name
    for error in (
        wrapped(never),
        wrapped(requests.ConnectionError(MaxRetryError(None, "", never))),  # type: ignore[arg-type] # no pool to name
        wrapped(requests.exceptions.SSLError(ssl.SSLCertVerificationError("expired"))),
    ):
        attempt = attempt_of(error)
        assert isinstance(attempt, NotSent)
        assert not attempt.timed_out
    slow = attempt_of(wrapped(ConnectTimeoutError("slow"), ServiceRequestTimeoutError))
    assert isinstance(slow, NotSent)
    assert slow.timed_out


def test_a_connection_that_broke_later_is_ambiguous_whatever_the_sdk_calls_it():
    broken = ProtocolError("Connection aborted", ConnectionResetError())
    for error in (
        wrapped(requests.ConnectionError(broken), ServiceResponseError),
        wrapped(requests.ConnectionError(broken)),
        wrapped(requests.exceptions.SSLError(ssl.SSLEOFError())),
        IncompleteReadError("cut"),
        requests.exceptions.ChunkedEncodingError("cut"),
        ValueError("the SDK stumbled"),
        socket.gaierror("a resolver's error outside of the SDK"),
    ):
        attempt = attempt_of(error)
        assert isinstance(attempt, Ambiguous), error
        assert not attempt.timed_out
    late = attempt_of(
        wrapped(requests.exceptions.ReadTimeout(TimeoutError()), ServiceResponseTimeoutError)
    )
    assert isinstance(late, Ambiguous)
    assert late.timed_out
