"""The search against a checker without any cleverness, and against a register that is atomic."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wenchang_conformance.linearizability import SOME, Kind, Operation, Outcome, Verdict, check

READS = (Kind.READ, Kind.LIST)
CONDITIONED = (Kind.REPLACE, Kind.DELETE)
State = bytes | None


def after(operation: Operation, state: State) -> tuple[bool, State]:
    """Whether a definite answer is right in a state, and the state it leaves."""
    if operation.kind in READS:
        right = state is not None if operation.saw is SOME else state == operation.saw
        return right, state
    if operation.kind is Kind.PUT:
        return True, operation.wrote
    if operation.kind is Kind.CREATE:
        met = state is None
    else:
        met = state is not None if operation.expected is SOME else state == operation.expected
    if operation.outcome is Outcome.OK:
        return met, operation.wrote
    return not met or operation.expected is SOME, state


def landed(operation: Operation) -> Operation:
    """The same operation, had its client learned at the end of time that it took effect."""
    return replace(operation, outcome=Outcome.OK, end=1 << 62)


def brute_force(operations: Sequence[Operation], initial: State = None) -> bool:
    """Try every order of every choice of unknown writes."""
    definite = [each for each in operations if each.outcome in (Outcome.OK, Outcome.REFUSED)]
    unknown = [
        landed(each)
        for each in operations
        if each.outcome is Outcome.UNKNOWN and each.kind not in READS
    ]

    def explore(left: list[Operation], maybe: list[Operation], state: State) -> bool:
        if not left:
            return True
        bound = min(each.end or 0 for each in left)
        for each in [*left, *maybe]:
            if each.start <= bound:
                right, made = after(each, state)
                others = [other for other in left if other is not each]
                rest = [other for other in maybe if other is not each]
                if right and explore(others, rest, made):
                    return True
        return False

    return explore(definite, unknown, initial)


def assert_witness(witness: Sequence[Operation], operations: Sequence[Operation]) -> None:
    """A witness is complete, legal at each step, and in real time's order."""
    state: State = None
    latest_start = 0
    for each in witness:
        unknown = each.outcome is Outcome.UNKNOWN
        right, state = after(landed(each) if unknown else each, state)
        assert right, f"{each} is not right where the witness places it"
        if each.outcome is not Outcome.UNKNOWN:
            assert each.end is not None
            assert each.end >= latest_start, f"{each} stands behind what began after its end"
        latest_start = max(latest_start, each.start)
    assert len({id(each) for each in witness}) == len(witness)
    answered = [each for each in operations if each.outcome in (Outcome.OK, Outcome.REFUSED)]
    assert all(each in witness for each in answered if each.expected is not SOME)


@dataclass
class Call:
    """A call under way in the simulation."""

    client: int
    operation: Operation
    answer: Operation | None = None


@dataclass
class Simulation:
    """Clients whose calls overlap, on an atomic register and a clock of its own."""

    seed: int
    clients: int = 4
    lost: float = 0.0
    kinds: tuple[Kind, ...] = tuple(Kind)
    clock: int = 0
    state: State = None
    met: dict[int, State] = field(default_factory=dict)

    def run(self, count: int) -> list[Operation]:
        """Let `count` calls happen, and return what their clients were told."""
        choose = random.Random(self.seed)
        idle, busy, late = list(range(self.clients)), [], []
        done: list[Operation] = []
        begun = 0
        while begun < count or busy:
            self.clock += 1
            if late and choose.random() < 0.05:
                self._apply(late.pop(choose.randrange(len(late))))
            elif idle and begun < count and choose.random() < 0.4:
                client = idle.pop(choose.randrange(len(idle)))
                busy.append(Call(client, self._begin(choose, client, begun)))
                begun += 1
            elif busy:
                call = choose.choice(busy)
                if call.answer is None:
                    self._act(choose, call, late)
                else:
                    busy.remove(call)
                    idle.append(call.client)
                    done.append(replace(call.answer, end=self.clock))
        return done

    def _begin(self, choose: random.Random, client: int, number: int) -> Operation:
        kind = choose.choice(self.kinds)
        known = self.met.get(client)
        if kind in CONDITIONED and known is None:
            kind = Kind.CREATE
        return Operation(
            key="k",
            kind=kind,
            outcome=Outcome.UNKNOWN,
            start=self.clock,
            end=self.clock,
            wrote=None if kind in READS or kind is Kind.DELETE else b"w%d" % number,
            expected=known if kind in CONDITIONED else None,
            client=str(client),
        )

    def _apply(self, operation: Operation) -> Outcome:
        right, made = after(replace(operation, outcome=Outcome.OK), self.state)
        if not right:
            return Outcome.REFUSED
        self.state = made
        return Outcome.OK

    def _act(self, choose: random.Random, call: Call, late: list[Operation]) -> None:
        operation = call.operation
        if operation.kind in READS:
            call.answer = replace(operation, outcome=Outcome.OK, saw=self.state)
            self.met[call.client] = self.state
        elif choose.random() >= self.lost:
            outcome = self._apply(operation)
            call.answer = replace(operation, outcome=outcome)
            if outcome is Outcome.OK:
                self.met[call.client] = operation.wrote
        else:
            call.answer = operation
            fate = choose.choice(("applied", "late", "never"))
            if fate == "applied":
                self._apply(operation)
            elif fate == "late":
                late.append(operation)


