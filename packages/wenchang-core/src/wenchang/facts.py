"""The lines of a memory file: labelled facts, and anything else kept as it stands.

A fact line is `- [label] text`. Parsing divides a body at line feeds only and never fails; for any text,
`serialize_body(parse_body(text)) == text`. What a caller may append is stricter than what is
recognised in a stored body: see `fact_line_problem`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

__all__ = [
    "ConfidenceLabel",
    "Fact",
    "fact_line_problem",
    "format_fact",
    "parse_body",
    "parse_fact",
    "serialize_body",
    "single_line_problem",
    "text_problem",
]

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class ConfidenceLabel(StrEnum):
    """How a fact is known."""

    STATED = "stated"
    OBSERVED = "observed"
    INFERRED = "inferred"
    SYSTEM = "system"


_FACT: Final = re.compile(rf"- \[({'|'.join(ConfidenceLabel)})\] ([^\n]*)")


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact: its label and its text, which is one line and not blank (else ValueError)."""

    label: ConfidenceLabel
    text: str

    def __post_init__(self) -> None:
        """Refuse a text that would not come back as this one fact."""
        if not isinstance(self.label, ConfidenceLabel):
            msg = f"label must be a ConfidenceLabel, not {type(self.label).__name__}"
            raise TypeError(msg)
        if "\n" in self.text:
            msg = "the text of a fact is one line"
            raise ValueError(msg)
        if not self.text.strip():
            msg = "the text of a fact must not be blank"
            raise ValueError(msg)


def parse_fact(line: str) -> Fact | None:
    """Return the fact that the whole of `line` is, or None.

    A near miss (an upper-case label, a missing space, indentation) is no fact and no error.
    """
    match = _FACT.fullmatch(line)
    if match is None or not match[2].strip():
        return None
    return Fact(ConfidenceLabel(match[1]), match[2])


def format_fact(fact: Fact) -> str:
    """Return the line of a fact, without a line break."""
    return f"- [{fact.label}] {fact.text}"


def parse_body(body: str) -> tuple[Fact | str, ...]:
    """Return the lines of a body, facts as `Fact` and all others as they stand; at least one."""
    return tuple(parse_fact(line) or line for line in body.split("\n"))


def serialize_body(lines: Iterable[Fact | str]) -> str:
    """Return the body whose lines these are.

    Raises ValueError for no line at all, a str with a line feed in it, and a str that is a fact line: none
    of these would come back from `parse_body`.
    """
    texts: list[str] = []
    for line in lines:
        if isinstance(line, Fact):
            texts.append(format_fact(line))
        elif "\n" in line:
            msg = "a line must not hold a line break"
            raise ValueError(msg)
        elif parse_fact(line) is not None:
            msg = "a fact line is given as a Fact"
            raise ValueError(msg)
        else:
            texts.append(line)
    if not texts:
        msg = "a body has at least one line, which may be empty"
        raise ValueError(msg)
    return "\n".join(texts)


def text_problem(text: str) -> str | None:
    """Say why `text` cannot be (part of) a file's content, or None.

    Content is any text that UTF-8 can hold, without NUL.
    """
    if "\x00" in text:
        return "it must not hold a NUL character"
    if _SURROGATE.search(text):
        return "it must be valid UTF-8; it holds a lone surrogate"
    return None


def single_line_problem(text: str) -> str | None:
    """Say why `text` cannot be a fact line, a description, an alias or a source, or None.

    These are single lines: no boundary of `str.splitlines`, no control character.
    """
    if _SURROGATE.search(text):
        return "it must be valid UTF-8; it holds a lone surrogate"
    if text.splitlines() not in ([], [text]):
        return "it must be a single line"
    if _CONTROL.search(text):
        return "it must not hold a control character"
    return None


def fact_line_problem(line: str) -> str | None:
    """Say why `line` cannot be appended as a fact line, or None."""
    problem = single_line_problem(line)
    if problem is None and parse_fact(line) is None:
        labels = ", ".join(f"[{label}]" for label in ConfidenceLabel)
        problem = (
            "it must be one fact line of the form '- [label] text', without indentation, "
            f"with one of the labels {labels} and a text that is not blank"
        )
    return problem
