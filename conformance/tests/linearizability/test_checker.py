"""The checker on histories written by hand, good and bad."""

from __future__ import annotations

from typing import Any

import pytest

from wenchang_conformance.linearizability import (
    SOME,
    History,
    Kind,
    Operation,
    Outcome,
    Verdict,
    assert_linearizable,
    check,
)

READS = ("read", "list")


def op(
    kind: str,
    start: int,
    end: int | None,
    value: Any = None,
    *,
    at: Any = None,
    outcome: str = "ok",
    key: str = "k",
) -> Operation:
    """Short form: `value` is what is written or seen, `at` the expected write."""
    reads = kind in READS
    return Operation(
        key=key,
        kind=Kind(kind),
        outcome=Outcome(outcome),
        start=start,
        end=end,
        wrote=None if reads else value,
        saw=value if reads else None,
        expected=at,
    )


def refused(kind: str, start: int, end: int, value: Any = None, *, at: Any = None) -> Operation:
    return op(kind, start, end, value, at=at, outcome="refused")


def unknown(
    kind: str, start: int, end: int | None, value: Any = None, *, at: Any = None
) -> Operation:
    return op(kind, start, end, value, at=at, outcome="unknown")


A, B, C, D = b"a", b"b", b"c", b"d"

GOOD = {
    "an empty history": [],
    "a key that nobody wrote is absent": [op("read", 1, 2, None)],
    "write, then read": [op("put", 1, 2, A), op("read", 3, 4, A)],
    "a read that overlaps a write may see the state before it": [
        op("put", 1, 10, A),
        op("read", 2, 3, None),
        op("read", 4, 5, A),
    ],
    "two overlapping puts in either order": [
        op("put", 1, 10, A),
        op("put", 2, 9, B),
        op("read", 11, 12, A),
    ],
    "one of two creators wins": [
        op("create", 1, 10, A),
        refused("create", 2, 9, B),
        op("read", 11, 12, A),
    ],
    "create, replace, delete, create again": [
        op("create", 1, 2, A),
        op("replace", 3, 4, B, at=A),
        op("delete", 5, 6, at=B),
        op("read", 7, 8, None),
        op("create", 9, 10, C),
        op("list", 11, 12, C),
    ],
    "a stale replace is refused": [
        op("put", 1, 2, A),
        op("put", 3, 4, B),
        refused("replace", 5, 6, C, at=A),
    ],
    "a replace of an absent key is refused": [refused("replace", 1, 2, B, at=A)],
    "a delete of an absent key is refused": [refused("delete", 1, 2, at=A)],
    "a refusal may be explained by a write that was gone again": [
        op("put", 1, 2, A),
        op("replace", 3, 10, B, at=A),
        refused("create", 4, 12, C),
        op("delete", 3, 12, at=B),
        op("read", 13, 14, None),
    ],
    "an unknown write that took effect": [unknown("put", 1, 2, A), op("read", 3, 4, A)],
    "an unknown write that never took effect": [unknown("put", 1, 2, A), op("read", 3, 4, None)],
    "an unknown write that took effect long after its end": [
        unknown("put", 1, 2, A),
        op("read", 3, 4, None),
        op("put", 5, 6, B),
        op("read", 7, 8, B),
        op("read", 9, 10, A),
    ],
    "an unknown write that never came back at all": [
        unknown("put", 1, None, A),
        op("read", 100, 101, A),
    ],
    "a chain of unknown writes": [
        unknown("create", 1, 2, A),
        unknown("replace", 3, 4, B, at=A),
        unknown("delete", 5, 6, at=B),
        unknown("create", 7, 8, C),
        op("read", 9, 10, C),
    ],
    "an unknown write explains a refusal and is overwritten unseen": [
        op("put", 1, 2, A),
        unknown("replace", 3, 4, B, at=A),
        refused("replace", 5, 6, C, at=A),
        op("put", 7, 8, D),
        op("read", 9, 10, D),
    ],
    "an unknown delete lets a create succeed": [
        op("put", 1, 2, A),
        unknown("delete", 3, 4, at=A),
        op("create", 5, 6, B),
        op("read", 7, 8, B),
    ],
    "an unknown create is waited for by a replace that met it": [
        unknown("create", 1, 2, A),
        op("replace", 3, 4, B, at=A),
        op("read", 5, 6, B),
    ],
    "an operation that was not applied left no trace": [
        op("put", 1, 2, A, outcome="not_applied"),
        op("read", 3, 4, None),
    ],
    "a listing that could not tell which write it saw": [
        op("put", 1, 2, A),
        op("list", 3, 4, SOME),
        op("delete", 5, 6, at=SOME),
        op("list", 7, 8, None),
        refused("delete", 9, 10, at=SOME),
    ],
    "an unknown read says nothing": [op("put", 1, 2, A), op("read", 3, 4, outcome="unknown")],
    "two deleters of one version, one refused": [
        op("put", 1, 2, A),
        op("delete", 3, 10, at=A),
        refused("delete", 4, 9, at=A),
    ],
    "reads behind a late write keep seeing it": [
        op("put", 1, 2, A),
        unknown("replace", 3, 4, B, at=A),
        op("read", 5, 8, A),
        op("read", 6, 9, B),
        op("read", 10, 11, B),
    ],
}

