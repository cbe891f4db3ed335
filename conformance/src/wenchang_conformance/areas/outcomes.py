"""Lost, late and doubled requests: what a write may say of itself.

Each case opens one handle behind the fault injector and one beside it, which shows the truth.
"""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Final

import pytest

from wenchang_conformance.areas.scene import Scene, WriteKind, set_up
from wenchang_conformance.hooks import FaultKind, HookUnavailable
from wenchang_conformance.racing import race
from wenchang_conformance.requirement import requirement
from wenchang_conformance.trace import shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from wenchang_conformance.bench import Bench, Settled
    from wenchang_conformance.trace import TracedStorage

__all__ = ["OutcomesArea"]

_KINDS: Final[tuple[WriteKind, ...]] = ("create", "replace", "put")
_CONDITIONAL: Final[tuple[WriteKind, ...]] = ("create", "replace")
_ATTEMPTS: Final = 6
_PATIENCE: Final = 20.0


class OutcomesArea:
    """Cases about lost answers."""

    @requirement("out-landed")
    @pytest.mark.parametrize(
        "fault",
        [
            FaultKind.ANSWER_LOST,
            FaultKind.BARE_ERROR_APPLIED,
            FaultKind.HANG_APPLIED,
        ],
    )
    def test_a_write_whose_answer_was_lost_returns_its_version(
        self, bench: Bench, fault: FaultKind
    ) -> None:
        """Lose the answer of a create, a replace and a put; the write is there."""
        scene = set_up(bench, fault)
        for kind in _KINDS:
            write, _ = scene.prepare(kind, f"k/{kind}")
            scene.inject(fault)
            what = f"{fault.value} on a {kind}"
            scene.landed(bench.settled(what, write), f"k/{kind}", what)
            scene.calm()

    @requirement("out-landed")
    def test_a_landed_write_that_was_replaced_at_once_returns_its_version(
        self, bench: Bench
    ) -> None:
        """Let the answer hang; meanwhile a rival reads the write and replaces it."""
        scene = set_up(bench, FaultKind.HANG_APPLIED)
        for kind in _KINDS:
            what = f"a {kind} was applied, its answer hung, and a rival who had read it replaced it"
            for attempt in range(_ATTEMPTS):
                key = f"k/{kind}/{attempt}"
                write, _ = scene.prepare(kind, key)
                scene.inject(FaultKind.HANG_APPLIED)
                ended, replaced = _with_rival(
                    bench, what, write, partial(_replace_ours, scene.truth, key)
                )
                scene.calm()
                if replaced is None:
                    continue
                bench.require(
                    ended.ending == "returned" and ended.value == replaced,
                    f"{what}; it must return the version {replaced!r} under which it landed, "
                    f"but it {ended}",
                )
                break
            else:
                _not_arranged()

    @requirement("out-token")
    def test_a_torn_answer_is_not_taken_for_success(self, bench: Bench) -> None:
        """Cut the answer inside its head, within the version; what is returned must be whole."""
        scene = set_up(bench, FaultKind.TORN_ANSWER)
        for kind in _KINDS:
            write, _ = scene.prepare(kind, f"k/{kind}")
            scene.inject(FaultKind.TORN_ANSWER)
            what = f"the answer to a {kind} ended inside its head"
            scene.landed(bench.settled(what, write), f"k/{kind}", what)
            scene.calm()

    @requirement("out-definite")
    @pytest.mark.parametrize(
        "fault",
        [
            FaultKind.TWICE,
            FaultKind.ANSWER_LOST,
            FaultKind.REQUEST_LOST,
            FaultKind.LATE,
            FaultKind.BARE_ERROR,
            FaultKind.BARE_ERROR_APPLIED,
            FaultKind.HANG,
        ],
    )
    def test_without_a_rival_no_write_conflicts(self, bench: Bench, fault: FaultKind) -> None:
        """Harm one request, then the next two; with nobody else writing there is no conflict."""
        scene = set_up(bench, fault)
        for times in (1, 2):
            for kind in _CONDITIONAL:
                key = f"k/{kind}/{times}"
                write, _ = scene.prepare(kind, key)
                scene.inject(fault, times=times)
                what = (
                    f"{fault.value} on the first {times} request(s) of a {kind}; nobody else writes"
                )
                ended = bench.settled(what, write)
                scene.calm()
                bench.require(
                    ended.ending != "conflict",
                    f"{what}; it must not conflict, but it {ended}; a second handle reads "
                    f"{shown(scene.truth.get(key))}",
                )

    @requirement("out-definite")
    def test_a_lone_writer_never_conflicts_with_itself(self, bench: Bench) -> None:
        """Replace again and again while every third answer is lost."""
        scene = set_up(bench, FaultKind.ANSWER_LOST)
        version = scene.truth.put("counter", b"0", {})
        scene.injector.chaos({FaultKind.ANSWER_LOST: 0.33}, seed=5)
        bench.trace.add("fault injected: answer-lost into a third of all writes")
        for number in range(1, 31):
            body = b"%d" % number
            ended = bench.settled(
                f"replace number {number}",
                scene.storage.put_if_version,
                "counter",
                body,
                {},
                version,
            )
            bench.require(
                ended.ending == "returned",
                f"replace number {number} of a lone writer, a third of all answers lost, must "
                f"return, but it {ended}",
            )
            version = str(ended.value)
        scene.calm()
        bench.holds(scene.truth, "counter", b"30", "30 replaces returned")

    @requirement("out-definite")
    def test_a_write_that_a_rival_forestalled_conflicts(self, bench: Bench) -> None:
        """Let the request hang unapplied; meanwhile a rival who read the same version replaces it."""
        scene = set_up(bench, FaultKind.HANG)
        what = "a replace hung before it was applied, and a rival replaced the version it names"
        for attempt in range(_ATTEMPTS):
            key = f"k/{attempt}"
            write, version = scene.prepare("replace", key)
            scene.inject(FaultKind.HANG)
            ended, rival = _with_rival(
                bench,
                what,
                write,
                partial(scene.truth.put_if_version, key, b"rival", {}, version),
                at_once=True,
            )
            scene.calm()
            if rival is None or ended.ending == "returned":
                continue
            bench.require(
                ended.ending == "conflict",
                f"{what}; the rival's write names the replaced version in its lineage, so this is a "
                f"conflict, but it {ended}",
            )
            bench.holds(scene.truth, key, b"rival", what)
            return
        _not_arranged()

    @requirement("out-unknown")
    @pytest.mark.parametrize("kind", _KINDS)
    @pytest.mark.parametrize(
        "fault", [FaultKind.LATE, FaultKind.REQUEST_LOST, FaultKind.BARE_ERROR]
    )
    def test_what_a_write_says_stays_true_when_its_request_arrives_late(
        self, bench: Bench, fault: FaultKind, kind: WriteKind
    ) -> None:
        """Lose the request, deliver it later, and compare the key with what the write said."""
        scene = set_up(bench, fault)
        write, _ = scene.prepare(kind, "k")
        scene.inject(fault)
        what = f"{fault.value} on a {kind}"
        ended = bench.settled(what, write)
        scene.calm()
        scene.honest(ended, "k", what)
        if ended.ending == "returned" and kind == "create":
            # Where the key is absent again, the condition of a late create is true again.
            scene.truth.delete_if_version("k", str(ended.value))
            bench.trace.add("the late request, if there is one, is delivered")
            scene.injector.release()
            bench.require(
                scene.truth.get("k") is None,
                f"{what}; it {ended}, the object was deleted, and then the late request created it "
                "a second time: a create is never sent again after an ambiguous attempt",
            )
        elif ended.ending == "returned":
            rival = scene.truth.put("k", b"rival", {})
            bench.trace.add("the late request, if there is one, is delivered")
            scene.injector.release()
            found = scene.truth.get("k")
            bench.require(
                found is not None and found.version == rival,
                f"{what}; it {ended}, a rival replaced it, and then the late request took effect a "
                f"second time over the rival's write: {shown(found)}",
            )

    @requirement("out-unknown")
    @pytest.mark.parametrize("kind", _KINDS)
    @pytest.mark.parametrize(
        "reading", [FaultKind.REFUSED, FaultKind.BARE_ERROR, FaultKind.REJECTED]
    )
    def test_a_lost_answer_that_cannot_be_read_back_is_unknown(
        self, bench: Bench, reading: FaultKind, kind: WriteKind
    ) -> None:
        """Lose the answer, and let every request after it fail."""
        scene = set_up(bench, reading)
        write, _ = scene.prepare(kind, "k")
        if FaultKind.HANG_APPLIED in scene.injector.supported:
            what = f"the answer to a {kind} never came, and every later request met {reading.value}"
            scene.inject(FaultKind.HANG_APPLIED)
            later = partial(_inject_all, scene, reading)
            ended, _ = _with_rival(bench, what, write, later, at_once=True)
        else:
            bench.faults(FaultKind.ANSWER_LOST)
            what = f"the answer to a {kind} was lost, and every other request met {reading.value}"
            arrived = scene.injector.requests("write")
            scene.inject(FaultKind.ANSWER_LOST)
            _inject_all(scene, reading)
            ended = bench.settled(what, write)
            if ended.ending == "not_applied" and scene.injector.requests("write") == arrived:
                raise HookUnavailable("the handle reads before it writes, and that failed already")
        scene.calm()
        bench.require(
            ended.ending == "unknown",
            f"{what}; this must raise BackendUnavailableError with outcome='unknown', but it {ended}",
        )

    @requirement("out-unknown")
    def test_a_write_that_was_never_sent_is_not_applied(self, bench: Bench) -> None:
        """Refuse every connection; each write says that nothing was applied, and that is so."""
        scene = set_up(bench, FaultKind.REFUSED)
        version = scene.truth.put("k/delete", b"before", {})
        calls: dict[str, Callable[[], object]] = {}
        for kind in _KINDS:
            calls[kind] = scene.prepare(kind, f"k/{kind}")[0]
        calls["delete"] = partial(scene.storage.delete_if_version, "k/delete", version)
        scene.inject(FaultKind.REFUSED, times=None, on="any")
        what = "no connection could be made"
        results = race(bench, [partial(bench.settled, what, call) for call in calls.values()])
        for name, result in zip(calls, results, strict=True):
            if result.error is not None:
                raise result.error
            bench.require(
                result.value is not None and result.value.ending == "not_applied",
                f"{what} during a {name}; this must raise BackendUnavailableError with "
                f"outcome='not_applied', but it {result.value}",
            )
        scene.calm()
        bench.holds(scene.truth, "k/create", None, "no connection could be made during the create")
        for name in ("replace", "put", "delete"):
            bench.holds(scene.truth, f"k/{name}", b"before", f"no connection during the {name}")

    @requirement("out-delete")
    @pytest.mark.parametrize(
        "fault",
        [
            FaultKind.ANSWER_LOST,
            FaultKind.REQUEST_LOST,
            FaultKind.BARE_ERROR_APPLIED,
            FaultKind.HANG_APPLIED,
        ],
    )
    def test_a_delete_whose_answer_was_lost_returns(self, bench: Bench, fault: FaultKind) -> None:
        """Harm one delete; the object is gone, and the delete says so."""
        scene = set_up(bench, fault)
        version = scene.truth.put("k", b"before", {})
        scene.inject(fault)
        what = f"{fault.value} on a delete; nobody else writes"
        ended = bench.settled(what, scene.storage.delete_if_version, "k", version)
        scene.calm()
        bench.require(ended.ending == "returned", f"{what}; it must return, but it {ended}")
        bench.holds(scene.truth, "k", None, f"{what}; it returned")

    @requirement("out-delete")
    def test_a_stale_delete_conflicts_also_when_its_answer_was_lost(self, bench: Bench) -> None:
        """Delete with a version that a rival replaced, and lose the answer."""
        scene = set_up(bench, FaultKind.ANSWER_LOST)
        stale = scene.truth.put("k", b"before", {})
        scene.truth.put_if_version("k", b"rival", {}, stale)
        scene.inject(FaultKind.ANSWER_LOST)
        what = "the answer to a delete with a replaced version was lost"
        ended = bench.settled(what, scene.storage.delete_if_version, "k", stale)
        scene.calm()
        bench.require(ended.ending == "conflict", f"{what}; this is a conflict, but it {ended}")
        bench.holds(scene.truth, "k", b"rival", what)


