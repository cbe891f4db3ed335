"""Every interleaving of a few writers and a collector, with lost, late and doubled root commits.

The code under test is the tree itself. Each actor runs in a thread of its own that stops before each
request to the storage; one schedule after another is played until all within the bounds were: at
most so many changes of the running actor while it could go on, and so many faults.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from wenchang.errors import BackendUnavailableError, WenchangError
from wenchang.files import _commit, _uploads
from wenchang.files._calls import Append, Create, Put
from wenchang.files._jobs import Job
from wenchang.files.errors import AlreadyExistsError
from wenchang.storage.memory import InMemoryStorage

DEEP = os.environ.get("WENCHANG_SIZES") == "deep" or os.environ.get("WENCHANG_DEEP") == "1"
RUNS = 5000 if DEEP else 300
WAIT = 60.0
FAULTS = ("lost", "dropped", "late", "doubled", "repeated")


@dataclass
class Tape:
    """The choices of one run: those to repeat first, then always the first option."""

    given: list[int]
    rng: random.Random | None = None
    made: list[tuple[int, int]] = field(default_factory=list)

    def choose(self, options: int) -> int:
        at = len(self.made)
        chosen = self.given[at] if at < len(self.given) else 0
        if self.rng is not None:
            chosen = self.rng.randrange(options)
        self.made.append((chosen, options))
        return chosen

    def following(self) -> list[int] | None:
        """Return the choices of the next run, or None after the last."""
        made = list(self.made)
        while made and made[-1][0] + 1 >= made[-1][1]:
            made.pop()
        if not made:
            return None
        return [chosen for chosen, _ in made[:-1]] + [made[-1][0] + 1]


class Actor:
    """Something that happens in a thread of its own, one request at a time."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.go = threading.Event()
        self.request = ("start", "")
        self.fault: str | None = None
        self.done = False
        self.result: Any = None
        self.late: list[Callable[[], Any]] = []

    def start(self, act: Callable[[], Any]) -> None:
        def run() -> None:
            self._await_turn()
            try:
                self.result = act()
            except WenchangError as error:
                self.result = error
            except BaseException as error:
                self.world.broken.append(error)
            self.done = True
            self.world.idle.set()

        threading.Thread(target=run, daemon=True).start()

    def _await_turn(self) -> None:
        assert self.go.wait(WAIT)
        self.go.clear()

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def call(key: str, *arguments: Any) -> Any:
            self.request = (method, key)
            self.world.idle.set()
            self._await_turn()

            def act() -> Any:
                return getattr(self.world.inner, method)(key, *arguments)

            fault = self.fault
            if fault is None:
                return act()
            if fault == "doubled":
                # Sent twice; the first answer is lost and the second refuses, which a storage that
                # keeps the contract does not let through.
                act()
                return act()
            if fault == "repeated":
                self.late.append(act)
                return act()
            if fault == "lost":
                self.late.append(act)
                act()
            if fault == "late":
                self.late.append(act)
            raise BackendUnavailableError("timeout", outcome="unknown")

        return call


class World:
    """One run: a storage, its actors, and the tape that says who goes next."""

    def __init__(self, tape: Tape, preemptions: int, faults: int) -> None:
        self.inner = InMemoryStorage()
        self.tape = tape
        self.preemptions = preemptions
        self.faults = faults
        self.idle = threading.Event()
        self.actors: list[Actor] = []
        self.broken: list[BaseException] = []

    def actor(self, name: str) -> Actor:
        actor = Actor(self, name)
        self.actors.append(actor)
        return actor

    def play(self) -> None:
        """Let the actors go on, one request at a time, until all have ended."""
        current = self.actors[0]
        while True:
            waiting = [actor for actor in self.actors if not actor.done]
            if not waiting:
                return
            options: list[tuple[str, Actor]] = [("step", current)] if current in waiting else []
            if not options or self.preemptions:
                options += [("step", each) for each in waiting if each is not current]
                options += [("deliver", each) for each in self.actors if each.late]
            what, chosen = options[self.tape.choose(len(options))]
            if what == "deliver":
                self.preemptions -= 1 if current in waiting else 0
                deliver(chosen)
                continue
            if chosen is not current and current in waiting:
                self.preemptions -= 1
            current = chosen
            self._let(chosen)

    def _let(self, actor: Actor) -> None:
        actor.fault = None
        if self.faults and actor.request[0] == "put_if_version":
            kinds = FAULTS if actor.request[1].endswith("/root") else ("lost", "late")
            pick = self.tape.choose(1 + len(kinds))
            if pick:
                self.faults -= 1
                actor.fault = kinds[pick - 1]
        self.idle.clear()
        actor.go.set()
        assert self.idle.wait(WAIT)


def deliver(actor: Actor) -> None:
    late, actor.late = actor.late, []
    for act in late:
        try:
            act()
        except Exception:
            continue


