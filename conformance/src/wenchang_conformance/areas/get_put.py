"""`get` and `put`: absent keys, whole replacement, one write at a time."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from wenchang_conformance.racing import fine_switching, run_threads
from wenchang_conformance.requirement import requirement

if TYPE_CHECKING:
    from wenchang_conformance.bench import Bench

__all__ = ["GetPutArea"]


class GetPutArea:
    """Cases about reading and unconditional writing."""

    @requirement("get-absent")
    def test_an_absent_key_reads_as_none(self, bench: Bench) -> None:
        """Read keys that never existed, next to some that do."""
        storage = bench.open()
        bench.holds(storage, "absent", None, "nothing was ever stored")
        storage.put("folder/file.md", b"x", {})
        for key in ("folder", "folder/file", "folder/file.md/x", "folder/file.md2", "file.md"):
            bench.holds(storage, key, None, "only 'folder/file.md' was stored")

    @requirement("get-absent")
    def test_a_deleted_key_reads_as_none(self, bench: Bench) -> None:
        """Delete, then read through both handles."""
        first, second = bench.open_two()
        version = first.put("a", b"x", {})
        first.delete_if_version("a", version)
        bench.holds(first, "a", None, "the object was deleted")
        bench.holds(second, "a", None, "the object was deleted through another handle")

    @requirement("put-replace")
    def test_put_creates_and_replaces(self, bench: Bench) -> None:
        """Put twice, with a shorter body the second time, and read."""
        storage = bench.open()
        storage.put("a", b"a longer first body", {"n": "1"})
        bench.holds(storage, "a", b"a longer first body", "put on an absent key")
        bench.accepted("put on an existing key", storage.put, "a", b"short", {"m": "2"})
        bench.holds(storage, "a", b"short", "put on an existing key")

    @requirement("put-replace")
    def test_put_touches_no_other_key(self, bench: Bench) -> None:
        """Put keys around others, one inside the other's name."""
        storage = bench.open()
        names = ("n", "n/a", "n/a/b", "n/ab", "n/b", "na")
        for name in names:
            storage.put(name, name.encode(), {})
        storage.put("n/a", b"replaced", {})
        for name in names:
            expected = b"replaced" if name == "n/a" else name.encode()
            bench.holds(storage, name, expected, f"{', '.join(names)} were put, then 'n/a' again")

    @requirement("put-replace")
    def test_put_works_after_a_delete(self, bench: Bench) -> None:
        """Delete, then put again."""
        storage = bench.open()
        version = storage.put("a", b"x", {"n": "1"})
        storage.delete_if_version("a", version)
        bench.accepted("put after a delete", storage.put, "a", b"y", {})
        bench.holds(storage, "a", b"y", "put after a delete")

    @requirement("get-atomic")
    def test_body_metadata_and_version_belong_together(self, bench: Bench) -> None:
        """Read while writers replace; what was read must be one of the writes, whole."""
        first, second = bench.open_two()
        written: dict[str, int] = {}
        lock = threading.Lock()
        stop = threading.Event()
        ends = time.monotonic() + bench.sizes.race_seconds / 2
        # The sizes differ so much that a body read in two parts is caught.
        sizes = (10, 70_000, 300, 20_000)

        def write(which: int) -> None:
            storage = (first, second)[which % 2].inner
            number = which
            while time.monotonic() < ends:
                body = b"%09d " % number * (sizes[number % 4] // 10)
                version = storage.put("a", body, {"number": str(number)})
                with lock:
                    written[version] = number
                number += 2
            stop.set()

        observed: list[tuple[bytes, str, str]] = []

        def read(which: int) -> None:
            storage = (first, second)[which % 2].inner
            while not stop.is_set():
                found = storage.get("a")
                if found is not None:
                    observed.append(
                        (found.data[:10], found.metadata.get("number", ""), found.version)
                    )
                    _whole(bench, found.data, found.metadata.get("number", ""), found.version)

        with fine_switching():
            run_threads(
                bench, [lambda: write(0), lambda: write(1), lambda: read(0), lambda: read(1)]
            )
        for head, number, version in observed:
            bench.require(
                version not in written or written[version] == int(number),
                f"get returned version {version[:40]!a} with the body {head!r}… and metadata of write "
                f"{number}, but that version was given to write {written.get(version)}",
            )


def _whole(bench: Bench, data: bytes, number: str, version: str) -> None:
    """Require that a body is one whole write of that number."""
    numbers = set(data.split())
    bench.require(
        len(numbers) == 1 and len(data) % 10 == 0 and int(next(iter(numbers))) == int(number or -1),
        f"two handles put bodies that repeat their own number, with the number as metadata; get "
        f"returned version {version[:40]!a} with metadata number={number} and a body of {len(data)} "
        f"bytes with the numbers {sorted(numbers)[:4]}",
    )
