"""Reports: JSON for programs, Markdown and a badge for people, a table for the terminal."""

from __future__ import annotations

import json
import textwrap
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from wenchang_conformance import __version__
from wenchang_conformance.manifest import CONTRACT
from wenchang_conformance.results import NOT_SELECTED

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from wenchang_conformance.results import RequirementResult, SubjectResult

__all__ = [
    "SCHEMA_VERSION",
    "as_badge",
    "as_data",
    "as_markdown",
    "table",
    "worst_verdict",
    "write_report",
]

SCHEMA_VERSION: Final = 1
"""The version of the JSON report; `report.schema.json` describes it."""

_COLOURS: Final = {
    "conforms": "brightgreen",
    "conforms-with-gaps": "yellow",
    "incomplete": "lightgrey",
    "fails": "red",
}
_WORST_FIRST: Final = ("fails", "incomplete", "conforms-with-gaps", "conforms")


def as_data(subjects: Sequence[SubjectResult]) -> dict[str, Any]:
    """Return the report as plain data."""
    return {
        "schema_version": SCHEMA_VERSION,
        "contract": CONTRACT,
        "suite_version": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "verdict": worst_verdict(subjects),
        "subjects": [
            {
                "name": subject.name,
                "profile": subject.profile,
                "verdict": subject.verdict,
                "counts": dict(subject.counts),
                "problems": list(subject.problems),
                "requirements": [_requirement(item) for item in subject.requirements],
            }
            for subject in subjects
        ],
    }


def _requirement(item: RequirementResult) -> dict[str, Any]:
    return {
        "id": item.requirement.id,
        "level": item.requirement.level,
        "capability": item.requirement.capability,
        "status": item.status,
        "required": item.required,
        "reason": item.reason,
        "cases": [case.as_data() for case in item.cases],
    }


def worst_verdict(subjects: Sequence[SubjectResult]) -> str:
    """Return the worst verdict of all subjects; without any, the run is incomplete."""
    verdicts = {subject.verdict for subject in subjects}
    return next((verdict for verdict in _WORST_FIRST if verdict in verdicts), "incomplete")


def as_markdown(subjects: Sequence[SubjectResult]) -> str:
    """Return the report as a Markdown page."""
    lines = [f"# Conformance to the wenchang storage contract {CONTRACT}", ""]
    lines += [f"Proved by wenchang-conformance {__version__}.", ""]
    for subject in subjects:
        counts = ", ".join(f"{count} {status}" for status, count in subject.counts.items() if count)
        lines += [f"## {subject.name}", ""]
        lines += [f"**{subject.verdict}** (profile `{subject.profile}`: {counts})", ""]
        lines += [f"- {problem}" for problem in subject.problems]
        lines += ["| requirement | level | status | cases | note |", "|---|---|---|---|---|"]
        for item in subject.requirements:
            note = item.remark.replace("|", "\\|")
            lines.append(
                f"| `{item.requirement.id}` | {item.requirement.level} | {item.status} "
                f"| {_case_counts(item)} | {note} |"
            )
        lines.append("")
    return "\n".join(lines)


def as_badge(subjects: Sequence[SubjectResult]) -> dict[str, Any]:
    """Return a badge in the form that badge services read from an endpoint."""
    verdict = worst_verdict(subjects)
    return {
        "schemaVersion": 1,
        "label": f"wenchang storage {CONTRACT}",
        "message": verdict.replace("-", " "),
        "color": _COLOURS[verdict],
    }


def write_report(file: Path, subjects: Sequence[SubjectResult]) -> None:
    """Write the report in the form that the file's name asks for.

    `.md` is Markdown, `.badge.json` a badge, everything else the JSON report.
    """
    if file.suffix == ".md":
        text = as_markdown(subjects)
    else:
        data = as_badge(subjects) if file.name.endswith(".badge.json") else as_data(subjects)
        text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def table(subject: SubjectResult, *, everything: bool) -> list[str]:
    """Return the lines of the terminal's table: all requirements, or those that did not just pass."""
    items = subject.requirements
    rows = [item for item in items if item.status not in {"passed", "unsupported"} or item.remark]
    if everything:
        rows = [*items]
    else:
        rows = [i for i in rows if i.status != "unsupported" and i.remark != NOT_SELECTED]
    left_out = sum(item.reason == NOT_SELECTED for item in items)
    width = max((len(item.requirement.id) for item in rows), default=0)
    counts = ", ".join(f"{count} {status}" for status, count in subject.counts.items() if count)
    return [
        f"{subject.name} (contract {CONTRACT}, profile {subject.profile}): {subject.verdict}",
        f"  {len(items)} requirements: {counts}",
        *(f"  ! {problem}" for problem in subject.problems),
        *(
            f"  {item.requirement.id:<{width}}  {item.status:<11}  {_case_counts(item):>5}  "
            f"{item.remark}".rstrip()
            for item in rows
        ),
        *([] if everything else _declined(items)),
        *([f"  not-run ({NOT_SELECTED}): {left_out}"] if left_out and not everything else []),
    ]


def _declined(items: Sequence[RequirementResult]) -> list[str]:
    """Return a line for each reason not to support some requirements."""
    by_reason: dict[str, list[str]] = {}
    for item in items:
        if item.status == "unsupported":
            by_reason.setdefault(item.reason, []).append(item.requirement.id)
    return [
        line
        for reason, ids in by_reason.items()
        for line in textwrap.wrap(
            f"unsupported ({reason}): {', '.join(ids)}",
            100,
            initial_indent="  ",
            subsequent_indent="    ",
            break_on_hyphens=False,
        )
    ]


def _case_counts(item: RequirementResult) -> str:
    """Return how many of a requirement's cases passed, of how many."""
    return f"{sum(case.status == 'passed' for case in item.cases)}/{len(item.cases)}"
