"""Cases about grep: what it finds, and that no pattern makes it run away."""

from __future__ import annotations

import faulthandler
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import pytest

from wenchang.files.errors import InvalidArgumentError
from wenchang_conformance.file_backend.fixtures import FileBackendFixtures
from wenchang_conformance.file_backend.manifest import proves

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wenchang.files.backend import FileBackend

__all__ = ["CATASTROPHIC", "RUN_OF_A", "SearchingCases"]

CATASTROPHIC: Final[Mapping[str, bool]] = MappingProxyType(
    {"(a+)+$": False, "(x(a+)+y)": False, "(a|a)*$": True, "^(a+)+$": False, "(a+)+!": True}
)
"""Patterns on which a backtracking matcher takes time exponential in `RUN_OF_A`, and whether they match."""
RUN_OF_A: Final = "x" + "a" * 4998 + "!"
_STDERR: Final = 2


class SearchingCases(FileBackendFixtures):
    """Searching for patterns."""

    @proves("grep-lines")
    def test_matching_lines_come_in_path_and_line_order(
        self, backend: FileBackend, at: Callable[[str], str], folder: str
    ) -> None:
        """Search two files."""
        backend.write(at("b.md"), "tea\ncoffee\ntea time")
        backend.write(at("a.md"), "no\nTea tea\r\n")
        result = backend.grep(r"\btea\b", folder or "/")
        assert [(match.path, match.line, match.text) for match in result.matches] == [
            (at("a.md"), 2, "Tea tea\r"),
            (at("b.md"), 1, "tea"),
            (at("b.md"), 3, "tea time"),
        ]
        assert not result.truncated
        assert not result.unreadable

    @proves("grep-lines")
    def test_a_search_ends_at_its_limit_and_says_so(
        self, backend: FileBackend, at: Callable[[str], str], folder: str
    ) -> None:
        """Search with room for two, of three and of two."""
        backend.write(at("a.md"), "x\nx\nx\n")
        cut = backend.grep("x", folder or "/", limit=2)
        assert [match.line for match in cut.matches] == [1, 2]
        assert cut.truncated
        assert not backend.grep("x", folder or "/", limit=3).truncated

    @proves("grep-lines")
    def test_include_filters_by_name_or_by_relative_path(
        self, backend: FileBackend, at: Callable[[str], str], folder: str, nested: bool
    ) -> None:
        """Search with both kinds of filter."""
        if not nested:
            pytest.skip("unsupported: this backend has folders of one depth only")
        for name in ("1.md", "x/1.md", "x/1.txt"):
            backend.write(at(name), "found\n")

        def found(include: str, under: str) -> list[str]:
            return [match.path for match in backend.grep("found", under, include=include).matches]

        assert found("*.md", folder or "/") == [at("1.md"), at("x/1.md")]
        assert found("x/*", folder or "/") == [at("x/1.md"), at("x/1.txt")]
        assert found("x/*", at("x")) == []

    @proves("grep-refused")
    def test_what_the_matcher_does_not_take_is_an_argument_error(
        self, backend: FileBackend, at: Callable[[str], str], folder: str
    ) -> None:
        """Send look-around, back-references, nonsense, too little and too much."""
        backend.write(at("a.md"), "aa")
        for pattern in ("(?=a)", "(?<!a)a", r"(a)\1", "(", "", "a" * 1001):
            with pytest.raises(InvalidArgumentError) as refused:
                backend.grep(pattern, folder or "/")
            assert refused.value.argument == "pattern"
        assert backend.grep("a" * 1000, folder or "/").matches == ()

    @proves("grep-bounded")
    def test_no_pattern_makes_a_search_run_away(
        self,
        backend: FileBackend,
        at: Callable[[str], str],
        folder: str,
        watchdog_seconds: float,
    ) -> None:
        """Search 5,000 characters for patterns that catch a backtracking matcher."""
        backend.write(at("a.md"), RUN_OF_A)
        # A matcher that has run away holds the interpreter: only ending the process helps.
        faulthandler.dump_traceback_later(watchdog_seconds, exit=True, file=_STDERR)
        try:
            for pattern, is_match in CATASTROPHIC.items():
                result = backend.grep(pattern, folder or "/")
                assert [match.line for match in result.matches] == [1] * is_match, pattern
                assert not result.truncated, f"{pattern} was given up on a line of 5,000 characters"
        finally:
            faulthandler.cancel_dump_traceback_later()
