"""`ReplayConformance`: changes that were committed and never answered, on the file backends of a storage.

    class TestReplayOnMine(ReplayConformance):
        @pytest.fixture
        def hooks(self):
            with hooks_at(StorageLocation.parse("mine://…")) as hooks:
                yield hooks

A process that makes a call is killed when the call is committed; the call is repeated in another
process. A storage that no other process can open loses the answer, and another handle repeats.
"""

from __future__ import annotations

import signal
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Self, TypeVar

import pytest

from wenchang_conformance.file_backend.killed import (
    CALLS,
    Dying,
    killed,
    repeated,
    repeated_otherwise,
)
from wenchang_conformance.processes import SpawnedStorage

if TYPE_CHECKING:
    from collections.abc import Callable

    from wenchang.storage import Storage
    from wenchang_conformance.hooks import StorageHooks

__all__ = ["ReplayConformance"]

_T = TypeVar("_T")


class _AnswerLostError(BaseException):
    """Stands for the end of the caller: nothing may catch it and go on."""


class ReplayConformance:
    """The first outcome of a call is its only one, whatever becomes of the process that made it."""

    @pytest.fixture
    def hooks(self) -> StorageHooks:
        """Return the hooks of one fresh namespace of the storage."""
        pytest.fail("give the fixture `hooks`: the StorageHooks of a fresh namespace")

    @pytest.mark.parametrize("kind", ["store", "memory"])
    def test_a_call_killed_after_its_commit_has_its_first_outcome_when_repeated(
        self, hooks: StorageHooks, kind: str
    ) -> None:
        """Kill, change what the call would come to, repeat elsewhere, then with other arguments."""
        with _Subject(hooks) as subject:
            storage = subject.storage
            for name, call in CALLS.items():
                if call.kind != kind:
                    continue
                call.prepare(storage)
                subject.kill(name, behind=True)
                assert call.files_on(storage) == call.leaves, f"{name} was not committed once"
                call.since(call.open(storage), call.at)
                held = call.files_on(storage)
                first, replayed = subject.elsewhere(repeated, name)
                assert first == call.first, f"{name} came to something else when repeated"
                assert replayed is not first[0].isupper(), f"{name} does not say if it is repeated"
                other, _ = subject.elsewhere(repeated_otherwise, name)
                assert other == ("EFFECT_KEY_REUSED",), f"{name} lent its key to another call"
                assert call.files_on(storage) == held, f"{name} was applied twice"

    def test_a_call_killed_before_its_commit_is_carried_out_when_repeated(
        self, hooks: StorageHooks
    ) -> None:
        """Kill when all but the commit is done, and repeat elsewhere."""
        with _Subject(hooks) as subject:
            for name in ("store-edit", "memory-edit"):
                call = CALLS[name]
                call.prepare(subject.storage)
                subject.kill(name, behind=False)
                assert call.files_on(subject.storage) == {"a.md": "x", "b.md": "x"}, name
                assert subject.elsewhere(repeated, name) == (call.first, False), name
                assert call.files_on(subject.storage) == call.leaves, name


class _Subject:
    """A handle here, and processes that make calls and die, or repeat them."""

    def __init__(self, hooks: StorageHooks) -> None:
        self._spawn = hooks.spawn
        self._open = hooks.open
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self.storage = self._open()
        if self._spawn is not None:
            close = getattr(self.storage, "close", None)
            if close is not None:
                self._stack.callback(close)
            # The one makes calls and never ends them, so it is not asked to repeat any.
            self._maker, self._repeater = (
                self._stack.enter_context(closing(SpawnedStorage(self._spawn))) for _ in range(2)
            )
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def kill(self, name: str, *, behind: bool) -> None:
        """Kill a process at the commit of its call; without another process, lose the answer."""
        if self._spawn is not None:
            code = self._maker.run(killed, self._spawn, name, behind)
            assert code == -signal.SIGKILL, f"{name} ended with {code} and no commit"
            return
        call = CALLS[name]
        files = call.open(Dying(self.storage, _lose, behind=behind))
        with pytest.raises(_AnswerLostError):
            call.run(files, call.at)

    def elsewhere(self, task: Callable[[Storage, str], _T], name: str) -> _T:
        """Run a task in another process; on a handle of its own here where no other can open it."""
        if self._spawn is None:
            return task(self.storage, name)
        done: _T = self._repeater.run(task, name)
        return done


def _lose() -> None:
    raise _AnswerLostError
