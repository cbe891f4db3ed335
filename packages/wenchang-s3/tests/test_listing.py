"""Listings over servers that page oddly, and over objects that move while they are listed."""

from __future__ import annotations

from typing import Any

import pytest

from wenchang.errors import BackendUnavailableError
from wenchang.storage import StorageRejectedError
from wenchang.storage.envelope import encode


def keys(page: Any) -> list[str]:
    return [entry.key for entry in page]


def fill(storage: Any, *names: str) -> None:
    for name in names:
        storage.put_if_version(name, name.encode(), {"n": name}, None)


def stored(fake: Any, *names: str) -> list[tuple[str, bytes]]:
    return [(name, fake.objects[name]) for name in names]


def test_a_page_that_says_there_is_more_but_not_where_goes_on_behind_its_last_key(
    fake: Any, proven: Any, kit: Any
) -> None:
    storage = proven()
    fill(storage, "a", "b", "c")
    fake.on("LIST", kit.listing(*stored(fake, "a"), truncated=True))
    fake.seen.clear()
    assert keys(storage.list_page("", None, 10)) == ["a", "b", "c"]
    assert [s.query.get("start-after") for s in fake.seen if s.kind == "LIST"] == [None, "a"]


def test_an_empty_page_with_a_token_does_not_end_the_listing(
    fake: Any, proven: Any, kit: Any
) -> None:
    storage = proven()
    fill(storage, "a", "b")
    fake.on("LIST", kit.listing(truncated=True, token="a"))
    assert keys(storage.list_page("", None, 10)) == ["b"]


@pytest.mark.parametrize("tokens", [["t", "t"], ["t", "u", "t"]])
def test_a_listing_that_goes_round_in_a_circle_is_refused(
    fake: Any, proven: Any, kit: Any, tokens: list[str]
) -> None:
    storage = proven()
    for token in tokens:
        fake.on("LIST", kit.listing(truncated=True, token=token))
    with pytest.raises(StorageRejectedError, match="circle") as caught:
        storage.list_page("", None, 10)
    assert caught.value.kind == "unsupported"


def test_an_empty_page_that_says_there_is_more_but_not_where_is_refused(
    fake: Any, proven: Any, kit: Any
) -> None:
    storage = proven()
    fake.on("LIST", kit.listing(truncated=True))
    with pytest.raises(StorageRejectedError, match="not where"):
        storage.list_page("", None, 10)


def test_a_listing_out_of_order_is_refused(fake: Any, proven: Any, kit: Any) -> None:
    storage = proven()
    fill(storage, "a", "b", "c")
    fake.on("LIST", kit.listing(*stored(fake, "b", "a", "c")))
    with pytest.raises(StorageRejectedError, match="order"):
        storage.list_page("", None, 10)


def test_pages_out_of_order_are_refused(fake: Any, proven: Any, kit: Any) -> None:
    storage = proven()
    fill(storage, "a", "b", "c")
    fake.on("LIST", kit.listing(*stored(fake, "b", "c"), truncated=True, token="x"))
    fake.on("LIST", kit.listing(*stored(fake, "a")))
    with pytest.raises(StorageRejectedError, match="order"):
        storage.list_page("", None, 10)


def test_a_server_that_ignores_the_start_gives_the_right_keys_all_the_same(
    fake: Any, proven: Any, kit: Any
) -> None:
    storage = proven()
    fill(storage, "a", "b", "c")
    fake.on("LIST", kit.listing(*stored(fake, "a", "b", "c")))
    assert keys(storage.list_page("", "a", 10)) == ["b", "c"]


def test_a_server_that_ignores_the_prefix_is_refused(fake: Any, proven: Any, kit: Any) -> None:
    storage = proven()
    fill(storage, "a", "b")
    fake.on("LIST", kit.listing(*stored(fake, "a", "b")))
    with pytest.raises(StorageRejectedError, match="prefix"):
        storage.list_page("b", None, 10)


def test_an_answer_that_is_no_listing_is_an_outage(fake: Any, proven: Any, kit: Any) -> None:
    storage = proven(deadline=0.4)
    fake.on("LIST", kit.Answer(200, {}, b"<html><body>welcome</body></html>"), times=None)
    with pytest.raises(BackendUnavailableError):
        storage.list_page("", None, 10)


def test_a_start_longer_than_any_key_is_compared_here(fake: Any, proven: Any) -> None:
    storage = proven()
    long = "ü" * 450
    fill(storage, "a", long, "z")
    assert keys(storage.list_page("", long + "more", 10)) == []
    assert keys(storage.list_page("", long[:-1] + "t" + "x" * 100, 10)) == [long]
    assert keys(storage.list_page("", "m" * 1000, 10)) == ["z", long]
    fake.seen.clear()
    assert keys(storage.list_page("p" * 901, None, 10)) == []
    assert fake.seen == []


# --- heads ---------------------------------------------------------------------------------------


def test_what_vanishes_before_its_head_is_read_is_left_out_and_the_page_refilled(
    fake: Any, proven: Any
) -> None:
    fill(proven(), "a", "b", "c", "d")
    storage = proven()
    fake.on("GET", lambda seen: fake.objects.pop("b", None) and None, times=None)
    assert keys(storage.list_page("", None, 3)) == ["a", "c", "d"]


def test_what_changes_before_its_head_is_read_is_reported_as_it_is_then(
    fake: Any, proven: Any
) -> None:
    writer, storage = proven(), proven(concurrency=1)
    fill(writer, "a", "b")
    before = writer.get("b").version
    changed: list[str] = []

    def change(seen: Any) -> None:
        if seen.name == "a" and not changed:
            changed.append(writer.put_if_version("b", b"new", {"n": "new"}, before))

    fake.on("GET", change, times=None)
    page = storage.list_page("", None, 10)
    assert [(e.key, e.metadata["n"], e.version) for e in page][1] == ("b", "new", changed[0])


