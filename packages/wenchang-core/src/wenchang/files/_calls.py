"""The calls that change a tree: their arguments, and how each is decided on a working state.

A call is a value: it is decided as often as the root under it changes, and each decision starts anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, Self

from wenchang.files._records import Record
from wenchang.files._rules import Desk, Settings, no_file_text
from wenchang.files.edits import MAX_EDITS, Edit, apply_edits
from wenchang.files.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from wenchang.files.paths import MAX_PATH_CHARS, depth
from wenchang.files.texts import check_text, decode_text
from wenchang.files.values import Deleted, FolderEntry, Moved, Outcome, Written

__all__ = [
    "Append",
    "Call",
    "Create",
    "Delete",
    "DeleteFile",
    "EditFile",
    "Move",
    "Put",
    "Replace",
    "Restore",
    "Settings",
    "no_file_text",
]

MAX_EFFECT_KEY_CHARS: Final = 200
MAX_SOURCE_CHARS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What all calls have. `effect_key` comes with `checked`, `digest` is of the arguments."""

    NAME: ClassVar[str]
    path: str
    effect_key: str | None = None

    @property
    def operation(self) -> str:
        """The name of the kind of call."""
        return self.NAME

    def checked(self, effect_key: str | None) -> Self:
        """Return the call with its effect key; `InvalidArgumentError` for an argument no tree takes."""
        if effect_key is not None:
            _check_name("effect_key", effect_key, 1, MAX_EFFECT_KEY_CHARS)
        call = replace(self, effect_key=effect_key)
        call.check()
        return call

    def check(self) -> None:
        """Check the arguments of this kind of call."""

    def arguments(self) -> list[Any]:
        """Return what a repeated call must have in common with the first."""
        return []

    def digest(self) -> str:
        """Return a digest of operation and arguments."""
        text = json.dumps([self.operation, self.path, *self.arguments()])
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def decide(self, desk: Desk) -> Outcome:
        """Carry the call out on the working state; raise a refusal."""
        msg = f"{type(self).__name__} cannot be decided on {type(desk).__name__}"
        raise TypeError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class _TextCall(Call):
    """A call that brings text."""

    text: str
    source: str = ""
    data: bytes = field(init=False, repr=False, compare=False, default=b"")

    def check(self) -> None:
        """Check text and source."""
        object.__setattr__(self, "data", check_text(self.text, "content"))
        _check_name("source", self.source, 0, MAX_SOURCE_CHARS)

    def arguments(self) -> list[Any]:
        """The text, as a digest."""
        return [_hash(self.text)]


class Create(_TextCall):
    """Make a new file."""

    __slots__ = ()
    NAME = "create"

    def decide(self, desk: Desk) -> Outcome:
        """Refuse where anything is at the path."""
        if desk.file(self.path) is not None:
            raise AlreadyExistsError(self.path, "file")
        return _create(desk, self.path, self.data, self.source)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replace(_TextCall):
    """Replace the whole content of a file at a version."""

    NAME: ClassVar[str] = "write"
    version: str

    def check(self) -> None:
        """Check the version too."""
        _TextCall.check(self)
        _check_version(self.version)

    def arguments(self) -> list[Any]:
        """The text, as a digest, and the version."""
        return [_hash(self.text), self.version]

    def decide(self, desk: Desk) -> Outcome:
        """Refuse another version, and a path without a file."""
        record = _file(desk, self.path, self.version)
        return _replace(desk, record, self.data, self.source)


class Put(_TextCall):
    """Create a file or replace its content."""

    __slots__ = ()
    NAME = "put"

    def decide(self, desk: Desk) -> Outcome:
        """Refuse only a folder, and a path through a file."""
        record = desk.file(self.path)
        if record is None:
            return _create(desk, self.path, self.data, self.source)
        return _replace(desk, record, self.data, self.source)


