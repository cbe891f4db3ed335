"""Threads, processes, forks and `kill -9` on one root."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from wenchang.storage import BackendUnavailableError
from wenchang.storage._fs_disk import Disk
from wenchang.storage._fs_lock import Deadline
from wenchang.storage.filesystem import FilesystemStorage

DEEP = os.environ.get("WENCHANG_SIZES") == "deep"
LINES_PER_THREAD = 12 if DEEP else 2
WRITES_UNDER_READERS = 3000 if DEEP else 300

START = """
import os, sys, threading
from wenchang.storage import PreconditionFailedError
from wenchang.storage.filesystem import FilesystemStorage

def say(text):
    os.write(1, (text + "\\n").encode())

store = FilesystemStorage(sys.argv[1])
"""


@contextlib.contextmanager
def processes(code: str, root: Path, *arguments: object, count: int = 1):
    """Start `count` interpreters that run `code` on the root; end those that are left."""
    command = [sys.executable, "-c", START + code, str(root), *map(str, arguments)]
    pipe = subprocess.PIPE
    started = [
        subprocess.Popen([*command, str(number)], stdin=pipe, stdout=pipe)
        for number in range(count)
    ]
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.wait(timeout=60)
            process.stdin.close()
            process.stdout.close()


APPENDERS = """
threads, lines, me = (int(argument) for argument in sys.argv[2:])
barrier = threading.Barrier(threads + 1)
conflicts, overlaps = [], []

def append(thread):
    barrier.wait(timeout=60)
    for number in range(lines):
        line = b"%d-%d-%d\\n" % (me, thread, number)
        while True:
            found = store.get("shared/log.md")
            try:
                store.put_if_version(
                    "shared/log.md", found.data + line, {"last": line.decode()}, found.version
                )
                break
            except PreconditionFailedError:
                conflicts.append(1)
        say(line.decode().strip())

running = [threading.Thread(target=append, args=(thread,)) for thread in range(threads)]
for thread in running:
    thread.start()
say("ready")
sys.stdin.readline()
barrier.wait(timeout=60)
for thread in running:
    thread.join()
say("conflicts %d" % len(conflicts))
"""


@pytest.mark.serial
def test_mem_090_threads_of_several_processes_append_and_lose_no_line(tmp_path):
    """race-cas, threads, two-handles: 16 threads in each of 4 processes."""
    store = FilesystemStorage(tmp_path)
    store.put("shared/log.md", b"", {})
    with processes(APPENDERS, tmp_path, 16, LINES_PER_THREAD, count=4) as started:
        for process in started:
            assert process.stdout.readline() == b"ready\n"
        for process in started:
            process.stdin.write(b"go\n")
            process.stdin.flush()
        outputs = [process.stdout.read().decode().split("\n") for process in started]
        assert [process.wait(timeout=120) for process in started] == [0] * 4
    acknowledged = [line for output in outputs for line in output if "-" in line]
    conflicts = [int(output[-2].removeprefix("conflicts ")) for output in outputs]
    found = store.get("shared/log.md")
    lines = found.data.decode().split()
    assert sorted(lines) == sorted(acknowledged)
    assert len(set(lines)) == len(lines) == 4 * 16 * LINES_PER_THREAD
    assert found.metadata == {"last": lines[-1] + "\n"}
    # They did run at once: each met the others' writes, and no process wrote its lines in one block.
    assert all(conflicts)
    writers = [line.split("-")[0] for line in lines]
    assert sum(one != next_one for one, next_one in itertools.pairwise(writers)) > 4


CREATORS = """
for round in range(20):
    say("ready")
    sys.stdin.readline()
    try:
        store.put_if_version(f"new/{round}/k", sys.argv[2].encode(), {}, None)
        say("created")
    except PreconditionFailedError:
        say("refused")
    say("ready")
    sys.stdin.readline()
    try:
        store.delete_if_version(f"new/{round}/k", sys.stdin.readline().strip())
        say("deleted")
    except PreconditionFailedError:
        say("refused")
