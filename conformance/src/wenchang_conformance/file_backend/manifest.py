"""The requirements of `FileBackend` as data, and how a test says which of them it proves."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["FileRequirement", "file_requirements", "proved_by", "proves", "requirements_of"]

_TestT = TypeVar("_TestT", bound="Callable[..., object]")
_ATTRIBUTE: Final = "__file_requirements__"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRequirement:
    """One thing that every file backend does, and what usually causes a failure."""

    id: str
    behaviour: str
    hint: str


@cache
def file_requirements() -> Mapping[str, FileRequirement]:
    """Return the requirements by id, in the order of the manifest."""
    text = resources.files(__package__ or "").joinpath("manifest.toml").read_text(encoding="utf-8")
    table: dict[str, dict[str, str]] = tomllib.loads(text)["requirement"]
    return MappingProxyType({name: FileRequirement(id=name, **row) for name, row in table.items()})


def proves(*ids: str) -> Callable[[_TestT], _TestT]:
    """Mark a test with the requirements that it proves; KeyError for one that there is not."""
    for name in ids:
        file_requirements()[name]

    def mark(test: _TestT) -> _TestT:
        setattr(test, _ATTRIBUTE, ids)
        return test

    return mark


def requirements_of(test: object) -> tuple[FileRequirement, ...]:
    """Return the requirements that a test says it proves; none for other tests."""
    ids: tuple[str, ...] = getattr(test, _ATTRIBUTE, ())
    return tuple(file_requirements()[name] for name in ids)


def proved_by(suite: type) -> Mapping[str, tuple[str, ...]]:
    """Return the tests of a suite by the requirement that they prove."""
    found: dict[str, list[str]] = {name: [] for name in file_requirements()}
    for name in dir(suite):
        for requirement in getattr(getattr(suite, name), _ATTRIBUTE, ()):
            found[requirement].append(name)
    return MappingProxyType({name: tuple(tests) for name, tests in found.items()})
