"""What concurrent clients did to a tree, and whether one order of it explains every answer.

Run as a program it is one such client: `tree_histories.py URL BASE CLIENT CALLS SEED` waits for a line on
its input, makes that many calls, and writes each with its begin and end as a line of JSON. With `meet` as
one argument more it writes the line "in" at the first request of each call, and goes on when it
is sent a line.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wenchang.errors import BackendUnavailableError
from wenchang.files.edits import Edit
from wenchang.files.errors import FileToolError
from wenchang.files.policy import TreePolicy
from wenchang.files.tree import FileTree

PATHS = ["a", "b", "d/a", "d/b", "d/e/a", "f/a", "f/g", "f/g/h"]
FOLDERS = ["d", "d/e", "f", "f/g", "x", "y/z"]
POLICY = TreePolicy(
    page_entries=4, inline_entries=3, cleanup_after=3, sweep_every=40, backoff_base=0.005
)
KINDS = [
    "create",
    "append",
    "append",
    "put",
    "edit",
    "write",
    "move",
    "movedir",
    "delete",
    "list",
    "search",
    "read",
]
State = dict[str, tuple[int, str]]


@dataclass(frozen=True, slots=True)
class Call:
    """One call. `answer` None: it was cut off, and may have taken effect or not."""

    begin: int
    end: int
    name: str
    arguments: tuple[Any, ...]
    answer: Any


# --- clients -------------------------------------------------------------------------------------


def make_call(rng: random.Random, tree: FileTree, mark: str) -> tuple[str, tuple[Any, ...]]:
    """Return name and arguments of a call, made up at random."""
    name = rng.choice(KINDS)
    path = rng.choice(PATHS)
    if name in ("create", "append", "put"):
        return name, (path, f"<{mark}>")
    if name == "edit":
        return name, (path, "<", f"[{mark}]")
    if name == "write":
        entry = tree.snapshot().lookup(path)
        return name, (path, f"<{mark}>", getattr(entry, "version", "v0-none"))
    if name == "move":
        return name, (path, rng.choice(PATHS))
    if name == "movedir":
        return "move", (rng.choice(FOLDERS), rng.choice(FOLDERS))
    if name == "delete":
        return name, (rng.choice(PATHS + FOLDERS), rng.random() < 0.5)
    return name, (path,) if name == "read" else ()


def carry_out(tree: FileTree, name: str, arguments: tuple[Any, ...]) -> Any:
    """Carry a call out; return an answer that can be compared."""
    acts: dict[str, Callable[..., Any]] = {
        "create": tree.create,
        "append": tree.append,
        "put": tree.put,
        "write": tree.write,
        "edit": lambda path, old, new: tree.edit(
            path, [Edit(old_text=old, new_text=new, replace_all=True)]
        ),
        "move": tree.move,
        "delete": tree.delete,
        "list": lambda: [[e.path, number(e.version)] for e in listed(tree)],
        "search": lambda: tree.view(
            lambda snapshot: [[e.path, text] for e, text in snapshot.read_many(snapshot.walk())]
        ),
        "read": lambda path: tree.read_file(path)[1],
    }
    try:
        answer = acts[name](*arguments)
    except FileToolError as error:
        return type(error).__name__
    except BackendUnavailableError as error:
        return None if error.outcome == "unknown" else "nothing"
    if name in ("create", "append", "put", "write", "edit"):
        return [number(answer.version), answer.size]
    if name in ("move", "delete"):
        return answer.files
    return answer


def listed(tree: FileTree) -> list[Any]:
    return tree.view(lambda snapshot: list(snapshot.walk()))


def number(version: str) -> int:
    return int(version[1:].partition("-")[0])


def client(
    tree: FileTree,
    mark: str,
    calls: int,
    seed: int,
    tell: Callable[[Call], None],
    begun: Callable[[], None] = lambda: None,
) -> None:
    """Make calls one after another; say that each has begun, and tell of each that has ended."""
    rng = random.Random(seed)
    for count in range(calls):
        name, arguments = make_call(rng, tree, f"{mark}.{count}")
        begin = time.monotonic_ns()
        begun()
        answer = carry_out(tree, name, arguments)
        tell(Call(begin, time.monotonic_ns(), name, arguments, answer))


class Held:
    """A storage on which `hold` is called before each request of a racer's own thread."""

    def __init__(self, storage: Any, hold: Callable[[], None]) -> None:
        self._storage = storage
        self._hold = hold

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._storage, name)

        def request(*arguments: Any) -> Any:
            self._hold()
            return method(*arguments)

        return request


