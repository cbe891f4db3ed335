"""The documented path of the class in core."""

from __future__ import annotations

import importlib

import pytest

import wenchang_sql


def test_the_documented_path_in_core_leads_to_the_class():
    alias = importlib.import_module("wenchang.storage.sql")

    assert alias.SqlStorage is wenchang_sql.SqlStorage
    with pytest.raises(AttributeError, match="no attribute"):
        _ = alias.Other
