"""Who calls: the grants of an identity, and how an adopter's resolver establishes them.

A resolver is plain synchronous code that turns a credential into an `Identity`. `resolve_identity` is
its only caller: whatever a resolver does, what comes out is an identity or an error whose text
holds neither a credential nor an entity id.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol, TypeVar, runtime_checkable

from wenchang.errors import IdentityUnavailableError, ResolverFailureError
from wenchang.paths import RESERVED_SCOPE_PREFIX, segment_problem

__all__ = [
    "Identity",
    "IdentityResolver",
    "ResolutionFailure",
    "ResolutionUnavailable",
    "SandboxResolver",
    "ScopeGrant",
    "check_resolver",
    "is_async_callable",
    "resolve_identity",
]

C_contra = TypeVar("C_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class ScopeGrant:
    """One entity of a scope, and the caller's role there.

    `entity_id` is a valid path segment and `role` is not empty (else ValueError; TypeError for no
    str). The entity id is left out of the repr, so that it does not end in a log.
    """

    entity_id: str = field(repr=False)
    role: str

    def __post_init__(self) -> None:
        """Check both fields."""
        _check_segment("entity_id", self.entity_id)
        if not isinstance(self.role, str):
            msg = f"role must be a str, not {type(self.role).__name__}"
            raise TypeError(msg)
        if not self.role:
            msg = "role must not be empty"
            raise ValueError(msg)
        object.__setattr__(self, "entity_id", str.__str__(self.entity_id))
        object.__setattr__(self, "role", str.__str__(self.role))


@dataclass(frozen=True, slots=True)
class Identity:
    """What a caller may reach: for each scope one entity and a role. No grant at all is possible.

    The mapping is copied and read-only. Raises ValueError for a scope that is no valid path segment
    or begins with `@`, TypeError for other types.
    """

    grants: Mapping[str, ScopeGrant]

    def __post_init__(self) -> None:
        """Check and copy the grants."""
        if not isinstance(self.grants, Mapping):
            msg = f"grants must be a mapping, not {type(self.grants).__name__}"
            raise TypeError(msg)
        grants: dict[str, ScopeGrant] = {}
        for scope, grant in self.grants.items():
            _check_segment("scope", scope)
            if scope.startswith(RESERVED_SCOPE_PREFIX):
                msg = f"scope must not begin with {RESERVED_SCOPE_PREFIX!r}"
                raise ValueError(msg)
            if type(grant) is not ScopeGrant:
                msg = f"a grant must be a ScopeGrant, not {type(grant).__name__}"
                raise TypeError(msg)
            grants[str.__str__(scope)] = grant
        if len(grants) != len(self.grants):
            msg = "grants must name each scope once"
            raise ValueError(msg)
        object.__setattr__(self, "grants", MappingProxyType(grants))

    @property
    def scope_map(self) -> dict[str, str]:
        """The entity id of each granted scope, as a mapping of the caller's own."""
        return {scope: grant.entity_id for scope, grant in self.grants.items()}

    def entity_id(self, scope: str) -> str:
        """Return the entity of a granted scope; KeyError where it is not granted."""
        return self.grants[scope].entity_id

    def role(self, scope: str) -> str:
        """Return the role in a granted scope; KeyError where it is not granted."""
        return self.grants[scope].role

    def __hash__(self) -> int:
        """Agree with equality, which a mapping alone would not permit."""
        return hash(frozenset(self.grants.items()))

    def __reduce__(self) -> tuple[type[Identity], tuple[dict[str, ScopeGrant]]]:
        """Copy and pickle through the constructor, since the read-only view cannot be pickled."""
        return (type(self), (dict(self.grants),))


@dataclass(frozen=True, slots=True)
class ResolutionFailure:
    """The credential is refused. `detail` is shown to the agent: no credential, no entity id."""

    detail: str

    def __post_init__(self) -> None:
        """Check the detail."""
        _check_detail(self.detail)


@dataclass(frozen=True, slots=True)
class ResolutionUnavailable:
    """The credential cannot be judged at the moment. `detail` is shown to the agent."""

    detail: str

    def __post_init__(self) -> None:
        """Check the detail."""
        _check_detail(self.detail)


