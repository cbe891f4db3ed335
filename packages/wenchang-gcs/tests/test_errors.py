"""What each error of the Google client means for the attempt that met it."""

from __future__ import annotations

import json
import ssl

import pytest
import requests
import urllib3
from google.api_core import exceptions as api
from google.auth import exceptions as auth

from wenchang.storage import PreconditionFailedError, StorageRejectedError
from wenchang.storage.bounded import CallNotStartedError, CallTimedOutError
from wenchang.storage.outcomes import Ambiguous, Busy, NotSent, Refused, Rejected
from wenchang_gcs.errors import classify, is_absent
from wenchang_gcs.hooks import answer_error, every_sdk_error, sdk_errors


def media_error(status, body, **headers):
    """Return what the client raises for an upload or download: it does not read the answer."""
    response = requests.Response()
    response.status_code = status
    response._content = body
    response.headers.update(headers)
    return api.from_http_status(status, f"POST http://x.test/secret: {body!r}", response=response)


def as_json(reason, message="m"):
    return json.dumps({"error": {"message": message, "errors": [{"reason": reason}]}}).encode()


def wrapped(inner):
    pool = urllib3.HTTPConnectionPool("x.test")
    return requests.exceptions.ConnectionError(
        urllib3.exceptions.MaxRetryError(pool, "/secret", inner)
    )


def test_out_mapped_every_error_of_the_sdk_is_mapped_with_its_cause():
    count = 0
    for error, ours in sdk_errors():
        count += 1
        assert "secret" not in f"{ours} {ours!r}"
        assert ours.__cause__ is error or isinstance(ours, PreconditionFailedError)
    assert count > 150


def test_out_mapped_only_an_answer_of_the_service_counts_as_one():
    """Nothing is taken for a refusal or as busy that has no answer of the service in it."""
    for error in every_sdk_error():
        if isinstance(classify(error), Refused | Busy):
            assert isinstance(error, api.GoogleAPICallError)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (answer_error(401, "authError"), "credentials"),
        (answer_error(403, "forbidden"), "permission"),
        (answer_error(403, "retentionPolicyNotMet"), "locked"),
        (answer_error(403, "objectUnderActiveHold"), "locked"),
        (answer_error(412, "orgPolicyConstraintFailed"), "permission"),
        (answer_error(405, ""), "unsupported"),
        (answer_error(501, ""), "unsupported"),
        (answer_error(400, "invalid"), "invalid"),
        (answer_error(413, "uploadTooLarge"), "invalid"),
        (answer_error(307, ""), "invalid"),
        (
            answer_error(404, "notFound", "The specified bucket does not exist."),
            "missing_container",
        ),
        (media_error(403, as_json("retentionPolicyNotMet")), "locked"),
        (media_error(404, b"The specified bucket does not exist."), "missing_container"),
        (auth.DefaultCredentialsError("no"), "credentials"),
        (auth.RefreshError("no"), "credentials"),
        (auth.MutualTLSChannelError("no"), "credentials"),
        (requests.exceptions.InvalidSchema("x"), "invalid"),
    ],
)
def test_out_mapped_what_repeating_would_not_help_is_rejected(error, kind):
    answer = classify(error)
    assert isinstance(answer, Rejected)
    assert isinstance(answer.error, StorageRejectedError)
    assert answer.error.kind == kind
    assert answer.error.__cause__ is error


@pytest.mark.parametrize(
    "error",
    [
        answer_error(429, "rateLimitExceeded"),
        answer_error(403, "userRateLimitExceeded"),
        media_error(429, as_json("rateLimitExceeded")),
        media_error(503, as_json("rateLimitExceeded")),
    ],
)
def test_out_busy_the_services_own_code_for_too_many_is_busy(error):
    assert isinstance(classify(error), Busy)


def test_out_busy_the_wait_that_the_service_asks_for_is_kept():
    assert classify(answer_error(429, "rateLimitExceeded", Retry_After="7")).retry_after == 7.0
    for odd in ("soon", "-1", "1e9", "Wed, 21 Oct 2026 07:28:00 GMT"):
        assert classify(answer_error(429, "rateLimitExceeded", Retry_After=odd)).retry_after is None


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504])
@pytest.mark.parametrize(
    "make",
    [lambda s: answer_error(s, ""), lambda s: media_error(s, b"<html>")],
    ids=["json", "media"],
)
def test_out_busy_a_bare_status_is_ambiguous(status, make):
    answer = classify(make(status))
    assert isinstance(answer, Ambiguous)
    assert answer.timed_out == (status in {408, 504})


@pytest.mark.parametrize(
    ("error", "timed_out"),
    [
        (CallNotStartedError(), True),
        (requests.exceptions.ConnectTimeout("x"), True),
        (requests.exceptions.ProxyError("x"), False),
        (wrapped(urllib3.exceptions.NewConnectionError(None, "refused")), False),
        (wrapped(urllib3.exceptions.NameResolutionError("h", None, OSError())), False),
        (
            requests.exceptions.SSLError(
                urllib3.exceptions.MaxRetryError(
                    None, "/", urllib3.exceptions.SSLError(ssl.SSLCertVerificationError("x"))
                )
            ),
            False,
        ),
        (auth.TransportError("x"), False),
        (auth.RefreshError("x", retryable=True), False),
    ],
)
def test_out_unknown_what_was_never_sent_says_so(error, timed_out):
    answer = classify(error)
    assert isinstance(answer, NotSent)
    assert answer.timed_out == timed_out


@pytest.mark.parametrize(
    ("error", "timed_out"),
    [
        (CallTimedOutError(), True),
        (requests.exceptions.ReadTimeout("x"), True),
        (requests.exceptions.ConnectionError("Connection aborted."), False),
        (requests.exceptions.ChunkedEncodingError("x"), False),
        (requests.exceptions.SSLError("bad record mac"), False),
        (json.JSONDecodeError("x", "", 0), False),
        (api.RetryError("x", cause=None), False),
        (RuntimeError("anything"), False),
    ],
)
def test_out_unknown_what_may_have_been_sent_is_ambiguous(error, timed_out):
    answer = classify(error)
    assert isinstance(answer, Ambiguous)
    assert answer.timed_out == timed_out


def test_out_unknown_an_error_that_came_up_beside_another_ones_handling_is_its_own():
    lost = requests.exceptions.ConnectionError("lost")
    lost.__context__ = wrapped(urllib3.exceptions.NewConnectionError(None, "refused"))
    assert isinstance(classify(lost), Ambiguous)


@pytest.mark.parametrize(
    "make", [answer_error, lambda s, _, m: media_error(s, m.encode())], ids=["json", "media"]
)
def test_a_missing_object_is_told_from_a_missing_bucket(make):
    no_object = make(404, "notFound", "No such object: bucket/The specified bucket does not exist.")
    no_bucket = make(404, "notFound", "The specified bucket does not exist.")
    assert is_absent(no_object)
    assert not is_absent(no_bucket)
    assert not is_absent(make(412, "conditionNotMet", "m"))
    assert isinstance(classify(no_object), Refused)


def test_a_404_without_a_reason_means_the_bucket_where_no_object_was_named():
    bare = answer_error(404, "Not Found", "Not Found")
    assert is_absent(bare)
    assert isinstance(classify(bare, "object"), Refused)
    assert classify(bare, "bucket").error.kind == "missing_container"
