"""Cases about listing, reading and globs."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from wenchang.files.errors import InvalidArgumentError, NotFoundError
from wenchang_conformance.file_backend.fixtures import FileBackendFixtures
from wenchang_conformance.file_backend.manifest import proves

if TYPE_CHECKING:
    from collections.abc import Callable

    from wenchang.files.backend import FileBackend

__all__ = ["ReadingCases"]

_NAMES = ("a.md", "b.md", "c.md", "d.md")


class ReadingCases(FileBackendFixtures):
    """Nothing here changes a file that is there."""

    @proves("ls-direct")
    def test_a_folder_lists_its_files_in_path_order(
        self, backend: FileBackend, at: Callable[[str], str], folder: str
    ) -> None:
        """Write out of order, list."""
        for name in reversed(_NAMES):
            backend.write(at(name), "x")
        listing = backend.ls(folder or "/")
        assert [entry.path for entry in listing.entries] == [at(name) for name in _NAMES]
        assert not listing.truncated

    @proves("ls-direct")
    def test_a_listing_that_was_cut_says_so(
        self, backend: FileBackend, at: Callable[[str], str], folder: str
    ) -> None:
        """List fewer than there are, and exactly as many."""
        for name in _NAMES:
            backend.write(at(name), "x")
        cut = backend.ls(folder or "/", limit=3)
        assert [entry.path for entry in cut.entries] == [at(name) for name in _NAMES[:3]]
        assert cut.truncated
        assert not backend.ls(folder or "/", limit=4).truncated

    @proves("ls-direct", "absolute-paths")
    def test_a_missing_folder_is_refused_by_its_full_name(
        self, backend: FileBackend, at: Callable[[str], str]
    ) -> None:
        """List a folder that is not there, and a file."""
        backend.write(at("a.md"), "x")
        for name in ("none", "a.md"):
            with pytest.raises(NotFoundError) as refused:
                backend.ls(at(name))
            assert refused.value.path == at(name)
            assert at(name) in refused.value.detail

    @proves("ls-direct", "file-or-folder")
    def test_folders_come_and_go_with_their_files(
        self, backend: FileBackend, at: Callable[[str], str], folder: str, nested: bool
    ) -> None:
        """Write beneath folders, list, delete, list."""
        if not nested:
            pytest.skip("unsupported: this backend has folders of one depth only")
        for name in ("x/y/1.md", "x/2.md", "x.md"):
            backend.write(at(name), "x")
        shown = [(entry.path, entry.kind) for entry in backend.ls(folder or "/").entries]
        assert shown == [(at("x.md"), "file"), (at("x"), "folder")]
        shown = [(entry.path, entry.kind) for entry in backend.ls(at("x")).entries]
        assert shown == [(at("x/2.md"), "file"), (at("x/y"), "folder")]
        backend.delete(at("x/y/1.md"))
        assert [entry.path for entry in backend.ls(at("x")).entries] == [at("x/2.md")]

    @proves("absolute-paths")
    def test_the_leading_slash_may_be_left_out(
        self, backend: FileBackend, at: Callable[[str], str]
    ) -> None:
        """Address a file both ways."""
        change = backend.write(at("a.md").removeprefix("/"), "x")
        assert change.path == at("a.md")
        assert backend.read(at("a.md").removeprefix("/")).path == at("a.md")

    @proves("absolute-paths")
    def test_paths_that_are_none_are_refused(
        self, backend: FileBackend, at: Callable[[str], str], folder: str
    ) -> None:
        """Send paths that would lead elsewhere."""
        backend.write(at("a.md"), "x")
        for name in ("../a.md", "./a.md", "b\\a.md", "/a.md", "b/../a.md"):
            path = f"{folder}/{name}"
            for call in (
                lambda path=path: backend.read(path),
                lambda path=path: backend.write(path, "y"),
                lambda path=path: backend.edit(path, "x", "y"),
                lambda path=path: backend.delete(path),
            ):
                with pytest.raises(InvalidArgumentError):
                    call()
        assert backend.read(at("a.md")).text == "x"

    @proves("read-window")
    def test_a_window_shows_the_lines_that_were_asked_for(
        self, backend: FileBackend, at: Callable[[str], str]
    ) -> None:
        """Read in windows; together they are the file."""
        text = "one\ntwo\r\n\nfour\u2028still four\nfive"
        backend.write(at("a.md"), text)
        shown = backend.read(at("a.md"), 1, 2)
        assert (shown.text, shown.offset, shown.lines, shown.total_lines) == ("two\r\n\n", 1, 2, 5)
        assert shown.next_offset == 3
        parts: list[str] = []
        offset: int | None = 0
        while offset is not None:
            window = backend.read(at("a.md"), offset, 2)
            parts.append(window.text)
            offset = window.next_offset
        assert "".join(parts) == text

    @proves("read-window")
    def test_an_offset_past_the_end_shows_nothing(
        self, backend: FileBackend, at: Callable[[str], str]
    ) -> None:
        """Read beyond the last line, and an empty file."""
        backend.write(at("a.md"), "one\ntwo\n")
        past = backend.read(at("a.md"), 2)
        assert (past.text, past.lines, past.total_lines, past.next_offset) == ("", 0, 2, None)
        backend.write(at("b.md"), "")
        empty = backend.read(at("b.md"))
        assert (empty.text, empty.lines, empty.total_lines) == ("", 0, 0)

    @proves("arguments")
    def test_limits_below_one_and_negative_offsets_are_refused(
        self, backend: FileBackend, at: Callable[[str], str], folder: str
    ) -> None:
        """Ask every reading call for nothing."""
        backend.write(at("a.md"), "x")
        top = folder or "/"
        for call in (
            lambda: backend.ls(top, limit=0),
            lambda: backend.read(at("a.md"), 0, 0),
            lambda: backend.read(at("a.md"), -1),
            lambda: backend.glob("*", top, limit=0),
            lambda: backend.grep("x", top, limit=-1),
        ):
            with pytest.raises(InvalidArgumentError):
                call()

    @proves("glob-relative")
    def test_a_pattern_is_for_names_or_for_paths_from_where_it_looks(
        self, backend: FileBackend, at: Callable[[str], str], folder: str, nested: bool
    ) -> None:
        """Match by name and by relative path, from two folders."""
        if not nested:
            pytest.skip("unsupported: this backend has folders of one depth only")
        for name in ("1.md", "x/1.md", "x/y/1.md", "x/y/2.txt"):
            backend.write(at(name), "x")

        def found(pattern: str, under: str) -> list[str]:
            return [entry.path for entry in backend.glob(pattern, under).entries]

        top = folder or "/"
        assert found("*.md", top) == [at("1.md"), at("x/1.md"), at("x/y/1.md")]
        assert found("x/*.md", top) == [at("x/1.md")]
        assert found("y/*", at("x")) == [at("x/y/1.md"), at("x/y/2.txt")]
        assert found("x/*", at("x")) == []
        assert found("**/1.md", at("x")) == [at("x/1.md"), at("x/y/1.md")]

    @proves("accept-first")
    def test_what_is_refused_takes_no_place_under_the_limit(
        self, backend: FileBackend, at: Callable[[str], str], folder: str
    ) -> None:
        """Accept the last two files only, with room for two."""
        for name in _NAMES:
            backend.write(at(name), "x\n")
        wanted = {at("c.md"), at("d.md")}
        listing = backend.glob("*.md", folder or "/", accept=wanted.__contains__, limit=2)
        assert [entry.path for entry in listing.entries] == sorted(wanted)
        assert not listing.truncated
        result = backend.grep("x", folder or "/", accept=wanted.__contains__, limit=2)
        assert [match.path for match in result.matches] == sorted(wanted)
        assert not result.truncated

    @proves("shadowed-invisible")
    def test_what_a_mount_covers_is_not_there(
        self, backend: FileBackend, hidden: tuple[str, ...], at: Callable[[str], str]
    ) -> None:
        """Look for covered files in every way."""
        if not hidden:
            pytest.skip("not applicable: the fixture `hidden` is not given")
        backend.write(at("a.md"), "x")
        assert not {entry.path for entry in backend.glob("**").entries} & set(hidden)
        assert not {match.path for match in backend.grep(".").matches} & set(hidden)
        for path in hidden:
            # The folder may be covered too, and then it is not there.
            with suppress(NotFoundError):
                listed = backend.ls(path.rpartition("/")[0] or "/").entries
                assert path not in {entry.path for entry in listed}
            for call in (backend.read, backend.delete):
                with pytest.raises(NotFoundError):
                    call(path)

    @proves("locks-named")
    def test_a_lock_is_named_for_each_path(
        self, backend: FileBackend, at: Callable[[str], str]
    ) -> None:
        """Ask for the locks of a path written in two ways, and of another."""
        locks = backend.locks(at("a.md"))
        assert locks
        assert backend.locks(at("a.md").removeprefix("/")) == locks
        assert not set(backend.locks(at("b.md"))) & set(locks)
