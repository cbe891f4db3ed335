"""`MemoryTools`: the seven tools, bound to one identity.

Every call is checked in the same order: types of scope, area and name; the grant; the location; the
area; the characters of the name; for a change, the system area and then the role; the remaining
arguments from left to right. Only then is the client called, with exactly the path that was
checked. The entity always comes from the caller's own grant, so there is no argument for it.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Concatenate, ParamSpec, TypeVar

from wenchang.errors import InvalidArgumentError
from wenchang.identity import Identity, IdentityResolver, check_resolver, resolve_identity
from wenchang.metadata import EPOCH, FileMetadata, check_source
from wenchang.observer import CallObserver, ToolCallRecord, check_observer, notify
from wenchang.paths import build_path, build_prefix
from wenchang.records import ListPage, MemoryFile, MemoryIndex
from wenchang.scope import ScopePolicy, check_write
from wenchang.tools import _arguments as check
from wenchang.tools._descriptions import TOOL_NAMES, check_product, tool_descriptions
from wenchang.tools._known_scopes import check_known_scopes, process_watch
from wenchang.tools._rendering import render_error, render_result
from wenchang.transport import TransportClient

__all__ = ["MemoryTools", "bind_tools", "check_tool_settings"]

C = TypeVar("C")
P = ParamSpec("P")
R = TypeVar("R", bound=MemoryFile | MemoryIndex | ListPage | None)


def _observed(
    method: Callable[Concatenate[MemoryTools, P], R],
) -> Callable[Concatenate[MemoryTools, P], R]:
    """Make a tool report each call to the observer of its `MemoryTools`, if there is one.

    A call that does not fit the signature is the program's fault and not a tool call: it raises
    TypeError and leaves no record.
    """
    signature = inspect.signature(method)

    @functools.wraps(method)
    def observed(self: MemoryTools, /, *args: P.args, **kwargs: P.kwargs) -> R:
        on_call = self._on_call
        if on_call is None:
            return method(self, *args, **kwargs)
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        del given["self"]

        started = time.perf_counter()

        def report(render: Callable[[], Mapping[str, Any]], *, is_error: bool) -> None:
            duration = time.perf_counter() - started
            notify(
                on_call,
                lambda: ToolCallRecord(
                    tool=method.__name__,
                    arguments=given,
                    result=render(),
                    is_error=is_error,
                    request_id=None,
                    duration_s=duration,
                ),
            )

        try:
            result = method(self, *args, **kwargs)
        except Exception as error:
            failure = error
            report(lambda: render_error(failure), is_error=True)
            raise
        report(lambda: render_result(result), is_error=False)
        return result

    return observed


class MemoryTools:
    """The seven memory tools of one caller.

    The methods return the values of `wenchang.core` and raise the errors of `wenchang.errors`;
    `render_result` and `render_error` turn both into what an agent sees. Instances hold no state of
    their own and serve several threads, as far as the client does.
    """

    def __init__(
        self,
        client: TransportClient,
        identity: Identity,
        policy: ScopePolicy,
        *,
        source: str,
        product: str | None = None,
        on_call: CallObserver | None = None,
    ) -> None:
        """Bind the tools to an identity.

        `source` is stored with each write as the surface that wrote; `product` is named in the
        descriptions; `on_call` is called after each tool call with a `ToolCallRecord`. Raises
        TypeError or ValueError for the first argument that is not valid.
        """
        if not isinstance(client, TransportClient):
            msg = f"client must be a TransportClient, not {type(client).__name__}"
            raise TypeError(msg)
        if not isinstance(identity, Identity):
            msg = f"identity must be an Identity, not {type(identity).__name__}"
            raise TypeError(msg)
        _check_policy(policy)
        self._client = client
        self._identity = identity
        self._policy = policy
        self._source = check_source(source)
        self._product = check_product(product)
        self._on_call = check_observer(on_call)

    @property
    def client(self) -> TransportClient:
        """The client that is called."""
        return self._client

    @property
    def identity(self) -> Identity:
        """The caller."""
        return self._identity

    @property
    def policy(self) -> ScopePolicy:
        """Which roles may write which scopes."""
        return self._policy

    @property
    def source(self) -> str:
        """The surface that is stored with each write."""
        return self._source

    @property
    def product(self) -> str | None:
        """The product that the descriptions name, or None."""
        return self._product

    def tools(self) -> Mapping[str, Callable[..., Any]]:
        """Return the bound methods by name, read-only, in the order of `TOOL_NAMES`."""
        return MappingProxyType({name: getattr(self, name) for name in TOOL_NAMES})

    def descriptions(self) -> Mapping[str, str]:
        """Return `tool_descriptions(product)`."""
        return tool_descriptions(self._product)

    @_observed
    def get_memory_index(self) -> MemoryIndex:
        """Return the index of every scope of the caller."""
        return self._client.get_memory_index(self._scope_map())

    @_observed
    def read_file(self, scope: str, area: str, name: str) -> MemoryFile:
        """Return one file. Raises `NotFoundError` (`file_absent`) where none is."""
        return self._client.read_file(self._locate(scope, area, name))

    @_observed
    def list_prefix(
        self, scope: str, area: str | None = None, cursor: str | None = None
    ) -> ListPage:
        """Return one page of a scope or of one area; `cursor` is the `next_cursor` before it."""
        scope = check.check_text("scope", scope)
        area = None if area is None else check.check_text("area", area)
        entity = self._entity(scope)
        if area is not None:
            check.check_segment("area", area)
        prefix = build_prefix(scope, entity, area)
        if area is not None:
            check.check_area(area)
        cursor = check.check_cursor(cursor)
        try:
            return self._client.list_prefix(prefix, cursor)
        except ValueError as error:
            # A client may refuse a cursor with a plain ValueError, whose text is not for agents.
            # Subclasses mean something else: corrupt metadata, a body that is no UTF-8.
            if cursor is None or type(error) is not ValueError:
                raise
            refused = "it was not given out for this scope and area; list from the start"
            raise InvalidArgumentError("cursor", refused) from error

    @_observed
    def write_file(
        self,
        scope: str,
        area: str,
        name: str,
        content: str,
        description: str,
        aliases: Sequence[str],
        expected_version: str | None,
    ) -> MemoryFile:
        """Create a file (`expected_version` None) or replace one whole, at exactly that version."""
        path = self._locate_for_write(scope, area, name)
        content = check.check_content(content)
        description = check.check_description(description)
        names = check.check_aliases(aliases)
        expected_version = check.check_optional_version(expected_version)
        metadata = FileMetadata(description, names, frozenset(), EPOCH)
        return self._client.write_file(
            path, content, metadata, expected_version, source=self._source
        )

    @_observed
    def append_line(
        self,
        scope: str,
        area: str,
        name: str,
        line: str,
        expected_version: str,
        aliases: Sequence[str] | None = None,
        description: str | None = None,
    ) -> MemoryFile:
        """Add one fact line at the end of an existing file, at exactly that version."""
        path = self._locate_for_write(scope, area, name)
        line = check.check_line(line)
        expected_version = check.check_version(expected_version)
        names = check.check_optional_aliases(aliases)
        description = check.check_optional_description(description)
        return self._client.append_line(
            path,
            line,
            expected_version,
            source=self._source,
            aliases=names,
            description=description,
        )

    @_observed
    def replace_fact(
        self,
        scope: str,
        area: str,
        name: str,
        old_string: str,
        new_string: str,
        expected_version: str,
        aliases: Sequence[str] | None = None,
        description: str | None = None,
    ) -> MemoryFile:
        """Replace the one passage that is `old_string`, also where the file has moved on."""
        path = self._locate_for_write(scope, area, name)
        old_string = check.check_old_string(old_string)
        new_string = check.check_new_string(new_string)
        expected_version = check.check_version(expected_version)
        names = check.check_optional_aliases(aliases)
        description = check.check_optional_description(description)
        return self._client.replace_fact(
            path,
            old_string,
            new_string,
            expected_version,
            source=self._source,
            aliases=names,
            description=description,
        )

    @_observed
    def delete_file(self, scope: str, area: str, name: str, expected_version: str) -> None:
        """Delete a file, at exactly that version."""
        path = self._locate_for_write(scope, area, name)
        expected_version = check.check_version(expected_version)
        self._client.delete_file(path, expected_version)

    def _scope_map(self) -> dict[str, str]:
        return {scope: grant.entity_id for scope, grant in self._identity.grants.items()}

    def _entity(self, scope: str) -> str:
        """Return the caller's entity of a scope, from the stored grant."""
        check.check_granted(scope, self._identity.grants)
        return self._identity.grants[scope].entity_id

    def _locate(self, scope: str, area: str, name: str) -> str:
        """Return the path of a file that the caller may address."""
        scope = check.check_text("scope", scope)
        area = check.check_text("area", area)
        name = check.check_text("name", name)
        entity = self._entity(scope)
        check.check_segment("area", area)
        check.check_segment("name", name)
        path = build_path(scope, entity, area, name)
        check.check_area(area)
        check.check_name(name)
        return path

    def _locate_for_write(self, scope: str, area: str, name: str) -> str:
        """Return the path of a file that the caller may change."""
        path = self._locate(scope, area, name)
        check_write(path, self._identity, self._policy)
        return path


