"""What the run that is going on tells of itself: which agent it is, and which call this is."""

from __future__ import annotations

import hashlib
import json
import threading
import uuid
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from langgraph.config import get_config
from langgraph.runtime import ExecutionInfo, RunControl, Runtime, get_runtime

from wenchang.adapters._seen import KEPT

__all__ = ["OUTSIDE", "Call", "current_call", "current_runtime"]

OUTSIDE: Final = ""
"""The agent of calls outside of any run."""
_ONE_CALL_EACH: Final = "__pregel_push"
"""What the path of a task begins with that was sent to a node by itself, as tool calls are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The agent that calls, and what tells this call from every other one, if it is known."""

    agent: str = OUTSIDE
    identity: tuple[str, ...] | None = None

    def effect_key(self, operation: str, path: str, *arguments: object) -> str | None:
        """Return a key that is the same when the step of this call is repeated; None if unknown."""
        if self.identity is None:
            return None
        text = json.dumps([*self.identity, operation, path, *arguments])
        return f"deepagents/{hashlib.sha256(text.encode()).hexdigest()}"


class _Runs:
    """Names for runs that nothing names, by the control object that each of them has.

    The objects of the newest runs are held, so that none of them gives its identity to another. A run
    that is no longer held gets a new name, and has seen nothing.
    """

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._lock = threading.Lock()
        self._names: OrderedDict[int, tuple[RunControl, str]] = OrderedDict()

    def name_of(self, control: RunControl | None) -> str:
        """Return the name of a run; a new one for what cannot be told from others."""
        if control is None:
            return uuid.uuid4().hex
        with self._lock:
            _, name = self._names.setdefault(id(control), (control, uuid.uuid4().hex))
            self._names.move_to_end(id(control))
            if len(self._names) > self._kept:
                self._names.popitem(last=False)
            return name


_RUNS: Final = _Runs(KEPT)


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
    run = info.thread_id or info.run_id or _RUNS.name_of(runtime.control)
    return Call(
        agent=json.dumps([run, info.checkpoint_ns.rpartition("|")[0]]),
        identity=_identity(info) if keyed else None,
    )


def _identity(info: ExecutionInfo) -> tuple[str, ...] | None:
    """Return thread, checkpoint and task; None where one task may make several calls, or none is kept."""
    if info.thread_id is None or not info.checkpoint_id or not info.task_id:
        return None
    path = get_config().get("metadata", {}).get("langgraph_path") or ()
    if not path or path[0] != _ONE_CALL_EACH:
        return None
    return (info.thread_id, info.checkpoint_ns, info.checkpoint_id, info.task_id)
