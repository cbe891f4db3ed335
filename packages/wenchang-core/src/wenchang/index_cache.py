"""An optional cache of what the memory index lists, shared by as many processes as use it.

An adopter supplies two functions, `get` and `set`, of any cache. One value holds the whole listing of
one entity. A second key holds a *nonce*, drawn anew at every change, and a value counts only while the
nonce under which it was listed is still the current one. So a listing that was overtaken by a write
is never taken for current, and invalidating needs nothing but `set`.

What a hit may miss: changes by writers that do not share the cache, and by a writer whose `set` failed.
Both last at most until `ttl`. A version that is out of date costs a conflict, never a lost write.
Nothing that the cache does or holds makes an operation fail: a failure is logged by its type, and
storage is listed instead. Cache keys and log lines hold no entity id.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from wenchang.identity import is_async_callable
from wenchang.paths import build_prefix, is_valid_path
from wenchang.storage.contract import ListedObject

__all__ = [
    "DEFAULT_KEY_PREFIX",
    "DEFAULT_TTL_S",
    "EntityListings",
    "InMemoryIndexCache",
    "IndexCache",
]

DEFAULT_KEY_PREFIX: Final = "wenchang:index:"
DEFAULT_TTL_S: Final = 60.0
"""How many seconds `InMemoryIndexCache` keeps a value that is set without a ttl."""

_FORMAT: Final = "wenchang-index-1"
_logger: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IndexCache:
    """The two functions of a cache, both plain and safe to call from several threads at once.

    `get(key)` returns the text that was set, or None. `set(key, value, ttl)` keeps it, for `ttl`
    seconds, or as long as the cache likes where `ttl` is None. Raises TypeError for functions that
    are async or not callable and for other types, ValueError for a ttl that is not positive.
    """

    get: Callable[[str], str | None]
    set: Callable[[str, str, float | None], None]
    ttl: float | None = None
    key_prefix: str = DEFAULT_KEY_PREFIX

    def __post_init__(self) -> None:
        """Check the fields."""
        for name, function in {"get": self.get, "set": self.set}.items():
            if not callable(function) or is_async_callable(function):
                msg = f"{name} must be a plain function, not async"
                raise TypeError(msg)
        if self.ttl is not None:
            _check_seconds("ttl", self.ttl)
        if not isinstance(self.key_prefix, str):
            msg = f"key_prefix must be a str, not {type(self.key_prefix).__name__}"
            raise TypeError(msg)


class InMemoryIndexCache:
    """A cache within this process: `IndexCache(cache.get, cache.set)`. Serves many threads.

    A value that is set without a ttl lives for `default_ttl` seconds, so that changes by other
    processes are seen in bounded time. Above `max_entries` what was set longest ago is dropped. A forked
    child begins with an empty one.
    """

    def __init__(
        self,
        *,
        default_ttl: float = DEFAULT_TTL_S,
        max_entries: int = 10_000,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Set the bounds: TypeError for other types, ValueError unless both are positive."""
        _check_seconds("default_ttl", default_ttl)
        if type(max_entries) is not int:
            msg = f"max_entries must be an int, not {type(max_entries).__name__}"
            raise TypeError(msg)
        if max_entries < 1:
            msg = "max_entries must be positive"
            raise ValueError(msg)
        self._default_ttl = default_ttl
        self._max_entries = max_entries
        self._monotonic = monotonic
        self._reset()
        _caches.add(self)

    def _reset(self) -> None:
        """Begin anew: after a fork a thread that is gone may hold the lock."""
        self._lock = threading.Lock()
        self._values: OrderedDict[str, tuple[str, float]] = OrderedDict()

    def get(self, key: str) -> str | None:
        """Return what is set under `key` and has not run out, or None."""
        with self._lock:
            value, end = self._values.get(key, ("", 0.0))
            if key not in self._values:
                return None
            if self._monotonic() >= end:
                del self._values[key]
                return None
            return value

    def set(self, key: str, value: str, ttl: float | None) -> None:
        """Keep `value` for `ttl` seconds, or the default."""
        with self._lock:
            end = self._monotonic() + (self._default_ttl if ttl is None else ttl)
            self._values.pop(key, None)
            self._values[key] = (value, end)
            while len(self._values) > self._max_entries:
                self._values.popitem(last=False)


_caches: weakref.WeakSet[InMemoryIndexCache] = weakref.WeakSet()


def _reset_after_fork() -> None:
    """Give each cache of a forked child a lock that nobody holds."""
    for cache in list(_caches):
        cache._reset()  # noqa: SLF001 - the class and its fork hook are one subject


os.register_at_fork(after_in_child=_reset_after_fork)


