"""What a proxy saw: counts by method, a bounded list of requests, and how far they overlapped."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# Values worth seeing in a test's failure. Everything else in a query may be a signature, a token
# or a credential, and only its name is kept.
_PLAIN_PARAMETERS = frozenset(
    {
        "alt",
        "comp",
        "delete",
        "delimiter",
        "encoding-type",
        "endOffset",
        "fields",
        "generation",
        "ifGenerationMatch",
        "ifGenerationNotMatch",
        "ifMetagenerationMatch",
        "ifMetagenerationNotMatch",
        "include",
        "list-type",
        "max-keys",
        "maxResults",
        "maxresults",
        "name",
        "partNumber",
        "prefix",
        "projection",
        "restype",
        "start-after",
        "startFrom",
        "startOffset",
        "uploadType",
        "uploads",
        "versions",
    }
)


def without_secrets(target: str) -> str:
    """Return a request target with the values of all but well-known harmless parameters hidden."""
    path, mark, query = target.partition("?")
    if not mark:
        return path
    shown = []
    for part in query.split("&"):
        name, equals, _value = part.partition("=")
        shown.append(part if not equals or unquote(name) in _PLAIN_PARAMETERS else f"{name}=…")
    return f"{path}?{'&'.join(shown)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One request.

    `started` and `ended` number the proxy's events in their order, so two requests overlapped
    exactly if neither ended before the other started; `ended` is None while the client still
    waits. A request ends right before the first byte of its answer is sent or its connection is
    cut. `applied` counts the answers the server gave to it; `status` is what the client was told,
    None if it was told nothing. `started_ns` is a monotonic clock's reading.
    """

    number: int
    method: str
    path: str
    fault: str
    started: int
    started_ns: int
    ended: int | None = None
    applied: int = 0
    status: int | None = None


class RequestLog:
    """A bounded, thread-safe record of requests. Counts are exact even when entries were dropped."""

    def __init__(self, *, limit: int = 10_000) -> None:
        """Keep at most `limit` entries, the newest ones."""
        self._changed = threading.Condition()
        self._entries: deque[LogEntry] = deque()
        self._limit = limit
        self._first = 0
        self._events = 0
        self._open: set[int] = set()
        self._high_water = 0
        self._counts: Counter[str] = Counter()

    def begin(self, method: str, path: str, fault: str) -> int:
        """Record a request that has arrived whole; return its number for the other calls."""
        with self._changed:
            self._events += 1
            self._counts[method] += 1
            number = self._first + len(self._entries)
            self._open.add(number)
            self._high_water = max(self._high_water, len(self._open))
            self._entries.append(
                LogEntry(
                    number=number,
                    method=method,
                    path=without_secrets(path),
                    fault=fault,
                    started=self._events,
                    started_ns=time.monotonic_ns(),
                )
            )
            if len(self._entries) > self._limit:
                self._entries.popleft()
                self._first += 1
            self._changed.notify_all()
            return number

    def applied(self, number: int) -> None:
        """Record that the server has answered this request (once more)."""
        with self._changed:
            self._update(number, lambda entry: replace(entry, applied=entry.applied + 1))

    def end(self, number: int, status: int | None) -> None:
        """Record that the client is about to learn something: a status, or None for a cut.

        Only the first call for a request counts.
        """
        with self._changed:
            if number not in self._open:
                return
            self._open.remove(number)
            self._events += 1
            ended = self._events
            self._update(number, lambda entry: replace(entry, ended=ended, status=status))

    def _update(self, number: int, change: Callable[[LogEntry], LogEntry]) -> None:
        index = number - self._first
        if index >= 0:
            self._entries[index] = change(self._entries[index])
        self._changed.notify_all()

    def clear(self) -> None:
        """Forget entries, counts and the high-water mark; requests under way stay counted open."""
        with self._changed:
            self._first += len(self._entries)
            self._entries.clear()
            self._counts.clear()
            self._high_water = len(self._open)

    def entries(self) -> tuple[LogEntry, ...]:
        """Return the kept entries in order of arrival."""
        with self._changed:
            return tuple(self._entries)

    @property
    def counts(self) -> Mapping[str, int]:
        """How many requests arrived, by method (database proxies: by SQL verb)."""
        with self._changed:
            return dict(self._counts)

    @property
    def total(self) -> int:
        """How many requests arrived."""
        with self._changed:
            return self._counts.total()

    @property
    def high_water(self) -> int:
        """The largest number of requests that were under way at one moment."""
        with self._changed:
            return self._high_water

    def waves(self) -> tuple[tuple[LogEntry, ...], ...]:
        """Group the kept entries into waves; their number is the depth in round trips.

        A wave ends with the first answer in it: a request that arrived later belongs to the next
        wave. The number of waves is the length of the longest chain of requests none of which
        overlapped, which no amount of parallelism could shorten. Over a very fast server the
        fastest connection makes that chain longer than the others'; inject a `Fault.delay` into
        all requests for a figure that depends on the client alone.
        """
        return waves(self.entries())

    def wait_for(
        self, condition: Callable[[Sequence[LogEntry]], bool], *, timeout: float = 10.0
    ) -> None:
        """Block until `condition` holds for the kept entries.

        Raises TimeoutError, with the entries in its text, after `timeout` seconds.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: condition(tuple(self._entries)), timeout):
                seen = "\n".join(map(str, self._entries)) or "(no requests)"
                msg = f"the expected requests did not arrive within {timeout} s; seen:\n{seen}"
                raise TimeoutError(msg)


def waves(entries: Sequence[LogEntry]) -> tuple[tuple[LogEntry, ...], ...]:
    """Group entries as `RequestLog.waves` describes."""
    groups: list[list[LogEntry]] = []
    first_end: int | None = None
    for entry in sorted(entries, key=lambda each: each.started):
        if not groups or (first_end is not None and entry.started > first_end):
            groups.append([])
            first_end = None
        groups[-1].append(entry)
        if entry.ended is not None:
            first_end = entry.ended if first_end is None else min(first_end, entry.ended)
    return tuple(tuple(group) for group in groups)