def _replace_ours(truth: TracedStorage, key: str) -> str | None:
    """Wait until our write is there, replace it and return its version."""
    ends = time.monotonic() + _PATIENCE
    while time.monotonic() < ends:
        found = truth.get(key)
        if found is not None and found.data == b"ours":
            truth.put_if_version(key, b"rival", {}, found.version)
            return found.version
    return None


def _with_rival(
    bench: Bench,
    what: str,
    write: Callable[[], str],
    rival: Callable[[], str | None],
    *,
    at_once: bool = False,
) -> tuple[Settled, str | None]:
    """Run `write` in a thread and `rival` beside it.

    Returns how the write ended, and what the rival returned, or None if the rival came too late.
    With `at_once` the rival acts as soon as the write's request has arrived.
    """
    ended: list[Settled | BaseException] = []
    arrived = bench.faults().requests("write")

    def run() -> None:
        try:
            ended.append(bench.settled(what, write))
        except BaseException as error:  # noqa: BLE001 - raised again below
            ended.append(error)

    thread = threading.Thread(target=run, daemon=True, name="write behind faults")
    thread.start()
    ends = time.monotonic() + _PATIENCE
    while at_once and bench.faults().requests("write") == arrived and time.monotonic() < ends:
        thread.join(0.002)
    acted = bench.settled("the rival", rival)
    in_time = not ended and acted.ending == "returned"
    thread.join(2 * bench.hooks.deadline + _PATIENCE)
    bench.require(ended, f"{what}; the call has not ended")
    result = ended[0]
    if isinstance(result, BaseException):
        raise result
    return result, str(acted.value) if in_time and acted.value is not None else None


def _inject_all(scene: Scene, kind: FaultKind) -> str:
    """Harm every request from now on."""
    scene.inject(kind, times=None, on="any")
    return "armed"


def _not_arranged() -> None:
    """Report that the scene could not be set: no fault of the backend."""
    msg = "the rival never came in time between the request and the end of the call"
    raise HookUnavailable(msg)