class EntityListings:
    """Listings of entities by way of an `IndexCache`, or always from storage without one."""

    def __init__(self, cache: IndexCache | None) -> None:
        """Keep the cache."""
        self._cache = cache

    def listing(
        self, scope: str, entity_id: str, list_storage: Callable[[], Sequence[ListedObject]]
    ) -> Sequence[ListedObject]:
        """Return the cached listing of an entity, or what `list_storage` gives, which is then cached.

        Every key of the listing is the path of a file of this entity.
        """
        if self._cache is None:
            return list_storage()
        value_key, nonce_key = self._keys(scope, entity_id)
        nonce = self._get(nonce_key)
        if nonce:
            cached = _load(self._get(value_key), nonce, build_prefix(scope, entity_id))
            if cached is not None:
                return cached
        else:
            # Evicted or never set. Older values carry other nonces and are dead from here on.
            nonce = self._renew(nonce_key)
        listed = list_storage()
        # The value carries the nonce, so a change after this check is noticed too; the check only
        # saves storing what is already known to be overtaken.
        if nonce and self._get(nonce_key) == nonce:
            self._set(value_key, _dump(listed, nonce, build_prefix(scope, entity_id)))
        return listed

    def invalidate(self, scope: str, entity_id: str) -> None:
        """Make the next index that includes the entity list storage. Nothing without a cache."""
        if self._cache is not None:
            self._renew(self._keys(scope, entity_id)[1])

    def erase(self, scope: str, entity_id: str) -> None:
        """Invalidate, and overwrite what the cache holds of the entity."""
        if self._cache is not None:
            value_key, nonce_key = self._keys(scope, entity_id)
            self._renew(nonce_key)
            self._set(value_key, "")

    def _keys(self, scope: str, entity_id: str) -> tuple[str, str]:
        """Return the keys of the value and of the nonce: a digest, since ids are not for caches."""
        digest = hashlib.sha256(build_prefix(scope, entity_id).encode()).hexdigest()
        prefix = self._cache.key_prefix if self._cache is not None else ""
        return f"{prefix}{digest}", f"{prefix}{digest}:nonce"

    def _renew(self, nonce_key: str) -> str:
        """Draw a new nonce and set it; return it, or "" where that failed."""
        nonce = os.urandom(12).hex()
        return nonce if self._set(nonce_key, nonce) else ""

    def _get(self, key: str) -> str | None:
        """Return a text from the cache; a failure and anything else count as nothing."""
        if self._cache is None:
            return None
        try:
            value = self._cache.get(key)
        except Exception as error:  # noqa: BLE001 - whatever the cache raises, storage is listed instead
            _logger.warning("the index cache failed to get: %s", type(error).__name__)
            return None
        return value if isinstance(value, str) else None

    def _set(self, key: str, value: str) -> bool:
        """Set a text in the cache; tell whether that worked."""
        if self._cache is None:
            return False
        try:
            self._cache.set(key, value, self._cache.ttl)
        except Exception as error:  # noqa: BLE001 - whatever the cache raises, the operation goes on
            _logger.warning("the index cache failed to set: %s", type(error).__name__)
            return False
        return True


def _dump(listed: Sequence[ListedObject], nonce: str, prefix: str) -> str:
    """Return the cached form of a listing; keys are kept without the entity's prefix."""
    objects = [[o.key.removeprefix(prefix), o.version, dict(o.metadata)] for o in listed]
    value = {"format": _FORMAT, "nonce": nonce, "objects": objects}
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _load(value: str | None, nonce: str, prefix: str) -> list[ListedObject] | None:
    """Return a cached listing, or None unless every part of it is as `_dump` writes it."""
    if not value:
        return None
    try:
        loaded = json.loads(value)
    except (ValueError, RecursionError):
        return None
    if (
        not isinstance(loaded, Mapping)
        or loaded.get("format") != _FORMAT
        or loaded.get("nonce") != nonce
        or not isinstance(loaded.get("objects"), list)
    ):
        return None
    objects: list[ListedObject] = []
    for item in loaded["objects"]:
        match item:
            case [str() as rest, str() as version, dict() as metadata] if (
                version
                and is_valid_path(prefix + rest)
                and all(isinstance(text, str) for text in metadata.values())
            ):
                objects.append(ListedObject(prefix + rest, metadata, version))
            case _:
                return None
    if len({listed.key for listed in objects}) != len(objects):
        return None
    return objects


def _check_seconds(name: str, value: object) -> None:
    """Raise unless `value` is a positive number of seconds."""
    if type(value) is not int and type(value) is not float:
        msg = f"{name} must be a number of seconds, not {type(value).__name__}"
        raise TypeError(msg)
    if not value > 0:
        msg = f"{name} must be positive"
        raise ValueError(msg)
