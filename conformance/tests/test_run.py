"""`wenchang check URL`, without a line of code."""

from __future__ import annotations

import io
import json

import pytest

from wenchang_conformance.run import main


def check(*arguments):
    out = io.StringIO()
    return main(list(arguments), out=out), out.getvalue()


def test_a_right_storage_conforms_and_leaves_nothing_behind(tmp_path):
    report = tmp_path / "report.json"
    folder = tmp_path / "store"
    status, said = check(f"file://{folder}", f"--report={report}")
    assert status == 0, said
    assert said.endswith("/store: conforms\n")
    assert "cases done" in said
    assert [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"] == []
    assert json.loads(report.read_text(encoding="utf-8"))["verdict"] == "conforms"


def test_the_probe_says_only_whether_conditions_are_honoured(tmp_path):
    status, said = check(f"file://{tmp_path}", "--probe")
    assert status == 0
    assert said.endswith("honours conditions\n")
    assert said.count("honoured") == 6
    assert [path for path in tmp_path.rglob("*%*") if path.is_file()] == []


WRONG = """
from contextlib import contextmanager
from wenchang.storage.memory import InMemoryStorage
from wenchang_conformance.hooks import StorageHooks

class Careless(InMemoryStorage):
    def put_if_version(self, key, data, metadata, expected):
        return self.put(key, data, metadata)

@contextmanager
def hooks(location, namespace):
    storage = Careless()
    yield StorageHooks(open=lambda: storage, local=True, durable=False, shared=False)
"""


@pytest.fixture
def careless(tmp_path, monkeypatch):
    (tmp_path / "careless_hooks.py").write_text(WRONG, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "careless_hooks"


def test_a_wrong_storage_fails_with_its_reasons(careless):
    status, said = check("memory://", f"--hooks={careless}")
    assert status == 1
    assert "FAILED test_a_create_on_an_existing_key_conflicts_and_changes_nothing" in said
    assert "Usual cause:" in said
    assert said.endswith("memory://: fails\n")


def test_the_probe_finds_a_storage_that_ignores_conditions(careless):
    status, said = check("memory://", f"--hooks={careless}", "--probe")
    assert status == 1
    assert "IGNORED   create only if absent" in said
    assert said.endswith("does not honour every condition\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["no-url"],
        ["nosuchscheme://x"],
        ["memory://?no_such_option=1"],
        ["memory://", "--hooks=no_such_module"],
    ],
)
def test_what_cannot_begin_ends_with_status_two(arguments, capsys):
    status, said = check(*arguments)
    assert status == 2
    assert said == ""
    assert capsys.readouterr().err.startswith("wenchang check: ")
