"""`FileBackendConformance`: a file backend for agent harnesses, tried against what all of them do.

    class TestMyBackend(FileBackendConformance):
        @pytest.fixture
        def backend(self) -> FileBackend: ...      # fresh and empty for each test

Give the fixture `backend`, and where they apply `reopen` (another handle of the same files), `folder`
(where the tests may write), `nested`, `max_file_bytes`, `keeps_every_receipt`, `corrupt` and
`stranger`; see `fixtures`. What each test proves stands in the package's `manifest.toml`.

`on_storage` has the same for the backends that lie on a storage, given the storage, and `replay` tries
that their calls survive the death of the process that made them.
"""

from __future__ import annotations

from wenchang_conformance.file_backend.manifest import file_requirements, proved_by
from wenchang_conformance.file_backend.suite import FileBackendConformance

__all__ = ["FileBackendConformance", "file_requirements", "proved_by"]
