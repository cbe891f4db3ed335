"""The settings of the file tools: whose files they are, their limits, history, size of answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from wenchang.files.limits import TreeLimits
from wenchang.files.policy import HistoryPolicy
from wenchang.paths import RESERVED_SCOPE_PREFIX, segment_problem

__all__ = [
    "DEFAULT_ANSWER_CHARS",
    "DEFAULT_FILES_SCOPE",
    "MIN_ANSWER_CHARS",
    "FileSettings",
]

DEFAULT_FILES_SCOPE: Final = "user"
DEFAULT_ANSWER_CHARS: Final = 100_000
MIN_ANSWER_CHARS: Final = 16_000
"""The smallest bound under which every answer has room for one entry of any kind, and a cursor."""

_DEFAULT_LIMITS: Final = TreeLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSettings:
    """What holds for the file tools of every account.

    `scope` is the scope whose entity a caller's files belong to; an identity without it has no
    files. `history` keeps past versions and adds two tools; without it nothing can be undone. Neither the
    text of an answer nor the JSON of its structured form is longer than `max_answer_chars`
    characters: a page ends early, with a cursor, and a read with the line to go on from.

    Raises ValueError or TypeError for a value that means nothing.
    """

    scope: str = DEFAULT_FILES_SCOPE
    limits: TreeLimits = _DEFAULT_LIMITS
    history: HistoryPolicy | None = None
    max_answer_chars: int = DEFAULT_ANSWER_CHARS

    def __post_init__(self) -> None:
        """Check the scope and the size of answers; the rest has checked itself."""
        problem = segment_problem(self.scope) if isinstance(self.scope, str) else "must be text"
        if problem is None and self.scope.startswith(RESERVED_SCOPE_PREFIX):
            problem = f"must not begin with {RESERVED_SCOPE_PREFIX!r}"
        if problem is not None:
            msg = f"scope {problem}"
            raise ValueError(msg)
        if type(self.max_answer_chars) is not int or self.max_answer_chars < MIN_ANSWER_CHARS:
            msg = f"max_answer_chars must be an int of at least {MIN_ANSWER_CHARS}"
            raise ValueError(msg)
