"""`FaultPlan`, the bookkeeping of an injector."""

from __future__ import annotations

from wenchang_conformance.hooks import FaultKind, FaultPlan


def fates(plan, targets):
    return [plan.decide(target) for target in targets]


def test_an_injection_harms_as_many_as_it_says_after_those_it_skips():
    plan = FaultPlan()
    plan.inject(FaultKind.HANG, times=2, skip=1)
    assert fates(plan, ["write"] * 4) == [None, FaultKind.HANG, FaultKind.HANG, None]
    assert plan.injected() == 2


def test_an_injection_concerns_only_its_target():
    plan = FaultPlan()
    plan.inject(FaultKind.HANG, on="read")
    assert fates(plan, ["write", "read", "read"]) == [None, FaultKind.HANG, None]
    assert (plan.requests("write"), plan.requests("read"), plan.requests()) == (1, 2, 3)


def test_earlier_injections_come_first():
    plan = FaultPlan()
    plan.inject(FaultKind.LATE)
    plan.inject(FaultKind.BUSY_RATE, on="any", times=None)
    assert fates(plan, ["write", "write", "read"]) == [
        FaultKind.LATE,
        FaultKind.BUSY_RATE,
        FaultKind.BUSY_RATE,
    ]
    plan.clear()
    assert plan.decide("write") is None


def test_chaos_is_the_same_for_the_same_seed_whatever_else_arrives():
    rates = {FaultKind.LATE: 0.3, FaultKind.TWICE: 0.3}
    one, other = FaultPlan(), FaultPlan()
    one.chaos(rates, seed=5)
    other.chaos(rates, seed=5)
    first = fates(one, ["write"] * 40)
    second = [
        fate
        for target in ["write", "read"] * 40
        for fate in [other.decide(target)]
        if target == "write"
    ]
    assert first == second
    assert set(first) == {None, FaultKind.LATE, FaultKind.TWICE}
