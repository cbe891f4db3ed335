"""Pages of a listing, put together from as many answers of the service as it takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from wenchang.errors import BackendUnavailableError
from wenchang.storage import StorageRejectedError
from wenchang.storage.keys import MAX_KEY_BYTES, is_valid_key
from wenchang.storage.outcomes import RetryPolicy, Settler
from wenchang_azure.calls import Page, marks_of, token_of
from wenchang_azure.errors import HIERARCHY, TornAnswerError
from wenchang_azure.names import MAX_NAME_CHARACTERS, decode_name, encode_name
from wenchang_azure.tokens import bare_etag

if TYPE_CHECKING:
    from azure.storage.blob import BlobProperties

    from wenchang.storage.outcomes import ReadAttempt
    from wenchang_azure.calls import Calls
    from wenchang_azure.marks import Marks
    from wenchang_azure.tokens import Token

__all__ = ["Entry", "Lister", "Remaining"]

_MAX_ANSWER: Final = 2_000
"""Blobs to ask for at once at most. The service gives 5,000, but the SDK takes seconds to read those."""
_REFILL: Final = 1_000
"""Blobs to ask for when some of an answer were none of ours: a few at a time could take for ever."""
_FOLDER: Final = "hdi_isfolder"
_START_FROM: Final = "2026-02-06"
"""The service version that can begin a listing at a name."""


class Remaining:
    """What is left of one call's deadline, for a call that takes more than one exchange."""

    def __init__(self, policy: RetryPolicy) -> None:
        """Begin now."""
        self._policy = policy
        self._ends = time.monotonic() + policy.deadline

    def settler(self) -> Settler:
        """Return a settler bounded by what is left; nothing left is a time-out of this read."""
        left = self._ends - time.monotonic()
        if left <= 0:
            raise BackendUnavailableError("timeout", outcome="not_applied")
        policy = RetryPolicy(deadline=left, attempt_timeout=self._policy.attempt_timeout)
        return Settler(policy, confirm_refusals=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One blob of ours, or of a stranger with a usable name."""

    key: str
    token: Token
    marks: Marks


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """The names that a page can hold."""

    prefix: str
    start: str | None
    """Names up to this one are left out."""


class Lister:
    """Lists the blobs under a root name in the order of their keys."""

    def __init__(self, calls: Calls, policy: RetryPolicy, root: str, *, begins_at: bool) -> None:
        """List below `root`; `begins_at` tells whether the service can begin at a name."""
        self._calls = calls
        self._policy = policy
        self._root = root
        # Turned off for good at the first sign that the service does not do it.
        self._begins_at = begins_at

    def page(self, prefix: str, start_after: str | None, limit: int) -> list[Entry]:
        """Return up to `limit` entries; the arguments are checked.

        Raises `StorageRejectedError` where the service lists in another order or without end.
        """
        span = self._span(prefix, start_after)
        entries: list[Entry] = []
        if span is None:
            return entries
        remaining = Remaining(self._policy)
        marker: str | None = None
        last, count = "", self._first_count(span, limit)
        while True:
            page = remaining.settler().read(self._ask(span, marker, count))
            if marker is None and span.start is not None and self._begins_at:
                self._begins_at = page.began_at_start and _begins_there(page, span.start)
            for item in page.items:
                key = self._key(item)
                if key is None:
                    continue
                if item.name <= last:
                    raise StorageRejectedError("unsupported", HIERARCHY)
                last = item.name
                if span.start is not None and item.name <= span.start:
                    continue
                entries.append(_entry(key, item))
                if len(entries) == limit:
                    return entries
            if page.marker is None:
                return entries
            if page.marker == marker:
                msg = "the service repeats a page of a listing; it cannot be used as storage"
                raise StorageRejectedError("unsupported", msg)
            marker = page.marker
            skipping = span.start is not None and not self._begins_at and not entries
            count = (
                _MAX_ANSWER if skipping else min(max(limit - len(entries), _REFILL), _MAX_ANSWER)
            )

    def _first_count(self, span: _Span, limit: int) -> int:
        if span.start is None:
            return min(limit, _MAX_ANSWER)
        # The start itself may come back. Without its help the service begins far before it.
        return min(limit + 1, _MAX_ANSWER) if self._begins_at else _MAX_ANSWER

    def _ask(
        self, span: _Span, marker: str | None, count: int
    ) -> Callable[[float], ReadAttempt[Page]]:
        start = span.start[:MAX_NAME_CHARACTERS] if span.start and self._begins_at else None

        def ask(seconds: float) -> ReadAttempt[Page]:
            return self._calls.list(span.prefix, start, marker, count, seconds)

        return ask

    def _span(self, prefix: str, start_after: str | None) -> _Span | None:
        """Return the names that can match, None where no key can."""
        # The service takes a backslash for a slash, and no key holds one.
        if len(prefix.encode()) > MAX_KEY_BYTES or "\\" in prefix:
            return None
        names = self._root + encode_name(prefix)
        if start_after is None or start_after < prefix:
            return _Span(prefix=names, start=None)
        if not start_after.startswith(prefix):
            # It is greater and another at some character, so everything that matches is before it.
            return None
        return _Span(prefix=names, start=self._root + encode_name(start_after))

    def _key(self, item: BlobProperties) -> str | None:
        """Return the key of a blob; None for what is not an object of this storage."""
        name = item.name
        if not isinstance(name, str) or not name.startswith(self._root) or _is_folder(item):
            return None
        key = decode_name(name[len(self._root) :])
        return key if key is not None and is_valid_key(key) else None


def can_begin_at(api_version: str) -> bool:
    """Tell whether a service version knows how to begin a listing at a name."""
    return api_version >= _START_FROM


def _begins_there(page: Page, start: str) -> bool:
    """Tell whether the answer began where it was told to, as far as it shows."""
    return not page.items or page.items[0].name >= start[:MAX_NAME_CHARACTERS]


def _entry(key: str, item: BlobProperties) -> Entry:
    etag = bare_etag(item.etag)
    if etag is None:
        raise BackendUnavailableError("unavailable", outcome="not_applied") from TornAnswerError()
    marks = marks_of(item)
    return Entry(key=key, token=token_of(etag, marks), marks=marks)


def _is_folder(item: BlobProperties) -> bool:
    """Recognise the entries that stand for folders, also in accounts that once served as a disk."""
    return any(
        name.lower() == _FOLDER and str(value).lower() == "true"
        for name, value in (item.metadata or {}).items()
    )
