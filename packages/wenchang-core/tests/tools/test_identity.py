"""Who calls: binding, resolvers that misbehave, and scopes that a policy misspells."""

from __future__ import annotations

import functools
import logging

import pytest

from wenchang.errors import ResolverFailureError
from wenchang.identity import Identity, ResolutionFailure, SandboxResolver, ScopeGrant
from wenchang.mcp import build_server, register_memory_tools
from wenchang.mcp._sdk import MCPServer, registered_resources, registered_tools
from wenchang.scope import ScopePolicy
from wenchang.tools import bind_tools, render_error
from wenchang.tools._known_scopes import RESOLUTIONS_WATCHED, ScopeWatch

IDENTITY = Identity({"user": ScopeGrant("u", "owner")})
TEA = {"scope": "user", "area": "prefs", "name": "tea"}


class Coroutine:
    async def resolve(self, credentials):
        return IDENTITY


class AsyncGenerator:
    async def resolve(self, credentials):
        yield IDENTITY


class AsyncStatic:
    @staticmethod
    async def resolve(credentials):
        return IDENTITY


class Partial:
    def __init__(self):
        async def resolve(kind, credentials):
            return IDENTITY

        self.resolve = functools.partial(resolve, "token")


class Callable:
    class _Resolve:
        async def __call__(self, credentials):
            return IDENTITY

    resolve = _Resolve()


ASYNC = [Coroutine, AsyncGenerator, AsyncStatic, Partial, Callable]


class Counting:
    def __init__(self, identity=IDENTITY):
        self.seen = []
        self.identity = identity

    def resolve(self, credentials):
        self.seen.append(credentials)
        return self.identity


def settings(world, **changes):
    return {
        "client": world.client,
        "resolver": world.resolver,
        "policy": world.policy,
        "credentials_from_context": lambda _context: "token",
        "source": "s",
        "slots": world.slots,
    } | changes


@pytest.mark.parametrize("form", ASYNC)
def test_mem_082_an_async_resolver_is_refused_by_bind_tools_before_it_runs(world, form):
    with pytest.raises(TypeError) as caught:
        bind_tools(world.client, form(), "token", world.policy, source="s")

    assert str(caught.value) == "resolver.resolve must be a plain method, not async"


@pytest.mark.parametrize("form", ASYNC)
def test_mem_082_an_async_resolver_is_refused_by_build_server(world, form):
    with pytest.raises(TypeError) as caught:
        build_server(**settings(world, resolver=form()))

    assert str(caught.value) == "resolver.resolve must be a plain method, not async"


@pytest.mark.parametrize("form", ASYNC)
def test_mem_082_an_async_resolver_registers_nothing(world, form):
    server = MCPServer("theirs")

    with pytest.raises(TypeError) as caught:
        register_memory_tools(server, **settings(world, resolver=form()))

    assert str(caught.value) == "resolver.resolve must be a plain method, not async"
    assert registered_tools(server) == set()
    assert registered_resources(server) == set()


def test_mem_081_a_resolver_that_raises_shows_types_only(world, surface):
    class Raises:
        def resolve(self, credentials):
            raise LookupError(f"no {credentials}")

    world.resolver, world.credentials = Raises(), "hunter2"
    with world.connect() as connected:
        caller = connected if surface.name == "mcp" else surface
        payload = caller.call("read_file", **TEA).payload

    assert payload["error"] == "ResolverFailureError"
    assert "LookupError" in payload["message"]
    assert "hunter2" not in str(payload)


def test_mem_081_another_type_is_a_failure_that_names_it(world, surface):
    world.resolver = Counting({"user": "u"})
    with world.connect() as connected:
        caller = connected if surface.name == "mcp" else surface
        payload = caller.call("read_file", **TEA).payload

    assert payload["error"] == "ResolverFailureError"
    assert "dict" in payload["message"]


def test_mem_081_the_detail_of_a_refusal_is_shown(world, surface):
    world.resolver = Counting(ResolutionFailure("the invitation has expired"))
    with world.connect() as connected:
        caller = connected if surface.name == "mcp" else surface
        payload = caller.call("read_file", **TEA).payload

    assert "the invitation has expired" in payload["message"]


def test_mem_083_a_coroutine_from_a_plain_method_is_closed_and_reported(world, surface):
    class Sneaky:
        def resolve(self, credentials):
            async def answer():
                return IDENTITY

            return answer()

    world.resolver = Sneaky()
    with world.connect() as connected:
        caller = connected if surface.name == "mcp" else surface
        for _ in range(2):
            payload = caller.call("read_file", **TEA).payload
            assert payload["error"] == "ResolverFailureError"


def test_mem_084_the_sandbox_resolver_gives_its_identity_for_anything(world):
    for credentials in (None, "x", object()):
        tools = bind_tools(
            world.client, SandboxResolver(IDENTITY), credentials, world.policy, source="s"
        )
        assert tools.identity == IDENTITY


