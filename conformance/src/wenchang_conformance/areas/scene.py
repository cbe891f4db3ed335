"""What the cases about lost answers and outages look at: a handle behind faults, and the truth."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from wenchang_conformance.trace import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wenchang_conformance.bench import Bench, Settled
    from wenchang_conformance.hooks import FaultInjector, FaultKind
    from wenchang_conformance.trace import TracedStorage

__all__ = ["Scene", "WriteKind", "set_up"]

WriteKind = Literal["create", "replace", "put"]


@dataclass(frozen=True, slots=True)
class Scene:
    """A handle behind faults, one that sees the truth, and what is between."""

    bench: Bench
    injector: FaultInjector
    storage: TracedStorage
    truth: TracedStorage

    def prepare(self, kind: WriteKind, key: str) -> tuple[Callable[[], str], str | None]:
        """Put the key into the state the write needs; return the write and the version it meets.

        The body that it writes is `b"ours"`.
        """
        version = None
        if kind != "create":
            version = self.truth.put(key, b"before", {"n": "before"})
        metadata = {"n": "ours"}
        if kind == "put":
            return lambda: self.storage.put(key, b"ours", metadata), version
        return lambda: self.storage.put_if_version(key, b"ours", metadata, version), version

    def inject(self, kind: FaultKind, *, times: int | None = 1, on: str = "write") -> None:
        """Inject and write the step down."""
        self.bench.inject(self.injector, kind, times=times, on=on)

    def calm(self) -> None:
        """Let everything pass again."""
        self.injector.clear()
        self.bench.trace.add("faults cleared")

    @contextmanager
    def counted(self, what: str) -> Iterator[None]:
        """Write down how many requests the block sends: it shows what was tried again, and what not."""
        before, written = self.injector.requests("any"), self.injector.requests("write")
        try:
            yield
        finally:
            sent = self.injector.requests("any") - before
            writes = self.injector.requests("write") - written
            self.bench.trace.add(f"{what} sent {sent} request(s), {writes} of them to write")

    def landed(self, ended: Settled, key: str, what: str) -> None:
        """Require success with the version that the key has now, and our body there."""
        __tracebackhide__ = True
        self.bench.require(
            ended.ending == "returned",
            f"{what}; the write was applied and nobody else wrote, so it must return its version, "
            f"but it {ended}",
        )
        found = self.truth.get(key)
        self.bench.require(
            found is not None and found.data == b"ours" and found.version == ended.value,
            f"{what}; it {ended}, but a second handle reads {shown(found)}",
        )

    def honest(self, ended: Settled, key: str, what: str, *, rival: bool = False) -> None:
        """Require that what a write said of itself is true, now and when late requests arrive."""
        __tracebackhide__ = True
        found = self.truth.get(key)
        ours = found is not None and found.data == b"ours"
        if ended.ending == "returned":
            self.bench.require(
                ours and found is not None and found.version == ended.value,
                f"{what}; it {ended}, but a second handle reads {shown(found)}",
            )
        elif ended.ending == "conflict":
            self.bench.require(
                rival and not ours,
                f"{what}; it {ended}, but a second handle reads {shown(found)} "
                + ("" if rival else "and nobody else wrote"),
            )
        elif ended.ending == "not_applied":
            self.bench.require(
                not ours,
                f"{what}; it {ended}, but a second handle reads {shown(found)}",
            )
            self.injector.release()
            late = self.truth.get(key)
            self.bench.require(
                late is None or late.data != b"ours",
                f"{what}; it {ended}, but when the late request was delivered it was applied",
            )


def set_up(bench: Bench, *kinds: FaultKind) -> Scene:
    """Open both handles and use each once, so that first-time work is over."""
    injector = bench.faults(*kinds)
    truth = bench.open("direct")
    storage = bench.open_behind(injector)
    version = storage.put("warm-up", b"", {})
    storage.get("warm-up")
    storage.delete_if_version("warm-up", version)
    truth.get("warm-up")
    return Scene(bench, injector, storage, truth)
