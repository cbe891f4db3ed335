"""Cases about effect keys: the first outcome is the only one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from wenchang.files.errors import (
    AlreadyExistsError,
    EditMatchError,
    EffectKeyReusedError,
    InvalidArgumentError,
    NotFoundError,
)
from wenchang_conformance.file_backend.fixtures import FileBackendFixtures
from wenchang_conformance.file_backend.manifest import proves

if TYPE_CHECKING:
    from collections.abc import Callable

    from wenchang.files.backend import FileBackend

__all__ = ["EffectCases"]


class EffectCases(FileBackendFixtures):
    """Calls that are repeated."""

    @proves("effect-once")
    def test_a_repeated_write_does_not_undo_what_came_after(
        self, backend: FileBackend, reopen: Callable[[], FileBackend], at: Callable[[str], str]
    ) -> None:
        """Write, write something else, repeat the first."""
        first = backend.write(at("a.md"), "one", effect_key="key")
        backend.write(at("a.md"), "two")
        again = reopen().write(at("a.md"), "one", effect_key="key")
        assert again.replayed
        assert not first.replayed
        assert (again.path, again.created, again.changed) == (first.path, True, True)
        assert reopen().read(at("a.md")).text == "two"

    @proves("effect-once")
    def test_a_repeated_edit_is_applied_once(
        self, backend: FileBackend, reopen: Callable[[], FileBackend], at: Callable[[str], str]
    ) -> None:
        """Edit so that a second application would be possible, and repeat."""
        backend.write(at("a.md"), "x")
        first = backend.edit(at("a.md"), "x", "xx", replace_all=True, effect_key="key")
        again = reopen().edit(at("a.md"), "x", "xx", replace_all=True, effect_key="key")
        assert (again.replacements, again.replayed) == (first.replacements, True)
        assert reopen().read(at("a.md")).text == "xx"

    @proves("effect-once")
    def test_a_repeated_delete_does_not_take_the_next_file(
        self,
        backend: FileBackend,
        reopen: Callable[[], FileBackend],
        at: Callable[[str], str],
        keeps_every_receipt: bool,
    ) -> None:
        """Delete, write again, repeat the delete."""
        if not keeps_every_receipt:
            pytest.skip("unsupported: this backend declares that it remembers no deletes")
        backend.write(at("a.md"), "one")
        backend.delete(at("a.md"), effect_key="key")
        backend.write(at("a.md"), "two")
        assert reopen().delete(at("a.md"), effect_key="key").replayed
        assert reopen().read(at("a.md")).text == "two"

    @proves("effect-refusal")
    def test_a_refused_edit_stays_refused(
        self, backend: FileBackend, reopen: Callable[[], FileBackend], at: Callable[[str], str]
    ) -> None:
        """Refuse an edit, make it possible, repeat it."""
        backend.write(at("a.md"), "one")
        with pytest.raises(EditMatchError):
            backend.edit(at("a.md"), "two", "x", effect_key="key")
        backend.write(at("a.md"), "two")
        with pytest.raises(EditMatchError) as again:
            reopen().edit(at("a.md"), "two", "x", effect_key="key")
        assert (again.value.path, again.value.count) == (at("a.md"), 0)
        assert reopen().read(at("a.md")).text == "two"

    @proves("effect-refusal")
    def test_refusals_where_no_file_is_stay_refusals(
        self,
        backend: FileBackend,
        reopen: Callable[[], FileBackend],
        at: Callable[[str], str],
        keeps_every_receipt: bool,
    ) -> None:
        """Refuse by what is absent or in the way, change that, repeat."""
        if not keeps_every_receipt:
            pytest.skip(
                "unsupported: this backend declares that it remembers refusals only where a file is"
            )
        backend.write(at("f/a.md"), "x")
        refused: tuple[Callable[[FileBackend], object], ...] = (
            lambda handle: handle.edit(at("f"), "x", "y", effect_key="edit"),
            lambda handle: handle.delete(at("f"), effect_key="delete"),
        )
        for call in refused:
            with pytest.raises(NotFoundError):
                call(backend)
        with pytest.raises(AlreadyExistsError):
            backend.write(at("f"), "y", effect_key="write")
        backend.delete(at("f/a.md"))
        backend.write(at("f"), "x")
        for call in refused:
            with pytest.raises(NotFoundError):
                call(reopen())
        handle = reopen()
        with pytest.raises(AlreadyExistsError):
            handle.write(at("f"), "y", effect_key="write")
        assert reopen().read(at("f")).text == "x"

    @proves("effect-other-call")
    def test_a_key_with_other_arguments_is_refused(
        self, backend: FileBackend, at: Callable[[str], str]
    ) -> None:
        """Use one key for another text and for another operation."""
        backend.write(at("a.md"), "one", effect_key="key")
        calls: tuple[Callable[[], object], ...] = (
            lambda: backend.write(at("a.md"), "two", effect_key="key"),
            lambda: backend.edit(at("a.md"), "one", "two", effect_key="key"),
        )
        for call in calls:
            with pytest.raises(EffectKeyReusedError):
                call()
        assert backend.read(at("a.md")).text == "one"

    @proves("effect-other-call")
    def test_a_key_that_is_none_is_an_argument_error(
        self, backend: FileBackend, at: Callable[[str], str]
    ) -> None:
        """Use keys that are too short and too long."""
        for key in ("", "k" * 201):
            with pytest.raises(InvalidArgumentError):
                backend.write(at("a.md"), "x", effect_key=key)
        assert backend.write(at("a.md"), "x", effect_key="k" * 200).created
