"""The suite: every case about a file backend."""

from __future__ import annotations

from wenchang_conformance.file_backend.changing import ChangingCases
from wenchang_conformance.file_backend.effects import EffectCases
from wenchang_conformance.file_backend.reading import ReadingCases
from wenchang_conformance.file_backend.searching import SearchingCases

__all__ = ["FileBackendConformance"]


class FileBackendConformance(ReadingCases, SearchingCases, ChangingCases, EffectCases):
    """Every backend behaves alike, whatever its files lie in."""
