"""Opening, closing, restarting, being killed; wrong options; foreign and future objects; proof."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from wenchang.errors import BackendUnavailableError
from wenchang.storage import StorageError, StorageRejectedError
from wenchang.storage.keys import UNREADABLE_METADATA
from wenchang_conformance.areas import racers
from wenchang_conformance.areas.looking import state_of
from wenchang_conformance.bench import NotRun
from wenchang_conformance.hooks import FaultKind
from wenchang_conformance.requirement import requirement
from wenchang_conformance.trace import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wenchang_conformance.bench import Bench

__all__ = ["LifecycleArea"]


class LifecycleArea:
    """Cases about the life of a store and of what is in it."""

    @requirement("durable")
    def test_what_was_acknowledged_survives_close_and_reopening(self, bench: Bench) -> None:
        """Write, replace and delete; close; open as after a restart; compare."""
        storage = bench.open()
        kept = storage.put("kept", b"body \x00\xff", {"n": "1", "empty": ""})
        gone = storage.put("gone", b"x", {})
        storage.delete_if_version("gone", gone)
        storage.put_if_version("replaced", b"old", {}, None)
        storage.put("replaced", b"new", {"m": "2"})
        before = {key: state_of(storage, key) for key in ("kept", "gone", "replaced")}
        storage.close()
        again = bench.reopen()
        for key, state in before.items():
            bench.equal(state_of(again, key), state, f"{key!r} after close and opening again")
        listed = [entry.key for entry in again.list_page("", None, 10)]
        bench.equal(listed, ["kept", "replaced"], "the keys of a listing after opening again")
        bench.accepted(
            "a version from before the restart is handed back after it",
            again.put_if_version,
            "kept",
            b"after",
            {},
            kept,
        )

    @requirement("durable")
    def test_what_was_acknowledged_survives_the_death_of_its_process(self, bench: Bench) -> None:
        """Kill the writing process right behind the acknowledgement, again and again."""
        storage = bench.open("here")
        for number in range(bench.sizes.kills):
            writer = bench.spawn()
            key, body = f"killed/{number}", b"%d " % number * 2_000
            version = writer.run(racers.put_until_killed, key, body)
            writer.kill()
            bench.trace.add(f"another process put {key!r} -> {version!r}, and was killed at once")
            found = storage.get(key)
            bench.require(
                found is not None and (found.data, found.version) == (body, version),
                f"another process put {key!r}, got the version {version!r} and was killed with SIGKILL; "
                f"then it reads {shown(found)}",
            )

    @requirement("init-offline")
    def test_opening_makes_no_network_call(self, bench: Bench) -> None:
        """Open a handle while this process may not connect anywhere."""
        with _no_network() as attempts:
            bench.hooks.open()
        bench.require(
            not attempts,
            "opening a handle tried to connect somewhere; a constructor makes no network call",
        )

    @requirement("init-offline")
    def test_opening_sends_nothing(self, bench: Bench) -> None:
        """Open handles behind the fault injector and count the requests."""
        injector = bench.faults()
        before = injector.requests()
        bench.open_behind(injector)
        bench.open_behind(injector)
        bench.equal(injector.requests() - before, 0, "two handles were opened; requests sent")

    @requirement("init-offline")
    def test_importing_the_package_imports_no_sdk(self, bench: Bench) -> None:
        """Import the package in a fresh interpreter and look at what came with it."""
        package, modules = bench.hooks.import_module, bench.hooks.sdk_modules
        if not package:
            raise NotRun("import_module", "the hook 'import_module' is not given")
        program = (
            f"import sys, {package}; "
            f"print(' '.join(name for name in {modules!r} if name in sys.modules))"
        )
        done = subprocess.run(  # noqa: S603 - this interpreter, with a program written here
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        bench.equal(done.returncode, 0, f"'import {package}' in a fresh interpreter: exit status")
        bench.equal(done.stdout.strip(), "", f"SDK modules loaded by 'import {package}'")

    @requirement("init-fail")
    def test_a_wrong_option_is_an_error_that_names_it(self, bench: Bench) -> None:
        """Open with each wrong option; opening, or the first call, must name it."""
        if not bench.hooks.wrong_options:
            raise NotRun("wrong_options", "the hook 'wrong_options' is not given")
        for option, open_wrongly in bench.hooks.wrong_options.items():
            what = f"the backend was opened with a wrong value for {option!r}"

            def first_call(open_wrongly: Any = open_wrongly) -> object:
                opened = open_wrongly()
                return opened.get("a") if hasattr(opened, "get") else opened

            error: BaseException = bench.refused(Exception, what, first_call)
            bench.require(
                isinstance(error, StorageError | BackendUnavailableError),
                f"{what}; it must raise one of wenchang's errors, but raised {shown(error)}",
            )
            bench.require(
                option in str(error),
                f"{what}; the error must name the option, but says: {error}",
            )

    @requirement("obj-foreign")
    def test_a_stored_key_that_is_none_is_left_out(self, bench: Bench) -> None:
        """Store folder markers and the like past the backend, then list around them."""
        storage = bench.open()
        storage.put("notes/a", b"x", {})
        storage.put("notes/b", b"x", {})
        for key in ("notes/", "notes//a", "notes/aa/"):
            bench.backdoor.put_raw(key, b"")
            bench.trace.add(f"{key!r} was stored past the backend")
        for limit in (1, 2, 10):
            listed: list[str] = []
            start: str | None = None
            while True:
                page = storage.list_page("", start, limit)
                listed += [entry.key for entry in page]
                if len(page) < limit:
                    break
                start = page[-1].key
            bench.equal(
                listed,
                ["notes/a", "notes/b"],
                f"'notes/' and other names that are no keys were stored past the backend; keys listed "
                f"with limit {limit}",
            )

    @requirement("obj-foreign")
    def test_an_object_without_marks_reads_as_its_body(self, bench: Bench) -> None:
        """Store a body past the backend; read, list, replace and delete it."""
        for name, body in (
            ("text", b"# by hand\n\ntext\n"),
            ("empty", b""),
            ("binary", b"\x00\xff\xfe"),
        ):
            key = f"foreign/{name}"
            bench.backdoor.put_raw(key, body)
            bench.trace.add(f"{key!r} was stored past the backend: {shown(body)}")
            _usable(bench, key, body, {})

    @requirement("obj-foreign")
    def test_an_object_with_a_damaged_head_can_be_replaced_and_deleted(self, bench: Bench) -> None:
        """Damage an object past the backend; it comes back marked, and its version works."""
        storage = bench.open()
        storage.put("damaged/a", b"body", {"n": "1"})
        storage.put("damaged/b", b"body", {"n": "1"})
        bench.backdoor.corrupt("damaged/a")
        bench.trace.add("the stored head of 'damaged/a' was damaged past the backend")
        for reader in (bench.open("fresh"), storage):
            found = bench.accepted("a damaged object is read", reader.get, "damaged/a")
            bench.require(found is not None, "a damaged object reads as absent")
            names = [] if found is None else sorted(found.metadata)
            bench.equal(names, [UNREADABLE_METADATA], "the metadata names of a damaged object")
        listed = [entry.key for entry in storage.list_page("damaged/", None, 10)]
        bench.equal(listed, ["damaged/a", "damaged/b"], "keys listed beside a damaged object")
        found = storage.get("damaged/a")
        if found is not None:
            version = bench.accepted(
                "a damaged object is replaced at its version",
                storage.put_if_version,
                "damaged/a",
                b"repaired",
                {},
                found.version,
            )
            bench.holds(storage, "damaged/a", b"repaired", "a damaged object was replaced")
            storage.delete_if_version("damaged/a", version)
        bench.backdoor.corrupt("damaged/b")
        found = storage.get("damaged/b")
        if found is not None:
            bench.accepted(
                "a damaged object is deleted at its version",
                storage.delete_if_version,
                "damaged/b",
                found.version,
            )

    @requirement("format-guard")
    def test_an_older_release_reads_but_does_not_write_what_a_later_one_guards(
        self, bench: Bench
    ) -> None:
        """Store an object of a later format past the backend; read it and try to replace it."""
        bench.backdoor.put_future("future", b"from a later release")
        bench.trace.add("'future' was stored as a later release would")
        storage = bench.open()
        found = bench.accepted("an object of a later format is read", storage.get, "future")
        bench.require(found is not None, "an object of a later format reads as absent")
        if found is None:
            return
        error = bench.refused(
            StorageRejectedError,
            "an object that only a later release may write is replaced at its version",
            storage.put_if_version,
            "future",
            b"overwritten",
            {},
            found.version,
        )
        bench.require(
            "upgrade" in str(error).lower(),
            f"the refusal to write must say what to upgrade, but says: {error}",
        )
        again = storage.get("future")
        bench.require(
            again is not None and again.version == found.version,
            "a write to an object of a later format was refused, but the object changed",
        )

    @requirement("endpoint-proof")
    def test_nothing_is_written_to_an_endpoint_that_ignores_conditions(self, bench: Bench) -> None:
        """Strip the conditions of every request from the start; each kind of write is refused."""
        injector = bench.faults(FaultKind.STRIPPED)
        truth = bench.open("direct")
        bench.inject(injector, FaultKind.STRIPPED, times=None, on="any")
        storage = bench.open_behind(injector)
        for name, call, arguments in (
            ("put", storage.put, ("a", b"x", {})),
            ("create", storage.put_if_version, ("b", b"x", {}, None)),
            ("replace", storage.put_if_version, ("c", b"x", {}, "1")),
        ):
            bench.refused(
                StorageError,
                f"{name} through an endpoint that ignores every condition",
                call,
                *arguments,
            )
        injector.clear()
        listed = [entry.key for entry in truth.list_page("", None, 10)]
        bench.equal(listed, [], "every write was refused; keys that are there all the same")


def _usable(bench: Bench, key: str, body: bytes, metadata: dict[str, str]) -> None:
    """Require that a foreign object reads, lists, and can be replaced and deleted by its version."""
    storage = bench.open("fresh")
    found = bench.accepted("a foreign object is read", storage.get, key)
    bench.require(found is not None, f"the foreign object {key!r} reads as absent")
    if found is None:
        return
    bench.equal((found.data, dict(found.metadata)), (body, metadata), f"the foreign object {key!r}")
    listed = {entry.key: entry.version for entry in storage.list_page(key, None, 5)}
    bench.equal(listed.get(key), found.version, f"the version of {key!r} in a listing")
    version = bench.accepted(
        f"the foreign object {key!r} is replaced at its version",
        storage.put_if_version,
        key,
        b"ours",
        {"n": "1"},
        found.version,
    )
    bench.conflict(
        f"the foreign object {key!r} was replaced; its old version again",
        storage.put_if_version,
        key,
        b"again",
        {},
        found.version,
    )
    storage.delete_if_version(key, version)
    bench.holds(storage, key, None, "the replaced foreign object was deleted")


@contextmanager
def _no_network() -> Iterator[list[str]]:
    """Note, and refuse, every connection that this thread tries to make inside the block."""
    attempts: list[str] = []
    me = threading.get_ident()
    connect, lookup = socket.socket.connect, socket.getaddrinfo

    def refuse_connect(self: socket.socket, *arguments: Any) -> None:
        if threading.get_ident() != me:
            return connect(self, *arguments)
        attempts.append("connect")
        raise ConnectionRefusedError

    def refuse_lookup(*arguments: Any, **options: Any) -> Any:
        if threading.get_ident() != me:
            return lookup(*arguments, **options)
        attempts.append("lookup")
        raise ConnectionRefusedError

    socket.socket.connect = refuse_connect  # type: ignore[method-assign, assignment]  # for the block alone
    socket.getaddrinfo = refuse_lookup
    try:
        yield attempts
    finally:
        socket.socket.connect = connect  # type: ignore[method-assign]  # as it was
        socket.getaddrinfo = lookup
