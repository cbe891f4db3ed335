"""The storage over a service that answers as its documents say, and over one that misbehaves."""

from __future__ import annotations

import itertools
import json

import pytest

from wenchang.errors import BackendUnavailableError
from wenchang.storage import PreconditionFailedError, StorageRejectedError
from wenchang.storage.keys import UNREADABLE_METADATA
from wenchang.storage.outcomes import RetryPolicy
from wenchang_conformance.faults import Fault, FaultProxy, Rule, Steps, gcs_error, matching
from wenchang_gcs.calls import Call

WRITES = matching("POST", "DELETE")
KINDS = ("put", "create", "replace", "delete")


def refusal(status, reason, message="told by the service"):
    error = {"code": status, "message": message, "errors": [{"reason": reason}]}
    return status, {"Content-Type": "application/json"}, json.dumps({"error": error}).encode()


def as_json(value):
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()


@pytest.fixture
def behind(stub, open_at):
    """A storage behind a proxy that harms what passes; returns both."""
    with FaultProxy(("127.0.0.1", int(stub.url.rpartition(":")[2]))) as proxy:
        yield proxy, open_at(f"http://127.0.0.1:{proxy.port}", deadline=2.5, attempt_timeout=0.5)


def call_of(kind, storage, truth):
    """Prepare the object and return one write."""
    if kind == "create":
        return lambda: storage.put_if_version("k", b"ours", {"n": "1"}, None)
    version = truth.put("k", b"before", {})
    if kind == "put":
        return lambda: storage.put("k", b"ours", {"n": "1"})
    if kind == "replace":
        return lambda: storage.put_if_version("k", b"ours", {"n": "1"}, version)
    return lambda: storage.delete_if_version("k", version)


# --- what is sent --------------------------------------------------------------------------------


def test_each_call_takes_the_requests_that_it_says(stub, storage):
    version = storage.put_if_version("a", b"x", {}, None)
    assert stub.kinds() == ["upload"]
    version = storage.put_if_version("a", b"y", {}, version)
    assert stub.kinds() == ["upload"]
    storage.get("a")
    assert stub.kinds() == ["head", "body"]
    storage.delete_if_version("a", version)
    assert stub.kinds() == ["delete"]
    storage.get("a")
    assert stub.kinds() == ["head"]
    storage.put("a", b"z", {})
    assert stub.kinds() == ["head", "upload"]
    with pytest.raises(PreconditionFailedError) as caught:
        storage.put_if_version("a", b"z", {}, version)
    assert stub.kinds() == ["upload", "head", "body"]
    assert caught.value.current == storage.get("a")


def test_both_conditions_are_always_sent(stub, storage):
    version = storage.put_if_version("a", b"x", {}, None)
    storage.delete_if_version("a", storage.put_if_version("a", b"y", {}, version))
    create, replace, delete = (
        {name: value for name, value in one.query.items() if name.startswith("if")}
        for one in stub.asked
    )
    assert create == {"ifGenerationMatch": "0"}
    assert replace == {"ifGenerationMatch": version, "ifMetagenerationMatch": "1"}
    assert delete.keys() == replace.keys()


def test_a_read_is_pinned_to_one_generation_and_stays_on_the_endpoint(stub, storage):
    version = storage.put_if_version("a", b"x", {}, None)
    stub.kinds()
    storage.get("a")
    assert stub.asked[1].query == {"alt": "media", "ifGenerationMatch": version}


def test_version_foreign_what_nobody_issued_is_refused_without_a_request(stub, storage):
    storage.put_if_version("a", b"x", {}, None)
    stub.kinds()
    for odd in ("", "0", "007", "1\n", "x", "9" * 1_000_000, "\ud800"):
        with pytest.raises(PreconditionFailedError):
            storage.put_if_version("a", b"y", {}, odd)
        with pytest.raises(PreconditionFailedError):
            storage.delete_if_version("a", odd)
    assert stub.kinds() == []


# --- metadata that was patched -------------------------------------------------------------------


