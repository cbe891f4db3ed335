"""Answers that no emulator gives: busy, bare, hanging and torn ones, and odd accounts."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from wenchang.errors import BackendUnavailableError
from wenchang.storage import PreconditionFailedError, StorageRejectedError
from wenchang_azure.hooks import future_value
from wenchang_azure.marks import decode_marks, encode_marks

ID = "0123456789abcdef0123"
DATE = {"Date": "Mon, 30 Nov 2026 10:00:00 GMT"}


class OneBlob:
    """A service with one blob, which keeps to the conditions and counts its ETags up."""

    def __init__(self, stub: Any, replies: Any) -> None:
        self.replies = replies
        self.body: bytes | None = None
        self.value: str | None = None
        self.number = 1
        for kind in ("put", "get", "head", "delete"):
            stub.answers[kind] = getattr(self, kind)

    @property
    def etag(self) -> str:
        return f'"0x{self.number:X}"'

    def hold(self, body: bytes, value: str | None = None) -> str:
        self.body, self.value = body, value
        self.number += 1
        return self.etag.strip('"')

    def put(self, asked: Any) -> Any:
        if asked.headers.get("if-none-match") == "*" and self.body is not None:
            return self.replies.error(409, "BlobAlreadyExists")
        if asked.headers.get("if-match", self.etag) != self.etag:
            return self.replies.error(412, "ConditionNotMet")
        self.hold(asked.body, asked.headers.get("x-ms-meta-wenchang"))
        return self.replies.plain(201, {"ETag": self.etag})

    def delete(self, asked: Any) -> Any:
        if self.body is None:
            return self.replies.error(404, "BlobNotFound")
        if asked.headers["if-match"] != self.etag:
            return self.replies.error(412, "ConditionNotMet")
        self.body = None
        return self.replies.plain(202)

    def headers(self) -> dict[str, str]:
        headers = {"ETag": self.etag, "x-ms-blob-type": "BlockBlob"}
        return headers if self.value is None else {**headers, "x-ms-meta-wenchang": self.value}

    def get(self, asked: Any) -> Any:
        if self.body is None:
            return self.replies.error(404, "BlobNotFound")
        if not self.body:
            return self.replies.error(416, "InvalidRange")
        end = len(self.body) - 1
        content = {"Content-Range": f"bytes 0-{end}/{end + 1}"}
        return self.replies.plain(206, {**self.headers(), **content}, self.body)

    def head(self, asked: Any) -> Any:
        if self.body is None:
            return self.replies.error(404, "BlobNotFound")
        length = {"Content-Length": str(len(self.body))}
        return self.replies.plain(200, {**self.headers(), **length})


@pytest.fixture
def blob(stub: Any, replies: Any) -> OneBlob:
    return OneBlob(stub, replies)


def once(first: Any, then: Any) -> Any:
    """Answer the first request with `first`, all others by `then`."""
    left = [first]
    return lambda asked: left.pop() if left else then(asked)


def test_out_busy_the_service_s_busy_is_retried_and_no_conflict(
    stub: Any, replies: Any, blob: OneBlob
):
    storage = stub.open()
    stub.answers["put"] = once(replies.error(503, "ServerBusy"), blob.put)
    version = storage.put_if_version("k", b"1", {}, None)
    stub.answers["delete"] = once(replies.error(503, "ServerBusy"), blob.delete)
    storage.delete_if_version("k", version)
    # Nothing was read back: busy is certain.
    assert stub.kinds() == ["put", "put", "delete", "delete"]


def test_out_busy_for_ever_is_an_outage_without_effect(stub: Any, replies: Any, blob: OneBlob):
    stub.answers["put"] = lambda asked: replies.error(503, "ServerBusy")
    with pytest.raises(BackendUnavailableError) as caught:
        stub.open(deadline=4.0).put_if_version("k", b"1", {}, None)
    assert caught.value.outcome == "not_applied"
    assert stub.kinds() == ["put"] * len(stub.kinds())


def test_a_bare_503_after_the_write_landed_is_read_back(stub: Any, replies: Any, blob: OneBlob):
    def landed(asked: Any) -> Any:
        blob.put(asked)
        return replies.error(503)

    stub.answers["put"] = landed
    version = stub.open().put_if_version("k", b"1", {"n": "1"}, None)
    assert version == "0x2"
    assert stub.kinds() == ["put", "get"]


def test_a_bare_503_before_a_create_is_unknown_since_it_may_still_arrive(
    stub: Any, replies: Any, blob: OneBlob
):
    stub.answers["put"] = once(replies.error(503), blob.put)
    with pytest.raises(BackendUnavailableError) as caught:
        stub.open().put_if_version("k", b"1", {}, None)
    assert caught.value.outcome == "unknown"
    assert stub.kinds() == ["put", "get"]


def test_a_bare_404_is_not_taken_for_absence(stub: Any, replies: Any):
    stub.answers["get"] = lambda asked: replies.error(404)
    with pytest.raises(BackendUnavailableError):
        stub.open(deadline=0.5).get("k")


def test_out_bounded_a_hanging_service_ends_every_call(stub: Any):
    for kind in ("put", "get", "head", "delete", "list"):
        stub.answers[kind] = stub.hang
    storage = stub.open(deadline=0.6, attempt_timeout=0.2)
    for call, outcome in (
        (lambda: storage.get("k"), "not_applied"),
        (lambda: storage.list_page("", None, 1), "not_applied"),
        (lambda: storage.put("k", b"", {}), "not_applied"),
        (lambda: storage.put_if_version("k", b"", {}, None), "unknown"),
        (lambda: storage.put_if_version("k", b"", {}, "0x1"), "unknown"),
        (lambda: storage.delete_if_version("k", "0x1"), "unknown"),
    ):
        with pytest.raises(BackendUnavailableError) as caught:
            call()
        assert (caught.value.reason, caught.value.outcome) == ("timeout", outcome)


@pytest.mark.parametrize("cut", [b'ETag: "0x', b'ETag: "0x2', b"ETag: ", b"ETa", b""])
def test_out_token_an_answer_whose_head_ended_early_is_read_back(
    stub: Any, replies: Any, blob: OneBlob, cut: bytes
):
    def torn(asked: Any) -> Any:
        blob.put(asked)
        return replies.plain(raw=b"HTTP/1.1 201 Created\r\nServer: x\r\n" + cut)

    stub.answers["put"] = torn
    assert stub.open().put_if_version("k", b"body", {}, None) == "0x2"
    assert stub.kinds() == ["put", "get"]


@pytest.mark.parametrize("raw", [b"", b"HTTP/1.1", b"HTTP/1.1 20", b"HTTP/1.1 201", b"garbage\r\n"])
def test_out_token_an_answer_without_a_whole_status_is_read_back(
    stub: Any, replies: Any, blob: OneBlob, raw: bytes
):
    def torn(asked: Any) -> Any:
        blob.put(asked)
        return replies.plain(raw=raw)

    stub.answers["put"] = torn
    assert stub.open().put_if_version("k", b"body", {}, None) == "0x2"


def test_out_token_a_200_with_an_error_body_is_no_success(stub: Any, replies: Any, blob: OneBlob):
    body = b"<Error><Code>InternalError</Code></Error>"
    stub.answers["put"] = lambda asked: replies.plain(200, {"ETag": '"0x9"'}, body)
    with pytest.raises(BackendUnavailableError) as caught:
        stub.open().put_if_version("k", b"body", {}, None)
    assert caught.value.outcome == "unknown"


@pytest.mark.parametrize("body", [b"", b"hello"])
def test_get_atomic_a_read_whose_head_ended_early_is_repeated(
    stub: Any, replies: Any, blob: OneBlob, body: bytes
):
    value = encode_marks(body, {"n": "1"}, ID)
    blob.hold(body, value)
    kind = "get" if body else "head"
    whole = stub.answers[kind]
    content = b"Content-Range: bytes 0-4/5\r\n" if body else b""
    head = (
        f"HTTP/1.1 {206 if body else 200} OK\r\nContent-Length: {len(body)}\r\n".encode()
        + content
        + f"ETag: {blob.etag}\r\n".encode()
    )
    for cut in (head[:30], head[:-8], head, head + b"x-ms-meta-wen", head + b"\r\n"[:1]):
        stub.answers[kind] = once(replies.plain(raw=cut), whole)
        found = stub.open().get("k")
        assert found is not None
        assert (found.data, found.metadata) == (body, {"n": "1"})
    # A connection that was left to the collector would warn here, and fail this test.
    gc.collect()


def test_get_atomic_a_body_that_ended_early_is_repeated(stub: Any, replies: Any, blob: OneBlob):
    blob.hold(b"0123456789", encode_marks(b"0123456789", {}, ID))
    head = f"HTTP/1.1 206 OK\r\nContent-Range: bytes 0-9/10\r\nETag: {blob.etag}\r\n".encode()
    for raw in (
        head + b"Content-Length: 10\r\n\r\n01234",
        head + b"Content-Length: 5\r\n\r\n01234",
        head + b"Connection: close\r\n\r\n01234",
    ):
        stub.answers["get"] = once(replies.plain(raw=raw), blob.get)
        found = stub.open().get("k")
        assert found is not None
        assert found.data == b"0123456789"


def test_get_atomic_an_empty_blob_that_is_written_meanwhile_is_read_whole(
    stub: Any, replies: Any, blob: OneBlob
):
    def refuse_and_write(asked: Any) -> Any:
        blob.hold(b"new", encode_marks(b"new", {"n": "new"}, ID))
        return replies.error(416, "InvalidRange")

    stub.answers["get"] = lambda asked: (
        refuse_and_write(asked) if blob.body == b"" else blob.get(asked)
    )
    blob.hold(b"", encode_marks(b"", {"n": "old"}, ID))
    found = stub.open().get("k")
    assert found is not None
    assert (found.data, found.metadata, found.version) == (b"new", {"n": "new"}, "0x3")


def test_get_an_empty_blob_is_its_head(stub: Any, blob: OneBlob):
    version = blob.hold(b"", encode_marks(b"", {"n": "1"}, ID))
    found = stub.open().get("k")
    assert found is not None
    assert (found.data, found.metadata, found.version) == (b"", {"n": "1"}, version)
    assert stub.kinds() == ["get", "head"]


def test_out_landed_an_edit_in_place_after_the_landing_leaves_the_outcome_unknown(
    stub: Any, replies: Any, blob: OneBlob
):
    def landed_and_edited(asked: Any) -> Any:
        blob.put(asked)
        blob.hold(b"edited by hand", blob.value)
        return replies.error(503)

    stub.answers["put"] = landed_and_edited
    with pytest.raises(BackendUnavailableError) as caught:
        stub.open().put_if_version("k", b"ours", {}, None)
    assert caught.value.outcome == "unknown"


def test_a_lease_is_a_rejection_although_it_answers_412(stub: Any, replies: Any, blob: OneBlob):
    version = blob.hold(b"1")
    storage = stub.open()
    stub.answers["put"] = lambda asked: replies.error(412, "LeaseIdMissing")
    with pytest.raises(StorageRejectedError) as caught:
        storage.put_if_version("k", b"2", {}, version)
    assert caught.value.kind == "locked"
    assert stub.kinds() == ["put"]


def test_b46_an_account_with_a_hierarchical_namespace_is_refused_at_first_use(
    stub: Any, replies: Any, blob: OneBlob
):
    stub.answers["account"] = lambda asked: replies.plain(200, {"x-ms-is-hns-enabled": "true"})
    stub.answers["list"] = lambda asked: replies.page([])
    storage = stub.open()
    for call in (
        lambda: storage.put_if_version("k", b"", {}, None),
        lambda: storage.delete_if_version("k", "0x1"),
        lambda: storage.list_page("", None, 1),
    ):
        with pytest.raises(StorageRejectedError) as caught:
            call()
        assert caught.value.kind == "unsupported"
        assert "hierarchical namespace" in str(caught.value)
    assert stub.kinds() == []
    assert len(stub.asked) == 1


def test_b46_a_read_tells_a_hierarchical_namespace_by_itself(
    stub: Any, replies: Any, blob: OneBlob
):
    headers = {"ETag": '"0x1"', "x-ms-resource-type": "file", "Content-Range": "bytes 0-0/1"}
    stub.answers["get"] = lambda asked: replies.plain(206, headers, b"x")
    with pytest.raises(StorageRejectedError, match="hierarchical"):
        stub.open().get("k")


@pytest.mark.parametrize("answer", [(403, "AuthorizationPermissionMismatch"), (403, ""), (400, "")])
def test_an_account_that_may_not_be_asked_is_asked_once(
    stub: Any, replies: Any, blob: OneBlob, answer: tuple[int, str]
):
    stub.answers["account"] = lambda asked: replies.error(*answer)
    storage = stub.open()
    version = storage.put_if_version("k", b"1", {}, None)
    storage.put_if_version("k", b"2", {}, version)
    assert [asked.kind for asked in stub.asked] == ["account", "put", "put"]


def test_an_account_that_did_not_answer_is_asked_again(stub: Any, replies: Any, blob: OneBlob):
    stub.answers["account"] = once(replies.error(503), lambda asked: replies.plain(200))
    storage = stub.open()
    version = storage.put_if_version("k", b"1", {}, None)
    version = storage.put_if_version("k", b"2", {}, version)
    storage.put_if_version("k", b"3", {}, version)
    assert [asked.kind for asked in stub.asked] == ["account", "put", "account", "put", "put"]


def test_format_guard_a_blob_of_a_later_release_is_read_and_not_written(stub: Any, blob: OneBlob):
    version = blob.hold(b"later", future_value(b"later"))
    storage = stub.open()
    found = storage.get("k")
    assert found is not None
    assert (found.data, found.metadata, found.version) == (b"later", {"n": "1"}, f"{version}:w2")
    for call in (
        lambda: storage.put("k", b"", {}),
        lambda: storage.put_if_version("k", b"", {}, found.version),
        lambda: storage.delete_if_version("k", found.version),
    ):
        with pytest.raises(StorageRejectedError, match="upgrade"):
            call()
    assert "put" not in stub.kinds()
    assert "delete" not in stub.kinds()


def test_format_guard_fields_of_a_later_release_are_kept(stub: Any, blob: OneBlob):
    version = blob.hold(b"later", future_value(b"later", extra=b"future", min_writer=1))
    storage = stub.open()
    found = storage.get("k")
    assert found is not None
    assert found.version == f"{version}:x"
    replaced = storage.put_if_version("k", b"ours", {"n": "2"}, found.version)
    marks = decode_marks(blob.value)
    assert (marks.extra, marks.metadata) == (b"future", {"n": "2"})
    assert marks.lineage[0][1] == found.version
    again = storage.get("k")
    assert again is not None
    assert again.version == replaced
    put = storage.put("k", b"put", {})
    assert decode_marks(blob.value).extra == b"future"
    last = storage.get("k")
    assert last is not None
    assert last.version == put


def test_version_foreign_no_request_is_made_for_a_version_of_another_form(stub: Any):
    storage = stub.open()
    for version in ("", "0", "0x1\n", '"0x1"', "*", "\ud800", "x" * 1_000_000):
        with pytest.raises(PreconditionFailedError):
            storage.put_if_version("k", b"", {}, version)
        with pytest.raises(PreconditionFailedError):
            storage.delete_if_version("k", version)
    assert stub.asked == []


def test_nothing_that_the_service_says_reaches_the_text_of_an_error(stub: Any, replies: Any):
    stub.answers["put"] = lambda asked: replies.error(403, "AuthorizationFailure")
    with pytest.raises(StorageRejectedError) as caught:
        stub.open().put_if_version("a-key", b"", {}, None)
    text = f"{caught.value} {caught.value!r} {stub.open()!r}"
    for secret in ("a-key", "stub", "127.0.0.1", "devstoreaccount1"):
        assert secret not in text
    assert caught.value.__cause__ is not None
