"""`TransportConformance`: the client in this process passes, and wrong ones fail with a text that names why."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import wenchang_conformance.transport
from wenchang.core import MemoryStore
from wenchang.storage.memory import InMemoryStorage
from wenchang.testing import TransportConformance
from wenchang.transport import InProcessClient, TransportClient


class Ticking:
    """A clock whose every reading is later than the last."""

    def __init__(self, step: timedelta = timedelta(microseconds=1)) -> None:
        self._now = datetime(2024, 1, 1, tzinfo=UTC)
        self._step = step

    def __call__(self) -> datetime:
        self._now += self._step
        return self._now


def new_client(**options: object) -> InProcessClient:
    settings = {
        "clock": Ticking(),
        "max_file_bytes": 256,
        "index_max_bytes": 4096,
        "scope_priority": ("user", "organization"),
        "list_page_size": 2,
    } | options
    return InProcessClient(MemoryStore(InMemoryStorage(), **settings))


class Given(TransportConformance):
    @pytest.fixture
    def client(self) -> TransportClient:
        return new_client()

    @pytest.fixture
    def source(self) -> str:
        return "conformance"

    @pytest.fixture
    def scope_map(self) -> Mapping[str, str]:
        return {"user": "u-lanting", "organization": "o-orchid-press"}

    @pytest.fixture
    def max_file_bytes(self) -> int:
        return 256

    @pytest.fixture
    def index_max_bytes(self) -> int:
        return 4096

    @pytest.fixture
    def scope_priority(self) -> tuple[str, ...]:
        return ("user", "organization")

    @pytest.fixture
    def list_page_size(self) -> int:
        return 2


class TestInProcessClient(Given):
    pass


class TestSmallestLimits(Given):
    """The least that the fixtures permit, and the case of the file cap."""

    @pytest.fixture
    def client(self) -> TransportClient:
        return new_client(
            max_file_bytes=64,
            index_max_bytes=1024,
            list_page_size=1,
            scope_priority=(),
            max_files_per_entity=32,
        )

    @pytest.fixture
    def max_file_bytes(self) -> int:
        return 64

    @pytest.fixture
    def index_max_bytes(self) -> int:
        return 1024

    @pytest.fixture
    def list_page_size(self) -> int:
        return 1

    @pytest.fixture
    def scope_priority(self) -> tuple[str, ...]:
        return ()

    @pytest.fixture
    def max_files_per_entity(self) -> int:
        return 32


pytest_plugins = ["pytester"]

PROJECT = Path(__file__).read_text(encoding="utf-8").partition("class TestInProcessClient")[0]


def fails(pytester, changes: str, only: str, phrase: str) -> None:
    """Run one case with a changed client or fixture; it fails with the phrase."""
    pytester.makepyfile(PROJECT + "\nclass TestWrong(Given):\n" + changes)
    result = pytester.runpytest_inprocess("-pno:cacheprovider", f"-k={only}")
    assert result.parseoutcomes().get("passed", 0) == 0
    result.stdout.fnmatch_lines([f"*TestWrong: *{phrase}*"])


def client(body: str) -> str:
    return f"    @pytest.fixture\n    def client(self):\n        {body}\n"


def fixture(name: str, value: str) -> str:
    return f"    @pytest.fixture\n    def {name}(self):\n        return {value}\n"


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("max_file_bytes", "63", "at least 64"),
        ("index_max_bytes", "1023", "at least 1024"),
        ("list_page_size", "True", "at least 1"),
        ("max_files_per_entity", "31", "at least 32"),
        ("scope_map", "{'user': 'u'}", "at least two scopes"),
        ("source", "''", "not empty"),
        ("scope_priority", "['user']", "a tuple of str"),
    ],
)
def test_mem_104_a_fixture_out_of_range_fails_and_is_named(pytester, name, value, wanted):
    fails(pytester, fixture(name, value), "a_written_file_reads_back", f"fixture {name}: *{wanted}")


def test_mem_105_stamps_that_do_not_rise_fail_and_are_named(pytester):
    still = client("return new_client(clock=Ticking(timedelta()))")
    fails(pytester, still, "a_returned_token_is_accepted", "last_updated did not rise")


def test_a_client_that_is_not_fresh_fails(pytester):
    used = client("return USED") + "\nUSED = new_client()\n"
    pytester.makepyfile(PROJECT + "\nclass TestWrong(Given):\n" + used)
    result = pytester.runpytest_inprocess("-pno:cacheprovider", "-k=round_trips")
    result.stdout.fnmatch_lines(["*TestWrong: client: must be fresh and empty*"])


def test_a_client_that_loses_aliases_fails(pytester):
    wrong = client(
        "found = new_client(); write = found.write_file; "
        "found.write_file = lambda p, c, m, e, *, source: write("
        "p, c, dataclasses.replace(m, aliases=()), e, source=source); return found"
    )
    fails(pytester, wrong, "unicode_round_trips", "read_file: aliases is ()")


def test_tokens_are_handed_back_and_never_compared():
    for file in Path(wenchang_conformance.transport.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare):
                compared = [ast.unparse(side) for side in (node.left, *node.comparators)]
                assert not [side for side in compared if side.endswith(".version")], file.name


def test_there_are_fifty_five_cases():
    assert dataclasses.is_dataclass(wenchang_conformance.transport.harness.Harness)
    assert sum(name.startswith("test_") for name in dir(TransportConformance)) == 55