"""


@pytest.mark.serial
def test_one_of_several_processes_creates_and_one_deletes(tmp_path):
    """race-create, race-delete; folders come and go under the racers."""
    store = FilesystemStorage(tmp_path)

    def tell(started, text: str) -> list[bytes]:
        for process in started:
            process.stdin.write(text.encode())
        for process in started:
            process.stdin.flush()
        return [process.stdout.readline().strip() for process in started]

    with processes(CREATORS, tmp_path, count=3) as started:
        for number in range(20):
            assert [process.stdout.readline() for process in started] == [b"ready\n"] * 3
            assert sorted(tell(started, "go\n")) == [b"created", b"refused", b"refused"]
            assert [process.stdout.readline() for process in started] == [b"ready\n"] * 3
            version = store.get(f"new/{number}/k").version
            assert sorted(tell(started, f"go\n{version}\n")) == [b"deleted", b"refused", b"refused"]
        assert [process.wait(timeout=60) for process in started] == [0] * 3
    assert {path.name for path in tmp_path.iterdir()} == {".lock"}


WRITER = """
number = int(sys.argv[2])
while True:
    key = "a/%d" % (number % 3)
    say("begin %d" % number)
    if number % 7 == 6:
        found = store.get(key)
        if found is not None:
            store.delete_if_version(key, found.version)
    else:
        store.put(key, str(number).encode() * (number % 50 + 1), {"n": str(number)})
    say("done %d" % number)
    number += 1
