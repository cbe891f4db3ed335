"""What a call says of answers that no emulator gives: busy, torn, inside out, never."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from wenchang.errors import BackendUnavailableError
from wenchang.storage import PreconditionFailedError, StorageRejectedError
from wenchang.storage.envelope import decode

WRITES = ["create", "replace", "delete"]


def write(storage: Any, kind: str) -> Any:
    """Prepare a key and return a write to it."""
    if kind == "create":
        return lambda: storage.put_if_version("k", b"ours", {}, None)
    version = storage.put("k", b"before", {})
    if kind == "replace":
        return lambda: storage.put_if_version("k", b"ours", {}, version)
    return lambda: storage.delete_if_version("k", version)


def landed(fake: Any, kind: str) -> bool:
    stored = fake.objects.get("k")
    if kind == "delete":
        return stored is None
    return stored is not None and decode(stored).body == b"ours"


def method(kind: str) -> str:
    return "DELETE" if kind == "delete" else "PUT"


@pytest.mark.parametrize("kind", WRITES)
@pytest.mark.parametrize(
    ("status", "code"),
    [
        (409, "ConditionalRequestConflict"),
        (409, "OperationAborted"),
        (503, "SlowDown"),
        (429, "TooManyRequests"),
    ],
)
def test_a_busy_answer_is_sent_again_and_succeeds(
    fake: Any, proven: Any, kit: Any, kind: str, status: int, code: str
) -> None:
    call = write(proven(), kind)
    fake.on(method(kind), kit.error(status, code))
    call()
    assert landed(fake, kind)


@pytest.mark.parametrize("kind", WRITES)
def test_a_conflict_for_ever_is_an_outage_that_changed_nothing(
    fake: Any, proven: Any, kit: Any, kind: str
) -> None:
    call = write(proven(deadline=3.0), kind)
    fake.on(method(kind), kit.error(409, "ConditionalRequestConflict"), times=None)
    with pytest.raises(BackendUnavailableError) as caught:
        call()
    assert caught.value.outcome == "not_applied"
    assert not landed(fake, kind)


def test_a_wait_that_the_service_asks_for_is_not_cut_short(
    fake: Any, proven: Any, kit: Any
) -> None:
    storage = proven(deadline=2.0)
    fake.on("PUT", kit.error(503, "SlowDown", **{"Retry-After": "60"}), times=None)
    with pytest.raises(BackendUnavailableError) as caught:
        storage.put_if_version("k", b"ours", {}, None)
    assert caught.value.outcome == "not_applied"
    assert fake.kinds() == ["PUT"]


@pytest.mark.parametrize("kind", ["create", "replace"])
def test_an_error_inside_a_success_is_judged_by_its_code(
    fake: Any, proven: Any, kit: Any, kind: str
) -> None:
    storage = proven()
    call = write(storage, kind)
    rival = storage.put("k", b"rival", {})
    fake.on("PUT", kit.error(200, "PreconditionFailed"))
    with pytest.raises(PreconditionFailedError) as caught:
        call()
    assert caught.value.current.version == rival


@pytest.mark.parametrize("kind", ["create", "replace", "put"])
@pytest.mark.parametrize("broken", ['"6654c', "", '""', '"a","b"', "*", 'W/"abc"', "bare"])
def test_a_success_without_a_whole_etag_is_read_back(
    fake: Any, proven: Any, kit: Any, kind: str, broken: str
) -> None:
    storage = proven()
    call = write(storage, kind) if kind != "put" else lambda: storage.put("k", b"ours", {})

    def torn(seen: Any) -> Any:
        fake.obey(seen)
        return kit.Answer(200, {"ETag": broken} if broken else {})

    fake.on("PUT", torn)
    version = call()
    assert version == kit.md5(fake.objects["k"])
    assert landed(fake, "create")


def test_an_internal_error_after_the_write_was_applied_is_settled_as_landed(
    fake: Any, proven: Any, kit: Any
) -> None:
    storage = proven()

    def applied(seen: Any) -> Any:
        fake.obey(seen)
        return kit.error(500, "InternalError")

    fake.on("PUT", applied)
    assert storage.put_if_version("k", b"ours", {}, None) == kit.md5(fake.objects["k"])


@pytest.mark.parametrize("kind", WRITES)
def test_a_refusal_without_a_body_is_a_conflict(
    fake: Any, proven: Any, kit: Any, kind: str
) -> None:
    storage = proven()
    call = write(storage, kind)
    storage.put("k", b"rival", {})
    fake.on(method(kind), kit.Answer(412))
    with pytest.raises(PreconditionFailedError):
        call()


def test_a_replace_of_a_missing_object_is_a_conflict_with_nothing_there(
    fake: Any, proven: Any
) -> None:
    storage = proven()
    call = write(storage, "replace")
    fake.objects.clear()
    with pytest.raises(PreconditionFailedError) as caught:
        call()
    assert caught.value.current is None
    assert fake.objects == {}


@pytest.mark.parametrize("kind", WRITES)
def test_a_server_without_the_request_is_a_rejection_and_nothing_is_emulated(
    fake: Any, proven: Any, kit: Any, kind: str
) -> None:
    call = write(proven(), kind)
    before = dict(fake.objects)
    fake.seen.clear()
    fake.on(method(kind), kit.error(501, "NotImplemented"), times=None)
    with pytest.raises(StorageRejectedError) as caught:
        call()
    assert caught.value.kind == "unsupported"
    assert fake.objects == before
    assert fake.kinds() == [method(kind)]


def test_a_server_that_never_answers_a_write_leaves_it_unknown(fake: Any, proven: Any) -> None:
    storage = proven(deadline=0.6)
    asked = threading.Event()

    def hang(_: Any) -> None:
        asked.set()
        fake.ended.wait(30)

    for kind in ("PUT", "GET"):
        fake.on(kind, hang, times=None)
    with pytest.raises(BackendUnavailableError) as caught:
        storage.put_if_version("k", b"ours", {}, None)
    assert asked.is_set()
    assert (caught.value.reason, caught.value.outcome) == ("timeout", "unknown")
    fake.ended.set()


@pytest.mark.parametrize(
    "expected",
    [
        "",
        "*",
        '"abc"',
        "a,b",
        "a b",
        "é",
        "abc\n",
        "\ud800",
        "x" * 201,
        "x" * (1 << 20),
        "0:w0",
        ":x",
    ],
)
def test_a_version_that_was_never_issued_is_a_conflict_and_nothing_is_sent(
    fake: Any, proven: Any, expected: str
) -> None:
    storage = proven()
    for call in (
        lambda: storage.put_if_version("k", b"", {}, expected),
        lambda: storage.delete_if_version("k", expected),
    ):
        with pytest.raises(PreconditionFailedError):
            call()
    assert fake.seen == []


def test_a_conditional_request_carries_the_quoted_etag_alone(fake: Any, proven: Any) -> None:
    storage = proven()
    version = storage.put_if_version("k", b"1", {}, None)
    version2 = storage.put_if_version("k", b"2", {}, version)
    storage.delete_if_version("k", version2)
    conditions = [
        (one.headers.get("if-match"), one.headers.get("if-none-match")) for one in fake.seen
    ]
    assert conditions == [(None, "*"), (f'"{version}"', None), (f'"{version2}"', None)]


# --- reading -------------------------------------------------------------------------------------


def test_a_body_without_a_length_is_asked_for_again(fake: Any, proven: Any, kit: Any) -> None:
    storage = proven()
    version = storage.put_if_version("k", b"whole", {}, None)
    fake.on("GET", kit.Answer(200, {"ETag": f'"{version}"'}, None))
    assert storage.get("k").data == b"whole"


def test_a_missing_object_is_not_read_out_of_a_strangers_404(
    fake: Any, proven: Any, kit: Any
) -> None:
    storage = proven(deadline=0.4)
    fake.on("GET", kit.Answer(404, {}, b"<html>not here</html>"), times=None)
    with pytest.raises(BackendUnavailableError):
        storage.get("k")


def test_an_object_that_is_far_too_large_is_refused_without_reading_it(
    fake: Any, proven: Any
) -> None:
    storage = proven()
    fake.objects["video"] = b"x" * (5 * 1024 * 1024)
    with pytest.raises(StorageRejectedError) as caught:
        storage.get("video")
    assert caught.value.kind == "invalid"


def test_without_permission_to_list_a_denied_get_says_so(fake: Any, proven: Any, kit: Any) -> None:
    storage = proven()
    fake.on("GET", kit.error(403, "AccessDenied"))
    fake.on("LIST", kit.error(403, "AccessDenied"))
    with pytest.raises(StorageRejectedError, match="s3:ListBucket") as caught:
        storage.get("k")
    assert caught.value.kind == "permission"
    assert "does not exist" in str(caught.value)


def test_with_permission_to_list_a_denied_get_names_the_permissions(
    fake: Any, proven: Any, kit: Any
) -> None:
    storage = proven()
    fake.on("GET", kit.error(403, "AccessDenied"))
    with pytest.raises(StorageRejectedError, match="s3:GetObject") as caught:
        storage.get("k")
    assert "does not exist" not in str(caught.value)


# --- formats -------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["put", "replace", "delete"])
def test_what_a_later_release_guards_is_read_and_not_written(
    fake: Any, proven: Any, call: str
) -> None:
    storage = proven()
    block = (
        b'---\nwenchang: {"format":2,"min_writer":2,"id":"0123456789abcdef0123","lineage":[],'
        b'"metadata":{"n":"1"},"sha256":"' + b"0" * 64 + b'"}\n---\nlater'
    )
    fake.objects["k"] = block
    found = storage.get("k")
    assert (found.data, found.metadata) == (b"later", {"n": "1"})
    assert [entry.version for entry in storage.list_page("", None, 5)] == [found.version]
    with pytest.raises(StorageRejectedError, match="upgrade"):
        {
            "put": lambda: storage.put("k", b"", {}),
            "replace": lambda: storage.put_if_version("k", b"", {}, found.version),
            "delete": lambda: storage.delete_if_version("k", found.version),
        }[call]()
    assert fake.objects["k"] == block


@pytest.mark.parametrize("call", ["put", "replace"])
@pytest.mark.parametrize("fresh", [True, False])
def test_fields_of_a_later_format_are_kept_also_by_a_handle_that_never_read_them(
    fake: Any, proven: Any, call: str, fresh: bool
) -> None:
    storage = proven()
    fake.objects["k"] = (
        b'---\nwenchang: {"format":2,"min_writer":1,"id":"0123456789abcdef0123","lineage":[],'
        b'"metadata":{},"sha256":"' + b"0" * 64 + b'","labels":["kept"]}\n---\nlater'
    )
    version = storage.get("k").version
    writer = proven() if fresh else storage
    if call == "put":
        written = writer.put("k", b"ours", {})
    else:
        written = writer.put_if_version("k", b"ours", {}, version)
    stored = decode(fake.objects["k"])
    assert (stored.body, stored.extra) == (b"ours", {"labels": ["kept"]})
    assert storage.get("k").version == written
    assert [entry.version for entry in writer.list_page("", None, 5)] == [written]
    storage.delete_if_version("k", written)
    assert fake.objects == {}