Scenario = Callable[[World], Callable[[], None]]


def play(scenario: Scenario, tape: Tape, preemptions: int, faults: int) -> None:
    """Play one run and check it, before and after the last late request has arrived."""
    world = World(tape, preemptions, faults)
    check = scenario(world)
    world.play()
    assert not world.broken, world.broken
    check()
    for actor in world.actors:
        deliver(actor)
    check()


def explore(scenario: Scenario, *, preemptions: int, faults: int, most: int = 500_000) -> int:
    """Play every run within the bounds; return how many there were."""
    given: list[int] | None = []
    runs = 0
    while given is not None:
        assert runs < most, f"more than {most} runs"
        tape = Tape(given)
        play(scenario, tape, preemptions, faults)
        given = tape.following()
        runs += 1
    return runs


def sample(scenario: Scenario, *, runs: int, seed: int = 1) -> None:
    """Play runs at random, with wide bounds."""
    rng = random.Random(seed)
    for _ in range(runs):
        tape = Tape([], random.Random(rng.getrandbits(64)))
        play(scenario, tape, preemptions=rng.randrange(12), faults=rng.randrange(3))


def is_unknown(result: Any) -> bool:
    return isinstance(result, BackendUnavailableError) and result.outcome == "unknown"


@pytest.fixture(scope="module")
def begun(open_tree_on, small):
    """Return a function that makes the first root with one file, and opens trees for actors."""
    # Useless objects go at once, which is the hardest for everybody else.
    policy = replace(
        small, inline_entries=100, inline_bytes=100_000, cleanup_after=1, sweep_every=0
    )

    def begin(world: World, **files: str):
        tree = open_tree_on(world.inner, policy)
        for path, text in files.items():
            tree.create(path, text)
        tree.close()

        def open_for(name: str):
            actor = world.actor(name)
            # Not an instance of any protocol class: each call goes through the actor.
            return actor, open_tree_on(actor, policy)

        return tree, open_for

    return begin


def sound(tree, texts) -> dict[str, str]:
    """Check that the tree holds together, and return what it holds."""
    report = tree.verify()
    assert report.sound, report.problems
    return texts(tree)


def two_appends(begun, texts, **keys: str | None):
    """Two writers append to one file; `keys` gives their effect keys."""

    def scenario(world: World) -> Callable[[], None]:
        tree, open_for = begun(world, a="0")
        actors = {}
        for name in ("x", "y"):
            actor, own = open_for(name)
            text = "k" if keys else name
            actor.start(
                lambda own=own, text=text, name=name: own.append(
                    "a", text, effect_key=keys.get(name)
                )
            )
            actors[name] = actor

        def check() -> None:
            held = sound(tree, texts)["a"]
            if keys:
                results = [actor.result for actor in actors.values()]
                done = [each for each in results if not isinstance(each, Exception)]
                assert held.count("k") <= 1
                assert held.count("k") == 1 or not done
                assert len({each.version for each in done}) <= 1
                assert sum(not each.replayed for each in done) <= 1
                return
            for name, actor in actors.items():
                if not isinstance(actor.result, Exception):
                    assert held.count(name) == 1, (name, held)
                elif is_unknown(actor.result):
                    assert held.count(name) <= 1
                else:
                    assert name not in held

        return check

    return scenario


def test_every_acknowledged_append_is_there_once_whatever_is_lost_late_or_doubled(begun, texts):
    runs = explore(two_appends(begun, texts), preemptions=2, faults=1)
    assert runs > 100


def test_two_losses_of_one_commit_are_settled_by_the_log(begun, texts):
    explore(two_appends(begun, texts), preemptions=0, faults=2)
    sample(two_appends(begun, texts), runs=RUNS)


def test_a_key_used_by_two_callers_takes_effect_once_and_both_get_one_outcome(begun, texts):
    scenario = two_appends(begun, texts, x="key", y="key")
    explore(scenario, preemptions=2, faults=1)


def test_an_unknown_answer_taken_for_a_lost_race_would_be_found(begun, texts, monkeypatch):
    """The control: with the wrong rule, these schedules do show an append twice."""

    def careless(commit_id, seq, now):
        return "not_applied"

    monkeypatch.setattr(_commit, "settle", careless)
    with pytest.raises(AssertionError):
        explore(two_appends(begun, texts), preemptions=1, faults=1)


def with_collector(begun, texts):
    """Two writers, one replacing and one creating, beside a collection of garbage."""

    def scenario(world: World) -> Callable[[], None]:
        tree, open_for = begun(world, a="0", b="0")
        one, first = open_for("x")
        one.start(lambda: first.put("a", "x"))
        two, second = open_for("gc")
        two.start(second.collect_garbage)
        three, third = open_for("y")
        three.start(lambda: third.append("b", "y"))

        def check() -> None:
            held = sound(tree, texts)
            for actor, path, text in ((one, "a", "x"), (three, "b", "0y")):
                if not isinstance(actor.result, Exception):
                    assert held[path] == text
                elif not is_unknown(actor.result):
                    assert held[path] == "0"

        return check

    return scenario


