"""The rules for keys, prefixes, metadata and bodies, the same for every backend.

Backends call the `check_*` functions before anything is sent, so that a refusal is the same
everywhere and changes nothing. No error text repeats the value that it refuses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from wenchang.storage.errors import (
    InvalidStorageKeyError,
    InvalidStorageMetadataError,
    MetadataTooLargeError,
    ObjectTooLargeError,
    StorageConfigurationError,
)

__all__ = [
    "MAX_BODY_BYTES",
    "MAX_KEY_BYTES",
    "MAX_KEY_SEGMENTS",
    "MAX_METADATA_BYTES",
    "MAX_METADATA_ENTRIES",
    "MAX_PREFIX_BYTES",
    "MAX_PREFIX_SEGMENTS",
    "MAX_RANGE_BYTES",
    "RESERVED_METADATA_PREFIX",
    "UNREADABLE_METADATA",
    "check_body",
    "check_expected",
    "check_key",
    "check_listing",
    "check_metadata",
    "check_namespace",
    "is_valid_key",
    "metadata_size",
]

MAX_KEY_BYTES: Final = 900
"""Bytes of UTF-8 in a key."""
MAX_KEY_SEGMENTS: Final = 200
MAX_PREFIX_BYTES: Final = 124
"""Bytes of UTF-8 in a backend's own prefix with its slash; with a key they are at most 1,024."""
MAX_PREFIX_SEGMENTS: Final = 20
MAX_RANGE_BYTES: Final = 1024
"""Bytes of UTF-8 in the `prefix` and `start_after` of a listing."""
MAX_METADATA_BYTES: Final = 5_000
"""Bytes of UTF-8, names plus values."""
MAX_METADATA_ENTRIES: Final = 64
MAX_BODY_BYTES: Final = 4 * 1024 * 1024
RESERVED_METADATA_PREFIX: Final = "wenchang-"
"""Metadata names that belong to a backend: refused from callers and never returned."""
UNREADABLE_METADATA: Final = "wenchang-unreadable"
"""The one reserved name that is returned: the object's own metadata cannot be decoded."""

# Keys of ASCII that keep every rule; most do, and are told so in one step.
_PLAIN_KEY: Final = re.compile(r"[\w@%=-][\w@%=.-]*(?:/[\w@%=-][\w@%=.-]*){0,199}", re.ASCII)
_METADATA_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,63}")
# C0 controls, DEL and C1 controls are exactly the characters of category Cc.
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_VALUE_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_NONCHARACTER: Final = re.compile(
    "[\ufdd0-\ufdef"
    + "".join(chr(plane << 16 | 0xFFFE) + chr(plane << 16 | 0xFFFF) for plane in range(17))
    + "]"
)


def check_key(key: str) -> None:
    """Raise `InvalidStorageKeyError` unless `key` may name an object; TypeError if it is no str."""
    problem = _key_problem(key)
    if problem is not None:
        raise InvalidStorageKeyError(problem)


def is_valid_key(key: str) -> bool:
    """Tell whether `key`, found in a store, is one that this contract could have written."""
    return _key_problem(key) is None


def _key_problem(key: str) -> str | None:
    """Name the rule that `key` breaks, or None."""
    if not isinstance(key, str):
        msg = f"key must be a str, not {type(key).__name__}"
        raise TypeError(msg)
    if len(key) <= MAX_KEY_BYTES and _PLAIN_KEY.fullmatch(key):
        return None
    if not key:
        return "a key must not be empty"
    if _SURROGATE.search(key):
        return "a key must be valid UTF-8; it holds a lone surrogate"
    if len(key.encode()) > MAX_KEY_BYTES:
        return f"a key has at most {MAX_KEY_BYTES} bytes of UTF-8"
    if "\\" in key:
        return "a key must not hold a backslash"
    if _CONTROL.search(key) or _NONCHARACTER.search(key):
        return "a key must not hold control characters or noncharacters"
    segments = key.split("/")
    if len(segments) > MAX_KEY_SEGMENTS:
        return f"a key has at most {MAX_KEY_SEGMENTS} segments"
    if any(segment in ("", ".", "..") for segment in segments):
        return "a key must not begin or end with a slash or hold an empty, '.' or '..' segment"
    return None


