"""Races: threads, handles and processes on one key."""

from __future__ import annotations

import itertools
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from wenchang.storage import PreconditionFailedError
from wenchang_conformance.areas import racers
from wenchang_conformance.hooks import FaultKind, HookUnavailable
from wenchang_conformance.linearizability import (
    History,
    Recorder,
    RecordingStorage,
    Verdict,
    check,
)
from wenchang_conformance.racing import Result, fine_switching, race
from wenchang_conformance.requirement import requirement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from wenchang.storage import Storage
    from wenchang_conformance.bench import Bench

__all__ = ["ConcurrencyArea"]

_OVERLAP_SECONDS = 15.0


class ConcurrencyArea:
    """Cases about races."""

    @requirement("race-create")
    def test_of_many_creators_exactly_one_succeeds(self, bench: Bench) -> None:
        """Let threads over two handles create one key, in many rounds."""
        handles = [handle.inner for handle in bench.open_two()]
        rounds = _Rounds(bench)
        with fine_switching():
            for number in rounds:
                key = f"c/{number}"
                spans: list[tuple[int, int]] = []
                results = race(
                    bench,
                    [
                        partial(
                            _timed, spans, handles[n % 2].put_if_version, key, b"%d" % n, {}, None
                        )
                        for n in range(bench.sizes.threads)
                    ],
                )
                rounds.add(spans)
                winner = _only_winner(
                    bench, results, f"{len(results)} threads create {key!r} at once"
                )
                found = handles[0].get(key)
                bench.require(
                    found is not None
                    and (found.data, found.version) == (b"%d" % winner, results[winner].value),
                    f"{len(results)} threads create {key!r} at once; thread {winner} got the version "
                    f"{results[winner].value!r}, but the object is not its write",
                )

    @requirement("race-create")
    def test_of_many_creating_processes_exactly_one_succeeds(self, bench: Bench) -> None:
        """Let processes create the same keys in the same order."""
        rounds = min(bench.sizes.race_rounds, 50)
        spawned = [bench.spawn() for _ in range(bench.sizes.processes)]
        for number, process in enumerate(spawned):
            process.start(racers.create_each, number, rounds)
        wins: list[list[int]] = [process.receive() for process in spawned]
        for index in range(rounds):
            winners = [number for number, won in enumerate(wins) if index in won]
            bench.equal(len(winners), 1, f"{len(spawned)} processes create 'p/{index}'; winners")

    @requirement("race-cas")
    def test_a_counter_equals_the_number_of_successful_increments(self, bench: Bench) -> None:
        """Let threads over two handles increment a counter."""
        handles = [handle.inner for handle in bench.open_two()]
        handles[0].put("counter", b"0", {})
        goal = bench.sizes.counter_increments
        with fine_switching():
            results = race(
                bench,
                [
                    partial(racers.increment, handles[n % 2], "counter", goal)
                    for n in range(bench.sizes.threads)
                ],
            )
        _counted(bench, handles[0], results, f"{bench.sizes.threads} threads over two handles")

    @requirement("race-cas")
    def test_a_counter_of_several_processes_is_exact(self, bench: Bench) -> None:
        """Let processes increment a counter."""
        storage = bench.open()
        spawned = [bench.spawn() for _ in range(bench.sizes.processes)]
        storage.put("counter", b"0", {})
        goal = bench.sizes.counter_increments
        for process in spawned:
            process.start(racers.increment, "counter", goal)
        results = [Result(process.receive(), None) for process in spawned]
        _counted(bench, storage.inner, results, f"{len(spawned)} processes")

    @requirement("race-cas")
    def test_a_counter_is_exact_although_answers_are_lost(self, bench: Bench) -> None:
        """Let 8 threads increment while a tenth of all answers is lost and noticed at once.

        They start each increment together: then no call sees more than 7 other writes, so that the
        lineage of 16 pairs settles every outcome however long a thread has to wait for its turn.
        """
        injector = bench.faults(FaultKind.ANSWER_LOST)
        first, second = bench.open_behind(injector).inner, bench.open_behind(injector).inner
        first.put("counter", b"0", {})
        second.get("counter")
        injector.chaos({FaultKind.ANSWER_LOST: 0.1}, seed=11)
        results: list[Result[tuple[int, int]]] = []
        for _ in range(bench.sizes.counter_increments):
            results += race(
                bench,
                [partial(racers.increment, (first, second)[n % 2], "counter", 1) for n in range(8)],
            )
        injector.clear()
        _counted(
            bench, first, results, "8 threads, a tenth of the answers lost and noticed at once"
        )
        for result in results:
            bench.require(
                result.error is None and result.value == (1, 0),
                "8 threads increment a counter, a tenth of the answers is lost and noticed at once; "
                "each outcome can be settled, but (successes, unknown) of one increment are "
                f"{result}",
            )

    @requirement("race-cas")
    def test_a_counter_is_within_its_bounds_although_answers_hang(self, bench: Bench) -> None:
        """Let 8 threads increment while a tenth of all answers never comes."""
        injector = bench.faults(FaultKind.HANG_APPLIED)
        first, second = bench.open_behind(injector).inner, bench.open_behind(injector).inner
        first.put("counter", b"0", {})
        second.get("counter")
        injector.chaos({FaultKind.HANG_APPLIED: 0.1}, seed=12)
        goal = max(1, bench.sizes.counter_increments // 5)
        results = race(
            bench,
            [partial(racers.increment, (first, second)[n % 2], "counter", goal) for n in range(8)],
        )
        injector.clear()
        _counted(bench, first, results, "8 threads, a tenth of the answers never comes")

    @requirement("race-delete")
    def test_of_many_deleters_exactly_one_succeeds(self, bench: Bench) -> None:
        """Let threads over two handles delete one version, in many rounds."""
        handles = [handle.inner for handle in bench.open_two()]
        rounds = _Rounds(bench)
        with fine_switching():
            for number in rounds:
                key = f"d/{number}"
                version = handles[0].put(key, b"x", {})
                spans: list[tuple[int, int]] = []
                results = race(
                    bench,
                    [
                        partial(_timed, spans, handles[n % 2].delete_if_version, key, version)
                        for n in range(bench.sizes.threads)
                    ],
                )
                rounds.add(spans)
                _only_winner(bench, results, f"{len(results)} threads delete one version at once")
                bench.require(
                    handles[1].get(key) is None,
                    f"{len(results)} threads deleted one version and one succeeded, but the object is "
                    "still there",
                )

    @requirement("race-linear")
    def test_a_concurrent_history_of_threads_is_linearizable(self, bench: Bench) -> None:
        """Record what threads over two handles do to two keys, and look for one order."""
        handles = [handle.inner for handle in bench.open_two()]
        until = time.monotonic() + bench.sizes.race_seconds
        number = 0
        while number == 0 or (time.monotonic() < until and number < bench.sizes.race_rounds):
            recorder = Recorder()
            clients = [
                RecordingStorage(
                    handles[n % 2], recorder, client=f"t{n}", keys=_keys(number), tag="tag"
                )
                for n in range(4)
            ]
            with fine_switching():
                results = race(
                    bench,
                    [
                        partial(racers.mixed, client, n, number, _keys(number), 30)
                        for n, client in enumerate(clients)
                    ],
                )
            _all_ended(bench, results)
            _linearizable(bench, recorder.history(), answers_lost=False)
            number += 1

    @requirement("race-linear")
    def test_a_concurrent_history_of_processes_is_linearizable(self, bench: Bench) -> None:
        """Record what processes do to two keys, and look for one order of the merged histories."""
        spawned = [bench.spawn() for _ in range(bench.sizes.processes)]
        until = time.monotonic() + bench.sizes.race_seconds
        for number in itertools.count():
            for n, process in enumerate(spawned):
                process.start(racers.recorded, n, number, _keys(number), 60)
            first, *others = [History.from_json(process.receive()) for process in spawned]
            _linearizable(bench, first.merged(*others), answers_lost=False)
            if time.monotonic() >= until or number + 1 >= bench.sizes.race_rounds:
                return

    @requirement("race-linear")
    def test_histories_with_lost_and_late_requests_are_linearizable(self, bench: Bench) -> None:
        """Run seeded scripts of faults; with unknown outcomes left open there is one order."""
        # No doubled requests: a rival between the two is the residue that no backend can settle.
        rates = {
            FaultKind.ANSWER_LOST: 0.12,
            FaultKind.REQUEST_LOST: 0.08,
            FaultKind.LATE: 0.05,
            FaultKind.BARE_ERROR_APPLIED: 0.05,
            FaultKind.BARE_ERROR: 0.04,
            FaultKind.TORN_ANSWER: 0.04,
            FaultKind.BUSY_SERVER: 0.04,
            FaultKind.HANG_APPLIED: 0.01,
        }
        injector = bench.faults()
        rates = {kind: rate for kind, rate in rates.items() if kind in injector.supported}
        truth = bench.open("direct").inner
        behind = [bench.open_behind(injector).inner for _ in range(2)]
        for handle in (*behind, truth):
            handle.get("warm-up")
        behind[0].put("warm-up", b"", {})
        behind[1].put("warm-up", b"", {})
        wanted, seconds = bench.sizes.fault_scripts, bench.sizes.fault_seconds
        until = time.monotonic() + seconds
        for script in range(wanted):
            if script and time.monotonic() > until:
                # A slow service gets fewer scripts, each of them whole.
                bench.note += f"; its {seconds:g} seconds were up"
                break
            recorder = Recorder()
            keys = _keys(script)
            clients = [
                RecordingStorage(handle, recorder, client=f"t{n}", keys=keys, tag="tag")
                for n, handle in enumerate((*behind, truth))
            ]
            injector.chaos(rates, seed=script)
            results = race(
                bench,
                [
                    partial(racers.mixed, client, n, script, keys, bench.sizes.fault_rounds)
                    for n, client in enumerate(clients)
                ],
            )
            injector.clear()
            _all_ended(bench, results)
            injector.release()
            for key in keys:
                clients[-1].get(key)
            _linearizable(
                bench, recorder.history(), answers_lost=True, what=f"fault script {script}"
            )
            bench.note = f"{script + 1} of {wanted} fault scripts ran"


class _Rounds:
    """Counts rounds until the profile's number or time is used up.

    While no two calls have overlapped it goes on, up to a bound, since such rounds prove nothing;
    if it stays like that the case is not run.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._overlapped = 0

    def __iter__(self) -> Iterator[int]:
        sizes = self._bench.sizes
        begun = time.monotonic()
        for number in itertools.count():
            yield number
            spent = time.monotonic() - begun
            used_up = number + 1 >= sizes.race_rounds or spent > sizes.race_seconds
            if used_up and self._overlapped:
                return
            if spent > sizes.race_seconds + _OVERLAP_SECONDS:
                msg = "no two calls of the racers overlapped on this machine"
                raise HookUnavailable(msg)

    def add(self, spans: list[tuple[int, int]]) -> None:
        """Note when the calls of a round began and ended."""
        ordered = sorted(spans)
        self._overlapped += any(one[1] > other[0] for one, other in itertools.pairwise(ordered))


def _timed(spans: list[tuple[int, int]], call: Callable[..., object], *arguments: object) -> object:
    """Make a call and note when it began and ended."""
    start = time.monotonic_ns()
    try:
        return call(*arguments)
    finally:
        spans.append((start, time.monotonic_ns()))


def _only_winner(bench: Bench, results: Sequence[Result[object]], what: str) -> int:
    """Require that one racer succeeded and the others met a conflict; return its number."""
    strange = [
        r
        for r in results
        if r.error is not None and not isinstance(r.error, PreconditionFailedError)
    ]
    bench.require(
        not strange,
        f"{what}; the losers must get PreconditionFailedError, but one got {strange[:1]}",
    )
    winners = [number for number, result in enumerate(results) if result.error is None]
    bench.equal(len(winners), 1, f"{what}; how many succeeded")
    return winners[0]


def _counted(
    bench: Bench, storage: Storage, results: Sequence[Result[tuple[int, int]]], who: str
) -> None:
    """Require that the counter lies between the successes and the successes plus unknown ones."""
    _all_ended(bench, results)
    successes = sum(result.value[0] for result in results if result.value is not None)
    unknown = sum(result.value[1] for result in results if result.value is not None)
    found = storage.get("counter")
    value = -1 if found is None else int(found.data)
    bench.require(
        successes <= value <= successes + unknown,
        f"{who} incremented a counter by get and put_if_version: {successes} increments returned and "
        f"{unknown} ended unknown, but the counter is at {value}",
    )


def _all_ended(bench: Bench, results: Sequence[Result[Any]]) -> None:
    """Require that no racer met anything but a conflict or an outage."""
    for result in results:
        bench.require(
            result.error is None,
            f"a thread that reads, writes and deletes met {result}; calls end with a value, "
            "PreconditionFailedError or BackendUnavailableError",
        )


def _keys(number: int) -> tuple[str, str]:
    """Return the keys of one history."""
    return f"h/{number}/a", f"h/{number}/b"


def _linearizable(
    bench: Bench, history: History, *, answers_lost: bool, what: str = "a recorded history"
) -> None:
    """Require that a history has one order that explains it."""
    report = check(history, answers_lost=answers_lost)
    if report.verdict is Verdict.UNDECIDED:
        # Too much overlap for the budget proves nothing either way; other histories decide.
        bench.trace.add(f"{what} could not be decided")
        return
    bench.require(
        report.verdict is Verdict.LINEARIZABLE,
        f"{what} of {len(history)} calls is that of no register with compare-and-set\n"
        + report.explain(),
    )
