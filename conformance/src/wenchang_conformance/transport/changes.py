"""Conflicts, replaced facts, appended lines, limits, aliases and descriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wenchang.errors import (
    InvalidArgumentError,
    NotFoundError,
    OversizeWriteError,
    ReplaceFactMatchError,
    VersionConflictError,
)
from wenchang_conformance.transport.harness import HarnessFixtures

if TYPE_CHECKING:
    from collections.abc import Callable

    from wenchang_conformance.transport.harness import Harness

__all__ = ["ChangeCases"]


class ChangeCases(HarnessFixtures):
    """Cases about changes at a version."""

    # --- conflicts ---

    def test_a_stale_write_shows_what_is_there_and_its_token_works(self, harness: Harness) -> None:
        """Write with an old token, then with the one that the conflict carries."""
        path = harness.path("a")
        stale = harness.write(path, "1")
        harness.write(path, "2", stale.version)
        error = harness.refused(
            VersionConflictError, "write_file", harness.write, path, "3", stale.version
        )
        harness.same("write_file", "content of the conflict", error.content, "2")
        harness.write(path, "3", error.version)
        harness.same("read_file", "content", harness.read(path).content, "3")

    def test_a_create_on_an_existing_file_conflicts(self, harness: Harness) -> None:
        """Create twice."""
        path = harness.path("a")
        harness.write(path, "1")
        error = harness.refused(VersionConflictError, "write_file", harness.write, path, "2")
        harness.same("write_file", "content of the conflict", error.content, "1")
        harness.write(path, "2", error.version)

    def test_a_token_on_an_absent_file_is_not_found(self, harness: Harness) -> None:
        """Replace a deleted file."""
        path = harness.path("a")
        created = harness.write(path, "1")
        harness.client.delete_file(path, created.version)
        error = harness.refused(
            NotFoundError, "write_file", harness.write, path, "2", created.version
        )
        harness.same("write_file", "reason", error.reason, "file_absent")
        harness.absent(path, "after the refused write")

    def test_a_stale_delete_conflicts(self, harness: Harness) -> None:
        """Delete with an old token, then with the one that the conflict carries."""
        path = harness.path("a")
        stale = harness.write(path, "1")
        harness.write(path, "2", stale.version)
        error = harness.refused(
            VersionConflictError, "delete_file", harness.client.delete_file, path, stale.version
        )
        harness.same("delete_file", "content of the conflict", error.content, "2")
        harness.client.delete_file(path, error.version)
        harness.absent(path, "after delete_file")

    def test_deleting_an_absent_file_is_not_found(self, harness: Harness) -> None:
        """Delete twice."""
        path = harness.path("a")
        created = harness.write(path, "1")
        harness.client.delete_file(path, created.version)
        error = harness.refused(
            NotFoundError, "delete_file", harness.client.delete_file, path, created.version
        )
        harness.same("delete_file", "reason", error.reason, "file_absent")

    # --- replace_fact ---

    def test_a_text_that_stands_once_is_replaced(self, harness: Harness) -> None:
        """Replace, then remove."""
        path = harness.path("a")
        created = harness.write(path, "tea and coffee")
        replaced = harness.replace(path, "coffee", "cake", created.version)
        harness.same("replace_fact", "content", replaced.content, "tea and cake")
        removed = harness.replace(path, " and cake", "", replaced.version)
        harness.same("replace_fact", "content", removed.content, "tea")

    def test_a_text_that_is_not_there_is_refused(self, harness: Harness) -> None:
        """Quote what is not in the file."""
        path = harness.path("a")
        created = harness.write(path, "tea")
        error = harness.refused(
            ReplaceFactMatchError,
            "replace_fact",
            harness.replace,
            path,
            "beer",
            "x",
            created.version,
        )
        harness.same("replace_fact", "match_count", error.match_count, 0)
        harness.same("replace_fact", "content of the error", error.content, "tea")
        harness.write(path, "water", error.version)

    def test_a_text_that_stands_more_than_once_is_refused(self, harness: Harness) -> None:
        """Quote what is in the file twice, and what overlaps itself."""
        path = harness.path("a")
        created = harness.write(path, "aaa b b")
        for quote, count in (("b", 2), ("aa", 2)):
            error = harness.refused(
                ReplaceFactMatchError,
                "replace_fact",
                harness.replace,
                path,
                quote,
                "x",
                created.version,
            )
            harness.same("replace_fact", f"match_count of {quote!r}", error.match_count, count)
        harness.same("read_file", "content", harness.read(path).content, "aaa b b")

    def test_a_stale_replace_of_a_unique_text_is_applied_to_the_current_text(
        self, harness: Harness
    ) -> None:
        """Replace with an old token a text that still stands once."""
        path = harness.path("a")
        stale = harness.write(path, "tea\n")
        harness.append(path, "- [stated] more", stale.version)
        replaced = harness.replace(path, "tea", "cake", stale.version)
        harness.same("replace_fact", "content", replaced.content, "cake\n- [stated] more\n")

    def test_a_stale_replace_of_an_ambiguous_text_conflicts(self, harness: Harness) -> None:
        """Replace with an old token a text that now stands twice, and one that is gone."""
        path = harness.path("a")
        stale = harness.write(path, "tea")
        harness.write(path, "tea tea", stale.version)
        for quote in ("tea", "beer"):
            error = harness.refused(
                VersionConflictError,
                "replace_fact",
                harness.replace,
                path,
                quote,
                "x",
                stale.version,
            )
            harness.same("replace_fact", "content of the conflict", error.content, "tea tea")

    def test_an_empty_quote_is_refused(self, harness: Harness) -> None:
        """Quote nothing."""
        path = harness.path("a")
        created = harness.write(path, "tea")
        error = _argument_error(
            harness, "replace_fact", harness.replace, path, "", "x", created.version
        )
        if isinstance(error, InvalidArgumentError):
            harness.same("replace_fact", "argument", error.argument, "old_string")
        harness.same("read_file", "content", harness.read(path).content, "tea")

    # --- append_line ---

    def test_of_two_appends_at_one_token_one_lands_and_the_other_tries_again(
        self, harness: Harness
    ) -> None:
        """Append twice at the same token; the second one uses the token of its conflict."""
        path = harness.path("a")
        created = harness.write(path, "")
        harness.append(path, "- [stated] one", created.version)
        error = harness.refused(
            VersionConflictError,
            "append_line",
            harness.append,
            path,
            "- [stated] two",
            created.version,
        )
        harness.same("append_line", "content of the conflict", error.content, "- [stated] one\n")
        appended = harness.append(path, "- [stated] two", error.version)
        harness.same("append_line", "content", appended.content, "- [stated] one\n- [stated] two\n")

    def test_a_repeated_append_is_not_applied_twice(self, harness: Harness) -> None:
        """Repeat an append with the same arguments; the line stands once."""
        path = harness.path("a")
        created = harness.write(path, "")
        harness.append(path, "- [stated] one", created.version)
        harness.refused(
            VersionConflictError,
            "append_line",
            harness.append,
            path,
            "- [stated] one",
            created.version,
        )
        harness.same("read_file", "content", harness.read(path).content, "- [stated] one\n")

    def test_a_line_break_separates_what_was_there(self, harness: Harness) -> None:
        """Append to a text with and without a line break at its end, and to none."""
        line = "- [observed] x"
        for name, before, after in (
            ("none", "", f"{line}\n"),
            ("with", "text\n", f"text\n{line}\n"),
            ("without", "text", f"text\n{line}\n"),
        ):
            path = harness.path(name)
            created = harness.write(path, before)
            appended = harness.append(path, line, created.version)
            harness.same("append_line", f"content after {before!r}", appended.content, after)

    def test_an_append_to_an_absent_file_creates_nothing(self, harness: Harness) -> None:
        """Append where there is no file."""
        elsewhere = harness.write(harness.path("a"), "x")
        path = harness.path("never")
        error = harness.refused(
            NotFoundError, "append_line", harness.append, path, "- [stated] x", elsewhere.version
        )
        harness.same("append_line", "reason", error.reason, "file_absent")
        harness.absent(path, "after the refused append")

    def test_what_is_no_single_fact_line_is_refused(self, harness: Harness) -> None:
        """Append lines without a label, with an unknown one, with no text, and two at once."""
        path = harness.path("a")
        created = harness.write(path, "x\n")
        for line in ("text", "- [guessed] x", "- [stated] ", "- [stated] x\n- [stated] y", ""):
            error = _argument_error(
                harness, f"append_line of {line!r}", harness.append, path, line, created.version
            )
            if isinstance(error, InvalidArgumentError):
                harness.same("append_line", "argument", error.argument, "line")
        harness.same("read_file", "content", harness.read(path).content, "x\n")

    # --- limits and the system area ---

    def test_an_append_over_the_limit_is_refused_with_its_size(self, harness: Harness) -> None:
        """Append to a file that has no room left."""
        path = harness.path("a")
        before = "x" * (harness.max_file_bytes - 4)
        created = harness.write(path, before)
        line = "- [stated] y"
        error = harness.refused(
            OversizeWriteError, "append_line", harness.append, path, line, created.version
        )
        harness.same("append_line", "size", error.size, len(f"{before}\n{line}\n"))
        harness.same("append_line", "limit", error.limit, harness.max_file_bytes)
        harness.same("read_file", "content", harness.read(path).content, before)

    def test_a_replace_over_the_limit_is_refused_with_its_size(self, harness: Harness) -> None:
        """Replace a short text by one that does not fit."""
        path = harness.path("a")
        before = "y" + "x" * (harness.max_file_bytes - 1)
        created = harness.write(path, before)
        error = harness.refused(
            OversizeWriteError,
            "replace_fact",
            harness.replace,
            path,
            "y",
            "yy\u00e9",
            created.version,
        )
        harness.same("replace_fact", "size", error.size, harness.max_file_bytes + 3)
        harness.same("replace_fact", "limit", error.limit, harness.max_file_bytes)
        harness.same("read_file", "content", harness.read(path).content, before)

    def test_the_system_area_can_be_written_at_this_level(self, harness: Harness) -> None:
        """Write, append, replace and delete in the system area: the tools guard it, not the client."""
        path = harness.path("guide", area="system")
        token = harness.write(path, "one\n").version
        token = harness.append(path, "- [system] two", token).version
        token = harness.replace(path, "two", "three", token).version
        harness.client.delete_file(path, token)
        harness.absent(path, "after delete_file in the system area")

    # --- aliases and descriptions ---

    def test_an_append_adds_aliases(self, harness: Harness) -> None:
        """Append with known and new aliases."""
        path = harness.path("a")
        created = harness.write(path, "", aliases=("one", "two"))
        appended = harness.append(path, "- [stated] x", created.version, aliases=["two", "three"])
        harness.same("append_line", "aliases", appended.metadata.aliases, ("one", "two", "three"))

    def test_an_append_replaces_the_description(self, harness: Harness) -> None:
        """Append with a description, and with an empty one."""
        path = harness.path("a")
        created = harness.write(path, "", description="old")
        appended = harness.append(path, "- [stated] x", created.version, description="new")
        harness.same("append_line", "description", appended.metadata.description, "new")
        appended = harness.append(path, "- [stated] y", appended.version, description="")
        harness.same("append_line", "description", appended.metadata.description, "")

    def test_a_replaced_fact_may_bring_both(self, harness: Harness) -> None:
        """Replace with aliases and a description."""
        path = harness.path("a")
        created = harness.write(path, "tea", description="old", aliases=("one",))
        replaced = harness.replace(
            path, "tea", "cake", created.version, aliases=("two",), description="new"
        )
        harness.same("replace_fact", "aliases", replaced.metadata.aliases, ("one", "two"))
        harness.same("replace_fact", "description", replaced.metadata.description, "new")

    def test_what_is_left_out_stays_as_it_is(self, harness: Harness) -> None:
        """Append and replace without aliases and description."""
        path = harness.path("a")
        created = harness.write(path, "tea\n", description="kept", aliases=("one",))
        changed = harness.append(path, "- [stated] x", created.version)
        changed = harness.replace(path, "tea", "cake", changed.version)
        harness.same("replace_fact", "aliases", changed.metadata.aliases, ("one",))
        harness.same("replace_fact", "description", changed.metadata.description, "kept")

    def test_a_stale_replace_joins_its_aliases_with_the_current_ones(
        self, harness: Harness
    ) -> None:
        """Replace with an old token after another writer has added an alias."""
        path = harness.path("a")
        stale = harness.write(path, "tea\n", aliases=("one",))
        harness.append(path, "- [stated] x", stale.version, aliases=("two",))
        replaced = harness.replace(path, "tea", "cake", stale.version, aliases=("three",))
        harness.same("replace_fact", "aliases", replaced.metadata.aliases, ("one", "two", "three"))

    def test_wrong_aliases_and_descriptions_are_refused(self, harness: Harness) -> None:
        """Give a bare str as aliases, aliases that are no str, and a description of two lines."""
        path = harness.path("a")
        created = harness.write(path, "tea")
        for options in (
            {"aliases": "abc"},
            {"aliases": [1]},
            {"description": 1},
            {"description": "two\nlines"},
        ):
            for call, arguments in (
                (harness.append, (path, "- [stated] x", created.version)),
                (harness.replace, (path, "tea", "x", created.version)),
            ):
                _argument_error(harness, f"a change with {options!r}", call, *arguments, **options)
        harness.same("read_file", "content", harness.read(path).content, "tea")


def _argument_error(
    harness: Harness, label: str, call: Callable[..., object], *args: Any, **options: Any
) -> Exception:
    """Require an error about an argument."""
    came = "returned"
    try:
        call(*args, **options)
    except (InvalidArgumentError, ValueError, TypeError) as error:
        return error
    except Exception as error:  # noqa: BLE001 - judged right here
        came = f"raised {type(error).__name__}"
    return harness.fail(label, f"{came}, expected an error about an argument")
