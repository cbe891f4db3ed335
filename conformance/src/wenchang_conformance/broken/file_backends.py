"""File backends that are wrong, each in one way, and the requirement that each one breaks.

They are what the suite is tried against: a suite that lets one of them pass proves less than it says.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from wenchang.files.backend import (
    DEFAULT_READ_LINES,
    Accept,
    BackendEntry,
    FileBackend,
    FileChange,
    GrepMatch,
    GrepResult,
    Listing,
    ReadWindow,
)
from wenchang.files.composite import CompositeFileBackend
from wenchang.files.state_backend import StateFileBackend

__all__ = ["RUNAWAY", "ZOO", "Broken", "Given", "sound"]

_TOGETHER: Final = 6
_PATIENCE: Final = 30.0
HIDDEN: Final = ("/memories/hidden.md",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the suite is given: a backend, and the fixtures that it needs."""

    backend: FileBackend
    reopen: Callable[[], FileBackend]
    stranger: FileBackend | None = None
    folder: str = ""
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A wrong backend: what is wrong with it, and the requirement that a test must find broken."""

    name: str
    wrong: str
    breaks: str
    make: Callable[[], Given] = field(repr=False)
    also: Mapping[str, str] = field(default_factory=dict)
    """The requirements that may fail with it, each with the reason why."""


def sound(kind: type[StateFileBackend] = StateFileBackend) -> Given:
    """Return a backend on a state that handles share; right where `kind` is."""
    files: dict[str, Any] = {}
    receipts: dict[str, Any] = {}

    def reopen() -> FileBackend:
        return kind(files, receipts=receipts)

    return Given(backend=reopen(), reopen=reopen)


class _LimitBeforeAccept(StateFileBackend):
    def glob(
        self,
        pattern: str,
        under: str = "/",
        *,
        accept: Accept | None = None,
        limit: int | None = None,
    ) -> Listing:
        found = super().glob(pattern, under, limit=limit)
        wanted = [entry for entry in found.entries if accept is None or accept(entry.path)]
        return Listing(entries=tuple(wanted), truncated=found.truncated)


class _EditOutsideCommit(StateFileBackend):
    """Reads, decides, and writes whatever the file is by then."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._have_read = threading.Barrier(_TOGETHER)

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
        alone = threading.current_thread() is threading.main_thread()
        if alone or version is not None or effect_key is not None:
            return super().edit(
                path, old, new, replace_all=replace_all, version=version, effect_key=effect_key
            )
        text = self.read(path).text
        # Makes sure that the others have read too.
        self._have_read.wait(_PATIENCE)
        self.write(path, text.replace(old, new))
        return FileChange(path=path, version="", replacements=1)


class _AppliedTwice(StateFileBackend):
    def _keep(self, key: str, record: list[Any]) -> None:
        """Forget every outcome."""


class _RefusalForgotten(StateFileBackend):
    def _keep(self, key: str, record: list[Any]) -> None:
        """Keep successes only."""
        if record[1] != "refused":
            super()._keep(key, record)


class _FileAndFolder(StateFileBackend):
    def _check_place(self, path: str) -> None:
        """Take `a` and `a/b` for two keys like any other."""


class _LineBreaksRewritten(StateFileBackend):
    def write(
        self,
        path: str,
        content: str,
        *,
        version: str | None = None,
        create_only: bool = False,
        effect_key: str | None = None,
    ) -> FileChange:
        return super().write(
            path,
            content.replace("\r\n", "\n"),
            version=version,
            create_only=create_only,
            effect_key=effect_key,
        )


class _ShadowsVisible(CompositeFileBackend):
    def _visible(self, mount: object, entry: BackendEntry) -> bool:
        return True