class Meeting:
    """Holds racers in the middle of their calls until they have met in pairs, so that calls overlap.

    Each call meets another that has met none yet. Where `waiting`, one racer's call may wait for
    another's, as it does in a group commit; then a racer goes on too when all are in a call. The last
    racer is not held.
    """

    def __init__(self, racers: int, patience: float, *, waiting: bool = False) -> None:
        self._condition = threading.Condition()
        self._alone: dict[Any, bool] = {}
        """The racers that are in a call, and whether it has met none."""
        self._racers = racers
        self._patience = patience
        self._waiting = waiting

    def enter(self, racer: Any) -> None:
        """Say that a racer's call has begun."""
        with self._condition:
            self._alone[racer] = True
            self._condition.notify_all()

    def hold(self, racer: Any) -> None:
        """Wait until a racer's call has met another; does nothing outside of a call."""
        with self._condition:
            assert self._condition.wait_for(lambda: self._meet(racer), self._patience)

    def _meet(self, racer: Any) -> bool:
        everybody = self._waiting and len(self._alone) == self._racers
        if not self._alone.get(racer) or everybody or self._racers < 2:
            return True
        for other, alone in self._alone.items():
            if alone and other != racer:
                self._alone[racer] = self._alone[other] = False
                self._condition.notify_all()
                return True
        return False

    def leave(self, racer: Any) -> None:
        """Say that a racer's call has ended."""
        with self._condition:
            self._alone.pop(racer, None)

    def finish(self, racer: Any) -> None:
        """Say that a racer will make no more calls."""
        with self._condition:
            self._alone.pop(racer, None)
            self._racers -= 1
            self._condition.notify_all()


# --- checking ------------------------------------------------------------------------------------


def is_folder(state: State, path: str) -> bool:
    return any(each.startswith(path + "/") for each in state)


def is_blocked(state: State, path: str) -> bool:
    """Tell whether no file can be made at a path."""
    names = path.split("/")
    above = ("/".join(names[:count]) for count in range(1, len(names)))
    return is_folder(state, path) or any(each in state for each in above)


def step(state: State, count: int, call: Call) -> tuple[State, int, Any]:
    """Return state, number of the last version and answer after a call, by the rules of a tree."""
    name, arguments = call.name, call.arguments
    if name == "list":
        return state, count, [[path, state[path][0]] for path in sorted(state)]
    if name == "search":
        return state, count, [[path, state[path][1]] for path in sorted(state)]
    path = arguments[0]
    here = state.get(path)
    if name == "read":
        return state, count, "NotFoundError" if here is None else here[1]
    if name == "move":
        return move(state, count, path, arguments[1])
    if name == "delete":
        gone = [path] if here else [each for each in state if each.startswith(path + "/")]
        if not gone:
            return state, count, "NotFoundError"
        if here is None and not arguments[1]:
            return state, count, "InvalidArgumentError"
        return {each: state[each] for each in state if each not in gone}, count, len(gone)
    text = arguments[1]
    if name in ("edit", "write") and here is None:
        wrong = name == "write" and is_folder(state, path)
        return state, count, "InvalidArgumentError" if wrong else "NotFoundError"
    named = arguments[2] if name == "write" else None
    if named is not None and here is not None and number(named) != here[0]:
        return state, count, "VersionConflictError"
    if name == "create" and here is not None:
        return state, count, "AlreadyExistsError"
    if name == "edit" and here is not None:
        if arguments[1] not in here[1]:
            return state, count, "EditMatchError"
        text = here[1].replace(arguments[1], arguments[2])
    if name == "append" and here is not None:
        text = here[1] + text
    if here is None and is_blocked(state, path):
        return state, count, "AlreadyExistsError"
    if here is not None and here[1] == text:
        return state, count, [here[0], len(text)]
    return {**state, path: (count + 1, text)}, count + 1, [count + 1, len(text)]


