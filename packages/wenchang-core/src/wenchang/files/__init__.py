"""The atomic file tree: a private folder of text files on any storage that keeps the contract."""

from __future__ import annotations
