"""What a run came to: cases, requirements, subjects, and the verdict."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from wenchang_conformance.manifest import requirements

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from wenchang_conformance.gaps import Gap
    from wenchang_conformance.manifest import Requirement

__all__ = [
    "NOT_SELECTED",
    "STATUSES",
    "CaseResult",
    "RequirementResult",
    "Status",
    "SubjectResult",
    "Verdict",
    "judge",
]

Status = Literal["passed", "failed", "error", "gap", "unsupported", "not-run"]
Verdict = Literal["conforms", "conforms-with-gaps", "fails", "incomplete"]

NOT_SELECTED: Final = "not all of its cases were selected"
STATUSES: Final[tuple[Status, ...]] = ("passed", "failed", "error", "gap", "unsupported", "not-run")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """One test. `required` means that the profile requires what was missing for it to run.

    `note` tells how much of a case bounded by time was done; it is empty where that says nothing.
    """

    name: str
    ids: tuple[str, ...]
    status: Status
    reason: str = ""
    required: bool = False
    seconds: float = 0.0
    note: str = ""

    def as_data(self) -> dict[str, Any]:
        """Return it as plain data, for a report and for another process."""
        return {
            "name": self.name,
            "ids": list(self.ids),
            "status": self.status,
            "reason": self.reason,
            "required": self.required,
            "seconds": round(self.seconds, 3),
            "note": self.note,
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> CaseResult:
        """Rebuild what `as_data` returned."""
        return cls(**{**data, "ids": tuple(data["ids"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class RequirementResult:
    """One sentence of the contract with what its cases came to."""

    requirement: Requirement
    status: Status
    required: bool
    reason: str
    cases: tuple[CaseResult, ...]

    @property
    def remark(self) -> str:
        """The reason, and what its cases note: one line for people."""
        first = self.reason.partition("\n")[0]
        return "; ".join(text for text in (first, *(case.note for case in self.cases)) if text)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectResult:
    """One storage under test."""

    name: str
    profile: str
    verdict: Verdict
    requirements: tuple[RequirementResult, ...]
    problems: tuple[str, ...] = field(default=())
    """What is wrong with the declared gaps."""

    @property
    def counts(self) -> Mapping[Status, int]:
        """How many requirements have each status."""
        counted = Counter(item.status for item in self.requirements)
        return {status: counted[status] for status in STATUSES}


def judge(
    name: str,
    profile: str,
    required_ids: frozenset[str],
    cases: Iterable[CaseResult],
    *,
    gaps: Mapping[str, Gap],
    expected_cases: Mapping[str, frozenset[str]],
    problems: Iterable[str] = (),
) -> SubjectResult:
    """Sum up the cases of one subject.

    `expected_cases` maps an id to the names of all its cases, so that a selection of tests does not
    count as proof and does not make a gap stale.
    """
    by_id: dict[str, list[CaseResult]] = {}
    for case in cases:
        for requirement_id in case.ids:
            by_id.setdefault(requirement_id, []).append(case)
    wrong = list(problems)
    results = []
    for requirement in requirements().values():
        own = tuple(by_id.get(requirement.id, ()))
        missing = expected_cases.get(requirement.id, frozenset()) - {case.name for case in own}
        status, reason = _status(own, missing)
        gap = gaps.get(requirement.id)
        if gap is not None and status in {"failed", "gap"}:
            status, reason = "gap", f"{gap.reason} ({gap.issue})"
        elif gap is not None and status == "passed":
            wrong.append(f"the gap {requirement.id!r} is stale: its cases pass; remove the entry")
        results.append(
            RequirementResult(
                requirement=requirement,
                status=status,
                required=requirement.id in required_ids,
                reason=reason,
                cases=own,
            )
        )
    return SubjectResult(
        name=name,
        profile=profile,
        verdict=_verdict(results, wrong),
        requirements=tuple(results),
        problems=tuple(wrong),
    )


def _status(cases: tuple[CaseResult, ...], missing: frozenset[str]) -> tuple[Status, str]:
    """Sum up the cases of one requirement: its status and the reason for it."""
    for status in ("failed", "error", "gap"):
        for case in cases:
            if case.status == status:
                return case.status, f"{case.name}: {case.reason}" if case.reason else case.name
    if missing:
        return "not-run", NOT_SELECTED
    for case in cases:
        if case.status == "not-run" and case.required:
            return "not-run", case.reason
    passed = [case for case in cases if case.status == "passed"]
    waiting = [case for case in cases if case.status == "not-run"]
    if passed:
        note = (
            f"{len(waiting)} of {len(cases)} cases not run: {waiting[0].reason}" if waiting else ""
        )
        return "passed", note
    if waiting:
        return "not-run", waiting[0].reason
    declined = [case for case in cases if case.status == "unsupported"]
    if declined:
        return "unsupported", declined[0].reason
    return "not-run", "it has no case in this run"


def _verdict(results: list[RequirementResult], problems: list[str]) -> Verdict:
    """Return the verdict on a subject."""
    binding = [item for item in results if item.requirement.level == "MUST"]
    if problems or any(item.status in {"failed", "error"} for item in binding):
        return "fails"
    if any(item.status == "not-run" and item.required for item in results):
        return "incomplete"
    if any(item.status == "gap" for item in results):
        return "conforms-with-gaps"
    return "conforms"
