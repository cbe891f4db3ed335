"""`conformance-gaps.toml`: known deviations of a backend, each with its reason and its issue.

    [[gap]]
    id = "list-order"
    reason = "the service returns keys in its own order"
    issue = "https://example.org/issues/17"
    subject = "TestMyStorage"        # optional: only for this class

A gap that no longer fails, that names no requirement of the contract, or that does not say why and
where it is followed up, is itself a failure: the file shows what is true now.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from wenchang_conformance.manifest import requirements

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["GAPS_FILE", "Gap", "Gaps", "find_gaps", "read_gaps"]

GAPS_FILE: Final = "conformance-gaps.toml"

_FIELDS: Final = frozenset({"id", "reason", "issue", "subject"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """One declared deviation."""

    id: str
    reason: str
    issue: str
    subject: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """The declared deviations of a file, and what is wrong with the file."""

    gaps: tuple[Gap, ...] = ()
    problems: tuple[str, ...] = ()

    def of(self, subject: str) -> dict[str, Gap]:
        """Return the gaps of a subject (a class name, or a test's node id that ends with it) by id."""
        name = subject.partition("[")[0].rpartition("::")[2]
        return {gap.id: gap for gap in self.gaps if gap.subject in {"", name}}


def find_gaps(folder: Path, root: Path) -> Path | None:
    """Return the gaps file of `folder`, or of the nearest folder above it up to `root`."""
    for place in (folder, *folder.parents):
        if (place / GAPS_FILE).is_file():
            return place / GAPS_FILE
        if place == root:
            break
    return None


def read_gaps(file: Path | None) -> Gaps:
    """Read a gaps file; what is wrong with it is returned, not raised."""
    if file is None:
        return Gaps()
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return Gaps(problems=(f"{file.name} cannot be read: {error}",))
    entries: list[Any] = document.get("gap", [])
    problems = [f"{file.name}: unknown table {name!r}" for name in document if name != "gap"]
    gaps = []
    for number, entry in enumerate(entries, start=1):
        gap, wrong = _gap(entry)
        problems += [f"{file.name}, entry {number}: {text}" for text in wrong]
        if gap is not None:
            gaps.append(gap)
    return Gaps(gaps=tuple(gaps), problems=tuple(problems))


def _gap(entry: Any) -> tuple[Gap | None, list[str]]:
    """Return the gap of one entry, or None, and what is wrong with the entry."""
    if not isinstance(entry, dict):
        return None, ["it is no table"]
    wrong = [f"unknown field {name!r}" for name in entry if name not in _FIELDS]
    values = {name: str(entry.get(name, "")).strip() for name in _FIELDS}
    if values["id"] not in requirements():
        wrong.append(f"no requirement of the contract has the id {values['id']!r}")
    wrong += [
        f"the gap {values['id']!r} does not say its {name}"
        for name in ("reason", "issue")
        if not values[name]
    ]
    return (None, wrong) if wrong else (Gap(**values), [])
