r"""Text as files hold it: UTF-8, stored exactly as sent, lines ended by `\n` only."""

from __future__ import annotations

from wenchang.files.errors import InvalidArgumentError, TreeStateError

__all__ = ["check_text", "count_lines", "decode_text"]


def check_text(text: str, argument: str) -> bytes:
    """Return the UTF-8 of text that a file may hold.

    Raises `InvalidArgumentError` for NUL, an unpaired surrogate, or what is no str.
    """
    if not isinstance(text, str):
        raise InvalidArgumentError(argument, "it must be text")
    if "\0" in text:
        raise InvalidArgumentError(argument, "it must not hold the character NUL")
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(
            argument, "it must be valid UTF-8; it holds an unpaired surrogate"
        ) from None


def count_lines(data: bytes) -> int:
    r"""Count the lines: what `\n` ends, and a last one without it."""
    return data.count(b"\n") + (1 if data and not data.endswith(b"\n") else 0)


def decode_text(data: bytes) -> str:
    """Return stored content as text; `TreeStateError` where it is not what a tree stores."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise TreeStateError("unreadable_content") from None