def move(state: State, count: int, source: str, target: str) -> tuple[State, int, Any]:
    if target.startswith(source + "/"):
        return state, count, "InvalidArgumentError"
    moved = [source] if source in state else [p for p in state if p.startswith(source + "/")]
    if not moved:
        return state, count, "NotFoundError"
    if target in state or is_blocked(state, target):
        return state, count, "AlreadyExistsError"
    new = {path: held for path, held in state.items() if path not in moved}
    new.update({target + path[len(source) :]: state[path] for path in moved})
    return new, count, len(moved)


def explain(calls: list[Call]) -> list[Call] | None:
    """Return an order of the calls that explains every answer and respects time, or None."""
    calls = sorted(
        (call for call in calls if call.answer != "nothing"), key=lambda each: each.begin
    )
    never = max((call.end for call in calls), default=0) + 1
    ends = [never if call.answer is None else call.end for call in calls]
    definite = sum(1 << n for n, call in enumerate(calls) if call.answer is not None)
    seen: set[tuple[int, int, frozenset[Any]]] = set()
    # Each frame: what was taken, first not taken, state, number, moves left to try.
    order: list[int] = []
    stack = [(0, 0, {}, 0, iter(next_ones(calls, ends, 0, 0)))]
    while stack:
        taken, first, state, count, moves = stack[-1]
        if taken & definite == definite:
            return [calls[each] for each in order]
        for at in moves:
            new, after, answer = step(state, count, calls[at])
            if calls[at].answer is not None and answer != calls[at].answer:
                continue
            mask = taken | 1 << at
            key = (mask, after, frozenset(new.items()))
            if key in seen:
                continue
            seen.add(key)
            low = first
            while low < len(calls) and mask >> low & 1:
                low += 1
            order.append(at)
            stack.append((mask, low, new, after, iter(next_ones(calls, ends, mask, low))))
            break
        else:
            stack.pop()
            if order:
                order.pop()
    return None


def next_ones(calls: list[Call], ends: list[int], taken: int, first: int) -> list[int]:
    """Return the calls that can be next: no other that is left ended before they began."""
    bound, found = None, []
    for at in range(first, len(calls)):
        if taken >> at & 1:
            continue
        if bound is not None and calls[at].begin > bound:
            break
        found.append(at)
        bound = ends[at] if bound is None else min(bound, ends[at])
    # A call that is known to have ended is likelier than one that was cut off.
    return sorted(found, key=lambda at: ends[at])


def main() -> None:
    from wenchang.storage import open_storage

    url, base, mark, calls, seed, *meet = sys.argv[1:]
    due = [False]

    def hold() -> None:
        if due[0] and threading.current_thread() is threading.main_thread():
            due[0] = False
            print("in", flush=True)
            sys.stdin.readline()

    def begun() -> None:
        due[0] = bool(meet)

    tree = FileTree(Held(open_storage(url), hold), base, policy=POLICY)
    tree.snapshot()
    print("ready", flush=True)
    sys.stdin.readline()

    def tell(call: Call) -> None:
        row = [call.begin, call.end, call.name, call.arguments, call.answer]
        print(json.dumps(row), flush=True)

    client(tree, mark, int(calls), int(seed), tell, begun)
    tree.close()


if __name__ == "__main__":
    main()
