"""Items of a LangGraph store as objects of a storage: where they lie, and what their bytes are.

    @items/<tenant>/<label>/…/=<key>

Tenant, labels and key are percent-encoded, those of more than 60 encoded bytes replaced by a hash, so
that different ones never meet. The `=` tells an item from a namespace beneath it, also on services
that make folders out of keys. A body is one JSON object that repeats the names.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal
from urllib.parse import unquote

from wenchang.errors import PermanentError
from wenchang.files._tenants import place_of as encoded
from wenchang.storage.keys import MAX_KEY_BYTES, MAX_KEY_SEGMENTS, check_body

__all__ = [
    "ITEMS_PREFIX",
    "Draft",
    "ItemRecord",
    "ItemStateError",
    "Place",
    "decode_item",
    "is_item",
    "item_base",
    "jump_over_items",
    "namespace_of",
    "namespace_prefix",
    "place_of",
]

ITEMS_PREFIX: Final = "@items"
"""What the keys of all items begin with. No scope begins with `@`, so no memory lies there."""

_FORMAT: Final = 1
_MARK: Final = "="
"""Begins the last segment of an item's key. Encoded labels never hold it."""
_AFTER_MARK: Final = ">"
_HASHED: Final = "%sha256-"
"""Begins the hash of a long name, which cannot be decoded."""
_MAX_DEPTH: Final = 100
_SPLIT_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
"""Two surrogates that stand for one character, which is what they come back as."""

_STATES: Final[dict[str, str]] = {
    "unreadable": "What is stored of this item cannot be read. It can be deleted or replaced.",
    "newer_format": "This item was written by a newer version of wenchang. Upgrade this one.",
}


class ItemStateError(PermanentError):
    """What is stored of an item is damaged, or may only be changed by a newer version of wenchang.

    `reason` is `unreadable` (it can still be deleted or replaced) or `newer_format`. Nothing was
    changed.
    """

    def __init__(self, reason: Literal["unreadable", "newer_format"]) -> None:
        """Keep the reason."""
        super().__init__(_STATES[reason])
        self.reason: Literal["unreadable", "newer_format"] = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An item by its names, and the key of the object that holds it."""

    namespace: tuple[str, ...]
    item: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRecord:
    """An item as it is stored. `writable` is False where a newer version alone may change it."""

    namespace: tuple[str, ...]
    item: str
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    writable: bool


# --- where items lie --------------------------------------------------------------------------------


def item_base(tenant: str | None) -> str:
    """Return the prefix of a tenant's items; `NoTenantError` where there is no tenant."""
    return f"{ITEMS_PREFIX}/{encoded(tenant, ())}/"


def place_of(base: str, namespace: Sequence[str], item: str) -> Place:
    """Return the place of an item; TypeError or ValueError for names that none can have."""
    key = namespace_prefix(base, namespace) + _MARK + _segment("a key", item)
    if len(key) > MAX_KEY_BYTES or key.count("/") >= MAX_KEY_SEGMENTS:
        msg = (
            "namespace and key are too long together: use fewer labels, or shorter ones "
            f"(encoded they have at most {MAX_KEY_BYTES} bytes and {MAX_KEY_SEGMENTS} parts)"
        )
        raise ValueError(msg)
    return Place(namespace=tuple(namespace), item=item, key=key)


def namespace_prefix(base: str, labels: Sequence[str]) -> str:
    """Return what the keys of all items begin with whose namespace begins with these labels."""
    return base + "".join(_segment("a namespace label", label) + "/" for label in labels)


def namespace_of(base: str, key: str) -> tuple[str, ...] | None:
    """Return the namespace of an item by its key; None where only its body can tell."""
    labels = key.removeprefix(base).split("/")[:-1]
    if any(label.startswith(_HASHED) for label in labels):
        return None
    try:
        return tuple(unquote(label, errors="strict") for label in labels)
    except UnicodeDecodeError:
        return None


