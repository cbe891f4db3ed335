"""What becomes of each error of the SDK and of each answer of the service."""

from __future__ import annotations

import inspect
import socket
import ssl
import threading
from typing import Any

import botocore.exceptions
import pytest

from wenchang.errors import BackendUnavailableError
from wenchang.storage import StorageRejectedError
from wenchang.storage.bounded import CallNotStartedError, CallTimedOutError
from wenchang.storage.outcomes import Ambiguous, Busy, NotSent, Refused, Rejected
from wenchang_s3.errors import classify, is_mapped
from wenchang_s3.hooks import answer_error, every_sdk_error


def sdk_classes() -> list[type[Exception]]:
    return [
        kind
        for _, kind in inspect.getmembers(botocore.exceptions, inspect.isclass)
        if issubclass(kind, botocore.exceptions.BotoCoreError | botocore.exceptions.ClientError)
        and kind is not botocore.exceptions.BotoCoreError
    ]


@pytest.mark.parametrize("kind", sdk_classes(), ids=lambda kind: kind.__name__)
def test_each_class_of_the_sdk_is_mapped_on_purpose(kind: type[Exception]) -> None:
    assert is_mapped(kind)


def test_no_text_of_ours_repeats_the_sdks_and_each_has_its_cause() -> None:
    for error in every_sdk_error():
        attempt = classify(error, "version")
        if isinstance(attempt, Rejected):
            assert attempt.error.__cause__ is error
            assert "secret" not in f"{attempt.error} {attempt.error!r}"


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (301, "PermanentRedirect", "invalid"),
        (307, "TemporaryRedirect", "invalid"),
        (400, "InvalidRequest", "invalid"),
        (400, "ExpiredToken", "credentials"),
        (400, "AuthorizationHeaderMalformed", "credentials"),
        (400, "400", "invalid"),
        (401, "401", "credentials"),
        (403, "AccessDenied", "permission"),
        (403, "InvalidAccessKeyId", "credentials"),
        (403, "SignatureDoesNotMatch", "credentials"),
        (403, "RequestTimeTooSkewed", "credentials"),
        (403, "InvalidObjectState", "locked"),
        (403, "403", "permission"),
        (404, "NoSuchBucket", "missing_container"),
        (405, "MethodNotAllowed", "unsupported"),
        (413, "EntityTooLarge", "invalid"),
        (501, "NotImplemented", "unsupported"),
        (507, "InsufficientStorage", "full"),
        (500, "AccessDenied", "permission"),
    ],
)
def test_a_refusal_for_good_is_a_rejection_of_its_kind(status: int, code: str, kind: str) -> None:
    attempt = classify(answer_error(status, code), "version")
    assert isinstance(attempt, Rejected)
    assert isinstance(attempt.error, StorageRejectedError)
    assert attempt.error.kind == kind


@pytest.mark.parametrize("status", [404, 408, 409, 429, 500, 502, 503, 504])
def test_a_bare_status_is_ambiguous(status: int) -> None:
    for condition in ("none", "absent", "version"):
        assert isinstance(classify(answer_error(status, str(status)), condition), Ambiguous)


@pytest.mark.parametrize("code", ["InternalError", "ServiceUnavailable", "RequestTimeout2"])
def test_a_code_that_does_not_exclude_the_write_is_ambiguous(code: str) -> None:
    assert isinstance(classify(answer_error(503, code), "version"), Ambiguous)


@pytest.mark.parametrize("status", [412, 500, 200])
def test_a_failed_precondition_is_told_by_its_code(status: int) -> None:
    error = answer_error(status, "PreconditionFailed")
    assert isinstance(classify(error, "version"), Refused)
    assert isinstance(classify(error, "absent"), Refused)
    assert isinstance(classify(error, "none"), Ambiguous)


def test_a_missing_key_refuses_a_version_and_nothing_else() -> None:
    error = answer_error(404, "NoSuchKey")
    assert isinstance(classify(error, "version"), Refused)
    assert isinstance(classify(error, "absent"), Ambiguous)
    assert isinstance(classify(error, "none"), Ambiguous)


@pytest.mark.parametrize(
    ("header", "seconds"), [("3", 3.0), ("", None), ("Wed, 21 Oct 2026 07:28:00 GMT", None)]
)
def test_the_wait_that_a_busy_service_asks_for_is_kept(header: str, seconds: float | None) -> None:
    attempt = classify(answer_error(503, "SlowDown", **{"retry-after": header}), "version")
    assert isinstance(attempt, Busy)
    assert attempt.retry_after == seconds


def test_bounded_calls_tell_whether_they_began() -> None:
    begun, not_begun = classify(CallTimedOutError()), classify(CallNotStartedError())
    assert isinstance(begun, Ambiguous)
    assert begun.timed_out
    assert isinstance(not_begun, NotSent)


# --- connections that are never made -------------------------------------------------------------


def not_applied(storage: Any) -> None:
    with pytest.raises(BackendUnavailableError) as caught:
        storage.put_if_version("k", b"", {}, None)
    assert caught.value.outcome == "not_applied"
    assert caught.value.__cause__ is not None


def test_a_refused_connection_changed_nothing(open_fake: Any) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        not_applied(open_fake(endpoint_url=f"http://127.0.0.1:{port}", deadline=1.0))


def test_a_name_that_is_not_resolved_changed_nothing(open_fake: Any) -> None:
    not_applied(open_fake(endpoint_url="http://bucket.invalid", deadline=1.0))


def test_a_failed_tls_handshake_changed_nothing(fake: Any, open_fake: Any) -> None:
    # The server speaks plain HTTP.
    url = fake.url.replace("http://", "https://")
    storage = open_fake(endpoint_url=url, deadline=2.0)
    not_applied(storage)
    assert fake.seen == []


def test_a_handshake_error_is_not_sent_and_a_later_tls_error_is_ambiguous() -> None:
    late = botocore.exceptions.SSLError(endpoint_url="https://host", error=ssl.SSLError("bad mac"))
    assert isinstance(classify(late, "version"), Ambiguous)
    unverified = botocore.exceptions.SSLError(
        endpoint_url="https://host", error=ssl.SSLCertVerificationError("self-signed")
    )
    unverified.__context__ = ssl.SSLCertVerificationError("self-signed")
    assert isinstance(classify(unverified, "version"), NotSent)


def test_a_proxy_that_refuses_changed_nothing(
    open_fake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{unused.getsockname()[1]}")
        monkeypatch.setenv("NO_PROXY", "")
        not_applied(open_fake(endpoint_url="http://example.invalid", deadline=1.0))


def test_a_client_that_cannot_be_made_in_time_changed_nothing(
    open_fake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = threading.Event()
    monkeypatch.setattr("wenchang_s3.clients.OwnClient._make", lambda _: free.wait(30) and None)
    not_applied(open_fake(deadline=0.5))
    free.set()
