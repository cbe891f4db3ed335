"""`ResolverConformance`: a right resolver passes, and each wrong one fails with a text that names it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from wenchang.identity import Identity, IdentityResolver, ResolutionFailure, ScopeGrant
from wenchang.scope import ScopePolicy
from wenchang.testing import ResolverConformance

POLICY = ScopePolicy({"organization": frozenset({"admin", "owner"})})
IDENTITY = Identity(
    grants={
        "user": ScopeGrant("u-lanting", "owner"),
        "organization": ScopeGrant("o-orchid-press", "admin"),
    }
)


class TokenResolver:
    def resolve(self, credentials: str) -> Identity | ResolutionFailure:
        return IDENTITY if credentials == "tok-lanting" else ResolutionFailure("unknown token")


class TestTokenResolver(ResolverConformance[str]):
    @pytest.fixture
    def resolver(self) -> IdentityResolver[str]:
        return TokenResolver()

    @pytest.fixture
    def valid_credentials(self) -> str:
        return "tok-lanting"

    @pytest.fixture
    def invalid_credentials(self) -> str:
        return "tok-stranger"

    @pytest.fixture
    def policy(self) -> ScopePolicy:
        return POLICY

    @pytest.fixture
    def expected_scopes(self) -> frozenset[str]:
        return frozenset({"user", "organization"})

    @pytest.fixture
    def known_roles(self) -> frozenset[str]:
        return frozenset({"owner", "admin", "member"})


class Asked:
    """A resolver whose answers are given by a function."""

    def __init__(self, answer: Callable[[str], object]) -> None:
        self.resolve = answer


def case(name: str, **given: object) -> None:
    """Run one case of the suite with the fixtures given, others as for the right resolver."""
    fixtures = {
        "resolver": TokenResolver(),
        "valid_credentials": "tok-lanting",
        "invalid_credentials": "tok-stranger",
        "policy": POLICY,
        "expected_scopes": frozenset({"user", "organization"}),
        "known_roles": frozenset({"owner", "admin"}),
    } | given
    run = getattr(ResolverConformance(), name)
    run(**{each: fixtures[each] for each in run.__code__.co_varnames if each in fixtures})


def raising(_credentials: str) -> object:
    raise LookupError("the credential store is away")


@pytest.mark.parametrize(
    ("name", "given", "phrase"),
    [
        (
            "test_valid_credentials_grant_exactly_the_expected_scopes",
            {"expected_scopes": frozenset({"user"})},
            "scopes: granted",
        ),
        (
            "test_valid_credentials_grant_exactly_the_expected_scopes",
            {"resolver": Asked(lambda _: None)},
            "returned NoneType",
        ),
        (
            "test_valid_credentials_resolve_alike_each_time",
            {"resolver": Asked(raising)},
            "raised LookupError",
        ),
        (
            "test_invalid_credentials_are_refused_without_raising",
            {"resolver": Asked(raising)},
            "raised LookupError",
        ),
        (
            "test_invalid_credentials_are_refused_without_raising",
            {"resolver": Asked(lambda _: IDENTITY)},
            "returned Identity",
        ),
        (
            "test_a_refusal_becomes_a_permanent_error",
            {"resolver": Asked(lambda _: IDENTITY)},
            "resolved invalid credentials",
        ),
        ("test_every_role_is_known", {"known_roles": frozenset({"owner"})}, "not a known role"),
        (
            "test_every_role_is_known",
            {"policy": ScopePolicy({"user": frozenset({"boss"})})},
            "not known: ['boss']",
        ),
    ],
)
def test_a_wrong_resolver_fails_with_its_class_and_a_phrase(name, given, phrase):
    with pytest.raises(pytest.fail.Exception) as caught:
        case(name, **given)
    assert str(caught.value).startswith("ResolverConformance: ")
    assert phrase in str(caught.value)


def test_a_resolver_that_changes_its_mind_fails():
    answers = iter([IDENTITY, Identity(grants={}), IDENTITY])
    with pytest.raises(pytest.fail.Exception, match="different grants"):
        case(
            "test_valid_credentials_resolve_alike_each_time",
            resolver=Asked(lambda _: next(answers)),
        )


def test_mem_103_there_are_twelve_cases():
    assert sum(name.startswith("test_") for name in dir(ResolverConformance)) == 12
