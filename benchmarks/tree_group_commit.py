"""How much faster 50 threads append to one tree than one thread doing the 50 one after another.

    python benchmarks/tree_group_commit.py [--threads N] [--rounds N]

Each request takes 20 ms. Once all append to one file, once each to a file of its own. Bound: 5 times,
and nothing lost.
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from wenchang.files.tree import FileTree
from wenchang.storage.memory import InMemoryStorage

DELAY = 0.020


class Slowed:
    """Passes everything on after a pause, and counts commits."""

    def __init__(self, inner: InMemoryStorage) -> None:
        self.inner = inner
        self.commits = 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.inner, name)

        def call(key: str, *arguments: Any) -> Any:
            time.sleep(DELAY)
            self.commits += name == "put_if_version" and key.endswith("/root")
            return method(key, *arguments)

        return call


def in_turn(calls: Sequence[Callable[[], object]]) -> None:
    for call in calls:
        call()


def at_once(calls: Sequence[Callable[[], object]]) -> None:
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], object]) -> None:
        barrier.wait()
        call()

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def measure(
    how: Callable[[Sequence[Callable[[], object]]], None], threads: int, *, apart: bool
) -> tuple[float, int]:
    """Return seconds and commits of all the appends, after checking that each is there once."""
    storage = Slowed(InMemoryStorage())
    tree = FileTree(storage, "bench/group")
    paths = [f"file {number}" if apart else "file" for number in range(threads)]
    for path in sorted(set(paths)):
        tree.create(path, "")
    storage.commits = 0
    calls = [
        lambda path=path, number=number: tree.append(path, f"<{number}>")
        for number, path in enumerate(paths)
    ]
    started = time.perf_counter()
    how(calls)
    seconds = time.perf_counter() - started
    for number, path in enumerate(paths):
        assert tree.read_file(path)[1].count(f"<{number}>") == 1
    tree.close()
    return seconds, storage.commits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for apart in (False, True):
        slow = [measure(in_turn, options.threads, apart=apart) for _ in range(options.rounds)]
        fast = [measure(at_once, options.threads, apart=apart) for _ in range(options.rounds)]
        before = statistics.median(seconds for seconds, _ in slow)
        after = statistics.median(seconds for seconds, _ in fast)
        where = "files of their own" if apart else "one file"
        print(
            f"{options.threads} appends to {where}: one after another {before:.2f} s in "
            f"{slow[0][1]} commits, at once {after:.2f} s in {fast[0][1]}: {before / after:.1f} times"
        )


if __name__ == "__main__":
    main()
