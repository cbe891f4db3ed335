r"""`FileTree`: a folder of text files that any number of writers change at once, each call atomic.

A tree is one root object, immutable pages and immutable contents, all under one key prefix of a
storage. A mutation is committed by one conditional write of the root: it takes effect as a whole or
not at all, whatever it touches, on any storage that keeps the contract.

    tree = FileTree(storage, "@files/ada")
    tree.create("notes/a.md", "first\n")
    entry = tree.snapshot().lookup("notes/a.md")
    tree.edit("notes/a.md", [Edit(old_text="first", new_text="1st")], version=entry.version)

One tree object serves any number of threads, and what they do at the same moment is committed
together: share one object for each root of a process. Any number of processes may work on a root.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final, TypeVar

from wenchang.files import _calls as calls
from wenchang.files._commit import Committer
from wenchang.files._garbage import collect_garbage
from wenchang.files._objects import Objects
from wenchang.files._purge import purge, purge_with_root
from wenchang.files._queue import CommitQueue
from wenchang.files._rebuild import verify
from wenchang.files.edits import Edit
from wenchang.files.errors import NotFoundError
from wenchang.files.limits import TreeLimits
from wenchang.files.paths import canonical_file
from wenchang.files.policy import HistoryPolicy, TreePolicy
from wenchang.files.snapshot import Snapshot, read_repeatedly
from wenchang.files.values import (
    Deleted,
    FileEntry,
    GarbageReport,
    Moved,
    Outcome,
    PastVersion,
    TreeReport,
    Written,
)
from wenchang.operators import PURGE_MAX_PASSES
from wenchang.storage.contract import Storage

__all__ = ["FileTree"]

_T = TypeVar("_T")
_OutcomeT = TypeVar("_OutcomeT", Written, Moved, Deleted)
_DEFAULT_LIMITS: Final = TreeLimits()
_DEFAULT_POLICY: Final = TreePolicy()


def _now() -> datetime:
    return datetime.now(UTC)


class FileTree:
    """The tree under the key prefix `base` of a storage (`@files/<entity>`, say; no `/` at its end).

    Constructing one sends nothing. `limits` and `history` are settings of this object: changing them
    hides and deletes nothing. `clock` gives the times that are stored; none is earlier than one
    stored before.

    **Paths** may have one leading and one trailing `/`; results have the canonical form. A path is a
    file or a folder, never both; folders exist while a file is beneath them.

    **Outcomes.** A mutation returns (committed, exactly once), raises a `FileToolError` (refused on
    the state of the tree at some moment of the call, nothing changed), or raises
    `BackendUnavailableError`, with `outcome="not_applied"` (nothing changed) or `"unknown"` (it took
    effect as a whole, may still do so, or never will). A race that is lost is decided again on the
    new state until `TreePolicy.deadline`; then it is `not_applied`, and for `append` a
    `VersionConflictError` without a version. Callers need no retry loop of their own.
    `TreeStateError` tells of a damaged tree or one of a newer format.

    **Effect keys.** With `effect_key` (1 to 200 characters, chosen by the caller for one intended
    change) the outcome is recorded in the commit itself. Repeating the call with the key, in another
    process too, returns or raises that first outcome and changes nothing; `replayed` tells so. The
    key with other arguments is an `EffectKeyReusedError`. Recorded are successes and refusals that
    depend on the tree; not recorded are invalid arguments, outages, unknown outcomes, lost races.

    `source` (up to 100 characters) says who writes; it is kept where the tree keeps history.

    `scope` is the scope whose entity owns the tree. It is kept in the root that this object makes, so
    that a purge of the entity finds the tree (`wenchang.files.erasure`).
    """

    def __init__(
        self,
        storage: Storage,
        base: str,
        *,
        limits: TreeLimits = _DEFAULT_LIMITS,
        history: HistoryPolicy | None = None,
        policy: TreePolicy = _DEFAULT_POLICY,
        clock: Callable[[], datetime] = _now,
        scope: str = "",
    ) -> None:
        self.limits = limits
        self.history = history
        self.policy = policy
        self._objects = Objects(storage, base, policy, scope)
        self._settings = calls.Settings(limits=limits, history=history, policy=policy, clock=clock)
        self._committer = Committer(self._objects, self._settings, sweep=self._sweep)
        self._queue = CommitQueue(self._committer, policy)

    # --- reading ---------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Read the root now and return the tree as it is: one request, pages are read as needed.

        A snapshot never changes. Objects that it needs may be removed once others have replaced
        them; it then raises `StaleSnapshotError`, which `view` takes care of.
        """
        return Snapshot(self._objects, self._objects.read_root(), self.limits)

    def view(self, read: Callable[[Snapshot], _T]) -> _T:
        """Return what `read` makes of a fresh snapshot.

        `read` is called again, at most 3 times, with a fresh one where an object of its snapshot had
        been removed meanwhile; it should have no other effects. An object that is missing although
        the root did not change is a `TreeStateError`.
        """
        return read_repeatedly(self._objects, self.limits, read)

    def read_file(self, path: str) -> tuple[FileEntry, str]:
        """Return a file's entry and text, in two requests (one where the content is cached).

        Raises `NotFoundError` where there is no file.
        """
        wanted = canonical_file(path)

        def read(snapshot: Snapshot) -> tuple[FileEntry, str]:
            entry = snapshot.lookup(wanted)
            if not isinstance(entry, FileEntry):
                raise NotFoundError(wanted, calls.no_file_text(wanted, entry))
            return entry, snapshot.read(entry)

        return self.view(read)

    def file_history(self, path: str) -> tuple[PastVersion, ...]:
        """Return the states of a path that can be read or restored, the newest first.

        The first is the current one, unless the path is deleted. Raises `NotFoundError` where
        nothing is kept of the path.
        """
        wanted = canonical_file(path)
        states = self.view(lambda snapshot: snapshot.states(wanted, self._settings.oldest_kept()))
        if not states:
            raise NotFoundError(wanted)
        return states

    # --- changing --------------------------------------------------------------------------------

    def create(
        self, path: str, text: str, *, effect_key: str | None = None, source: str = ""
    ) -> Written:
        """Make a new file; folders come into being with it.

        Raises `AlreadyExistsError` where a file or folder is, or where a folder of the path is a
        file, and `LimitExceededError`.
        """
        call = calls.Create(path=canonical_file(path), text=text, source=source)
        return self._run(call, Written, effect_key)

    def write(
        self,
        path: str,
        text: str,
        version: str | None = None,
        *,
        effect_key: str | None = None,
        source: str = "",
    ) -> Written:
        """Replace a whole file that is still at `version`; without one, only create.

        Raises `VersionConflictError` (with the current text up to 16 KiB), `NotFoundError` where a
        version is given and no file is there, `InvalidArgumentError` for a version and a folder,
        and what `create` raises.
        """
        wanted = canonical_file(path)
        if version is None:
            return self._run(
                calls.Create(path=wanted, text=text, source=source), Written, effect_key
            )
        call = calls.Replace(path=wanted, text=text, version=version, source=source)
        return self._run(call, Written, effect_key)

    def put(
        self, path: str, text: str, *, effect_key: str | None = None, source: str = ""
    ) -> Written:
        """Create the file or replace its content, whatever it is; refuses a folder as `create` does."""
        call = calls.Put(path=canonical_file(path), text=text, source=source)
        return self._run(call, Written, effect_key)

    def append(
        self, path: str, text: str, *, effect_key: str | None = None, source: str = ""
    ) -> Written:
        """Add text at the very end of the file, creating it where there is none.

        Never merges with, overwrites or repeats anything. Raises as `create` does but for an
        existing file.
        """
        call = calls.Append(path=canonical_file(path), text=text, source=source)
        return self._run(call, Written, effect_key)

    def edit(
        self,
        path: str,
        edits: Sequence[Edit],
        version: str | None = None,
        *,
        effect_key: str | None = None,
        source: str = "",
    ) -> Written:
        """Replace exact text, all edits or none, by the rules of `wenchang.files.edits`.

        Raises `NotFoundError`, `VersionConflictError` where `version` is given and stale,
        `EditMatchError`, `LimitExceededError`.
        """
        call = calls.EditFile(
            path=canonical_file(path), edits=tuple(edits), version=version, source=source
        )
        return self._run(call, Written, effect_key)

    def move(
        self,
        source: str,
        target: str,
        version: str | None = None,
        *,
        effect_key: str | None = None,
    ) -> Moved:
        """Move or rename a file, or a folder with everything beneath it, in one commit.

        Never overwrites. Raises `NotFoundError`, `AlreadyExistsError` (also for a file in the way of
        `target`), `VersionConflictError` for a file, `InvalidArgumentError` (the root, a folder into
        itself, `version` with a folder), `LimitExceededError` where it lands too deep.
        """
        call = calls.Move(
            path=canonical_file(source, argument="from"),
            target=canonical_file(target, argument="to"),
            version=version,
        )
        return self._run(call, Moved, effect_key)

    def delete(
        self,
        path: str,
        recursive: bool = False,
        version: str | None = None,
        *,
        effect_key: str | None = None,
    ) -> Deleted:
        """Delete a file, or with `recursive` a folder and everything beneath it, in one commit.

        No content is read, so a damaged file can be deleted. Raises `NotFoundError`,
        `VersionConflictError` for a file, `InvalidArgumentError` (the root; a folder without
        `recursive`, with its number of direct `entries`; `version` with a folder).
        """
        call = calls.Delete(path=canonical_file(path), recursive=recursive, version=version)
        return self._run(call, Deleted, effect_key)

    def delete_file(
        self, path: str, version: str | None = None, *, effect_key: str | None = None
    ) -> Deleted:
        """Delete one file as `delete` does; a folder is a `NotFoundError`, which a receipt keeps."""
        call = calls.DeleteFile(path=canonical_file(path), version=version)
        return self._run(call, Deleted, effect_key)

    def restore(
        self, path: str, version: str, *, effect_key: str | None = None, source: str = ""
    ) -> Written:
        """Bring a state that `file_history` lists back as a new version, a deleted file included.

        Raises `NotFoundError` where that state is not kept, and what `create` raises but for an
        existing file.
        """
        call = calls.Restore(path=canonical_file(path), version=version, source=source)
        return self._run(call, Written, effect_key)

    def run(self, call: calls.Call) -> Outcome:
        """Have a call that is none of the above decided and committed as they are; return its outcome.

        For adapters whose harness decides by rules of its own. `call` has been `checked`, which also
        gave it its effect key. Raises what its `decide` raises, and what every mutation does.
        """
        outcome = self._queue.run(call)
        if not isinstance(outcome, Written | Moved | Deleted):
            msg = f"the call came to {type(outcome).__name__}, which is no outcome"
            raise TypeError(msg)
        return outcome

    # --- care ------------------------------------------------------------------------------------

    def owner(self) -> str | None:
        """Return the scope that the stored root names, "" where it names none; None without a root.

        One request; a damaged root answers too, from its metadata.
        """
        return self._objects.owner()

    def purge(
        self,
        *,
        remove_root: bool = False,
        max_passes: int = PURGE_MAX_PASSES,
        only_scope: str | None = None,
    ) -> int:
        """Erase every file, past version and receipt for good; return how many objects went.

        The tree is empty at once; its objects are deleted next. Every version token given out
        before is stale for ever. Breaking off leaves the old tree or an empty one, and repeating
        completes it. A root of a newer format is a `TreeStateError`, and nothing is erased.

        With `remove_root` everything under `base` goes, the root last: for an owner who is erased.
        Writers should have stopped. If they keep coming for `max_passes` rounds, it raises
        `PurgeIncompleteError`; a write that arrives later begins a new tree. With `only_scope` too,
        files of another scope's entity, which may come meanwhile, stay.
        """
        if remove_root:
            return purge_with_root(
                self._objects, self._queue, max_passes=max_passes, only_scope=only_scope
            )
        return purge(self._objects, self._queue)

    def collect_garbage(self) -> GarbageReport:
        """Delete the objects that nothing refers to; safe beside any number of writers.

        Raises `TreeStateError`, and deletes nothing, while the root is absent, unreadable or of a
        newer format.
        """
        return collect_garbage(self._objects, self._queue)

    def verify(self, *, rebuild: bool = False) -> TreeReport:
        """Check that everything the root refers to is there and adds up.

        With `rebuild` a tree that is not sound gets a new root, made from its pages as far as they
        can be read and otherwise from the path and version that stand with every content: the
        newest content of each path. Deleted files that were not collected yet come back, moved
        files may be found where they were written. Stop the writers first. Past versions and
        receipts are not recovered where pages are missing.
        """
        return verify(self._objects, self._settings, rebuild=rebuild)

    def close(self) -> None:
        """Finish what runs in the background. The tree can still be used; the storage stays open."""
        self._objects.drain()

    def _run(self, call: calls.Call, kind: type[_OutcomeT], effect_key: str | None) -> _OutcomeT:
        outcome = self.run(call.checked(effect_key))
        if not isinstance(outcome, kind):
            msg = f"the call came to {type(outcome).__name__}, not {kind.__name__}"
            raise TypeError(msg)
        return outcome

    def _sweep(self) -> None:
        """Collect garbage in the background, because this process has committed often."""
        self._objects.in_background(self.collect_garbage)
