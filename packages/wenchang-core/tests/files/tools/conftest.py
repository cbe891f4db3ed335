"""The file tools of one account, on every storage, behind calls that check every answer.

Whatever a test does, each answer is validated against the advertised schemas and the bound on its
length, and a refusal must have changed nothing.

Every test with `files` runs in memory, in a folder and in SQLite. A test marked `servers` runs on each
server too, in sizes `deep` all do: the mark is for what a storage could do to the tree, namely
races, content and names byte by byte, many objects, and one success of each tool.
What an argument is refused for is decided before any storage is asked. `WENCHANG_TEST_FILES_URL` adds a
storage of your own, by its URL.
"""

from __future__ import annotations

import os
import secrets
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from wenchang.files._answers import json_chars
from wenchang.files.accounts import FileAccounts
from wenchang.files.schemas import file_tool_schemas
from wenchang.files.settings import FileSettings
from wenchang.files.tools import FileTools, render_error
from wenchang.identity import Identity, ScopeGrant
from wenchang.scope import ScopePolicy
from wenchang.storage import open_storage
from wenchang.storage.memory import InMemoryStorage

URL_VARIABLE = "WENCHANG_TEST_FILES_URL"
SCHEMAS = file_tool_schemas(history=True)
VALIDATORS = {
    (name, part): Draft202012Validator(getattr(schema, part))
    for name, schema in SCHEMAS.items()
    for part in ("input", "output", "error")
}

DEEP = os.environ.get("WENCHANG_SIZES") == "deep"
STORAGES = ["memory", "file"]
if find_spec("wenchang_sql") is not None:
    STORAGES.append("sqlite")
if URL_VARIABLE in os.environ:
    STORAGES.append("url")


def load_servers() -> Any:
    """Load the module that stands beside this one."""
    spec = spec_from_file_location("file_tools_servers", Path(__file__).with_name("servers.py"))
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


servers = load_servers()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test on the storages that it is for."""
    if "tree_storage" in metafunc.fixturenames:
        everywhere = DEEP or metafunc.definition.get_closest_marker("servers")
        kinds = [*STORAGES, *servers.SERVERS] if everywhere else STORAGES
        metafunc.parametrize("tree_storage", kinds, indirect=True)


class Clock:
    """A clock that a test moves; each reading is a millisecond later."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.moment += timedelta(milliseconds=1)
        return self.moment


