"""What one edit costs in a tree of 100, 10,000 and 100,000 files.

    python benchmarks/tree_scale.py [--rounds N] [--files N …]

On a storage in memory where each request takes 20 ms, and on SQLite in a temporary folder. Counted are
the bytes given to the storage and, on Linux, those that the process wrote to files (checkpoints of
SQLite's log included, so they are a mean). The tree is warm: it knows its root and the page and
content that it changes. Bounds: 1.5 times the smallest tree at 20 ms a
request, 3.5 times and 128 KiB on SQLite.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wenchang.files._objects import Objects, new_key
from wenchang.files._records import Record
from wenchang.files._root import encode_root, new_root, random_name
from wenchang.files._working import Working
from wenchang.files.edits import Edit
from wenchang.files.policy import TreePolicy
from wenchang.files.tree import FileTree
from wenchang.storage import Storage, open_storage
from wenchang.storage.memory import InMemoryStorage

SIZES = [100, 10_000, 100_000]
DELAY = 0.020
TEXT = "A line of a note that says something worth keeping.\n" * 12


class Slowed:
    """Passes everything on after a pause, and counts requests and bytes."""

    def __init__(self, inner: Storage, delay: float) -> None:
        self.inner = inner
        self.delay = delay
        self.requests = 0
        self.bytes = 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.inner, name)

        def call(*arguments: Any) -> Any:
            self.requests += 1
            time.sleep(self.delay)
            return method(*arguments)

        return call

    def put_if_version(
        self, key: str, data: bytes, metadata: Mapping[str, str], expected: str | None
    ) -> str:
        self.requests += 1
        self.bytes += len(data)
        time.sleep(self.delay)
        return self.inner.put_if_version(key, data, metadata, expected)


def fill(storage: Storage, base: str, files: int) -> list[str]:
    """Make a tree at one stroke, as its own splitting would; only some contents are really there."""
    policy = TreePolicy()
    objects = Objects(storage, base, policy)
    root = new_root()
    working = Working(root, lambda ref: objects.page(root, ref), objects.receipts)
    paths = [f"area{n % 50:02}/topic{n % 997:03}/note-{n:06}.md" for n in range(files)]
    edited = set(random.Random(1).sample(paths, 40))
    for number, path in enumerate(paths, start=1):
        key = new_key(root.incarnation, root.epoch)
        if path in edited:
            objects.upload(key, TEXT.encode(), {})
        working.put(Record(path, key, len(TEXT), 12, number, 1_780_000_000_000_000 + number))
    working.number = files
    # Pages three quarters full, as a tree that grew has them.
    grown = TreePolicy(page_entries=384)
    planned = working.plan(random_name(), grown, lambda: new_key(root.incarnation, root.epoch))
    for page in planned.pages:
        objects.upload(page.key, page.data, {})
    objects.put_root(planned.root, encode_root(planned.root), None)
    return sorted(edited)


def bytes_written() -> int:
    """Return what this process has written to files so far; 0 where the system does not say."""
    counters = Path("/proc/self/io")
    if not counters.exists():
        return 0
    fields = dict(line.split(": ") for line in counters.read_text("ascii").splitlines())
    return int(fields["wchar"])


def measure(inner: Storage, delay: float, files: int, rounds: int) -> dict[str, float]:
    """Return the median seconds of one edit, and the requests and bytes of it."""
    base = f"bench/{files}"
    paths = fill(inner, base, files)
    storage = Slowed(inner, 0.0)
    tree = FileTree(storage, base)
    # Steady state: the log of commits is full, receipts are there, pages and contents are known.
    for number in range(300):
        tree.edit(
            paths[number % 40], [Edit(old_text="keeping", new_text="keeping", replace_all=True)]
        )
    for number in range(280):
        old, new = ("line", "LINE") if number // 40 % 2 == 0 else ("LINE", "line")
        edit = Edit(old_text=old, new_text=new, replace_all=True)
        tree.edit(paths[number % 40], [edit], effect_key=str(number))
    tree.close()
    storage.delay = delay
    seconds, requests, given, grown = [], [], [], []
    for number in range(rounds):
        path = paths[number % 40]
        text = tree.read_file(path)[1]
        old, new = ("LINE", "line") if "LINE" in text else ("line", "LINE")
        storage.requests = storage.bytes = 0
        before = bytes_written()
        started = time.perf_counter()
        tree.edit(path, [Edit(old_text=old, new_text=new, replace_all=True)])
        seconds.append(time.perf_counter() - started)
        requests.append(storage.requests)
        given.append(storage.bytes)
        grown.append(bytes_written() - before)
    tree.close()
    return {
        "ms": statistics.median(seconds) * 1000,
        "requests": statistics.median(requests),
        "KiB given": statistics.median(given) / 1024,
        "KiB written": statistics.mean(grown) / 1024,
    }


def report(title: str, rows: dict[int, dict[str, float]]) -> None:
    print(f"\n{title}")
    first = rows[min(rows)]["ms"]
    for files, row in rows.items():
        figures = ", ".join(f"{value:.1f} {name}" for name, value in row.items())
        print(f"  {files:>7} files: {figures}, {row['ms'] / first:.2f} times")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--files", type=int, nargs="+", default=SIZES)
    options = parser.parse_args()
    slow = {
        files: measure(InMemoryStorage(), DELAY, files, options.rounds) for files in options.files
    }
    report(f"{DELAY * 1000:.0f} ms a request", slow)
    rows = {}
    for files in options.files:
        with (
            tempfile.TemporaryDirectory() as folder,
            open_storage(f"sqlite:///{folder}/bench.db") as storage,
        ):
            rows[files] = measure(storage, 0.0, files, options.rounds)
    report("SQLite", rows)


if __name__ == "__main__":
    main()
