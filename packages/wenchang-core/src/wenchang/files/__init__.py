"""The atomic file tree: a private folder of text files on any storage that keeps the contract.

Import from its modules: `wenchang.files.tree` (the tree), `.tools` (the ten tools), `.backend` (files for
agent harnesses), `.errors`.
"""

from __future__ import annotations

__all__: list[str] = []