"""


@pytest.mark.serial
def test_mem_091_a_killed_writer_leaves_no_torn_pair_and_loses_nothing(tmp_path, size):
    """durable, list-clean (B94): `kill -9` at random moments of a write loop."""
    rng = random.Random(91)
    number = 0
    last: dict[str, int] = {}
    interrupted = 0
    kills = size("kills")
    for _ in range(kills):
        with processes(WRITER, tmp_path, number) as (process,):
            assert process.stdout.readline() == b"begin %d\n" % number
            timer = threading.Timer(rng.uniform(0, 0.05), process.send_signal, [signal.SIGKILL])
            timer.start()
            said = [b"begin %d" % number, *process.stdout.read().split(b"\n")[:-1]]
            timer.join()
            assert process.wait(timeout=60) == -signal.SIGKILL
        begun = [int(line.split()[1]) for line in said if line.startswith(b"begin")]
        done = [int(line.split()[1]) for line in said if line.startswith(b"done")]
        last.update({f"a/{done_number % 3}": done_number for done_number in done})
        pending = begun[-1] if begun[-1] not in done else None
        interrupted += pending is not None
        number = begun[-1] + 1

        store = FilesystemStorage(tmp_path)
        listed = {entry.key: entry for entry in store.list_page("", None, 100)}
        assert set(listed) <= {"a/0", "a/1", "a/2", "other"}
        for key in ("a/0", "a/1", "a/2"):
            found = store.get(key)
            possible = {last.get(key, -1)}
            if pending is not None and key == f"a/{pending % 3}":
                possible.add(pending)
            absent = {n for n in possible if n < 0 or n % 7 == 6}
            if found is None:
                assert absent
                assert key not in listed
                last[key] = max(absent)
                continue
            written = int(found.metadata["n"])
            assert written in possible - absent
            assert found.data == str(written).encode() * (written % 50 + 1)
            assert (listed[key].metadata, listed[key].version) == (found.metadata, found.version)
            last[key] = written
        store.put("other", b"", {})
        names = {path.name for path in tmp_path.rglob("*") if path.is_file()} - {".lock"}
        assert all(name.endswith(("%obj", "%meta")) for name in names)
        assert len(names) == 2 * len(store.list_page("", None, 100))
    assert interrupted > kills // 10


@pytest.mark.serial
def test_b94_readers_beside_a_writer_never_see_a_mixed_pair(tmp_path):
    """get-atomic, list-linear, two-handles."""
    writer, reader = FilesystemStorage(tmp_path), FilesystemStorage(tmp_path)
    writer.put("k", b"0", {"n": "0"})
    start = threading.Barrier(4)
    stop = threading.Event()
    problems: list[object] = []
    reads = [0, 0, 0]
    moved = [set(), set(), set()]

    def read(at: int, store: FilesystemStorage) -> None:
        start.wait(timeout=30)
        newest = 0
        while not stop.is_set():
            if at == 2:
                entries = store.list_page("", None, 10)
                seen = int(entries[0].metadata["n"]) if [e.key for e in entries] == ["k"] else -1
                whole = True
            else:
                found = store.get("k")
                seen = int(found.metadata["n"])
                whole = found.data == b"%d" % seen * (seen % 300 + 1)
            if not whole or seen < newest:
                problems.append((at, seen, newest))
            newest = max(newest, seen)
            reads[at] += 1
            moved[at].add(seen)

    threads = [
        threading.Thread(target=read, args=(0, writer)),
        threading.Thread(target=read, args=(1, reader)),
        threading.Thread(target=read, args=(2, reader)),
    ]
    for thread in threads:
        thread.start()
    start.wait(timeout=30)
    try:
        for number in range(1, WRITES_UNDER_READERS):
            writer.put("k", b"%d" % number * (number % 300 + 1), {"n": str(number)})
    finally:
        stop.set()
        for thread in threads:
            thread.join(timeout=60)
    assert problems == []
    assert all(reads)
    assert all(len(states) > 3 for states in moved), "the readers ran beside the writer"


def test_a_listing_beside_writers_shows_every_untouched_key_once(tmp_path):
    """list-stable."""
    store = FilesystemStorage(tmp_path)
    still = sorted(f"{folder}/{number}" for folder in "ace" for number in range(15))
    for key in still:
        store.put(key, b"", {})
    start = threading.Barrier(2)
    stop = threading.Event()
    written = []

    def disturb() -> None:
        start.wait(timeout=30)
        rng = random.Random(5)
        while not stop.is_set():
            key = f"{rng.choice('abcdef')}/x{rng.randrange(20)}/{rng.randrange(3)}"
            version = store.put(key, b"", {})
            if rng.random() < 0.5:
                store.delete_if_version(key, version)
            written.append(key)

    thread = threading.Thread(target=disturb)
    thread.start()
    start.wait(timeout=30)
    try:
        before = len(written)
        for _ in range(15):
            found: list[str] = []
            while True:
                page = store.list_page("", found[-1] if found else None, 7)
                found += [entry.key for entry in page]
                if len(page) < 7:
                    break
            assert [key for key in found if "x" not in key] == still
            assert found == sorted(set(found))
        assert len(written) > before
    finally:
        stop.set()
        thread.join(timeout=60)


class TestLock:
    def test_a_call_gives_up_at_its_deadline_and_has_changed_nothing(self, tmp_path):
        """out-bounded, out-definite."""
        holder = FilesystemStorage(tmp_path)
        version = holder.put("k", b"1", {})
        waiting = FilesystemStorage(tmp_path, deadline=0.05)
        with holder._open_root() as root, holder._lock.exclusive(root, Deadline(5)):
            for call in (
                lambda: waiting.put("k", b"2", {}),
                lambda: waiting.put_if_version("k", b"2", {}, version),
                lambda: waiting.delete_if_version("k", version),
                lambda: waiting.list_page("", None, 1),
            ):
                with pytest.raises(BackendUnavailableError) as caught:
                    call()
                assert (caught.value.reason, caught.value.outcome) == ("timeout", "not_applied")
            # A read of an object that nobody is changing needs no lock.
            assert waiting.get("k").data == b"1"
        assert waiting.put_if_version("k", b"2", {}, version)

    def test_readers_hold_the_lock_together(self, tmp_path):
        first, second = FilesystemStorage(tmp_path), FilesystemStorage(tmp_path, deadline=0.05)
        first.put("k", b"1", {})
        with first._open_root() as root, first._lock.shared(root, Deadline(5)):
            assert [entry.key for entry in second.list_page("", None, 10)] == ["k"]
            with pytest.raises(BackendUnavailableError):
                second.put("k", b"2", {})

    def test_a_waiter_whose_lock_file_was_replaced_waits_for_the_new_one(self, tmp_path):
        class Watching(Disk):
            def __init__(self):
                self.polled = threading.Event()
                self.opened = []

            def open_lock(self, name, folder, *, write):
                handle = super().open_lock(name, folder, write=write)
                self.opened.append(os.fstat(handle).st_ino)
                return handle

            def try_lock(self, handle, *, exclusive):
                taken = super().try_lock(handle, exclusive=exclusive)
                self.polled.set()
                return taken

        disk = Watching()
        holder, second = FilesystemStorage(tmp_path), FilesystemStorage(tmp_path)
        waiter = FilesystemStorage(tmp_path, _disk=disk)
        disk.polled.clear()
        disk.opened.clear()
        done = []
        thread = threading.Thread(target=lambda: done.append(waiter.put("k", b"1", {})))
        with (
            holder._open_root() as root,
            second._open_root() as other_root,
            holder._lock.exclusive(root, Deadline(10)),
        ):
            thread.start()
            assert disk.polled.wait(timeout=30)
            (tmp_path / ".lock").rename(tmp_path / "moved")
            with second._lock.exclusive(other_root, Deadline(10)):
                disk.polled.clear()
                assert disk.polled.wait(timeout=30)
                assert done == []
        thread.join(timeout=30)
        assert len(done) == 1
        assert disk.opened[-1] == (tmp_path / ".lock").stat().st_ino

    # Python 3.12 warns of a fork beside threads in general; these are the tests that ours is safe.
    @pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
    def test_a_handle_works_in_forked_children_while_threads_of_the_parent_write(self, tmp_path):
        """fork."""
        store = FilesystemStorage(tmp_path)
        stop = threading.Event()
        started = threading.Event()

        def write() -> None:
            while not stop.is_set():
                store.put("parent", b"p", {})
                started.set()

        threads = [threading.Thread(target=write) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            assert started.wait(timeout=30)
            children = []
            for number in range(10):
                child = os.fork()
                if child == 0:
                    status = 1
                    try:
                        store.put_if_version(f"child/{number}", b"c", {}, None)
                        assert store.get("parent").data == b"p"
                        store.list_page("", None, 10)
                        status = 0
                    finally:
                        os._exit(status)
                children.append(child)
            for child in children:
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        finally:
            stop.set()
            for thread in threads:
                thread.join(timeout=30)
        keys = [entry.key for entry in store.list_page("child/", None, 100)]
        assert keys == [f"child/{number}" for number in range(10)]

    def test_a_child_forked_under_the_lock_does_not_keep_it_when_the_parent_is_killed(
        self, tmp_path
    ):
        """fork."""
        code = """
