"""Threads of a tree object: for requests that go out side by side, and for work in the background."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

__all__ = ["Workers"]

_T = TypeVar("_T")
_R = TypeVar("_R")
_log = logging.getLogger(__name__)


class Workers:
    """At most `parallel` things at a time; with 1 there are no threads, and all is done in the caller's.

    Threads are started when they are first needed.
    """

    def __init__(self, parallel: int) -> None:
        self._parallel = parallel
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self._waiting: set[Future[None]] = set()
        self._background: threading.Thread | None = None

    def each(self, works: Sequence[Callable[[], None]]) -> list[Exception | None]:
        """Do all of it, side by side; return for each the exception it ended in, or None.

        The caller's thread does the last one itself.
        """
        futures = [self._submit(work) for work in works[:-1]]
        ends = [_end_of(work) for work in works[-1:]]
        return [*(_end_of(future.result) for future in futures), *ends]

    def ahead(self, items: Iterable[_T], work: Callable[[_T], _R]) -> Iterator[tuple[_T, _R]]:
        """Yield each item with the result of its work, in order, working on some of the next already."""
        if self._parallel == 1:
            for item in items:
                yield item, work(item)
            return
        begun: deque[tuple[_T, Future[_R]]] = deque()
        try:
            for item in items:
                begun.append((item, self._submit(_bound(work, item))))
                if len(begun) >= self._parallel:
                    first, future = begun.popleft()
                    yield first, future.result()
            while begun:
                first, future = begun.popleft()
                yield first, future.result()
        finally:
            for _, future in begun:
                future.cancel()

    def later(self, works: Sequence[Callable[[], None]]) -> None:
        """Do it some time soon; exceptions are the work's own business."""
        futures = {self._submit(work) for work in works}
        with self._lock:
            self._waiting = {each for each in self._waiting if not each.done()} | futures

    def alone(self, work: Callable[[], object]) -> None:
        """Do it in a thread of its own, unless the last such work is not done yet."""
        with self._lock:
            if self._background is not None and self._background.is_alive():
                return
            thread = threading.Thread(
                target=_logged, args=(work,), name="wenchang-files-sweep", daemon=True
            )
            self._background = thread
        thread.start()

    def wait(self) -> None:
        """Wait until nothing is left in the background."""
        with self._lock:
            waiting, thread = set(self._waiting), self._background
        wait(waiting)
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _submit(self, work: Callable[[], _R]) -> Future[_R]:
        if self._parallel > 1:
            try:
                return self._started().submit(work)
            except RuntimeError:
                # The interpreter is shutting down and starts no thread: do it here.
                pass
        future: Future[_R] = Future()
        try:
            future.set_result(work())
        except Exception as error:  # noqa: BLE001 - whoever asks for the result gets it
            future.set_exception(error)
        return future

    def _started(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._parallel, thread_name_prefix="wenchang-files")
            return self._pool


def _end_of(work: Callable[[], object]) -> Exception | None:
    try:
        work()
    except Exception as error:  # noqa: BLE001 - handed to the caller, who knows what it means
        return error
    return None


def _bound(work: Callable[[_T], _R], item: _T) -> Callable[[], _R]:
    return lambda: work(item)


def _logged(work: Callable[[], object]) -> None:
    try:
        work()
    except Exception:  # noqa: BLE001 - nobody waits for it; the next sweep tries again
        _log.warning("a sweep of the file tree failed", exc_info=True)
