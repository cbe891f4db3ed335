"""Cases about write, edit and delete."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

import pytest

from wenchang.files.errors import (
    AlreadyExistsError,
    EditMatchError,
    FileToolError,
    InvalidArgumentError,
    LimitExceededError,
    NotFoundError,
    TreeStateError,
    VersionConflictError,
)
from wenchang_conformance.file_backend.fixtures import FileBackendFixtures
from wenchang_conformance.file_backend.manifest import proves

if TYPE_CHECKING:
    from collections.abc import Callable

    from wenchang.files.backend import FileBackend

__all__ = ["ChangingCases"]

_WRITERS = 6
_PATIENCE = 60.0


class ChangingCases(FileBackendFixtures):
    """What changes files."""

    @proves("write-replaces")
    def test_a_write_creates_and_then_replaces(
        self, backend: FileBackend, at: Callable[[str], str]
    ) -> None:
        """Write three times, once the same."""
        first = backend.write(at("a.md"), "one")
        assert (first.path, first.created, first.changed) == (at("a.md"), True, True)
        second = backend.write(at("a.md"), "two")
        assert (second.created, second.changed) == (False, True)
        assert second.version != first.version
        assert not backend.write(at("a.md"), "two").changed
        assert backend.read(at("a.md")).text == "two"

    @proves("write-replaces")
    def test_create_only_never_replaces(
        self, backend: FileBackend, at: Callable[[str], str]
    ) -> None:
        """Create twice."""
        backend.write(at("a.md"), "one", create_only=True)
        with pytest.raises(AlreadyExistsError) as refused:
            backend.write(at("a.md"), "two", create_only=True)
        assert refused.value.path == at("a.md")
        assert backend.read(at("a.md")).text == "one"
        with pytest.raises(InvalidArgumentError):
            backend.write(at("b.md"), "x", create_only=True, version="v1")

    @proves("write-replaces")
    def test_a_stale_version_is_refused_and_shows_what_is_there(
        self, backend: FileBackend, at: Callable[[str], str]
    ) -> None:
        """Change and delete at an old version, then at the one that the refusal gives."""
        stale = backend.write(at("a.md"), "one").version
        backend.write(at("a.md"), "two")
        for call in (
            lambda version: backend.write(at("a.md"), "three", version=version),
            lambda version: backend.edit(at("a.md"), "o", "three", version=version),
            lambda version: backend.delete(at("a.md"), version=version),
        ):
            with pytest.raises(VersionConflictError) as refused:
                call(stale)
            assert (refused.value.path, refused.value.content) == (at("a.md"), "two")
        assert backend.read(at("a.md")).version == refused.value.version
        backend.delete(at("a.md"), version=refused.value.version)
        with pytest.raises(NotFoundError):
            backend.write(at("a.md"), "x", version=stale)

    @proves("file-or-folder")
    def test_no_path_is_a_file_and_a_folder(
        self, backend: FileBackend, at: Callable[[str], str], nested: bool
    ) -> None:
        """Write beneath a file, and where a folder is."""
        if not nested:
            pytest.skip("unsupported: this backend has folders of one depth only")
        backend.write(at("a"), "file")
        with pytest.raises(AlreadyExistsError) as beneath:
            backend.write(at("a/b"), "x")
        assert (beneath.value.path, beneath.value.kind) == (at("a"), "file")
        backend.write(at("c/d"), "file")
        with pytest.raises(AlreadyExistsError) as instead:
            backend.write(at("c"), "x")
        assert (instead.value.path, instead.value.kind) == (at("c"), "folder")
        with pytest.raises(NotFoundError):
            backend.read(at("a/b"))

    @proves("edit-exact")
    def test_an_edit_replaces_the_one_occurrence_or_all(
        self, backend: FileBackend, at: Callable[[str], str]
    ) -> None:
        """Edit in each way."""
        backend.write(at("a.md"), "tea and tea and milk")
        change = backend.edit(at("a.md"), "milk", "sugar")
        assert (change.replacements, change.created) == (1, False)
        change = backend.edit(at("a.md"), "tea", "", replace_all=True)
        assert change.replacements == 2
        assert backend.read(at("a.md")).text == " and  and sugar"

    @proves("edit-exact", "absolute-paths")
    def test_an_edit_without_one_clear_place_is_refused(
        self, backend: FileBackend, at: Callable[[str], str]
    ) -> None:
        """Edit what is absent, what is there twice, nothing, and a file that is not there."""
        backend.write(at("a.md"), "aaa")
        for old, count in (("b", 0), ("aa", 2)):
            with pytest.raises(EditMatchError) as refused:
                backend.edit(at("a.md"), old, "x")
            assert (refused.value.path, refused.value.count) == (at("a.md"), count)
        with pytest.raises(InvalidArgumentError):
            backend.edit(at("a.md"), "", "x")
        with pytest.raises(NotFoundError) as absent:
            backend.edit(at("b.md"), "a", "x")
        assert absent.value.path == at("b.md")
        assert backend.read(at("a.md")).text == "aaa"

    @proves("bytes-exact")
    def test_an_edit_leaves_every_other_byte_alone(
        self, backend: FileBackend, at: Callable[[str], str]
    ) -> None:
        """Edit between carriage returns and a byte order mark."""
        text = "\ufeffone\r\ntwo\rthree\r\n\u2028four"
        backend.write(at("a.md"), text)
        assert backend.read(at("a.md")).text == text
        backend.edit(at("a.md"), "two", "2")
        assert backend.read(at("a.md")).text == text.replace("two", "2")

    @proves("edit-in-commit")
    def test_every_acknowledged_edit_is_in_the_file(
        self, backend: FileBackend, reopen: Callable[[], FileBackend], at: Callable[[str], str]
    ) -> None:
        """Edit one file from several threads at once."""
        places = [f"[{number}]" for number in range(_WRITERS)]
        backend.write(at("a.md"), "".join(places))
        refused = _together(
            [
                partial(backend.edit, at("a.md"), place, f"<{number}>")
                for number, place in enumerate(places)
            ]
        )
        assert not refused
        assert reopen().read(at("a.md")).text == "".join(f"<{n}>" for n in range(_WRITERS))

    @proves("edit-in-commit")
    def test_of_two_edits_of_one_occurrence_one_is_refused(
        self, backend: FileBackend, at: Callable[[str], str]
    ) -> None:
        """Replace the same text from several threads at once."""
        backend.write(at("a.md"), "once")
        refused = _together(
            [
                partial(backend.edit, at("a.md"), "once", f"by {number}")
                for number in range(_WRITERS)
            ]
        )
        assert [type(error) for error in refused] == [EditMatchError] * (_WRITERS - 1)
        assert backend.read(at("a.md")).text.startswith("by ")

    @proves("delete-file")
    def test_a_deleted_file_is_gone_and_nothing_else_is(
        self, backend: FileBackend, at: Callable[[str], str]
    ) -> None:
        """Delete one of two, then again."""
        backend.write(at("a.md"), "x")
        backend.write(at("ab.md"), "x")
        assert backend.delete(at("a.md")).path == at("a.md")
        with pytest.raises(NotFoundError) as refused:
            backend.delete(at("a.md"))
        assert refused.value.path == at("a.md")
        assert backend.read(at("ab.md")).text == "x"

    @proves("delete-file")
    def test_folders_and_the_root_are_not_deleted(
        self, backend: FileBackend, at: Callable[[str], str], folder: str
    ) -> None:
        """Delete the folder of a file, and the root."""
        backend.write(at("f/a.md") if not folder else at("a.md"), "x")
        with pytest.raises(FileToolError):
            backend.delete(folder or at("f"))
        with pytest.raises(InvalidArgumentError):
            backend.delete("/")
        assert len(backend.glob("*.md", "/").entries) == 1

    @proves("delete-file")
    def test_a_file_that_is_no_text_any_more_can_be_deleted(
        self,
        backend: FileBackend,
        reopen: Callable[[], FileBackend],
        at: Callable[[str], str],
        folder: str,
        corrupt: Callable[[str], None] | None,
    ) -> None:
        """Damage one of two files; it is named, searched around, and deleted."""
        if corrupt is None:
            pytest.skip("not applicable: the fixture `corrupt` is not given")
        backend.write(at("a.md"), "x")
        backend.write(at("b.md"), "x")
        corrupt(at("a.md"))
        fresh = reopen()
        with pytest.raises(TreeStateError) as damaged:
            fresh.read(at("a.md"))
        assert damaged.value.path == at("a.md")
        result = fresh.grep("x", folder or "/")
        assert [match.path for match in result.matches] == [at("b.md")]
        assert result.unreadable == (at("a.md"),)
        fresh.delete(at("a.md"))
        assert [entry.path for entry in fresh.glob("*", "/").entries] == [at("b.md")]

    @proves("bounds")
    def test_a_write_over_the_bound_is_refused_and_changes_nothing(
        self, backend: FileBackend, at: Callable[[str], str], max_file_bytes: int
    ) -> None:
        """Write and edit past the largest file; the largest one fits."""
        largest = "x" * (max_file_bytes - 2) + "\u00e9"
        backend.write(at("a.md"), largest)
        with pytest.raises(LimitExceededError):
            backend.write(at("b.md"), largest + "y")
        with pytest.raises(LimitExceededError):
            backend.edit(at("a.md"), "\u00e9", "\u20ac")
        assert backend.read(at("a.md")).text == largest
        with pytest.raises(NotFoundError):
            backend.read(at("b.md"))

    @proves("tenants-apart")
    def test_no_path_leads_to_another_tenant(
        self, backend: FileBackend, stranger: FileBackend | None, at: Callable[[str], str]
    ) -> None:
        """Write for two tenants under one path."""
        if stranger is None:
            pytest.skip("not applicable: the fixture `stranger` is not given")
        backend.write(at("a.md"), "mine")
        assert stranger.glob("**").entries == ()
        stranger.write(at("a.md"), "theirs")
        stranger.write(at("b.md"), "theirs")
        assert backend.read(at("a.md")).text == "mine"
        assert [entry.path for entry in backend.glob("**").entries] == [at("a.md")]
        for path in ("/../b.md", "/stranger/b.md", "/@store/stranger/b.md"):
            with pytest.raises(FileToolError):
                backend.read(path)


def _together(calls: list[Callable[[], object]]) -> list[Exception]:
    """Make calls at the same moment; return what they raised."""
    barrier = threading.Barrier(len(calls))
    raised: list[Exception] = []

    def run(call: Callable[[], object]) -> None:
        barrier.wait(_PATIENCE)
        try:
            call()
        except Exception as error:  # noqa: BLE001 - judged by the test
            raised.append(error)

    threads = [threading.Thread(target=run, args=(call,), daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_PATIENCE)
        assert not thread.is_alive(), "a call did not return in time"
    return raised
