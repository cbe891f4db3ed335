"""The demo: two agents share one memory and one folder of files, and no acknowledged line is lost.

Run it with `python3 dev.py demo`. It starts the real server, connects two real MCP clients, and checks
at the end, by reading the storage past the server, that everything acknowledged is there exactly once.
The exit code is 0 only if it is.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import shutil
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import transcript as say
from agents import Agent, Ledger, Payload
from folder import check_folder, share_a_folder
from mcp import Client
from notes import Note, read_notes
from platformdirs import user_data_path
from server import CONFIGURATION, http_server, stdio_server

from wenchang.core import MemoryStore
from wenchang.metadata import FileMetadata
from wenchang.paths import build_path
from wenchang.storage import open_storage

# Names of their own for each run, so that a storage which already holds a demo is no obstacle.
_RUN = secrets.token_hex(3)
ENTITIES = {"user": f"demo-user-{_RUN}", "team": f"demo-team-{_RUN}"}
LEDGER_FILE = ("team", "services", "ledger")
INCIDENT_FILE = ("team", "incidents", "2026-11-30-demo")
ROUNDS = 12


def main() -> int:
    """Run the demo; return 0 if every promise was kept."""
    parser = argparse.ArgumentParser(description="Two agents share one memory.")
    parser.add_argument("--storage", help="run on this storage URL instead of a fresh SQLite file")
    arguments = parser.parse_args()
    began = time.monotonic()
    folder = user_data_path("wenchang", appauthor=False) / "demo"
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True, mode=0o700)
    config = folder / "wenchang.toml"
    config.write_text(CONFIGURATION.format(**ENTITIES), encoding="utf-8")
    storage = arguments.storage or f"sqlite:///{folder / 'memory.db'}"
    ledger = Ledger()
    notes = read_notes()

    say.heading("Curated notes: people fill the system area, past the tools")
    seed_curated(storage, [note for note in notes if note.area == "system"])
    say.heading("One server, two agents, streamable HTTP")
    with http_server(storage, config) as url:
        say.says("server", f"listens at {url}")
        log = asyncio.run(over_http(url, [n for n in notes if n.area != "system"], ledger))
    say.heading("The same storage again: one stdio server for each agent")
    asyncio.run(over_stdio(storage, config, ledger))
    say.heading("The check: the storage is read past the servers")
    kept = check(storage, ledger, log)
    report(storage, folder, ledger, len(log), time.monotonic() - began, kept=kept)
    return 0 if kept else 1


def seed_curated(storage: str, notes: list[Note]) -> None:
    """Write the curated notes as an operator does: through the core store."""
    backend = open_storage(storage)
    store = MemoryStore(backend)
    for note in notes:
        store.write_file(
            build_path(note.scope, ENTITIES[note.scope], note.area, note.name),
            note.content,
            FileMetadata(
                description=note.description,
                aliases=note.aliases,
                sources=frozenset(),
                # The store stamps the time of the write itself.
                last_updated=datetime.now(UTC),
            ),
            None,
            source="curators",
        )
        say.says("server", f"{note.scope}/{note.area}/{note.name}: {note.description}")
    close(backend)


async def over_http(url: str, notes: list[Note], ledger: Ledger) -> list[str]:
    """Seed the memory through the tools, let both agents at it; then they share a folder."""
    async with Client(url) as first, Client(url) as second:
        ada, bo = Agent("Ada", first, ledger, 1), Agent("Bo", second, ledger, 2)
        # Each agent files every other note, both at once.
        await asyncio.gather(file_notes(ada, notes[::2]), file_notes(bo, notes[1::2]))
        say.says("Ada", f"and Bo file {len(notes)} notes at the same time, in eight languages.")
        await look_around(ada)
        await race_on_one_file(ada, bo)
        await edit_side_by_side(ada, bo)
        await merge_whole_files(ada, bo)
        await meet_the_limits(ada, bo)
        await clean_up(ada, bo)
        say.heading("The file tools: a folder is built, moved, and an edit undone")
        return await share_a_folder(ada, bo)


async def over_stdio(storage: str, config: Path, ledger: Ledger) -> None:
    """Let two servers in two processes work on the same file."""
    async with (
        Client(stdio_server(storage, config)) as first,
        Client(stdio_server(storage, config)) as second,
    ):
        ada, bo = Agent("Ada", first, ledger, 3), Agent("Bo", second, ledger, 4)
        scope, area, name = LEDGER_FILE
        conflicts = await asyncio.gather(
            *(
                agent.append(scope, area, name, agent.thought("two processes", number))
                for number in range(ROUNDS)
                for agent in (ada, bo)
            )
        )
        say.says("Ada", f"and Bo append {2 * ROUNDS} lines to one file from two processes.")
        say.told(
            f"{sum(conflicts)} conflicts, each merged in the same turn; nobody waited for a lock"
        )


async def file_notes(agent: Agent, notes: list[Note]) -> None:
    """Create files, one call each."""
    for note in notes:
        await agent.must(
            "write_file",
            scope=note.scope,
            area=note.area,
            name=note.name,
            content=note.content,
            description=note.description,
            aliases=list(note.aliases),
            expected_version=None,
        )


async def look_around(agent: Agent) -> None:
    """Load the index, meet its cap, and page the area that was cut."""
    index = await agent.must("get_memory_index")
    say.says(agent.name, "get_memory_index()")
    say.told(f"{len(index['entries'])} entries fit the budget; the curated ones lead:")
    for entry in index["entries"][:4]:
        aliases = ", ".join(entry["aliases"]) or "no aliases"
        say.told(f"  {entry['scope']}/{entry['area']}/{entry['name']}  ({aliases})")
    for row in index["capped"][:3]:
        say.told(f"  … {row['omitted']} more in {row['scope']}/{row['area']}")
    if not index["capped"]:
        return
    row = max(index["capped"], key=lambda capped: int(capped["omitted"]))
    names: list[str] = []
    cursor = None
    while True:
        page = await agent.must("list_prefix", scope=row["scope"], area=row["area"], cursor=cursor)
        names += [entry["name"] for entry in page["entries"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    say.says(agent.name, f"list_prefix({row['scope']!r}, {row['area']!r}), to the last page")
    say.told(f"{len(names)} files: {', '.join(names)}")


async def race_on_one_file(ada: Agent, bo: Agent) -> None:
    """Append to one file from both agents at once."""
    scope, area, name = LEDGER_FILE
    conflicts = await asyncio.gather(
        *(
            agent.append(scope, area, name, agent.thought("billing", number))
            for number in range(ROUNDS)
            for agent in (ada, bo)
        )
    )
    say.says("Ada", f"and Bo append {2 * ROUNDS} lines to {scope}/{area}/{name}, all at once.")
    say.told(f"{sum(conflicts)} conflicts came back with the current version and were merged")


async def edit_side_by_side(ada: Agent, bo: Agent) -> None:
    """Change two facts of one file at the same version."""
    scope, area, name = ("user", "projects", "kitchen-renovation")
    await asyncio.gather(
        ada.replace_fact(scope, area, name, "he starts on 18 January", "he starts on 25 January"),
        bo.replace_fact(scope, area, name, "14,000 euros", "15,200 euros"),
    )
    content = (await ada.must("read_file", scope=scope, area=area, name=name))["content"]
    say.says("Ada", "changes the electrician's date while Bo changes the budget.")
    for line in content.splitlines()[:2]:
        say.told(line)


async def merge_whole_files(ada: Agent, bo: Agent) -> None:
    """Rewrite one file from both agents, each from the version that both read."""
    scope, area, name = INCIDENT_FILE
    created = await ada.must(
        "write_file",
        scope=scope,
        area=area,
        name=name,
        content="- [observed] T0 was 10:02.\n",
        description="What happened during the demo",
        aliases=["demo day"],
        expected_version=None,
    )
    await asyncio.gather(
        ada.rewrite(scope, area, name, "- [stated] Ada drained the queue.", created["version"]),
        bo.rewrite(scope, area, name, "- [stated] Bo informed the clients.", created["version"]),
    )
    merged = await bo.must("read_file", scope=scope, area=area, name=name)
    say.says("Bo", "and Ada both rewrite an incident note from the same version.")
    for line in merged["content"].splitlines():
        say.told(line)


async def meet_the_limits(ada: Agent, bo: Agent) -> None:
    """Be refused twice, with words that say what to do."""
    refused = await ada.call(
        "write_file",
        scope="team",
        area="system",
        name="house-rules",
        content="- [stated] No rules.\n",
        description="Rules",
        aliases=[],
        expected_version=None,
    )
    expect(refused, "RestrictedScopeError")
    say.says("Ada", "tries to rewrite the curated house rules.")
    say.told(f"{refused['error']}: {refused['message']}")
    long_text = "- [observed] A very long story.\n" * 200
    refused = await bo.call(
        "write_file",
        scope="user",
        area="projects",
        name="long-story",
        content=long_text,
        description="A long story",
        aliases=[],
        expected_version=None,
    )
    expect(refused, "OversizeWriteError")
    say.says("Bo", f"writes {len(long_text):,} bytes into one file.")
    say.told(f"{refused['error']}: {refused['message']}")
    await bo.must(
        "write_file",
        scope="user",
        area="projects",
        name="long-story",
        content="- [observed] A story, told briefly.\n",
        description="A short story",
        aliases=["long story"],
        expected_version=None,
    )
    say.says("Bo", "tells it briefly, and is heard.")


async def clean_up(ada: Agent, bo: Agent) -> None:
    """Delete a file that both know; the second is told that nothing is left to do."""
    where = {"scope": "user", "area": "projects", "name": "long-story"}
    version = (await ada.must("read_file", **where))["version"]
    await ada.must("delete_file", **where, expected_version=version)
    answer = await bo.call("delete_file", **where, expected_version=version)
    expect(answer, "NotFoundError")
    say.says("Ada", "deletes the story. Bo does too, a moment later.")
    say.told(f"{answer['error']}: {answer['message']}")


def expect(payload: Payload, error: str) -> None:
    """Stop the demo unless the payload is the error that the step is about."""
    if payload.get("error") != error:
        msg = f"expected {error}, got {payload}"
        raise SystemExit(msg)


def check(storage: str, ledger: Ledger, log: list[str]) -> bool:
    """Read every file that the agents were promised lines in; count each line."""
    backend = open_storage(storage)
    store = MemoryStore(backend)
    kept = True
    for (scope, area, name), promised in sorted(ledger.promised.items()):
        content = store.read_file(build_path(scope, ENTITIES[scope], area, name)).content
        wrong = [text for text in promised if content.count(text) != 1]
        kept = kept and not wrong
        say.says(
            "check", f"{scope}/{area}/{name}: {len(promised)} acknowledged, {len(wrong)} wrong"
        )
    kept = check_folder(backend, ENTITIES["user"], log) and kept
    close(backend)
    return kept


def close(backend: object) -> None:
    """Close a storage that has something to close."""
    closing = getattr(backend, "close", None)
    if closing is not None:
        closing()


def report(
    storage: str, folder: Path, ledger: Ledger, logged: int, seconds: float, *, kept: bool
) -> None:
    """Say how it went, where the data lies, and how to connect a host."""
    events = ledger.events
    promised = logged + sum(len(lines) for lines in ledger.promised.values())
    say.verdict(
        f"{promised} acknowledged lines, {events['VersionConflictError']} conflicts merged, "
        f"{'none lost, none doubled' if kept else 'SOME LOST OR DOUBLED'} ({seconds:.1f} s).",
        good=kept,
    )
    say.plain(f"\nThe demo's memory lies in {folder}\n")
    entry = {"command": sys.executable, "args": ["-m", "wenchang", "serve", "--tools", "both"]}
    say.plain("To give your own agents memory and files, add this to your MCP host:\n")
    say.plain("  Claude Desktop, Cursor and others (mcpServers in their JSON configuration)")
    say.plain(json.dumps({"mcpServers": {"wenchang": entry}}, indent=2, ensure_ascii=False))
    say.plain("\n  VS Code (.vscode/mcp.json)")
    say.plain(json.dumps({"servers": {"wenchang": {"type": "stdio", **entry}}}, indent=2))
    say.plain("\n  Claude Code")
    say.plain(f"claude mcp add wenchang -- {sys.executable} -m wenchang serve --tools both")
    say.plain("\nTo see this demo's memory instead, add these arguments:")
    scopes = f"--scope user={ENTITIES['user']} --scope team={ENTITIES['team']}:member"
    say.plain(f"--storage {storage} {scopes}")


if __name__ == "__main__":
    sys.exit(main())
