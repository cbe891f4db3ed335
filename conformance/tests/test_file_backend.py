"""`FileBackendConformance`: every requirement is proved, and each wrong backend is found out."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

from wenchang.testing import FileBackendConformance
from wenchang_conformance.broken.file_backends import RUNAWAY, ZOO, sound
from wenchang_conformance.file_backend import file_requirements, proved_by

RUN = """
import pytest

from wenchang.testing import FileBackendConformance
from wenchang_conformance.broken.file_backends import RUNAWAY


class TestRunaway(FileBackendConformance):
    @pytest.fixture
    def backend(self):
        return RUNAWAY.make().backend

    @pytest.fixture
    def watchdog_seconds(self):
        return 2.0
"""


def run_tests(given, names):
    """Run tests of the suite on a backend; return what was raised, by test."""
    values = {
        "backend": given.backend,
        "reopen": given.reopen,
        "stranger": given.stranger,
        "folder": given.folder,
        "hidden": given.hidden,
        "nested": True,
        "corrupt": None,
        "keeps_every_receipt": True,
        "max_file_bytes": 1024 * 1024,
        "watchdog_seconds": 60.0,
        "at": lambda name: f"{given.folder}/{name}",
    }
    suite = FileBackendConformance()
    raised = {}
    for name in names:
        test = getattr(suite, name)
        try:
            test(**{each: values[each] for each in inspect.signature(test).parameters})
        except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
            raised[name] = error
    return raised


def test_every_requirement_is_proved_by_a_test_and_every_test_proves_one():
    proved = proved_by(FileBackendConformance)
    assert all(proved.values()), [name for name, tests in proved.items() if not tests]
    named = {test for tests in proved.values() for test in tests}
    assert named == {name for name in dir(FileBackendConformance) if name.startswith("test_")}
    for requirement in file_requirements().values():
        assert requirement.behaviour.endswith(".")
        assert requirement.hint.endswith(".")


@pytest.mark.parametrize("name", sorted(file_requirements()))
def test_a_right_backend_passes(name):
    for test in proved_by(FileBackendConformance)[name]:
        raised = run_tests(sound(), [test])
        assert not [e for e in raised.values() if not isinstance(e, pytest.skip.Exception)], raised


@pytest.mark.parametrize("member", ZOO, ids=lambda member: member.name)
def test_a_wrong_backend_fails_the_requirement_that_it_breaks_and_no_other(member, visited):
    visited("file backends")
    failed = {
        name
        for name, tests in proved_by(FileBackendConformance).items()
        for test in tests
        for error in run_tests(member.make(), [test]).values()
        if not isinstance(error, pytest.skip.Exception)
    }
    assert member.breaks in failed, f"{member.wrong}, and the suite did not notice"
    assert failed - {member.breaks} <= set(member.also), failed
    if failed == {member.breaks}:
        visited("file backends", alone=True)


def test_a_backtracking_matcher_is_ended_by_the_watchdog(tmp_path, visited):
    visited("file backends")
    file = tmp_path / "test_runaway.py"
    file.write_text(RUN, encoding="utf-8")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-k",
            "run_away",
            str(file),
        ],
        check=False,
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=tmp_path,
        timeout=120,
    )
    assert done.returncode != 0, RUNAWAY.wrong
    assert "passed" not in done.stdout


def test_a_failure_says_what_a_backend_does_and_what_usually_hinders_it(tmp_path):
    file = tmp_path / "test_rewriting.py"
    file.write_text(
        RUN.replace("RUNAWAY", "ZOO").replace("ZOO.make", "ZOO[-1].make"), encoding="utf-8"
    )
    done = subprocess.run(
        [
            sys.executable,
            *("-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "every_other_byte"),
            str(file),
        ],
        check=False,
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=tmp_path,
        timeout=120,
    )
    wanted = file_requirements()[ZOO[-1].breaks]
    said = " ".join(done.stdout.split())
    assert f"wenchang requirement {wanted.id}" in said
    assert wanted.behaviour in said
    assert wanted.hint in said


def test_a_backend_that_is_not_given_is_asked_for(tmp_path):
    file = tmp_path / "test_nothing.py"
    file.write_text(
        "from wenchang.testing import FileBackendConformance\n"
        "class TestNothing(FileBackendConformance):\n    pass\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-k",
            "a_lock_is_named",
            str(file),
        ],
        check=False,
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=tmp_path,
        timeout=120,
    )
    assert "give the fixture `backend`" in done.stdout