class _TenantInPath(StateFileBackend):
    """Finds the tenant in a path that begins with one."""

    tenants: dict[str, StateFileBackend]

    def read(self, path: str, offset: int = 0, limit: int = DEFAULT_READ_LINES) -> ReadWindow:
        tenant, _, inside = path.removeprefix("/").partition("/")
        if tenant in self.tenants:
            return self.tenants[tenant].read(inside, offset, limit)
        return super().read(path, offset, limit)


class _Backtracking(StateFileBackend):
    def grep(
        self,
        pattern: str,
        under: str = "/",
        *,
        include: str | None = None,
        accept: Accept | None = None,
        limit: int | None = None,
    ) -> GrepResult:
        compiled = re.compile(pattern)
        matches = [
            GrepMatch(path=path, line=number, text=line)
            for path, entry in sorted(self.files.items())
            for number, line in enumerate(entry["content"].split("\n"), 1)
            if compiled.search(line)
        ]
        return GrepResult(matches=tuple(matches))


def _leaking() -> Given:
    default = StateFileBackend({path: {"content": "x"} for path in HIDDEN})
    mounted = StateFileBackend()

    def reopen() -> FileBackend:
        return _ShadowsVisible(default, {"/memories": mounted})

    return Given(backend=reopen(), reopen=reopen, folder="/memories", hidden=HIDDEN)


def _tenants_in_paths() -> Given:
    tenants: dict[str, StateFileBackend] = {"stranger": StateFileBackend()}
    files: dict[str, Any] = {}
    receipts: dict[str, Any] = {}

    def reopen() -> FileBackend:
        backend = _TenantInPath(files, receipts=receipts)
        backend.tenants = tenants
        return backend

    return Given(backend=reopen(), reopen=reopen, stranger=tenants["stranger"])


def _state(kind: type[StateFileBackend]) -> Callable[[], Given]:
    return lambda: sound(kind)


ZOO: Final[tuple[Broken, ...]] = (
    Broken(
        name="shadows-visible",
        wrong="files that a mount covers are listed and searched",
        breaks="shadowed-invisible",
        make=_leaking,
        also={"delete-file": "its cases count the files that are left by a listing of everything"},
    ),
    Broken(
        name="limit-before-accept",
        wrong="the limit counts files that the caller does not want",
        breaks="accept-first",
        make=_state(_LimitBeforeAccept),
    ),
    Broken(
        name="edit-outside-commit",
        wrong="an edit is decided on a text that was read before",
        breaks="edit-in-commit",
        make=_state(_EditOutsideCommit),
    ),
    Broken(
        name="applied-twice",
        wrong="a repeated call is carried out again",
        breaks="effect-once",
        make=_state(_AppliedTwice),
        also={
            "effect-other-call": "nothing of the first call is remembered",
            "effect-refusal": "nothing of the first call is remembered",
        },
    ),
    Broken(
        name="refusal-forgotten",
        wrong="a refused call that is repeated may succeed",
        breaks="effect-refusal",
        make=_state(_RefusalForgotten),
    ),
    Broken(
        name="tenant-in-path",
        wrong="a path that begins with a tenant leads to its files",
        breaks="tenants-apart",
        make=_tenants_in_paths,
    ),
    Broken(
        name="file-and-folder",
        wrong="a file can be written beneath a file",
        breaks="file-or-folder",
        make=_state(_FileAndFolder),
        also={"effect-refusal": "one of the refusals that it repeats is this one"},
    ),
    Broken(
        name="line-breaks-rewritten",
        wrong="CRLF becomes LF on a write",
        breaks="bytes-exact",
        make=_state(_LineBreaksRewritten),
        also={
            "grep-lines": "a line that it searches ends in CRLF",
            "read-window": "a window that it reads ends in CRLF",
        },
    ),
)
"""Wrong backends that a test of the suite fails on."""

RUNAWAY: Final = Broken(
    name="backtracking",
    wrong="patterns are matched by the standard library's matcher, which runs away",
    breaks="grep-bounded",
    make=_state(_Backtracking),
)
"""The one that never answers: it has to be tried in a process of its own."""
