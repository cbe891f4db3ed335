"""The four limits of a tree: depth, file size, total size and number of files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["MAX_DEPTH_CEILING", "MAX_FILE_BYTES_CEILING", "MAX_FILE_COUNT_CEILING", "TreeLimits"]

MAX_DEPTH_CEILING: Final = 20
MAX_FILE_BYTES_CEILING: Final = 4 * 1024 * 1024
MAX_FILE_COUNT_CEILING: Final = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeLimits:
    """The limits in force. They are settings: lowering one hides and deletes nothing.

    `max_depth` counts the folders above a file, the two byte limits count UTF-8. A value out of
    range is a ValueError, so that a server with it does not start.
    """

    max_depth: int = 10
    max_file_bytes: int = 1024 * 1024
    max_total_bytes: int = 1024 * 1024 * 1024
    max_file_count: int = 100_000

    def __post_init__(self) -> None:
        """Check each limit against its ceiling."""
        ceilings = {
            "max_depth": MAX_DEPTH_CEILING,
            "max_file_bytes": MAX_FILE_BYTES_CEILING,
            "max_total_bytes": None,
            "max_file_count": MAX_FILE_COUNT_CEILING,
        }
        for name, ceiling in ceilings.items():
            value = getattr(self, name)
            if type(value) is not int:
                msg = f"{name} must be an int, not {type(value).__name__}"
                raise TypeError(msg)
            if value < 1 or (ceiling is not None and value > ceiling):
                upper = "" if ceiling is None else f" and at most {ceiling}"
                msg = f"{name} must be at least 1{upper}"
                raise ValueError(msg)
