"""`FileBackendConformance`: a file backend for agent harnesses, tried against what all of them do.

    class TestMyBackend(FileBackendConformance):
        @pytest.fixture
        def backend(self) -> FileBackend: ...      # fresh and empty for each test

Give the fixture `backend`, and where they apply `reopen` (another handle of the same files), `folder`
(where the tests may write), `nested`, `max_file_bytes`, `keeps_every_receipt`, `corrupt` and
`stranger`; see `fixtures`. What each test proves stands in the package's `manifest.toml`.
"""

from __future__ import annotations

from wenchang_conformance.file_backend.changing import ChangingCases
from wenchang_conformance.file_backend.effects import EffectCases
from wenchang_conformance.file_backend.manifest import file_requirements, proved_by
from wenchang_conformance.file_backend.reading import ReadingCases
from wenchang_conformance.file_backend.searching import SearchingCases

__all__ = ["FileBackendConformance", "file_requirements", "proved_by"]


class FileBackendConformance(ReadingCases, SearchingCases, ChangingCases, EffectCases):
    """Every backend behaves alike, whatever its files lie in."""
