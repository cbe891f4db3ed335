"""The fixtures of the suite, with what they are where a backend does not say otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from wenchang.files.backend import FileBackend

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FileBackendFixtures"]


class FileBackendFixtures:
    """What a backend gives to the suite; only `backend` has to be given."""

    @pytest.fixture
    def backend(self) -> FileBackend:
        """Return a backend without files, a fresh one for each test."""
        pytest.fail("give the fixture `backend`: a FileBackend without files, new for each test")

    @pytest.fixture
    def reopen(self, backend: FileBackend) -> Callable[[], FileBackend]:
        """Return what opens another handle of the same files, as a new process would."""
        return lambda: backend

    @pytest.fixture
    def folder(self) -> str:
        """Return the folder that the tests work in; "" for the root."""
        return ""

    @pytest.fixture
    def nested(self) -> bool:
        """Tell whether files may lie at any depth beneath the folder."""
        return True

    @pytest.fixture
    def max_file_bytes(self) -> int:
        """Return the largest file that the backend takes, in bytes."""
        return 1024 * 1024

    @pytest.fixture
    def keeps_every_receipt(self) -> bool:
        """Tell whether outcomes of deletes, and refusals where no file is, are remembered too."""
        return True

    @pytest.fixture
    def corrupt(self) -> Callable[[str], None] | None:
        """Return what makes the stored content of a file unreadable, behind the backend's back."""
        return None

    @pytest.fixture
    def stranger(self) -> FileBackend | None:
        """Return a backend of another tenant on the same storage, where there are tenants."""
        return None

    @pytest.fixture
    def hidden(self) -> tuple[str, ...]:
        """Return paths of files that are there and covered by a mount."""
        return ()

    @pytest.fixture
    def watchdog_seconds(self) -> float:
        """Return how long a search for a bad pattern may take before the process is ended."""
        return 60.0

    @pytest.fixture
    def at(self, folder: str) -> Callable[[str], str]:
        """Return what makes the absolute path of a name."""
        return lambda name: f"{folder}/{name}"
