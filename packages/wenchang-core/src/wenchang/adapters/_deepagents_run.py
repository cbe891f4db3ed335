"""What the run that is going on tells of itself: which agent it is, and which call this is."""

from __future__ import annotations

import hashlib
import json
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from langgraph.config import get_config
from langgraph.runtime import ExecutionInfo, RunControl, Runtime, get_runtime

from wenchang.adapters._seen import KEPT

__all__ = ["OUTSIDE", "Call", "current_call", "current_runtime"]

_T = TypeVar("_T")

OUTSIDE: Final = ""
"""The agent of calls outside of any run."""
_ONE_CALL_EACH: Final = "__pregel_push"
"""What the path of a task begins with that was sent to a node by itself, as tool calls are."""


class _Held(Generic[_T]):
    """Something for each of the objects met last, by identity.

    The objects are held, so that none of them gives its identity to another one.
    """

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._lock = threading.Lock()
        self._held: OrderedDict[int, tuple[object, _T]] = OrderedDict()

    def of(self, owner: object, make: Callable[[], _T]) -> _T:
        """Return what there is for an object; what `make` gives for one that is not held."""
        with self._lock:
            _, value = self._held.setdefault(id(owner), (owner, make()))
            self._held.move_to_end(id(owner))
            if len(self._held) > self._kept:
                self._held.popitem(last=False)
            return value


class _Ordinals:
    """How often equal things came, for any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}

    def next(self, thing: str) -> int:
        """Return 0 for what comes first, and so on."""
        with self._lock:
            count = self._counts.get(thing, 0)
            self._counts[thing] = count + 1
            return count


_RUN_NAMES: Final[_Held[str]] = _Held(KEPT)
_ORDINALS: Final[_Held[_Ordinals]] = _Held(KEPT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The agent that calls, and what tells its tool call from every other one, if it is known."""

    agent: str = OUTSIDE
    identity: tuple[str, ...] | None = None
    ordinals: _Ordinals = field(default_factory=_Ordinals, repr=False, compare=False)

    def effect_key(self, operation: str, path: str, *arguments: object) -> str | None:
        """Return a key that is the same when the tool call is repeated; None if that is unknown.

        A tool that makes equal changes in one call makes several: they are numbered.
        """
        if self.identity is None:
            return None
        text = json.dumps([*self.identity, operation, path, *arguments])
        digest = hashlib.sha256(text.encode()).hexdigest()
        return f"deepagents/{digest}/{self.ordinals.next(digest)}"


def current_runtime() -> Runtime[None] | None:
    """Return the runtime of the run that is going on, or None outside of one."""
    try:
        runtime: Runtime[None] | None = get_runtime()
    except (RuntimeError, KeyError):
        return None
    return runtime


def current_call(runtime: Runtime[None] | None, *, keyed: bool) -> Call:
    """Return who calls, and `keyed`, which call it is.

    An agent is one thread (or, where no thread is named, one run) and in it the main agent or one
    invocation of a sub-agent: each has read what it has read. A tool call is a task of its own, whose
    id LangGraph makes from the checkpoint and the place of the call in it; a step that is repeated
    from that checkpoint has the same.
    """
    info = None if runtime is None else runtime.execution_info
    if runtime is None or info is None:
        return Call()
    run = info.thread_id or info.run_id or _name_of(runtime.control)
    return Call(
        agent=json.dumps([run, info.checkpoint_ns.rpartition("|")[0]]),
        identity=_identity(info) if keyed else None,
        # Each attempt at a task has an info of its own, so a repeated call counts anew.
        ordinals=_ORDINALS.of(info, _Ordinals),
    )


def _name_of(control: RunControl | None) -> str:
    """Return a name for a run that nothing else names; a new one for what cannot be told apart.

    A run has one control object. One that is no longer held gets a new name, and has seen nothing.
    """
    if control is None:
        return uuid.uuid4().hex
    return _RUN_NAMES.of(control, lambda: uuid.uuid4().hex)


def _identity(info: ExecutionInfo) -> tuple[str, ...] | None:
    """Return thread, checkpoint and task; None where one task may make several calls, or none is kept."""
    if info.thread_id is None or not info.checkpoint_id or not info.task_id:
        return None
    path = get_config().get("metadata", {}).get("langgraph_path") or ()
    if not path or path[0] != _ONE_CALL_EACH:
        return None
    return (info.thread_id, info.checkpoint_ns, info.checkpoint_id, info.task_id)
