"""Identities, resolvers, and the policy for writing."""

from __future__ import annotations

import copy
import functools
import gc
import pickle
import warnings
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from wenchang.errors import (
    IdentityUnavailableError,
    NotFoundError,
    ResolverFailureError,
    RestrictedScopeError,
)
from wenchang.identity import (
    Identity,
    IdentityResolver,
    ResolutionFailure,
    ResolutionUnavailable,
    SandboxResolver,
    ScopeGrant,
    check_resolver,
    is_async_callable,
    resolve_identity,
)
from wenchang.scope import (
    SYSTEM_AREA,
    ScopePolicy,
    check_not_system,
    check_write,
    check_write_allowed,
    is_system_path,
)

IDENTITY = Identity(
    {"user": ScopeGrant("ent-4711", "owner"), "team": ScopeGrant("ent-4712", "member")}
)
POLICY = ScopePolicy({"team": frozenset({"admin", "owner"})})

BAD_SEGMENTS = ["", ".", "..", "a/b", "a\\b", "a\n", "\ud800", "\ufdd0", "é" * 101, "x" * 201]


class TestIdentity:
    def test_mem_080_grants_give_the_scope_map_entities_and_roles(self) -> None:
        assert IDENTITY.scope_map == {"user": "ent-4711", "team": "ent-4712"}
        assert IDENTITY.entity_id("user") == "ent-4711"
        assert IDENTITY.role("team") == "member"

    def test_mem_080_what_is_not_granted_is_a_key_error(self) -> None:
        for method in (IDENTITY.entity_id, IDENTITY.role):
            with pytest.raises(KeyError):
                method("organization")

    def test_mem_080_no_grant_at_all_is_an_identity(self) -> None:
        assert Identity({}).scope_map == {}

    @pytest.mark.parametrize("segment", BAD_SEGMENTS, ids=range(len(BAD_SEGMENTS)))
    def test_mem_080_scope_and_entity_must_be_segments(self, segment: str) -> None:
        with pytest.raises(ValueError, match="scope"):
            Identity({segment: ScopeGrant("e", "r")})
        with pytest.raises(ValueError, match="entity_id") as caught:
            ScopeGrant(segment, "r")
        assert len(segment) < 3 or segment not in str(caught.value)

    def test_a_scope_must_not_begin_with_an_at_sign_and_an_entity_may(self) -> None:
        with pytest.raises(ValueError, match="@"):
            Identity({"@files": ScopeGrant("e", "r")})
        assert Identity({"a@b": ScopeGrant("@e", "r")}).entity_id("a@b") == "@e"

    def test_mem_080_segments_of_exactly_200_bytes_are_accepted(self) -> None:
        longest = "é" * 100
        assert Identity({longest: ScopeGrant(longest, "r")}).entity_id(longest) == longest

    def test_mem_080_a_role_must_not_be_empty(self) -> None:
        with pytest.raises(ValueError, match="role"):
            ScopeGrant("e", "")

    @pytest.mark.parametrize(
        "make",
        [
            lambda: ScopeGrant(1, "r"),  # type: ignore[arg-type]  # the wrong type is the case
            lambda: ScopeGrant("e", None),  # type: ignore[arg-type]  # the wrong type is the case
            lambda: Identity([("user", ScopeGrant("e", "r"))]),  # type: ignore[arg-type]  # the case
            lambda: Identity({"user": "e"}),  # type: ignore[dict-item]  # the wrong type is the case
            lambda: Identity({1: ScopeGrant("e", "r")}),  # type: ignore[dict-item]  # the case
        ],
        ids=range(5),
    )
    def test_mem_080_other_types_are_type_errors(self, make: Callable[[], object]) -> None:
        with pytest.raises(TypeError):
            make()

    def test_an_identity_does_not_change_with_the_mapping_it_was_made_from(self) -> None:
        grants = {"user": ScopeGrant("e", "r")}
        identity = Identity(grants)
        grants["team"] = ScopeGrant("e", "r")
        assert set(identity.scope_map) == {"user"}
        changed: Any = identity.grants
        with pytest.raises(TypeError):
            changed["team"] = ScopeGrant("e", "r")
        identity.scope_map["team"] = "e"
        assert set(identity.scope_map) == {"user"}

    def test_an_identity_can_be_compared_hashed_copied_and_pickled(self) -> None:
        for twin in (
            Identity(dict(IDENTITY.grants)),
            copy.copy(IDENTITY),
            copy.deepcopy(IDENTITY),
            pickle.loads(pickle.dumps(IDENTITY)),
        ):
            assert twin == IDENTITY
            assert hash(twin) == hash(IDENTITY)

    def test_mem_003_no_repr_shows_an_entity_id(self) -> None:
        assert "4711" not in repr(IDENTITY) + repr(IDENTITY.grants["user"])

    def test_a_str_of_another_class_is_stored_as_a_plain_str(self) -> None:
        class Sly(str):
            __slots__ = ()

            def __str__(self) -> str:
                return "other"

            def __eq__(self, other: object) -> bool:
                return True

            __hash__ = str.__hash__

        grant = ScopeGrant(Sly("e"), Sly("r"))
        assert type(grant.entity_id) is type(grant.role) is str
        assert (grant.entity_id, grant.role) == ("e", "r")


