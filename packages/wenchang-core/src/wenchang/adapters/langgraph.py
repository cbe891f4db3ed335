"""`WenchangStore`: a LangGraph `BaseStore` on any storage, with versions. Needs the extra `langgraph`.

    store = WenchangStore(storage, tenant=lambda: get_runtime(Context).context.tenant)
    graph = builder.compile(store=store)

Each item is one object, so writers of different items never wait for each other, and a conditional
write of an item is one conditional write of the storage. (In a file tree every write of a tenant
would meet at one root, and namespaces could not be deeper than folders.)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from wenchang._objects import Objects
from wenchang.adapters._extras import missing_package
from wenchang.adapters._langgraph_items import (
    Draft,
    ItemRecord,
    ItemStateError,
    Place,
    decode_item,
    item_base,
    place_of,
)
from wenchang.errors import BackendUnavailableError, RecoverableError
from wenchang.files._patience import Patience
from wenchang.files.policy import TreePolicy
from wenchang.operators import PURGE_MAX_PASSES, purge_objects
from wenchang.storage.contract import Storage, StoredObject
from wenchang.storage.errors import UNREAD, PreconditionFailedError

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        InvalidNamespaceError,
        Item,
        ListNamespacesOp,
        Op,
        PutOp,
        Result,
        SearchOp,
        validate_op_namespace,
    )

    from wenchang.adapters._langgraph_query import (
        check_bounds,
        check_conditions,
        check_depth,
        check_filter,
    )
    from wenchang.adapters._langgraph_reading import ItemReader
except ImportError as error:
    raise missing_package(__name__, "langgraph", error) from error

__all__ = ["ItemConflictError", "ItemStateError", "VersionedItem", "WenchangStore"]

_DEFAULT_PARALLEL: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionedItem:
    """An item, and the version that a conditional change of it names."""

    item: Item
    version: str


class ItemConflictError(RecoverableError):
    """The item is not at the version that the call named; nothing was changed.

    `current` is what is stored now, None where there is no item. Build the change on it and repeat
    the call with its version.
    """

    def __init__(self, current: VersionedItem | None) -> None:
        """Keep what is stored now."""
        super().__init__(
            "The item changed since it was read."
            if current is not None
            else "The item is not there any more."
        )
        self.current = current


class WenchangStore(BaseStore):
    """A `BaseStore` that keeps the items of many tenants apart, and what it acknowledged.

    `tenant` is the tenant of the run, or a function that returns it, asked at every call in the
    caller's context (`langgraph.runtime.get_runtime` works in it). It is the first part of where
    items lie, whatever the namespace; a run without one is refused with `NoTenantError`.

    **Values** are JSON: what would not come back equal (NaN, other types, names that are no str, a
    character given as two surrogates) is refused; a tuple comes back as a list. An item with its names has at most 4 MiB.
    **Names.** Labels follow LangGraph's rules, keys are any text. Both are kept exactly; together they
    have at most 900 bytes as encoded, a name of more than 60 counting as 56.

    **batch** checks every operation first. It then reads, and writes last, so that reads see what was
    there before; of several puts of one item the last one counts. Each put is atomic, the batch is
    not: where one fails, those before it have happened. `abatch` does the same in a thread; a
    cancelled call may still take effect.

    **put** and **delete** are last-write-wins, as the protocol wants. A put keeps `created_at`: it
    reads the item and replaces exactly what it read, again where others were faster, until the
    deadline. It cannot know that its value was built on an older one; read-change-write needs
    `get_versioned` and `put_if`, which never lose an update.

    **search** returns items in the order of their names as stored: the same from page to page. Like
    every store without an index it has no use for `query` and `index`: items match by namespace and
    filter, and have no score. **TTL** is refused (`supports_ttl` is False).

    Raises `BackendUnavailableError`, whose `outcome` says whether a change may have happened, and
    `ItemStateError` where an item cannot be read; a search leaves such items out and logs them.
    """

    supports_ttl = False

    def __init__(
        self,
        storage: Storage,
        *,
        tenant: str | Callable[[], str | None],
        parallel: int = _DEFAULT_PARALLEL,
        deadline: float = 30.0,
    ) -> None:
        """Keep the settings; sends nothing.

        `parallel` bounds the reads that one search makes at a time, `deadline` (seconds) how long a
        put competes with others. Raises TypeError, ValueError, and `NoTenantError` for a tenant that
        is empty.
        """
        if not callable(tenant):
            item_base(tenant)
        if type(parallel) is not int or parallel < 1:
            msg = "parallel must be a whole number of at least 1"
            raise ValueError(msg)
        self._storage = storage
        self._tenant = tenant
        self._parallel = parallel
        self._patience = Patience(TreePolicy(deadline=deadline))
        self._reader = ItemReader(storage, parallel)

    # --- the protocol ----------------------------------------------------------------------------

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations; see the class for their order and what holds after a failure.

        Raises `InvalidNamespaceError`, TypeError and ValueError before anything is read or changed.
        """
        return self._run(self._base(), list(ops))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do as `batch` does, in a thread."""
        return await asyncio.to_thread(self._run, self._base(), list(ops))

    # --- with versions ---------------------------------------------------------------------------

    def get_versioned(self, namespace: tuple[str, ...], key: str) -> VersionedItem | None:
        """Return an item with its version; None where there is none."""
        validate_op_namespace(GetOp(namespace, key))
        return self._versioned(place_of(self._base(), namespace, key))

    def put_if(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any],
        expected_version: str | None,
    ) -> str:
        """Replace an item only at this version, create it only with None; return the new version.

        Of any number of callers that name one version exactly one succeeds. Raises
        `ItemConflictError`, and what `put` raises.
        """
        return self._put_if(self._checked(namespace, key), value, expected_version)

    def delete_if(self, namespace: tuple[str, ...], key: str, expected_version: str) -> None:
        """Delete an item only at this version; raises `ItemConflictError` otherwise."""
        self._delete_if(self._checked(namespace, key), expected_version)

    async def aget_versioned(self, namespace: tuple[str, ...], key: str) -> VersionedItem | None:
        """Do as `get_versioned` does, in a thread."""
        validate_op_namespace(GetOp(namespace, key))
        return await asyncio.to_thread(self._versioned, place_of(self._base(), namespace, key))

    async def aput_if(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any],
        expected_version: str | None,
    ) -> str:
        """Do as `put_if` does, in a thread."""
        place = self._checked(namespace, key)
        return await asyncio.to_thread(self._put_if, place, value, expected_version)

    async def adelete_if(self, namespace: tuple[str, ...], key: str, expected_version: str) -> None:
        """Do as `delete_if` does, in a thread."""
        await asyncio.to_thread(self._delete_if, self._checked(namespace, key), expected_version)

    def purge(self) -> int:
        """Erase every item of the tenant for good; return how many objects went.

        Raises `PurgeIncompleteError` where something keeps writing.
        """
        base = self._base()
        try:
            return purge_objects(Objects(self._storage, None), base, PURGE_MAX_PASSES)
        finally:
            self._reader.forget(base)

    # --- reading ---------------------------------------------------------------------------------

    def _base(self) -> str:
        return item_base(self._tenant() if callable(self._tenant) else self._tenant)

    def _run(self, base: str, ops: Sequence[Op]) -> list[Result]:
        puts = self._prepared(base, ops)
        results: list[Result] = [self._answer(base, op) for op in ops]
        for place, draft in puts:
            if draft is None:
                self._remove(place)
            else:
                self._write(draft)
        return results

    def _answer(self, base: str, op: Op) -> Result:
        if isinstance(op, GetOp):
            found = self._versioned(place_of(base, op.namespace, op.key))
            return None if found is None else found.item
        if isinstance(op, SearchOp):
            return list(self._reader.search(base, op))
        if isinstance(op, ListNamespacesOp):
            return list(self._reader.namespaces(base, op))
        return None

    def _versioned(self, place: Place) -> VersionedItem | None:
        return _versioned(self._storage.get(place.key))

    # --- changing --------------------------------------------------------------------------------

    def _checked(self, namespace: tuple[str, ...], key: str) -> Place:
        """Check the names of an item that is to be changed, by the rules of `BaseStore.put`."""
        validate_op_namespace(GetOp(namespace, key))
        if not namespace or namespace[0] == "langgraph":
            msg = 'a namespace has at least one label, and the first is not "langgraph"'
            raise InvalidNamespaceError(msg)
        return place_of(self._base(), namespace, key)

    def _prepared(self, base: str, ops: Sequence[Op]) -> list[tuple[Place, Draft | None]]:
        """Check every operation; return what is to be changed, the last change of each item."""
        puts: dict[str, tuple[Place, Draft | None]] = {}
        for op in ops:
            if not isinstance(op, GetOp | SearchOp | PutOp | ListNamespacesOp):
                msg = f"unknown operation type: {type(op).__name__}"
                raise ValueError(msg)  # noqa: TRY004 - the type that other stores raise for it
            validate_op_namespace(op)
            if isinstance(op, GetOp):
                place_of(base, op.namespace, op.key)
            elif isinstance(op, PutOp):
                if op.ttl is not None:
                    msg = "TTL is not supported by WenchangStore: leave ttl out"
                    raise ValueError(msg)
                place = place_of(base, op.namespace, op.key)
                puts[place.key] = (
                    place,
                    None if op.value is None else Draft(place, op.value, datetime.now(UTC)),
                )
            else:
                check_bounds(op.limit, op.offset)
                if isinstance(op, SearchOp):
                    check_filter(op.filter)
                else:
                    check_depth(op.max_depth)
                    check_conditions(op.match_conditions or ())
        return list(puts.values())

    def _write(self, draft: Draft) -> None:
        """Put whatever is there, keeping when the item was created."""
        current = self._storage.get(draft.place.key)
        for _ in self._attempts():
            try:
                self._replace(draft, current)
            except PreconditionFailedError as error:
                current = self._current(draft.place, error)
            else:
                return

    def _remove(self, place: Place) -> None:
        """Delete whatever is there."""
        current = self._storage.get(place.key)
        for _ in self._attempts():
            if current is None:
                return
            _check_writable(current)
            try:
                self._storage.delete_if_version(place.key, current.version)
            except PreconditionFailedError as error:
                current = self._current(place, error)
            else:
                return

    def _attempts(self) -> Iterator[None]:
        """Yield for each attempt of a race; raise once the deadline is over."""
        deadline = self._patience.deadline()
        attempt = 0
        while True:
            yield
            if self._patience.is_over(deadline):
                raise BackendUnavailableError(
                    "timeout", "too many writers of one item", outcome="not_applied"
                )
            self._patience.pause(attempt, deadline)
            attempt += 1

    def _put_if(self, place: Place, value: Mapping[str, Any], expected: str | None) -> str:
        draft = Draft(place, value, datetime.now(UTC))
        current = None if expected is None else self._at(place, expected)
        try:
            return self._replace(draft, current)
        except PreconditionFailedError as error:
            raise ItemConflictError(_versioned(self._current(place, error))) from error

    def _delete_if(self, place: Place, expected: str) -> None:
        _check_writable(self._at(place, expected))
        try:
            self._storage.delete_if_version(place.key, expected)
        except PreconditionFailedError as error:
            raise ItemConflictError(_versioned(self._current(place, error))) from error

    def _at(self, place: Place, expected: str) -> StoredObject:
        """Return what is stored, if it is at this version; `ItemConflictError` otherwise."""
        current = self._storage.get(place.key)
        if current is None or current.version != expected:
            raise ItemConflictError(_versioned(current))
        return current

    def _replace(self, draft: Draft, current: StoredObject | None) -> str:
        """Write at the version of `current`, or create; return the new version."""
        now = datetime.now(UTC)
        created = now
        if current is not None and (previous := _check_writable(current)) is not None:
            created, now = previous.created_at, max(now, previous.updated_at)
        expected = None if current is None else current.version
        data = draft.body(created, now)
        return self._storage.put_if_version(draft.place.key, data, {}, expected)

    def _current(self, place: Place, error: PreconditionFailedError) -> StoredObject | None:
        """Return what made a condition fail: as the storage read it, else by one more read."""
        if error.current is UNREAD:
            return self._storage.get(place.key)
        return error.current


def _check_writable(stored: StoredObject) -> ItemRecord | None:
    """Return the item, None where it cannot be read; raise where only a newer version may change it."""
    try:
        record = decode_item(stored.data)
    except ItemStateError:
        return None
    if not record.writable:
        raise ItemStateError("newer_format")
    return record


def _versioned(stored: StoredObject | None) -> VersionedItem | None:
    """Return an object as an item; `ItemStateError` where it is none."""
    if stored is None:
        return None
    record = decode_item(stored.data)
    item = Item(
        value=record.value,
        key=record.item,
        namespace=record.namespace,
        created_at=record.created_at,
        updated_at=record.updated_at,
    )
    return VersionedItem(item=item, version=stored.version)
