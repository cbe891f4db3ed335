"""How the memory tool shows files and folders; the forms are those that its models were taught."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wenchang.files.backend import BackendEntry, Listing

__all__ = ["MAX_LINES", "directory_view", "is_hidden", "numbered", "split_lines"]

MAX_LINES: Final = 999_999
_NUMBER_WIDTH: Final = 6
_LEVELS: Final = 2
_HIDDEN_FOLDER: Final = "node_modules"


def split_lines(text: str) -> list[str]:
    r"""Return the lines without their `\n`; what ends in one has no empty line after it."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def numbered(lines: Sequence[str], first: int) -> str:
    """Return lines with their numbers, `first` being that of the first one."""
    return "\n".join(
        f"{number:>{_NUMBER_WIDTH}}\t{line}" for number, line in enumerate(lines, first)
    )


def is_hidden(path: str, folder: str) -> bool:
    """Tell whether a path is left out of the view of a folder that it is in; both are absolute."""
    names = path[len(folder.rstrip("/")) :].split("/")
    return any(name.startswith(".") or name == _HIDDEN_FOLDER for name in names)


def directory_view(shown: str, folder: str, listing: Listing) -> str:
    """Return the view of a folder, which the model calls `shown`; the listing is of all files in it."""
    start = len(folder.rstrip("/")) + 1
    sizes: dict[str, int | None] = {"": 0}
    for entry in listing.entries:
        names = entry.path[start:].split("/")
        for level in range(min(len(names), _LEVELS + 1)):
            place = "/".join(names[:level]) + "/" if level else ""
            sizes[place] = _sum(sizes.get(place, 0), entry)
        if len(names) <= _LEVELS:
            sizes["/".join(names)] = entry.size
    header = (
        f"Here're the files and directories up to 2 levels deep in {shown}, "
        "excluding hidden items and node_modules:"
    )
    lines = [header]
    lines += [
        f"{_size(sizes[place])}\t{shown}/{place}" if place else f"{_size(sizes[place])}\t{shown}"
        for place in sorted(sizes)
    ]
    if listing.truncated:
        lines.append("There are more files than can be listed. View a directory further down.")
    return "\n".join(lines)


def _sum(size: int | None, entry: BackendEntry) -> int | None:
    return None if size is None or entry.size is None else size + entry.size


def _size(size: int | None) -> str:
    """Return a size as `512B`, `4.0K`, `1.5M`; `-` where it is not known without reading the file."""
    if size is None:
        return "-"
    if size < 1024:
        return f"{size}B"
    value = size / 1024
    for unit in ("K", "M"):
        if value < 1024:
            return f"{value:.1f}{unit}"
        value /= 1024
    return f"{value:.1f}G"