def bind_tools(
    client: TransportClient,
    resolver: IdentityResolver[C],
    credentials: C,
    policy: ScopePolicy,
    *,
    source: str,
    product: str | None = None,
    on_call: CallObserver | None = None,
    known_scopes: Iterable[str] | None = None,
) -> MemoryTools:
    """Resolve the identity once and return the tools bound to it. The credentials are not kept.

    `known_scopes` are the scopes that identities here can have: with it, a policy that names any
    other is refused; without it, such a scope is warned about once.

    Raises TypeError or ValueError for an argument that is not valid, before the resolver runs;
    `ResolverFailureError` or `IdentityUnavailableError` where the resolver gives no identity.
    """
    check_tool_settings(client, policy, source=source, product=product, on_call=on_call)
    check_resolver(resolver)
    check_known_scopes(policy, known_scopes)
    identity = resolve_identity(resolver, credentials)
    if known_scopes is None:
        process_watch.note(identity, policy)
    return MemoryTools(client, identity, policy, source=source, product=product, on_call=on_call)


def check_tool_settings(
    client: TransportClient,
    policy: ScopePolicy,
    *,
    source: str,
    product: str | None,
    on_call: CallObserver | None,
) -> None:
    """Raise what `MemoryTools` would raise for these, before there is an identity."""
    MemoryTools(client, Identity({}), policy, source=source, product=product, on_call=on_call)


def _check_policy(policy: ScopePolicy) -> None:
    if not isinstance(policy, ScopePolicy):
        msg = f"policy must be a ScopePolicy, not {type(policy).__name__}"
        raise TypeError(msg)
