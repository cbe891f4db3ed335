"""Errors over the client are those of the store, text and all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wenchang.errors import (
    InvalidArgumentError,
    NotFoundError,
    OversizeWriteError,
    RecoverableError,
    ReplaceFactMatchError,
    VersionConflictError,
)
from wenchang_conformance.transport.harness import HarnessFixtures

if TYPE_CHECKING:
    from collections.abc import Callable

    from wenchang_conformance.transport.harness import Harness

__all__ = ["ErrorCases"]

_INVALID_PATHS = (
    "",
    "a",
    "a/b/c.md",
    "a/b/c/d",
    "a/b/c/.md",
    "a//c/d.md",
    "../b/c/d.md",
    "a/b/c/d.md/",
)


class ErrorCases(HarnessFixtures):
    """Cases about errors."""

    def test_an_invalid_path_is_refused_by_every_operation(self, harness: Harness) -> None:
        """Give texts that are no path."""
        for path in _INVALID_PATHS:
            for label, call in _operations(harness, path, "token").items():
                error = harness.refused(NotFoundError, f"{label} of {path!r}", call)
                harness.same(label, "reason", error.reason, "invalid_path")

    def test_an_absent_file_is_not_found_by_every_operation(self, harness: Harness) -> None:
        """Address a file that does not exist."""
        token = harness.write(harness.path("a"), "x").version
        for label, call in _operations(harness, harness.path("never"), token).items():
            error = harness.refused(NotFoundError, label, call)
            harness.same(label, "reason", error.reason, "file_absent")

    def test_an_empty_source_is_refused_by_every_write(self, harness: Harness) -> None:
        """Write under no source."""
        path = harness.path("a")
        created = harness.write(path, "tea")
        client, metadata = harness.client, created.metadata
        calls: dict[str, Callable[[], object]] = {
            "write_file": lambda: client.write_file(
                path, "x", metadata, created.version, source=""
            ),
            "append_line": lambda: client.append_line(
                path, "- [stated] x", created.version, source=""
            ),
            "replace_fact": lambda: client.replace_fact(
                path, "tea", "x", created.version, source=""
            ),
        }
        for label, call in calls.items():
            try:
                call()
            except (ValueError, InvalidArgumentError):
                continue
            except Exception as error:  # noqa: BLE001 - judged right here
                harness.fail(label, f"raised {type(error).__name__} for an empty source")
            harness.fail(label, "accepted an empty source")
        harness.same("read_file", "content", harness.read(path).content, "tea")

    def test_the_text_of_an_error_is_that_of_the_store(self, harness: Harness) -> None:
        """Compare the text of each error with that of one built here; it ends with its guidance."""
        path = harness.path("a")
        stale = harness.write(path, "1")
        harness.write(path, "tea tea", stale.version)
        current = harness.read(path)
        conflict = harness.refused(
            VersionConflictError, "write_file", harness.write, path, "3", stale.version
        )
        match = harness.refused(
            ReplaceFactMatchError,
            "replace_fact",
            harness.replace,
            path,
            "tea",
            "x",
            current.version,
        )
        long = "x" * (harness.max_file_bytes + 1)
        oversize = harness.refused(OversizeWriteError, "write_file", harness.write, path, long)
        never = harness.path("never")
        absent = harness.refused(NotFoundError, "read_file", harness.client.read_file, never)
        invalid = harness.refused(NotFoundError, "read_file", harness.client.read_file, "x")
        pairs: tuple[tuple[RecoverableError, RecoverableError], ...] = (
            (conflict, VersionConflictError(path, "tea tea", current.version)),
            (match, ReplaceFactMatchError(path, "tea tea", current.version, 2)),
            (oversize, OversizeWriteError(path, len(long), harness.max_file_bytes)),
            (absent, NotFoundError(never, "file_absent")),
            (invalid, NotFoundError("x", "invalid_path")),
        )
        for raised, built in pairs:
            label = type(raised).__name__
            harness.same(label, "text", str(raised), str(built))
            if not raised.message.endswith(raised.guidance):
                harness.fail(label, "its message does not end with its guidance")

    def test_wrong_arguments_of_the_index_are_refused(self, harness: Harness) -> None:
        """Give a map that is none, and one with invalid scopes and entities."""
        for wrong in (None, ["user"], {"user": 1}, {1: "x"}, {"": "x"}, {"user": ""}, {"a/b": "x"}):
            try:
                harness.client.get_memory_index(wrong)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # wrong on purpose
            except (TypeError, ValueError):
                continue
            except Exception as error:  # noqa: BLE001 - judged right here
                harness.fail("get_memory_index", f"raised {type(error).__name__} for {wrong!r}")
            harness.fail("get_memory_index", f"accepted {wrong!r}")


def _operations(harness: Harness, path: str, token: str) -> dict[str, Callable[[], object]]:
    """Return each operation on an existing file, by name."""
    return {
        "read_file": lambda: harness.client.read_file(path),
        "write_file": lambda: harness.write(path, "x", token),
        "append_line": lambda: harness.append(path, "- [stated] x", token),
        "replace_fact": lambda: harness.replace(path, "x", "y", token),
        "delete_file": lambda: harness.client.delete_file(path, token),
    }
