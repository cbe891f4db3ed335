"""Storages that mistreat metadata and bodies."""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.header import decode_header, make_header

from wenchang.storage import StoredObject
from wenchang.storage.keys import metadata_size
from wenchang_conformance.broken.plain import PlainStorage

__all__ = [
    "AliasesTheCallersMap",
    "AliasesTheStoredMap",
    "BodyDecoded",
    "BodyStripped",
    "EmptyBodyIsAbsent",
    "EmptyValueDropped",
    "HeadersDecoded",
    "LeaksItsMarks",
    "LowerCasesValues",
    "MergesMetadata",
    "MetadataOfAnotherWrite",
    "NewlineReplaced",
    "SmallMetadata",
    "StripsValues",
    "TakesAnyMetadata",
]


class _Stored(PlainStorage):
    """Changes metadata on its way in."""

    def kept(self, metadata: dict[str, str]) -> dict[str, str]:
        raise AssertionError

    def store(self, key: str, data: bytes, metadata: dict[str, str]) -> str:
        return super().store(key, data, self.kept(metadata))


class StripsValues(_Stored):
    """An HTTP header."""

    def kept(self, metadata: dict[str, str]) -> dict[str, str]:
        return {name: value.strip() for name, value in metadata.items()}


class LowerCasesValues(_Stored):
    """A store that folds case."""

    def kept(self, metadata: dict[str, str]) -> dict[str, str]:
        return {name: value.lower() for name, value in metadata.items()}


class EmptyValueDropped(_Stored):
    """A listing that shows an empty value as none."""

    def kept(self, metadata: dict[str, str]) -> dict[str, str]:
        return {name: value for name, value in metadata.items() if value}


class NewlineReplaced(_Stored):
    """A header writer that folds lines."""

    def kept(self, metadata: dict[str, str]) -> dict[str, str]:
        return {name: value.replace("\n", " ") for name, value in metadata.items()}


class HeadersDecoded(_Stored):
    """A service that decodes what looks like RFC 2047."""

    def kept(self, metadata: dict[str, str]) -> dict[str, str]:
        return {
            name: str(make_header(decode_header(value))) if value.startswith("=?") else value
            for name, value in metadata.items()
        }


class LeaksItsMarks(_Stored):
    """Returns its own entries with the caller's."""

    def kept(self, metadata: dict[str, str]) -> dict[str, str]:
        return {**metadata, "wenchang-id": "0" * 20}


class MergesMetadata(PlainStorage):
    """An update that keeps the old entries."""

    def store(self, key: str, data: bytes, metadata: dict[str, str]) -> str:
        old = self.find(key)
        return super().store(key, data, {**(old.metadata if old else {}), **metadata})


class MetadataOfAnotherWrite(PlainStorage):
    """Body and metadata in two places, the second written later."""

    def store(self, key: str, data: bytes, metadata: dict[str, str]) -> str:
        old = self.find(key)
        version = self.new_version(key, data, metadata)
        self.state.objects[key] = StoredObject(data, old.metadata if old else {}, version)
        # A reader gets in between: the lock is given up for a moment.
        self.state.lock.release()
        time.sleep(0.002)
        self.state.lock.acquire()
        self.state.objects[key] = StoredObject(data, metadata, version)
        return version


class TakesAnyMetadata(PlainStorage):
    """Checks nothing but types."""

    def checked(self, metadata: Mapping[str, str]) -> dict[str, str]:
        if not isinstance(metadata, Mapping) or not all(
            isinstance(text, str) for pair in metadata.items() for text in pair
        ):
            return super().checked(metadata)
        return dict(metadata)


class SmallMetadata(PlainStorage):
    """A provider's 2 KB, unchecked until it is too late."""

    def checked(self, metadata: Mapping[str, str]) -> dict[str, str]:
        kept = super().checked(metadata)
        if metadata_size(kept) > 2048:
            msg = "metadata headers too large"
            raise RuntimeError(msg)
        return kept


class AliasesTheCallersMap(PlainStorage):
    """Keeps the caller's own dict."""

    def checked(self, metadata: Mapping[str, str]) -> dict[str, str]:
        super().checked(metadata)
        return metadata if isinstance(metadata, dict) else dict(metadata)


class AliasesTheStoredMap(PlainStorage):
    """Hands out the dict that it stores."""

    def shown(self, found: StoredObject) -> StoredObject:
        return found


class BodyStripped(PlainStorage):
    """A text column, or an editor's final newline."""

    def store(self, key: str, data: bytes, metadata: dict[str, str]) -> str:
        return super().store(key, data.rstrip(b"\n"), metadata)


class BodyDecoded(PlainStorage):
    """Bodies taken for text."""

    def store(self, key: str, data: bytes, metadata: dict[str, str]) -> str:
        return super().store(key, data.decode(errors="replace").encode(), metadata)


class EmptyBodyIsAbsent(PlainStorage):
    """Takes no bytes for no object."""

    def find(self, key: str) -> StoredObject | None:
        found = super().find(key)
        return found if found is not None and found.data else None