def test_an_object_emptied_before_its_head_is_read_is_an_empty_foreign_object(
    fake: Any, proven: Any, kit: Any
) -> None:
    fill(proven(), "a")
    storage = proven()

    def empty(seen: Any) -> None:
        if "range" in seen.headers:
            fake.objects["a"] = b""

    fake.on("GET", empty, times=None)
    (entry,) = storage.list_page("", None, 10)
    assert (entry.metadata, entry.version) == ({}, kit.md5(b""))


def test_empty_foreign_objects_are_listed_without_a_look(fake: Any, proven: Any, kit: Any) -> None:
    storage = proven()
    fake.objects.update({"a": b"", "folder/": b"", "z": b""})
    assert [(e.key, e.metadata, e.version) for e in storage.list_page("", None, 10)] == [
        ("a", {}, kit.md5(b"")),
        ("z", {}, kit.md5(b"")),
    ]
    assert fake.kinds() == ["LIST"]


@pytest.mark.parametrize("size", [10, 4_500, 30_000])
@pytest.mark.parametrize("ranges", [True, False])
def test_heads_of_every_size_are_read_whole(
    fake: Any, proven: Any, size: int, ranges: bool
) -> None:
    if not ranges:
        fake.ignored.add("range")
    storage = proven()
    metadata = {"d": "\n" * min(size, 4_900)}
    lineage = tuple(("-", "v" * 250) for _ in range(16 if size > 20_000 else 0))
    extra = {"later": "x" * 4_000} if size > 20_000 else None
    block = encode(b"body" * 50_000, metadata, "0" * 20, lineage, extra=extra)
    fake.objects["a"] = block
    (entry,) = storage.list_page("", None, 10)
    assert entry.metadata == metadata
    assert entry.version == storage.get("a").version


def test_a_damaged_head_hides_no_neighbour(fake: Any, proven: Any) -> None:
    storage = proven()
    fill(storage, "a", "b", "c")
    fake.objects["b"] = fake.objects["b"].replace(b'"id":"', b'"id":"?')
    page = proven().list_page("", None, 10)
    assert keys(page) == ["a", "b", "c"]
    assert list(page[1].metadata) == ["wenchang-unreadable"]
    replaced = storage.put_if_version("b", b"repaired", {}, page[1].version)
    assert storage.get("b").version == replaced


def test_a_repeated_listing_is_one_request(fake: Any, proven: Any) -> None:
    fill(proven(), "a", "b", "c")
    storage = proven()
    first = storage.list_page("", None, 10)
    assert sorted(fake.kinds()) == ["GET", "GET", "GET", "LIST"]
    fake.seen.clear()
    assert storage.list_page("", None, 10) == first
    assert fake.kinds() == ["LIST"]


def test_own_writes_and_reads_need_no_head(fake: Any, proven: Any) -> None:
    fill(proven(), "a")
    storage = proven()
    storage.get("a")
    fill(storage, "b")
    fake.seen.clear()
    assert keys(storage.list_page("", None, 10)) == ["a", "b"]
    assert fake.kinds() == ["LIST"]


def test_a_busy_head_is_asked_for_again_and_the_others_are_not(
    fake: Any, proven: Any, kit: Any
) -> None:
    fill(proven(), "a", "b", "c")
    storage = proven(concurrency=1)
    busy = [kit.error(503, "SlowDown")]
    fake.on("GET", lambda seen: busy.pop() if busy and seen.name == "b" else None, times=None)
    assert keys(storage.list_page("", None, 10)) == ["a", "b", "c"]
    assert [seen.name for seen in fake.seen if seen.kind == "GET"] == ["a", "b", "b", "c"]


def test_a_denied_head_is_a_rejection(fake: Any, proven: Any, kit: Any) -> None:
    fill(proven(), "a", "b")
    fake.on("GET", kit.error(403, "AccessDenied"), times=None)
    with pytest.raises(StorageRejectedError) as caught:
        proven_storage(fake, proven, kit).list_page("", None, 10)
    assert caught.value.kind == "permission"


def proven_storage(fake: Any, proven: Any, kit: Any) -> Any:
    """Open a proven handle while answers to GET are being spoiled."""
    fake.calm()
    storage = proven()
    fake.on("GET", kit.error(403, "AccessDenied"), times=None)
    return storage


def test_the_cache_of_heads_is_bounded(fake: Any, proven: Any) -> None:
    storage = proven()
    storage._heads._max_bytes = 5_000
    fill(storage, *(f"k{n}" for n in range(50)))
    assert len(storage._heads._entries) < 10
    assert storage._heads._bytes <= 5_000
    assert len(storage.list_page("", None, 100)) == 50


def test_versions_are_listed_without_heads_where_deletes_are_real(fake: Any, proven: Any) -> None:
    fill(proven(prefix="p"), "a", "b")
    storage = proven(prefix="p")
    found = storage.list_versions("", None, 10)
    assert fake.kinds() == ["LIST"]
    assert found == [(e.key, e.version) for e in storage.list_page("", None, 10)]


def test_a_prefix_of_the_backend_is_invisible(fake: Any, proven: Any) -> None:
    storage = proven(prefix="team/äö")
    fill(storage, "a/b", "c")
    fake.objects["team/other"] = fake.objects["team/äöx"] = b"not below"
    assert keys(storage.list_page("", None, 10)) == ["a/b", "c"]
    assert keys(storage.list_page("a", None, 10)) == ["a/b"]
    assert keys(storage.list_page("", "a/b", 10)) == ["c"]
    assert "team/äö/a/b" in fake.objects
