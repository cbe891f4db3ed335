"""Which request gets which fault: rules, step lists and seeded chance.

All three are immutable descriptions; what has been used up lives in `Script`, so one description
may serve several proxies.
"""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from wenchang_conformance.faults.kinds import Fault, PassThrough

SubjectT_contra = TypeVar("SubjectT_contra", contravariant=True)
PASS = PassThrough()


def anything(_subject: object) -> bool:
    """Match every request."""
    return True


class _HttpSubject(Protocol):
    @property
    def method(self) -> str: ...
    @property
    def target(self) -> str: ...


def matching(*methods: str, path: str | None = None) -> Callable[[_HttpSubject], bool]:
    """Build a predicate on HTTP requests.

    `methods` are upper-case method names, none meaning all of them. `path` is a regular
    expression searched in the raw request target (path and query as they were sent).
    """
    wanted = frozenset(methods)
    pattern = None if path is None else re.compile(path)

    def matches(request: _HttpSubject) -> bool:
        if wanted and request.method not in wanted:
            return False
        return pattern is None or pattern.search(request.target) is not None

    return matches


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Generic[SubjectT_contra]):
    """Inject `fault` into matching requests: skip the first `skip`, then hit `times` of them.

    `times=None` means for ever. `interloper` is called on the proxy's thread once the server has
    applied the request and before the client learns anything (for a request delivered twice:
    between the two deliveries). It may use the server, directly or through the proxy. What it
    raises is kept in the proxy's `errors`.

    Raises ValueError for an interloper on a fault under which the server has applied nothing by
    then, and for negative counts.
    """

    fault: Fault
    match: Callable[[SubjectT_contra], bool] = anything
    times: int | None = 1
    skip: int = 0
    interloper: Callable[[], object] | None = None

    def __post_init__(self) -> None:
        """Refuse combinations that could never do what they say."""
        if self.interloper is not None and not self.fault.applies:
            msg = f"{self.fault.name} never lets the server act before the client notices"
            raise ValueError(msg)
        if self.skip < 0 or (self.times is not None and self.times < 0):
            msg = "skip and times must not be negative"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps(Generic[SubjectT_contra]):
    """The first matching request gets the first fault, the second the second, and so on.

    Requests after the last step fall through to the rules behind this one.
    """

    faults: tuple[Fault, ...]
    match: Callable[[SubjectT_contra], bool] = anything


@dataclass(frozen=True, slots=True, kw_only=True)
class Chaos(Generic[SubjectT_contra]):
    """Each matching request gets a fault by chance.

    `rates` pairs faults with probabilities that sum to at most 1; the rest passes. The n-th
    matching request meets the same fate for the same seed, whatever else is in the script.
    `limit` ends the chaos after that many injected faults.

    Raises ValueError when the rates are no probabilities.
    """

    seed: int
    rates: tuple[tuple[Fault, float], ...]
    match: Callable[[SubjectT_contra], bool] = anything
    limit: int | None = None

    def __post_init__(self) -> None:
        """Refuse rates that are no probabilities."""
        total = sum(rate for _, rate in self.rates)
        if any(rate < 0 for _, rate in self.rates) or total > 1 + 1e-9:
            msg = "rates must be non-negative and sum to at most 1"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the script says about one request."""

    fault: Fault = PASS
    interloper: Callable[[], object] | None = None


class _Armed(Generic[SubjectT_contra]):
    """One entry of a script with what is left of it."""

    def __init__(
        self, entry: Rule[SubjectT_contra] | Steps[SubjectT_contra] | Chaos[SubjectT_contra]
    ) -> None:
        self._entry = entry
        self._seen = 0
        self._hits = 0
        # Not for secrecy: the same seed has to give the same faults.
        self._random = random.Random(entry.seed if isinstance(entry, Chaos) else 0)  # noqa: S311 - reproducible

    def decide(self, subject: SubjectT_contra) -> Decision | None:
        entry = self._entry
        if not entry.match(subject):
            return None
        self._seen += 1
        if isinstance(entry, Steps):
            if self._seen <= len(entry.faults):
                return Decision(fault=entry.faults[self._seen - 1])
            return None
        if isinstance(entry, Rule):
            if self._seen <= entry.skip:
                return None
            if entry.times is not None and self._hits >= entry.times:
                return None
            self._hits += 1
            return Decision(fault=entry.fault, interloper=entry.interloper)
        return self._chance(entry)

    def _chance(self, entry: Chaos[SubjectT_contra]) -> Decision | None:
        # One draw for each request, also past the limit, keeps the n-th request's fate fixed.
        point = self._random.random()
        if entry.limit is not None and self._hits >= entry.limit:
            return None
        for fault, rate in entry.rates:
            if point < rate:
                self._hits += 1
                return Decision(fault=fault)
            point -= rate
        return None

    @property
    def exhausted(self) -> bool:
        entry = self._entry
        if isinstance(entry, Steps):
            return self._seen >= len(entry.faults)
        limit = entry.times if isinstance(entry, Rule) else entry.limit
        return limit is not None and self._hits >= limit


class Script(Generic[SubjectT_contra]):
    """An ordered, thread-safe list of entries; the first one that has a say decides."""

    def __init__(self) -> None:
        """Begin empty: everything passes."""
        self._lock = threading.Lock()
        self._entries: list[_Armed[SubjectT_contra]] = []

    def extend(
        self, *entries: Rule[SubjectT_contra] | Steps[SubjectT_contra] | Chaos[SubjectT_contra]
    ) -> None:
        """Append entries behind those already there."""
        with self._lock:
            self._entries += [_Armed(entry) for entry in entries]

    def clear(self) -> None:
        """Forget all entries: everything passes again."""
        with self._lock:
            self._entries = []

    @property
    def exhausted(self) -> bool:
        """True when no entry will ever inject anything again.

        A test asserts it at its end, so that a rule which never matched does not pass unnoticed.
        """
        with self._lock:
            return all(entry.exhausted for entry in self._entries)

    def decide(self, subject: SubjectT_contra) -> Decision:
        """Say what happens to this request, using up one turn of the entry that decides.

        Raises whatever a predicate raises. Predicates run under the script's lock and must
        not use the proxy.
        """
        with self._lock:
            for entry in self._entries:
                decision = entry.decide(subject)
                if decision is not None:
                    return decision
        return Decision()