SEEDS = st.integers(0, 2**32)


class TestAgainstAnAtomicRegister:
    @given(seed=SEEDS, clients=st.integers(1, 8), lost=st.sampled_from([0.0, 0.2, 0.6]))
    @settings(max_examples=100, deadline=None)
    def test_what_it_did_is_always_accepted_with_a_witness_that_can_be_replayed(
        self, seed, clients, lost
    ):
        operations = Simulation(seed, clients=clients, lost=lost).run(60)
        report = check(operations)
        assert report.verdict is Verdict.LINEARIZABLE, report.explain()
        assert_witness(report.keys[0].witness, operations)

    @given(seed=SEEDS, data=st.data())
    @settings(max_examples=100, deadline=None)
    def test_a_read_of_what_was_overwritten_before_it_began_is_rejected(self, seed, data):
        operations = Simulation(seed).run(60)
        wrote = [
            each
            for each in operations
            if each.outcome is Outcome.OK and each.wrote is not None and each.end is not None
        ]
        candidates = [
            (index, old.wrote)
            for index, each in enumerate(operations)
            if each.kind in READS
            for old in wrote
            if any(old.end < new.start and new.end < each.start for new in wrote)
        ]
        if candidates:
            index, stale = data.draw(st.sampled_from(candidates))
            operations[index] = replace(operations[index], saw=stale)
            assert check(operations).verdict is Verdict.VIOLATION

    @given(seed=SEEDS, data=st.data())
    @settings(max_examples=100, deadline=None)
    def test_a_success_turned_into_a_refusal_is_rejected_once_it_has_been_seen(self, seed, data):
        operations = Simulation(seed).run(60)
        seen = {each.saw for each in operations if each.kind in READS}
        candidates = [
            index
            for index, each in enumerate(operations)
            if each.kind in (Kind.CREATE, Kind.REPLACE)
            and each.outcome is Outcome.OK
            and each.wrote in seen
        ]
        if candidates:
            index = data.draw(st.sampled_from(candidates))
            operations[index] = replace(operations[index], outcome=Outcome.REFUSED)
            assert check(operations).verdict is Verdict.VIOLATION


@st.composite
def arbitrary_histories(draw: st.DrawFn) -> list[Operation]:
    """Small histories without any register behind them: most are wrong, many only just."""
    count = draw(st.integers(1, 6))
    times = draw(st.permutations(range(1, 2 * count + 1)))
    names: list[bytes | None] = [None, *(b"w%d" % n for n in range(count))]
    operations = []
    for number in range(count):
        start, end = sorted(times[2 * number : 2 * number + 2])
        kind = draw(st.sampled_from(list(Kind)))
        outcomes = [Outcome.OK, Outcome.UNKNOWN, Outcome.NOT_APPLIED]
        if kind not in (*READS, Kind.PUT):
            outcomes += [Outcome.REFUSED, Outcome.OK]
        outcome = draw(st.sampled_from(outcomes))
        writes = kind not in (*READS, Kind.DELETE)
        operations.append(
            Operation(
                key="k",
                kind=kind,
                outcome=outcome,
                start=start,
                end=end if outcome is not Outcome.UNKNOWN or draw(st.booleans()) else None,
                wrote=b"w%d" % number if writes else None,
                expected=draw(st.sampled_from([SOME, *names[1:]])) if kind in CONDITIONED else None,
                saw=draw(st.sampled_from([*names, SOME])) if kind in READS else None,
            )
        )
    return operations


