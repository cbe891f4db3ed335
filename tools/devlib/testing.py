"""`dev.py test`: every test that this machine can run, then what was not run and why."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from devlib import environments, project, pythons, servers
from devlib.console import clean_environ, heading, run, say

_NO_TESTS = 5  # pytest's exit code when nothing was collected

# Core's tests that only the first Python runs: searches over many histories, suites that have a
# run of their own, and adapters, whose packages the other environments are spared.
FIRST_PYTHON_ONLY = (
    "adapters",
    "files/backends/test_backends_conform.py",
    "files/test_tree_interleavings.py",
    "files/test_tree_model.py",
    "files/test_tree_races.py",
    "storage/test_filesystem_conformance.py",
    "storage/test_filesystem_crash.py",
    "storage/test_memory_conformance.py",
    "storage/test_outcomes_model.py",
    "storage/test_settler_histories.py",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the person asked for."""

    pytest: tuple[str, ...] = ()
    all_pythons: bool = False
    deep: bool = False
    servers: bool = True
    coverage: bool = False
    complete: bool = False


@dataclass(slots=True)
class Outcome:
    """What all runs gave together."""

    passed: int = 0
    failed: int = 0
    codes: list[int] = field(default_factory=list)
    not_run: Counter[str] = field(default_factory=Counter)
    not_applicable: int = 0

    def add(self, code: int, report: Path) -> None:
        """Count one run of pytest; a run without a report has failed whatever its code."""
        self.codes.append(0 if code == _NO_TESTS else code)
        if not report.is_file():
            self.codes.append(code or 1)
            return
        data = json.loads(report.read_text(encoding="utf-8"))
        self.passed += data["counts"]["passed"]
        self.failed += data["counts"]["failed"] + data["counts"]["error"]
        for _, reason, is_gap in data["skipped"]:
            if is_gap:
                self.not_run[reason] += 1
            else:
                self.not_applicable += 1

    @property
    def code(self) -> int:
        """Return 0 only if every run succeeded."""
        return next((code for code in self.codes if code != 0), 0)


def run_tests(choice: Choice) -> int:
    """Run the tests and return the exit code: 0 unless a test failed.

    What could not be run is listed at the end; with `choice.complete` it fails the run.
    """
    begin = time.monotonic()
    outcome = Outcome()
    heading("environment")
    python = environments.ensure(environments.test())
    say(f"   {python}")
    heading("servers")
    kinds = servers.ALL if choice.servers else ()
    with servers.running(kinds, install=False) as started:
        if not choice.servers:
            say("   none were wanted")
        environ = clean_environ(
            {
                **started.environ,
                "WENCHANG_SIZES": "deep" if choice.deep else "ci",
                "PYTHONPATH": str(project.ROOT / "tools"),
            }
        )
        if choice.pytest:
            _pytest(outcome, python, environ, choice, "chosen", list(choice.pytest))
        else:
            _passes(outcome, python, environ, choice)
    if choice.coverage:
        _report_coverage(python)
    missing = dict(started.missing)
    if not choice.servers:
        missing = {kind.name: "--no-servers" for kind in servers.ALL}
    return _close(outcome, missing, choice, time.monotonic() - begin)


def _passes(outcome: Outcome, python: Path, environ: dict[str, str], choice: Choice) -> None:
    deep = "" if choice.deep else " and not deep"
    # Three workers keep two cores busy, since many tests wait; a fourth gained nothing.
    workers = ["-n", "3", "--dist", "worksteal", "--durations=25"]
    parallel = [*workers, "-m", f"not serial{deep}"]
    alone = ["-m", f"serial{deep}"]
    heading("tests in parallel")
    _pytest(outcome, python, environ, choice, "parallel", parallel)
    heading("tests that need the machine for themselves")
    _pytest(outcome, python, environ, choice, "serial", alone)
    if not choice.all_pythons:
        return
    for version in project.OTHER_PYTHONS:
        heading(f"core on Python {version}")
        other = pythons.find(version)
        if other is None:
            say(f"   there is no Python {version} on this machine")
            continue
        inside = environments.ensure(environments.other_python(), other)
        core = project.packages()["wenchang-core"].folder / "tests"
        chosen = [str(core), *(f"--ignore={core / name}" for name in FIRST_PYTHON_ONLY)]
        _pytest(outcome, inside, environ, choice, f"py{version}", [*parallel, *chosen])
        heading(f"the conformance suite on Python {version}, profile quick")
        outcome.codes.append(_conformance(inside, environ))


def _pytest(
    outcome: Outcome,
    python: Path,
    environ: Mapping[str, str],
    choice: Choice,
    name: str,
    arguments: list[str],
) -> None:
    report = project.MADE / f"report-{name}.json"
    report.unlink(missing_ok=True)
    env = {**environ, "WENCHANG_TEST_REPORT": str(report)}
    command: list[str | Path] = [python, "-m", "pytest"]
    if choice.coverage:
        env["COVERAGE_FILE"] = str(_coverage_file())
        command = [python, "-m", "coverage", "run", "-m", "pytest"]
    quiet = [] if choice.pytest else ["-q"]
    code = run([*command, "-p", "devlib.not_run", *quiet, *arguments], cwd=project.ROOT, env=env)
    outcome.add(code, report)


def _conformance(python: Path, environ: Mapping[str, str]) -> int:
    """Run the suite as a third party would, over the stores that need no server."""
    codes = []
    for url in ("memory://", f"file://{project.MADE / 'conformance-files'}"):
        say(f"-- {url}")
        command: list[str | Path] = [
            python,
            "-m",
            "wenchang_conformance",
            url,
            "--profile",
            "quick",
        ]
        codes.append(run(command, cwd=project.ROOT, env=environ))
    return max(codes)


def _coverage_file() -> Path:
    folder = project.MADE / "coverage"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "data"


def _report_coverage(python: Path) -> None:
    heading("coverage")
    env = clean_environ({"COVERAGE_FILE": str(_coverage_file())})
    for step in (["combine", "--quiet"], ["report"]):
        run([python, "-m", "coverage", *step], cwd=project.ROOT, env=env)


def _close(outcome: Outcome, missing: Mapping[str, str], choice: Choice, seconds: float) -> int:
    """Print what was not run and the closing line; return the exit code."""
    heading("not run")
    for name, reason in missing.items():
        say(f"   server {name}: {reason.splitlines()[0]}")
    for reason, count in sorted(outcome.not_run.items()):
        say(f"   {count} {'test' if count == 1 else 'tests'}: {reason}")
    gaps = bool(missing or outcome.not_run)
    if not gaps:
        say("   nothing: every test was run")
    if outcome.not_applicable:
        say(f"   (besides {outcome.not_applicable} that do not apply to what they would judge)")
    code = outcome.code
    if choice.complete and gaps and code == 0:
        say("   with --complete this fails the run")
        code = 1
    if outcome.passed == 0 and code == 0:
        say("   no test was run at all")
        code = _NO_TESTS
    say(f"\nExit code {code} after {seconds:.0f} s.")
    skipped = sum(outcome.not_run.values()) + outcome.not_applicable
    say(f"{outcome.passed} passed, {outcome.failed} failed, {skipped} skipped")
    return code
