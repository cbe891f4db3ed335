"""The requirements of the storage contract as data: what each id says, and who requires it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CONTRACT", "CONTRACT_PAGE", "Level", "Requirement", "frozen_ids", "requirements"]

Level = Literal["MUST", "SHOULD"]

CONTRACT: Final = "1.0"
"""The version of the storage contract that this suite proves."""
CONTRACT_PAGE: Final = f"docs/contract/storage-{CONTRACT}.md"
"""Where the contract stands in the project's documentation, one anchor for each id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One sentence of the contract."""

    id: str
    level: Level
    since: str
    capability: str
    profile: str
    """The smallest profile that requires it."""
    behaviour: str
    """The sentence itself."""
    hint: str
    """What usually causes a failure."""

    @property
    def link(self) -> str:
        """Where the contract page explains it."""
        return f"{CONTRACT_PAGE}#{self.id}"


@cache
def requirements() -> Mapping[str, Requirement]:
    """Return the requirements by id, in the order of the contract."""
    document = _load("manifest.toml")
    table = cast("dict[str, dict[str, str]]", document["requirement"])
    return MappingProxyType({name: _requirement(name, fields) for name, fields in table.items()})


def _requirement(name: str, fields: dict[str, str]) -> Requirement:
    """Return one requirement; the manifest's own test checks that its level is one."""
    level = cast("Level", fields.pop("level"))
    return Requirement(id=name, level=level, **fields)


def frozen_ids(contract: str = CONTRACT) -> tuple[str, ...]:
    """Return the ids that the released contract has; they never change after its release."""
    return tuple(cast("list[str]", _load(f"frozen/{contract}.toml")["ids"]))


def _load(name: str) -> dict[str, object]:
    """Read a TOML file of this package."""
    text = resources.files("wenchang_conformance").joinpath(name).read_text(encoding="utf-8")
    return tomllib.loads(text)
