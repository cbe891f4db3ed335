"""Threads, processes and killed writers on one tree: every history has an explanation, nothing is lost."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest

from wenchang.files.errors import AlreadyExistsError, VersionConflictError
from wenchang.files.policy import TreePolicy
from wenchang.files.tree import FileTree
from wenchang.storage.filesystem import FilesystemStorage
from wenchang.storage.memory import InMemoryStorage

DEEP = os.environ.get("WENCHANG_SIZES") == "deep" or os.environ.get("WENCHANG_DEEP") == "1"
PROCESSES, CALLS = (8, 200) if DEEP else (4, 40)
BASE = "@files/ada"
SCRIPT = Path(__file__).with_name("tree_histories.py")
WAIT = 120.0


@pytest.fixture(scope="module")
def histories():
    spec = importlib.util.spec_from_file_location("tree_histories", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["tree_histories"] = module
    spec.loader.exec_module(module)
    return module


def check_whole(storage, histories):
    """Check what must hold whatever happened, and that nothing leaks or is lost."""
    tree = FileTree(storage, BASE, policy=histories.POLICY)
    report = tree.verify()
    assert report.sound, report.problems
    tree.collect_garbage()
    after = tree.verify()
    assert after.sound, after.problems
    assert after.unreferenced == 0
    snapshot = tree.snapshot()
    entries = list(snapshot.walk())
    assert snapshot.usage.bytes == sum(each.size for each in entries)
    assert snapshot.usage.files == len(entries)
    held = {entry.path: text for entry, text in snapshot.read_many(entries)}
    assert all(len(held[each.path].encode()) == each.size for each in entries)
    paths = set(held)
    assert not any(path.startswith(other + "/") for path in paths for other in paths)
    return held


def overlapping(calls):
    """Count pairs of neighbours in time that ran at the same time."""
    ordered = sorted(calls, key=lambda call: call.begin)
    return sum(after.begin < before.end for before, after in pairwise(ordered))


def start(url, mark, calls, seed, *meet):
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), url, BASE, mark, str(calls), str(seed), *meet],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    return process


def rows(histories, text):
    found = []
    for line in text.splitlines():
        try:
            begin, end, name, arguments, answer = json.loads(line)
        except ValueError:
            # The last line of a killed process.
            continue
        found.append(histories.Call(begin, end, name, tuple(arguments), answer))
    return found


def test_what_threads_on_one_tree_object_do_has_an_explanation(histories):
    race(histories, trees=1)


def test_what_threads_on_objects_of_their_own_do_has_an_explanation(histories):
    race(histories, trees=PROCESSES)


def race(histories, trees):
    """Let threads race on so many tree objects of one tree, and check what they did."""
    inner = InMemoryStorage()
    meeting = histories.Meeting(PROCESSES, WAIT, waiting=trees == 1)
    storage = histories.Held(inner, lambda: meeting.hold(threading.get_ident()))
    objects = [FileTree(storage, BASE, policy=histories.POLICY) for _ in range(trees)]
    calls = []

    def run(number):
        me = threading.get_ident()

        def tell(call):
            meeting.leave(me)
            calls.append(call)

        try:
            tree = objects[number % trees]
            histories.client(tree, str(number), CALLS, number, tell, lambda: meeting.enter(me))
        finally:
            meeting.finish(me)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(PROCESSES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT * 5)
        assert not thread.is_alive()
    for tree in objects:
        tree.close()
    check_history(histories, calls)
    check_whole(inner, histories)


def check_history(histories, calls):
    """Check that every call was made, that they overlapped, and that one order explains the answers."""
    assert len(calls) == PROCESSES * CALLS
    assert overlapping(calls) > len(calls) // 10
    assert histories.explain(calls) is not None


def test_what_processes_do_to_one_tree_has_an_explanation(histories, tmp_path):
    url = f"file://{tmp_path}"
    processes = [start(url, str(number), CALLS, number, "meet") for number in range(PROCESSES)]
    meeting = histories.Meeting(PROCESSES, WAIT)
    outputs = [""] * PROCESSES

    def say(process):
        process.stdin.write("go\n")
        process.stdin.flush()

    def talk(number):
        process = processes[number]
        try:
            say(process)
            for line in process.stdout:
                if line == "in\n":
                    meeting.enter(number)
                    meeting.hold(number)
                    say(process)
                else:
                    meeting.leave(number)
                    outputs[number] += line
        finally:
            meeting.finish(number)
        process.communicate(timeout=WAIT)

    threads = [threading.Thread(target=talk, args=(number,)) for number in range(PROCESSES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT * 5)
        assert not thread.is_alive()
    assert [process.returncode for process in processes] == [0] * PROCESSES
    calls = [call for output in outputs for call in rows(histories, output)]
    check_history(histories, calls)
    check_whole(FilesystemStorage(tmp_path), histories)


@pytest.mark.parametrize("round_", range(10 if DEEP else 2))
def test_killed_writers_leave_a_whole_tree_and_what_they_acknowledged(round_, histories, tmp_path):
    """Each killed process was in at most one call, which took effect as a whole or not at all."""
    url = f"file://{tmp_path}"
    rng = random.Random(round_)
    processes = [start(url, str(number), 10_000, number) for number in range(4)]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    storage = FilesystemStorage(tmp_path)
    tree = FileTree(storage, BASE, policy=histories.POLICY)
    outputs = []
    for process in processes:
        # Killed once the tree has moved on by a few commits, wherever the process then is.
        goal = tree.snapshot()._root.seq + rng.randrange(3, 12)
        ends = time.monotonic() + WAIT
        while tree.snapshot()._root.seq < goal:
            assert time.monotonic() < ends
        process.kill()
        outputs.append(process.communicate(timeout=WAIT)[0])
    calls = [call for output in outputs for call in rows(histories, output)]
    assert len(calls) > 4
    held = check_whole(storage, histories)
    last = max(call.end for call in calls)
    # The last state has to follow from what was acknowledged and at most one call more of each process.
    for mark, output in enumerate(outputs):
        done = rows(histories, output)
        begin = done[-1].end if done else 0
        cut_off = unfinished(histories, str(mark), mark, len(done), done)
        calls.append(histories.Call(begin, last + 1, *cut_off, None))
    listing = [[path, text] for path, text in sorted(held.items())]
    calls.append(histories.Call(last + 2, last + 3, "search", (), listing))
    assert histories.explain(calls) is not None


def unfinished(histories, mark, seed, count, done):
    """Return name and arguments of the call that a killed client was in, made up again from its seed."""

    class Replayed:
        """Stands for the tree while the calls that were made are made up again."""

        def __init__(self):
            self.versions = iter(())

        def snapshot(self):
            return self

        def lookup(self, path):
            return None

    rng = random.Random(seed)
    tree = Replayed()
    for number in range(count + 1):
        made = histories.make_call(rng, tree, f"{mark}.{number}")
        if number < count:
            assert made[0] == done[number].name
    if made[0] == "write":
        # The version that it named is not known: it may have been any.
        return "write", (*made[1][:2], None)
    return made


def test_of_many_creators_exactly_one_succeeds(histories):
    """item_076."""
    storage = InMemoryStorage()
    trees = [FileTree(storage, BASE), FileTree(storage, BASE)]
    for number in range(20):
        results = at_once(
            [lambda n=n, path=f"f{number}": trees[n % 2].create(path, str(n)) for n in range(6)]
        )
        assert sum(not isinstance(each, Exception) for each in results) == 1
        assert sum(isinstance(each, AlreadyExistsError) for each in results) == 5


def test_every_acknowledged_append_is_there_once_and_whole(histories):
    """item_081."""
    storage = InMemoryStorage()
    trees = [FileTree(storage, BASE) for _ in range(3)]
    acts = [lambda n=n: trees[n % 3].append("log", f"<{n}>\n" * 3) for n in range(48)]
    results = at_once(acts)
    text = trees[0].read_file("log")[1]
    assert not any(isinstance(each, Exception) for each in results)
    assert len(text) == sum(len(f"<{n}>\n") * 3 for n in range(48))
    assert all(f"<{n}>\n" * 3 in text for n in range(48))


def test_of_many_writers_at_one_version_exactly_one_succeeds():
    """item_118."""
    storage = InMemoryStorage()
    tree, other = FileTree(storage, BASE), FileTree(storage, BASE)
    version = tree.create("a", "0").version
    results = at_once(
        [lambda n=n: (tree, other)[n % 2].write("a", str(n), version) for n in range(1, 9)]
    )
    assert sum(not isinstance(each, Exception) for each in results) == 1
    assert sum(isinstance(each, VersionConflictError) for each in results) == 7


def test_collections_beside_writers_take_nothing_that_is_needed(histories, size):
    storage = InMemoryStorage()
    policy = TreePolicy(page_entries=8, inline_entries=4, cleanup_after=2, sweep_every=0)
    trees = [FileTree(storage, BASE, policy=policy) for _ in range(4)]
    trees[0].create("start", "")
    stop = threading.Event()
    rounds = []

    def collect():
        while not stop.is_set():
            trees[3].collect_garbage()
            rounds.append(1)

    collector = threading.Thread(target=collect)
    collector.start()
    calls = size("generated_calls") // 20
    try:
        results = at_once([lambda n=n: churn(trees[n], n, calls) for n in range(3)])
    finally:
        stop.set()
        collector.join(WAIT)
    assert results == [None] * 3
    assert len(rounds) > 1
    held = check_whole(storage, histories)
    assert len(held) == 1 + 3 * 20
    for tree in trees:
        tree.close()


def churn(tree, number, calls):
    for count in range(calls):
        path = f"d{number}/{count % 20}"
        tree.append(path, f"{count}.")
        assert tree.read_file(path)[1].endswith(f"{count}.")
    for count in range(20):
        tree.move(f"d{number}/{count}", f"e{number}/{count}")


def test_a_folder_of_many_files_moves_and_goes_in_one_commit_each(size):
    """item_085, item_093, item_110."""
    storage = InMemoryStorage()
    tree = FileTree(storage, BASE)
    count = min(1000, size("copied_files") * 2)
    acts = [lambda n=n: tree.create(f"a/{n % 7}/{n}", str(n)) for n in range(count)]
    for begin in range(0, count, 50):
        at_once(acts[begin : begin + 50])
    before = tree.snapshot()._root.seq
    versions = {e.version: (e.size, e.modified) for e in tree.snapshot().walk()}
    seen = set()
    stop = threading.Event()

    def watch():
        other = FileTree(storage, BASE)
        while not stop.is_set():
            seen.add(other.view(lambda s: (s.usage.files, s.has_folder("a"), s.has_folder("b/c"))))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        assert tree.move("a", "b/c").files == count
        moved = tree.snapshot()
        assert {e.version: (e.size, e.modified) for e in moved.walk()} == versions
        assert tree.delete("b", recursive=True).files == count
    finally:
        stop.set()
        watcher.join(WAIT)
    assert moved._root.seq == before + 1
    assert tree.snapshot()._root.seq == before + 2
    assert seen <= {(count, True, False), (count, False, True), (0, False, False)}
    tree.close()


def at_once(acts):
    """Run functions in as many threads, all begun together; return results and exceptions."""
    barrier = threading.Barrier(len(acts))
    results = [None] * len(acts)

    def run(number, act):
        barrier.wait(WAIT)
        try:
            results[number] = act()
        except Exception as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=each) for each in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
        assert not thread.is_alive()
    return results


def test_the_checker_finds_a_lost_append(histories):
    """The control: a history that no order explains."""
    call = histories.Call
    calls = [
        call(1, 2, "append", ("a", "x"), [1, 1]),
        call(1, 2, "append", ("a", "y"), [1, 1]),
        call(3, 4, "read", ("a",), "y"),
    ]
    assert histories.explain(calls) is None
    calls[0] = call(1, 2, "append", ("a", "x"), [2, 2])
    assert histories.explain(calls) is None
    calls[2] = call(3, 4, "read", ("a",), "yx")
    assert histories.explain(calls) is not None
    stale = call(5, 6, "read", ("a",), "y")
    assert histories.explain([*calls, stale]) is None