@pytest.mark.parametrize("again", [1, 3])
def test_b28_a_patch_of_the_metadata_makes_earlier_versions_stale(stub, storage, again):
    version = storage.put_if_version("a", b"x", {"n": "1"}, None)
    for number in range(again):
        stub.patch("a", n=str(number + 2))
    for call in (
        lambda: storage.put_if_version("a", b"y", {}, version),
        lambda: storage.delete_if_version("a", version),
    ):
        with pytest.raises(PreconditionFailedError) as caught:
            call()
        assert caught.value.current.metadata == {"n": str(again + 1)}
    patched = storage.get("a")
    assert patched.version == f"{version}.{again + 1}"
    assert [entry.version for entry in storage.list_page("", None, 5)] == [patched.version]
    replaced = storage.put_if_version("a", b"y", {"n": "new"}, patched.version)
    assert storage.get("a").version == replaced
    storage.delete_if_version("a", replaced)


def test_version_same_a_patch_in_the_middle_of_a_read_does_not_lend_it_its_version(stub, storage):
    version = storage.put_if_version("a", b"x", {"n": "1"}, None)

    def patch_before_the_body(asked):
        if asked.kind == "body":
            stub.instead = lambda _: None
            stub.patch("a", n="2")

    stub.instead = patch_before_the_body
    found = storage.get("a")
    assert (found.metadata, found.version) == ({"n": "1"}, version)
    with pytest.raises(PreconditionFailedError):
        storage.put_if_version("a", b"lost update", {}, version)


def test_out_landed_a_landed_write_that_was_patched_before_the_read_back_is_landed(stub, behind):
    proxy, storage = behind
    before = storage.put_if_version("a", b"before", {}, None)
    proxy.script(
        Rule(
            fault=Fault.drop_answer(), match=WRITES, interloper=lambda: stub.patch("a", n="theirs")
        )
    )
    version = storage.put_if_version("a", b"ours", {"n": "ours"}, before)
    found = storage.get("a")
    assert (found.data, found.metadata) == (b"ours", {"n": "theirs"})
    assert found.version == f"{version}.2"
    with pytest.raises(PreconditionFailedError):
        storage.put_if_version("a", b"over the patch", {}, version)


@pytest.mark.parametrize("kind", ["replace", "delete"])
def test_out_definite_a_patch_proves_that_a_lost_write_never_took_effect(
    stub, storage, behind, kind
):
    proxy, handle = behind
    call = call_of(kind, handle, storage)
    version = storage.get("k").version

    def lose_and_patch(request):
        if WRITES(request):
            stub.patch("k", n="2")
            return True
        return False

    proxy.script(Rule(fault=Fault.drop_request(), match=lose_and_patch))
    with pytest.raises(PreconditionFailedError) as caught:
        call()
    assert caught.value.current.version == f"{version}.2"
    assert stub.kinds().count("upload" if kind == "replace" else "delete") == (kind == "replace")


# --- objects of others ---------------------------------------------------------------------------


def test_obj_foreign_an_object_uploaded_by_hand_is_listed_read_and_taken_over(stub, storage):
    stub.put("by-hand.md", b"# by hand\n")
    stub.put("by-tool.md", b"x", {"goog-reserved-file-mtime": "1", "Odd Name": "x"})
    listed = storage.list_page("", None, 5)
    assert [(one.key, dict(one.metadata)) for one in listed] == [
        ("by-hand.md", {}),
        ("by-tool.md", {}),
    ]
    found = storage.get("by-hand.md")
    assert found.data == b"# by hand\n"
    storage.put_if_version("by-hand.md", b"ours", {"n": "1"}, found.version)
    assert "wenchang-id" in stub.objects["by-hand.md"].metadata


def test_memory_088_metadata_is_the_objects_custom_metadata(stub, storage):
    metadata = {"description": "Ω\n two  spaces ", "empty": ""}
    storage.put_if_version("a", b"x", metadata, None)
    stored = stub.objects["a"].metadata
    assert {name: value for name, value in stored.items() if name in metadata} == metadata


def test_obj_foreign_broken_marks_hide_no_neighbour(stub, storage):
    for key in "abc":
        storage.put_if_version(key, key.encode(), {"n": key}, None)
    stub.patch("b", **{"wenchang-id": "damaged"})
    listed = storage.list_page("", None, 5)
    assert [one.key for one in listed] == ["a", "b", "c"]
    assert list(listed[1].metadata) == [UNREADABLE_METADATA]
    assert storage.get("b").data == b"b"
    storage.put_if_version("b", b"repaired", {}, listed[1].version)
    assert storage.get("b").metadata == {}


