"""What the plugin writes into the report of a case: its meaning, and how to repair a failure."""

from __future__ import annotations

import json
import textwrap
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from wenchang_conformance.applicability import Unsupported, is_required_hook
from wenchang_conformance.bench import Bench, NotRun
from wenchang_conformance.gaps import Gaps, read_gaps
from wenchang_conformance.hooks import HookUnavailable
from wenchang_conformance.manifest import requirements
from wenchang_conformance.profiles import DEFAULT_PROFILE
from wenchang_conformance.results import CaseResult

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from wenchang_conformance.file_backend.manifest import FileRequirement
    from wenchang_conformance.results import Status

__all__ = ["annotate", "explain_file_requirements"]

_PROPERTY: Final = "wenchang"
_WIDTH: Final = 96


def annotate(
    item: pytest.Item,
    call: pytest.CallInfo[Any],
    report: pytest.TestReport,
    ids: tuple[str, ...],
    gaps_file: Path | None,
) -> None:
    """Add the result of one phase to the report, and to a failure its explanation."""
    bench: Bench | None = getattr(item, "wenchang_bench", None)
    error = None if call.excinfo is None else call.excinfo.value
    required = False
    left: tuple[str, ...] = ()
    if isinstance(error, HookUnavailable):
        status: Status = "unsupported" if isinstance(error, Unsupported) else "not-run"
        reason = str(error)
        required = (
            isinstance(error, NotRun)
            and bench is not None
            and is_required_hook(error.hook, bench.hooks, bench.profile)
        )
        word = "unsupported" if status == "unsupported" else "not run"
        report.outcome = "skipped"
        report.longrepr = (str(item.path), (item.location[1] or 0) + 1, f"{word}: {reason}")
    elif report.failed:
        status = "failed" if call.when == "call" else "error"
        broken = getattr(error, "ids", ())
        if broken:
            # The case had come as far as these; of its other requirements it says nothing.
            left = tuple(name for name in ids if name not in broken)
            ids = tuple(broken)
        reason = _first_line(error)
        _explain(report, ids, bench)
        _declare_gap(report, ids, _gaps(gaps_file), _subject(item))
        if report.skipped:
            status = "gap"
    elif report.skipped:
        status, reason = "not-run", _skip_reason(report)
    elif call.when == "call":
        status, reason = "passed", ""
    else:
        return
    name = getattr(item, "originalname", item.name)
    cases = [
        CaseResult(
            name=name,
            ids=ids,
            status=status,
            reason=reason,
            required=required,
            seconds=call.duration,
            note="" if bench is None else bench.note,
        )
    ]
    if left:
        ended = f"{name} ended at {', '.join(ids)}"
        cases.append(CaseResult(name=name, ids=left, status="not-run", reason=ended))
    data = {
        "subject": _subject(item),
        "profile": _profile(item, bench),
        "gaps_file": None if gaps_file is None else str(gaps_file),
        "cases": [case.as_data() for case in cases],
    }
    report.user_properties.append((_PROPERTY, json.dumps(data)))


def _profile(item: pytest.Item, bench: Bench | None) -> str:
    """Return the profile of a case, also of one that ended before it had a bench."""
    if bench is not None:
        return bench.profile.name
    own = getattr(getattr(item, "cls", None), "profile", None)
    name: str = own or item.config.getoption("wenchang_profile", None) or DEFAULT_PROFILE
    return name


def _subject(item: pytest.Item) -> str:
    """Name the storage under test: the class, and the parameters of its fixtures if it has some."""
    given: str | None = getattr(item.config, "wenchang_subject", None)
    if given is not None:
        return given
    parent = item.parent
    name = item.nodeid.rpartition("::")[0] if parent is None else parent.nodeid
    callspec = getattr(item, "callspec", None)
    if callspec is None:
        return name
    function = getattr(item, "function", None)
    own: set[str] = set()
    for mark in getattr(function, "pytestmark", ()):
        if mark.name == "parametrize":
            own |= {mark.args[0]} if isinstance(mark.args[0], str) else set(mark.args[0])
    chosen = [
        str(value) if isinstance(value, str | int) else f"{parameter}{callspec.indices[parameter]}"
        for parameter, value in callspec.params.items()
        if parameter not in own
    ]
    return f"{name}[{'-'.join(chosen)}]" if chosen else name


def _explain(report: pytest.TestReport, ids: tuple[str, ...], bench: Bench | None) -> None:
    """Add the sections that make a failure enough to repair the backend."""
    for requirement_id in ids:
        requirement = requirements()[requirement_id]
        report.sections.append(
            (
                f"wenchang requirement {requirement.id} ({requirement.level})",
                "\n".join(
                    [
                        *_wrapped("The contract: ", requirement.behaviour),
                        *_wrapped("Usual cause:  ", requirement.hint),
                        f"Contract:     {requirement.link}",
                    ]
                ),
            )
        )
    if bench is not None and bench.trace.text():
        steps = bench.trace.text()
        for secret in bench.hooks.secrets:
            steps = steps.replace(secret, "***")
        report.sections.append(("wenchang steps of this case", steps))


def explain_file_requirements(
    report: pytest.TestReport, requirements: tuple[FileRequirement, ...]
) -> None:
    """Add to a failure what a file backend has to do, and what usually causes that it does not."""
    for requirement in requirements:
        lines = [
            *_wrapped("A file backend: ", requirement.behaviour),
            *_wrapped("Usual cause:    ", requirement.hint),
        ]
        report.sections.append((f"wenchang requirement {requirement.id}", "\n".join(lines)))


def _declare_gap(report: pytest.TestReport, ids: tuple[str, ...], gaps: Gaps, subject: str) -> None:
    """Report an expected failure where all requirements of the case are declared gaps."""
    declared = gaps.of(subject)
    known = [declared[name] for name in ids if name in declared]
    if len(known) == len(ids):
        report.outcome = "skipped"
        report.wasxfail = f"gap: {known[0].reason} ({known[0].issue})"


@cache
def _gaps(file: Path | None) -> Gaps:
    return read_gaps(file)


def _first_line(error: BaseException | None) -> str:
    return "" if error is None else (str(error) or type(error).__name__).partition("\n")[0]


def _skip_reason(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return "skipped"


def _wrapped(label: str, text: str) -> list[str]:
    """Return `text` wrapped behind a label."""
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=label,
        subsequent_indent=" " * len(label),
        break_long_words=False,
    )
