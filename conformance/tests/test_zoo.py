"""The zoo: each storage that is wrong on purpose is failed by the requirement that it breaks."""

from __future__ import annotations

import sys

import pytest

from wenchang_conformance.broken import MEMBERS, RIGHT, failed_requirements
from wenchang_conformance.broken.racing import RACERS
from wenchang_conformance.manifest import requirements

pytestmark = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="not applicable: the zoo is visited on Python 3.11 only"
)

# Requirements without a member: a wrong storage of each would hang a run, or is judged elsewhere.
WITHOUT_MEMBER = {"arg-types", "list-stable", "list-linear"}


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
def test_a_wrong_storage_is_failed_by_what_it_breaks_and_by_nothing_else(member, visited):
    visited("storages")
    failed = failed_requirements(member)

    assert member.breaks in failed
    assert set(failed) - {member.breaks} <= member.also, failed
    assert failed[member.breaks].strip(), "the failure says nothing"
    if set(failed) == {member.breaks}:
        visited("storages", alone=True)


@pytest.mark.parametrize("member", RIGHT, ids=lambda member: member.name)
def test_nothing_fails_on_the_storages_that_the_wrong_ones_are_made_from(member):
    assert failed_requirements(member) == {}


def test_there_are_at_least_sixty_members_with_names_of_their_own():
    names = [member.name for member in MEMBERS]

    assert len(names) == len(set(names)) >= 60


def test_nearly_every_requirement_has_a_member_that_breaks_it():
    broken = {member.breaks for member in MEMBERS}

    assert set(requirements()) - broken <= WITHOUT_MEMBER


def test_what_else_a_race_may_break_is_named_with_its_reason():
    for member in RACERS:
        assert set(member.reasons) == member.also
        assert all(member.reasons.values())
        assert member.breaks not in member.also


def test_a_member_names_only_requirements_of_the_contract():
    for member in MEMBERS:
        assert {member.breaks} | member.also <= set(requirements())