def test_mem_062_bind_tools_resolves_once(world):
    resolver = Counting()

    tools = bind_tools(world.client, resolver, "token", world.policy, source="s")
    for _ in range(3):
        tools.get_memory_index()

    assert resolver.seen == ["token"]
    assert "token" not in vars(tools).values()


def test_mem_062_over_mcp_the_resolver_runs_at_each_call(world):
    world.resolver = Counting()
    with world.connect() as surface:
        surface.call("get_memory_index")
        surface.call("read_file", **TEA)
        surface.send("read_file", {"bogus": 1})

    assert world.resolver.seen == ["token"] * 3


def test_mem_062_the_identity_is_never_shared_between_calls(world):
    first = Identity({"user": ScopeGrant("u-one", "owner")})
    second = Identity({"team": ScopeGrant("t-two", "owner")})
    world.resolver = Counting(first)
    with world.connect() as surface:
        assert not surface.call("list_prefix", scope="user").is_error
        world.resolver.identity = second
        assert surface.call("list_prefix", scope="user").is_error
        assert not surface.call("list_prefix", scope="team").is_error


def test_mem_063_a_failing_extractor_shows_a_fixed_text(world, caplog):
    resolver = Counting()

    def extract(_context):
        raise ValueError("header Bearer hunter2")

    server = build_server(**settings(world, resolver=resolver, credentials_from_context=extract))
    with world.connect(server) as surface:
        payload = surface.call("read_file", **TEA).payload
        again = surface.call("get_memory_index")

    assert payload["error"] == "ResolverFailureError"
    assert again.payload["message"] == payload["message"]
    assert "hunter2" not in str(payload)
    assert "ValueError" not in str(payload)
    assert len(again.texts) == 1
    assert resolver.seen == []
    assert "hunter2" not in caplog.text
    warnings = [record for record in caplog.records if record.name == "wenchang.mcp"]
    assert {record.getMessage() for record in warnings} == {
        "credentials_from_context raised ValueError"
    }


def test_mem_063_an_extractor_that_returns_a_coroutine_is_a_failure_too(world):
    async def answer():
        return "token"

    server = build_server(**settings(world, credentials_from_context=lambda _context: answer()))
    with world.connect(server) as surface:
        assert surface.call("read_file", **TEA).payload["error"] == "ResolverFailureError"


def test_mem_063_what_failed_in_the_extractor_is_no_context_of_the_error(world):
    from wenchang.mcp._callers import Callers

    def extract(_context):
        raise ValueError("hunter2")

    callers = Callers(world.resolver, extract, world.policy)
    with pytest.raises(ResolverFailureError) as caught:
        callers.identify(None)

    assert caught.value.__context__ is None
    assert "hunter2" not in str(render_error(caught.value))


@pytest.mark.parametrize("extract", [None, "header"])
def test_an_extractor_must_be_callable(world, extract):
    with pytest.raises(TypeError):
        build_server(**settings(world, credentials_from_context=extract))


def test_an_extractor_must_not_be_async(world):
    async def extract(_context):
        return "token"

    with pytest.raises(TypeError):
        build_server(**settings(world, credentials_from_context=extract))


def test_a_policy_scope_outside_the_known_ones_is_refused(world):
    policy = ScopePolicy({"offcie": frozenset({"admin"})})
    known = ("user", "office")

    with pytest.raises(ValueError, match="offcie"):
        bind_tools(world.client, world.resolver, None, policy, source="s", known_scopes=known)
    with pytest.raises(ValueError, match="offcie"):
        build_server(**settings(world, policy=policy, known_scopes=known))


def test_a_policy_within_the_known_scopes_is_accepted(world):
    bind_tools(
        world.client, world.resolver, None, world.policy, source="s", known_scopes={"office", "x"}
    )


@pytest.mark.parametrize("known", ["office", 5, [1]])
def test_known_scopes_are_a_collection_of_str(world, known):
    with pytest.raises(TypeError):
        bind_tools(world.client, world.resolver, None, world.policy, source="s", known_scopes=known)


def test_a_policy_scope_that_nobody_had_is_warned_about_once(caplog):
    watch = ScopeWatch()
    policy = ScopePolicy({"user": frozenset({"owner"}), "offcie": frozenset({"admin"})})

    for _ in range(RESOLUTIONS_WATCHED - 1):
        watch.note(IDENTITY, policy)
    assert caplog.records == []
    for _ in range(50):
        watch.note(IDENTITY, policy)

    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "'offcie'" in caplog.records[0].getMessage()


def test_scopes_that_somebody_had_are_not_warned_about(caplog):
    watch = ScopeWatch()
    policy = ScopePolicy({"user": frozenset({"owner"})})

    for _ in range(RESOLUTIONS_WATCHED):
        watch.note(IDENTITY, policy)

    assert caplog.records == []
