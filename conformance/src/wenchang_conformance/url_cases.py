"""The cases of a run against a URL. `wenchang_conformance.run` supplies the fixture `located_hooks`."""

from __future__ import annotations

import pytest

from wenchang_conformance.hooks import StorageHooks
from wenchang_conformance.suite import StorageConformance

__all__ = ["TestStorage"]


class TestStorage(StorageConformance):
    """The contract against the storage at the URL."""

    @pytest.fixture
    def hooks(self, located_hooks: StorageHooks) -> StorageHooks:
        """Return the hooks of a fresh namespace at the URL."""
        return located_hooks
