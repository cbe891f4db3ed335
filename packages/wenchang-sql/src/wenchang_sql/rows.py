"""How an object looks in a row, and how rows become objects again.

Keys and versions are bytes in the database, so that order and equality are those of bytes on every
server, whatever its collation; metadata is JSON text. A row may have been written by hand: a key
that the contract refuses is left out, metadata that cannot be decoded is marked, and any bytes
make a version that can be handed back.

Listings decode a page at once. Done row by row, in Python, it would cost more than the query.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import chain, repeat
from typing import Any, Final, TypeAlias
from urllib.parse import quote, unquote

from wenchang.storage import ListedObject, StoredObject
from wenchang.storage.errors import InvalidStorageMetadataError, MetadataTooLargeError
from wenchang.storage.keys import (
    MAX_METADATA_ENTRIES,
    UNREADABLE_METADATA,
    check_metadata,
    is_valid_key,
)
from wenchang.storage.outcomes import LINEAGE_LIMIT, UNKNOWN_ID, Found, Lineage

__all__ = [
    "INDEXED_METADATA_BYTES",
    "LINEAGE_CHARACTERS",
    "LINEAGE_PAIRS",
    "decode_version",
    "encode_metadata",
    "encode_version",
    "found",
    "listed",
    "replaced",
    "split_metadata",
    "stored",
    "versions",
]

Row: TypeAlias = "Sequence[Any]"

LINEAGE_PAIRS: Final = 3 * LINEAGE_LIMIT
"""Pairs kept in a row. The database itself writes them, so they cost a few bytes and no memory; the
deeper they go, the longer a lost connection may take to replace while others write on."""
LINEAGE_CHARACTERS: Final = LINEAGE_PAIRS * 21
"""Characters kept of a stored lineage: a write of ours is `id;` there, for its version is its id."""

INDEXED_METADATA_BYTES: Final = 1500
"""Bytes of metadata that a server's index carries, beside a key of 900 and a namespace of 124."""

_WRITE_ID: Final = re.compile(r"[0-9a-f]{20}")
_MAX_VERSION: Final = 256

_dump = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode


# --- values --------------------------------------------------------------------------------------


def encode_metadata(metadata: dict[str, str]) -> str:
    """Return checked metadata as the text that is stored."""
    return _dump(metadata) if metadata else "{}"


def split_metadata(text: str) -> tuple[str | None, str | None]:
    """Return metadata for the column that is indexed, or for the one that is not."""
    if len(text) > INDEXED_METADATA_BYTES or len(text.encode()) > INDEXED_METADATA_BYTES:
        return None, text
    return text, None


def decode_metadata(text: Any) -> dict[str, str]:
    """Return the stored metadata; NULL, as a stranger's row has, is an empty map.

    What is not a map that the contract permits comes back as the one name `wenchang-unreadable`.
    """
    if text is None:
        return {}
    try:
        # MariaDB keeps the text as bytes, of which a hand-written row may have any.
        return check_metadata(json.loads(text.decode() if isinstance(text, bytes) else text))
    except (ValueError, TypeError, RecursionError) as error:
        return {UNREADABLE_METADATA: _why_unreadable(error)}


def _why_unreadable(error: Exception) -> str:
    """Say in a few fixed words why stored metadata cannot be decoded."""
    if isinstance(error, MetadataTooLargeError | InvalidStorageMetadataError | TypeError):
        return "not a map that the contract permits"
    return "not JSON"


def encode_version(version: str) -> bytes | None:
    """Return a caller's version as it is stored, or None if no row can have it."""
    if not 0 < len(version) <= _MAX_VERSION:
        return None
    try:
        return version.encode("latin-1")
    except UnicodeEncodeError:
        return None


def decode_version(stored_bytes: Any) -> str:
    """Return a stored version; latin-1 gives any bytes, of a hand-written row too, a text."""
    return str(stored_bytes, "latin-1")


def replaced(version: str) -> dict[str, str | None]:
    """Return the parameters from which the database makes the lineage pair of a replaced version.

    `expected` is the version where it may be a write id, and the pair then is that alone. Only a row
    that was written or changed by hand has another version: `replaced` stands behind its write id.
    """
    ours = _WRITE_ID.fullmatch(version) is not None
    return {
        "expected": version if ours else None,
        "replaced": f":{quote(version, safe='')};",
    }


