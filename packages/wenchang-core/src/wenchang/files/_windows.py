r"""Windows of lines: what a read shows of a text. Only `\n` ends a line."""

from __future__ import annotations

from datetime import datetime

from wenchang.files.backend import ReadWindow, absolute

__all__ = ["window"]


def window(
    path: str,
    text: str,
    offset: int,
    limit: int,
    *,
    version: str = "",
    modified: datetime | None = None,
) -> ReadWindow:
    """Return at most `limit` lines of the file at a canonical path, from the 0-based `offset` on.

    Both numbers have been checked. A text without a line break at its end has a last line all the same;
    an empty one has none.
    """
    lines = text.split("\n")
    total = len(lines) if lines[-1] else len(lines) - 1
    shown = lines[offset : offset + limit]
    last = offset + len(shown) >= len(lines)
    body = "\n".join(shown) + ("" if last or not shown else "\n")
    return ReadWindow(
        path=absolute(path),
        text=body,
        offset=offset,
        lines=max(min(offset + limit, total) - offset, 0),
        total_lines=total,
        version=version,
        modified=modified,
    )
