"""Listings: names and ETags from LIST, metadata from the heads of objects that are not known yet.

LIST tells no metadata, and the metadata lies in the first bytes of each object. Those are read at
once for as many objects as there are connections, and only where the pair of key and ETag is new.
What was listed and is gone when its head is read is left out; what has changed is reported as it
is then. Either is a read of that key at a moment of the call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from wenchang.storage import ListedObject, StorageRejectedError
from wenchang.storage.envelope import Head
from wenchang.storage.keys import MAX_KEY_BYTES, is_valid_key
from wenchang.storage.outcomes import LineageMemory
from wenchang_s3.calls import Call
from wenchang_s3.heads import HeadCache, Known, known_of
from wenchang_s3.requests import Found, Page, Requests

__all__ = ["Lister"]

_PAGE: Final = 1000
"""The most that LIST gives at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """An entry of LIST whose name is a key."""

    key: str
    name: str
    etag: str
    size: int


class Lister:
    """Lists the objects below one root ("" or ending in a slash)."""

    def __init__(
        self, requests: Requests, root: str, heads: HeadCache, memory: LineageMemory
    ) -> None:
        """List through `requests`; keep what is learned in `heads` and `memory`."""
        self._requests = requests
        self._root = root
        self._heads = heads
        self._memory = memory

    def page(
        self, call: Call, prefix: str, start_after: str | None, limit: int
    ) -> list[ListedObject]:
        """Return up to `limit` objects; see `Storage.list_page`."""
        return [
            ListedObject(key, dict(known.metadata), known.version)
            for key, known in self._select(call, prefix, start_after, limit, graves=False)
        ]

    def tombstones(self, call: Call, start_after: str | None, limit: int) -> list[tuple[str, str]]:
        """Return key and version of up to `limit` objects, tombstones only, with the rest left out."""
        return [
            (key, known.version)
            for key, known in self._select(call, "", start_after, limit, graves=True)
        ]

    def versions(
        self, call: Call, prefix: str, start_after: str | None, limit: int
    ) -> list[tuple[str, str]]:
        """Return key and ETag of up to `limit` objects without a look at any of them."""
        found: list[tuple[str, str]] = []
        for candidates in self._pages(call, prefix, start_after, limit):
            found += [(one.key, one.etag) for one in candidates[: limit - len(found)]]
            if len(found) == limit:
                break
        return found

    def _select(
        self, call: Call, prefix: str, start_after: str | None, limit: int, *, graves: bool
    ) -> list[tuple[str, Known]]:
        """Return up to `limit` objects that are tombstones, or are none."""
        found: list[tuple[str, Known]] = []
        for candidates in self._pages(call, prefix, start_after, limit):
            position = 0
            while position < len(candidates) and len(found) < limit:
                batch = candidates[position : position + limit - len(found)]
                position += len(batch)
                found += [
                    (key, known)
                    for key, known in self._look(call, batch)
                    if known.tombstone is graves
                ]
            if len(found) == limit:
                break
        return found

    # --- heads ---------------------------------------------------------------------------------

    def _look(self, call: Call, batch: Sequence[_Candidate]) -> Iterator[tuple[str, Known]]:
        """Yield what is there of a batch, in order; read the heads that are not known."""
        known: dict[str, Known] = {}
        for one in batch:
            # Nothing of ours is empty: it has no block to read, and a range of it would be refused.
            there = (
                self._heads.get(one.key, one.etag)
                if one.size
                else Known(metadata={}, version=one.etag)
            )
            if there is not None:
                known[one.name] = there
        unknown = [one.name for one in batch if one.name not in known]
        if unknown:
            read: dict[str, Found | None] = {}
            call.read(lambda seconds: self._requests.heads(unknown, read, seconds))
            for name, found in list(read.items()):
                if found is not None:
                    known[name] = self._learn(name[len(self._root) :], found)
        for one in batch:
            if one.name in known:
                yield one.key, known[one.name]

    def _learn(self, key: str, found: Found) -> Known:
        """Keep what a head tells."""
        known = known_of(found.etag, found.head)
        self._heads.put(key, found.etag, known)
        if isinstance(found.head, Head):
            self._memory.remember(key, known.version, found.head.write_id, found.head.lineage)
        return known

    # --- names ---------------------------------------------------------------------------------

    def _pages(
        self, call: Call, prefix: str, start_after: str | None, limit: int
    ) -> Iterator[list[_Candidate]]:
        """Yield the keys behind `start_after`, page after page, until there are no more."""
        if len(prefix.encode()) > MAX_KEY_BYTES:
            return
        start = self._root + _cut(start_after) if start_after else None
        size, token = min(_PAGE, limit), None
        tokens: set[str] = set()
        last: str | None = None
        while True:
            page = self._page(call, prefix, start, token, size)
            for entry in page.entries:
                if last is not None and entry.name <= last:
                    raise _unsupported("lists keys out of order, or the same page again")
                last = entry.name
            yield [
                one
                for one in self._candidates(page, prefix)
                if start_after is None or one.key > start_after
            ]
            if not page.truncated:
                return
            token = page.token
            if token is None:
                if not page.entries:
                    raise _unsupported("says that there is more, but not where")
                start = last
            elif token in tokens:
                raise _unsupported("sends a listing round in a circle")
            else:
                tokens.add(token)
            # A page that had to be filled up held many entries that are none.
            size = min(_PAGE, size * 2)

    def _page(
        self, call: Call, prefix: str, start: str | None, token: str | None, size: int
    ) -> Page:
        return call.read(
            lambda seconds: self._requests.page(
                self._root + prefix,
                seconds,
                start_after=start if token is None else None,
                token=token,
                size=size,
            )
        )

    def _candidates(self, page: Page, prefix: str) -> Iterator[_Candidate]:
        """Yield the entries of a page that are keys; strangers leave names that are none."""
        whole = self._root + prefix
        for entry in page.entries:
            if not entry.name.startswith(whole):
                raise _unsupported("lists keys that do not begin with the prefix asked for")
            key = entry.name[len(self._root) :]
            if is_valid_key(key):
                yield _Candidate(key=key, name=entry.name, etag=entry.etag, size=entry.size)


def _cut(start_after: str) -> str:
    """Return the beginning of a start that no key is longer than; keys behind it are still compared."""
    return start_after.encode()[:MAX_KEY_BYTES].decode(errors="ignore")


def _unsupported(what: str) -> StorageRejectedError:
    return StorageRejectedError(
        "unsupported",
        f"the server {what}; its listings cannot be relied on, and no memory be kept there",
    )
