"""Cursors of the file tools: where a page ended, bound to the account and to the arguments.

A cursor shows the position, which is a path of the caller's own, and nothing of the account. It
grants nothing: whose files are read is decided anew at each call. `pageSize` is no part of it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from wenchang._cursors import decode_cursor, encode_cursor
from wenchang.files.errors import InvalidArgumentError
from wenchang.files.paths import MAX_PATH_CHARS

__all__ = ["MAX_FILE_CURSOR_CHARS", "PageCursor", "invalid_cursor"]

MAX_FILE_CURSOR_CHARS: Final = 2_400
"""Characters in any cursor; a path of 400 characters outside the basic plane stays below it."""

_FORM: Final = 2
"""The format byte; listings of memory files have another."""
_UTF8_BYTES_A_CHAR: Final = 4
_POSITION_BYTES: Final = MAX_PATH_CHARS * _UTF8_BYTES_A_CHAR + 100


class PageCursor:
    """Makes and reads the cursors of one call: its account, its tool and its other arguments.

    `arguments` are those that decide what the pages hold, in a fixed order and in canonical form, so
    that a different spelling of the same argument is no change.
    """

    def __init__(
        self, account: str, tool: str, arguments: Sequence[str | int | bool | None]
    ) -> None:
        self._binding = json.dumps([account, tool, *arguments])

    def encode(self, position: str) -> str:
        """Return the cursor for a position."""
        return encode_cursor(_FORM, self._binding, position)

    def decode(self, cursor: str | None) -> str | None:
        """Return the position, None for no cursor.

        Raises `InvalidArgumentError` for `cursor` unless `encode` made it with the same account, tool
        and arguments. What is wrong with it is not told.
        """
        if cursor is None:
            return None
        try:
            position = decode_cursor(_FORM, self._binding, cursor, max_chars=MAX_FILE_CURSOR_CHARS)
        except ValueError:
            raise invalid_cursor() from None
        if len(position.encode()) > _POSITION_BYTES:
            raise invalid_cursor()
        return position


def invalid_cursor() -> InvalidArgumentError:
    """Return the error for a cursor that is not one of this query."""
    return InvalidArgumentError(
        "cursor",
        "it was not given out for these arguments; send every other argument as it was, or leave "
        "the cursor out to begin anew",
    )
