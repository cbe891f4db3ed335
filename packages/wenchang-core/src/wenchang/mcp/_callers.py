"""From a request to an identity: read the credential, let the resolver judge it."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from wenchang.errors import ResolverFailureError
from wenchang.identity import (
    Identity,
    IdentityResolver,
    check_resolver,
    is_async_callable,
    resolve_identity,
)
from wenchang.mcp._sdk import Context
from wenchang.scope import ScopePolicy
from wenchang.tools._known_scopes import check_known_scopes, process_watch

__all__ = ["Callers", "CredentialsFromContext"]

C = TypeVar("C")

CredentialsFromContext = Callable[[Context[Any, Any]], C]
"""Reads the raw credential of a request. Headers and `_meta` are the client's own claims."""

_logger = logging.getLogger("wenchang.mcp")


class Callers(Generic[C]):
    """Establishes who calls, anew for each request, and keeps nothing of it.

    The constructor raises TypeError for a resolver or an extractor that is missing, not callable or
    async, and ValueError for a policy with a scope outside `known_scopes`.
    """

    def __init__(
        self,
        resolver: IdentityResolver[C],
        credentials_from_context: CredentialsFromContext[C],
        policy: ScopePolicy,
        known_scopes: Iterable[str] | None = None,
    ) -> None:
        """Check and keep how callers are established."""
        check_resolver(resolver)
        if not callable(credentials_from_context):
            msg = (
                "credentials_from_context must be callable, not "
                f"{type(credentials_from_context).__name__}"
            )
            raise TypeError(msg)
        if is_async_callable(credentials_from_context):
            msg = "credentials_from_context must be a plain function, not async"
            raise TypeError(msg)
        check_known_scopes(policy, known_scopes)
        self._resolver = resolver
        self._credentials_from_context = credentials_from_context
        self._policy = policy
        self._watched = known_scopes is None

    def identify(self, context: Context[Any, Any]) -> Identity:
        """Return the identity of the request's caller.

        Raises `ResolverFailureError` where the credential cannot be read or is refused, and
        `IdentityUnavailableError` where the resolver cannot say at the moment. Nothing of what the
        extractor raised is shown or kept; only its type is logged.
        """
        # The error is raised here, outside any handler, so that what the extractor raised, whose
        # frames hold the credential, is not its context.
        try:
            credentials = self._credentials_from_context(context)
        except Exception as error:  # noqa: BLE001 - any failure of adopter code is one outcome
            failure = f"raised {type(error).__name__}"
        else:
            if not inspect.iscoroutine(credentials):
                return self._resolve(credentials)
            # Dropped without being closed it would warn that it was never awaited.
            credentials.close()
            failure = "returned a coroutine"
        _logger.warning("credentials_from_context %s", failure)
        raise ResolverFailureError("the credentials of the request could not be read")

    def _resolve(self, credentials: C) -> Identity:
        identity = resolve_identity(self._resolver, credentials)
        if self._watched:
            process_watch.note(identity, self._policy)
        return identity