class Append(_TextCall):
    """Add text at the end of a file."""

    __slots__ = ()
    NAME = "append"

    def decide(self, desk: Desk) -> Outcome:
        """Create the file where there is none."""
        record = desk.file(self.path)
        if record is None:
            return _create(desk, self.path, self.data, self.source)
        if not self.data:
            return desk.unchanged(record)
        data = desk.load(record) + self.data
        return desk.store(self.path, data, self.source, based_on=record.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditFile(Call):
    """Replace exact text."""

    NAME: ClassVar[str] = "edit"
    edits: tuple[Edit, ...]
    version: str | None = None
    source: str = ""

    def check(self) -> None:
        """Check the edits, the version and the source."""
        if not 1 <= len(self.edits) <= MAX_EDITS:
            raise InvalidArgumentError("edits", f"a call takes 1 to {MAX_EDITS} edits")
        for index, edit in enumerate(self.edits):
            if not edit.old_text:
                raise InvalidArgumentError("edits", f"oldText of edit {index} must not be empty")
            check_text(edit.old_text, f"edits[{index}].oldText")
            check_text(edit.new_text, f"edits[{index}].newText")
        if self.version is not None:
            _check_version(self.version)
        _check_name("source", self.source, 0, MAX_SOURCE_CHARS)

    def arguments(self) -> list[Any]:
        """The edits, as digests, and the version."""
        edits = [
            [_hash(edit.old_text), _hash(edit.new_text), edit.replace_all] for edit in self.edits
        ]
        return [edits, self.version]

    def decide(self, desk: Desk) -> Outcome:
        """Apply all edits to what the file holds now, or none."""
        record = _file(desk, self.path, self.version)
        text, count = apply_edits(self.path, decode_text(desk.load(record)), self.edits)
        data = text.encode()
        written = (
            desk.unchanged(record)
            if _same(desk, record, data)
            else desk.store(self.path, data, self.source, based_on=record.key)
        )
        return replace(written, replacements=count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore(Call):
    """Bring a past state back as a new version."""

    NAME: ClassVar[str] = "restore"
    version: str
    source: str = ""

    def check(self) -> None:
        """Check the version and the source."""
        _check_version(self.version)
        _check_name("source", self.source, 0, MAX_SOURCE_CHARS)

    def arguments(self) -> list[Any]:
        """The version."""
        return [self.version]

    def decide(self, desk: Desk) -> Outcome:
        """Write the content of the past state anew."""
        record = desk.working.find(self.path)
        if record is not None and record.live and desk.token(record) == self.version:
            return desk.unchanged(record)
        past = () if record is None else record.history
        for state in past:
            if f"v{state.number}-{desk.working.incarnation[:6]}" == self.version:
                data = desk.contents.load(state.key)
                if record is not None and record.live:
                    return _replace(desk, record, data, self.source, based_on=state.key)
                return _create(desk, self.path, data, self.source, based_on=state.key)
        raise NotFoundError(self.path, f"No version {self.version} of {self.path} is kept.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Move(Call):
    """Move a file or a folder."""

    NAME: ClassVar[str] = "move"
    target: str
    version: str | None = None

    def check(self) -> None:
        """Check the version, and that a folder does not go into itself."""
        if self.version is not None:
            _check_version(self.version)
        if self.target.startswith(self.path + "/"):
            raise InvalidArgumentError("to", "a file or folder cannot be moved into itself")

    def arguments(self) -> list[Any]:
        """The target and the version."""
        return [self.target, self.version]

    def decide(self, desk: Desk) -> Outcome:
        """Refuse a target where anything is, and one that lands too deep."""
        record = desk.file(self.path)
        if record is not None:
            desk.check_version(record, self.version)
            moved, kind = [record], "file"
        else:
            moved, kind = list(_below(desk, self.path)), "folder"
            if not moved:
                raise NotFoundError(self.path)
            _refuse_version(self.version)
        if desk.file(self.target) is not None:
            raise AlreadyExistsError(self.target, "file")
        desk.check_place(self.target)
        targets = [self.target + each.path[len(self.path) :] for each in moved]
        if max(len(target) for target in targets) > MAX_PATH_CHARS:
            raise InvalidArgumentError(
                "to", f"a file would get a path of more than {MAX_PATH_CHARS} characters"
            )
        if depth(self.target) > depth(self.path):
            desk.check_depth(max(targets, key=depth))
        for each, target in zip(moved, targets, strict=True):
            desk.rename(each, target)
        return Moved(
            source=self.path,
            target=self.target,
            kind="file" if kind == "file" else "folder",
            files=len(moved),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete(Call):
    """Delete a file or a folder."""

    NAME: ClassVar[str] = "delete"
    recursive: bool = False
    version: str | None = None

    def check(self) -> None:
        """Check the version."""
        if self.version is not None:
            _check_version(self.version)

    def arguments(self) -> list[Any]:
        """Whether folders go too, and the version."""
        return [self.recursive, self.version]

    def decide(self, desk: Desk) -> Outcome:
        """Refuse a folder without `recursive`."""
        record = desk.file(self.path)
        if record is not None:
            desk.check_version(record, self.version)
            desk.remove(record)
            return Deleted(path=self.path, kind="file", files=1)
        if not desk.working.has_below(self.path):
            raise NotFoundError(self.path)
        _refuse_version(self.version)
        if not self.recursive:
            entries = _count_entries(desk, self.path)
            raise InvalidArgumentError(
                "recursive",
                f"{self.path} is a folder with {entries} "
                f"{'entry' if entries == 1 else 'entries'}; set recursive to delete it with all of them",
                entries=entries,
            )
        removed = list(_below(desk, self.path))
        for each in removed:
            desk.remove(each)
        return Deleted(path=self.path, kind="folder", files=len(removed))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFile(Call):
    """Delete one file, never a folder."""

    operation: ClassVar[str] = "delete-file"  # pyright: ignore[reportIncompatibleMethodOverride] # a property of the class above
    version: str | None = None

    def check(self) -> None:
        """Check the version."""
        if self.version is not None:
            _check_version(self.version)

    def arguments(self) -> list[Any]:
        """The version."""
        return [self.version]

    def decide(self, desk: Desk) -> Outcome:
        """Refuse whatever is no file."""
        record = desk.file(self.path)
        if record is None:
            there = FolderEntry(path=self.path) if desk.working.has_below(self.path) else None
            raise NotFoundError(self.path, no_file_text(self.path, there))
        desk.check_version(record, self.version)
        desk.remove(record)
        return Deleted(path=self.path, kind="file", files=1)


def _create(
    desk: Desk, path: str, data: bytes, source: str, *, based_on: str | None = None
) -> Written:
    desk.check_place(path)
    desk.check_depth(path)
    return desk.store(path, data, source, based_on=based_on)


def _replace(
    desk: Desk, record: Record, data: bytes, source: str, *, based_on: str | None = None
) -> Written:
    if _same(desk, record, data):
        return desk.unchanged(record)
    return desk.store(record.path, data, source, based_on=based_on)


def _same(desk: Desk, record: Record, data: bytes) -> bool:
    """Tell whether a file has this content; only one of the same size has to be read."""
    return record.size == len(data) and (not data or desk.load(record) == data)


def _file(desk: Desk, path: str, version: str | None) -> Record:
    """Return the file at a path and version; refuse anything else."""
    record = desk.file(path)
    if record is None:
        if not desk.working.has_below(path):
            raise NotFoundError(path)
        _refuse_version(version)
        raise NotFoundError(path, no_file_text(path, FolderEntry(path=path)))
    desk.check_version(record, version)
    return record


def _below(desk: Desk, folder: str) -> Iterator[Record]:
    return desk.working.live_between(folder + "/", folder + "0")


def _count_entries(desk: Desk, folder: str) -> int:
    """Count direct entries, without looking at what lies deeper."""
    count, low, high = 0, folder + "/", folder + "0"
    position = low
    while True:
        record = next(desk.working.live_between(position, high), None)
        if record is None:
            return count
        count += 1
        name, slash, _ = record.path[len(low) :].partition("/")
        position = low + name + ("0" if slash else "\0")


def _refuse_version(version: str | None) -> None:
    if version is not None:
        raise InvalidArgumentError("version", "a folder has no version; leave it out")


def _check_version(version: str) -> None:
    if not isinstance(version, str) or not version:
        raise InvalidArgumentError("version", "it must be a version token that a read returned")


def _check_name(argument: str, value: str, least: int, most: int) -> None:
    if not isinstance(value, str):
        raise InvalidArgumentError(argument, "it must be text")
    if not least <= len(value) <= most:
        raise InvalidArgumentError(argument, f"it has {least} to {most} characters")
    check_text(value, argument)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