def resolver_of(resolve: Callable[[Any], Any]) -> Any:
    """Make a resolver from a function."""
    return type("Resolver", (), {"resolve": staticmethod(resolve)})()


class TestResolving:
    def test_mem_081_the_identity_is_what_the_resolver_returns(self) -> None:
        assert resolve_identity(resolver_of(lambda _: IDENTITY), "token") is IDENTITY

    def test_mem_074_a_refused_credential_is_permanent_and_its_detail_is_shown(self) -> None:
        with pytest.raises(ResolverFailureError, match="unknown token") as caught:
            resolve_identity(resolver_of(lambda _: ResolutionFailure("unknown token")), "x")
        assert caught.value.category == "permanent"

    def test_a_resolver_that_cannot_say_at_the_moment_is_a_passing_condition(self) -> None:
        unavailable = ResolutionUnavailable("directory is down")
        with pytest.raises(IdentityUnavailableError, match="directory is down") as caught:
            resolve_identity(resolver_of(lambda _: unavailable), "x")
        assert caught.value.category == "transient"

    def test_mem_081_what_a_resolver_raises_is_named_by_its_type_only(self) -> None:
        def fail(credentials: str) -> Identity:
            raise ValueError(f"bad {credentials}")

        with pytest.raises(ResolverFailureError) as caught:
            resolve_identity(resolver_of(fail), "secret-4711")
        assert "ValueError" in str(caught.value)
        assert "4711" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None

    def test_what_is_no_exception_passes_through(self) -> None:
        def stop(_credentials: str) -> Identity:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            resolve_identity(resolver_of(stop), "x")

    @pytest.mark.parametrize("result", [None, "secret-4711", {"user": "secret-4711"}, Identity])
    def test_mem_081_another_type_is_named_and_its_value_is_not(self, result: object) -> None:
        with pytest.raises(ResolverFailureError) as caught:
            resolve_identity(resolver_of(lambda _: result), "x")
        assert type(result).__name__ in str(caught.value)
        assert "4711" not in str(caught.value)

    @pytest.mark.parametrize("kind", [ResolutionFailure, ResolutionUnavailable])
    def test_a_detail_says_something(self, kind: type) -> None:
        for detail in ("", "  "):
            with pytest.raises(ValueError, match="detail"):
                kind(detail)
        with pytest.raises(TypeError):
            kind(None)

    def test_mem_083_a_coroutine_from_a_plain_method_is_closed_and_refused(self) -> None:
        """Fails (by the warning) where the coroutine is dropped without being closed."""
        made: list[Any] = []

        async def later() -> Identity:
            return IDENTITY

        def resolve(_credentials: str) -> Any:
            made.append(later())
            return made[-1]

        resolver = resolver_of(resolve)
        check_resolver(resolver)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in range(2):
                with pytest.raises(ResolverFailureError, match="coroutine"):
                    resolve_identity(resolver, "x")
            assert [coroutine.cr_frame for coroutine in made] == [None, None]
            made.clear()
            gc.collect()

    def test_mem_084_the_sandbox_gives_one_identity_for_anything(self) -> None:
        resolver = SandboxResolver(IDENTITY)
        for credentials in (None, "", object()):
            assert resolver.resolve(credentials) is IDENTITY
        assert isinstance(resolver, IdentityResolver)
        with pytest.raises(TypeError):
            SandboxResolver({})  # type: ignore[arg-type]  # the wrong type is the case


