"""Calls that threads of one process make at the same time share commits, and stay calls of their own."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import dataclass, replace

import pytest

from wenchang.errors import BackendUnavailableError
from wenchang.files._queue import _LOOK_SECONDS
from wenchang.files.errors import AlreadyExistsError, LimitExceededError
from wenchang.files.limits import TreeLimits
from wenchang.files.policy import TreePolicy
from wenchang.files.tree import FileTree
from wenchang.storage import StorageRejectedError

WAIT = 60.0


class Gate:
    """Holds the first root commit until the test has seen the others queue up behind it."""

    def __init__(self, storage):
        self.entered = threading.Event()
        self.open = threading.Event()
        self.first = True
        storage.fault = self

    def __call__(self, method, key):
        if self.first and (method, key[-5:]) == ("put_if_version", "/root"):
            self.first = False
            self.entered.set()
            assert self.open.wait(WAIT)


def run_together(tree, storage, calls):
    """Run the first call, and the others while its commit is in flight; return their results."""
    results = [None] * len(calls)

    def run(number):
        try:
            results[number] = calls[number](tree)
        except Exception as error:
            results[number] = error

    gate = Gate(storage)
    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(calls))]
    threads[0].start()
    assert gate.entered.wait(WAIT)
    for count, thread in enumerate(threads[1:], start=1):
        thread.start()
        ends = time.monotonic() + WAIT
        while len(tree._queue._waiting) < count:
            assert time.monotonic() < ends
            time.sleep(0.001)  # polling for a queue that has no event of its own
    gate.open.set()
    for thread in threads:
        thread.join(WAIT)
        assert not thread.is_alive()
    return results


def commits(storage):
    return sum(each == "put_if_version root" for each in storage.taken())


def test_calls_that_gather_during_a_commit_are_the_next_commit(storage, open_tree_on):
    tree = open_tree_on(storage, TreePolicy(parallel=1))
    tree.create("a", "")
    storage.taken()
    results = run_together(
        tree, storage, [lambda t, n=n: t.append("a", f"<{n}>") for n in range(50)]
    )
    assert commits(storage) == 2
    assert len({each.version for each in results}) == 50
    text = tree.read_file("a")[1]
    assert all(text.count(f"<{n}>") == 1 for n in range(50))


def test_at_most_a_batch_of_calls_goes_into_one_commit(storage, open_tree_on):
    tree = open_tree_on(storage, TreePolicy(parallel=1, batch=8))
    tree.create("a", "")
    storage.taken()
    run_together(tree, storage, [lambda t, n=n: t.append("a", f"<{n}>") for n in range(25)])
    assert commits(storage) == 1 + 24 // 8


def test_appends_of_one_batch_to_one_file_upload_it_once(storage, open_tree_on):
    tree = open_tree_on(storage, TreePolicy(parallel=1))
    tree.create("a", "")
    storage.taken()
    run_together(tree, storage, [lambda t, n=n: t.append("a", "x") for n in range(10)])
    assert storage.taken().count("put_if_version object") == 2


def test_a_refused_call_refuses_no_other_of_its_batch(storage, open_tree_on):
    tree = open_tree_on(storage, TreePolicy(parallel=1), limits=TreeLimits(max_file_count=3))
    tree.create("a", "")
    results = run_together(
        tree,
        storage,
        [
            lambda t: t.put("a", "1"),
            lambda t: t.create("b", "1"),
            lambda t: t.create("b", "2"),
            lambda t: t.create("b/c", "2"),
            lambda t: t.create("d", "1"),
            lambda t: t.create("e", "1"),
            lambda t: t.append("b", "3"),
        ],
    )
    assert [type(each) for each in results[2:4]] == [AlreadyExistsError] * 2
    assert isinstance(results[5], LimitExceededError)
    assert tree.read_file("b")[1] == "13"
    assert tree.snapshot().usage.files == 3


def test_a_failed_upload_fails_the_calls_that_need_it_and_no_other(storage, open_tree_on):
    tree = open_tree_on(storage, TreePolicy(parallel=1))
    tree.create("a", "")
    put = storage.inner.put_if_version

    def refuse(key, data, metadata, expected):
        if b"bad" in data and not key.endswith("/root"):
            raise StorageRejectedError("full", "no room")
        return put(key, data, metadata, expected)

    storage.inner.put_if_version = refuse
    results = run_together(
        tree,
        storage,
        [
            lambda t: t.put("a", "1"),
            lambda t: t.append("a", "2"),
            lambda t: t.create("b", "bad"),
            lambda t: t.append("b", "worse"),
            lambda t: t.append("a", "3"),
        ],
    )
    assert [type(each) for each in results[2:4]] == [StorageRejectedError] * 2
    assert results[2] is not results[3]
    assert tree.read_file("a")[1] == "123"
    assert tree.verify().files == 1


def test_after_an_unknown_commit_the_applied_are_unknown_and_the_refused_are_decided_again(
    storage, open_tree_on, small
):
    tree = open_tree_on(storage, replace(small, deadline=1.0))
    tree.create("a", "")
    gate = Gate(storage)
    down = False

    def cut(method, key):
        nonlocal down
        first = gate.first
        gate(method, key)
        if not first and (method, key[-5:]) == ("put_if_version", "/root"):
            down = True
        if down and key.endswith("/root"):
            if method == "get" and tree._committer.patience._monotonic() >= 1.0:
                # The deadline has passed; now the storage is back.
                down = False
                storage.fault = lambda _m, _k: None
                return "down"
            return "dropped"
        return None

    results = [None, None, None]

    def run(number, act):
        try:
            results[number] = act()
        except Exception as error:
            results[number] = error

    acts = [
        lambda: tree.append("a", "1"),
        lambda: tree.append("a", "2"),
        lambda: tree.create("a", "3"),
    ]
    threads = [threading.Thread(target=run, args=each) for each in enumerate(acts)]
    storage.fault = cut
    threads[0].start()
    assert gate.entered.wait(WAIT)
    for count, thread in enumerate(threads[1:], start=1):
        thread.start()
        ends = time.monotonic() + WAIT
        while len(tree._queue._waiting) < count:
            assert time.monotonic() < ends
            time.sleep(0.001)  # polling for a queue that has no event of its own
    gate.open.set()
    for thread in threads:
        thread.join(WAIT)
    assert results[0].size == 1
    assert isinstance(results[1], BackendUnavailableError)
    assert results[1].outcome == "unknown"
    assert isinstance(results[2], AlreadyExistsError)
    assert tree.read_file("a")[1] == "1"


@dataclass(frozen=True, kw_only=True)
class Interrupted:
    """A request whose decision is interrupted, as by Ctrl-C in the leader's thread."""

    path: str = ""
    effect_key: str | None = None
    operation: str = "interrupt"

    def decide(self, desk):
        raise KeyboardInterrupt


