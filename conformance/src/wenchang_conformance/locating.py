"""From a URL to hooks: where the suite may work, and how it opens handles there."""

from __future__ import annotations

import dataclasses
import importlib
import secrets
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from wenchang.storage import PreconditionFailedError
from wenchang.storage.locations import StorageLocation
from wenchang.storage.registry import find_backend, open_storage
from wenchang_conformance.hooks import HooksFactory, Recipe, StorageHooks
from wenchang_conformance.prefixed import PrefixedStorage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wenchang.storage import Storage
    from wenchang.storage.descriptor import BackendDescriptor

__all__ = [
    "hooks_at",
    "load_factory",
    "new_namespace",
    "open_prefixed",
    "shown_location",
    "url_hooks",
]

_PAGE: Final = 200


def new_namespace() -> str:
    """Return a name that was never used before."""
    return f"check-{secrets.token_hex(8)}"


def shown_location(location: StorageLocation) -> str:
    """Return a location as a report may show it: without user, password and options."""
    return f"{location.scheme}://{location.address.rpartition('@')[2]}"


def load_factory(name: str) -> HooksFactory:
    """Return what `module:attribute` names; the attribute is `hooks` where none is given.

    Raises ImportError or AttributeError if there is no such thing.
    """
    module_name, _, attribute = name.partition(":")
    found: HooksFactory = getattr(importlib.import_module(module_name), attribute or "hooks")
    return found


@contextmanager
def hooks_at(
    location: StorageLocation, *, factory: HooksFactory | None = None
) -> Iterator[StorageHooks]:
    """Make the hooks of a fresh namespace at a location, and remove at the end what was made.

    `factory` stands for the hooks that the backend's descriptor names. Where there are none, the
    handles work under a random prefix, and only what a URL gives can be proved.
    """
    descriptor = find_backend(location.scheme)
    if factory is None and descriptor.hooks:
        factory = load_factory(descriptor.hooks)
    namespace = new_namespace()
    if factory is None:
        with url_hooks(location, descriptor, namespace) as hooks:
            yield hooks
        return
    with factory(location, namespace) as hooks:
        unsupported = {**descriptor.unsupported, **hooks.unsupported}
        yield dataclasses.replace(hooks, unsupported=unsupported)


@contextmanager
def url_hooks(
    location: StorageLocation, descriptor: BackendDescriptor, namespace: str
) -> Iterator[StorageHooks]:
    """Make hooks from nothing but a URL and its descriptor."""
    opened: list[PrefixedStorage] = []

    def open_one() -> Storage:
        if opened and not descriptor.shared:
            return opened[0]
        opened.append(open_prefixed(location, namespace))
        return opened[-1]

    wrong = dataclasses.replace(location, options={**location.options, "no_such_option": "1"})
    probe = PrefixedStorage(open_prefixed(location, namespace).inner, namespace)
    try:
        yield StorageHooks(
            open=open_one,
            reopen=open_one if descriptor.durable and descriptor.shared else None,
            spawn=(
                Recipe(target=f"{__name__}:open_prefixed", args=(location, namespace))
                if descriptor.shared
                else None
            ),
            local=descriptor.local,
            durable=descriptor.durable,
            shared=descriptor.shared,
            unsupported=descriptor.unsupported,
            key_bytes=probe.key_bytes,
            key_segments=probe.key_segments,
            wrong_options={"no_such_option": partial(open_storage, wrong)},
        )
    finally:
        if descriptor.shared:
            _remove_all(probe)
        elif opened:
            _remove_all(opened[0])
        probe.close()
        for handle in opened:
            handle.close()


def open_prefixed(location: StorageLocation, namespace: str) -> PrefixedStorage:
    """Open a handle that works under a prefix; also the recipe for another process."""
    return PrefixedStorage(open_storage(location), namespace)


def _remove_all(storage: Any) -> None:
    """Delete every object that a handle lists."""
    while True:
        page = storage.list_page("", None, _PAGE)
        for entry in page:
            try:
                storage.delete_if_version(entry.key, entry.version)
            except PreconditionFailedError:
                # A late write came between; the next round sees it.
                continue
        if not page:
            return
