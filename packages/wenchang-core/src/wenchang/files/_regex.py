"""Patterns that come from models, matched in linear time by RE2, and the work that one search may do.

The backtracking matcher of the standard library takes exponential time on some short patterns and
cannot be interrupted, so no such pattern ever reaches it.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from wenchang.files.errors import InvalidArgumentError

__all__ = ["MAX_REGEX_CHARS", "LineMatcher", "WorkBudget"]

MAX_REGEX_CHARS: Final = 1_000
"""Code points in a pattern."""
_MAX_PROGRAM: Final = 20_000
"""Instructions that a compiled pattern may have: `(x{1000}){9}`, say, makes many of few characters."""
_MAX_MEMORY: Final = 8 * 1024 * 1024
_STEPS: Final = 200_000_000
"""Bytes of text times instructions of the pattern: what matching costs at worst, which is some
seconds; most patterns need far less than the worst."""
_LINE_STEPS: Final = 16
"""What a line costs beside its bytes."""
_REPORTED_CHARS: Final = 1_048_576


class LineMatcher:
    """A compiled pattern. `size` is how many instructions it takes."""

    def __init__(self, pattern: str) -> None:
        """Compile a pattern of 1 to 1,000 characters.

        Raises `InvalidArgumentError` where RE2 does not take it, ImportError without the extra `files`.
        """
        if not isinstance(pattern, str):
            raise InvalidArgumentError("pattern", "it must be text")
        if not 1 <= len(pattern) <= MAX_REGEX_CHARS:
            raise InvalidArgumentError("pattern", f"it has 1 to {MAX_REGEX_CHARS} characters")
        try:
            data = pattern.encode()
        except UnicodeEncodeError:
            raise InvalidArgumentError("pattern", "it holds an unpaired surrogate") from None
        re2 = _load()
        options = re2.Options()
        # RE2 would print the patterns that it refuses.
        options.log_errors = False
        options.max_mem = _MAX_MEMORY
        try:
            compiled = re2.compile(data, options)
        except re2.error as error:
            raise InvalidArgumentError("pattern", _problem(error)) from None
        self.size = max(compiled.programsize, 1)
        if self.size > _MAX_PROGRAM:
            raise InvalidArgumentError("pattern", "it is too large; repeat fewer times with {n}")
        self._search = compiled.search

    def matches(self, line: bytes) -> bool:
        """Tell whether the pattern is found in a line of UTF-8."""
        return self._search(line) is not None


class WorkBudget:
    """The work that one search may do, whatever the pattern and however many files there are."""

    def __init__(self, steps: int = _STEPS, chars: int = _REPORTED_CHARS) -> None:
        self._steps = steps
        self._chars = chars

    def affords(self, line: bytes, matcher: LineMatcher) -> bool:
        """Count a line and tell whether it may be matched; False ends the search."""
        self._steps -= (len(line) + _LINE_STEPS) * matcher.size
        return self._steps >= 0 and self._chars > 0

    def report(self, text: str) -> None:
        """Count a line that is shown; the one that crosses the bound is shown whole."""
        self._chars -= len(text) + 1


def _load() -> Any:
    """Import RE2, or say what to install."""
    try:
        import re2  # an extra: whoever never searches does without
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"re2", "_re2"}:
            raise
        msg = (
            "Searching files by pattern needs the extra 'files'; install it with: "
            f'{sys.executable} -m pip install "wenchang-core[files]"'
        )
        raise ImportError(msg) from error
    return re2


def _problem(error: Exception) -> str:
    """Return what RE2 says against a pattern, and the advice for what it never takes."""
    detail = error.args[0] if error.args else ""
    text = detail.decode(errors="replace") if isinstance(detail, bytes) else str(detail)
    advice = "RE2 syntax is expected, which has no look-around and no back-references"
    return f"{text or 'it cannot be compiled'}; {advice}"
