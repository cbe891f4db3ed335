"""Storages that mistreat keys."""

from __future__ import annotations

import unicodedata
from urllib.parse import unquote, unquote_plus

from wenchang.storage import InvalidStorageKeyError, ListedObject, StoredObject
from wenchang_conformance.broken.plain import PlainStorage

__all__ = [
    "CaseFolded",
    "CharactersCounted",
    "EncodedOnce",
    "NfcFolded",
    "PlusDecoded",
    "RefusesLongKeys",
    "SlashesCollapsed",
    "SpacesTrimmed",
    "TakesAnyKey",
]


class _Mapped(PlainStorage):
    """Stores a key under another name and forgets the difference."""

    def mapped(self, key: str) -> str:
        raise AssertionError

    def find(self, key: str) -> StoredObject | None:
        return super().find(self.mapped(key))

    def store(self, key: str, data: bytes, metadata: dict[str, str]) -> str:
        return super().store(self.mapped(key), data, metadata)

    def remove(self, key: str) -> None:
        super().remove(self.mapped(key))


class CaseFolded(_Mapped):
    """A case-insensitive collation or file system."""

    def mapped(self, key: str) -> str:
        return key.lower()


class NfcFolded(_Mapped):
    """A store that normalises names."""

    def mapped(self, key: str) -> str:
        return unicodedata.normalize("NFC", key)


class SpacesTrimmed(_Mapped):
    """A column that pads, or a strip() on the way in."""

    def mapped(self, key: str) -> str:
        return key.strip()


class PlusDecoded(_Mapped):
    """A query string decoder that takes a plus for a space."""

    def mapped(self, key: str) -> str:
        return unquote_plus(key)


class EncodedOnce(_Mapped):
    """One percent-decoding too many."""

    def mapped(self, key: str) -> str:
        return unquote(key)


class SlashesCollapsed(PlainStorage):
    """Takes a key with an empty segment, and makes it another key."""

    def check_key(self, key: str) -> None:
        while "//" in key:
            key = key.replace("//", "/")
        super().check_key(key)

    def find(self, key: str) -> StoredObject | None:
        return super().find(key.replace("//", "/"))

    def store(self, key: str, data: bytes, metadata: dict[str, str]) -> str:
        return super().store(key.replace("//", "/"), data, metadata)


class TakesAnyKey(PlainStorage):
    """Checks nothing."""

    def check_key(self, key: str) -> None:
        if not isinstance(key, str):
            super().check_key(key)

    def listed(self, key: str, found: StoredObject) -> ListedObject:
        return super().listed(key, found)


class RefusesLongKeys(PlainStorage):
    """A column of 255 bytes."""

    def check_key(self, key: str) -> None:
        super().check_key(key)
        if len(key.encode()) > 255:
            msg = "a key has at most 255 bytes"
            raise InvalidStorageKeyError(msg)


class CharactersCounted(PlainStorage):
    """Counts characters where the contract counts bytes."""

    def check_key(self, key: str) -> None:
        if isinstance(key, str) and 0 < len(key) <= 900 and key.isprintable():
            super().check_key(key[:100].strip("/"))
        else:
            super().check_key(key)
