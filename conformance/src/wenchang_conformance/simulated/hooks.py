"""The hooks of the simulated storage, each of them: an example for hooks of a real one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wenchang.storage import StorageConfigurationError
from wenchang.storage.outcomes import RetryPolicy
from wenchang_conformance.hooks import FaultInjector, FaultKind, StorageHooks
from wenchang_conformance.simulated.client import SimulatedStorage
from wenchang_conformance.simulated.service import Link, Record, Request, Service

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from wenchang.storage import Storage
    from wenchang_conformance.hooks import Target

__all__ = ["SimulatedBackdoor", "SimulatedFaults", "simulated_hooks"]

_POLICY = RetryPolicy(deadline=0.8, attempt_timeout=0.15, backoff_base=0.005, backoff_cap=0.05)


def simulated_hooks(
    open_client: Callable[[Link, RetryPolicy], Storage] = SimulatedStorage,
) -> StorageHooks:
    """Return the hooks of a fresh service; `open_client` makes a handle over a link."""
    service = Service()

    def open_directly() -> Storage:
        return open_client(Link(service), _POLICY)

    return StorageHooks(
        open=open_directly,
        reopen=open_directly,
        faults=lambda: SimulatedFaults(service, open_client),
        backdoor=SimulatedBackdoor(service),
        durable=False,
        shared=False,
        deadline=_POLICY.deadline,
        proves_endpoint=True,
        secrets=("hunter2",),
        wrong_options={"deadline": _open_with_a_wrong_option},
        sdk_errors=list,
    )


def _open_with_a_wrong_option() -> object:
    """Open with a deadline that is none; the policy refuses it."""
    try:
        return RetryPolicy(deadline=0)
    except StorageConfigurationError as error:
        raise error from None


class SimulatedFaults(FaultInjector):
    """Harms what passes over one link."""

    def __init__(
        self, service: Service, open_client: Callable[[Link, RetryPolicy], Storage]
    ) -> None:
        """Stand in front of `service`."""
        self._link = Link(service)
        self._open_client = open_client

    @property
    def supported(self) -> frozenset[FaultKind]:
        """All of them."""
        return frozenset(FaultKind)

    def open(self) -> Storage:
        """Open a handle over the link."""
        return self._open_client(self._link, _POLICY)

    def inject(
        self, kind: FaultKind, *, on: Target = "write", times: int | None = 1, skip: int = 0
    ) -> None:
        """Harm the next requests."""
        self._link.plan.inject(kind, on=on, times=times, skip=skip)

    def chaos(self, rates: Mapping[FaultKind, float], *, seed: int, on: Target = "write") -> None:
        """Harm requests by chance."""
        self._link.plan.chaos(rates, seed=seed, on=on)

    def clear(self) -> None:
        """Let everything pass."""
        self._link.plan.clear()

    def release(self) -> None:
        """Deliver what is held back."""
        self._link.release()

    def requests(self, on: Target = "any") -> int:
        """Count requests."""
        return self._link.plan.requests(on)

    def injected(self) -> int:
        """Count faults."""
        return self._link.plan.injected()

    def close(self) -> None:
        """Let go of what hangs."""
        self._link.closed.set()


class SimulatedBackdoor:
    """Access to the service past every client."""

    def __init__(self, service: Service) -> None:
        """Reach into `service`."""
        self._service = service

    def put_raw(self, key: str, body: bytes) -> None:
        """Store an object without marks."""
        record = Record(body=body, metadata={}, version="", write_id=None)
        self._service.handle(Request(method="put", key=key, record=record))

    def corrupt(self, key: str) -> None:
        """Damage the metadata."""
        self._service.change(key, damaged=True)

    def put_future(self, key: str, body: bytes) -> None:
        """Store an object of a later format."""
        record = Record(body=body, metadata={}, version="", write_id="0" * 20, min_writer=99)
        self._service.handle(Request(method="put", key=key, record=record))

    def list_raw(self) -> Sequence[str]:
        """Return every stored name."""
        return self._service.names()
