r"""`FileBackend`: what an agent harness needs of files, whatever they lie in.

    backend = StoreFileBackend(storage, tenant="acme")
    backend.write("/notes/a.md", "first\n")
    backend.edit("/notes/a.md", "first", "1st")
    backend.read("/notes/a.md").text

The implementations are `StoreFileBackend` (`wenchang.files.store_backend`), `StateFileBackend`
(`state_backend`), `MemoryFileBackend` (`memory_backend`) and `CompositeFileBackend` (`composite`),
which mounts others.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Protocol, TypeAlias, TypeVar, runtime_checkable

from wenchang.errors import WenchangError
from wenchang.files.errors import EntryKind, InvalidArgumentError
from wenchang.files.paths import ROOT, canonical, canonical_file

__all__ = [
    "DEFAULT_READ_LINES",
    "MAX_ITEMS",
    "Accept",
    "BackendEntry",
    "FileBackend",
    "FileChange",
    "FileRemoval",
    "GrepMatch",
    "GrepResult",
    "Listing",
    "ReadWindow",
    "absolute",
    "check_at_least",
    "relocated",
    "to_file",
    "to_folder",
]

MAX_ITEMS: Final = 10_000
"""Files that one listing or search looks at, at most."""
DEFAULT_READ_LINES: Final = 2_000

_ErrorT = TypeVar("_ErrorT", bound=WenchangError)

Accept: TypeAlias = Callable[[str], bool]
"""Tells of an absolute path whether the caller wants it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendEntry:
    """A file or a folder. `path` is absolute, without a `/` at its end.

    Of a folder only `path` and `kind` are known; `size` (bytes of UTF-8) is None where telling it
    would take reading the file, `version` is empty and `modified` None where nothing keeps them.
    """

    path: str
    kind: EntryKind = "file"
    size: int | None = None
    version: str = ""
    modified: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Entries in path order. `truncated`: there are, or may be, more than these."""

    entries: tuple[BackendEntry, ...] = ()
    truncated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadWindow:
    r"""Some lines of a file. `text` is exactly what is stored, line breaks included.

    `offset` is the 0-based number of the first line shown, `lines` how many are, `total_lines` how
    many the file has; only `\n` ends a line. An offset at or past the end shows no line.
    """

    path: str
    text: str
    offset: int
    lines: int
    total_lines: int
    version: str = ""
    modified: datetime | None = None

    @property
    def next_offset(self) -> int | None:
        """The offset that goes on from here; None at the end."""
        end = self.offset + self.lines
        return end if end < self.total_lines else None


@dataclass(frozen=True, slots=True, kw_only=True)
class GrepMatch:
    r"""One matching line: its number from 1 on, and its text without the `\n`."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GrepResult:
    """Matching lines in path, then line order.

    `truncated`: a limit or the budget of work ended the search, so there may be more. `unreadable`
    are files whose content is no text any more.
    """

    matches: tuple[GrepMatch, ...] = ()
    truncated: bool = False
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """A write or an edit that took effect, or found that nothing had to change (`changed` False).

    `replayed`: the call was carried out earlier under its effect key, and this is what it came to.
    `previous` is the version that the change was decided on, so a caller that knows it knows all of the
    file; empty for a new file, in what is replayed, and where the backend does not tell it.
    """

    path: str
    version: str
    created: bool = False
    changed: bool = True
    replacements: int = 0
    replayed: bool = False
    previous: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRemoval:
    """A file is gone."""

    path: str
    replayed: bool = False


