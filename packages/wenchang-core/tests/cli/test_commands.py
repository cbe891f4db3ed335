"""The command line as a user meets it: in a process of its own."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment whose configuration and data folders are empty and writable."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("WENCHANG_", "XDG_"))}
    return {**kept, "HOME": str(tmp_path / "home"), "LOGNAME": "alice"}


def run(arguments: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "wenchang", *arguments],
        env=env,
        capture_output=True,
        text=True,
        encoding="utf-8",
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )


@contextmanager
def serving(arguments: list[str], env: dict[str, str]) -> Iterator[str]:
    """Run `wenchang serve --http` on a free port; yield the URL it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "wenchang", "serve", "--http", "127.0.0.1:0", *arguments],
        env=env,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        match = re.search(r"http://\S+/mcp", line)
        assert match, line
        yield match[0]
    finally:
        process.terminate()
        process.communicate(timeout=30)


def post(url: str, **headers: str) -> int:
    """Send one MCP request; return the HTTP status."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    request = urllib.request.Request(
        url,
        data=json.dumps(message).encode(),
        headers={
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **headers,
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_version_names_the_packages_and_the_contract(home: dict[str, str]) -> None:
    result = run(["version"], home)
    assert result.returncode == 0
    assert "wenchang-core 0.1" in result.stdout
    assert "storage contract 1.0" in result.stdout


def test_backends_lists_what_core_brings(home: dict[str, str]) -> None:
    result = run(["backends"], home)
    assert result.returncode == 0
    assert "memory" in result.stdout
    assert "file" in result.stdout


def test_help_imports_neither_mcp_nor_any_sdk(home: dict[str, str]) -> None:
    code = (
        "import sys; from wenchang.cli.app import run; run(['--help']); "
        "heavy = {'mcp', 'sqlalchemy', 'boto3', 'botocore', 'google', 'azure', 'pytest', 'rich'}; "
        "sys.exit(sorted(heavy & {name.partition('.')[0] for name in sys.modules}) or 0)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], env=home, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert "serve" in result.stdout
    assert "backends" in result.stdout


def test_importing_the_package_loads_no_third_party_module() -> None:
    code = (
        "import sys; before = set(sys.modules); import wenchang; "
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}; "
        "sys.exit(sorted(new - set(sys.stdlib_module_names) - {'wenchang'}) or 0)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["serve", "--storage", ""], "--storage is empty"),
        (["serve", "--storage", "nonsense"], "URL"),
        (["serve", "--storage", "sqlit:///x"], "sqlite"),
        (["serve", "--config", "absent.toml"], "absent.toml"),
        (["serve", "--scope", "team"], "--scope"),
        (["serve", "--scope", "a=b", "--scope", "a=c"], "twice"),
        (["serve", "--http", "0.0.0.0:8765"], "loopback"),
        (["serve", "--http", "192.168.1.4:8765"], "loopback"),
        (["serve", "--http", "example.com:8765"], "loopback"),
        (["serve", "--http", "127.0.0.1"], "HOST:PORT"),
        (["serve", "--http", "127.0.0.1:99999"], "99999"),
        (["serve", "--tools", "notes"], "--tools"),
        (["serve", "--tools", "files", "--scope", "team=a"], "--scope user=ENTITY"),
        (["serve", "--tools", "both", "--scope", "team=a"], "--scope user=ENTITY"),
        (["serve", "--no-such-flag"], "--no-such-flag"),
        (["no-such-command"], "no-such-command"),
    ],
)
def test_a_wrong_call_ends_with_code_2_and_one_line_and_leaves_nothing(
    arguments: list[str], words: str, home: dict[str, str], tmp_path: Path
) -> None:
    result = run(arguments, home)
    assert result.returncode == 2, result.stderr
    assert words in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_port_in_use_is_told_and_leaves_nothing(home: dict[str, str], tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = run(["serve", "--http", f"127.0.0.1:{port}"], home)
    assert result.returncode == 2
    assert str(port) in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "setting",
    ['[server]\ntool_prefix = "é"', '[limits]\nscope_priority = ["a", "a"]'],
    ids=["tool_prefix", "scope_priority"],
)
def test_a_setting_that_the_server_refuses_leaves_nothing(
    home: dict[str, str], tmp_path: Path, setting: str
) -> None:
    config = tmp_path / "wenchang.toml"
    config.write_text(setting, encoding="utf-8")
    result = run(["serve", "--config", str(config), "--storage", f"file://{tmp_path}/made"], home)
    assert result.returncode == 2
    assert len(result.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == [config]


@pytest.mark.parametrize("url", ["file://{}", "sqlite:///{}"])
def test_a_folder_that_cannot_be_made_is_told(
    home: dict[str, str], tmp_path: Path, url: str
) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    address = tmp_path / "file" / "below" / "memory.db"
    result = run(["serve", "--storage", url.format(address)], home)
    assert result.returncode == 2
    assert len(result.stderr.strip().splitlines()) == 1
    assert str(tmp_path) not in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_server_answers_on_loopback_and_refuses_foreign_hosts_and_origins(
    home: dict[str, str],
) -> None:
    with serving(["--storage", "memory://"], home) as url:
        port = url.rpartition(":")[2].partition("/")[0]
        assert post(url) < 400 or post(url) == 400
        assert post(url, Host="evil.example") == 421
        assert post(url, Host=f"evil.example:{port}") == 421
        assert post(url, Origin="http://evil.example") == 403
        assert post(url, Origin=f"http://localhost:{port}") not in (403, 421)


async def _tools(arguments: list[str], env: dict[str, str]) -> tuple[list[str], str]:
    """Return the tools of a server over stdio, and its instructions."""
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "wenchang", "serve", *arguments], env=env
    )
    async with Client(server) as client:
        tools = (await client.list_tools()).tools
        return [tool.name for tool in tools], client.instructions or ""


@pytest.mark.parametrize(
    ("tools", "history", "memory", "files"),
    [("memory", 0, 7, 0), ("files", 0, 0, 10), ("files", 3, 0, 12), ("both", 3, 7, 12)],
)
def test_the_tools_that_are_asked_for_are_served(
    tools: str, history: int, memory: int, files: int, home: dict[str, str], tmp_path: Path
) -> None:
    config = tmp_path / "w.toml"
    config.write_text(f"[files]\nhistory = {history}\n", encoding="utf-8")
    arguments = ["--storage", "memory://", "--config", str(config), "--tools", tools]
    names, instructions = anyio.run(_tools, arguments, home)
    assert sum(name.startswith("file_") for name in names) == files
    assert len(names) == memory + files
    assert ("file_read" in instructions) == bool(files)
    assert ("get_memory_index" in instructions) == bool(memory)