def is_item(key: str) -> bool:
    """Tell whether the object of a key is an item."""
    return key.rpartition("/")[2].startswith(_MARK)


def jump_over_items(key: str) -> str:
    """Return a place in the order of keys that is just behind all items of an item's namespace."""
    return key.rpartition("/")[0] + "/" + _AFTER_MARK


def _segment(what: str, text: str) -> str:
    """Return a label or a key as it stands in the key of an object."""
    if not isinstance(text, str):
        msg = f"{what} must be a str, not {type(text).__name__}"
        raise TypeError(msg)
    if not text:
        return ""
    try:
        return encoded(text, ())
    except ValueError:
        msg = f"{what} must be valid UTF-8; it holds an unpaired surrogate"
        raise ValueError(msg) from None


# --- what their bytes are ---------------------------------------------------------------------------


class Draft:
    """A checked value on its way into an item; it can be written as often as a race is lost."""

    def __init__(self, place: Place, value: Mapping[str, Any], now: datetime) -> None:
        """Take a copy of the value.

        Raises TypeError where it is not JSON, ValueError where it holds NaN, an infinity, or more
        than 100 levels, `ObjectTooLargeError` where the item would pass 4 MiB.
        """
        self.place = place
        if not isinstance(value, Mapping):
            msg = f"value must be a mapping, not {type(value).__name__}"
            raise TypeError(msg)
        self._value = json.dumps(_plain(value, 0), ensure_ascii=False, separators=(",", ":"))
        check_body(self.body(now, now))

    def body(self, created_at: datetime, updated_at: datetime) -> bytes:
        """Return the bytes of the item."""
        head = {
            "format": _FORMAT,
            "min_writer": _FORMAT,
            "namespace": list(self.place.namespace),
            "key": self.place.item,
            "created_at": created_at.isoformat(),
            "updated_at": updated_at.isoformat(),
        }
        text = json.dumps(head, ensure_ascii=False, separators=(",", ":"))
        whole = f'{text[:-1]},"value":{self._value}}}'
        try:
            return whole.encode()
        except UnicodeEncodeError:
            if _SPLIT_PAIR.search(whole):
                msg = (
                    "the value holds one character as two surrogates, which JSON cannot tell apart"
                )
                raise ValueError(msg) from None
            # An unpaired surrogate survives as an escape, as other stores of JSON keep it.
            return json.dumps(json.loads(whole), separators=(",", ":")).encode()


def _plain(value: Any, depth: int) -> Any:
    """Return a copy of plain JSON types; raise for anything that would not come back equal."""
    if depth > _MAX_DEPTH:
        msg = f"the value has more than {_MAX_DEPTH} levels"
        raise ValueError(msg)
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            msg = "the value holds NaN or an infinity, which JSON does not have"
            raise ValueError(msg)
        return value
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                msg = f"names within the value must be str, not {type(name).__name__}"
                raise TypeError(msg)
        return {name: _plain(inner, depth + 1) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner, depth + 1) for inner in value]
    msg = f"the value must be JSON: {type(value).__name__} is not; convert it first"
    raise TypeError(msg)


def decode_item(data: bytes) -> ItemRecord:
    """Return the item in these bytes; `ItemStateError` where they are none."""
    try:
        found = json.loads(data)
        namespace, item, value = found["namespace"], found["key"], found["value"]
        if not (isinstance(item, str) and isinstance(value, dict) and isinstance(namespace, list)):
            raise ItemStateError("unreadable")
        created_at = datetime.fromisoformat(found["created_at"])
        updated_at = datetime.fromisoformat(found["updated_at"])
        if created_at.tzinfo is None or updated_at.tzinfo is None:
            # They could not be compared with any time of ours.
            raise ItemStateError("unreadable")
        return ItemRecord(
            namespace=tuple(map(str, namespace)),
            item=item,
            value=value,
            created_at=created_at,
            updated_at=updated_at,
            writable=int(found["min_writer"]) <= _FORMAT,
        )
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        raise ItemStateError("unreadable") from None
