"""`StorageConformance` as a base class: what a subclass may and may not do."""

from __future__ import annotations

import pytest

from wenchang_conformance.hooks import StorageHooks
from wenchang_conformance.suite import StorageConformance

A_CASE = "test_an_absent_key_reads_as_none"


def test_overriding_a_case_is_refused_when_the_class_is_made():
    with pytest.raises(TypeError, match="conformance-gaps"):
        type("TestMine", (StorageConformance,), {A_CASE: lambda self: None})


def test_removing_a_case_is_refused():
    with pytest.raises(TypeError, match=A_CASE):
        type("TestMine", (StorageConformance,), {A_CASE: None})


def test_overriding_a_case_through_another_base_is_refused():
    mixin = type("Mixin", (), {A_CASE: lambda self: None})
    with pytest.raises(TypeError, match=A_CASE):
        type("TestMine", (mixin, StorageConformance), {})


def test_overriding_the_bench_is_refused():
    with pytest.raises(TypeError, match="bench"):
        type("TestMine", (StorageConformance,), {"bench": lambda self: None})


def test_adding_a_test_is_allowed():
    type("TestMine", (StorageConformance,), {"test_of_my_own": lambda self: None})


def test_hooks_have_safe_defaults():
    hooks = StorageHooks(open=object)
    assert hooks.durable
    assert hooks.shared
    assert not hooks.local
    assert dict(hooks.unsupported) == {}
