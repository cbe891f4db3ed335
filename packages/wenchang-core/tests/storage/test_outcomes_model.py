"""Every interleaving of small histories, settled by the real table over real lineages.

One key, one call, and rivals. Each attempt of the call may be answered, lose its answer, lose its
request, stay in the network and arrive at any later moment, be told to come back, or be sent twice by
a proxy. Rivals replace (with and without memory of what they replace), delete, create, put, upload
foreign objects, and edit by hand, at any point, also after the call has returned. All states that can
be reached are visited; in each of them the call's outcome must be true.

The controls at the end are tables that look sensible. Each breaks a promise, and the explorer shows how.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import pytest

from wenchang.storage import StoredObject
from wenchang.storage import outcomes as outcomes_module
from wenchang.storage.outcomes import (
    UNKNOWN_ID,
    Delete,
    Found,
    Lineage,
    LineageMemory,
    Verdict,
    Write,
    decide,
)

DEEP = os.environ.get("WENCHANG_DEEP") == "1"
RIVAL_STEPS, ATTEMPTS = (4, 4) if DEEP else (3, 3)

KEY = "key"
FIRST = "1"  # the version that the call expects
OURS = "ours"

NETWORK = ("answered", "answer lost", "request lost", "request delayed", "busy")
RIVALS = ("replace warm", "replace listed", "replace cold", "delete", "create", "put", "upload")
HANDS = ("edit", "edit an old copy")


class Obj(NamedTuple):
    """The object under the key."""

    version: str
    write_id: str | None
    lineage: Lineage
    edited: bool = False


class State(NamedTuple):
    """Everything that can differ between two moments of a history."""

    obj: Obj | None
    next_version: int
    rival_steps: int
    copies: tuple[tuple[str, Lineage], ...]  # what somebody may have a copy of
    phase: str = "send"
    attempts: int = ATTEMPTS
    ambiguous: bool = False
    delayed: int = 0
    applied: int = 0
    landed_as: str = ""
    refusable: bool = False  # the precondition was false at some moment of the call
    outcome: str = ""
    returned: str = ""


def real_found(obj: Obj | None) -> Found | None:
    """What a backend reports after a read-back."""
    if obj is None:
        return None
    current = StoredObject(b"", {}, obj.version)
    return Found(current=current, write_id=obj.write_id, lineage=obj.lineage, edited=obj.edited)


@dataclass(frozen=True)
class Scenario:
    """One call, and the rules by which it and the rivals go. The defaults are the real ones."""

    kind: str
    there: bool = True
    warm: bool = True
    lineage_limit: int = 16
    faults: tuple[str, ...] = NETWORK
    rivals: tuple[str, ...] = RIVALS + HANDS
    rival_steps: int = RIVAL_STEPS
    table: Callable[..., Verdict] = decide
    found: Callable[[Obj | None], Found | None] = real_found
    confirm_refusals: bool = True
    reads_back_first: bool = True
    busy_may_be_applied: bool = False
    honest_about_nothing: bool = True

    def request(self) -> Write | Delete:
        if self.kind == "delete":
            return Delete(key=KEY, expected=FIRST)
        expected = FIRST if self.kind == "replace" else None
        return Write(
            key=KEY, kind=self.kind, expected=expected, write_id=OURS, lineage=self.lineage()
        )

    def lineage(self) -> Lineage:
        if self.kind != "replace":
            return ()
        return lineage_of_a_replace(
            start_object(), "warm" if self.warm else "cold", self.lineage_limit
        )

    def met(self, obj: Obj | None) -> bool:
        """Whether the precondition of the call holds."""
        if self.kind == "put":
            return True
        if self.kind == "create":
            return obj is None
        return obj is not None and obj.version == FIRST


def start_object() -> Obj:
    return Obj(FIRST, "first", (("older", "0"),))


@functools.cache
def lineage_of_a_replace(obj: Obj, memory: str, limit: int) -> Lineage:
    """The lineage that a handle stores which read (warm), listed or never saw (cold) `obj`."""
    handle = LineageMemory()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outcomes_module, "LINEAGE_LIMIT", limit)
        if memory == "warm":
            handle.remember(KEY, obj.version, None if obj.edited else obj.write_id, obj.lineage)
        elif memory == "listed":  # the head alone does not tell that the body was edited
            handle.remember(KEY, obj.version, obj.write_id, obj.lineage)
        return handle.lineage_for_replace(KEY, obj.version)


# --- the moves -----------------------------------------------------------------------------------


def applied(scenario: Scenario, state: State) -> State:
    """The state after one request of the call has reached the store."""
    if not scenario.met(state.obj):
        return state
    done = state.applied + 1
    if scenario.kind == "delete":
        return state._replace(obj=None, applied=done)
    version = str(state.next_version)
    mine = (OURS, scenario.lineage())
    return state._replace(
        obj=Obj(version, *mine),
        next_version=state.next_version + 1,
        copies=state.copies if mine in state.copies else (*state.copies, mine),
        applied=done,
        landed_as=state.landed_as or version,
    )


def own_moves(scenario: Scenario, state: State):
    """What the call may do next."""
    if state.phase == "send":
        yield from attempts(scenario, state)
    elif state.phase == "read":
        yield "the read-back fails until the deadline", ended(state, "unknown")
        found = scenario.found(state.obj)
        verdict = scenario.table(scenario.request(), found, ambiguous=state.ambiguous)
        if verdict.outcome == "resend":
            yield "reads back: sends again", state._replace(phase="send")
        else:
            outcome = {"landed": "success", "gone": "success"}.get(verdict.outcome, verdict.outcome)
            yield f"reads back: {outcome}", ended(state, outcome, verdict.version)


def ended(state: State, outcome: str, returned: str = "") -> State:
    return state._replace(phase="ended", outcome=outcome, returned=returned)


def attempts(scenario: Scenario, state: State):
    """Send once, or give up."""
    known = not state.ambiguous or not scenario.honest_about_nothing
    yield "gives up", ended(state, "not_applied" if known else "unknown")
    if not state.attempts:
        return
    state = state._replace(attempts=state.attempts - 1)
    met = scenario.met(state.obj)
    after = applied(scenario, state)
    unclear = {
        "ambiguous": True,
        "phase": "read" if scenario.reads_back_first or scenario.kind == "put" else "send",
    }
    for fault in scenario.faults:
        if fault == "answered":
            if met:
                yield "is applied", ended(after, "success", after.landed_as)
            else:
                yield "is refused", refused(scenario, state)
        elif fault == "answer lost":
            yield (
                f"sends, {'applied' if met else 'refused'}, answer lost",
                after._replace(**unclear),
            )
        elif fault == "request lost":
            yield "sends, request lost", state._replace(**unclear)
        elif fault == "request delayed":
            yield "sends, request delayed", state._replace(delayed=state.delayed + 1, **unclear)
        elif fault == "busy":
            yield "is told to come back", after if scenario.busy_may_be_applied else state
        elif fault == "doubled":
            twice = applied(scenario, after)
            if scenario.met(after.obj):
                yield "is sent twice, both applied", ended(twice, "success", twice.landed_as)
            else:
                yield "is sent twice, the second refused", refused(scenario, twice)


def refused(scenario: Scenario, state: State) -> State:
    if scenario.confirm_refusals or state.ambiguous:
        return state._replace(phase="read")
    return ended(state, "conflict")


def rival_moves(scenario: Scenario, state: State):
    """What others may do next: each move takes effect at once."""
    obj, version = state.obj, str(state.next_version)
    fresh = f"r{version}"
    for rival in scenario.rivals:
        if rival.startswith("replace") and obj is not None:
            memory = rival.removeprefix("replace ")
            if memory == "listed" and not obj.edited:
                continue  # the same as warm
            yield (
                rival,
                Obj(version, fresh, lineage_of_a_replace(obj, memory, scenario.lineage_limit)),
            )
        elif rival == "delete" and obj is not None:
            yield rival, None
        elif (rival == "create" and obj is None) or rival == "put":
            yield rival, Obj(version, fresh, ())
        elif rival == "upload":
            yield rival, Obj(version, None, ())
        elif rival == "edit" and obj is not None and obj.write_id is not None:
            yield rival, Obj(version, obj.write_id, obj.lineage, edited=True)
        elif rival == "edit an old copy":
            for copy in state.copies:
                yield f"{rival} of {copy[0]}", Obj(version, *copy, edited=True)
        elif rival == "put that continues a lineage":
            yield rival, Obj(version, fresh, (("first", FIRST),))
        elif rival == "restore" and (obj is None or obj.version != FIRST):
            yield rival, start_object()


def moves(scenario: Scenario, state: State):
    """Every state that may come next, with what happened."""
    for label, after in own_moves(scenario, state):
        yield f"the call {label}", after
    if state.delayed:
        after = applied(scenario, state)
        yield "a delayed request arrives", after._replace(delayed=state.delayed - 1)
    if state.rival_steps:
        for label, obj in rival_moves(scenario, state):
            copies = state.copies
            if obj is not None and obj.write_id and not obj.edited:
                copies = tuple(dict.fromkeys((*copies, (obj.write_id, obj.lineage))))
            yield (
                f"a rival: {label}",
                state._replace(
                    obj=obj,
                    next_version=state.next_version + 1,
                    rival_steps=state.rival_steps - 1,
                    copies=copies if "edit an old copy" in scenario.rivals else (),
                ),
            )


# --- the promises --------------------------------------------------------------------------------


def broken_promise(scenario: Scenario, state: State) -> str | None:
    """Name the promise that `state` breaks, or None."""
    if state.applied > 1:
        return "applied twice"
    if state.outcome == "conflict" and state.applied:
        return "false conflict"
    if state.outcome == "conflict" and not state.refusable:
        return "conflict without reason"
    if state.outcome == "not_applied" and (state.applied or state.delayed):
        return "false not_applied"
    if state.outcome == "success" and scenario.kind != "delete":
        if not state.applied:
            return "false success"
        still_there = state.obj is not None and state.obj.version == state.returned
        if state.returned != state.landed_as and still_there:
            return "a version whose content the caller never wrote"
    still_first = state.obj is not None and state.obj.version == FIRST
    if state.outcome == "success" and scenario.kind == "delete" and still_first:
        return "false success"
    return None


def explore(scenario: Scenario) -> tuple[int, dict[str, list[str]]]:
    """Visit every reachable state; return how many, and a history for each broken promise."""
    first = start_object()
    start = State(
        obj=first if scenario.there else None,
        next_version=2,
        rival_steps=scenario.rival_steps,
        copies=(("first", first.lineage),) if "edit an old copy" in scenario.rivals else (),
    )
    came_from: dict[State, tuple[State, str] | None] = {start: None}
    waiting, broken = [start], {}
    while waiting:
        state = waiting.pop()
        promise = broken_promise(scenario, state)
        if promise is not None:
            broken.setdefault(promise, history(came_from, state))
            continue
        for label, after in moves(scenario, state):
            # The precondition may have been false for a moment between two attempts only.
            during = state.phase != "ended"
            refusable = during and not (scenario.met(state.obj) and scenario.met(after.obj))
            reached = after._replace(refusable=after.refusable or refusable)
            if reached not in came_from:
                came_from[reached] = (state, label)
                waiting.append(reached)
    return len(came_from), broken


def history(came_from, state: State) -> list[str]:
    """The moves that led to `state`, oldest first."""
    steps = []
    while (origin := came_from[state]) is not None:
        state, label = origin
        steps.append(label)
    return steps[::-1]


# --- the real table ------------------------------------------------------------------------------

CALLS = [
    Scenario(kind="replace"),
    Scenario(kind="replace", warm=False),
    Scenario(kind="create", there=False),
    Scenario(kind="create"),
    Scenario(kind="put"),
    Scenario(kind="put", there=False),
    Scenario(kind="delete"),
]


@pytest.mark.parametrize("lineage_limit", [1, 2, 16])
@pytest.mark.parametrize(
    "scenario",
    CALLS,
    ids=lambda s: f"{s.kind}-{'there' if s.there else 'absent'}-{'warm' if s.warm else 'cold'}",
)
def test_out_definite_no_history_makes_the_table_say_what_is_not_true(scenario, lineage_limit):
    visited, broken = explore(replace(scenario, lineage_limit=lineage_limit))
    assert broken == {}
    assert visited > 1000


@pytest.mark.parametrize("scenario", CALLS[:4], ids=["replace", "cold", "create", "existing"])
def test_out_definite_a_proxy_that_doubles_requests_makes_no_false_statement(scenario):
    """With rivals that know what they replace; the rest is the documented residue."""
    doubling = replace(
        scenario, faults=(*NETWORK, "doubled"), rivals=("replace warm",), rival_steps=3
    )
    assert explore(doubling)[1] == {}


def test_out_landed_the_explorer_reaches_every_outcome():
    """A guard against an explorer that sees nothing: each outcome and each row is reached."""
    seen = set()

    def recording(request, found, *, ambiguous):
        verdict = decide(request, found, ambiguous=ambiguous)
        seen.add((getattr(request, "kind", "delete"), ambiguous, verdict.outcome))
        return verdict

    for scenario in CALLS:
        explore(replace(scenario, table=recording, rival_steps=2))
    assert {(kind, outcome) for kind, ambiguous, outcome in seen if ambiguous} == {
        ("replace", "landed"),
        ("replace", "resend"),
        ("replace", "conflict"),
        ("replace", "unknown"),
        ("create", "landed"),
        ("create", "unknown"),
        ("put", "landed"),
        ("put", "unknown"),
        ("delete", "resend"),
        ("delete", "conflict"),
        ("delete", "gone"),
        ("delete", "unknown"),
    }
    assert ("replace", False, "conflict") in seen


# --- tables that look sensible -------------------------------------------------------------------


def variant(**verdicts):
    """The real table, with another verdict where it says unknown: `absent` or `other`."""

    def table(request, found, *, ambiguous):
        verdict = decide(request, found, ambiguous=ambiguous)
        if verdict.outcome != "unknown":
            return verdict
        outcome = verdicts.get("absent" if found is None else "other", "unknown")
        return Verdict(outcome=outcome)

    return table


def by_ids(request, found, *, ambiguous):
    """A table that recognises the replaced write by its id."""
    verdict = decide(request, found, ambiguous=ambiguous)
    if verdict.outcome == "unknown" and found is not None:
        ids = {found.write_id, *(write_id for write_id, _ in found.lineage)}
        if "first" in ids and OURS not in ids:
            return Verdict(outcome="conflict")
    return verdict


def trusting_ids(obj):
    """A backend that does not notice edits by hand."""
    return real_found(None if obj is None else obj._replace(edited=False))


def forgetting_ids(obj):
    """A backend that hides the id of an object that was edited by hand."""
    return real_found(obj._replace(write_id=None) if obj is not None and obj.edited else obj)


def without_lineage(request, found, *, ambiguous):
    """A table that looks at the current write id alone and calls the rest a conflict."""
    if isinstance(request, Write) and found is not None and found.write_id == OURS:
        return Verdict(outcome="landed", version=found.current.version)
    if found is not None and found.current.version == FIRST:
        return Verdict(outcome="resend")
    return Verdict(outcome="conflict")


def any_unknown_pair(request, found, *, ambiguous):
    """A table that takes a pair without an id for its own write."""
    verdict = decide(request, found, ambiguous=ambiguous)
    for write_id, version in () if found is None else found.lineage:
        if verdict.outcome == "unknown" and write_id == UNKNOWN_ID:
            return Verdict(outcome="landed", version=version)
    return verdict


UNSOUND = {
    "a replace that finds the key absent is a conflict": (
        Scenario(kind="replace", table=variant(absent="conflict")),
        "false conflict",
    ),
    "a replace that finds a stranger is a conflict": (
        Scenario(kind="replace", table=variant(other="conflict")),
        "false conflict",
    ),
    "a replace judged without lineage": (
        Scenario(kind="replace", table=without_lineage),
        "false conflict",
    ),
    "a pair without an id is taken for the own write": (
        Scenario(kind="replace", table=any_unknown_pair),
        "false success",
    ),
    "predecessors recognised by id": (Scenario(kind="replace", table=by_ids), "false conflict"),
    "edits by hand not noticed": (
        Scenario(kind="replace", found=trusting_ids),
        "a version whose content the caller never wrote",
    ),
    "the id of an edited object hidden": (
        Scenario(kind="replace", found=forgetting_ids),
        "false conflict",
    ),
    "an absent key lets a create be sent again": (
        Scenario(kind="create", there=False, table=variant(absent="resend")),
        "applied twice",
    ),
    "a create sent again before it is read back": (
        Scenario(kind="create", there=False, reads_back_first=False),
        "applied twice",
    ),
    "a create that finds another write is a conflict": (
        Scenario(kind="create", there=False, table=variant(other="conflict")),
        "false conflict",
    ),
    "a create that finds another write is a conflict, the key being there from the start": (
        Scenario(kind="create", table=variant(other="conflict")),
        "false conflict",
    ),
    "a put sent again": (
        Scenario(kind="put", table=variant(absent="resend", other="resend")),
        "applied twice",
    ),
    "a delete that finds a stranger is a conflict": (
        Scenario(kind="delete", table=variant(other="conflict")),
        "false conflict",
    ),
    "a first refusal is believed although requests are doubled": (
        Scenario(kind="replace", faults=(*NETWORK, "doubled"), rivals=(), confirm_refusals=False),
        "false conflict",
    ),
    "a doubled create is believed to be refused": (
        Scenario(
            kind="create",
            there=False,
            faults=(*NETWORK, "doubled"),
            rivals=(),
            confirm_refusals=False,
        ),
        "false conflict",
    ),
    "a bare 429 is taken for not applied": (
        Scenario(kind="create", there=False, busy_may_be_applied=True),
        "applied twice",
    ),
    "not_applied is said after an ambiguous attempt": (
        Scenario(kind="replace", honest_about_nothing=False),
        "false not_applied",
    ),
    "an unconditional put continues the lineage that its handle remembers": (
        Scenario(kind="replace", rivals=(*RIVALS, "put that continues a lineage")),
        "false conflict",
    ),
    "versions come back": (
        Scenario(kind="replace", rivals=(*RIVALS, "restore")),
        "applied twice",
    ),
}


@pytest.mark.parametrize(("scenario", "promise"), UNSOUND.values(), ids=UNSOUND)
def test_a_table_that_looks_sensible_is_caught(scenario, promise):
    # Two steps of rivals are enough for all but one.
    steps = 3 if "restore" in scenario.rivals else 2
    _, broken = explore(replace(scenario, rival_steps=steps))
    assert promise in broken, f"only found: {sorted(broken)}"