def check_listing(prefix: str, start_after: str | None, limit: int) -> None:
    """Check the arguments of a listing.

    Raises `InvalidStorageKeyError` for a `prefix` or `start_after` over 1,024 bytes of UTF-8, with a
    lone surrogate or a control character; ValueError for a `limit` below 1; TypeError for types.
    """
    if type(limit) is not int:
        msg = f"limit must be an int, not {type(limit).__name__}"
        # A limit that is no int breaks the same rule as one below 1.
        raise ValueError(msg)
    if limit < 1:
        msg = "limit must be at least 1"
        raise ValueError(msg)
    _check_range("prefix", prefix)
    if start_after is not None:
        _check_range("start_after", start_after)


def _check_range(argument: str, text: str) -> None:
    """Check one end of a listing."""
    if not isinstance(text, str):
        msg = f"{argument} must be a str, not {type(text).__name__}"
        raise TypeError(msg)
    if _SURROGATE.search(text):
        msg = f"{argument} must be valid UTF-8; it holds a lone surrogate"
        raise InvalidStorageKeyError(msg)
    if len(text.encode()) > MAX_RANGE_BYTES:
        msg = f"{argument} has at most {MAX_RANGE_BYTES} bytes of UTF-8"
        raise InvalidStorageKeyError(msg)
    if _CONTROL.search(text):
        msg = f"{argument} must not hold control characters"
        raise InvalidStorageKeyError(msg)


def check_namespace(prefix: str) -> None:
    """Check a backend's own prefix, under which all of its keys lie ("" for none).

    Raises `StorageConfigurationError` unless it is a valid key (written without an outer slash) of at
    most 124 bytes, the slash that separates it from the keys included, and 20 segments.
    """
    if prefix == "":
        return
    problem = _key_problem(prefix)
    if problem is None and len(prefix.encode()) >= MAX_PREFIX_BYTES:
        problem = f"at most {MAX_PREFIX_BYTES - 1} bytes of UTF-8"
    if problem is None and prefix.count("/") >= MAX_PREFIX_SEGMENTS:
        problem = f"at most {MAX_PREFIX_SEGMENTS} segments"
    if problem is not None:
        msg = f"option 'prefix' is invalid: {problem.replace('a key', 'it')}"
        raise StorageConfigurationError(msg)


def metadata_size(metadata: Mapping[str, str]) -> int:
    """Return the bytes of UTF-8 of all names and values, as the limit counts them."""
    return sum(len(name.encode()) + len(value.encode()) for name, value in metadata.items())


def check_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return a copy of `metadata` as a plain dict, after checking every rule.

    Raises TypeError unless it is a mapping of str to str, `InvalidStorageMetadataError` for a name or
    value that the contract refuses, `MetadataTooLargeError` above 5,000 bytes.
    """
    if not isinstance(metadata, Mapping):
        msg = f"metadata must be a mapping, not {type(metadata).__name__}"
        raise TypeError(msg)
    copied = dict(metadata)
    for name, value in copied.items():
        if not isinstance(name, str) or not isinstance(value, str):
            msg = "metadata must map str to str"
            raise TypeError(msg)
    if len(copied) > MAX_METADATA_ENTRIES:
        raise InvalidStorageMetadataError("", f"at most {MAX_METADATA_ENTRIES} entries")
    for name, value in copied.items():
        if not _METADATA_NAME.fullmatch(name):
            raise InvalidStorageMetadataError(
                name, "a name is 1 to 64 of a-z, 0-9 and '-', the first a letter"
            )
        if name.startswith(RESERVED_METADATA_PREFIX):
            raise InvalidStorageMetadataError(
                name, f"names that begin with {RESERVED_METADATA_PREFIX!r} are reserved"
            )
        if _VALUE_CONTROL.search(value) or _SURROGATE.search(value):
            raise InvalidStorageMetadataError(
                name, "a value is UTF-8 text without control characters but tab, LF and CR"
            )
    size = metadata_size(copied)
    if size > MAX_METADATA_BYTES:
        raise MetadataTooLargeError(size, MAX_METADATA_BYTES)
    return copied


def check_body(data: bytes) -> None:
    """Raise TypeError unless `data` is bytes, `ObjectTooLargeError` if it is over 4 MiB."""
    if not isinstance(data, bytes):
        msg = f"data must be bytes, not {type(data).__name__}"
        raise TypeError(msg)
    if len(data) > MAX_BODY_BYTES:
        raise ObjectTooLargeError(len(data), MAX_BODY_BYTES)


def check_expected(expected: str | None, *, optional: bool) -> None:
    """Raise TypeError unless `expected` is a str, or None where a create is possible."""
    if expected is None and optional:
        return
    if not isinstance(expected, str):
        wanted = "a str or None" if optional else "a str"
        msg = f"expected must be {wanted}, not {type(expected).__name__}"
        raise TypeError(msg)
