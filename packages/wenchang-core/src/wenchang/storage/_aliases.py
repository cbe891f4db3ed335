"""Backends of other distributions under the paths that are documented for all of them.

`wenchang.storage.gcs.GcsStorage` lives in `wenchang_gcs`, which is imported when the name is first
used. Without that distribution the ImportError says what to install.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

__all__ = ["lazy_alias"]


def lazy_alias(alias: str, module: str, extra: str, names: list[str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of module `alias`, which has `names` from `module`."""

    def look_up(name: str) -> Any:
        if name not in names:
            msg = f"module {alias!r} has no attribute {name!r}"
            raise AttributeError(msg)
        try:
            return getattr(importlib.import_module(module), name)
        except ImportError as error:
            msg = f"{name} needs the extra '{extra}': pip install 'wenchang[{extra}]'"
            raise ImportError(msg, name=error.name, path=error.path) from error

    return look_up