BAD = {
    "a lost update: both replacements of one write succeeded": (
        [
            op("put", 1, 2, A),
            op("replace", 3, 10, B, at=A),
            op("replace", 4, 9, C, at=A),
        ],
        10,
    ),
    "a stale read": (
        [op("put", 1, 2, A), op("put", 3, 4, B), op("read", 5, 6, A)],
        6,
    ),
    "a stale listing": (
        [op("create", 1, 2, A), op("delete", 3, 4, at=A), op("list", 5, 6, A)],
        6,
    ),
    "a write missing from a listing": ([op("put", 1, 2, A), op("list", 3, 4, None)], 4),
    "a write applied twice buries a newer one": (
        [
            op("put", 1, 2, A),
            op("put", 3, 4, B),
            op("read", 5, 6, B),
            op("read", 7, 8, A),
        ],
        8,
    ),
    "an unknown write applied twice": (
        [
            unknown("put", 1, 2, A),
            op("read", 3, 4, A),
            op("put", 5, 6, B),
            op("read", 7, 8, B),
            op("read", 9, 10, A),
        ],
        10,
    ),
    "an own write that landed and was replaced, called a conflict": (
        [
            op("put", 1, 2, A),
            refused("replace", 3, 10, B, at=A),
            op("read", 4, 5, B),
            op("replace", 6, 7, C, at=B),
        ],
        5,
    ),
    "a conflict although nothing else was written": (
        [op("put", 1, 2, A), refused("replace", 3, 4, B, at=A)],
        4,
    ),
    "a create refused although the key was absent": ([refused("create", 1, 2, A)], 2),
    "two creates succeed": ([op("create", 1, 10, A), op("create", 2, 9, B)], 10),
    "a delete of an absent key succeeds": ([op("delete", 1, 2, at=A)], 2),
    "both deleters of one version succeed": (
        [op("put", 1, 2, A), op("delete", 3, 10, at=A), op("delete", 4, 9, at=A)],
        10,
    ),
    "a deleted value is read back": (
        [op("create", 1, 2, A), op("delete", 3, 4, at=A), op("read", 5, 6, A)],
        6,
    ),
    "a write that was called not applied is read": (
        [op("put", 1, 2, A, outcome="not_applied"), op("read", 3, 4, A)],
        4,
    ),
    "bytes are read that nobody wrote": ([op("put", 1, 2, A), op("read", 3, 4, b"torn")], 4),
    "a write is read before it was asked for": ([op("read", 1, 2, A), op("put", 3, 4, A)], 2),
    "an unknown write takes effect before it was asked for": (
        [op("read", 1, 2, A), unknown("put", 3, 4, A)],
        2,
    ),
    "readers see two overlapping puts in different orders": (
        [
            op("put", 1, 20, A),
            op("put", 2, 19, B),
            op("read", 3, 4, A),
            op("read", 5, 6, B),
            op("read", 7, 8, A),
        ],
        8,
    ),
    "a replace of a write that an unknown one cannot have removed": (
        [
            op("put", 1, 2, A),
            unknown("delete", 3, 4, at=A),
            op("read", 5, 6, None),
            op("replace", 7, 8, B, at=A),
        ],
        8,
    ),
    "a stale replace succeeds after an A-B-A of versions": (
        [
            op("put", 1, 2, A),
            op("put", 3, 4, B),
            op("put", 5, 6, C),
            op("replace", 7, 8, D, at=A),
        ],
        8,
    ),
    "an absent key between two reads of one write": (
        [op("put", 1, 2, A), op("read", 3, 4, A), op("read", 5, 6, None), op("read", 7, 8, A)],
        6,
    ),
    "a listing sees some object where none can be": (
        [op("create", 1, 2, A), op("delete", 3, 4, at=A), op("list", 5, 6, SOME)],
        6,
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_history_is_linearizable(name):
    report = check(GOOD[name])
    assert report.verdict is Verdict.LINEARIZABLE, report.explain()


@pytest.mark.parametrize("name", BAD)
def test_a_bad_history_is_a_violation_and_the_unexplainable_answer_is_named(name):
    operations, culprit_end = BAD[name]
    report = check(operations)
    assert report.verdict is Verdict.VIOLATION
    (key,) = report.keys
    assert key.culprit is not None
    assert key.culprit.end == culprit_end
    assert str(key.culprit) in report.explain()
    assert key.clue
    with pytest.raises(AssertionError, match="cannot be placed"):
        assert_linearizable(operations)


@pytest.mark.parametrize("name", BAD)
def test_the_history_before_the_culprits_answer_is_linearizable(name):
    operations, culprit_end = BAD[name]
    before = [each for each in operations if each.end is not None and each.end < culprit_end]
    cut = [
        Operation(
            key="k",
            kind=each.kind,
            outcome=Outcome.UNKNOWN,
            start=each.start,
            wrote=each.wrote,
            expected=each.expected,
        )
        for each in operations
        if each not in before and each.start < culprit_end and each.outcome is Outcome.OK
    ]
    assert check([*before, *cut]).verdict is Verdict.LINEARIZABLE


class TestKeys:
    def test_each_key_is_judged_by_itself_and_only_the_bad_one_is_explained(self):
        good = [op("put", 1, 2, A, key="good"), op("read", 3, 4, A, key="good")]
        bad = [op("put", 1, 2, A, key="bad"), op("read", 3, 4, None, key="bad")]
        report = check([*good, *bad])
        assert {each.key: each.verdict for each in report.keys} == {
            "good": Verdict.LINEARIZABLE,
            "bad": Verdict.VIOLATION,
        }
        assert report.verdict is Verdict.VIOLATION
        assert "bad: violation" in report.explain()
        assert "good" not in report.explain()

    def test_a_key_may_have_had_an_object_before_the_recording_began(self):
        history = [op("read", 1, 2, A), op("replace", 3, 4, B, at=A)]
        assert check(history).verdict is Verdict.VIOLATION
        assert check(history, initial={"k": A}).verdict is Verdict.LINEARIZABLE
        stale = [op("put", 1, 2, B), op("read", 3, 4, A)]
        report = check(stale, initial={"k": A})
        assert "before the call began" in report.explain()

    def test_the_same_bytes_may_be_written_to_different_keys_but_not_to_one(self):
        assert check([op("put", 1, 2, A), op("put", 1, 2, A, key="other")])
        with pytest.raises(ValueError, match="same bytes"):
            check([op("put", 1, 2, A), op("put", 3, 4, A)])
        with pytest.raises(ValueError, match="same bytes"):
            check([op("put", 1, 2, A)], initial={"k": A})


class TestLostAnswersOfDeletes:
    def test_two_deletes_of_one_version_may_return_where_answers_were_lost(self):
        history = [op("put", 1, 2, A), op("delete", 3, 4, at=A), op("delete", 5, 6, at=A)]
        assert check(history).verdict is Verdict.VIOLATION
        assert check(history, answers_lost=True).verdict is Verdict.LINEARIZABLE

    def test_a_delete_that_returned_may_have_been_overtaken_by_another_one(self):
        history = [
            op("put", 1, 2, A),
            op("delete", 3, 10, at=A),
            op("delete", 4, 5, at=A),
            op("create", 6, 7, B),
            op("read", 11, 12, B),
        ]
        assert check(history, answers_lost=True).verdict is Verdict.LINEARIZABLE

    def test_the_key_must_have_been_absent_at_some_moment_of_the_call(self):
        history = [op("put", 1, 2, A), op("delete", 3, 4, at=A), op("read", 5, 6, A)]
        report = check(history, answers_lost=True)
        assert report.verdict is Verdict.VIOLATION
        never = [op("put", 1, 2, A), op("put", 3, 4, B), op("delete", 5, 6, at=A)]
        assert check(never, answers_lost=True).verdict is Verdict.VIOLATION


class TestBudget:
    def test_a_search_that_is_too_large_is_undecided_and_does_not_pass(self):
        # Many overlapping puts, and at the end a read of something that was overwritten for sure:
        # to be certain, every order of the puts has to be looked at.
        puts = [op("put", n, 1000 + n, b"%d" % n) for n in range(1, 17)]
        history = [
            op("put", 0, 0, b"first"),
            *puts,
            op("read", 3000, 3001, b"1"),
            op("read", 3002, 3003, b"2"),
            refused("replace", 3004, 3005, b"last", at=b"first"),
        ]
        report = check(history, max_visits=50)
        assert report.verdict is Verdict.UNDECIDED
        assert report.keys[0].visited == 50
        with pytest.raises(AssertionError, match="undecided"):
            assert_linearizable(history, max_visits=50)


class TestOperation:
    @pytest.mark.parametrize(
        "fields",
        [
            {"kind": Kind.PUT},
            {"kind": Kind.READ, "wrote": A},
            {"kind": Kind.REPLACE, "wrote": A},
            {"kind": Kind.CREATE, "wrote": A, "expected": B},
            {"kind": Kind.PUT, "wrote": A, "saw": B},
            {"kind": Kind.PUT, "wrote": A, "outcome": Outcome.REFUSED},
            {"kind": Kind.READ, "outcome": Outcome.REFUSED},
            {"kind": Kind.READ, "end": None},
            {"kind": Kind.READ, "end": 0},
        ],
    )
    def test_what_no_client_can_report_is_refused(self, fields):
        with pytest.raises(ValueError, match="of a history"):
            Operation(**{"key": "k", "outcome": Outcome.OK, "start": 1, "end": 2, **fields})

    def test_a_history_survives_json(self):
        history = History((*GOOD["a chain of unknown writes"], op("list", 1, 2, SOME)))
        assert History.from_json(history.to_json()) == history

    def test_a_merged_history_holds_the_operations_of_all(self):
        one, two = History((op("put", 1, 2, A),)), History((op("read", 3, 4, A),))
        merged = one.merged(two)
        assert len(merged) == 2
        assert [each.kind for each in merged] == [Kind.PUT, Kind.READ]
        assert check(merged).verdict is Verdict.LINEARIZABLE

    def test_a_coarse_clock_orders_nothing_that_it_cannot_tell_apart(self, monkeypatch):
        class Coarse:
            resolution = 0.000_01

        one, two = History((op("put", 0, 5_000, A),)), History((op("read", 6_000, 7_000, None),))
        assert check(one.merged(two)).verdict is Verdict.VIOLATION
        monkeypatch.setattr("time.get_clock_info", lambda _: Coarse)
        assert check(one.merged(two)).verdict is Verdict.LINEARIZABLE
