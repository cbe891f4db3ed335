"""Both surfaces of the tools, direct and over MCP, behind one call that checks every payload.

Whatever a test does, each payload is validated against the advertised schemas, and neither a
payload, a text, a cursor nor a log line may hold an entity id.
"""

from __future__ import annotations

import base64
import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from jsonschema import Draft202012Validator
from mcp import Client

from wenchang.core import MemoryStore
from wenchang.identity import Identity, SandboxResolver, ScopeGrant
from wenchang.mcp import build_server
from wenchang.metadata import EPOCH, FileMetadata
from wenchang.paths import build_path
from wenchang.prompts import PromptSlots
from wenchang.schemas import tool_schemas
from wenchang.scope import ScopePolicy
from wenchang.storage.memory import InMemoryStorage
from wenchang.tools import bind_tools, render_error, render_result
from wenchang.transport import InProcessClient

SENTINEL = "zq-sentinel"
ENTITIES = {"user": f"{SENTINEL}-u-17", "team": f"{SENTINEL}-t-4", "office": f"{SENTINEL}-o-9"}
SCHEMAS = tool_schemas()


@dataclass
class Reply:
    """What a caller got, whichever way it asked."""

    payload: dict[str, Any]
    is_error: bool
    texts: list[str] = field(default_factory=list)


def check_reply(tool: str, reply: Reply) -> Reply:
    """Validate a payload and look for entity ids in all that the caller can see."""
    schema = SCHEMAS[tool].error if reply.is_error else SCHEMAS[tool].output
    problems = [error.message for error in Draft202012Validator(schema).iter_errors(reply.payload)]
    assert problems == [], reply.payload
    seen = json.dumps(reply.payload, ensure_ascii=False) + "".join(reply.texts)
    assert SENTINEL not in seen
    cursor = reply.payload.get("next_cursor")
    if cursor:
        assert SENTINEL.encode() not in base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    return reply


class DirectSurface:
    """Calls the methods and renders, as a framework without MCP does."""

    name = "direct"

    def __init__(self, world: World, **options: Any) -> None:
        self.world = world
        self.options = options

    def call(self, tool: str, **arguments: Any) -> Reply:
        world = self.world
        try:
            tools = bind_tools(
                world.client,
                world.resolver,
                world.credentials,
                world.policy,
                source=world.source,
                product=world.product,
                **self.options,
            )
            result = tools.tools()[tool](**arguments)
        except Exception as error:
            reply = Reply(render_error(error), is_error=True)
        else:
            reply = Reply(render_result(result), is_error=False)
        return check_reply(tool, reply)


class McpSurface:
    """Calls through the SDK's own client, connected in this process."""

    name = "mcp"

    def __init__(self, world: World, portal: Any, client: Client, prefix: str | None) -> None:
        self.world = world
        self.portal = portal
        self.client = client
        self.prefix = prefix

    def call(self, tool: str, **arguments: Any) -> Reply:
        return self.send(tool, arguments)

    def send(self, tool: str, arguments: dict[str, Any]) -> Reply:
        name = tool if self.prefix is None else f"{self.prefix}_{tool}"
        result = self.portal.call(self.client.call_tool, name, arguments)
        texts = [item.text for item in result.content]
        assert json.loads(texts[0]) == result.structured_content
        return check_reply(tool, Reply(result.structured_content, bool(result.is_error), texts))


@dataclass
class World:
    """One store and everything that tools are bound with; a test changes what it needs."""

    storage: InMemoryStorage
    store: MemoryStore
    client: Any
    resolver: Any
    policy: ScopePolicy
    credentials: Any = "token"
    source: str = "tests"
    product: str | None = None
    slots: PromptSlots = field(
        default_factory=lambda: PromptSlots(
            purpose="Notes that a team and its members keep.",
            scope_guidance="user is private; team is shared.",
            seed_areas="preferences, people, projects",
        )
    )

    def path(self, scope: str, area: str, name: str) -> str:
        return build_path(scope, ENTITIES[scope], area, name)

    def seed(
        self,
        scope: str,
        area: str,
        name: str,
        content: str = "- [stated] One.\n",
        *,
        description: str = "A file.",
        aliases: tuple[str, ...] = (),
    ) -> str:
        """Write a file as an operator does and return its version."""
        metadata = FileMetadata(description, aliases, frozenset(), EPOCH)
        path = self.path(scope, area, name)
        return self.store.write_file(path, content, metadata, None, source="seed").version

    def keys(self) -> list[str]:
        return [entry.key for entry in self.storage.list_page("", None, 1000)]

    def server(self, **options: Any):
        return build_server(
            slots=self.slots,
            client=self.client,
            resolver=self.resolver,
            policy=self.policy,
            credentials_from_context=lambda _context: self.credentials,
            source=self.source,
            product=self.product,
            **options,
        )

    @contextmanager
    def connect(self, server: Any = None, *, mode: str = "auto", prefix: str | None = None):
        """Open a real client on a server, by default one of this world's own."""
        server = self.server(tool_prefix=prefix) if server is None else server
        with (
            start_blocking_portal() as portal,
            portal.wrap_async_context_manager(Client(server, mode=mode)) as client,
        ):
            yield McpSurface(self, portal, client, prefix)


class Ticking:
    """A clock that is one second later at each reading."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


def make_world(**options: Any) -> World:
    storage = InMemoryStorage()
    store = MemoryStore(storage, clock=Ticking(), **options)
    identity = Identity(
        {
            "user": ScopeGrant(ENTITIES["user"], "owner"),
            "team": ScopeGrant(ENTITIES["team"], "member"),
            "office": ScopeGrant(ENTITIES["office"], "member"),
        }
    )
    return World(
        storage=storage,
        store=store,
        client=InProcessClient(store),
        resolver=SandboxResolver(identity),
        policy=ScopePolicy({"office": frozenset({"admin", "owner"})}),
    )


@pytest.fixture
def world():
    return make_world()


@pytest.fixture
def make():
    """Return the maker of worlds, for tests with a store of their own."""
    return make_world


@pytest.fixture(params=["direct", "mcp"])
def surface(request, world):
    """Return each surface in turn over the same world."""
    if request.param == "direct":
        yield DirectSurface(world)
    else:
        with world.connect() as connected:
            yield connected


@pytest.fixture
def direct(world):
    return DirectSurface(world)


@pytest.fixture
def mcp_surface(world):
    with world.connect() as connected:
        yield connected


@pytest.fixture
def make_direct():
    return DirectSurface


@pytest.fixture
def validate():
    """Return the check that every payload goes through."""
    return check_reply


@pytest.fixture
def reply_type():
    return Reply


@pytest.fixture(autouse=True)
def no_entity_in_the_log(caplog):
    """No message that any logger wrote during the test names an entity."""
    yield
    messages = [record.getMessage() for record in caplog.get_records("call")]
    assert [message for message in messages if SENTINEL in message] == []
