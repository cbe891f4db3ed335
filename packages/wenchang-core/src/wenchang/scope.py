"""Who may write where: the system area, and the roles that a policy asks for.

Reads are never checked here: a caller's own grants decide what it can address at all. Writes are
checked in a fixed order: location, system area, grant, role.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from wenchang.errors import NotFoundError, RestrictedScopeError
from wenchang.identity import Identity
from wenchang.paths import PathParts, parse_path

__all__ = [
    "SYSTEM_AREA",
    "ScopePolicy",
    "check_not_system",
    "check_write",
    "check_write_allowed",
    "is_system_path",
]

SYSTEM_AREA: Final = "system"
"""The area that people curate: readable by agents, written only through the core store."""


@dataclass(frozen=True, slots=True)
class ScopePolicy:
    """Which roles may write a scope. A scope that is not named here is open to every role.

    Roles are compared exactly; there is no hierarchy. The mapping is copied and read-only. Raises
    TypeError unless it maps str to frozenset of str, ValueError for an empty scope, set or role.
    """

    write_roles: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check and copy the mapping."""
        if not isinstance(self.write_roles, Mapping):
            msg = f"write_roles must be a mapping, not {type(self.write_roles).__name__}"
            raise TypeError(msg)
        copied: dict[str, frozenset[str]] = {}
        for scope, roles in self.write_roles.items():
            if not isinstance(scope, str):
                msg = f"a scope must be a str, not {type(scope).__name__}"
                raise TypeError(msg)
            if not isinstance(roles, frozenset) or not all(isinstance(role, str) for role in roles):
                msg = f"the roles of scope {scope!r} must be a frozenset of str"
                raise TypeError(msg)
            if not scope:
                msg = "a scope must not be empty"
                raise ValueError(msg)
            if not roles or "" in roles:
                msg = f"scope {scope!r} needs at least one role, and no empty one"
                raise ValueError(msg)
            copied[scope] = roles
        object.__setattr__(self, "write_roles", MappingProxyType(copied))

    def permitted_roles(self, scope: str) -> frozenset[str] | None:
        """Return the roles that may write `scope`, or None where every role may."""
        return self.write_roles.get(scope)

    def is_write_restricted(self, scope: str) -> bool:
        """Tell whether writing `scope` takes one of certain roles."""
        return scope in self.write_roles

    def __hash__(self) -> int:
        """Agree with equality, which a mapping alone would not permit."""
        return hash(frozenset(self.write_roles.items()))

    def __reduce__(self) -> tuple[type[ScopePolicy], tuple[dict[str, frozenset[str]]]]:
        """Copy and pickle through the constructor, since the read-only view cannot be pickled."""
        return (type(self), (dict(self.write_roles),))


def is_system_path(path: str) -> bool:
    """Tell whether a valid path lies in the system area; False for anything else."""
    try:
        return parse_path(path).area == SYSTEM_AREA
    except ValueError:
        return False


def check_not_system(path: str) -> None:
    """Refuse the system area.

    Raises `NotFoundError` (`invalid_path`) for what is no path, `RestrictedScopeError`
    (`system_read_only`) for a path in the system area, whoever asks.
    """
    _refuse_system(path, _parse(path))


def check_write_allowed(path: str, identity: Identity, policy: ScopePolicy) -> None:
    """Refuse a write outside the caller's grants or without a role that the policy asks for.

    Raises `NotFoundError` (`invalid_path`) and `RestrictedScopeError` (`not_granted`, then
    `role_required`). Another entity and a scope without grant are refused alike, so the refusal
    reveals nothing.
    """
    _refuse_ungranted(path, _parse(path), identity, policy)


def check_write(path: str, identity: Identity, policy: ScopePolicy) -> None:
    """Apply every rule for a write by an agent: location, system area, grant, role, in this order."""
    parts = _parse(path)
    _refuse_system(path, parts)
    _refuse_ungranted(path, parts, identity, policy)


def _parse(path: str) -> PathParts:
    """Take a path apart or say that it is none."""
    try:
        return parse_path(path)
    except ValueError:
        pass
    raise NotFoundError(path, "invalid_path")


def _refuse_system(path: str, parts: PathParts) -> None:
    """Raise for the system area."""
    if parts.area == SYSTEM_AREA:
        raise RestrictedScopeError(path, parts.scope, "system_read_only")


def _refuse_ungranted(path: str, parts: PathParts, identity: Identity, policy: ScopePolicy) -> None:
    """Raise without a grant for the very entity, then without a role that suffices."""
    # Read from the stored grant, not through methods that a subclass could replace.
    grant = identity.grants.get(parts.scope)
    if grant is None or grant.entity_id != parts.entity_id:
        raise RestrictedScopeError(path, parts.scope, "not_granted")
    roles = policy.write_roles.get(parts.scope)
    if roles is not None and grant.role not in roles:
        raise RestrictedScopeError(path, parts.scope, "role_required", roles)