@runtime_checkable
class IdentityResolver(Protocol[C_contra]):
    """What an adopter implements to say who calls."""

    def resolve(
        self, credentials: C_contra
    ) -> Identity | ResolutionFailure | ResolutionUnavailable:
        """Return the identity that `credentials` prove, or why there is none.

        A plain method, never awaited. It must not raise, must serve several threads at once, and
        runs at each call over MCP.
        """
        ...


class SandboxResolver:
    """A resolver that gives one identity for any credential: for trials and tests only."""

    def __init__(self, identity: Identity) -> None:
        """Keep the identity."""
        if not isinstance(identity, Identity):
            msg = f"identity must be an Identity, not {type(identity).__name__}"
            raise TypeError(msg)
        self._identity = identity

    def resolve(self, credentials: object) -> Identity:  # noqa: ARG002 - the protocol passes it
        """Return the identity."""
        return self._identity


def is_async_callable(value: object) -> bool:
    """Tell whether calling `value` detectably gives something that would have to be awaited.

    Sees through `functools.partial`, `staticmethod` and objects with an async `__call__`.
    """
    while True:
        if isinstance(value, functools.partial):
            value = value.func
        elif isinstance(value, staticmethod | classmethod):
            value = value.__func__
        else:
            break
    if _is_async_function(value):
        return True
    if not callable(value) or inspect.isroutine(value):
        return False
    call = inspect.getattr_static(type(value), "__call__", None)
    if isinstance(call, functools.partial | staticmethod | classmethod):
        return is_async_callable(call)
    return _is_async_function(call)


def _is_async_function(value: object) -> bool:
    """Tell an `async def`, with or without `yield`, also as a bound method."""
    return inspect.iscoroutinefunction(value) or inspect.isasyncgenfunction(value)


def check_resolver(resolver: object) -> None:
    """Raise TypeError unless `resolver` has a `resolve` that is callable and not async.

    Nothing is called, so this is done once, before a resolver is put to use.
    """
    resolve = getattr(resolver, "resolve", None)
    if not callable(resolve):
        msg = f"resolver must have a method resolve; {type(resolver).__name__} has none"
        raise TypeError(msg)
    if is_async_callable(resolve):
        msg = "resolver.resolve must be a plain method, not async"
        raise TypeError(msg)


def resolve_identity(resolver: IdentityResolver[C_contra], credentials: C_contra) -> Identity:
    """Return the identity that the resolver gives for `credentials`.

    Raises `ResolverFailureError` where it refuses, raises, or returns anything else (the text then
    names types only), and `IdentityUnavailableError` where it cannot say at the moment. What the
    resolver raised is neither cause nor context, since its frames hold the credential.
    """
    raised = ""
    result: object = None
    try:
        result = resolver.resolve(credentials)
    except Exception as error:  # noqa: BLE001 - any failure of adopter code is the same outcome
        raised = type(error).__name__
    if raised:
        raise ResolverFailureError(f"the resolver raised {raised}")
    if isinstance(result, Identity):
        return result
    if isinstance(result, ResolutionFailure):
        raise ResolverFailureError(result.detail)
    if isinstance(result, ResolutionUnavailable):
        raise IdentityUnavailableError(result.detail)
    if inspect.iscoroutine(result):
        # Dropped without being closed it would warn that it was never awaited.
        result.close()
    raise ResolverFailureError(f"the resolver returned {type(result).__name__}, not an Identity")


def _check_segment(what: str, value: object) -> None:
    """Raise unless `value` is a valid path segment, without repeating it."""
    if not isinstance(value, str):
        msg = f"{what} must be a str, not {type(value).__name__}"
        raise TypeError(msg)
    problem = segment_problem(value)
    if problem is not None:
        msg = f"{what} {problem}"
        raise ValueError(msg)


def _check_detail(detail: object) -> None:
    """Raise unless `detail` is a str that says something."""
    if not isinstance(detail, str):
        msg = f"detail must be a str, not {type(detail).__name__}"
        raise TypeError(msg)
    if not detail.strip():
        msg = "detail must not be blank"
        raise ValueError(msg)
