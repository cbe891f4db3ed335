"""Threads, forks and second handles."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
import warnings
from functools import partial
from typing import TYPE_CHECKING, Final

from wenchang_conformance.areas import racers
from wenchang_conformance.hooks import HookUnavailable
from wenchang_conformance.racing import Result, fine_switching, race
from wenchang_conformance.requirement import requirement

if TYPE_CHECKING:
    from wenchang.storage import Storage
    from wenchang_conformance.bench import Bench

__all__ = ["HandlesArea"]

_CHILD_SECONDS: Final = 40.0


class HandlesArea:
    """Cases about one handle in many threads, a child, and several handles."""

    @requirement("threads")
    def test_many_threads_share_one_handle_from_its_first_call(self, bench: Bench) -> None:
        """Let more threads than connections use a fresh handle at once, each on its own key."""
        for number in range(3):
            storage = bench.open(f"fresh {number}").inner
            with fine_switching():
                results = race(
                    bench,
                    [
                        partial(_round_trips, storage, f"t/{number}/{n}")
                        for n in range(bench.sizes.many_threads)
                    ],
                )
            for result in results:
                bench.require(
                    result.error is None and result.value == "",
                    f"{len(results)} threads used a fresh handle at once, each with a key of its "
                    f"own; one of them met: {result}",
                )

    @requirement("threads")
    def test_threads_list_and_write_at_once(self, bench: Bench) -> None:
        """Let threads list while others write their own keys."""
        storage = bench.open().inner
        stop = threading.Event()
        until = time.monotonic() + bench.sizes.race_seconds / 3

        def write(who: int) -> str:
            number = 0
            while time.monotonic() < until:
                storage.put(f"w/{who}", b"%d" % number, {"n": str(number)})
                number += 1
            stop.set()
            return ""

        def read() -> str:
            while not stop.is_set():
                for entry in storage.list_page("w/", None, 50):
                    if not entry.metadata["n"].isdigit():
                        return f"an entry with the metadata {entry.metadata!r}"
            return ""

        with fine_switching():
            tasks = (partial(write, 0), partial(write, 1), read, read, read)
            results: list[Result[str]] = race(bench, tasks)
        for result in results:
            bench.require(
                result.error is None and result.value == "",
                f"threads listed and wrote through one handle; one of them met: {result}",
            )

    @requirement("fork")
    def test_an_inherited_handle_works_in_a_forked_child_and_in_the_parent(
        self, bench: Bench
    ) -> None:
        """Use a handle, fork, use it in the child and in the parent at the same time."""
        if not hasattr(os, "fork"):
            raise HookUnavailable("this system has no fork")
        storage = bench.open()
        storage.put("before-fork", b"parent", {})
        children = [_fork(storage.inner, f"child/{number}") for number in range(2)]
        # The parent goes on while its children work.
        for number in range(5):
            storage.put("parent", b"%d" % number, {})
            storage.get("before-fork")
        for child in children:
            said = child.result()
            bench.require(
                said == "",
                f"a handle that was in use was inherited over fork; in the child: {said}",
            )
        bench.holds(storage, "parent", b"4", "the parent wrote while its children did")
        if bench.hooks.shared:
            for number in range(2):
                bench.holds(
                    storage,
                    f"child/{number}",
                    b"child again",
                    "a forked child created and replaced",
                )

    @requirement("fork")
    def test_a_fork_while_other_threads_use_the_handle_leaves_no_lock_behind(
        self, bench: Bench
    ) -> None:
        """Fork in the middle of other threads' calls; the child must not wait for their locks."""
        if not hasattr(os, "fork"):
            raise HookUnavailable("this system has no fork")
        storage = bench.open()
        storage.put("before-fork", b"parent", {})
        stop = threading.Event()

        def busy() -> str:
            while not stop.is_set():
                storage.inner.put("busy", b"x" * 10_000, {})
            return ""

        def forks() -> str:
            try:
                for number in range(max(3, bench.sizes.kills // 4)):
                    said = _fork(storage.inner, f"forked/{number}").result()
                    if said:
                        return said
            finally:
                stop.set()
            return ""

        for result in race(bench, [busy, busy, forks]):
            bench.require(
                result.error is None and result.value == "",
                "a handle was forked while other threads were using it; what one thread or the child "
                f"met: {result}",
            )

    @requirement("two-handles")
    def test_a_second_handle_sees_a_finished_write_at_once(self, bench: Bench) -> None:
        """Write, replace and delete through one handle; look through the other after each."""
        first, second = bench.open_two()
        for number in range(10):
            key = f"s/{number}"
            bench.holds(second, key, None, "nothing was written yet")
            version = first.put_if_version(key, b"1", {}, None)
            bench.holds(
                second, key, b"1", "created through the first handle, read through the second"
            )
            version = first.put_if_version(key, b"2", {}, version)
            bench.holds(
                second, key, b"2", "replaced through the first handle, read through the second"
            )
            first.delete_if_version(key, version)
            bench.holds(
                second, key, None, "deleted through the first handle, read through the second"
            )

    @requirement("two-handles")
    def test_a_second_handle_lists_a_finished_write_at_once(self, bench: Bench) -> None:
        """Ask the second handle the same question before and after each change of the first."""
        first, second = bench.open_two()

        def versions() -> dict[str, str]:
            return {entry.key: entry.version for entry in second.list_page("s/", None, 10)}

        bench.equal(versions(), {}, "a listing through the second handle before any write")
        version = first.put_if_version("s/a", b"1", {}, None)
        bench.equal(
            versions(), {"s/a": version}, "a listing through the second handle after a create"
        )
        version = first.put_if_version("s/a", b"2", {}, version)
        bench.equal(
            versions(), {"s/a": version}, "a listing through the second handle after a replace"
        )
        first.delete_if_version("s/a", version)
        bench.equal(versions(), {}, "a listing through the second handle after a delete")

    @requirement("two-handles")
    def test_a_handle_in_another_process_sees_a_finished_write_at_once(self, bench: Bench) -> None:
        """Write here and look there, write there and look here."""
        here = bench.open("here")
        there = bench.spawn()
        for number in range(5):
            key = f"x/{number}"
            version = here.put_if_version(key, b"here", {"n": "1"}, None)
            found = there.get(key)
            bench.require(
                found is not None and (found.data, found.version) == (b"here", version),
                f"{key!r} was created in this process; another process then reads {found!r}",
            )
            version = there.put_if_version(key, b"there", {}, version)
            bench.holds(here, key, b"there", "replaced in another process, then read in this one")
            here.delete_if_version(key, version)
            bench.require(
                there.get(key) is None,
                f"{key!r} was deleted in this process, but another process still reads it",
            )
            bench.equal(len(there.list_page("x/", None, 5)), 0, "entries listed in another process")


def _round_trips(storage: Storage, key: str) -> str:
    """Create, read, replace, list and delete a key of one's own; return what went wrong."""
    version = storage.put_if_version(key, key.encode(), {"n": key}, None)
    for number in range(3):
        found = storage.get(key)
        if found is None or found.version != version:
            return f"get of a key that only this thread writes returned {found!r}"
        version = storage.put_if_version(key, b"%d" % number, {"n": key}, version)
    listed = [entry for entry in storage.list_page(key, None, 5) if entry.key == key]
    if [entry.metadata.get("n") for entry in listed] != [key]:
        return f"a listing of a key that only this thread writes shows {listed!r}"
    storage.delete_if_version(key, version)
    return "" if storage.get(key) is None else "the key is still there after its delete"


class _Child:
    """A forked child and the pipe over which it says what went wrong."""

    def __init__(self, pid: int, pipe: int) -> None:
        self._pid = pid
        self._pipe = pipe

    def result(self) -> str:
        """Return what the child said; kill it if it says nothing in time."""
        try:
            ready, _, _ = select.select([self._pipe], [], [], _CHILD_SECONDS)
            said = os.read(self._pipe, 4096) if ready else b"it hangs"
            if not ready:
                os.kill(self._pid, signal.SIGKILL)
        finally:
            os.close(self._pipe)
            os.waitpid(self._pid, 0)
        return said.decode(errors="replace").removeprefix("ok")


def _fork(storage: Storage, key: str) -> _Child:
    """Fork a child that uses the handle and says what went wrong, "ok" for nothing."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        # Newer Pythons warn of a fork beside threads; that it works is what is asked here.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        os.close(writer)
        return _Child(pid, reader)
    try:
        said = racers.fork_child(storage, key) or "ok"
    except BaseException as error:  # noqa: BLE001 - the child reports whatever it met
        said = f"{type(error).__name__}: {error}"
    os.write(writer, said.encode(errors="replace")[:4000])
    # Nothing of the parent's may run here: no test teardown, no exit handlers.
    os._exit(0)
