"""Twenty callers at once on one file: every call is acknowledged and none is lost.

Each caller has a tree of its own, as if in a process of its own, and the storage lets them read the root
only together: all twenty decide on the same state.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("deepagents", reason="the extra deepagents is not installed here")
pytest.importorskip("anthropic", reason="the extra anthropic is not installed here")

from anthropic.tools import ToolError

from wenchang.adapters.anthropic import WenchangAsyncMemoryTool, WenchangMemoryTool
from wenchang.adapters.deepagents import WenchangBackend

CALLERS = 20
MARK = "<end>\n"
NUMBERS = range(CALLERS)


def line(number):
    return f"item {number}\n"


@pytest.fixture
def file(separate, meeting):
    """Make the file that all work on; then the next twenty callers meet."""
    files = separate()
    files.write("/a.md", MARK)
    meeting.expect(CALLERS)
    return files


@pytest.fixture
def holds_all(file, meeting):
    def check(numbers=NUMBERS):
        assert meeting.met, "the callers did not overlap"
        lines = file.read("/a.md").text.splitlines(keepends=True)
        assert sorted(lines) == sorted([MARK, *map(line, numbers)])

    return check


def edit_by_deepagents(files, number):
    backend = WenchangBackend(files)

    def work():
        result = backend.edit("/a.md", MARK, line(number) + MARK)
        assert result.error is None, result.error

    return work


def append_by_deepagents(files, number):
    """An agent that writes the whole file: it reads, writes, and merges as the conflicts tell it."""
    backend = WenchangBackend(files)

    def work():
        text = backend.read("/a.md").file_data["content"]
        while error := backend.write("/a.md", text + line(number)).error:
            _, told, text = error.partition("Its current text:\n")
            assert told, error

    return work


def replace_by_anthropic(files, number):
    tool = WenchangMemoryTool(files)
    call = {"command": "str_replace", "path": "/memories/a.md"}

    def work():
        answer = tool.call({**call, "old_str": MARK, "new_str": line(number) + MARK})
        assert f"item {number}" in answer

    return work


def insert_by_anthropic(files, number):
    tool = WenchangMemoryTool(files)
    call = {"command": "insert", "path": "/memories/a.md", "insert_line": 0}

    def work():
        assert tool.call({**call, "insert_text": line(number)}).endswith("has been edited.")

    return work


@pytest.mark.parametrize(
    "make", [edit_by_deepagents, append_by_deepagents, replace_by_anthropic, insert_by_anthropic]
)
def test_of_twenty_threads_none_is_lost(separate, race, holds_all, make):
    race([make(separate(), number) for number in NUMBERS])
    holds_all()


def test_of_two_adapters_at_once_none_is_lost(separate, race, holds_all):
    makers = [edit_by_deepagents, append_by_deepagents, replace_by_anthropic, insert_by_anthropic]
    race([makers[number % len(makers)](separate(), number) for number in NUMBERS])
    holds_all()


def test_of_two_adapters_on_one_tree_none_is_lost(stores, race):
    files = stores.of("acme")
    files.write("/a.md", MARK)
    makers = [edit_by_deepagents, append_by_deepagents, replace_by_anthropic, insert_by_anthropic]
    race([makers[number % len(makers)](stores.of("acme"), number) for number in NUMBERS])
    lines = files.read("/a.md").text.splitlines(keepends=True)
    assert sorted(lines) == sorted([MARK, *map(line, NUMBERS)])


def in_one_loop(calls):
    """Await all calls at once, with a thread for each of those that deepagents puts into one."""

    async def use():
        with ThreadPoolExecutor(CALLERS) as threads:
            asyncio.get_running_loop().set_default_executor(threads)
            return await asyncio.gather(*(call() for call in calls))

    return asyncio.run(use())


def aedit_by_deepagents(files, number):
    backend = WenchangBackend(files)

    async def work():
        result = await backend.aedit("/a.md", MARK, line(number) + MARK)
        assert result.error is None, result.error

    return work


def ainsert_by_anthropic(files, number):
    tool = WenchangAsyncMemoryTool(files)
    call = {"command": "insert", "path": "/memories/a.md", "insert_line": 0}

    async def work():
        answer = await tool.call({**call, "insert_text": line(number)})
        assert answer.endswith("has been edited.")

    return work


@pytest.mark.parametrize(
    "makers",
    [
        [aedit_by_deepagents],
        [ainsert_by_anthropic],
        [aedit_by_deepagents, ainsert_by_anthropic],
    ],
    ids=["deepagents", "anthropic", "both"],
)
def test_of_twenty_tasks_none_is_lost(separate, holds_all, makers):
    in_one_loop([makers[number % len(makers)](separate(), number) for number in NUMBERS])
    holds_all()


def test_of_twenty_creators_one_wins_and_the_others_are_told(separate, race, meeting):
    separate().write("/other.md", "")
    meeting.expect(CALLERS)

    def create(number):
        files = separate()

        def by_deepagents():
            error = WenchangBackend(files).write("/a.md", line(number)).error
            return error and error.partition(" at version")[0]

        def by_anthropic():
            call = {"command": "create", "path": "/memories/a.md", "file_text": line(number)}
            try:
                WenchangMemoryTool(files).call(call)
            except ToolError as error:
                return error.content
            return None

        return by_anthropic if number % 2 else by_deepagents

    told = race([create(number) for number in NUMBERS])
    assert meeting.met
    assert told.count(None) == 1
    assert set(told) == {None, "/a.md is now", "Error: File /memories/a.md already exists"}
    assert separate().read("/a.md").text == line(told.index(None))


def test_of_twenty_renamers_of_one_folder_one_wins_and_no_file_is_lost(separate, race, meeting):
    for name in "abc":
        separate().write(f"/old/{name}.md", name)
    meeting.expect(CALLERS)

    def rename(number):
        tool = WenchangMemoryTool(separate())

        def work():
            call = {"command": "rename", "old_path": "/memories/old"}
            try:
                tool.call({**call, "new_path": f"/memories/new-{number}"})
            except ToolError as error:
                return error.content
            return None

        return work

    told = race([rename(number) for number in NUMBERS])
    assert meeting.met
    assert told.count(None) == 1
    assert set(told) == {None, "Error: The path /memories/old does not exist"}
    winner = told.index(None)
    assert [entry.path for entry in separate().glob("**").entries] == [
        f"/new-{winner}/{name}.md" for name in "abc"
    ]
