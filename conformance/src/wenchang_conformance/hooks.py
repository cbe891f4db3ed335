"""What a backend may give the suite beyond handles: the optional hooks.

A storage that is only opened can be asked what its five methods answer. Whether it survives a
restart, a second process, a lost answer or a foreign object can only be asked with help from
someone who knows the backend. That help is a `StorageHooks`: one value for one fresh, empty
namespace. What has no hook is reported *not run*, never *passed*; a hook that cannot do one of its
methods raises `HookUnavailable` with the reason, and only the cases that need it are not run.

A backend names its hooks in its descriptor (`hooks="package.module:attribute"`) or is given them
with `--hooks MODULE`; see `HooksFactory`. In a `StorageConformance` subclass the fixture `hooks`
returns them.

Everything here imports nothing but `wenchang.storage`, so a backend can keep its hooks in a module
of its own package without depending on pytest.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from wenchang.storage import Storage

__all__ = [
    "Backdoor",
    "FaultInjector",
    "FaultKind",
    "FaultPlan",
    "HookUnavailable",
    "HooksFactory",
    "Recipe",
    "StorageHooks",
    "Target",
]

Target = Literal["write", "read", "any"]
"""Which requests a fault meets.

`write` are those that can change an object (puts, creates, deletes); `read` are all others, the
read-back of an unsettled write included.
"""


class HookUnavailable(Exception):  # noqa: N818 - a reason to report, not a fault
    """A hook cannot do what was asked. The case that asked is reported *not run* with this reason."""


class FaultKind(StrEnum):
    """What can happen to one request between a handle and its service.

    *Applied* means that the service carried the request out as sent, its own conditions included.
    A *cut* is one that the client notices at once (a reset connection), not a time-out.
    """

    ANSWER_LOST = "answer-lost"
    """Applied; then the connection is cut before any of the answer arrives."""
    REQUEST_LOST = "request-lost"
    """Not applied; the connection is cut after the client has sent the whole request."""
    LATE = "late"
    """Cut at once; the request reaches the service only at `FaultInjector.release`."""
    TWICE = "twice"
    """Reaches the service twice, one right after the other; the client sees the second answer."""
    DELAY = "delay"
    """Applied and answered, after a short wait that is well below the time-out of an attempt."""
    HANG = "hang"
    """Not applied; accepted, then never answered."""
    HANG_APPLIED = "hang-applied"
    """Applied, then never answered."""
    DRIP = "drip"
    """Applied; the answer comes byte by byte and would not end within the deadline."""
    REFUSED = "refused"
    """Not applied; no connection can be made."""
    BUSY_CONFLICT = "busy-conflict"
    """Not applied; the provider's own code for "try again" under 409 (SQL: a deadlock)."""
    BUSY_RATE = "busy-rate"
    """Not applied; the provider's own code for a rate limit under 429."""
    BUSY_SERVER = "busy-server"
    """Not applied; the provider's own code for "busy" under 503 (SQL: locked)."""
    BARE_ERROR = "bare-error"
    """Not applied; a 503 without the provider's code, as a proxy sends it."""
    BARE_ERROR_APPLIED = "bare-error-applied"
    """Applied; the answer is replaced by a 503 without the provider's code."""
    TORN_ANSWER = "torn-answer"
    """Applied; the answer ends inside its head, within the version where there is one."""
    REJECTED = "rejected"
    """Not applied; credentials or permission refused, by the provider's own code."""
    STRIPPED = "stripped"
    """Applied without its conditions, as an intermediary does that drops unknown headers."""