class TestAgainstBruteForce:
    @given(arbitrary_histories())
    @settings(max_examples=600, deadline=None)
    def test_both_agree_on_every_small_history(self, operations):
        report = check(operations)
        expected = Verdict.LINEARIZABLE if brute_force(operations) else Verdict.VIOLATION
        assert report.verdict is expected
        if report.verdict is Verdict.LINEARIZABLE:
            assert_witness(report.keys[0].witness, operations)

    @given(seed=SEEDS, data=st.data())
    @settings(max_examples=200, deadline=None)
    def test_both_agree_on_a_register_of_which_one_answer_was_changed(self, seed, data):
        operations = Simulation(seed, clients=3, lost=0.3).run(8)
        changeable = [index for index, each in enumerate(operations) if each.kind in READS]
        if changeable:
            index = data.draw(st.sampled_from(changeable))
            names = [None, *(each.wrote for each in operations if each.wrote is not None)]
            operations[index] = replace(operations[index], saw=data.draw(st.sampled_from(names)))
        report = check(operations)
        expected = Verdict.LINEARIZABLE if brute_force(operations) else Verdict.VIOLATION
        assert report.verdict is expected

    @given(seed=SEEDS)
    @settings(max_examples=100, deadline=None)
    def test_both_agree_on_deletes_whose_answers_may_have_been_lost(self, seed):
        operations = Simulation(seed, clients=3, lost=0.2).run(7)
        doubled = [*operations]
        for each in operations:
            if each.kind is Kind.DELETE and each.outcome is not Outcome.OK:
                # What a backend says whose delete found the key absent behind a lost answer.
                doubled.remove(each)
                doubled.append(replace(each, outcome=Outcome.OK))
        split = []
        for each in doubled:
            if each.kind is Kind.DELETE:
                split.append(replace(each, outcome=Outcome.UNKNOWN))
                split.append(
                    replace(each, kind=Kind.READ, outcome=Outcome.OK, expected=None, saw=None)
                )
            else:
                split.append(each)
        report = check(doubled, answers_lost=True)
        expected = Verdict.LINEARIZABLE if brute_force(split) else Verdict.VIOLATION
        assert report.verdict is expected


class TestSize:
    @pytest.mark.parametrize("lost", [0.0, 0.05, 0.3])
    @pytest.mark.parametrize("writes_only", [False, True])
    def test_two_thousand_operations_of_sixteen_clients_are_decided(self, lost, writes_only):
        kinds = (Kind.PUT, Kind.CREATE, Kind.REPLACE, Kind.DELETE) if writes_only else tuple(Kind)
        operations = Simulation(11, clients=16, lost=lost, kinds=kinds).run(2000)
        report = check(operations)
        assert report.verdict is Verdict.LINEARIZABLE
        assert report.keys[0].visited < 20_000

    @pytest.mark.parametrize("lost", [0.0, 0.1])
    @pytest.mark.parametrize("writes", [(Kind.PUT,), (Kind.PUT, Kind.CREATE, Kind.DELETE)])
    def test_one_stale_read_among_them_is_found_and_named(self, lost, writes):
        operations = Simulation(5, clients=16, lost=lost, kinds=(*writes, Kind.READ)).run(2000)
        index = max(n for n, each in enumerate(operations) if each.kind is Kind.READ)
        stale = next(each.wrote for each in operations if each.wrote and each.outcome is Outcome.OK)
        operations[index] = replace(operations[index], saw=stale)
        (report,) = check(operations).keys
        assert report.verdict is Verdict.VIOLATION
        assert report.culprit is operations[index]
