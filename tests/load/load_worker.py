"""One process of a mixed load: threads that do everything, each step told to the parent as a line.

    python load_worker.py URL NAME THREADS

It works until its standard input is closed. A line says what is known to its writer at that moment:
`try KEY`, then `wrote KEY VERSION`, `deleted KEY`, `conflict KEY`, `unknown KEY` or `failed KEY` (nothing
changed); `increment` and `increment?` for the shared counter; `error TEXT` for what must not be.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from wenchang.storage import BackendUnavailableError, PreconditionFailedError, open_storage

if TYPE_CHECKING:
    from wenchang.storage import Storage

KEYS = 3
DELETE_EVERY = 5

_telling = threading.Lock()


def tell(*words: str) -> None:
    """Write one line at once; what was acknowledged and not told could not be missed."""
    with _telling:
        sys.stdout.write(" ".join(words) + "\n")
        sys.stdout.flush()


def increment(storage: Storage) -> None:
    """Try once to increment the counter that everybody shares."""
    try:
        counter = storage.get("counter")
        if counter is None:
            tell("error", "the counter is gone")
            return
        storage.put_if_version("counter", b"%d" % (int(counter.data) + 1), {}, counter.version)
    except PreconditionFailedError:
        return
    except BackendUnavailableError as error:
        if error.outcome == "unknown":
            tell("increment?")
        return
    tell("increment")


def change(storage: Storage, key: str, known: dict[str, str], *, delete: bool) -> None:
    """Create, replace or delete a key that only this thread changes."""
    version = known.get(key)
    tell("try", key)
    try:
        if delete and version is not None:
            storage.delete_if_version(key, version)
            del known[key]
            tell("deleted", key)
            return
        known[key] = storage.put_if_version(key, b"x" * 300, {"of": key}, version)
        tell("wrote", key, known[key])
    except PreconditionFailedError as refused:
        tell("conflict", key)
        known.pop(key, None)
        if refused.current is not None:
            known[key] = refused.current.version
    except BackendUnavailableError as error:
        tell("unknown" if error.outcome == "unknown" else "failed", key)


def work(storage: Storage, name: str, stop: threading.Event) -> None:
    """Do a round of everything until told to stop."""
    known: dict[str, str] = {}
    step = 0
    while not stop.is_set():
        step += 1
        increment(storage)
        change(storage, f"own/{name}/{step % KEYS}", known, delete=step % DELETE_EVERY == 0)
        if step % 20 == 0:
            try:
                storage.list_page(f"own/{name}/", None, 100)
            except BackendUnavailableError:
                continue


def run(storage: Storage, name: str, stop: threading.Event) -> None:
    """Work; tell of an error that has no place here."""
    try:
        work(storage, name, stop)
    except Exception as error:
        tell("error", f"{type(error).__name__}: {error}")


def main(url: str, name: str, threads: int) -> None:
    """Work until standard input ends."""
    storage = open_storage(url)
    stop = threading.Event()
    running = [
        threading.Thread(target=run, args=(storage, f"{name}-{number}", stop))
        for number in range(threads)
    ]
    for thread in running:
        thread.start()
    sys.stdin.read()
    stop.set()
    for thread in running:
        thread.join()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
