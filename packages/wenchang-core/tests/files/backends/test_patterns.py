"""Patterns from models: bounded, refused clearly, and an extra of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from wenchang.core import MemoryStore
from wenchang.files._regex import LineMatcher, WorkBudget
from wenchang.files._scan import grep_files
from wenchang.files.accounts import FileAccounts
from wenchang.files.backend import BackendEntry
from wenchang.files.composite import CompositeFileBackend
from wenchang.files.errors import InvalidArgumentError
from wenchang.files.memory_backend import MemoryFileBackend
from wenchang.files.settings import FileSettings
from wenchang.files.state_backend import StateFileBackend
from wenchang.files.store_backend import StoreFileBackend
from wenchang.files.tools import FileTools
from wenchang.identity import Identity, ScopeGrant
from wenchang.scope import ScopePolicy
from wenchang.storage.memory import InMemoryStorage
from wenchang_conformance.file_backend.searching import CATASTROPHIC, RUN_OF_A

IDENTITY = Identity({"user": ScopeGrant("ada", "owner")})


def memory_files():
    return MemoryFileBackend(
        MemoryStore(InMemoryStorage()), IDENTITY, ScopePolicy(), source="tests"
    )


def composite():
    return CompositeFileBackend(
        StateFileBackend(),
        {"/user": StoreFileBackend(InMemoryStorage(), tenant="acme"), "/other": memory_files()},
    )


SEARCHED = {
    "state": StateFileBackend,
    "store": lambda: StoreFileBackend(InMemoryStorage(), tenant="acme"),
    "memory": memory_files,
    "composite": composite,
}


@pytest.mark.parametrize("kind", SEARCHED)
@pytest.mark.parametrize("pattern", CATASTROPHIC)
def test_every_search_answers_a_catastrophic_pattern_in_full(kind, pattern):
    files = SEARCHED[kind]()
    assert len(RUN_OF_A) == 5000
    files.write("/user/notes/a.md", RUN_OF_A)
    result = files.grep(pattern)
    assert bool(result.matches) is CATASTROPHIC[pattern]
    assert not result.truncated


@pytest.mark.parametrize("kind", SEARCHED)
@pytest.mark.parametrize("pattern", ["(?=a)", "(?!a)", "(?<=a)b", "(?<!a)b", r"(a)\1"])
def test_every_search_refuses_what_takes_backtracking_and_says_why(kind, pattern):
    files = SEARCHED[kind]()
    # Where there is no file too, a wrong pattern is one.
    with pytest.raises(InvalidArgumentError) as refused:
        files.grep(pattern)
    assert refused.value.argument == "pattern"
    assert "no look-around and no back-references" in refused.value.detail


@pytest.mark.parametrize("text", CATASTROPHIC)
def test_the_search_tool_takes_a_pattern_for_the_text_that_it_is(text):
    accounts = FileAccounts(InMemoryStorage(), FileSettings())
    tools = FileTools(accounts, IDENTITY, ScopePolicy(), source="tests")
    tools.call("file_create", {"path": "a.md", "content": f"{RUN_OF_A}\nsee {text} here\n"})
    found = tools.call("file_search", {"text": text, "caseSensitive": False}).payload
    assert [line["line"] for row in found["files"] for line in row["lines"]] == [2]


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
