"""The simulated storage conforms with every hook: lost answers, foreign objects, unproved endpoints."""

from __future__ import annotations

import pytest

from wenchang_conformance.simulated import simulated_hooks
from wenchang_conformance.suite import StorageConformance


class TestSimulatedStorage(StorageConformance):
    profile = "quick"

    @pytest.fixture
    def hooks(self):
        return simulated_hooks()
