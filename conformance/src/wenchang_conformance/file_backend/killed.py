"""Calls of file backends that are killed when they are committed, and their repetition.

The functions here run in processes of their own, so all that they need has a name. Each call has files
of its own: of a tenant, or of an entity, that is called like it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from wenchang.core import MemoryStore
from wenchang.files.backend import FileBackend, FileChange, FileRemoval
from wenchang.files.errors import FileToolError
from wenchang.files.memory_backend import MemoryFileBackend
from wenchang.files.store_backend import StoreFileBackend
from wenchang.identity import Identity, ScopeGrant
from wenchang.scope import ScopePolicy
from wenchang_conformance.worker import open_recipe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wenchang.storage import ListedObject, Storage, StoredObject
    from wenchang_conformance.hooks import Recipe

__all__ = [
    "CALLS",
    "EFFECT_KEY",
    "Call",
    "Dying",
    "killed",
    "outcome_of",
    "repeated",
    "repeated_otherwise",
]

EFFECT_KEY: Final = "run-1/step-2/call-3"

Outcome = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One change, what it comes to on files `a.md` ("x") and `b.md` ("x"), and what happens after it.

    `first` is the outcome of the first call, without its version; `leaves` are the files behind it.
    After `since` the same call would come to something else.
    """

    kind: str
    name: str
    run: Callable[[FileBackend, Callable[[str], str]], FileChange | FileRemoval]
    first: Outcome
    leaves: Mapping[str, str]
    since: Callable[[FileBackend, Callable[[str], str]], object]

    def at(self, name: str) -> str:
        """Return the absolute path of a file."""
        return f"{_FOLDERS[self.kind]}/{name}"

    def open(self, storage: Storage) -> FileBackend:
        """Return a new handle of the files on a storage."""
        return _OPENED[self.kind](storage, f"{self.kind}-{self.name}")

    def prepare(self, storage: Storage) -> None:
        """Write the two files."""
        files = self.open(storage)
        for name in ("a.md", "b.md"):
            files.write(self.at(name), "x")

    def files_on(self, storage: Storage) -> dict[str, str]:
        """Return the files as a new handle reads them, by name."""
        files = self.open(storage)
        start = _FOLDERS[self.kind] + "/"
        return {
            entry.path.removeprefix(start): files.read(entry.path).text
            for entry in files.glob("**").entries
        }


def _open_store(storage: Storage, owner: str) -> FileBackend:
    return StoreFileBackend(storage, ("replay",), tenant=owner)


def _open_memory(storage: Storage, owner: str) -> FileBackend:
    identity = Identity({"user": ScopeGrant(owner, "member")})
    return MemoryFileBackend(MemoryStore(storage), identity, ScopePolicy(), source="replay")


_OPENED: Final[Mapping[str, Callable[[Storage, str], FileBackend]]] = MappingProxyType(
    {"store": _open_store, "memory": _open_memory}
)
_FOLDERS: Final[Mapping[str, str]] = MappingProxyType({"store": "", "memory": "/user/notes"})


def _is_commit(key: str) -> bool:
    """Tell whether a conditional write at a key commits a change: of a root, or of a memory file."""
    return key.endswith("/root") or key.startswith("user/")


