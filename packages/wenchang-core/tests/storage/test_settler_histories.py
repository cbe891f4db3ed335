"""The real settling loop in every history of a small network, run from beginning to end.

`test_outcomes_model.py` visits the states of the table; here the loop itself is the subject. A run is
a list of choices: what becomes of each attempt and of each read-back, and what a rival does before it.
All lists are tried, one after another, until none is left. The clock moves only when the loop waits or
an attempt takes time, so the deadline ends each run after a few attempts.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from wenchang.errors import BackendUnavailableError
from wenchang.storage import PreconditionFailedError, StorageRejectedError, StoredObject
from wenchang.storage.outcomes import (
    Ambiguous,
    Applied,
    Busy,
    Delete,
    Done,
    Found,
    LineageMemory,
    NotSent,
    Refused,
    Rejected,
    RetryPolicy,
    Settler,
    Write,
)

DEEP = os.environ.get("WENCHANG_DEEP") == "1"
RIVAL_STEPS = 2 if DEEP else 1
KEY, FIRST, OURS = "key", "1", "ours"
ERROR = OSError("lost")


class Choices:
    """The choices of one run: those of a list, then always the first."""

    def __init__(self, given):
        self.given = given
        self.made = []

    def pick(self, options):
        position = len(self.made)
        chosen = self.given[position] if position < len(self.given) else 0
        self.made.append((chosen, len(options)))
        return options[chosen]

    def following(self):
        """Return the list for the next run, or None after the last."""
        made = list(self.made)
        while made and made[-1][0] + 1 == made[-1][1]:
            made.pop()
        if not made:
            return None
        return [chosen for chosen, _ in made[:-1]] + [made[-1][0] + 1]


class NoJitter:
    """Waits are as long as they may be, so that the clock moves."""

    def uniform(self, low, high):
        return high


class World:
    """One key in a store, the network before it, and rivals."""

    def __init__(self, kind, choices, *, there, network):
        self.kind, self.choices, self.network = kind, choices, network
        self.obj = (FIRST, "first", ()) if there else None
        self.versions = 1
        self.rival_steps = RIVAL_STEPS
        self.applied, self.landed_as, self.delayed = 0, None, 0
        self.met_always = self.met()
        self.now = 0.0
        memory = LineageMemory()
        memory.remember(KEY, FIRST, "first", ())
        lineage = memory.lineage_for_replace(KEY, FIRST) if kind == "replace" else ()
        expected = FIRST if kind == "replace" else None
        self.request = (
            Delete(key=KEY, expected=FIRST)
            if kind == "delete"
            else Write(key=KEY, kind=kind, expected=expected, write_id=OURS, lineage=lineage)
        )

    def met(self):
        if self.kind == "put":
            return True
        if self.kind == "create":
            return self.obj is None
        return self.obj is not None and self.obj[0] == FIRST

    def version(self):
        self.versions += 1
        return str(self.versions)

    def apply(self):
        """One request of the call reaches the store; return its version, or None if refused."""
        if not self.met():
            return None
        self.applied += 1
        version = "" if self.kind == "delete" else self.version()
        self.obj = None if self.kind == "delete" else (version, OURS, self.request.lineage)
        self.landed_as = self.landed_as if self.landed_as is not None else version
        return version

    def others(self):
        """Rivals and delayed requests act, in any order and number that is left."""
        while True:
            options = ["nothing"]
            if self.delayed:
                options.append("delayed")
            if self.rival_steps:
                options += ["put"] if self.obj is None else ["replace", "put", "delete"]
            move = self.choices.pick(options)
            if move == "nothing":
                return
            if move == "delayed":
                self.delayed -= 1
                self.apply()
                continue
            self.rival_steps -= 1
            if move == "delete":
                self.obj = None
            else:
                lineage = ()
                if move == "replace":
                    memory = LineageMemory()
                    memory.remember(KEY, *self.obj)
                    lineage = memory.lineage_for_replace(KEY, self.obj[0])
                version = self.version()
                self.obj = (version, f"r{version}", lineage)
            self.met_always = self.met_always and self.met()

    def send(self, seconds):
        assert seconds > 0
        self.now += 1.0
        self.others()
        fault = self.choices.pick(self.network)
        if fault == "answered":
            version = self.apply()
            return Refused() if version is None else Applied(version=version)
        if fault == "answer lost":
            self.apply()
        elif fault == "delayed":
            self.delayed += 1
        elif fault == "busy":
            return Busy(error=ERROR, retry_after=1.0)
        elif fault == "not sent":
            return NotSent(error=ERROR)
        elif fault == "rejected":
            return Rejected(error=StorageRejectedError("permission", "no"))
        elif fault == "doubled":
            self.apply()
            version = self.apply()
            return Refused() if version is None else Applied(version=version)
        return Ambiguous(error=ERROR)

    def read(self, seconds):
        assert seconds > 0
        self.now += 1.0
        self.others()
        if self.choices.pick(["answered", "lost"]) == "lost":
            return Ambiguous(error=ERROR)
        if self.obj is None:
            return Done(value=None)
        version, write_id, lineage = self.obj
        current = StoredObject(b"", {}, version)
        return Done(value=Found(current=current, write_id=write_id, lineage=lineage))

    def sleep(self, seconds):
        self.now += seconds

    def run(self, *, confirm_refusals):
        """Make the call, let everything that is still under way arrive, and check what was said."""
        policy = RetryPolicy(deadline=6.0, attempt_timeout=1.0, backoff_base=0.5)
        settler = Settler(
            policy,
            confirm_refusals=confirm_refusals,
            clock=lambda: self.now,
            sleep=self.sleep,
            rng=NoJitter(),
        )
        call = settler.delete if self.kind == "delete" else settler.write
        returned = None
        try:
            returned = call(self.request, self.send, self.read)
            said = "success"
        except PreconditionFailedError:
            said = "conflict"
        except StorageRejectedError:
            said = "rejected"
        except BackendUnavailableError as error:
            said = error.outcome
        applied_then, absent_then, met_then = self.applied, self.obj is None, self.met_always
        assert self.now <= 8.0, "the call outlived its deadline by more than its last attempt"
        self.others()

        assert self.applied <= 1, "applied twice"
        if said in {"conflict", "rejected", "not_applied"}:
            assert self.applied == 0, f"said {said}, and was applied"
        if said in {"rejected", "not_applied"}:
            assert self.delayed == 0, f"said {said}, and may still be applied"
        if said == "conflict":
            assert not met_then, "a conflict without reason"
        if said == "success" and self.kind == "delete":
            assert applied_then or absent_then
        elif said == "success":
            assert applied_then, "a success that is none"
            assert returned == self.landed_as
        return said


def every_history(kind, *, there, network, confirm_refusals):
    """Run all of them; return how often each outcome was said."""
    said, given = Counter(), []
    while given is not None:
        choices = Choices(given)
        world = World(kind, choices, there=there, network=network)
        said[world.run(confirm_refusals=confirm_refusals)] += 1
        given = choices.following()
    return said


NETWORK = ("answered", "answer lost", "delayed", "busy", "not sent", "rejected")


@pytest.mark.parametrize(
    ("kind", "there"),
    [("replace", True), ("create", False), ("create", True), ("put", True), ("delete", True)],
)
def test_out_definite_the_loop_says_only_what_is_true(kind, there):
    said = every_history(kind, there=there, network=NETWORK, confirm_refusals=True)
    expected = {"success", "conflict", "rejected", "unknown", "not_applied"}
    assert set(said) == expected - ({"conflict"} if kind == "put" else set())


@pytest.mark.parametrize("kind", ["replace", "create"])
def test_out_landed_a_doubled_request_is_not_taken_for_a_rival(kind):
    network = ("doubled", "answered", "answer lost")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(World, "others", lambda self: None)
        said = every_history(kind, there=kind == "replace", network=network, confirm_refusals=True)
    assert set(said) == {"success", "unknown"}


def test_a_loop_that_believes_the_first_refusal_is_caught():
    """The control: with doubled requests and no confirmation the explorer finds the lie."""
    with pytest.raises(AssertionError, match="said conflict, and was applied"):
        every_history("replace", there=True, network=("doubled",), confirm_refusals=False)
