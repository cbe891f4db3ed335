"""The core store over a folder: what only several processes and a real disk can show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from wenchang.core import MemoryStore
from wenchang.errors import InvalidArgumentError
from wenchang.metadata import EPOCH, FileMetadata
from wenchang.storage.filesystem import FilesystemStorage

TEA = "user/u-1/prefs/tea.md"
EMPTY = FileMetadata("", (), frozenset(), EPOCH)

# One process: several threads, each with a store of its own, begin once every process is ready,
# and print each line when it is acknowledged. A conflict is repeated at the version it shows.
APPENDER = """
import sys, threading
from pathlib import Path
from wenchang.core import MemoryStore
from wenchang.errors import VersionConflictError
from wenchang.storage.filesystem import FilesystemStorage

root, path, process, threads, lines = sys.argv[1:]
conflicts = 0

def append(thread):
    global conflicts
    store = MemoryStore(FilesystemStorage(Path(root)))
    version = store.read_file(path).version
    for number in range(int(lines)):
        line = f"- [observed] process {process} thread {thread} line {number}"
        while True:
            try:
                version = store.append_line(path, line, version, source="race").version
            except VersionConflictError as conflict:
                version = conflict.version
                with lock:
                    conflicts += 1
            else:
                with lock:
                    print(line)
                break

lock = threading.Lock()
print("ready", flush=True)
sys.stdin.readline()
started = [threading.Thread(target=append, args=(n,)) for n in range(int(threads))]
for thread in started:
    thread.start()
for thread in started:
    thread.join()
print("conflicts", conflicts)
"""

PROCESSES, THREADS, LINES = 4, 4, 3


def test_every_line_that_any_process_got_acknowledged_is_there_exactly_once(
    tmp_path: Path,
) -> None:
    store = MemoryStore(FilesystemStorage(tmp_path))
    store.write_file(TEA, "", EMPTY, None, source="race")
    running = [
        subprocess.Popen(
            [sys.executable, "-c", APPENDER, tmp_path, TEA, str(number), str(THREADS), str(LINES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        for number in range(PROCESSES)
    ]
    try:
        for process in running:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in running:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        printed = [process.communicate(timeout=120)[0].splitlines() for process in running]
    finally:
        for process in running:
            process.kill()
            process.wait(10)
    acknowledged = [line for lines in printed for line in lines if line.startswith("- ")]
    assert [process.returncode for process in running] == [0] * PROCESSES
    assert len(acknowledged) == PROCESSES * THREADS * LINES
    assert sorted(store.read_file(TEA).content.splitlines()) == sorted(acknowledged)
    conflicts = sum(int(lines[-1].removeprefix("conflicts ")) for lines in printed)
    assert conflicts > 0, "the processes did not overlap"


def test_a_name_that_this_storage_cannot_hold_names_the_argument(tmp_path: Path) -> None:
    store = MemoryStore(FilesystemStorage(tmp_path))
    held, too_long = (f"user/u-1/prefs/{'文' * length}.md" for length in (21, 23))
    store.write_file(held, "", EMPTY, None, source="t")
    with pytest.raises(InvalidArgumentError) as caught:
        store.write_file(too_long, "", EMPTY, None, source="t")
    assert caught.value.argument == "name"
    with pytest.raises(InvalidArgumentError):
        store.read_file(too_long)
    assert [entry.path for entry in store.list_prefix("user/u-1/").entries] == [held]


def test_what_an_operator_erases_leaves_nothing_of_the_entity_on_the_disk(tmp_path: Path) -> None:
    store = MemoryStore(FilesystemStorage(tmp_path))
    store.write_file(TEA, "a private matter", EMPTY, None, source="t")
    store.write_file("user/u-2/prefs/tea.md", "", EMPTY, None, source="t")
    assert store.purge("user", "u-1") == 1
    left = [found for found in tmp_path.rglob("*") if "u-1" in found.parts and found.is_file()]
    assert left == []
    assert len(store.export("user", "u-2")) == 1
