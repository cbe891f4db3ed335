"""The hook `faults` for any backend that speaks HTTP: a fault injector over `FaultProxy`.

faults=lambda: HttpFaults(
    ("127.0.0.1", server_port),
    open_at=lambda url: MyStorage(endpoint=url, deadline=2.5, attempt_timeout=0.5),
    is_write=matching("PUT", "DELETE"),
    coded={
        FaultKind.BUSY_SERVER: s3_error(503, "SlowDown"),
        FaultKind.REJECTED: s3_error(403, "AccessDenied"),
    },
    version_header="etag",
)
"""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from wenchang_conformance.faults import Chaos, Fault, FaultProxy, Rule
from wenchang_conformance.hooks import FaultInjector, FaultKind, HookUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wenchang.storage import Storage
    from wenchang_conformance.faults import Request
    from wenchang_conformance.hooks import Target

__all__ = ["HttpFaults"]

_PLAIN: Final[Mapping[FaultKind, Fault]] = {
    FaultKind.ANSWER_LOST: Fault.drop_answer(),
    FaultKind.REQUEST_LOST: Fault.drop_request(),
    FaultKind.LATE: Fault.deliver_late(),
    FaultKind.TWICE: Fault.deliver_twice(),
    FaultKind.DELAY: Fault.delay(0.05),
    FaultKind.HANG: Fault.hang(),
    FaultKind.HANG_APPLIED: Fault.hang(applied=True),
    FaultKind.DRIP: Fault.drip(interval=0.1),
    FaultKind.BARE_ERROR: Fault.answer_in_front(503),
    FaultKind.BARE_ERROR_APPLIED: Fault.answer_after(503),
    FaultKind.STRIPPED: Fault.strip_conditions(),
}
_PASSED: Final = Fault.pass_through().name


class HttpFaults(FaultInjector):
    """Stands between handles and one HTTP server on this machine."""

    def __init__(
        self,
        target: tuple[str, int],
        *,
        open_at: Callable[[str], Storage],
        is_write: Callable[[Request], bool],
        coded: Mapping[FaultKind, Fault],
        version_header: str | None = None,
    ) -> None:
        """Start a proxy in front of `target`.

        `open_at` opens a handle whose endpoint is the given URL. `is_write` tells the requests that
        can change an object. `coded` gives the provider's own answers for the `BUSY_…` kinds and
        for `REJECTED`; kinds that are missing are not supported. `version_header` is the header of
        an answer that carries the version, torn by `TORN_ANSWER`.
        """
        self.proxy = FaultProxy(target)
        self._open_at = open_at
        self._is_write = is_write
        self._faults = {
            **_PLAIN,
            FaultKind.TORN_ANSWER: Fault.tear_head(header=version_header),
            **coded,
        }
        self._arrived: Counter[Target] = Counter()
        self._lock = threading.Lock()
        self._outage = ExitStack()
        self._count()

    @property
    def supported(self) -> frozenset[FaultKind]:
        """What the proxy can do, with the provider's own answers as far as they were given."""
        return frozenset(self._faults) | {FaultKind.REFUSED}

    @property
    def url(self) -> str:
        """The proxy's address."""
        return f"http://127.0.0.1:{self.proxy.port}"

    def open(self) -> Storage:
        """Open a handle behind the proxy."""
        return self._open_at(self.url)

    def inject(
        self, kind: FaultKind, *, on: Target = "write", times: int | None = 1, skip: int = 0
    ) -> None:
        """See `FaultInjector.inject`. Connections are refused to everybody, until `clear`."""
        if kind is FaultKind.REFUSED:
            if times is not None or on != "any":
                msg = "a proxy can refuse connections only to everybody and until it is cleared"
                raise HookUnavailable(msg)
            self._outage.enter_context(self.proxy.outage())
            return
        fault = self._faults[kind]
        self.proxy.script(Rule(fault=fault, match=self._match(on), times=times, skip=skip))

    def chaos(self, rates: Mapping[FaultKind, float], *, seed: int, on: Target = "write") -> None:
        """See `FaultInjector.chaos`."""
        pairs = tuple((self._faults[kind], rate) for kind, rate in rates.items())
        self.proxy.script(Chaos(seed=seed, rates=pairs, match=self._match(on)))

    def clear(self) -> None:
        """See `FaultInjector.clear`."""
        self._outage.close()
        self.proxy.clear()
        self._count()

    def release(self) -> None:
        """See `FaultInjector.release`."""
        self.proxy.release()

    def requests(self, on: Target = "any") -> int:
        """See `FaultInjector.requests`."""
        with self._lock:
            return self._arrived.total() if on == "any" else self._arrived[on]

    def injected(self) -> int:
        """See `FaultInjector.injected`; requests that the proxy's log has dropped do not count."""
        return sum(entry.fault != _PASSED for entry in self.proxy.log.entries())

    def close(self) -> None:
        """Stop the proxy. Raises the first error that it met itself."""
        self._outage.close()
        self.proxy.close()
        if self.proxy.errors:
            raise self.proxy.errors[0]

    def _match(self, on: Target) -> Callable[[Request], bool]:
        if on == "any":
            return lambda _request: True
        return lambda request: self._is_write(request) == (on == "write")

    def _count(self) -> None:
        """Look at every request first, without ever having a say in its fate."""

        def count(request: Request) -> bool:
            target: Target = "write" if self._is_write(request) else "read"
            with self._lock:
                self._arrived[target] += 1
            return False

        self.proxy.script(Rule(fault=Fault.pass_through(), match=count, times=None))
