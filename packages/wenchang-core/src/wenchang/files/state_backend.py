"""`StateFileBackend`: files in a dict that the harness keeps with its checkpoints.

They last as long as the thread whose state they are and never touch the host. A file is an entry
`{"content": …}` under its absolute path, so that the state stays plain JSON.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, Final, TypeVar

from wenchang.files._absences import no_file, no_folder, stale
from wenchang.files._checks import to_edit, to_listed, to_read, to_searched, to_written
from wenchang.files._effects import Effect, EffectOutcome, is_recorded
from wenchang.files._regex import LineMatcher
from wenchang.files._scan import children, grep_files, match_files, take
from wenchang.files._windows import window
from wenchang.files.backend import (
    DEFAULT_READ_LINES,
    MAX_ITEMS,
    Accept,
    BackendEntry,
    FileChange,
    FileRemoval,
    GrepResult,
    Listing,
    ReadWindow,
    absolute,
    check_at_least,
    to_file,
)
from wenchang.files.edits import apply_edits
from wenchang.files.errors import (
    AlreadyExistsError,
    FileToolError,
    InvalidArgumentError,
    LimitExceededError,
    NotFoundError,
    TreeStateError,
)
from wenchang.files.limits import TreeLimits
from wenchang.files.paths import ROOT, ancestors, depth

__all__ = ["MAX_STATE_RECEIPTS", "StateFileBackend"]

_OutcomeT = TypeVar("_OutcomeT", FileChange, FileRemoval)

MAX_STATE_RECEIPTS: Final = 256
"""Receipts that a state keeps; the oldest give way."""
_DEFAULT_LIMITS: Final = TreeLimits()


class StateFileBackend:
    """A `FileBackend` on a mapping from absolute path to `{"content": text}`.

    `files` is the caller's, read and changed in place: a changed file gets a new entry, so an entry
    that a checkpoint has taken never changes. What else stands in an entry is kept; entries under
    keys that are no absolute paths are left alone. `receipts` holds the outcomes of calls with effect
    keys and belongs into the same checkpoint; without it they last as long as this object.

    A version is a digest of the content: a file that is what it was has the version that it had.
    One object serves any number of threads; two objects must not share a mapping.
    """

    def __init__(
        self,
        files: MutableMapping[str, Any] | None = None,
        *,
        receipts: MutableMapping[str, Any] | None = None,
        limits: TreeLimits = _DEFAULT_LIMITS,
        max_items: int = MAX_ITEMS,
    ) -> None:
        """Keep the mappings."""
        check_at_least("max_items", max_items, 1)
        self.files: MutableMapping[str, Any] = {} if files is None else files
        self.receipts: MutableMapping[str, Any] = {} if receipts is None else receipts
        self._limits = limits
        self._max_items = max_items
        self._lock = threading.Lock()

    @property
    def max_items(self) -> int:
        """See `FileBackend`."""
        return self._max_items

    # --- reading ---------------------------------------------------------------------------------

    def ls(self, path: str = "/", *, limit: int | None = None) -> Listing:
        """See `FileBackend`."""
        folder = to_listed(path, limit)
        with self._lock:
            paths = self._below(folder)
            if not paths and folder != ROOT:
                raise no_folder(folder, is_file=absolute(folder) in self.files)
            return take(children(folder, paths, self._entry), limit, self._max_items)

    def read(self, path: str, offset: int = 0, limit: int = DEFAULT_READ_LINES) -> ReadWindow:
        """See `FileBackend`."""
        wanted = to_read(path, offset, limit)
        with self._lock:
            text = self._text(wanted)
        return window(wanted, text, offset, limit, version=_version(text))

    def glob(
        self,
        pattern: str,
        under: str = "/",
        *,
        accept: Accept | None = None,
        limit: int | None = None,
    ) -> Listing:
        """See `FileBackend`."""
        folder = to_searched(under)
        with self._lock:
            files = self._files(folder)
        return match_files(
            files, pattern, folder, accept=accept, limit=limit, max_items=self._max_items
        )

    def grep(
        self,
        pattern: str,
        under: str = "/",
        *,
        include: str | None = None,
        accept: Accept | None = None,
        limit: int | None = None,
    ) -> GrepResult:
        """See `FileBackend`."""
        folder = to_searched(under)
        matcher = LineMatcher(pattern)
        with self._lock:
            files = self._files(folder)
            texts = {entry.path: _content(self.files.get(entry.path)) for entry in files}

        def contents(entries: Sequence[BackendEntry]) -> Iterator[bytes | None]:
            for entry in entries:
                text = texts[entry.path]
                yield None if text is None else text.encode()

        return grep_files(
            files,
            contents,
            matcher,
            folder,
            include=include,
            accept=accept,
            limit=limit,
            max_items=self._max_items,
        )

    def locks(self, path: str) -> tuple[str, ...]:
        """Return `files/state/<path>`."""
        return (f"files/state/{to_file(path)}",)

    # --- changing --------------------------------------------------------------------------------

    def write(
        self,
        path: str,
        content: str,
        *,
        version: str | None = None,
        create_only: bool = False,
        effect_key: str | None = None,
    ) -> FileChange:
        """See `FileBackend`."""
        wanted = to_written(path, content, version, create_only=create_only)

        def decide() -> FileChange:
            there = absolute(wanted) in self.files
            if there and create_only:
                raise AlreadyExistsError(absolute(wanted), "file")
            if version is not None:
                self._check_version(wanted, version)
            if not there:
                self._check_place(wanted)
            return self._store(wanted, content)

        arguments = [_version(content), version, create_only]
        return self._run("write", wanted, arguments, effect_key, decide)

    def edit(
        self,
        path: str,
        old: str,
        new: str,
        *,
        replace_all: bool = False,
        version: str | None = None,
        effect_key: str | None = None,
    ) -> FileChange:
        """See `FileBackend`."""
        wanted, edit = to_edit(path, old, new, replace_all=replace_all)

        def decide() -> FileChange:
            text = self._text(wanted)
            if version is not None:
                self._check_version(wanted, version)
            changed, count = apply_edits(absolute(wanted), text, [edit])
            return self._store(wanted, changed, count)

        arguments = [_version(old), _version(new), replace_all, version]
        return self._run("edit", wanted, arguments, effect_key, decide)

    def delete(
        self, path: str, *, version: str | None = None, effect_key: str | None = None
    ) -> FileRemoval:
        """See `FileBackend`."""
        wanted = to_file(path)

        def decide() -> FileRemoval:
            if absolute(wanted) not in self.files:
                raise self._no_file(wanted)
            if version is not None:
                self._check_version(wanted, version)
            del self.files[absolute(wanted)]
            return FileRemoval(path=absolute(wanted))

        return self._run("delete", wanted, [version], effect_key, decide)

    def _run(
        self,
        operation: str,
        path: str,
        arguments: Sequence[Any],
        effect_key: str | None,
        decide: Callable[[], _OutcomeT],
    ) -> _OutcomeT:
        """Decide a change and keep what it came to, or repeat what it came to before."""
        if effect_key is None:
            with self._lock:
                return decide()
        effect = Effect(effect_key, operation, path, arguments)
        with self._lock:
            record = self.receipts.get(effect.key)
            if record is not None:
                return _as(decide, effect.repeat(record))
            try:
                outcome = decide()
            except FileToolError as error:
                if is_recorded(error):
                    self._keep(effect.key, effect.record(error))
                raise
            self._keep(effect.key, effect.record(outcome))
            return outcome

    def _keep(self, key: str, record: list[Any]) -> None:
        while len(self.receipts) >= MAX_STATE_RECEIPTS:
            del self.receipts[next(iter(self.receipts))]
        self.receipts[key] = record

    def _store(self, path: str, text: str, replacements: int = 0) -> FileChange:
        """Give a path, checked before, a new content."""
        entry = self.files.get(absolute(path))
        held = _content(entry)
        if held != text:
            self._check_sizes(path, held, len(text.encode()), new=entry is None)
            kept = dict(entry) if isinstance(entry, Mapping) else {}
            self.files[absolute(path)] = {**kept, "content": text}
        return FileChange(
            path=absolute(path),
            version=_version(text),
            created=entry is None,
            changed=held != text,
            replacements=replacements,
            previous="" if held is None else _version(held),
        )

    # --- rules; the lock is held -------------------------------------------------------------------

    def _check_place(self, path: str) -> None:
        if self._below(path):
            raise AlreadyExistsError(absolute(path), "folder")
        for folder in ancestors(path):
            if absolute(folder) in self.files:
                raise AlreadyExistsError(
                    absolute(folder),
                    "file",
                    f"{absolute(folder)} is a file, so nothing can be beneath it.",
                )
        _check_limit("maxDepth", depth(path), self._limits.max_depth)

    def _check_sizes(self, path: str, held: str | None, size: int, *, new: bool) -> None:
        before = 0 if held is None else len(held.encode())
        if new:
            _check_limit("maxFileCount", len(self._below(ROOT)) + 1, self._limits.max_file_count)
        if size > before:
            _check_limit("maxFileBytes", size, self._limits.max_file_bytes)
            others = sum(
                len((_content(entry) or "").encode())
                for key, entry in self.files.items()
                if key != absolute(path)
            )
            _check_limit("maxTotalBytes", others + size, self._limits.max_total_bytes)

    def _check_version(self, path: str, version: str) -> None:
        entry = self.files.get(absolute(path))
        if entry is None:
            raise self._no_file(path)
        text = _content(entry)
        if text is None or _version(text) != version:
            raise stale(path, _version(text or ""), text)

    def _text(self, path: str) -> str:
        entry = self.files.get(absolute(path))
        if entry is None:
            raise self._no_file(path)
        text = _content(entry)
        if text is None:
            raise TreeStateError("unreadable_content", absolute(path))
        return text

    def _no_file(self, path: str) -> NotFoundError:
        return no_file(path, is_folder=bool(self._below(path)))

    def _below(self, folder: str) -> list[str]:
        """Return the absolute paths of the files beneath a folder, in order."""
        start = "/" if folder == ROOT else absolute(folder) + "/"
        return sorted(key for key in self.files if key.startswith(start) and _is_path(key))

    def _files(self, under: str) -> list[BackendEntry]:
        """Return the files beneath a folder, or the one that is there."""
        if under != ROOT and absolute(under) in self.files:
            return [self._entry(absolute(under))]
        paths = self._below(under)
        if not paths and under != ROOT:
            raise NotFoundError(absolute(under))
        return [self._entry(path) for path in paths]

    def _entry(self, path: str) -> BackendEntry:
        text = _content(self.files[path])
        if text is None:
            return BackendEntry(path=path)
        return BackendEntry(path=path, size=len(text.encode()), version=_version(text))


def _is_path(key: str) -> bool:
    try:
        return absolute(to_file(key)) == key
    except InvalidArgumentError:
        return False


def _content(entry: object) -> str | None:
    """Return the text of an entry; None where it holds none."""
    content = entry.get("content") if isinstance(entry, Mapping) else None
    if not isinstance(content, str):
        return None
    try:
        content.encode()
    except UnicodeEncodeError:
        return None
    return content


def _version(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _check_limit(name: str, value: int, maximum: int) -> None:
    if value > maximum:
        raise LimitExceededError(name, value, maximum)


def _as(_decide: Callable[[], _OutcomeT], outcome: EffectOutcome) -> _OutcomeT:
    """Return a repeated outcome as what the call returns: its digest says that it is the same call."""
    return outcome  # type: ignore[return-value]  # pyright: ignore[reportReturnType]  # a record of one operation is of one kind
