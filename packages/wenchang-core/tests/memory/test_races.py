"""Many threads on one file, one entity, one store."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from wenchang.core import MemoryStore
from wenchang.errors import (
    FileQuotaExceededError,
    NotFoundError,
    ReplaceFactMatchError,
    VersionConflictError,
)
from wenchang.metadata import FileMetadata
from wenchang.transport import InProcessClient

MakeStore = Callable[..., MemoryStore]
Meta = Callable[..., FileMetadata]

TEA = "user/u-1/prefs/tea.md"
THREADS = 8


@pytest.fixture(autouse=True)
def _quick_switches() -> Iterator[None]:
    """Let threads alternate often enough to meet inside of one operation."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def race(work: Callable[[int], Any], threads: int = THREADS) -> list[Any]:
    """Run `work` in as many threads, which begin together; return what each returned or raised."""
    barrier = threading.Barrier(threads)
    results: list[Any] = [None] * threads

    def run(number: int) -> None:
        try:
            barrier.wait(10)
            results[number] = work(number)
        except Exception as error:
            results[number] = error

    started = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join(60)
    assert not any(thread.is_alive() for thread in started)
    return results


@pytest.mark.parametrize("shared", [False, True])
def test_every_acknowledged_line_is_there_exactly_once(
    make_store: MakeStore, meta: Meta, *, shared: bool
) -> None:
    common = make_store()
    common.write_file(TEA, "", meta(), None, source="t")
    conflicts = Counter[int]()
    all_have_read = threading.Barrier(THREADS)

    def append(number: int) -> list[str]:
        client = InProcessClient(common if shared else make_store())
        version = client.read_file(TEA).version
        all_have_read.wait(10)
        done: list[str] = []
        for round_ in range(12):
            line = f"- [observed] {number} in round {round_}"
            while True:
                try:
                    version = client.append_line(TEA, line, version, source="t").version
                except VersionConflictError as conflict:
                    conflicts[number] += 1
                    version = conflict.version
                else:
                    done.append(line)
                    break
        return done

    acknowledged = [line for lines in race(append) for line in lines]
    assert len(acknowledged) == THREADS * 12
    assert sorted(common.read_file(TEA).content.splitlines()) == sorted(acknowledged)
    assert sum(conflicts.values()) > 0, "the racers did not overlap"


def test_one_of_many_creators_wins_and_the_others_see_its_file(
    make_store: MakeStore, meta: Meta
) -> None:
    results = race(lambda n: make_store().write_file(TEA, f"by {n}", meta(), None, source="t"))
    winners = [result for result in results if not isinstance(result, Exception)]
    losers = [result for result in results if isinstance(result, VersionConflictError)]
    assert (len(winners), len(losers)) == (1, THREADS - 1)
    assert {loser.content for loser in losers} == {winners[0].content}


def test_one_of_many_deleters_wins_and_the_others_find_nothing(
    make_store: MakeStore, create: Callable[..., Any]
) -> None:
    file = create(TEA)
    results = race(lambda _number: make_store().delete_file(TEA, file.version))
    assert results.count(None) == 1
    assert sum(isinstance(result, NotFoundError) for result in results) == THREADS - 1


def test_each_change_that_is_acknowledged_is_applied_exactly_once(
    make_store: MakeStore, meta: Meta
) -> None:
    """Everyone turns its own word; a conflict after three overtaken attempts is repeated."""
    common = make_store()
    words = [f"word{number:02}." for number in range(THREADS)]
    version = common.write_file(TEA, "\n".join(words), meta(), None, source="t").version

    def change(number: int) -> int:
        store = make_store()
        at = version
        for round_ in range(6):
            old = words[number] if round_ == 0 else f"{words[number]}{round_}"
            while True:
                try:
                    new = f"{words[number]}{round_ + 1}"
                    at = store.replace_fact(TEA, old, new, at, source="t").version
                except VersionConflictError as conflict:
                    at = conflict.version
                else:
                    break
        return number

    assert sorted(race(change)) == list(range(THREADS))
    assert common.read_file(TEA).content == "\n".join(f"{word}6" for word in words)


def test_of_many_who_turn_the_same_word_one_succeeds(make_store: MakeStore, meta: Meta) -> None:
    version = make_store().write_file(TEA, "X", meta(), None, source="t").version
    results = race(
        lambda n: make_store().replace_fact(TEA, "X", f"by {n}", version, source="t").content
    )
    winners = [result for result in results if isinstance(result, str)]
    assert len(winners) == 1
    others = [result for result in results if not isinstance(result, str)]
    assert all(isinstance(o, VersionConflictError | ReplaceFactMatchError) for o in others)
    assert make_store().read_file(TEA).content == winners[0]


def test_racing_creates_overshoot_the_cap_by_fewer_than_the_racers(
    make_store: MakeStore, meta: Meta
) -> None:
    cap = 4

    def create(number: int) -> str:
        store = make_store(max_files_per_entity=cap)
        for round_ in range(cap):
            store.write_file(f"user/u-1/a/{number}-{round_}.md", "", meta(), None, source="t")
        return "done"

    results = race(create)
    files = len(make_store().get_memory_index({"user": "u-1"}).entries)
    assert cap <= files < cap + THREADS
    assert all(r == "done" or isinstance(r, FileQuotaExceededError) for r in results)