def test_obj_foreign_a_compressed_upload_of_a_stranger_is_read(stub, storage):
    """Its size in the head is that of the stored bytes, not of the body that is read."""
    record = stub.put("a", b"plain")
    told = record.told("a") | {"contentEncoding": "gzip", "size": "3"}
    stub.instead = lambda asked: as_json(told) if asked.kind == "head" else None
    assert storage.get("a").data == b"plain"


def test_format_guard_what_a_newer_release_guards_is_read_and_not_written(stub, storage):
    marks = {"wenchang-id": "0" * 20, "wenchang-format": "2", "wenchang-min-writer": "2"}
    record = stub.put("a", b"newer", {"n": "1", **marks})
    found = storage.get("a")
    assert (found.data, found.metadata) == (b"newer", {"n": "1"})
    assert found.version == f"{record.generation}:w2"
    assert storage.list_page("", None, 1)[0].version == found.version
    stub.kinds()
    for call in (
        lambda: storage.put_if_version("a", b"x", {}, found.version),
        lambda: storage.delete_if_version("a", found.version),
    ):
        with pytest.raises(StorageRejectedError, match="upgrade"):
            call()
    assert stub.kinds() == [], "the version alone says so"
    with pytest.raises(StorageRejectedError, match="upgrade"):
        storage.put("a", b"x", {})
    assert stub.objects["a"] is record


def test_format_guard_marks_of_a_newer_release_are_kept(stub, storage):
    marks = {
        "wenchang-id": "0" * 20,
        "wenchang-format": "2",
        "wenchang-min-writer": "1",
        "wenchang-later": "kept",
    }
    stub.put("a", b"newer", marks)
    version = storage.get("a").version
    assert version.endswith(":x")
    for write in (
        lambda: storage.put_if_version("a", b"x", {"n": "1"}, storage.get("a").version),
        lambda: storage.put("a", b"y", {"n": "2"}),
    ):
        version = write()
        assert stub.objects["a"].metadata["wenchang-later"] == "kept"
        assert storage.get("a").version == version
        assert "wenchang-later" not in storage.get("a").metadata
    with pytest.raises(PreconditionFailedError):
        storage.put_if_version("a", b"x", {}, version.removesuffix(":x") + "1:x")
    storage.delete_if_version("a", version)


# --- missing things ------------------------------------------------------------------------------


def test_init_fail_a_missing_bucket_is_no_missing_object(stub, open_at):
    storage = open_at(stub.url, bucket="no-such-bucket")
    for call in (
        lambda: storage.get("a"),
        lambda: storage.put("a", b"x", {}),
        lambda: storage.put_if_version("a", b"x", {}, None),
        lambda: storage.put_if_version("a", b"x", {}, "17"),
        lambda: storage.delete_if_version("a", "17"),
        lambda: storage.list_page("", None, 5),
    ):
        with pytest.raises(StorageRejectedError, match="no such bucket") as caught:
            call()
        assert caught.value.kind == "missing_container"
        assert "no-such-bucket" not in str(caught.value)


def test_cas_replace_a_missing_object_is_a_conflict(stub, storage):
    for call in (
        lambda: storage.put_if_version("a", b"x", {}, "17"),
        lambda: storage.delete_if_version("a", "17"),
    ):
        with pytest.raises(PreconditionFailedError) as caught:
            call()
        assert caught.value.current is None
    assert storage.get("a") is None


def test_get_atomic_a_read_that_writers_overtake_is_begun_anew(stub, storage):
    storage.put_if_version("a", b"0", {"n": "0"}, None)
    numbers = itertools.count(1)

    def overtake(asked):
        number = next(numbers) if asked.kind == "body" else 9
        if number < 6:
            stub.put("a", b"%d" % number, {"n": str(number)})

    stub.instead = overtake
    found = storage.get("a")
    assert (found.data, found.metadata) == (b"5", {"n": "5"})


def test_get_absent_a_read_that_a_delete_overtakes_is_absent(stub, storage):
    storage.put_if_version("a", b"0", {}, None)

    def delete_first(asked):
        if asked.kind == "body":
            stub.objects.pop("a", None)

    stub.instead = delete_first
    assert storage.get("a") is None