class Files:
    """The file tools of one account. A trailing `_` of an argument's name is dropped: `from_`."""

    def __init__(
        self,
        storage: Any,
        entity: str = "ada",
        settings: FileSettings | None = None,
        *,
        role: str = "owner",
        roles: ScopePolicy | None = None,
        on_call: Any = None,
        **options: Any,
    ) -> None:
        self.storage = storage
        self.entity = entity
        self.settings = settings or FileSettings()
        self.options = {"clock": Clock(), **options}
        self.accounts = FileAccounts(storage, self.settings, **self.options)
        self.tools = FileTools(
            self.accounts,
            Identity({self.settings.scope: ScopeGrant(entity, role)}),
            roles or ScopePolicy(),
            source="tests",
            on_call=on_call,
        )

    @property
    def tree(self):
        return self.accounts.tree(self.entity)

    def again(self, **changes: Any) -> Files:
        """Return other tools on the same storage: `entity`, `role`, … or fields of the settings."""
        settings = self.settings
        limits = {key: changes.pop(key) for key in list(changes) if hasattr(settings.limits, key)}
        fields = {key: changes.pop(key) for key in list(changes) if hasattr(settings, key)}
        settings = replace(settings, limits=replace(settings.limits, **limits), **fields)
        entity = changes.pop("entity", self.entity)
        return Files(self.storage, entity, settings, **{**self.options, **changes})

    def answer(self, tool: str, **arguments: Any):
        """Return text and payload of a call that succeeds."""
        answer = self.tools.call(tool, {key.removesuffix("_"): v for key, v in arguments.items()})
        problems = [
            error.message for error in VALIDATORS[tool, "output"].iter_errors(answer.payload)
        ]
        assert problems == [], answer.payload
        assert len(answer.text) <= self.settings.max_answer_chars
        assert json_chars(answer.payload) <= self.settings.max_answer_chars
        return answer

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the payload of a call that succeeds."""
        return self.answer(tool, **arguments).payload

    def refuse(self, code: str, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the payload of a call that is refused with `code` and changes nothing."""
        before = self.tree.snapshot().version
        with pytest.raises(Exception) as caught:
            self.tools.call(tool, {key.removesuffix("_"): v for key, v in arguments.items()})
        payload = render_error(caught.value, max_chars=self.settings.max_answer_chars)
        assert payload["code"] == code, payload
        problems = [error.message for error in VALIDATORS[tool, "error"].iter_errors(payload)]
        assert problems == [], payload
        assert json_chars(payload) <= self.settings.max_answer_chars
        assert self.tree.snapshot().version == before
        return payload

    def refuse_argument(self, argument: str, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the payload of a call that is refused for one argument."""
        payload = self.refuse("INVALID_ARGUMENT", tool, **arguments)
        assert payload["argument"] == argument, payload
        return payload

    def make(self, contents: dict[str, str]) -> None:
        """Create files, many at once."""
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda item: self.tree.create(*item), contents.items()))

    def text(self, path: str) -> str:
        """Return the content of a file, past the tools."""
        return self.tree.read_file(path)[1]

    def entry(self, path: str):
        """Return what the tree knows of a path."""
        return self.tree.snapshot().lookup(path)

    def version(self, path: str) -> str:
        return self.entry(path).version

    def paths(self) -> list[str]:
        return [entry.path for entry in self.tree.snapshot().walk()]

    def pages(self, tool: str, **arguments: Any) -> list[dict[str, Any]]:
        """Return every page of a query."""
        pages = [self.call(tool, **arguments)]
        while "cursor" in pages[-1]:
            pages.append(self.call(tool, **arguments, cursor=pages[-1]["cursor"]))
            assert len(pages) < 2000
        return pages

    def listed(self, **arguments: Any) -> list[str]:
        """Return the paths of a listing, folders with a `/`."""
        return [
            entry["path"] + ("/" if entry["kind"] == "folder" else "")
            for page in self.pages("file_list", **arguments)
            for entry in page["entries"]
        ]

    def found(self, pattern: str, **arguments: Any) -> list[str]:
        """Return the paths that a pattern finds."""
        pages = self.pages("file_find", pattern=pattern, **arguments)
        return [row["path"] for page in pages for row in page["files"]]

    def hits(self, text: str, **arguments: Any) -> list[tuple[str, int]]:
        """Return path and line of each match of a search."""
        return [
            (row["path"], line["line"])
            for page in self.pages("file_search", text=text, **arguments)
            for row in page["files"]
            for line in row["lines"]
            if line["match"]
        ]


@pytest.fixture
def tree_storage(request, tmp_path):
    """Yield an empty storage, one for each kind that the test runs on."""
    if request.param == "memory":
        yield InMemoryStorage()
        return
    with ExitStack() as stack:
        if request.param in servers.SERVERS:
            place = stack.enter_context(servers.place_on(request.param))
        else:
            place = {
                "file": f"file://{tmp_path / 'store'}",
                "sqlite": f"sqlite:///{tmp_path / 'files.db'}",
                "url": os.environ.get(URL_VARIABLE, ""),
            }[request.param]
        storage = open_storage(place)
        stack.callback(getattr(storage, "close", lambda: None))
        yield storage


@pytest.fixture
def files(tree_storage):
    """The tools of a fresh account, on each storage."""
    return Files(tree_storage, f"ada-{secrets.token_hex(6)}")


@pytest.fixture
def local():
    """The tools of a fresh account in memory, for what does not depend on the storage."""
    return Files(InMemoryStorage())


@pytest.fixture(scope="session")
def make_files():
    return Files


@pytest.fixture(scope="session")
def schemas():
    return SCHEMAS


@pytest.fixture(scope="session")
def validators():
    return VALIDATORS


@pytest.fixture(scope="module")
def many():
    """Return an account with 2,005 files in a folder, for the bounds on what a page examines."""
    world = Files(InMemoryStorage())
    with ThreadPoolExecutor(64) as pool:
        list(
            pool.map(
                lambda number: world.tree.create(f"many/f{number:04}.txt", f"needle {number}\n"),
                range(2005),
            )
        )
    return world
