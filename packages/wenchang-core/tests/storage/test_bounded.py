"""Calls that end in time although what they call does not."""

from __future__ import annotations

import gc
import os
import threading

import pytest

from wenchang.storage.bounded import BoundedCalls, CallNotStartedError, CallTimedOutError

WAIT = 30.0


def test_a_call_returns_its_value_and_raises_its_error() -> None:
    calls = BoundedCalls(2)
    assert calls.run(lambda: "value", WAIT) == "value"
    assert calls.run(lambda: None, WAIT) is None

    def fail() -> None:
        msg = "of the call"
        raise LookupError(msg)

    with pytest.raises(LookupError, match="of the call"):
        calls.run(fail, WAIT)


def test_a_call_that_hangs_is_left_behind_and_its_thread_comes_back() -> None:
    calls = BoundedCalls(1)
    ended = threading.Event()
    with pytest.raises(CallTimedOutError):
        calls.run(lambda: ended.wait(WAIT), 0.01)
    with pytest.raises(CallNotStartedError):
        calls.run(lambda: "no thread is free", 0.01)
    ended.set()
    assert calls.run(lambda: "again", WAIT) == "again"


def test_no_more_calls_run_at_once_than_the_limit() -> None:
    calls = BoundedCalls(3)
    lock, running, most = threading.Lock(), 0, 0
    full = threading.Barrier(3, timeout=WAIT)

    def call(number: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        # Three at a time must be inside before any of them leaves: they do overlap.
        full.wait()
        with lock:
            running -= 1
        return number * 2

    assert calls.map(call, range(9), WAIT) == [number * 2 for number in range(9)]
    assert most == 3


def test_threads_are_used_again() -> None:
    calls = BoundedCalls(4)
    seen = {calls.run(threading.get_ident, WAIT) for _ in range(20)}
    assert len(seen) <= 4


def test_closing_ends_idle_threads_and_leaves_the_calls_usable() -> None:
    calls = BoundedCalls(2)
    worker = calls.run(threading.current_thread, WAIT)
    while worker.is_alive():
        # The worker becomes idle a moment after its answer; closing sooner finds nothing to end.
        calls.close()
        worker.join(0.01)
    assert calls.run(lambda: 1, WAIT) == 1


def test_threads_of_calls_that_nobody_closed_or_holds_any_more_end() -> None:
    before = set(threading.enumerate())
    calls = BoundedCalls(2)
    hanging = threading.Event()
    with pytest.raises(CallTimedOutError):
        calls.run(hanging.wait, 0.01)
    calls.run(lambda: None, WAIT)
    started = set(threading.enumerate()) - before
    ours = [thread for thread in started if thread.name == "wenchang-call"]
    assert len(ours) == 2

    del calls
    gc.collect()
    hanging.set()

    for thread in ours:
        thread.join(WAIT)
        assert not thread.is_alive()


def test_a_forked_child_starts_threads_of_its_own() -> None:
    calls = BoundedCalls(1)
    assert calls.run(lambda: 1, WAIT) == 1
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if calls.run(lambda: 2, WAIT) == 2 else 1
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert calls.run(lambda: 3, WAIT) == 3