# --- busy, bare, torn, silent --------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_b11_too_many_requests_thrice_and_then_success(stub, storage, behind, kind):
    proxy, handle = behind
    call = call_of(kind, handle, storage)
    busy = gcs_error(429, "rateLimitExceeded")
    proxy.script(Rule(fault=busy, match=WRITES, times=3))
    call()
    found = storage.get("k")
    assert found is None if kind == "delete" else found.data == b"ours"


@pytest.mark.parametrize("kind", KINDS)
def test_b11_too_many_requests_for_ever_is_an_outage_and_no_conflict(stub, storage, behind, kind):
    proxy, handle = behind
    call = call_of(kind, handle, storage)
    proxy.script(Rule(fault=gcs_error(429, "rateLimitExceeded"), match=WRITES, times=None))
    with pytest.raises(BackendUnavailableError) as caught:
        call()
    assert (caught.value.reason, caught.value.outcome) == ("unavailable", "not_applied")
    assert caught.value.__cause__ is not None
    assert proxy.log.total > 3


def test_b11_the_wait_that_the_service_asks_for_is_kept(behind):
    proxy, storage = behind
    proxy.script(Rule(fault=gcs_error(429, "rateLimitExceeded", retry_after=60), times=None))
    with pytest.raises(BackendUnavailableError) as caught:
        storage.put_if_version("k", b"x", {}, None)
    assert caught.value.outcome == "not_applied"
    assert proxy.log.total == 1, "a wait beyond the deadline is not begun"


@pytest.mark.parametrize("times", [1, None])
@pytest.mark.parametrize(
    "fault",
    [Fault.answer_in_front(503), Fault.drop_answer(), Fault.hang()],
    ids=lambda one: one.name,
)
def test_out_unknown_a_put_that_could_not_look_first_was_not_sent(
    stub, storage, behind, fault, times
):
    proxy, handle = behind
    call = call_of("put", handle, storage)
    stub.kinds()
    proxy.script(Rule(fault=fault, match=matching("GET"), times=times))
    if times == 1:
        assert call() == storage.get("k").version
        return
    with pytest.raises(BackendUnavailableError) as caught:
        call()
    assert caught.value.outcome == "not_applied"
    assert "upload" not in stub.kinds()


def test_out_mapped_a_put_that_may_not_look_first_is_rejected(stub, storage):
    stub.instead = lambda asked: refusal(403, "forbidden") if asked.kind == "head" else None
    with pytest.raises(StorageRejectedError) as caught:
        storage.put("k", b"x", {})
    assert caught.value.kind == "permission"
    assert stub.kinds() == ["head"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("status", [429, 500, 503])
def test_out_landed_a_bare_error_behind_a_landed_write_is_success(
    stub, storage, behind, kind, status
):
    proxy, handle = behind
    call = call_of(kind, handle, storage)
    proxy.script(Rule(fault=Fault.answer_after(status), match=WRITES))
    version = call()
    found = storage.get("k")
    assert found is None if kind == "delete" else (found.data, found.version) == (b"ours", version)


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [("put", "unknown"), ("create", "unknown"), ("replace", "landed"), ("delete", "landed")],
)
def test_out_unknown_after_a_bare_error_only_what_cannot_hurt_is_sent_again(
    stub, storage, behind, kind, outcome
):
    proxy, handle = behind
    call = call_of(kind, handle, storage)
    stub.kinds()
    proxy.script(Rule(fault=Fault.answer_in_front(503), match=WRITES))
    if outcome == "unknown":
        with pytest.raises(BackendUnavailableError) as caught:
            call()
        assert caught.value.outcome == "unknown"
    else:
        call()
    sent = [one for one in stub.kinds() if one in {"upload", "delete"}]
    assert len(sent) == (outcome == "landed")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "fault",
    [Fault.tear_head(), Fault.truncate_body(), Fault.drop_answer(), Fault.hang(applied=True)],
    ids=lambda fault: fault.name,
)
def test_out_token_an_answer_that_ends_early_is_read_back(stub, storage, behind, kind, fault):
    proxy, handle = behind
    call = call_of(kind, handle, storage)
    proxy.script(Rule(fault=fault, match=WRITES))
    version = call()
    found = storage.get("k")
    assert found is None if kind == "delete" else (found.data, found.version) == (b"ours", version)