from wenchang.storage._fs_lock import Deadline
store = FilesystemStorage(sys.argv[1], deadline=5)
holding = threading.Event()

def hold():
    with store._open_root() as root, store._lock.exclusive(root, Deadline(5)):
        holding.set()
        threading.Event().wait()

threading.Thread(target=hold, daemon=True).start()
holding.wait()
import warnings
warnings.simplefilter("ignore")
if os.fork():
    say("parent")
    os.kill(os.getpid(), 9)
sys.stdin.readline()
store.put("child", b"1", {})
say("child")
os._exit(0)
"""
        with processes(code, tmp_path) as (process,):
            assert process.stdout.readline() == b"parent\n"
            assert process.wait(timeout=30) == -signal.SIGKILL
            FilesystemStorage(tmp_path, deadline=5).put("other", b"", {})
            process.stdin.write(b"go\n")
            process.stdin.flush()
            assert process.stdout.readline() == b"child\n"
        assert FilesystemStorage(tmp_path).get("child").data == b"1"

    def test_the_note_of_a_killed_holder_is_taken_up_whatever_it_says(self, tmp_path):
        store = FilesystemStorage(tmp_path)
        store.put("a/k", b"1", {})
        (tmp_path / "a/gone%meta").write_text(json.dumps({}), encoding="utf-8")
        for note in (
            *(b"", b"\n", b"no end", b"../../etc/passwd\n", b"\xff\xfe\n", b"x" * 4096),
            *(b"A" * 200 + b"\n", b"a/k\n", b"absent/k\n", b"a/gone\n"),
        ):
            (tmp_path / ".lock").write_bytes(note)
            store.put("other", b"", {})
            assert (tmp_path / ".lock").read_bytes().startswith(b"\n")
        assert not (tmp_path / "a/gone%meta").exists()
        assert store.get("a/k").data == b"1"
