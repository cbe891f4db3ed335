"""`list_page` while nothing else happens: prefix, order, start, limit, and what an entry carries."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from wenchang_conformance.exploring import Exploration, drawing
from wenchang_conformance.hooks import HookUnavailable
from wenchang_conformance.requirement import requirement
from wenchang_conformance.samples import ORDERED_KEYS, keys, shuffled

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wenchang.storage import ListedObject
    from wenchang_conformance.bench import Bench
    from wenchang_conformance.trace import TracedStorage

__all__ = ["ListingArea", "walk"]

_PREFIXED = (
    "a",
    "a/",
    "a/x",
    "ab",
    "abc/d",
    "A/x",
    "a%",
    "a%b",
    "a_",
    "a_b",
    "axb",
    "a*",
    "a?",
    "a[b]",
    "a[",
    "b/a",
    "cov-9/alpha",
    "cov-9-b",
    "cov-:",
    "caf\N{LATIN SMALL LETTER E WITH ACUTE}/x",
    "cafe\N{COMBINING ACUTE ACCENT}/x",
    "\N{TOP HAT}/x",
    "\uffef/x",
    "\U0010fffd/x",
)
_PREFIXES = (
    *("", "a", "a/", "ab", "A", "a%", "a_", "a*", "a?", "a[", "a[b", "%", "_", "*", "b", "a/x"),
    *("cov-9", "cov-", "cov-9/", "caf", "cafe", "caf\N{LATIN SMALL LETTER E WITH ACUTE}"),
    *("\N{TOP HAT}", "\uffef", "\U0010fffd", "nothing", "a/x/", "/", "."),
)


class ListingArea:
    """Cases about listings."""

    @requirement("list-prefix")
    def test_a_listing_holds_exactly_the_keys_with_the_prefix(self, bench: Bench) -> None:
        """Compare the set of listed keys with `str.startswith` for many prefixes."""
        storage = bench.open()
        stored = [key for key in _PREFIXED if not key.endswith("/")]
        for key in stored:
            storage.put(key, b"x", {})
        for prefix in _PREFIXES:
            listed = sorted(entry.key for entry in storage.list_page(prefix, None, 1000))
            expected = sorted(key for key in stored if key.startswith(prefix))
            _same_keys(bench, listed, expected, f"prefix {prefix!a} over {len(stored)} keys")

    @requirement("list-prefix")
    def test_the_empty_prefix_lists_everything(self, bench: Bench) -> None:
        """List an empty namespace, then a filled one."""
        storage = bench.open()
        bench.equal(list(storage.list_page("", None, 10)), [], "a listing of an empty namespace")
        names = ["a", "b/c", "d/e/f"]
        for name in names:
            storage.put(name, b"x", {})
        listed = sorted(entry.key for entry in storage.list_page("", None, 10))
        _same_keys(bench, listed, names, "prefix ''")

    @requirement("list-order")
    def test_keys_ascend_by_code_point(self, bench: Bench) -> None:
        """Store keys that each wrong order gets wrong, in a mixed order."""
        storage = bench.open()
        for key in shuffled(ORDERED_KEYS):
            storage.put(key, b"x", {})
        page = [entry.key for entry in storage.list_page("", None, 1000)]
        bench.require(
            page == sorted(page),
            f"{len(ORDERED_KEYS)} keys were listed in one page; {_first_disorder(page)}",
        )
        for prefix in ("a", "a/", "a/b"):
            page = [entry.key for entry in storage.list_page(prefix, None, 1000)]
            bench.require(
                page == sorted(page),
                f"a listing with prefix {prefix!r} is out of order; {_first_disorder(page)}",
            )

    @requirement("list-order")
    def test_any_keys_ascend_by_code_point(self, bench: Bench) -> None:
        """Store drawn keys one after the other and look at the order each time."""
        storage = bench.open()

        exploration = Exploration(bench.trace)

        @drawing(max(5, bench.sizes.examples // 4))
        @given(drawn=st.lists(keys(min(60, bench.hooks.key_bytes)), max_size=8))
        def check(drawn: list[str]) -> None:
            exploration.begin()
            with exploration.step():
                for key in drawn:
                    storage.put(key, b"x", {})
                page = [entry.key for entry in storage.list_page("", None, 1000)]
                bench.require(
                    page == sorted(page), f"a listing is out of order; {_first_disorder(page)}"
                )

        exploration.run(check)

    @requirement("list-start")
    def test_a_listing_begins_behind_its_start(self, bench: Bench) -> None:
        """Start at each key, at a neighbour of each key, and at texts that are no keys."""
        storage = bench.open()
        for key in shuffled(ORDERED_KEYS):
            storage.put(key, b"x", {})
        starts = [*ORDERED_KEYS, *(key + "!" for key in ORDERED_KEYS)]
        starts += ["", "a/", "/", "b", "\U0010ffff", "\ud7ff", "zzz", "%", "a%", "a b "]
        for start in starts:
            listed = sorted(entry.key for entry in storage.list_page("", start, 1000))
            expected = [key for key in ORDERED_KEYS if key > start]
            _same_keys(bench, listed, expected, f"start_after {start!a}")
        listed = sorted(entry.key for entry in storage.list_page("", None, 1000))
        _same_keys(bench, listed, list(ORDERED_KEYS), "start_after None")

    @requirement("list-start")
    def test_start_and_prefix_hold_together(self, bench: Bench) -> None:
        """Start before, inside and behind the range of a prefix."""
        storage = bench.open()
        for key in shuffled(ORDERED_KEYS):
            storage.put(key, b"x", {})
        for prefix in ("a", "a/", "a/b", "\N{TOP HAT}"):
            for start in ("", "A", "a", "a/", "a/b", "a/b-c", "ab", "b", "\N{TOP HAT}", "~"):
                listed = sorted(entry.key for entry in storage.list_page(prefix, start, 1000))
                expected = [key for key in ORDERED_KEYS if key.startswith(prefix) and key > start]
                _same_keys(bench, listed, expected, f"prefix {prefix!a}, start_after {start!a}")

    @requirement("list-limit")
    def test_a_page_is_full_unless_nothing_more_matches(self, bench: Bench) -> None:
        """Ask for each page size around the number of objects."""
        storage = bench.open()
        count = 12
        for number in range(count):
            storage.put(f"k/{number:03}", b"x", {})
        storage.put("j", b"x", {})
        storage.put("l", b"x", {})
        for limit in (1, 2, count - 1, count, count + 1, 1000, 1_000_000, 2**40):
            page = storage.list_page("k/", None, limit)
            bench.equal(
                len(page),
                min(limit, count),
                f"{count} keys match the prefix; entries of list_page with limit {limit}",
            )
        for left in range(count):
            start = f"k/{count - left - 1:03}"
            for limit in {1, left, left + 1} - {0}:
                page = storage.list_page("k/", start, limit)
                bench.equal(
                    len(page),
                    min(limit, left),
                    f"{left} keys match behind start_after {start!r}; entries with limit {limit}",
                )

    @requirement("list-limit")
    def test_a_page_may_be_larger_than_the_providers(self, bench: Bench) -> None:
        """Store more objects than some providers return at once, deleted ones among them."""
        storage = bench.open()
        count = bench.sizes.listing_objects
        for number in range(count):
            version = storage.put(f"n/{number:05}", b"", {})
            # Gaps of deleted objects make a provider's page short or empty.
            if number % 10 < 3:
                storage.delete_if_version(f"n/{number:05}", version)
        expected = [f"n/{number:05}" for number in range(count) if number % 10 >= 3]
        page = [entry.key for entry in storage.list_page("n/", None, 100_000)]
        bench.equal(
            len(page), len(expected), f"{count} objects, 3 of 10 deleted; entries in one page"
        )
        for limit in (7, len(expected) // 2, len(expected)):
            pages = list(walk(storage, "n/", limit))
            bench.require(
                all(len(page) == limit for page in pages[:-1]),
                f"walked with limit {limit}; page sizes {[len(page) for page in pages][:20]}, "
                "but only the last page may be shorter",
            )
            _same_keys(
                bench,
                sorted(entry.key for page in pages for entry in page),
                expected,
                f"all pages of {limit} over {len(expected)} objects",
            )

    @requirement("list-meta")
    def test_an_entry_carries_the_metadata_of_its_object(self, bench: Bench) -> None:
        """List after put, after a replace, and with metadata of every kind."""
        first, second = bench.open_two()
        maps: dict[str, dict[str, str]] = {
            "m/none": {},
            "m/one": {"n": "1"},
            "m/empty": {"n": ""},
            "m/text": {"description": "Pr\u00fcfung \u8a18\u61b6 \N{TOP HAT}", "b": " x  y "},
        }
        for key, metadata in maps.items():
            first.put(key, b"x", metadata)
        _same_metadata(bench, first, maps, "after put")
        _same_metadata(bench, second, maps, "after put through another handle")
        found = first.get("m/one")
        if found is not None:
            first.put_if_version("m/one", b"x", {"n": "2", "m": "3"}, found.version)
        maps["m/one"] = {"n": "2", "m": "3"}
        for name, storage in (("the writing", first), ("a second", second)):
            _same_metadata(
                bench, storage, maps, f"in {name} handle, listed before, after a replace"
            )
        first.put("m/text", b"x", {})
        maps["m/text"] = {}
        for name, storage in (("the writing", first), ("a second", second)):
            _same_metadata(bench, storage, maps, f"in {name} handle, after a put with an empty map")

    @requirement("list-meta")
    def test_a_listing_changes_nothing(self, bench: Bench) -> None:
        """Read an object before and after it was listed twice."""
        storage = bench.open()
        storage.put("a", b"body", {"n": "1"})
        before = storage.get("a")
        storage.list_page("", None, 10)
        storage.list_page("a", None, 1)
        after = storage.get("a")
        bench.require(
            before is not None
            and after is not None
            and (before.data, dict(before.metadata), before.version)
            == (after.data, dict(after.metadata), after.version),
            "an object was read, listed twice and read again; the two reads differ",
        )

    @requirement("list-meta")
    def test_an_entry_follows_a_delete_and_a_new_object(self, bench: Bench) -> None:
        """List, delete, list, re-create, list."""
        first, second = bench.open_two()
        version = first.put("a", b"x", {"n": "1"})
        for storage in (first, second):
            bench.equal(len(storage.list_page("", None, 5)), 1, "entries after one put")
        first.delete_if_version("a", version)
        for storage in (first, second):
            bench.equal(list(storage.list_page("", None, 5)), [], "a listing after the delete")
        first.put_if_version("a", b"y", {"n": "2"}, None)
        for storage in (first, second):
            listed = {entry.key: dict(entry.metadata) for entry in storage.list_page("", None, 5)}
            bench.equal(listed, {"a": {"n": "2"}}, "a listing after delete and re-create")

    @requirement("list-meta")
    def test_no_body_is_downloaded_for_an_entry(self, bench: Bench) -> None:
        """List large objects behind the fault injector and count the requests."""
        injector = bench.faults()
        storage = bench.open_behind(injector)
        for number in range(20):
            storage.put(f"b/{number:02}", b"x" * 1000, {"n": "1"})
        storage.list_page("b/", None, 100)
        before = injector.requests()
        storage.list_page("b/", None, 100)
        needed = injector.requests() - before
        bench.require(
            needed <= 10,
            f"a repeated listing of 20 unchanged objects in one page took {needed} requests; "
            "metadata is listed with the keys or cached under (key, version), never read one by one",
        )


def walk(storage: TracedStorage, prefix: str, limit: int) -> Iterable[Sequence[ListedObject]]:
    """Yield the pages of a listing to its end.

    Raises `HookUnavailable` if the listing does not advance, since other cases report that.
    """
    start: str | None = None
    while True:
        page = storage.list_page(prefix, start, limit)
        yield page
        if len(page) < limit:
            return
        if start is not None and page[-1].key <= start:
            msg = "the listing does not advance beyond its start"
            raise HookUnavailable(msg)
        start = page[-1].key


def _same_keys(bench: Bench, listed: list[str], expected: list[str], what: str) -> None:
    """Require that two sorted lists of keys are equal; name what differs."""
    __tracebackhide__ = True
    missing = [key for key in expected if key not in listed]
    extra = [key for key in listed if key not in expected]
    twice = sorted({key for key in listed if listed.count(key) > 1})
    bench.require(
        not missing and not extra and not twice,
        f"list_page with {what}\n  missing:    {missing[:10]!a}\n  unexpected: {extra[:10]!a}\n"
        f"  repeated:   {twice[:10]!a}",
    )


def _same_metadata(
    bench: Bench, storage: TracedStorage, maps: dict[str, dict[str, str]], what: str
) -> None:
    """Require that a listing shows exactly these maps."""
    __tracebackhide__ = True
    listed = {entry.key: dict(entry.metadata) for entry in storage.list_page("m/", None, 100)}
    for key, metadata in maps.items():
        bench.equal(listed.get(key), metadata, f"the metadata of {key!r} in a listing, {what}")


def _first_disorder(page: list[str]) -> str:
    """Name the first two neighbours that are in the wrong order."""
    for one, other in itertools.pairwise(page):
        if one > other:
            return (
                f"{one!a} stands before {other!a}, but their first code points that differ say "
                "the opposite"
            )
    return "it is in order"