@pytest.mark.parametrize(
    "reads", [matching("GET"), matching("GET", path="alt=media")], ids=["head", "body"]
)
@pytest.mark.parametrize(
    "fault", [Fault.tear_head(), Fault.truncate_body(), Fault.hang()], ids=lambda fault: fault.name
)
def test_out_token_a_body_that_ends_early_is_read_again(storage, behind, fault, reads):
    proxy, handle = behind
    storage.put_if_version("a", b"the whole body", {"n": "1"}, None)
    proxy.script(Rule(fault=fault, match=reads))
    found = handle.get("a")
    assert (found.data, found.metadata) == (b"the whole body", {"n": "1"})


def test_out_bounded_a_service_that_never_answers_ends_every_call_in_time(stub, storage, behind):
    proxy, handle = behind
    call = call_of("replace", handle, storage)
    proxy.script(Rule(fault=Fault.hang(), times=None))
    for one in (call, lambda: handle.get("k"), lambda: handle.list_page("", None, 5)):
        with pytest.raises(BackendUnavailableError) as caught:
            one()
        assert caught.value.reason == "timeout"


def test_out_landed_a_landed_write_that_others_replaced_is_landed(stub, storage, behind):
    proxy, handle = behind
    before = storage.put_if_version("k", b"before", {}, None)

    def rivals():
        for body in (b"1", b"2"):
            found = storage.get("k")
            storage.put_if_version("k", body, {}, found.version)

    proxy.script(Rule(fault=Fault.drop_answer(), match=WRITES, interloper=rivals))
    version = handle.put_if_version("k", b"ours", {}, before)
    assert storage.get("k").data == b"2"
    assert int(before) < int(version) < int(storage.get("k").version)


def test_b01_a_create_whose_answer_was_lost_is_no_conflict_with_itself(stub, storage, behind):
    proxy, handle = behind
    proxy.script(Steps(faults=(Fault.drop_answer(),), match=WRITES))
    version = handle.put_if_version("k", b"ours", {}, None)
    assert storage.get("k").version == version
    assert stub.kinds().count("upload") == 1


def test_out_landed_a_request_that_a_proxy_sent_twice_is_no_conflict(stub, storage, behind):
    proxy, handle = behind
    for kind in ("create", "replace"):
        stub.objects.clear()
        call = call_of(kind, handle, storage)
        proxy.script(Rule(fault=Fault.deliver_twice(), match=WRITES))
        assert call() == storage.get("k").version


@pytest.mark.parametrize(
    "told",
    [{}, {"generation": "0x1"}, {"generation": "17"}, {"generation": "17", "metageneration": "2"}],
    ids=str,
)
def test_out_token_an_answer_without_a_whole_version_is_read_back(stub, storage, told):
    def forget(asked):
        if asked.kind == "upload":
            stub.put(asked.name, asked.body, {})
            return as_json({"name": asked.name, **told})
        return None

    stub.instead = forget
    with pytest.raises(BackendUnavailableError) as caught:
        storage.put_if_version("a", b"x", {}, None)
    assert caught.value.outcome == "unknown", "what is there has no id of ours"


# --- listings ------------------------------------------------------------------------------------


def keys_of(page):
    return [one.key for one in page]


def test_list_limit_short_and_empty_pages_end_no_listing(stub, storage):
    for key in "abcdefg":
        stub.put(key, b"")
    stub.page_size = 2
    assert keys_of(storage.list_page("", None, 5)) == list("abcde")


def test_list_limit_an_empty_page_with_a_token_is_followed(stub, storage):
    stub.put("a", b"")
    pages = iter([{"nextPageToken": "one"}, {"items": [], "nextPageToken": "two"}, None])

    def answer(asked):
        page = next(pages)
        items = {"items": [stub.objects["a"].told("a")]}
        return as_json(items if page is None else page)

    stub.instead = answer
    assert keys_of(storage.list_page("", None, 5)) == ["a"]
    assert [one.query.get("pageToken") for one in stub.asked] == [None, "one", "two"]


