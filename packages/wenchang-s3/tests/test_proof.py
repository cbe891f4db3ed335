"""What an endpoint must honour before anything is written there, and tombstones where it half does."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from wenchang.errors import BackendUnavailableError
from wenchang.storage import PreconditionFailedError, StorageRejectedError
from wenchang.storage.keys import is_valid_key
from wenchang_s3.clients import OwnClient, is_amazon
from wenchang_s3.options import S3Options
from wenchang_s3.proof import EndpointProof


def calls(storage: Any) -> list[Any]:
    return [
        lambda: storage.put("k", b"", {}),
        lambda: storage.put_if_version("k", b"", {}, None),
        lambda: storage.put_if_version("k", b"", {}, "0" * 32),
        lambda: storage.delete_if_version("k", "0" * 32),
    ]


@pytest.mark.parametrize(
    ("ignored", "named"),
    [
        ({"create", "replace", "delete"}, "If-None-Match"),
        ({"create"}, "If-None-Match"),
        ({"replace"}, "If-Match"),
        ({"replace", "delete"}, "If-Match"),
        ({"absent"}, "absent"),
    ],
)
def test_nothing_is_written_where_conditions_are_ignored(
    fake: Any, open_fake: Any, ignored: set[str], named: str
) -> None:
    fake.ignored |= ignored
    fake.objects["k"] = b"untouched"
    for call in calls(open_fake()):
        with pytest.raises(StorageRejectedError, match=named) as caught:
            call()
        assert caught.value.kind == "unsupported"
    assert fake.objects == {"k": b"untouched"}


def test_nothing_is_written_where_conditional_puts_are_not_implemented(
    fake: Any, open_fake: Any, kit: Any
) -> None:
    fake.on("PUT", kit.error(501, "NotImplemented"), times=None)
    for call in calls(open_fake()):
        with pytest.raises(StorageRejectedError, match="conditional writes"):
            call()
    assert fake.objects == {}


def test_the_proof_is_given_once_and_leaves_nothing(fake: Any, open_fake: Any) -> None:
    storage = open_fake()
    storage.put_if_version("a", b"", {}, None)
    proof = len(fake.seen) - 1
    assert proof <= 12
    storage.put_if_version("b", b"", {}, None)
    assert len(fake.seen) == proof + 2
    assert sorted(fake.objects) == ["a", "b"]


def test_reading_needs_no_proof(fake: Any, open_fake: Any) -> None:
    fake.ignored |= {"create", "replace", "delete"}
    fake.objects["a"] = b"by hand"
    storage = open_fake()
    assert storage.get("a").data == b"by hand"
    assert len(storage.list_page("", None, 5)) == 1
    assert {seen.method for seen in fake.seen} == {"GET"}


def test_the_probe_lies_where_no_key_can(fake: Any, open_fake: Any) -> None:
    prefix = "/".join(["p" * 5] * 19) + "/" + "q" * 9
    storage = open_fake(prefix=prefix)
    names: set[str] = set()
    fake.on("PUT", lambda seen: names.add(seen.name), times=None)
    assert storage.prove() == EndpointProof(conditional_delete=True)
    assert names
    for name in names:
        assert name.startswith(prefix + "/wenchang-probe/")
        assert not is_valid_key(name.removeprefix(prefix + "/"))
        assert not is_valid_key(name)
        assert len(name.encode()) <= 1024
        assert name.count("/") < 250


@pytest.mark.parametrize("kind", ["PUT", "DELETE", "GET"])
def test_busy_and_lost_answers_do_not_spoil_the_proof(
    fake: Any, open_fake: Any, kit: Any, kind: str
) -> None:
    def lost(seen: Any) -> Any:
        fake.obey(seen)
        return kit.Answer(502)

    for _ in range(2):
        fake.on(kind, kit.error(503, "SlowDown"))
        fake.on(kind, lost)
    assert open_fake(deadline=20.0).prove() == EndpointProof(conditional_delete=True)
    assert fake.objects == {}


@pytest.mark.parametrize("ignored", ["create", "replace", "delete"])
def test_a_lost_answer_does_not_hide_an_ignored_condition(
    fake: Any, open_fake: Any, kit: Any, ignored: str
) -> None:
    fake.ignored.add(ignored)

    def lost(seen: Any) -> Any:
        fake.obey(seen)
        return kit.Answer(502)

    def every_second(seen: Any, count: list[int] = []) -> Any:  # noqa: B006 - a counter
        count.append(1)
        return lost(seen) if len(count) % 2 else None

    for kind in ("PUT", "DELETE"):
        fake.on(kind, every_second, times=None)
    storage = open_fake(deadline=20.0)
    if ignored == "delete":
        assert storage.prove() == EndpointProof(conditional_delete=False)
    else:
        with pytest.raises(StorageRejectedError):
            storage.prove()


def test_a_write_that_waits_for_a_proof_ends_at_its_deadline(fake: Any, open_fake: Any) -> None:
    storage = open_fake(deadline=0.5)
    fake.on("PUT", lambda _: fake.ended.wait(30) and None, times=None)
    endings: list[Any] = []

    def write() -> None:
        try:
            storage.put_if_version("k", b"", {}, None)
        except BackendUnavailableError as error:
            endings.append(error.outcome)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert endings == ["not_applied"] * 4
    fake.ended.set()


def test_refused_credentials_are_no_verdict_on_the_endpoint(
    fake: Any, open_fake: Any, kit: Any
) -> None:
    storage = open_fake()
    fake.on("PUT", kit.error(403, "InvalidAccessKeyId"))
    with pytest.raises(StorageRejectedError) as caught:
        storage.put("k", b"", {})
    assert caught.value.kind == "credentials"
    storage.put("k", b"", {})


@pytest.mark.parametrize(
    ("url", "own"),
    [
        (None, True),
        ("https://s3.eu-west-1.amazonaws.com", True),
        ("https://s3.cn-north-1.amazonaws.com.cn", True),
        ("http://s3.eu-west-1.amazonaws.com", False),
        ("https://amazonaws.com.example.org", False),
        ("https://evilamazonaws.com", False),
        ("https://storage.googleapis.com", False),
    ],
)
def test_only_amazons_own_endpoints_over_tls_need_no_proof(
    credentials: None, url: str | None, own: bool
) -> None:
    client = OwnClient(S3Options(region="eu-west-1", endpoint_url=url)).get()
    assert is_amazon(client) is own
    client.close()


# --- tombstones ----------------------------------------------------------------------------------


@pytest.fixture(params=["ignored", "refused"])
def halfway(request: pytest.FixtureRequest, fake: Any, proven: Any, kit: Any) -> Any:
    """Open handles on a server without conditional delete."""
    if request.param == "ignored":
        fake.ignored.add("delete")
    else:
        refuse = kit.error(501, "NotImplemented")
        fake.on("DELETE", lambda seen: refuse if "if-match" in seen.headers else None, times=None)
    return proven


def test_a_delete_without_conditional_delete_is_a_conditional_replace(
    fake: Any, halfway: Any
) -> None:
    storage = halfway()
    version = storage.put_if_version("k", b"body", {"n": "1"}, None)
    storage.delete_if_version("k", version)
    assert fake.kinds()[-1] == "PUT"
    assert "k" in fake.objects
    for reader in (storage, halfway()):
        assert reader.get("k") is None
        assert reader.list_page("", None, 5) == []
        assert reader.list_versions("", None, 5) == []
    for call in (
        lambda: storage.delete_if_version("k", version),
        lambda: storage.put_if_version("k", b"", {}, version),
    ):
        with pytest.raises(PreconditionFailedError) as caught:
            call()
        assert caught.value.current is None


def test_a_create_replaces_a_tombstone_and_only_one_creator_wins(fake: Any, halfway: Any) -> None:
    storage = halfway()
    version = storage.put_if_version("k", b"old", {}, None)
    storage.delete_if_version("k", version)
    created = storage.put_if_version("k", b"new", {}, None)
    assert created != version
    assert storage.get("k").data == b"new"
    with pytest.raises(PreconditionFailedError) as caught:
        storage.put_if_version("k", b"newer", {}, None)
    assert caught.value.current.version == created


def test_a_create_that_loses_to_another_over_a_tombstone_conflicts(fake: Any, halfway: Any) -> None:
    storage, rival = halfway(), halfway()
    storage.delete_if_version("k", storage.put_if_version("k", b"old", {}, None))

    def forestall(seen: Any) -> None:
        if "if-match" in seen.headers and b"rival" not in seen.body:
            fake.calm()
            rival.put_if_version("k", b"rival", {}, None)

    fake.on("PUT", forestall, times=None)
    with pytest.raises(PreconditionFailedError) as caught:
        storage.put_if_version("k", b"ours", {}, None)
    assert caught.value.current.data == b"rival"


def test_a_lost_answer_to_a_tombstone_is_settled_as_landed(
    fake: Any, halfway: Any, kit: Any
) -> None:
    storage = halfway()
    version = storage.put_if_version("k", b"old", {}, None)

    def lost(seen: Any) -> Any:
        fake.obey(seen)
        return kit.Answer(502)

    fake.on("PUT", lost)
    storage.delete_if_version("k", version)
    assert storage.get("k") is None


def test_pages_are_refilled_past_tombstones(fake: Any, halfway: Any) -> None:
    storage = halfway()
    for number in range(20):
        version = storage.put_if_version(f"k{number:02}", b"", {}, None)
        if number != 19:
            storage.delete_if_version(f"k{number:02}", version)
    fake.seen.clear()
    assert [entry.key for entry in storage.list_page("", None, 1)] == ["k19"]
    assert fake.kinds().count("LIST") <= 6


def test_tombstones_can_be_removed_while_nobody_writes(fake: Any, halfway: Any) -> None:
    storage = halfway()
    for name in ("a", "b", "c"):
        storage.put_if_version(name, b"", {}, None)
    storage.delete_if_version("b", storage.get("b").version)
    assert storage.remove_tombstones() == 1
    assert sorted(fake.objects) == ["a", "c"]
    assert storage.remove_tombstones() == 0


def test_tombstones_left_behind_are_honoured_where_deletes_are_real(
    fake: Any, halfway: Any
) -> None:
    storage = halfway()
    storage.delete_if_version("k", storage.put_if_version("k", b"old", {}, None))
    fake.calm()
    fake.ignored.clear()
    real = halfway()
    assert real.get("k") is None
    assert real.list_page("", None, 5) == []
    version = real.put_if_version("k", b"new", {}, None)
    real.delete_if_version("k", version)
    assert "k" not in fake.objects
