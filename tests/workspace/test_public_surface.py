"""The public surface is `__all__`; a name joins or leaves it on purpose."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("surface", Path(__file__).with_name("surface.py"))
surface = importlib.util.module_from_spec(spec)
spec.loader.exec_module(surface)

MODULES = dict(surface.modules())


@pytest.mark.parametrize("name", MODULES)
def test_a_public_module_lists_its_names_and_has_them(name):
    names = surface.exported(MODULES[name])

    assert names is not None, "the module has no __all__"
    module = importlib.import_module(name)
    assert [entry for entry in names if not hasattr(module, entry)] == []


def test_the_surface_is_the_recorded_one():
    """Update the record with `python tests/workspace/surface.py > tests/workspace/public_surface.txt`."""
    assert surface.surface().splitlines() == surface.RECORD.read_text(encoding="utf-8").splitlines()
