"""Storages whose versions are none."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from wenchang.storage import ListedObject, StoredObject
from wenchang_conformance.broken.plain import PlainStorage

__all__ = [
    "BodyHashVersion",
    "ContentHashVersion",
    "EmptyMeansCreate",
    "IntegerVersion",
    "KeysShareVersions",
    "LongVersion",
    "ParsesVersions",
    "PutReportsAnother",
    "QuotedInListings",
    "RestartsAfterDelete",
    "SizeVersion",
    "StripsExpected",
    "UnchangedKeepsVersion",
    "ZeroMeansCreate",
]


class BodyHashVersion(PlainStorage):
    """An S3 ETag: a hash of the body."""

    def new_version(self, key: str, data: bytes, metadata: Mapping[str, str]) -> str:
        return hashlib.sha256(data).hexdigest()


class ContentHashVersion(PlainStorage):
    """A hash of body and metadata: better, and still the same after A, B, A."""

    def new_version(self, key: str, data: bytes, metadata: Mapping[str, str]) -> str:
        text = json.dumps(sorted(metadata.items())).encode()
        return hashlib.sha256(data + b"\0" + text).hexdigest()


class SizeVersion(PlainStorage):
    """Modification time and size, on a clock that did not tick."""

    def new_version(self, key: str, data: bytes, metadata: Mapping[str, str]) -> str:
        return f"1700000000-{len(data)}"


class RestartsAfterDelete(PlainStorage):
    """A row counter that begins at 1 for each new row."""

    def new_version(self, key: str, data: bytes, metadata: Mapping[str, str]) -> str:
        old = self.find(key)
        return str(int(old.version) + 1) if old else "1"


class UnchangedKeepsVersion(PlainStorage):
    """Takes a write of what is there already for none."""

    def store(self, key: str, data: bytes, metadata: dict[str, str]) -> str:
        old = self.find(key)
        if old is not None and old.data == data and old.metadata == metadata:
            return old.version
        return super().store(key, data, metadata)


class KeysShareVersions(PlainStorage):
    """Matches the version of any object."""

    def allows_put(self, found: StoredObject | None, expected: str | None) -> bool:
        if found is None or expected is None:
            return super().allows_put(found, expected)
        return expected in {one.version for one in self.state.objects.values()}


class QuotedInListings(PlainStorage):
    """An ETag, quoted by one call and bare in another."""

    def listed(self, key: str, found: StoredObject) -> ListedObject:
        return ListedObject(key, dict(found.metadata), f'"{found.version}"')


class PutReportsAnother(PlainStorage):
    """Reports the version of the request, not of the object."""

    def store(self, key: str, data: bytes, metadata: dict[str, str]) -> str:
        super().store(key, data, metadata)
        return self.new_version(key, data, metadata)


class EmptyMeansCreate(PlainStorage):
    """Takes an empty version for none."""

    def allows_put(self, found: StoredObject | None, expected: str | None) -> bool:
        return super().allows_put(found, expected or None)


class ZeroMeansCreate(PlainStorage):
    """Hands a version on to a service where 0 means "must not exist"."""

    def allows_put(self, found: StoredObject | None, expected: str | None) -> bool:
        return super().allows_put(found, None if expected == "0" else expected)


class StripsExpected(PlainStorage):
    """A header that loses outer white space."""

    def allows_put(self, found: StoredObject | None, expected: str | None) -> bool:
        return super().allows_put(found, expected.strip() if expected else expected)


class ParsesVersions(PlainStorage):
    """Parses what it should only compare."""

    def allows_put(self, found: StoredObject | None, expected: str | None) -> bool:
        if expected is not None:
            int(expected.rpartition("-")[2])
        return super().allows_put(found, expected)


class IntegerVersion(PlainStorage):
    """Versions that are no text."""

    def new_version(self, key: str, data: bytes, metadata: Mapping[str, str]) -> str:
        text = super().new_version(key, data, metadata)
        return int(text.rpartition("-")[2])  # type: ignore[return-value] # pyright: ignore[reportReturnType] # that is the fault

    def allows_put(self, found: StoredObject | None, expected: str | None) -> bool:
        return str(expected) == str(None if found is None else found.version)


class LongVersion(PlainStorage):
    """Versions that carry half of the object."""

    def new_version(self, key: str, data: bytes, metadata: Mapping[str, str]) -> str:
        return super().new_version(key, data, metadata) + "0" * 300
