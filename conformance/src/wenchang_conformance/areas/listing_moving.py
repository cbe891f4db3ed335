"""`list_page` while others write: stable, true at some moment, and nothing half-written."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from wenchang_conformance.racing import fine_switching, run_threads
from wenchang_conformance.requirement import requirement

if TYPE_CHECKING:
    from wenchang_conformance.bench import Bench

__all__ = ["MovingListingArea"]


class MovingListingArea:
    """Cases about listings and concurrent writes."""

    @requirement("list-stable")
    def test_keys_that_stay_appear_exactly_once_while_others_change(self, bench: Bench) -> None:
        """Walk page by page and write and delete around the border between two pages."""
        walker, writer = bench.open_two()
        stay = [f"s/{number:03}" for number in range(0, 60, 2)]
        for key in stay:
            walker.put(key, b"x", {})
        for limit in (1, 3, 7):
            seen: list[str] = []
            start: str | None = None
            turn = 0
            while True:
                page = walker.list_page("s/", start, limit)
                seen += [entry.key for entry in page]
                if len(page) < limit:
                    break
                start = page[-1].key
                # A key before the border, one behind it, and now and then a neighbour of the border.
                moved = [f"s/{(turn * 2 + 1) % 60:03}", f"s/{turn % 30 * 2 + 1:03}"]
                if start in stay:
                    moved.append(f"{start}-")
                for moving in moved:
                    found = writer.get(moving)
                    if found is None:
                        writer.put(moving, b"y", {})
                    else:
                        writer.delete_if_version(moving, found.version)
                turn += 1
                bench.require(turn < 500, "a listing does not end although its pages advance")
            counts = {key: seen.count(key) for key in stay}
            wrong = {key: count for key, count in counts.items() if count != 1}
            bench.equal(
                wrong, {}, f"walked with limit {limit} while others changed; keys not seen once"
            )

    @requirement("list-linear")
    def test_an_entry_was_true_at_some_moment_of_the_call(self, bench: Bench) -> None:
        """List while a writer replaces; versions that a listing shows must lie within its call."""
        lister, writer = bench.open_two()
        names = [f"l/{number}" for number in range(8)]
        lock = threading.Lock()
        history: dict[str, list[str]] = {name: [] for name in names}
        acknowledged: dict[str, int] = {}
        for name in names:
            history[name].append(writer.put(name, b"0", {"n": "0"}))
            acknowledged[name] = 0
        stop = threading.Event()
        ends = time.monotonic() + bench.sizes.race_seconds / 2

        def write() -> None:
            number = 0
            while time.monotonic() < ends:
                number += 1
                name = names[number % len(names)]
                version = writer.inner.put(name, b"%d" % number, {"n": str(len(history[name]))})
                with lock:
                    history[name].append(version)
                    acknowledged[name] = len(history[name]) - 1
            stop.set()

        def read() -> None:
            while not stop.is_set():
                with lock:
                    floor = dict(acknowledged)
                page = {entry.key: entry for entry in lister.inner.list_page("l/", None, 50)}
                for name in names:
                    bench.require(
                        name in page,
                        f"{name!r} exists all the time and is only replaced, but a listing left it out",
                    )
                    shown_as = int(page[name].metadata.get("n", "-1"))
                    bench.require(
                        shown_as >= floor[name],
                        f"a listing began after write {floor[name]} of {name!r} was acknowledged, "
                        f"but shows the metadata of write {shown_as}",
                    )

        with fine_switching():
            run_threads(bench, [write, read])

    @requirement("list-linear")
    def test_a_finished_write_is_in_the_next_listing(self, bench: Bench) -> None:
        """Write through one handle and list through the other, in turns."""
        writer, lister = bench.open_two()
        for number in range(20):
            version = writer.put("t", b"x", {"n": str(number)})
            listed = [
                (entry.version, dict(entry.metadata)) for entry in lister.list_page("t", None, 5)
            ]
            bench.equal(
                listed,
                [(version, {"n": str(number)})],
                f"write {number} was acknowledged, then listed through a second handle",
            )
            if number % 3 == 2:
                writer.delete_if_version("t", version)
                bench.equal(
                    list(lister.list_page("t", None, 5)),
                    [],
                    "the object was deleted, then listed through a second handle",
                )

    @requirement("list-clean")
    def test_only_objects_are_listed(self, bench: Bench) -> None:
        """Create, replace, delete and fail; then list everything that there is."""
        first, second = bench.open_two()
        version = first.put("a/b", b"x", {"n": "1"})
        version = second.put_if_version("a/b", b"y" * 100_000, {}, version)
        gone = first.put_if_version("a/gone", b"x", {}, None)
        second.delete_if_version("a/gone", gone)
        bench.conflict("a create over an existing key", first.put_if_version, "a/b", b"z", {}, None)
        for storage in (first, second, bench.open("third")):
            listed = [entry.key for entry in storage.list_page("", None, 1000)]
            bench.equal(
                listed,
                ["a/b"],
                "one object is left after create, replace, delete and a conflict; keys",
            )

    @requirement("list-clean")
    def test_nothing_half_written_is_listed_while_others_write(self, bench: Bench) -> None:
        """List while large objects are written and deleted."""
        lister, writer = bench.open_two()
        allowed = {"w/0", "w/1", "w/2"}
        stop = threading.Event()
        ends = time.monotonic() + bench.sizes.race_seconds / 3

        def write() -> None:
            number = 0
            while time.monotonic() < ends:
                key = f"w/{number % 3}"
                version = writer.inner.put(key, b"x" * 50_000, {"n": str(number)})
                if number % 2:
                    writer.inner.delete_if_version(key, version)
                number += 1
            stop.set()

        def read() -> None:
            while not stop.is_set():
                strangers = {entry.key for entry in lister.inner.list_page("", None, 100)} - allowed
                bench.require(
                    not strangers,
                    f"only {sorted(allowed)} were written, but a listing meanwhile showed {strangers!a}",
                )

        with fine_switching():
            run_threads(bench, [write, read])