async def _coroutine_function(_self: object, _credentials: object = None) -> Identity:
    return IDENTITY


async def _async_generator(_self: object, _credentials: object = None) -> AsyncIterator[Identity]:
    yield IDENTITY


class _AsyncCall:
    async def __call__(self, _credentials: object) -> Identity:
        return IDENTITY


class _AsyncGeneratorCall:
    async def __call__(self, _credentials: object) -> AsyncIterator[Identity]:
        yield IDENTITY


ASYNC_FORMS: dict[str, Any] = {
    "async def": _coroutine_function,
    "async generator": _async_generator,
    "async staticmethod": staticmethod(_coroutine_function),
    "async classmethod": classmethod(_coroutine_function),
    "partial": functools.partial(_coroutine_function, None),
    "partial of a partial": functools.partial(functools.partial(_coroutine_function, None)),
    "partial of an async generator": functools.partial(_async_generator, None),
    "object with async call": _AsyncCall(),
    "object with async generator call": _AsyncGeneratorCall(),
    "partial of such an object": functools.partial(_AsyncCall()),
}


class TestAsyncDetection:
    # Python 3.13 warns of a partial in a class, which a later Python will bind; both are seen through.
    @pytest.mark.filterwarnings(
        "ignore:functools.partial will be a method descriptor:FutureWarning"
    )
    @pytest.mark.parametrize("form", ASYNC_FORMS)
    def test_mem_082_each_async_form_is_refused_with_the_fixed_text(self, form: str) -> None:
        resolver = type("Resolver", (), {"resolve": ASYNC_FORMS[form]})()
        with pytest.raises(TypeError) as caught:
            check_resolver(resolver)
        assert str(caught.value) == "resolver.resolve must be a plain method, not async"

    @pytest.mark.parametrize("form", ASYNC_FORMS)
    def test_mem_082_each_form_is_refused_on_the_instance_too(self, form: str) -> None:
        if form == "async classmethod":
            form = "async def"  # a bare classmethod object cannot be called at all
        resolver = type("Resolver", (), {})()
        resolver.resolve = ASYNC_FORMS[form]
        with pytest.raises(TypeError, match="not async"):
            check_resolver(resolver)

    def test_mem_082_a_bound_method_of_another_object_is_seen_through(self) -> None:
        resolver = type("Resolver", (), {})()
        resolver.resolve = type("Other", (), {"go": _coroutine_function})().go
        with pytest.raises(TypeError, match="not async"):
            check_resolver(resolver)

    @pytest.mark.parametrize(
        "plain",
        [
            len,
            lambda _credentials: IDENTITY,
            functools.partial(len),
            dict,
            _AsyncCall,  # calling the class makes an instance
            SandboxResolver(IDENTITY).resolve,
            type("Callable", (), {"__call__": lambda _self: None})(),
        ],
        ids=["builtin", "lambda", "partial", "class", "async class", "method", "object"],
    )
    def test_plain_callables_are_not_taken_for_async(self, plain: object) -> None:
        assert not is_async_callable(plain)
        check_resolver(type("Resolver", (), {"resolve": staticmethod(plain)})())

    def test_nothing_is_called_to_find_out(self) -> None:
        class Proud:
            def resolve(self, _credentials: object) -> Identity:
                raise AssertionError

        check_resolver(Proud())

    @pytest.mark.parametrize("resolver", [None, object(), 1])
    def test_what_has_no_resolve_is_a_type_error(self, resolver: object) -> None:
        with pytest.raises(TypeError, match="resolve"):
            check_resolver(resolver)


