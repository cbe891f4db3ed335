"""Listings: the keys behind a start, over as many answers of the service as it takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from wenchang.storage import StorageRejectedError
from wenchang.storage.keys import MAX_KEY_BYTES, is_valid_key
from wenchang_gcs.calls import Call
from wenchang_gcs.heads import Head
from wenchang_gcs.requests import Page, Requests

__all__ = ["list_heads"]

_PAGE: Final = 1000
"""Objects in one answer of the service at most."""


def list_heads(
    call: Call, requests: Requests, root: str, prefix: str, start_after: str | None, limit: int
) -> list[tuple[str, Head]]:
    """Return up to `limit` objects below `root` ("" or ending in a slash); see `Storage.list_page`.

    One request for each 1,000 objects. Raises `StorageRejectedError` where the service lists out of
    order or in a circle.
    """
    found: list[tuple[str, Head]] = []
    if len(prefix.encode()) > MAX_KEY_BYTES:
        return found
    start = None if start_after is None else root + _start_behind(start_after)
    token: str | None = None
    tokens: set[str] = set()
    last: str | None = None
    while True:
        size = min(_PAGE, limit - len(found))
        page = call.read(
            lambda seconds, size=size, token=token: requests.page(  # type: ignore[misc] # mypy has no type for a lambda with defaults
                root + prefix, start, size, token, seconds
            )
        )
        for name, _ in page.entries:
            if last is not None and name <= last:
                raise _unsupported("lists out of order, or the same page again")
            last = name
        found += _wanted(page, root, prefix, start_after)
        if len(found) >= limit or page.following is None:
            return found[:limit]
        token = page.following
        if token in tokens:
            raise _unsupported("sends a listing round in a circle")
        tokens.add(token)


def _wanted(
    page: Page, root: str, prefix: str, start_after: str | None
) -> Iterator[tuple[str, Head]]:
    """Yield the entries of a page that are keys; strangers leave names that are none."""
    for name, head in page.entries:
        if not name.startswith(root + prefix):
            raise _unsupported("lists names that do not begin with the prefix asked for")
        key = name[len(root) :]
        if is_valid_key(key) and (start_after is None or key > start_after):
            yield key, head


def _start_behind(start_after: str) -> str:
    """Return a text at which the keys greater than `start_after` begin.

    The service includes its start. No character of a key is less than a space, so that this begins
    exactly behind, and a full page stays one request. A start that is longer than any key is cut;
    every key is compared all the same.
    """
    if len(start_after.encode()) < MAX_KEY_BYTES:
        return start_after + " "
    return start_after.encode()[:MAX_KEY_BYTES].decode(errors="ignore")


def _unsupported(what: str) -> StorageRejectedError:
    return StorageRejectedError("unsupported", f"the service {what}; it cannot be used as storage")
