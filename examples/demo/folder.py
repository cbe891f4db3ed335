"""The part of the demo about the file tools: two agents build a folder, move it, and undo an edit."""

from __future__ import annotations

import asyncio

import transcript as say
from agents import Agent, Payload

from wenchang.files.accounts import FileAccounts
from wenchang.storage.contract import Storage

APPENDS = 8
HOME = "archive/2027/library-talk"
OUTLINE = """\
# Talk at the library, 11 March

1. Why the reading room stays open in the evening
2. What the survey says
3. Questions
"""


async def share_a_folder(ada: Agent, bo: Agent) -> list[str]:
    """Work on one folder at once; return the lines of its log that were acknowledged."""
    await asyncio.gather(
        ada.must("file_create", path="drafts/talk/outline.md", content=OUTLINE),
        bo.must("file_create", path="drafts/talk/sources/survey.csv", content="year,visits\n"),
        ada.must("file_create", path="drafts/talk/sources/Łódź 読書会.md", content="14 readers.\n"),
    )
    say.says("Ada", "and Bo lay out a folder of files, both at once.")
    lines = [
        f"{agent.name} checked source {number}.\n"
        for number in range(APPENDS)
        for agent in (ada, bo)
    ]
    await asyncio.gather(
        *(
            (ada if line.startswith("Ada") else bo).must(
                "file_append", path="drafts/talk/log.md", text=line
            )
            for line in lines
        )
    )
    say.says("Bo", f"and Ada append {len(lines)} lines to its log, all at once.")
    await move_it(ada)
    await undo_an_edit(ada, bo)
    return lines


async def move_it(ada: Agent) -> None:
    """Move the folder in one commit, and show where everything is now."""
    moved = await ada.must("file_move", **{"from": "drafts/talk", "to": HOME})
    say.says("Ada", f"file_move({moved['from']!r}, {moved['to']!r})")
    say.told(f"{moved['files']} files moved as one step; nobody ever sees half a folder:")
    listed = await ada.must("file_list", path=HOME, depth=2)
    for entry in listed["entries"]:
        say.told(_shown(entry))


async def undo_an_edit(ada: Agent, bo: Agent) -> None:
    """Let one agent edit by the version it read, and the other bring the earlier text back."""
    path = f"{HOME}/outline.md"
    (read,) = (await bo.must("file_read", path=path))["files"]
    edited = await bo.must(
        "file_edit",
        path=path,
        edits=[{"oldText": "2. What the survey says\n", "newText": ""}],
        version=read["version"],
    )
    say.says("Bo", "file_edit: drops the survey from the outline.")
    say.told(f"{read['version']} became {edited['version']}")
    history = (await ada.must("file_history", path=path))["versions"]
    before = next(state for state in history if not state["current"])
    restored = await ada.must("file_restore", path=path, version=before["version"])
    say.says("Ada", f"file_restore({path!r}, {before['version']!r}): the survey stays.")
    hits = await ada.must("file_search", text="survey", glob="**/outline.md")
    (line,) = hits["files"][0]["lines"]
    say.told(f"{restored['version']}, line {line['line']}: {line['text']}")


def check_folder(storage: Storage, entity: str, lines: list[str]) -> bool:
    """Read the files past the server; tell whether everything acknowledged is there once."""
    tree = FileAccounts(storage).tree(entity)
    log = tree.read_file(f"{HOME}/log.md")[1]
    wrong = [line for line in lines if log.count(line) != 1]
    undone = tree.read_file(f"{HOME}/outline.md")[1] == OUTLINE
    paths = [entry.path for entry in tree.snapshot().walk()]
    whole = len(paths) == 4 and all(path.startswith(f"{HOME}/") for path in paths)
    say.says(
        "check",
        f"{HOME}: {len(lines)} acknowledged, {len(wrong)} wrong; the edit is "
        f"{'undone' if undone else 'NOT UNDONE'}, the folder {'whole' if whole else 'BROKEN'}",
    )
    return not wrong and undone and whole


def _shown(entry: Payload) -> str:
    below = entry["path"].removeprefix(f"{HOME}/")
    indent = "  " * (1 + below.count("/"))
    if entry["kind"] == "folder":
        return f"{indent}{below}/"
    return f"{indent}{below}  ({entry['size']} bytes, {entry['version']})"
