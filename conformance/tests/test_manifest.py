"""The manifest, the cases, the frozen ids and the contract page say the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wenchang.storage import STORAGE_CONTRACT
from wenchang_conformance import manifest
from wenchang_conformance.manifest import frozen_ids, requirements
from wenchang_conformance.profiles import PROFILES
from wenchang_conformance.requirement import MARKER, requirement
from wenchang_conformance.suite import StorageConformance, cases_by_requirement

PAGE = Path(__file__).parents[2] / manifest.CONTRACT_PAGE


def test_each_requirement_has_a_case():
    assert set(requirements()) - set(cases_by_requirement()) == set()


def test_each_case_points_at_requirements_of_the_manifest():
    cases = {
        name: getattr(StorageConformance, name)
        for name in dir(StorageConformance)
        if name.startswith("test_")
    }
    assert len(cases) > 80
    for name, case in cases.items():
        marks = [mark for mark in getattr(case, "pytestmark", ()) if mark.name == MARKER]
        assert len(marks) == 1, f"{name} carries no requirement"
        assert set(marks[0].args) <= set(requirements())


def test_each_case_says_what_it_does():
    for name in dir(StorageConformance):
        if name.startswith("test_"):
            assert getattr(StorageConformance, name).__doc__, name


def test_a_case_cannot_name_an_unknown_requirement():
    with pytest.raises(ValueError, match="no-such-id"):
        requirement("key-exact", "no-such-id")


def test_the_manifest_is_whole():
    assert manifest.CONTRACT == STORAGE_CONTRACT
    for item in requirements().values():
        assert re.fullmatch(r"[a-z]+(-[a-z]+)+|threads|fork|durable", item.id)
        assert item.level in {"MUST", "SHOULD"}
        assert item.since == "1.0"
        assert item.profile in PROFILES
        assert item.behaviour.endswith(".")
        assert item.hint.endswith(".")


def test_the_ids_of_the_released_contract_are_frozen():
    assert tuple(requirements()) == frozen_ids("1.0")


def test_a_larger_profile_requires_what_a_smaller_one_does():
    quick, ci, deep = (PROFILES[name] for name in ("quick", "ci", "deep"))
    assert quick.ids <= ci.ids <= deep.ids == set(requirements())
    assert quick.hooks <= ci.hooks <= deep.hooks


def test_the_contract_page_states_each_requirement_once_and_in_these_words():
    if not PAGE.is_file():
        pytest.skip("the documentation is not beside the installed suite")
    text = PAGE.read_text(encoding="utf-8")
    anchors = re.findall(r'<a id="([a-z-]+)"></a>', text)
    assert anchors == list(requirements())
    plain = " ".join(text.split())
    for item in requirements().values():
        assert item.behaviour in plain, item.id
