"""The pytest plugin, as a project sees it that uses the suite, or does not."""

from __future__ import annotations

import json
from importlib import resources

import jsonschema
import pytest

pytest_plugins = ["pytester"]

RIGHT = """
import pytest
from wenchang.storage.memory import InMemoryStorage
from wenchang_conformance.hooks import StorageHooks
from wenchang_conformance.suite import StorageConformance

class Store(InMemoryStorage):
    pass

class TestMine(StorageConformance):
    profile = "quick"

    @pytest.fixture
    def hooks(self):
        storage = Store()
        return StorageHooks(
            open=lambda: storage, local=True, durable=False, shared=False, secrets=("hunter2",)
        )
"""
# So slow a service that the time is up at once.
SLOW = """
from dataclasses import replace

import pytest
from wenchang_conformance import suite
from wenchang_conformance.simulated import simulated_hooks

quick = suite.PROFILES["quick"]
suite.PROFILES = {"quick": replace(quick, sizes=replace(quick.sizes, fault_seconds=0.0))}


class TestMine(suite.StorageConformance):
    profile = "quick"

    @pytest.fixture
    def hooks(self):
        return simulated_hooks()
"""
# Entries in descending order: exactly one requirement is broken.
WRONG = RIGHT.replace(
    "    pass\n",
    "    def list_page(self, prefix, start_after, limit):\n"
    "        return list(super().list_page(prefix, start_after, limit))[::-1]\n",
)
ORDER = "-k=ascend_by_code_point"
GAP = '[[gap]]\nid = "list-order"\nreason = "it sorts downwards"\nissue = "https://example.org/7"\n'


@pytest.fixture
def project(pytester, monkeypatch):
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    pytester.makeini("[pytest]\naddopts = -p no:cacheprovider --strict-markers\n")
    return pytester


def run(project, source, *arguments):
    project.makepyfile(test_mine=source)
    return project.runpytest_subprocess(*arguments)


def test_a_slow_backend_is_shown_to_have_run_fewer_fault_scripts(project):
    result = run(project, SLOW, "-k=lost_and_late", "--wenchang-report=report.json")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*1 of 10 fault scripts ran; its 0 seconds were up*"])
    assert "1 of 10 fault scripts ran" in json.dumps(report_of(project))


def report_of(project):
    return json.loads((project.path / "report.json").read_text(encoding="utf-8"))


def test_a_failure_explains_itself(project):
    result = run(project, WRONG, ORDER)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            "*list-order (MUST)*",
            "The contract: Entries ascend by the code points of the key*",
            "Usual cause: *",
            "Contract:     docs/contract/storage-1.0.md#list-order",
            "*wenchang steps of this case*",
            "*storage.put(*",
        ]
    )
    result.stdout.fnmatch_lines(["*TestMine (contract 1.0, profile quick): fails"])


def test_a_run_is_summed_up_and_reported(project):
    result = run(
        project,
        RIGHT,
        "--wenchang-report=report.json",
        "--wenchang-report=report.md",
        "--wenchang-report=sub/mine.badge.json",
    )
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*TestMine (contract 1.0, profile quick): conforms"])
    report = report_of(project)
    schema = resources.files("wenchang_conformance").joinpath("report.schema.json").read_text()
    jsonschema.validate(report, json.loads(schema))
    (subject,) = report["subjects"]
    assert subject["counts"]["passed"] > 30
    assert sum(subject["counts"].values()) == len(subject["requirements"]) == 48
    statuses = {item["id"]: item["status"] for item in subject["requirements"]}
    assert statuses["key-exact"] == "passed"
    assert statuses["out-landed"] == "unsupported"
    assert statuses["obj-foreign"] == "not-run"
    assert "| `key-exact` | MUST | passed |" in (project.path / "report.md").read_text()
    badge = json.loads((project.path / "sub" / "mine.badge.json").read_text())
    assert badge["message"] == "conforms"


def test_results_survive_several_worker_processes(project):
    pytest.importorskip("xdist")
    result = run(project, WRONG, ORDER, "-n2", "--wenchang-report=report.json")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    (subject,) = report_of(project)["subjects"]
    failed = [item["id"] for item in subject["requirements"] if item["status"] == "failed"]
    assert failed == ["list-order"]
    result.stdout.fnmatch_lines(["*TestMine (contract 1.0, profile quick): fails"])


def test_a_selection_of_cases_never_conforms(project):
    result = run(project, RIGHT, ORDER, "--wenchang-report=report.json")
    assert result.ret == pytest.ExitCode.OK
    assert report_of(project)["verdict"] == "incomplete"


def test_a_declared_gap_is_an_expected_failure(project):
    (project.path / "conformance-gaps.toml").write_text(GAP)
    result = run(project, WRONG, ORDER, "--wenchang-report=report.json")
    assert result.ret == pytest.ExitCode.OK
    result.assert_outcomes(xfailed=2)
    statuses = {
        item["id"]: item["status"] for item in report_of(project)["subjects"][0]["requirements"]
    }
    assert statuses["list-order"] == "gap"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (GAP, "stale"),
        (GAP.replace("list-order", "no-such-id"), "no-such-id"),
        (GAP.replace('reason = "it sorts downwards"\n', ""), "reason"),
    ],
    ids=["stale", "unknown", "unexplained"],
)
def test_a_gap_that_is_not_true_fails_the_run(project, text, problem):
    (project.path / "conformance-gaps.toml").write_text(text)
    result = run(project, RIGHT, ORDER)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"*! *{problem}*"])


def test_a_gap_of_another_class_excuses_nothing(project):
    (project.path / "conformance-gaps.toml").write_text(GAP + 'subject = "TestOther"\n')
    run(project, WRONG, ORDER).assert_outcomes(failed=2)


def test_a_secret_is_not_shown_in_the_steps(project):
    source = RIGHT.replace(
        "    pass\n",
        "    def list_page(self, prefix, start_after, limit):\n"
        "        raise LookupError('no bucket at hunter2')\n",
    )
    result = run(project, source, ORDER)
    steps = result.stdout.str().partition("wenchang steps of this case")[2].partition("=====")[0]
    assert "raised LookupError: no bucket at ***" in steps
    assert "hunter2" not in steps.partition("____")[0]


def test_a_subclass_without_a_storage_is_told_what_to_give(project):
    result = run(
        project,
        "from wenchang_conformance.suite import StorageConformance\n"
        "class TestMine(StorageConformance):\n    pass\n",
        ORDER,
    )
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["*override the fixture make_storage*"])


def test_a_plain_method_may_make_the_storage(project):
    source = """
from wenchang.storage.memory import InMemoryStorage
from wenchang_conformance.suite import StorageConformance

class TestMine(StorageConformance):
    def make_storage(self, tmp_path):
        storage = InMemoryStorage()
        return lambda: storage
"""
    run(project, source, "-k=absent_key_reads_as_none", "--wenchang-profile=quick").assert_outcomes(
        passed=1
    )


def test_a_project_without_the_suite_is_not_disturbed(project):
    result = run(project, "def test_ok():\n    pass\n", "-q", "--wenchang-report=report.json")
    result.assert_outcomes(passed=1)
    assert "wenchang" not in result.stdout.str().replace(str(project.path), "")
    assert not (project.path / "report.json").exists()


def test_a_project_without_the_suite_does_not_import_it(project):
    source = """
import sys

def test_it_is_not_imported():
    assert "wenchang_conformance.suite" not in sys.modules
    assert "hypothesis.stateful" not in sys.modules
"""
    run(project, source, "-p", "no:hypothesispytest").assert_outcomes(passed=1)