@pytest.mark.parametrize(
    "pages",
    [
        [(["b", "c"], "t"), (["b", "c"], "t"), (["b", "c"], "t")],
        [(["b", "a"], None)],
        [(["b", "b"], None)],
        [(["b"], "t"), (["a"], None)],
        [([], "t"), ([], "t")],
        [([], "t"), ([], "u"), ([], "t")],
        [(["elsewhere"], None)],
    ],
    ids=["repeated page", "unordered", "twice", "backwards", "repeated token", "circle", "prefix"],
)
def test_list_order_a_service_that_lists_wrongly_is_refused(stub, storage, pages):
    record = stub.put("x", b"")
    answers = iter(pages)
    prefix = "" if pages[0][0] != ["elsewhere"] else "here/"

    def answer(asked):
        names, token = next(answers)
        value = {"items": [record.told(name) for name in names]}
        return as_json(value | ({"nextPageToken": token} if token else {}))

    stub.instead = answer
    with pytest.raises(StorageRejectedError, match="cannot be used as storage") as caught:
        storage.list_page(prefix, None, 10)
    assert caught.value.kind == "unsupported"


def test_b48_a_start_that_the_service_ignores_repeats_nothing(stub, storage):
    for key in "abcd":
        stub.put(key, b"")

    def ignore_start(asked):
        asked.query.pop("startOffset", None)

    stub.instead = ignore_start
    assert keys_of(storage.list_page("", "b", 10)) == ["c", "d"]


@pytest.mark.parametrize("limit", [1000, 999])
def test_list_limit_a_full_page_behind_a_key_is_one_request(stub, storage, limit):
    for number in range(1002):
        stub.put(f"{number:04}", b"")
    page = storage.list_page("", "0000", limit)
    assert keys_of(page) == [f"{number:04}" for number in range(1, limit + 1)]
    assert stub.kinds() == ["list"]
    assert len(storage.list_page("", None, 5000)) == 1002
    assert stub.kinds() == ["list", "list"]


def test_b48_the_start_is_exclusive_for_every_neighbour(stub, storage):
    keys = ["a", "a ", "a !", "a!", "a-", "a/b", "a0", "b", "é", "￰", "😀"]
    for key in keys:
        stub.put(key, b"")
    for start in [*keys, "", "a/", "aa", "z", "\x7e" * 1000]:
        assert keys_of(storage.list_page("", start, 50)) == [key for key in keys if key > start]


def test_list_start_behind_a_text_longer_than_any_key(stub, storage):
    stub.put("文" * 300, b"")
    stub.put("文" * 299 + "斈", b"")
    assert keys_of(storage.list_page("", "文" * 341, 5)) == ["文" * 299 + "斈"]
    assert len(stub.asked[-1].query["startOffset"].encode()) <= 1024
    stub.kinds()
    assert storage.list_page("x" * 1000, None, 5) == []
    assert stub.kinds() == []


def test_list_page_asks_for_what_it_needs_and_no_more(stub, storage):
    stub.put("a", b"")
    storage.list_page("a", None, 7)
    query = stub.asked[0].query
    assert query["maxResults"] == "7"
    assert query["prefix"] == "a"
    assert query["fields"] == "items(name,generation,metageneration,metadata),nextPageToken"


def test_out_bounded_a_listing_of_many_pages_has_one_deadline(stub, open_at):
    storage = open_at(stub.url, deadline=0.3, attempt_timeout=0.3)
    numbers = itertools.count()

    def for_ever(asked):
        return as_json({"items": [], "nextPageToken": f"token-{next(numbers)}"})

    stub.instead = for_ever
    with pytest.raises(BackendUnavailableError) as caught:
        storage.list_page("", None, 10)
    assert caught.value.outcome == "not_applied"


def test_out_bounded_the_steps_of_a_call_share_its_deadline():
    policy = RetryPolicy(deadline=50.0, attempt_timeout=7.0)
    call = Call(policy)
    first, second = call.settler().policy, call.settler().policy
    assert 0 < second.deadline < first.deadline < policy.deadline
    assert first.attempt_timeout == 7.0


def test_a_prefix_of_its_own_is_put_before_every_key(stub, open_at):
    storage = open_at(stub.url, bucket="notes-bucket/agents/文")
    version = storage.put_if_version("a", b"x", {}, None)
    stub.put("agents/文2", b"another")
    stub.put("agents/文/", b"a folder")
    assert set(stub.objects) == {"agents/文/a", "agents/文2", "agents/文/"}
    assert keys_of(storage.list_page("", None, 5)) == ["a"]
    assert keys_of(storage.list_page("", "a", 5)) == []
    assert storage.list_versions("", None, 5) == [("a", version)]
    storage.delete_if_version("a", version)
