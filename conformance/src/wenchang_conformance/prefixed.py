"""A part of a storage as a storage of its own: every key stands under a prefix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wenchang.storage import (
    ListedObject,
    PreconditionFailedError,
    Storage,
    StoredObject,
)
from wenchang.storage.keys import MAX_KEY_BYTES, MAX_KEY_SEGMENTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["PrefixedStorage"]


class PrefixedStorage:
    """The objects of `inner` whose keys stand under `prefix/`, by the rest of their keys.

    Every call is one call of `inner`, and invalid arguments reach it as invalid ones. A key may be
    `key_bytes` bytes and `key_segments` segments long: the prefix takes its part of the limits.
    """

    def __init__(self, inner: Storage, prefix: str) -> None:
        """Show what stands under `prefix`, which is a valid key."""
        self.inner = inner
        self._prefix = f"{prefix}/"

    @property
    def key_bytes(self) -> int:
        """Bytes left for a key."""
        return MAX_KEY_BYTES - len(self._prefix.encode())

    @property
    def key_segments(self) -> int:
        """Segments left for a key."""
        return MAX_KEY_SEGMENTS - self._prefix.count("/")

    def get(self, key: str) -> StoredObject | None:
        """Call `Storage.get`."""
        return self.inner.get(self._inside(key))

    def put(self, key: str, data: bytes, metadata: Mapping[str, str]) -> str:
        """Call `Storage.put`."""
        return self.inner.put(self._inside(key), data, metadata)

    def put_if_version(
        self, key: str, data: bytes, metadata: Mapping[str, str], expected: str | None
    ) -> str:
        """Call `Storage.put_if_version`."""
        try:
            return self.inner.put_if_version(self._inside(key), data, metadata, expected)
        except PreconditionFailedError as error:
            error.key = self._outside(error.key)
            raise

    def delete_if_version(self, key: str, expected: str) -> None:
        """Call `Storage.delete_if_version`."""
        try:
            self.inner.delete_if_version(self._inside(key), expected)
        except PreconditionFailedError as error:
            error.key = self._outside(error.key)
            raise

    def list_page(self, prefix: str, start_after: str | None, limit: int) -> Sequence[ListedObject]:
        """Call `Storage.list_page`."""
        start = None if start_after is None else self._inside(start_after)
        page = self.inner.list_page(self._inside(prefix), start, limit)
        return [
            ListedObject(self._outside(entry.key), entry.metadata, entry.version) for entry in page
        ]

    def close(self) -> None:
        """Close `inner`, if it can be closed."""
        close = getattr(self.inner, "close", None)
        if close is not None:
            close()

    def _inside(self, text: Any) -> Any:
        """Return a text with the prefix; what is no str passes, so that `inner` refuses it."""
        if not isinstance(text, str):
            return text
        # The empty key must stay one: with the prefix alone it would end in a slash all the same.
        return self._prefix + text

    def _outside(self, key: str) -> str:
        return key.removeprefix(self._prefix)