def _calls(kind: str) -> Iterator[Call]:
    both = {"a.md": "x", "b.md": "x"}
    yield Call(
        kind=kind,
        name="write",
        run=lambda files, at: files.write(at("c.md"), "new", effect_key=EFFECT_KEY),
        first=("changed", True, True, 0),
        leaves=both | {"c.md": "new"},
        since=lambda files, at: files.write(at("c.md"), "later"),
    )
    yield Call(
        kind=kind,
        name="edit",
        run=lambda files, at: files.edit(
            at("a.md"), "x", "xx", replace_all=True, effect_key=EFFECT_KEY
        ),
        first=("changed", False, True, 1),
        leaves=both | {"a.md": "xx"},
        since=lambda files, at: files.write(at("b.md"), "later"),
    )
    yield Call(
        kind=kind,
        name="edit-refused",
        run=lambda files, at: files.edit(at("a.md"), "y", "z", effect_key=EFFECT_KEY),
        first=("EDIT_MATCH",),
        leaves=both,
        since=lambda files, at: files.write(at("a.md"), "y"),
    )
    yield Call(
        kind=kind,
        name="stale-refused",
        run=lambda files, at: files.edit(
            at("a.md"), "x", "y", version="v0-none", effect_key=EFFECT_KEY
        ),
        first=("VERSION_CONFLICT",),
        leaves=both,
        since=lambda files, at: files.write(at("a.md"), "x later"),
    )
    if kind == "memory":
        # Its receipts lie in the file: they go with it, and there is none where it is not.
        return
    yield Call(
        kind=kind,
        name="create-refused",
        run=lambda files, at: files.write(
            at("a.md"), "new", create_only=True, effect_key=EFFECT_KEY
        ),
        first=("ALREADY_EXISTS",),
        leaves=both,
        since=lambda files, at: files.delete(at("a.md")),
    )
    yield Call(
        kind=kind,
        name="delete",
        run=lambda files, at: files.delete(at("a.md"), effect_key=EFFECT_KEY),
        first=("deleted",),
        leaves={"b.md": "x"},
        since=lambda files, at: files.write(at("a.md"), "later"),
    )
    yield Call(
        kind=kind,
        name="delete-refused",
        run=lambda files, at: files.delete(at("c.md"), effect_key=EFFECT_KEY),
        first=("NOT_FOUND",),
        leaves=both,
        since=lambda files, at: files.write(at("c.md"), "later"),
    )


CALLS: Final[Mapping[str, Call]] = MappingProxyType(
    {f"{kind}-{call.name}": call for kind in _OPENED for call in _calls(kind)}
)
"""Every kind of change that is remembered, successes and refusals, by backend and name."""


class Dying:
    """A storage whose process ends at a commit: behind it, or in front of it."""

    def __init__(self, inner: Storage, end: Callable[[], None], *, behind: bool) -> None:
        """Call `end`, which does not return, where a change is committed."""
        self._inner = inner
        self._end = end
        self._behind = behind

    def get(self, key: str) -> StoredObject | None:
        """Call `Storage.get`."""
        return self._inner.get(key)

    def put(self, key: str, data: bytes, metadata: Mapping[str, str]) -> str:
        """Call `Storage.put`."""
        return self._inner.put(key, data, metadata)

    def put_if_version(
        self, key: str, data: bytes, metadata: Mapping[str, str], expected: str | None
    ) -> str:
        """Call `Storage.put_if_version`, and end."""
        if _is_commit(key) and not self._behind:
            self._end()
        version = self._inner.put_if_version(key, data, metadata, expected)
        if _is_commit(key):
            self._end()
        return version

    def delete_if_version(self, key: str, expected: str) -> None:
        """Call `Storage.delete_if_version`."""
        self._inner.delete_if_version(key, expected)

    def list_page(self, prefix: str, start_after: str | None, limit: int) -> Sequence[ListedObject]:
        """Call `Storage.list_page`."""
        return self._inner.list_page(prefix, start_after, limit)


def killed(_: Storage, recipe: Recipe, name: str, behind: bool) -> int:
    """Make a call in a process that dies at its commit as by `kill -9`; return that process's exit code.

    The process has a handle of its own, opened with `recipe`.
    """
    child = os.fork()
    if child == 0:
        try:
            call = CALLS[name]
            call.run(call.open(Dying(open_recipe(recipe), _die, behind=behind)), call.at)
        finally:
            # Reached where nothing was committed: the parent then sees another exit code.
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def repeated(storage: Storage, name: str) -> tuple[Outcome, bool]:
    """Make a call on a new handle; return what it came to, and whether it says that it is a repetition."""
    call = CALLS[name]
    return outcome_of(lambda: call.run(call.open(storage), call.at))


def repeated_otherwise(storage: Storage, name: str) -> tuple[Outcome, bool]:
    """Make another call on the same path under the same key."""
    call = CALLS[name]
    path = call.at("c.md" if call.name == "write" else "a.md")
    return outcome_of(lambda: call.open(storage).write(path, "other", effect_key=EFFECT_KEY))


def outcome_of(action: Callable[[], FileChange | FileRemoval]) -> tuple[Outcome, bool]:
    """Return what a call comes to as a plain value, without versions; a refusal is its code."""
    try:
        done = action()
    except FileToolError as error:
        return (error.code,), False
    if isinstance(done, FileRemoval):
        return ("deleted",), done.replayed
    return ("changed", done.created, done.changed, done.replacements), done.replayed