@runtime_checkable
class FileBackend(Protocol):
    r"""Text files under absolute paths, safe over threads.

    **Paths** follow `wenchang.files.paths`; the leading `/` may be left out, results always have it.
    `/` is the root. A path is a file or a folder, never both; a folder exists while a file lies
    beneath it. Order is code point order of the whole path, in which a folder counts with a `/` at its end.

    **Limits.** `accept` is asked before `limit` counts, so a path that it refuses takes no place. No
    call looks at more than `max_items` files; results say when they were cut short. A limit below 1
    and a negative offset are `InvalidArgumentError`.

    **Changes** are atomic: each is decided on what is stored at the moment of its commit, and refused
    calls change nothing. A `FileToolError` is for the agent to read; an outage is
    `BackendUnavailableError`, whose `outcome` says whether the change may have happened; damage is
    `TreeStateError`. Bytes outside of what an edit replaces stay as they are.

    **Effect keys.** A change with an `effect_key` (1 to 200 characters) that is repeated with it, in
    another process too where the files outlive the process, returns or raises its first outcome and
    applies nothing; `EffectKeyReusedError` for a key with other arguments. Not remembered are invalid
    arguments, outages, unknown outcomes and lost races.
    """

    @property
    def max_items(self) -> int:
        """The most files that one call looks at."""
        ...

    def ls(self, path: str = "/", *, limit: int | None = None) -> Listing:
        """Return the entries directly beneath a folder; `NotFoundError` where there is none.

        The root always is a folder.
        """
        ...

    def read(self, path: str, offset: int = 0, limit: int = DEFAULT_READ_LINES) -> ReadWindow:
        """Return at most `limit` lines of a file from the 0-based line `offset` on.

        Raises `NotFoundError` where there is no file, `TreeStateError` where it is no text any more.
        """
        ...

    def glob(
        self,
        pattern: str,
        under: str = "/",
        *,
        accept: Accept | None = None,
        limit: int | None = None,
    ) -> Listing:
        """Return the files at any depth beneath `under` that match, by `wenchang.files.globs`.

        A pattern without `/` is for names, one with `/` for paths relative to `under`. Where
        `under` is a file, it alone is looked at. Raises `NotFoundError` where nothing is at `under`.
        """
        ...

    def grep(
        self,
        pattern: str,
        under: str = "/",
        *,
        include: str | None = None,
        accept: Accept | None = None,
        limit: int | None = None,
    ) -> GrepResult:
        """Return at most `limit` lines that the RE2 pattern matches; `include` filters as `glob` does.

        The pattern has 1 to 1,000 characters. `InvalidArgumentError` tells what RE2 does not take
        (look-around, back-references). One bounded budget of work covers the whole call.
        """
        ...

    def write(
        self,
        path: str,
        content: str,
        *,
        version: str | None = None,
        create_only: bool = False,
        effect_key: str | None = None,
    ) -> FileChange:
        """Create a file or replace its content.

        With `version` only a file that is still at it is replaced (`VersionConflictError`,
        `NotFoundError`); with `create_only` nothing is (`AlreadyExistsError`). Both together are an
        argument error. Raises `AlreadyExistsError` for a folder and for a path that runs through a
        file, and `LimitExceededError`.
        """
        ...

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
        """Replace the one occurrence of `old`, or with `replace_all` every one.

        Raises `NotFoundError`, `InvalidArgumentError` where `old` is empty, `EditMatchError` where it
        is not there or there more than once, `VersionConflictError`, `LimitExceededError`.
        """
        ...

    def delete(
        self, path: str, *, version: str | None = None, effect_key: str | None = None
    ) -> FileRemoval:
        """Delete one file, whatever it holds: nothing of it is decoded.

        Raises `NotFoundError` where there is no file, a folder included, and `VersionConflictError`.
        """
        ...

    def locks(self, path: str) -> tuple[str, ...]:
        """Return the names of the locks that stand for a change of `path`, for those who order work.

        The backend holds none: changes are conditional writes.
        """
        ...


def absolute(path: str) -> str:
    """Return a canonical path with its leading `/`."""
    return "/" + path


def to_folder(path: str | None, *, argument: str = "path") -> str:
    """Return the canonical form (without `/`) of a path that may be the root."""
    return canonical(path, argument=argument)


def to_file(path: str, *, argument: str = "path") -> str:
    """Return the canonical form (without `/`) of a path that names something below the root."""
    return canonical_file(path, argument=argument)


def check_at_least(argument: str, value: object, least: int) -> None:
    """Raise `InvalidArgumentError` unless a value is an int of at least `least`."""
    if type(value) is not int or value < least:
        raise InvalidArgumentError(argument, f"it must be a whole number of at least {least}")


def relocated(error: _ErrorT, prefix: str) -> _ErrorT:
    """Return a copy of an error whose path, in its text too, begins with `prefix`.

    An error without a path is returned as it is.
    """
    path = getattr(error, "path", None)
    if not isinstance(path, str) or not prefix:
        return error
    moved = prefix.removesuffix("/") if path in (ROOT, "/") else prefix + path
    copied = copy.copy(error)
    copied.detail = _named(error.detail, path, moved)
    copied.args = (copied.detail,)
    copied.__dict__["path"] = moved
    return copied


def _named(text: str, old: str, new: str) -> str:
    """Return a sentence with the path in it replaced; it stands at the start or after at, on, through."""
    if text.startswith(old):
        return new + text[len(old) :]
    for word in (" at ", " on ", " through ", " of "):
        before, found, after = text.partition(word + old)
        if found:
            return f"{before}{word}{new}{after}"
    return text
