"""Patterns from models: bounded, refused clearly, and an extra of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from wenchang.files._regex import LineMatcher, WorkBudget
from wenchang.files._scan import grep_files
from wenchang.files.backend import BackendEntry
from wenchang.files.errors import InvalidArgumentError

BLOCKED = """
import sys
sys.modules["re2"] = None
from wenchang.files.state_backend import StateFileBackend
files = StateFileBackend()
files.write("/a.md", "x")
print(files.read("/a.md").text, len(files.glob("*.md").entries))
try:
    files.grep("x")
except ImportError as error:
    print(error)
"""


def test_without_the_extra_files_work_and_a_search_names_the_command():
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED],
        check=True,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
    )
    assert done.stdout.startswith("x 1\n")
    assert f'{sys.executable} -m pip install "wenchang-core[files]"' in done.stdout


def test_a_refused_pattern_is_not_printed(capfd):
    with pytest.raises(InvalidArgumentError) as refused:
        LineMatcher("(?=secret)")
    assert "look-around" in refused.value.detail
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "pattern", ["(" * 500 + ")" * 500, "((x{30}){30}){9}", "x{1001}", "\ud800", 5]
)
def test_no_pattern_is_too_strange(pattern):
    refused = None
    try:
        LineMatcher(pattern).matches(b"x" * 1000)
    except InvalidArgumentError as error:
        refused = error.argument
    assert refused in {None, "pattern"}


def test_a_line_that_costs_more_than_is_left_is_not_begun():
    matcher = LineMatcher("(a|b)*a(a|b){900}z")
    budget = WorkBudget()
    assert budget.affords(b"a" * 1000, matcher)
    assert not budget.affords(b"a" * 1_000_000, matcher)


def test_a_search_ends_when_its_budget_is_spent_and_says_so():
    files = [BackendEntry(path=f"/{number}") for number in range(40)]
    opened = []

    def contents(entries):
        opened.extend(entries)
        return [b"x\n" * 100 for _ in entries]

    def search(budget):
        return grep_files(
            files,
            contents,
            LineMatcher("x"),
            "",
            include=None,
            accept=None,
            limit=None,
            max_items=100,
            budget=budget,
        )

    by_steps = search(WorkBudget(steps=10_000))
    assert by_steps.truncated
    assert 0 < len(by_steps.matches) < 200
    assert len(opened) == 16
    by_chars = search(WorkBudget(chars=100))
    assert by_chars.truncated
    assert len(by_chars.matches) == 50
    assert not grep_files(
        files[:1],
        contents,
        LineMatcher("y"),
        "",
        include=None,
        accept=None,
        limit=None,
        max_items=100,
    ).truncated