def test_an_interrupted_leader_takes_no_other_call_with_it(storage, open_tree_on):
    tree = open_tree_on(storage, TreePolicy(parallel=1))
    tree.create("a", "")
    interrupted = []

    def interrupt(tree):
        try:
            tree._queue.run(Interrupted())
        except KeyboardInterrupt:
            interrupted.append(True)

    results = run_together(
        tree,
        storage,
        [
            lambda t: t.append("a", "1"),
            interrupt,
            lambda t: t.append("a", "2"),
            lambda t: t.append("a", "3"),
        ],
    )
    assert interrupted == [True]
    assert [each.size for each in results[2:]] == [2, 3]
    assert tree.read_file("a")[1] == "123"
    tree.append("a", "4")


def test_followers_take_over_from_a_leader_that_died_without_a_word(storage, open_tree_on):
    tree = open_tree_on(storage, TreePolicy(parallel=1))
    tree.create("a", "")
    dead = threading.Thread(target=lambda: None)
    dead.start()
    dead.join()
    tree._queue._leader = dead
    results = []
    threads = [
        threading.Thread(target=lambda n=n: results.append(tree.append("a", f"<{n}>")))
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT + _LOOK_SECONDS)
        assert not thread.is_alive()
    assert len(results) == 4
    assert len(tree.read_file("a")[1]) == 12


def test_a_follower_stops_waiting_for_a_leader_that_never_comes_back(storage, open_tree_on, small):
    tree = open_tree_on(storage, replace(small, deadline=0.05))
    tree._committer.patience._monotonic = time.monotonic
    tree.create("a", "")
    tree._queue._leader = threading.main_thread()
    outcome = []

    def follow():
        try:
            tree.append("a", "x")
        except BackendUnavailableError as error:
            outcome.append((error.reason, error.outcome))

    thread = threading.Thread(target=follow)
    thread.start()
    thread.join(WAIT)
    assert outcome == [("timeout", "not_applied")]
    tree._queue._leader = None
    assert tree.read_file("a")[1] == ""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
def test_a_child_forked_during_a_commit_writes_through_the_tree_it_inherited(tmp_path):
    from wenchang.storage.filesystem import FilesystemStorage

    storage = FilesystemStorage(tmp_path)
    entered, leave = threading.Event(), threading.Event()

    class Slow:
        def __getattr__(self, name):
            return getattr(storage, name)

        def put_if_version(self, key, *rest):
            if key.endswith("/root") and armed:
                entered.set()
                assert leave.wait(WAIT)
            return storage.put_if_version(key, *rest)

    armed = False
    tree = FileTree(Slow(), "@files/ada")
    tree.create("a", "")
    armed = True
    thread = threading.Thread(target=lambda: tree.append("a", "parent"))
    thread.start()
    assert entered.wait(WAIT)
    child = os.fork()
    if child == 0:
        signal.alarm(int(WAIT))
        code = 1
        try:
            armed = False
            tree.append("a", "child")
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    armed = False
    leave.set()
    thread.join(WAIT)
    assert status == 0
    text = tree.read_file("a")[1]
    assert sorted((text.count("parent"), text.count("child"))) == [1, 1]