def _decode_lineage(text: str | None) -> Lineage:
    """Return the pairs of a stored lineage; one that was cut off at the end is dropped."""
    pairs = []
    for part in (text or "").split(";")[:-1]:
        write_id, colon, version = part.partition(":")
        if _WRITE_ID.fullmatch(write_id) or (colon and write_id == UNKNOWN_ID):
            pairs.append((write_id, unquote(version) if colon else write_id))
    return tuple(pairs)


# --- objects -------------------------------------------------------------------------------------


def stored(row: Row) -> StoredObject:
    """Return the object of a row of body, metadata and version."""
    return StoredObject(bytes(row[0]), _decode_page((row[1],))[0], decode_version(row[2]))


def found(row: Row) -> Found:
    """Return what a read-back saw, of a row of body, metadata, version, write id and lineage."""
    write_id = row[3]
    ours = isinstance(write_id, str) and _WRITE_ID.fullmatch(write_id) is not None
    return Found(
        current=stored(row),
        write_id=write_id if ours else None,
        lineage=_decode_lineage(row[4]),
    )


def listed(rows: Sequence[Row]) -> list[ListedObject]:
    """Return the objects of rows of key, metadata and version, without keys that are not ours."""
    if not rows:
        return []
    keys, texts, tokens = zip(*rows, strict=True)
    names = _keys(keys)
    entries = _listed(names, _decode_page(texts), _tokens(tokens))
    return [entry for entry in entries if entry.key is not None] if None in names else entries