class FaultInjector(Protocol):
    """Stands between handles and their service and harms what passes, as it is told.

    `FaultPlan` does the bookkeeping for an implementation; it then only has to carry a decision
    out. All methods may be called from any thread.
    """

    @property
    def supported(self) -> frozenset[FaultKind]:
        """The faults that this injector can inject. Cases that need others are not run."""
        ...

    def open(self) -> Storage:
        """Open a handle onto the namespace of the hooks, whose every request passes here.

        Its deadline must be `StorageHooks.deadline`; the time-out of one attempt should be a
        fraction of that.
        """
        ...

    def inject(
        self, kind: FaultKind, *, on: Target = "write", times: int | None = 1, skip: int = 0
    ) -> None:
        """Let the next requests of this target pass `skip` times, then harm `times` of them.

        `times=None` means until `clear`. Earlier injections that are not used up come first.
        """
        ...

    def chaos(self, rates: Mapping[FaultKind, float], *, seed: int, on: Target = "write") -> None:
        """Harm each request of this target by chance until `clear`.

        `rates` are probabilities that sum to at most 1. The same seed gives the n-th such request
        the same fate.
        """
        ...

    def clear(self) -> None:
        """Let everything pass from now on. What `LATE` holds back stays held back."""
        ...

    def release(self) -> None:
        """Deliver what `LATE` holds back, oldest first; return when the service has processed it."""
        ...

    def requests(self, on: Target = "any") -> int:
        """Return how many requests of this target have arrived so far."""
        ...

    def injected(self) -> int:
        """Return how many requests were harmed so far."""
        ...

    def close(self) -> None:
        """End everything the injector started. Held-back requests are never delivered."""
        ...


