"""`ResolverConformance`: an identity resolver, tried against the policy that it serves under.

    class TestMyResolver(ResolverConformance[str]):
        @pytest.fixture
        def resolver(self) -> IdentityResolver[str]: ...

Give the fixtures `resolver`, `valid_credentials`, `invalid_credentials` (call `pytest.skip` in it if your
resolver accepts everything), `policy`, `expected_scopes` and `known_roles`. Nothing is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, TypeVar

import pytest

from wenchang.errors import ErrorCategory, ResolverFailureError, RestrictedScopeError
from wenchang.identity import Identity, ResolutionFailure, ScopeGrant, resolve_identity
from wenchang.paths import build_path, build_prefix, is_valid_path, is_valid_prefix, parse_path
from wenchang.scope import SYSTEM_AREA, ScopePolicy, check_write

if TYPE_CHECKING:
    from wenchang.identity import IdentityResolver

__all__ = ["ResolverConformance"]

C = TypeVar("C")

_CALLS: Final = 3
_STRANGER: Final = "conformance-nobody"


class ResolverConformance(Generic[C]):
    """What every resolver owes: exact scopes, known roles, steady answers, refusals that are returned."""

    @pytest.fixture
    def resolver(self) -> IdentityResolver[C]:
        """Return the resolver under test."""
        self._missing("resolver")

    @pytest.fixture
    def valid_credentials(self) -> C:
        """Return credentials that the resolver accepts."""
        self._missing("valid_credentials")

    @pytest.fixture
    def invalid_credentials(self) -> C:
        """Return credentials that it refuses, or call `pytest.skip` if there are none."""
        self._missing("invalid_credentials")

    @pytest.fixture
    def policy(self) -> ScopePolicy:
        """Return the policy under which the identities write."""
        self._missing("policy")

    @pytest.fixture
    def expected_scopes(self) -> frozenset[str]:
        """Return the scopes that the valid credentials grant."""
        self._missing("expected_scopes")

    @pytest.fixture
    def known_roles(self) -> frozenset[str]:
        """Return every role that a resolver or a policy of yours may name."""
        self._missing("known_roles")

    # --- resolution ---

    def test_valid_credentials_grant_exactly_the_expected_scopes(
        self,
        resolver: IdentityResolver[C],
        valid_credentials: C,
        expected_scopes: frozenset[str],
    ) -> None:
        """Resolve and compare the scopes."""
        grants = self._grants(resolver, valid_credentials)
        if set(grants) != set(expected_scopes):
            self._fail(
                "scopes",
                f"granted {sorted(grants)}, expected {sorted(expected_scopes)}",
            )

    def test_the_library_gets_the_same_identity(
        self, resolver: IdentityResolver[C], valid_credentials: C
    ) -> None:
        """Resolve directly and through the library."""
        direct = self._grants(resolver, valid_credentials)
        through = self._rebuilt(resolve_identity(resolver, valid_credentials))
        if direct != through:
            self._fail("resolve_identity", "gives another identity than resolver.resolve")

    def test_invalid_credentials_are_refused_without_raising(
        self, resolver: IdentityResolver[C], invalid_credentials: C
    ) -> None:
        """Resolve and look at what comes back."""
        self._refusal(resolver, invalid_credentials)

    def test_a_refusal_becomes_a_permanent_error(
        self, resolver: IdentityResolver[C], invalid_credentials: C
    ) -> None:
        """Resolve through the library."""
        try:
            resolve_identity(resolver, invalid_credentials)
        except ResolverFailureError as error:
            if error.category is not ErrorCategory.PERMANENT:
                self._fail("refusal", f"the error's category is {error.category}, not permanent")
        else:
            self._fail("refusal", "the library resolved invalid credentials")

    def test_valid_credentials_resolve_alike_each_time(
        self, resolver: IdentityResolver[C], valid_credentials: C
    ) -> None:
        """Resolve three times."""
        found = [self._grants(resolver, valid_credentials) for _ in range(_CALLS)]
        if any(grants != found[0] for grants in found):
            self._fail("resolve", f"{_CALLS} calls with the same credentials gave different grants")

    def test_invalid_credentials_are_refused_each_time(
        self, resolver: IdentityResolver[C], invalid_credentials: C
    ) -> None:
        """Resolve three times."""
        details = {self._refusal(resolver, invalid_credentials) for _ in range(_CALLS)}
        if len(details) != 1:
            self._fail(
                "resolve", f"{_CALLS} refusals of the same credentials gave different details"
            )

    # --- what was granted ---

    def test_every_role_is_known(
        self,
        resolver: IdentityResolver[C],
        valid_credentials: C,
        policy: ScopePolicy,
        known_roles: frozenset[str],
    ) -> None:
        """Compare the roles of the grants and of the policy with those that are known."""
        for scope, (_, role) in self._grants(resolver, valid_credentials).items():
            if role not in known_roles:
                self._fail("roles", f"the role granted in scope {scope!r} is not a known role")
        for scope, roles in policy.write_roles.items():
            unknown = sorted(roles - known_roles)
            if unknown:
                self._fail(
                    "policy", f"scope {scope!r} asks for roles that are not known: {unknown}"
                )

    def test_every_granted_scope_makes_valid_paths(
        self, resolver: IdentityResolver[C], valid_credentials: C
    ) -> None:
        """Build a path and a prefix from each grant and take the path apart again."""
        for scope, (entity_id, _) in self._grants(resolver, valid_credentials).items():
            path = build_path(scope, entity_id, "area", "name")
            prefix = build_prefix(scope, entity_id)
            parts = parse_path(path)
            if not is_valid_path(path) or (parts.scope, parts.entity_id) != (scope, entity_id):
                self._fail("paths", f"scope {scope!r}: its path does not come back as it was built")
            if not is_valid_prefix(prefix) or not path.startswith(prefix):
                self._fail("paths", f"scope {scope!r}: its prefix does not lead to its path")

    # --- what may be written ---

    def test_the_system_area_is_read_only_everywhere(
        self, resolver: IdentityResolver[C], valid_credentials: C, policy: ScopePolicy
    ) -> None:
        """Try to write the system area of granted and other scopes, of own and other entities."""
        grants = self._grants(resolver, valid_credentials)
        scopes = {*grants, *policy.write_roles, _STRANGER}
        for scope in sorted(scopes):
            for entity_id in {grants.get(scope, (_STRANGER, ""))[0], _STRANGER}:
                error = self._restriction(
                    resolver, valid_credentials, policy, scope, entity_id, SYSTEM_AREA
                )
                if error is None or error.reason != "system_read_only":
                    self._fail(
                        "system area",
                        f"scope {scope!r}: it can be written, or for another reason not",
                    )

    def test_writing_ones_own_entities_follows_the_policy(
        self, resolver: IdentityResolver[C], valid_credentials: C, policy: ScopePolicy
    ) -> None:
        """Try to write each granted entity and compare with the roles that the policy asks for."""
        for scope, (entity_id, role) in self._grants(resolver, valid_credentials).items():
            roles = policy.permitted_roles(scope)
            error = self._restriction(resolver, valid_credentials, policy, scope, entity_id, "area")
            allowed = roles is None or role in roles
            if allowed and error is not None:
                self._fail("policy", f"scope {scope!r}: a write that the policy permits is refused")
            if not allowed and (
                error is None or error.reason != "role_required" or error.required_roles != roles
            ):
                self._fail(
                    "policy",
                    f"scope {scope!r}: a write without a required role is not refused as such",
                )

    def test_another_entity_is_not_granted(
        self, resolver: IdentityResolver[C], valid_credentials: C, policy: ScopePolicy
    ) -> None:
        """Try to write other entities of the granted scopes."""
        grants = self._grants(resolver, valid_credentials)
        for scope, (entity_id, _) in grants.items():
            for other in (_STRANGER, f"{entity_id}-2"):
                self._not_granted(resolver, valid_credentials, policy, scope, other)

    def test_a_scope_that_is_not_granted_is_refused(
        self, resolver: IdentityResolver[C], valid_credentials: C, policy: ScopePolicy
    ) -> None:
        """Try to write scopes that only the policy names, or nobody."""
        grants = self._grants(resolver, valid_credentials)
        for scope in sorted({*policy.write_roles, _STRANGER} - set(grants)):
            self._not_granted(resolver, valid_credentials, policy, scope, _STRANGER)

    # --- helpers ---

    def _grants(self, resolver: IdentityResolver[C], credentials: C) -> dict[str, tuple[str, str]]:
        """Resolve valid credentials; return scope to entity id and role as plain text."""
        try:
            result: Any = resolver.resolve(credentials)
        except Exception as error:  # noqa: BLE001 - a resolver must not raise anything
            self._fail("resolve", f"raised {type(error).__name__} for valid credentials")
        return self._rebuilt(result)

    def _rebuilt(self, identity: object) -> dict[str, tuple[str, str]]:
        """Return what an identity grants, judged on values rebuilt from its own."""
        if not isinstance(identity, Identity) or type(identity) is not Identity:
            self._fail("resolve", f"returned {type(identity).__name__}, not an Identity")
        again = Identity(
            {
                scope: ScopeGrant(grant.entity_id, grant.role)
                for scope, grant in identity.grants.items()
            }
        )
        return {scope: (grant.entity_id, grant.role) for scope, grant in again.grants.items()}

    def _refusal(self, resolver: IdentityResolver[C], credentials: C) -> str:
        """Resolve invalid credentials; return the detail of the refusal."""
        try:
            result: Any = resolver.resolve(credentials)
        except Exception as error:  # noqa: BLE001 - a resolver must not raise anything
            self._fail("resolve", f"raised {type(error).__name__} for invalid credentials")
        if type(result) is not ResolutionFailure:
            self._fail(
                "resolve",
                f"returned {type(result).__name__} for invalid credentials, not a ResolutionFailure",
            )
        detail: str = result.detail
        return detail

    def _restriction(
        self,
        resolver: IdentityResolver[C],
        credentials: C,
        policy: ScopePolicy,
        scope: str,
        entity_id: str,
        area: str,
    ) -> RestrictedScopeError | None:
        """Return how a write is refused, or None if it is permitted."""
        identity = resolve_identity(resolver, credentials)
        try:
            check_write(build_path(scope, entity_id, area, "name"), identity, policy)
        except RestrictedScopeError as error:
            return error
        return None

    def _not_granted(
        self,
        resolver: IdentityResolver[C],
        credentials: C,
        policy: ScopePolicy,
        scope: str,
        entity_id: str,
    ) -> None:
        error = self._restriction(resolver, credentials, policy, scope, entity_id, "area")
        if error is None or error.reason != "not_granted":
            self._fail("grants", f"scope {scope!r}: an entity that is not granted can be written")

    def _missing(self, fixture: str) -> NoReturn:
        pytest.fail(f"{type(self).__name__}: give the fixture {fixture}", pytrace=False)

    def _fail(self, label: str, phrase: str) -> NoReturn:
        pytest.fail(f"{type(self).__name__}: {label}: {phrase}", pytrace=False)