def versions(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Return `(key, version)` of rows of key and version, without keys that are not ours."""
    if not rows:
        return []
    keys, tokens = zip(*rows, strict=True)
    return [
        (key, version)
        for key, version in zip(_keys(keys), _tokens(tokens), strict=True)
        if key is not None
    ]


_new_entry: Final = tuple.__new__


def _listed(
    keys: Sequence[str | None], metadata: Sequence[dict[str, str]], tokens: Sequence[str]
) -> list[ListedObject]:
    """Return the entries of a page, made without calling Python for each of them."""
    fields = zip(keys, metadata, tokens, strict=True)
    return list(map(_new_entry, repeat(ListedObject, len(keys)), fields))


# --- whole pages ---------------------------------------------------------------------------------

# Keys by their bytes, and metadata by its text: what is decoded depends on nothing else. An agent lists
# the same files over and over; decoding them took most of the time of a page. Emptied when full.
_known_keys: Final[dict[Any, str | None]] = {}
_known_metadata: Final[dict[Any, dict[str, str]]] = {}
_MAX_KNOWN: Final = 8192

# What no key of ours has once it stands between slashes, seen over a whole page at once: an empty
# segment or one that begins with a dot. The latter is only suspicious, and looked at by itself.
_SUSPICIOUS: Final = re.compile(r"/[/.]")
# In keys of this length there cannot be more than 200 segments.
_SHORT: Final = 400
# Line feed joins the keys of a page; control characters and noncharacters make a key suspicious.
_BAD_CHARACTER: Final = re.compile(
    "[\x00-\x09\x0b-\x1f\\\\\x7f-\x9f\ufdd0-\ufdef"
    + "".join(chr(plane << 16 | 0xFFFE) + chr(plane << 16 | 0xFFFF) for plane in range(17))
    + "]"
)
_BAD_ASCII: Final = bytes([*range(0x0A), *range(0x0B, 0x20), 0x5C, 0x7F])


def _keys(raw: tuple[Any, ...]) -> Sequence[str | None]:
    """Return the keys of a page, None for each that the contract refuses."""
    try:
        return list(map(_known_keys.__getitem__, raw))
    except KeyError:
        keys = _decode_keys(raw)
    if len(_known_keys) > _MAX_KNOWN:
        _known_keys.clear()
    _known_keys.update(zip(raw, keys, strict=True))
    return keys


def _decode_keys(raw: tuple[Any, ...]) -> Sequence[str | None]:
    """Decode the keys of a page at once; for anything unusual, one by one."""
    joined = b"\n".join(raw)
    try:
        text = joined.decode()
    except UnicodeDecodeError:
        return [_key(one) for one in raw]
    if text.isascii():
        clean = len(joined.translate(None, _BAD_ASCII)) == len(joined)
    else:
        clean = _BAD_CHARACTER.search(text) is None
    if clean and max(set(map(len, raw))) <= _SHORT:
        keys = text.split("\n")
        framed = f"/{text}/".replace("\n", "/")
        if len(keys) == len(raw) and not _SUSPICIOUS.search(framed):
            return keys
    return [_key(one) for one in raw]


def _key(raw: Any) -> str | None:
    """Return one key, or None if the contract refuses it."""
    try:
        key = bytes(raw).decode()
    except UnicodeDecodeError:
        return None
    return key if is_valid_key(key) else None


def _tokens(raw: tuple[Any, ...]) -> Sequence[str]:
    """Return the versions of a page."""
    tokens = b"\n".join(raw).decode("latin-1").split("\n")
    # Only a version written by hand can hold a line feed.
    return tokens if len(tokens) == len(raw) else [decode_version(one) for one in raw]


_NAME: Final = re.compile(r"(?!wenchang-)[a-z][a-z0-9-]{0,63}")
_STRINGS: Final[frozenset[type]] = frozenset({str})
_BYTES: Final[frozenset[type]] = frozenset({bytes})
_SEPARATOR: Final = "\n,0,\n"
# JSON refuses raw control characters below U+0020, so a value can hold one, or a lone surrogate, only
# by an escape. Those above it may stand there as they are.
_ESCAPES: Final = ("\\u", "\\b", "\\f")
_HIGH_CONTROL: Final = re.compile("[\x7f-\x9f]")
# A text of this many characters cannot hold more than 5,000 bytes of UTF-8.
_SURELY_SMALL: Final = 1250


def _decode_page(texts: Sequence[Any]) -> list[dict[str, str]]:
    """Return the metadata of a page, each map the caller's own."""
    try:
        return list(map(dict.copy, map(_known_metadata.__getitem__, texts)))
    except KeyError:
        # Another thread may empty it at any moment: what is needed is taken out of it at once.
        known = {text: _known_metadata.get(text) for text in texts}
    missing = [text for text, entry in known.items() if entry is None]
    fresh = dict(zip(missing, _decode_all(missing), strict=True)) if missing else {}
    if len(_known_metadata) > _MAX_KNOWN:
        _known_metadata.clear()
    _known_metadata.update(
        (text, entry)
        for text, entry in fresh.items()
        if text is not None and len(text) <= _SURELY_SMALL
    )
    known.update(fresh)
    return [(known[text] or {}).copy() for text in texts]


def _decode_all(texts: Sequence[Any]) -> Sequence[dict[str, str]]:
    """Decode many metadata texts at once.

    All are parsed as one JSON array. They are parted by a zero between line feeds: neither can
    stand inside a JSON string or object, so no damaged text can take in part of its neighbour without
    failing one of the checks. Then, and for anything unusual, each is decoded by itself.
    """
    kinds = frozenset(map(type, texts))
    if kinds not in (_STRINGS, _BYTES) or max(map(len, texts)) > _SURELY_SMALL:
        return [decode_metadata(text) for text in texts]
    try:
        if kinds == _STRINGS:
            joined = _SEPARATOR.join(texts)
        else:
            joined = _SEPARATOR.encode().join(texts).decode()
        parsed = json.loads(f"[{joined}]")
    except (ValueError, RecursionError):
        return [decode_metadata(text) for text in texts]
    maps: list[dict[str, str]] = parsed[::2]
    if len(parsed) != 2 * len(texts) - 1 or not _are_permitted(maps, joined):
        return [decode_metadata(text) for text in texts]
    return maps


def _are_permitted(maps: list[Any], joined: str) -> bool:
    """Tell whether all are maps that hold only names and values that the contract permits.

    May say no to a rare map that is permitted: it is then decoded by itself.
    """
    if set(map(type, maps)) != {dict} or max(map(len, maps)) > MAX_METADATA_ENTRIES:
        return False
    if not all(map(_NAME.fullmatch, set().union(*maps))):
        return False
    if not set(map(type, chain.from_iterable(map(dict.values, maps)))) <= _STRINGS:
        return False
    if any(escape in joined for escape in _ESCAPES):
        return False
    if joined.isascii():
        return "\x7f" not in joined
    return _HIGH_CONTROL.search(joined) is None