class TestPolicy:
    def test_mem_085_an_absent_scope_is_unrestricted(self) -> None:
        assert POLICY.permitted_roles("user") is None
        assert not POLICY.is_write_restricted("user")
        assert POLICY.permitted_roles("team") == {"admin", "owner"}
        assert POLICY.is_write_restricted("team")
        assert ScopePolicy().permitted_roles("team") is None

    @pytest.mark.parametrize(
        ("roles", "error"),
        [
            ({"team": {"admin"}}, TypeError),
            ({"team": "admin"}, TypeError),
            ({"team": frozenset({1})}, TypeError),
            ({1: frozenset({"admin"})}, TypeError),
            ([], TypeError),
            ({"team": frozenset()}, ValueError),
            ({"team": frozenset({""})}, ValueError),
            ({"": frozenset({"admin"})}, ValueError),
        ],
    )
    def test_mem_085_what_would_restrict_nothing_or_everything_is_refused(
        self, roles: Any, error: type[Exception]
    ) -> None:
        with pytest.raises(error):
            ScopePolicy(roles)

    def test_a_policy_can_be_compared_hashed_copied_and_pickled(self) -> None:
        for twin in (
            ScopePolicy(dict(POLICY.write_roles)),
            copy.deepcopy(POLICY),
            pickle.loads(pickle.dumps(POLICY)),
        ):
            assert twin == POLICY
            assert hash(twin) == hash(POLICY)


class TestCheckWrite:
    def test_a_write_within_grant_and_role_passes(self) -> None:
        check_write("user/ent-4711/prefs/tea.md", IDENTITY, POLICY)

    @pytest.mark.parametrize("path", ["user", "user/ent-4711/prefs", "user/x/system/.md"])
    def test_mem_072_what_is_no_path_is_not_found_before_all_else(self, path: str) -> None:
        for check in (
            lambda: check_write(path, IDENTITY, POLICY),
            lambda: check_not_system(path),
            lambda: check_write_allowed(path, IDENTITY, POLICY),
        ):
            with pytest.raises(NotFoundError) as caught:
                check()
            assert caught.value.reason == "invalid_path"

    @pytest.mark.parametrize("scope", ["user", "team", "organization"])
    @pytest.mark.parametrize("entity", ["ent-4711", "ent-4712", "other"])
    def test_mem_011_the_system_area_is_read_only_for_everyone_before_grant_and_role(
        self, scope: str, entity: str
    ) -> None:
        path = f"{scope}/{entity}/{SYSTEM_AREA}/rules.md"
        for check in (
            lambda: check_write(path, IDENTITY, POLICY),
            lambda: check_not_system(path),
        ):
            with pytest.raises(RestrictedScopeError) as caught:
                check()
            assert caught.value.reason == "system_read_only"
            assert caught.value.required_roles is None
        assert is_system_path(path)

    @pytest.mark.parametrize("area", ["System", "systems", "sуstem", "system ", "system\u200b"])
    def test_mem_011_only_the_exact_word_is_the_system_area(self, area: str) -> None:
        path = f"user/ent-4711/{area}/x.md"
        assert not is_system_path(path)
        check_not_system(path)

    def test_mem_073_another_entity_and_another_scope_are_refused_alike(self) -> None:
        texts = set()
        for path in ("user/ent-4712/a/x.md", "organization/ent-4711/a/x.md"):
            with pytest.raises(RestrictedScopeError) as caught:
                check_write(path, IDENTITY, POLICY)
            assert caught.value.reason == "not_granted"
            assert "471" not in str(caught.value)
            texts.add(str(caught.value).replace(caught.value.scope, "S"))
        assert len(texts) == 1

    def test_mem_073_a_role_that_does_not_suffice_is_told_which_do(self) -> None:
        with pytest.raises(RestrictedScopeError) as caught:
            check_write("team/ent-4712/a/x.md", IDENTITY, POLICY)
        assert caught.value.reason == "role_required"
        assert caught.value.required_roles == {"admin", "owner"}
        assert "4712" not in str(caught.value)
        assert "member" not in str(caught.value)

    def test_mem_078_a_scope_without_grant_is_not_granted_before_its_policy_is_asked(self) -> None:
        policy = ScopePolicy({"organization": frozenset({"admin"})})
        with pytest.raises(RestrictedScopeError) as caught:
            check_write("organization/o/a/x.md", IDENTITY, policy)
        assert caught.value.reason == "not_granted"
        assert caught.value.required_roles is None

    def test_a_role_that_suffices_passes(self) -> None:
        admin = Identity({"team": ScopeGrant("ent-4712", "admin")})
        check_write("team/ent-4712/a/x.md", admin, POLICY)
