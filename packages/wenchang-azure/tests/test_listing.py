"""Listings against a service that does what no emulator does."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from wenchang.errors import BackendUnavailableError
from wenchang.storage import StorageRejectedError
from wenchang.storage.keys import UNREADABLE_METADATA
from wenchang_azure.names import encode_name

KEYS = [f"notes/{number:03d}.md" for number in range(60)]


class Container:
    """Names in the service's order, served in pages of its own choice."""

    def __init__(
        self,
        replies: Any,
        keys: Sequence[str],
        *,
        page: int = 5_000,
        start_from: str = "honoured",
        metadata: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self.replies = replies
        self.names = sorted("root/" + encode_name(key) for key in keys)
        self.page = page
        self.start_from = start_from
        self.metadata = metadata or {}

    def __call__(self, asked: Any) -> Any:
        start = asked.query.get("startFrom")
        if start is not None and self.start_from == "refused":
            return self.replies.error(400, "InvalidQueryParameterValue")
        if start is not None and self.start_from == "refused bare":
            return self.replies.error(400)
        names = [name for name in self.names if name.startswith(asked.query.get("prefix", ""))]
        if start is not None and self.start_from == "honoured":
            names = [name for name in names if name >= start]
        at = int(asked.query.get("marker", "page-0").partition("-")[2])
        count = min(int(asked.query["maxresults"]), self.page)
        items = [(name, self.metadata.get(name, {})) for name in names[at : at + count]]
        more = f"page-{at + count}" if at + count < len(names) else ""
        return self.replies.page(items, more)


def keys(page: Sequence[Any]) -> list[str]:
    return [entry.key for entry in page]


@pytest.mark.parametrize("start_from", ["honoured", "ignored", "refused", "refused bare"])
def test_b47_a_listing_is_right_whatever_the_service_makes_of_start_from(
    stub: Any, replies: Any, start_from: str
):
    stub.answers["list"] = Container(replies, KEYS, start_from=start_from)
    storage = stub.open()
    for start in (None, KEYS[0], KEYS[30], "notes/0305", KEYS[-1], "a", "zzz"):
        expected = [key for key in KEYS if start is None or key > start]
        before = len(stub.asked)
        assert keys(storage.list_page("", start, 100)) == expected
        assert keys(storage.list_page("notes/", start, 7)) == expected[:7]
        assert len(stub.asked) - before <= 6


def test_b48_the_start_itself_is_never_repeated(stub: Any, replies: Any):
    stub.answers["list"] = Container(replies, KEYS)
    storage = stub.open()
    seen: list[str] = []
    while page := storage.list_page("", seen[-1] if seen else None, 7):
        seen += keys(page)
    assert seen == KEYS
    # One request a page, and one that finds nothing more.
    assert len(stub.kinds()) == 10


def test_a_service_that_ignores_start_from_is_not_asked_for_it_again(stub: Any, replies: Any):
    stub.answers["list"] = Container(replies, KEYS, start_from="refused")
    storage = stub.open()
    storage.list_page("", KEYS[10], 5)
    storage.list_page("", KEYS[20], 5)
    assert [asked.query.get("startFrom") is not None for asked in stub.asked[1:]] == [
        True,
        False,
        False,
        False,
    ]


def test_an_older_service_version_is_never_asked_for_it(stub: Any, replies: Any):
    stub.answers["list"] = Container(replies, KEYS, start_from="refused")
    storage = stub.open(api_version="2025-11-05")
    assert keys(storage.list_page("", KEYS[57], 5)) == KEYS[58:]
    assert len(stub.kinds()) == 1
    assert stub.asked[-1].headers["x-ms-version"] == "2025-11-05"


def test_without_start_from_a_far_page_takes_large_answers(
    stub: Any, replies: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("wenchang_azure.listing._MAX_ANSWER", 200)
    many = [f"{number:05d}" for number in range(600)]
    stub.answers["list"] = Container(replies, many, start_from="ignored")
    storage = stub.open()
    assert keys(storage.list_page("", many[550], 10)) == many[551:561]
    # The first answer shows that the service does not help, three large ones lead to the start.
    assert len(stub.kinds()) == 4


def test_list_limit_short_pages_of_the_service_are_refilled(stub: Any, replies: Any):
    stub.answers["list"] = Container(replies, KEYS, page=7)
    storage = stub.open()
    assert keys(storage.list_page("", None, 40)) == KEYS[:40]
    assert keys(storage.list_page("", KEYS[3], 40)) == KEYS[4:44]
    assert len(stub.kinds()) == 12


def test_list_limit_an_empty_page_with_a_marker_does_not_end_a_listing(stub: Any, replies: Any):
    pages = {None: ([], "m1"), "m1": ([], "m2"), "m2": (["root/a"], "m3"), "m3": ([], "")}
    stub.answers["list"] = lambda asked: replies.page(*pages[asked.query.get("marker")])
    assert keys(stub.open().list_page("", None, 10)) == ["a"]
    assert len(stub.kinds()) == 4


def test_a_repeated_marker_ends_in_an_error_and_not_in_a_loop(stub: Any, replies: Any):
    stub.answers["list"] = lambda asked: replies.page([], "again")
    with pytest.raises(StorageRejectedError, match="repeats"):
        stub.open().list_page("", None, 10)
    assert len(stub.kinds()) == 2


@pytest.mark.parametrize(
    "names", [["root/a/b", "root/a-b"], ["root/b", "root/a"], ["root/a", "root/a"]]
)
def test_b46_an_order_of_the_service_s_own_is_refused(stub: Any, replies: Any, names: list[str]):
    stub.answers["list"] = lambda asked: replies.page(names)
    with pytest.raises(StorageRejectedError) as caught:
        stub.open().list_page("", None, 10)
    assert caught.value.kind == "unsupported"
    assert "hierarchical namespace" in str(caught.value)


def test_b46_the_order_is_checked_from_page_to_page(stub: Any, replies: Any):
    pages = {None: (["root/b"], "m1"), "m1": (["root/a"], "")}
    stub.answers["list"] = lambda asked: replies.page(*pages[asked.query.get("marker")])
    with pytest.raises(StorageRejectedError):
        stub.open().list_page("", None, 10)


def test_b46_entries_of_folders_are_left_out(stub: Any, replies: Any):
    folder = {"hdi_isfolder": "true"}
    stub.answers["list"] = lambda asked: replies.page(
        ["root/a/b", ("root/c", folder), ("root/d", {"HDI_IsFolder": "True"}), "root/e"]
    )
    assert keys(stub.open().list_page("", None, 10)) == ["a/b", "e"]


def test_obj_foreign_names_that_no_key_has_are_left_out_and_hide_nothing(stub: Any, replies: Any):
    # In the order of UTF-16, in which a raw emoji stands before U+FB01.
    names = ["root/", "root/a//b", "root/notes/", "root/ok", "root/x\\y", "root/😀", "root/\ufb01"]
    stub.answers["list"] = lambda asked: replies.page(names)
    assert keys(stub.open().list_page("", None, 10)) == ["ok"]


def test_obj_foreign_damaged_metadata_hides_neither_the_object_nor_its_neighbours(
    stub: Any, replies: Any
):
    names = ["root/a", ("root/b", {"wenchang": "?"}), ("root/c", {"wenchang": ""}), "root/d"]
    stub.answers["list"] = lambda asked: replies.page(names)
    page = stub.open().list_page("", None, 10)
    assert keys(page) == ["a", "b", "c", "d"]
    assert [list(entry.metadata) for entry in page] == [
        [],
        [UNREADABLE_METADATA],
        [UNREADABLE_METADATA],
        [],
    ]


def test_a_prefix_that_no_key_has_asks_nothing(stub: Any):
    storage = stub.open()
    for prefix in ("a\\", "a" * 901, "é" * 451):
        assert storage.list_page(prefix, None, 10) == []
    assert storage.list_page("a", "b", 10) == []
    assert stub.asked == []


def test_a_start_longer_than_any_name_is_cut_to_one(stub: Any, replies: Any):
    stub.answers["list"] = Container(replies, ["a" * 900, "b"])
    assert keys(stub.open().list_page("", "a" * 1024, 10)) == ["b"]
    assert len(stub.asked[-1].query["startFrom"]) == 1024


def test_version_same_an_etag_is_told_alike_quoted_or_bare(stub: Any, replies: Any):
    for etag in ("0x8DC", '"0x8DC"'):
        stub.answers["list"] = lambda asked, etag=etag: replies.page(["root/a"], etag=etag)
        assert stub.open().list_page("", None, 1)[0].version == "0x8DC"


def test_a_listing_with_a_torn_etag_is_no_answer(stub: Any, replies: Any):
    stub.answers["list"] = lambda asked: replies.page(["root/a"], etag='"0x8DC')
    with pytest.raises(BackendUnavailableError):
        stub.open().list_page("", None, 1)


def test_out_bounded_a_listing_of_many_pages_ends_at_its_deadline(stub: Any, replies: Any):
    def slow(asked: Any) -> Any:
        stub.closing.wait(0.3)
        at = int(asked.query.get("marker", "0"))
        return replies.page([], str(at + 1))

    stub.answers["list"] = slow
    began = time.monotonic()
    with pytest.raises(BackendUnavailableError) as caught:
        stub.open(deadline=1.0).list_page("", None, 10)
    assert caught.value.outcome == "not_applied"
    assert time.monotonic() - began < 20
    assert len(stub.kinds()) <= 5
