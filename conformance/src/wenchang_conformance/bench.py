"""The bench a case works on: handles onto its own namespace, hooks, sizes, and the verdict helpers."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from wenchang.storage import BackendUnavailableError, PreconditionFailedError
from wenchang_conformance.hooks import FaultKind, HookUnavailable
from wenchang_conformance.processes import SpawnedStorage
from wenchang_conformance.trace import Trace, TracedStorage, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from wenchang.storage import Storage
    from wenchang_conformance.hooks import Backdoor, FaultInjector, StorageHooks
    from wenchang_conformance.profiles import Profile, Sizes

__all__ = ["Bench", "ContractViolation", "NotRun", "Settled"]

T = TypeVar("T")
ErrorT = TypeVar("ErrorT", bound=BaseException)


class ContractViolation(AssertionError):  # noqa: N818 - the word a report uses
    """The backend broke the contract. The text says what was done, what came back and what is right.

    `ids` are the requirements that are broken, where a case is about several; empty means all.
    """

    def __init__(self, message: str, ids: tuple[str, ...] = ()) -> None:
        """Keep the text, and the ids where they are narrower than those of the case."""
        super().__init__(message)
        self.ids = ids


class NotRun(HookUnavailable):
    """A case cannot run without the hook `hook`."""

    def __init__(self, hook: str, reason: str) -> None:
        """Keep the name of the hook, which a profile may require."""
        super().__init__(reason)
        self.hook = hook


@dataclass(frozen=True, slots=True)
class Settled:
    """How a write ended: `ending`, what it returned, or what it raised."""

    ending: Literal["returned", "conflict", "unknown", "not_applied"]
    value: object
    error: Exception | None

    def __str__(self) -> str:
        """Return it as a report shows it."""
        return (
            f"returned {shown(self.value)}" if self.error is None else f"raised {shown(self.error)}"
        )


class Bench:
    """One case's view of the backend. Everything it opened is closed by `close`."""

    def __init__(self, hooks: StorageHooks, profile: Profile) -> None:
        """Begin a case on the fresh namespace of `hooks`."""
        self.hooks = hooks
        self.profile = profile
        self.trace = Trace()
        self.note = ""
        """What the report says of the case beside its status: how much of a bounded size it came to."""
        self._opened: list[Storage] = []
        self._spawned: list[SpawnedStorage] = []
        self._injector: FaultInjector | None = None
        self._topic: tuple[str, ...] = ()

    @property
    def sizes(self) -> Sizes:
        """The sizes of the profile."""
        return self.profile.sizes

    # --- handles ---

    def open(self, name: str = "storage") -> TracedStorage:
        """Open one more handle; the steps call it `name`."""
        return self._traced(self.hooks.open(), name)

    def open_two(self) -> tuple[TracedStorage, TracedStorage]:
        """Open two handles onto the same namespace."""
        return self.open("first"), self.open("second")

    def reopen(self, name: str = "reopened") -> TracedStorage:
        """Open a handle as after a restart, or raise `NotRun`."""
        if self.hooks.reopen is None:
            raise NotRun("reopen", "the hook 'reopen' is not given")
        return self._traced(self.hooks.reopen(), name)

    def spawn(self) -> SpawnedStorage:
        """Open a handle in another process, or raise `NotRun`."""
        if self.hooks.spawn is None:
            raise NotRun("spawn", "the hook 'spawn' is not given")
        spawned = SpawnedStorage(self.hooks.spawn)
        self._spawned.append(spawned)
        return spawned

    def _traced(self, handle: Storage, name: str) -> TracedStorage:
        if not any(handle is known for known in self._opened):
            self._opened.append(handle)
        return TracedStorage(handle, name, self.trace)

    # --- hooks ---

    def faults(self, *kinds: FaultKind) -> FaultInjector:
        """Return the fault injector if it can inject all of `kinds`, or raise `NotRun`."""
        if self._injector is None:
            if self.hooks.faults is None:
                raise NotRun("faults", "the hook 'faults' is not given")
            self._injector = self.hooks.faults()
        missing = sorted(set(kinds) - self._injector.supported)
        if missing:
            msg = f"the fault injector cannot inject: {', '.join(missing)}"
            raise HookUnavailable(msg)
        return self._injector

    def open_behind(self, injector: FaultInjector, name: str = "behind faults") -> TracedStorage:
        """Open a handle whose requests pass through `injector`."""
        return self._traced(injector.open(), name)

    def inject(
        self, injector: FaultInjector, kind: FaultKind, *, times: int | None = 1, **options: Any
    ) -> None:
        """Inject a fault and write the step down."""
        wanted = "all" if times is None else str(times)
        self.trace.add(
            f"fault injected: {kind.value} into the next {wanted} request(s) {options or ''}"
        )
        injector.inject(kind, times=times, **options)

    @property
    def backdoor(self) -> Backdoor:
        """Access past the backend, or `NotRun`."""
        if self.hooks.backdoor is None:
            raise NotRun("backdoor", "the hook 'backdoor' is not given")
        return self.hooks.backdoor

    def need_shared(self) -> None:
        """Raise `HookUnavailable` unless a second handle sees the same objects."""
        if not self.hooks.shared:
            msg = "the backend declares that its store is not shared between handles"
            raise HookUnavailable(msg)

    # --- verdicts ---

    @contextmanager
    def about(self, *ids: str) -> Iterator[None]:
        """Attribute what is violated inside the block to these requirements of the case alone."""
        before, self._topic = self._topic, ids
        try:
            yield
        finally:
            self._topic = before

    def require(self, condition: object, message: str) -> None:
        """Raise `ContractViolation` with `message` unless the condition holds."""
        __tracebackhide__ = True
        if not condition:
            raise ContractViolation(message, self._topic)

    def equal(self, actual: object, expected: object, what: str) -> None:
        """Require that `actual` equals `expected`; `what` says what is compared."""
        __tracebackhide__ = True
        if actual != expected:
            msg = f"{what}\n  expected: {shown(expected)}\n  got:      {shown(actual)}"
            raise ContractViolation(msg, self._topic)

    def refused(
        self, error_type: type[ErrorT], what: str, call: Callable[..., object], *arguments: object
    ) -> ErrorT:
        """Require that `call(*arguments)` raises `error_type`; return the error."""
        __tracebackhide__ = True
        try:
            answer = call(*arguments)
        except error_type as error:
            return error
        except Exception as error:
            msg = f"{what}\n  expected: {error_type.__name__}\n  raised:   {shown(error)}"
            raise ContractViolation(msg, self._topic) from error
        msg = f"{what}\n  expected: {error_type.__name__}\n  returned: {shown(answer)}"
        raise ContractViolation(msg, self._topic)

    def conflict(
        self, what: str, call: Callable[..., object], *arguments: object
    ) -> PreconditionFailedError:
        """Require that `call(*arguments)` raises `PreconditionFailedError`."""
        __tracebackhide__ = True
        return self.refused(PreconditionFailedError, what, call, *arguments)

    def accepted(self, what: str, call: Callable[..., T], *arguments: object) -> T:
        """Require that `call(*arguments)` returns; return its value."""
        __tracebackhide__ = True
        try:
            return call(*arguments)
        except Exception as error:
            msg = f"{what}\n  expected: an answer\n  raised:   {shown(error)}"
            raise ContractViolation(msg, self._topic) from error

    def holds(self, storage: TracedStorage, key: str, data: bytes | None, what: str) -> None:
        """Require that `key` holds the body `data`, or nothing where that is None."""
        __tracebackhide__ = True
        found = storage.get(key)
        self.equal(None if found is None else found.data, data, f"{what}: body of key {shown(key)}")

    def settled(self, what: str, call: Callable[..., object], *arguments: object) -> Settled:
        """Run a write and return how it ended, in one of the ways that the contract knows."""
        __tracebackhide__ = True
        try:
            return Settled("returned", call(*arguments), None)
        except PreconditionFailedError as error:
            return Settled("conflict", None, error)
        except BackendUnavailableError as error:
            if error.outcome is None:
                msg = f"{what}\n  expected: an outcome\n  raised:   {shown(error)} without one"
                raise ContractViolation(msg, self._topic) from error
            return Settled(error.outcome, None, error)
        except Exception as error:
            msg = (
                f"{what}\n  expected: a version, PreconditionFailedError or BackendUnavailableError\n"
                f"  raised:   {shown(error)}"
            )
            raise ContractViolation(msg, self._topic) from error

    # --- time ---

    def within(self, seconds: float, call: Callable[[], T], what: str) -> T | BaseException:
        """Run `call` in a thread; return its value, or the error it raised.

        Raises `ContractViolation` if it has not ended after `seconds`.
        """
        result: list[T | BaseException] = []

        def run() -> None:
            try:
                result.append(call())
            except BaseException as error:  # noqa: BLE001 - whatever it raised is the answer
                result.append(error)

        thread = threading.Thread(target=run, daemon=True, name="conformance call")
        thread.start()
        thread.join(seconds)
        if not result:
            msg = f"{what}\n  expected: an answer within {seconds:g} seconds\n  got:      none"
            raise ContractViolation(msg, self._topic)
        return result[0]

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Raise `ContractViolation` in the main thread if the block takes longer than a case may.

        Does nothing where there is no alarm signal, off the main thread, or where somebody else
        uses the alarm.
        """
        seconds = self.sizes.case_seconds
        usable = (
            hasattr(signal, "SIGALRM")
            and threading.current_thread() is threading.main_thread()
            and signal.getitimer(signal.ITIMER_REAL)[0] == 0
        )
        if not usable:
            yield
            return

        def ring(_signum: int, _frame: FrameType | None) -> None:
            msg = f"the case had not ended after {seconds:g} seconds: a call hangs"
            raise ContractViolation(msg)

        before = signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def close(self) -> None:
        """Close every handle, process and injector of the case; the first error is raised last."""
        errors: list[Exception] = []
        closers: list[Callable[[], object]] = [spawned.close for spawned in self._spawned]
        closers += [
            close
            for close in (getattr(handle, "close", None) for handle in self._opened)
            if close is not None
        ]
        if self._injector is not None:
            closers.append(self._injector.close)
        for close in closers:
            try:
                close()
            except Exception as error:  # noqa: BLE001 - the others have to be closed too
                errors.append(error)
        if errors:
            raise errors[0]
