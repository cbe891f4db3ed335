"""From cases to requirements to a verdict."""

from __future__ import annotations

import json
from dataclasses import replace

from wenchang_conformance.gaps import Gap
from wenchang_conformance.manifest import requirements
from wenchang_conformance.report import as_data, as_markdown, table
from wenchang_conformance.results import CaseResult, judge

ALL = frozenset(requirements())


def judged(*cases, required=frozenset(), gaps=None, expected=None):
    return judge(
        "mine",
        "quick",
        required,
        cases,
        gaps=gaps or {},
        expected_cases=expected or {},
    )


def case(status, *ids, name="test_x", reason="", required=False):
    return CaseResult(
        name=name, ids=ids or ("list-order",), status=status, reason=reason, required=required
    )


def status_of(subject, requirement_id="list-order"):
    return next(
        item.status for item in subject.requirements if item.requirement.id == requirement_id
    )


def test_every_requirement_is_in_the_result():
    assert {item.requirement.id for item in judged().requirements} == ALL


def test_a_requirement_passes_when_its_cases_pass():
    assert status_of(judged(case("passed"), case("passed", name="test_y"))) == "passed"


def test_one_failed_case_fails_the_requirement_and_the_verdict():
    subject = judged(case("passed"), case("failed", name="test_y"))
    assert status_of(subject) == "failed"
    assert subject.verdict == "fails"


def test_an_error_fails_the_verdict():
    assert judged(case("error")).verdict == "fails"


def test_a_required_requirement_without_a_case_is_incomplete():
    assert judged(required=frozenset({"list-order"})).verdict == "incomplete"
    assert judged(case("passed"), required=frozenset({"list-order"})).verdict == "conforms"


def test_what_has_no_hook_is_never_passed():
    subject = judged(case("not-run", reason="no hook"), required=frozenset({"list-order"}))
    assert status_of(subject) == "not-run"
    assert subject.verdict == "incomplete"


def test_a_missing_required_hook_spoils_a_requirement_whose_other_cases_passed():
    cases = (case("passed"), case("not-run", name="test_y", required=True))
    assert status_of(judged(*cases)) == "not-run"


def test_a_missing_optional_hook_is_noted_beside_what_passed():
    subject = judged(case("passed"), case("not-run", name="test_y", reason="no hook"))
    item = next(each for each in subject.requirements if each.requirement.id == "list-order")
    assert item.status == "passed"
    assert "1 of 2 cases not run" in item.reason


def test_how_much_of_a_bounded_case_ran_stands_in_every_report():
    note = "7 of 100 fault scripts ran; its 20 seconds were up"
    subject = judged(replace(case("passed"), note=note), case("passed", name="test_y"))
    item = next(each for each in subject.requirements if each.requirement.id == "list-order")
    assert item.status == "passed"
    assert any(note in line for line in table(subject, everything=False))
    assert note in as_markdown([subject])
    assert note in json.dumps(as_data([subject]))
    assert CaseResult.from_data(item.cases[0].as_data()) == item.cases[0]


def test_unsupported_does_not_spoil_conforms():
    subject = judged(case("unsupported", reason="declared"), required=frozenset({"list-order"}))
    assert status_of(subject) == "unsupported"
    assert subject.verdict == "conforms"


def test_a_selection_of_the_cases_is_no_proof():
    subject = judged(case("passed"), expected={"list-order": frozenset({"test_x", "test_other"})})
    assert status_of(subject) == "not-run"


def test_a_declared_gap_is_a_gap():
    gap = Gap(id="list-order", reason="the service sorts", issue="#1")
    subject = judged(case("gap"), gaps={"list-order": gap})
    assert status_of(subject) == "gap"
    assert subject.verdict == "conforms-with-gaps"


def test_a_gap_whose_cases_pass_is_stale_and_fails():
    gap = Gap(id="list-order", reason="the service sorts", issue="#1")
    subject = judged(case("passed"), gaps={"list-order": gap})
    assert subject.verdict == "fails"
    assert "stale" in subject.problems[0]