class Backdoor(Protocol):
    """Raw access to the namespace past the backend, as a console or a copy tool has it.

    Each method may raise `HookUnavailable`: a store that cannot hold a foreign object at all
    cannot be asked to.
    """

    def put_raw(self, key: str, body: bytes) -> None:
        """Store `body` under exactly `key` as a stranger would: without any mark of the backend.

        `key` may be one that the contract refuses, such as `notes/`.
        """
        ...

    def corrupt(self, key: str) -> None:
        """Damage the stored head or metadata of the object at `key` so that it cannot be decoded.

        The body stays whole where it is stored apart from the head.
        """
        ...

    def put_future(self, key: str, body: bytes) -> None:
        """Store an object (or mark the store) as a later release would write it.

        Its `format` and `min_writer` are above what this backend writes.
        """
        ...

    def list_raw(self) -> Sequence[str]:
        """Return the names of everything stored in the namespace, staging and side files included."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How another process opens a handle: an importable function and arguments that can be pickled.

    `target` is `"package.module:function"`; it is called with `args` and returns a `Storage` on
    the same namespace as `StorageHooks.open`.
    """

    target: str
    args: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageHooks:
    """All that a backend gives to the suite, for one fresh and empty namespace.

    Only `open` is required. A new value is made for each case; nothing that one case stores may be
    visible to another.
    """

    open: Callable[[], Storage]
    """Opens one more handle onto the namespace. Where the store is not `shared`, it may return the
    same object each time."""
    reopen: Callable[[], Storage] | None = None
    """Opens a handle as after a restart: it shares no connection, cache or memory with others."""
    spawn: Recipe | None = None
    """How another process opens a handle."""
    faults: Callable[[], FaultInjector] | None = None
    """Makes the fault injector; called at most once a case, and only by cases that need it."""
    backdoor: Backdoor | None = None
    """Access past the backend."""

    local: bool = False
    """Calls cannot lose answers: the requirements `out-*` do not apply."""
    durable: bool = True
    """What was acknowledged survives the process."""
    shared: bool = True
    """A second handle, in another process too, sees the same objects."""
    unsupported: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Requirement id to the reason why the backend does not support it. Each stays visible."""
    deadline: float = 30.0
    """Seconds after which a call of a handle from `FaultInjector.open` ends at the latest. Keep it
    short (2 or 3): cases wait for it."""

    key_bytes: int = 900
    """Bytes left for a key, where a wrapper's prefix takes some of the 900."""
    key_segments: int = 200
    """Segments left for a key."""
    segment_bytes: int | None = None
    """Bytes of one segment after the backend's encoding, where it has a limit (filesystems: 200)."""
    secrets: tuple[str, ...] = ()
    """Strings that no error text may hold: bucket URL, account name, credential."""
    proves_endpoint: bool = False
    """The backend must prove the endpoint's conditions before it writes (not the provider's own)."""
    wrong_options: Mapping[str, Callable[[], object]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    """Option name to a function that opens the backend with a wrong value for it. Opening, or the
    first call, must raise an error that names the option."""
    import_module: str = ""
    """The package whose import must not import an SDK."""
    sdk_modules: tuple[str, ...] = ()
    """Top-level modules of the SDK, absent after a bare import of `import_module`."""
    sdk_errors: Callable[[], Iterable[tuple[BaseException, BaseException]]] | None = None
    """Yields each kind of error of the SDK with the error that the backend makes of it."""


class HooksFactory(Protocol):
    """What a descriptor's `hooks` and `--hooks MODULE` (its attribute `hooks`) name."""

    def __call__(self, location: Any, namespace: str) -> AbstractContextManager[StorageHooks]:
        """Make the hooks of one fresh, empty namespace below `location`.

        `location` is the `StorageLocation` of the run. `namespace` is a new name of at most 24
        characters of `[a-z0-9-]`, never used before; everything the hooks touch lies under it.
        Leaving the context removes what was made and closes what was started.
        """
        ...


@dataclass(slots=True)
class _Order:
    """One injection and what is left of it."""

    kind: FaultKind
    on: Target
    times: int | None
    skip: int


@dataclass(slots=True)
class _Chance:
    """One chaos: its own generator, so that other requests do not shift its draws."""

    rates: tuple[tuple[FaultKind, float], ...]
    on: Target
    draw: random.Random


class FaultPlan:
    """Says for each request which fault meets it, and counts. The bookkeeping of an injector.

    An injector holds one, hands `inject`, `chaos`, `clear`, `requests` and `injected` on to it, and
    calls `decide` once for each request that arrives.
    """

    def __init__(self) -> None:
        """Begin with everything passing."""
        self._lock = threading.Lock()
        self._orders: list[_Order] = []
        self._chances: list[_Chance] = []
        self._arrived: Counter[Target] = Counter()
        self._injected = 0

    def inject(
        self, kind: FaultKind, *, on: Target = "write", times: int | None = 1, skip: int = 0
    ) -> None:
        """See `FaultInjector.inject`."""
        with self._lock:
            self._orders.append(_Order(kind, on, times, skip))

    def chaos(self, rates: Mapping[FaultKind, float], *, seed: int, on: Target = "write") -> None:
        """See `FaultInjector.chaos`."""
        draw = random.Random(seed)  # noqa: S311 - the same seed has to give the same faults
        with self._lock:
            self._chances.append(_Chance(tuple(rates.items()), on, draw))

    def clear(self) -> None:
        """See `FaultInjector.clear`."""
        with self._lock:
            self._orders.clear()
            self._chances.clear()

    def requests(self, on: Target = "any") -> int:
        """See `FaultInjector.requests`."""
        with self._lock:
            return self._arrived.total() if on == "any" else self._arrived[on]

    def injected(self) -> int:
        """See `FaultInjector.injected`."""
        with self._lock:
            return self._injected

    def decide(self, target: Literal["write", "read"]) -> FaultKind | None:
        """Count a request that has arrived and return the fault that meets it, or None."""
        with self._lock:
            self._arrived[target] += 1
            kind = self._ordered(target) or self._by_chance(target)
            if kind is not None:
                self._injected += 1
            return kind

    def _ordered(self, target: Target) -> FaultKind | None:
        for order in self._orders:
            if order.on not in (target, "any"):
                continue
            if order.skip:
                order.skip -= 1
                continue
            if order.times is None:
                return order.kind
            order.times -= 1
            if not order.times:
                self._orders.remove(order)
            return order.kind
        return None

    def _by_chance(self, target: Target) -> FaultKind | None:
        for chance in self._chances:
            if chance.on not in (target, "any"):
                continue
            point = chance.draw.random()
            for kind, rate in chance.rates:
                if point < rate:
                    return kind
                point -= rate
        return None