def test_the_collector_never_takes_what_a_late_commit_refers_to(begun, texts):
    scenario = with_collector(begun, texts)
    explore(scenario, preemptions=1, faults=1)
    sample(scenario, runs=RUNS)


def test_an_upload_used_again_under_a_later_epoch_would_be_found(begun, texts, monkeypatch):
    """The control: without the fence of the epoch, the collector takes what a writer still needs."""
    begin = _uploads.Uploads.begin

    def forgetful(self, incarnation, epoch):
        for content in self._planned.values():
            content.place = (incarnation, epoch)
        begin(self, incarnation, epoch)

    monkeypatch.setattr(_uploads.Uploads, "begin", forgetful)
    with pytest.raises(AssertionError):
        explore(with_collector(begun, texts), preemptions=1, faults=0)


def test_a_reader_never_meets_a_missing_object_while_contents_are_replaced(begun, texts):
    def scenario(world: World) -> Callable[[], None]:
        tree, open_for = begun(world, a="0")
        writer, own = open_for("w")
        writer.start(lambda: [own.put("a", "1"), own.put("a", "2")])
        reader, other = open_for("r")
        reader.start(lambda: other.read_file("a")[1])

        def check() -> None:
            assert reader.result in ("0", "1", "2")
            assert sound(tree, texts) == {"a": "2"}

        return check

    assert explore(scenario, preemptions=3, faults=0) > 50


def test_a_batch_is_applied_as_a_whole_and_its_refusals_rest_on_what_was_committed(begun, texts):
    """Calls of one process in one batch, beside a rival that creates what one of them wants."""

    def scenario(world: World) -> Callable[[], None]:
        tree, open_for = begun(world, a="0")
        rival, other = open_for("r")
        rival.start(lambda: other.create("c", "r"))
        batch, own = open_for("b")
        calls = [
            Append(path="a", text="1").checked(None),
            Create(path="c", text="b").checked("key-c"),
            Append(path="a", text="2").checked("key-a"),
            Append(path="a", text="2").checked("key-a"),
            Create(path="a/x", text="b").checked(None),
            Put(path="d", text="d").checked(None),
        ]
        jobs = [Job(request=call, deadline=1000.0) for call in calls]
        batch.start(lambda: own._committer.commit(jobs))

        def check() -> None:
            held = sound(tree, texts)
            one, create, two, again, through, put = jobs
            assert isinstance(through.error, AlreadyExistsError)
            together = {job.error is None for job in (one, two, again, put)}
            assert len(together) == 1
            if one.error is None:
                assert held["a"] == "012"
                assert held["d"] == "d"
                assert two.result.version == again.result.version
                assert again.result.replayed
            else:
                assert is_unknown(one.error)
                assert (held["a"], held.get("d")) in {("0", None), ("012", "d")}
            if create.error is None:
                assert held["c"] == "b"
                assert isinstance(rival.result, AlreadyExistsError)
            elif not is_unknown(create.error):
                assert held["c"] == "r"

        return check

    explore(scenario, preemptions=1, faults=1)
    sample(scenario, runs=RUNS // 3)


def test_the_first_root_is_made_once_whoever_comes_first(begun, texts):
    def scenario(world: World) -> Callable[[], None]:
        tree, open_for = begun(world)
        actors = {}
        for name in ("x", "y"):
            actor, own = open_for(name)
            actor.start(lambda own=own, name=name: own.create(name, name))
            actors[name] = actor

        def check() -> None:
            held = sound(tree, texts)
            for name, actor in actors.items():
                if not isinstance(actor.result, Exception):
                    assert held[name] == name
                else:
                    assert is_unknown(actor.result) or name not in held

        return check

    explore(scenario, preemptions=2, faults=1)


def test_a_purge_beside_writers_leaves_a_sound_tree_and_kills_every_old_version(begun, texts):
    def scenario(world: World) -> Callable[[], None]:
        tree, open_for = begun(world, a="0")
        old = tree.snapshot().lookup("a").version
        purger, own = open_for("p")
        purger.start(own.purge)
        writer, other = open_for("w")
        writer.start(lambda: other.put("a", "w"))
        stale, third = open_for("s")
        stale.start(lambda: third.write("a", "s", old))

        def check() -> None:
            held = sound(tree, texts)
            assert held in ({}, {"a": "w"}, {"a": "s"})
            if held and tree.snapshot()._root.epoch > 1:
                assert tree.snapshot().lookup("a").version != old

        return check

    explore(scenario, preemptions=1, faults=1)
    sample(scenario, runs=RUNS // 3)
