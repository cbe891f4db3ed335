"""Reads the notes that the demo seeds a memory with."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

NOTES = Path(__file__).resolve().parent.parent / "notes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One file of `examples/notes`: where it goes and what it says."""

    scope: str
    area: str
    name: str
    description: str
    aliases: tuple[str, ...]
    content: str


def read_notes() -> list[Note]:
    """Return all notes, in path order."""
    paths = sorted(path for path in NOTES.glob("*/*/*.md"))
    return [_read(path) for path in paths]


def _read(path: Path) -> Note:
    head, _, content = path.read_text(encoding="utf-8").removeprefix("---\n").partition("---\n")
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    return Note(
        scope=path.parent.parent.name,
        area=path.parent.name,
        name=path.stem,
        description=fields["description"],
        aliases=tuple(json.loads(fields["aliases"])),
        content=content,
    )
