"""Many threads and processes on one key and on many, with a disturbance in the middle if you like.

    python benchmarks/sql_soak.py URL [--seconds 30] [--threads 16] [--processes 4] [--disturb CMD]

Every worker increments one shared counter and works on keys of its own: creates, conditional
replaces, reads, pages, deletes. Only successes and real conflicts are allowed; with `--disturb`, a shell
command that is run halfway (restart or kill the server with it), unavailable and unknown outcomes
are too. At the end: the counter lies between the successes and the successes plus unknown outcomes,
and everything acknowledged is there at its version.
"""

from __future__ import annotations

import argparse
import collections
import json
import secrets
import subprocess
import sys
import threading
import time
from typing import Any

from wenchang.errors import BackendUnavailableError
from wenchang.storage import PreconditionFailedError, open_storage

WORKER = "--worker"


def work(storage: Any, name: str, ends: float, tally: collections.Counter[str]) -> dict[str, str]:
    """Do a round of everything until `ends`; return the versions of what must be there."""
    mine: dict[str, str] = {}
    step = 0
    while time.time() < ends:
        step += 1
        key = f"own/{name}/{step % 50}"
        try:
            counter = storage.get("counter")
        except BackendUnavailableError:
            tally["unavailable"] += 1
            continue
        try:
            storage.put_if_version("counter", b"%d" % (int(counter.data) + 1), {}, counter.version)
            tally["incremented"] += 1
        except PreconditionFailedError:
            tally["conflict"] += 1
        except BackendUnavailableError as error:
            tally["counter unknown" if error.outcome == "unknown" else "unavailable"] += 1
        known = mine.get(key)
        try:
            if known is not None and step % 7 == 0:
                del mine[key]
                storage.delete_if_version(key, known)
            elif known is not None or key not in mine:
                mine.pop(key, None)
                mine[key] = storage.put_if_version(key, b"x" * 300, {"s": str(step)}, known)
            tally["own"] += 1
        except PreconditionFailedError:
            # Nobody else writes here: only an unknown outcome before explains it.
            tally["FALSE CONFLICT" if f"{key}?" not in mine else "conflict after unknown"] += 1
            found = storage.get(key)
            if found is not None:
                mine[key] = found.version
        except BackendUnavailableError as error:
            tally["own unknown" if error.outcome == "unknown" else "unavailable"] += 1
            mine[f"{key}?"] = ""
            mine.pop(key, None)
        if step % 20 == 0:
            try:
                storage.list_page(f"own/{name}/", None, 100)
            except BackendUnavailableError:
                tally["unavailable"] += 1
    return mine


def worker(url: str, name: str, threads: int, ends: float) -> None:
    storage = open_storage(url)
    tallies = [collections.Counter[str]() for _ in range(threads)]
    kept: list[dict[str, str]] = [{} for _ in range(threads)]

    def run(number: int) -> None:
        try:
            kept[number] = work(storage, f"{name}-{number}", ends, tallies[number])
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            tallies[number][f"ERROR {type(error).__name__}: {error.__cause__!r}"] += 1

    running = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    total = sum(tallies, collections.Counter[str]())
    unsure = {key[:-1] for one in kept for key in one if key.endswith("?")}
    sure = {
        key: version
        for one in kept
        for key, version in one.items()
        if not key.endswith("?") and key not in unsure
    }
    print(json.dumps({"tally": total, "sure": sure}))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("url")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--disturb")
    parser.add_argument(WORKER, nargs=2)
    arguments = parser.parse_args()
    if arguments.worker:
        name, ends = arguments.worker
        worker(arguments.url, name, arguments.threads, float(ends))
        return 0
    separator = "&" if "?" in arguments.url else "?"
    url = f"{arguments.url}{separator}namespace=soak-{secrets.token_hex(6)}"
    storage = open_storage(url)
    storage.put("counter", b"0", {})
    ends = time.time() + arguments.seconds
    running = [
        subprocess.Popen(
            [
                sys.executable,
                __file__,
                url,
                "--threads",
                str(arguments.threads),
                WORKER,
                str(number),
                str(ends),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(arguments.processes)
    ]
    if arguments.disturb:
        time.sleep(arguments.seconds / 2)
        subprocess.run(arguments.disturb, shell=True, check=True)  # noqa: S602 - the caller's own
    total: collections.Counter[str] = collections.Counter()
    sure: dict[str, str] = {}
    for process in running:
        answer = json.loads(process.communicate()[0])
        total.update(answer["tally"])
        sure.update(answer["sure"])
    for name, count in sorted(total.items()):
        print(f"  {name:24} {count}")
    value = int(storage.get("counter").data)
    done, unknown = total["incremented"], total["counter unknown"]
    versions: dict[str, str] = {}
    after = None
    while page := storage.list_versions("own/", after, 1000):
        versions.update(page)
        after = page[-1][0]
    missing = [key for key, version in sure.items() if versions.get(key) != version]
    print(f"  counter {value}, successes {done}, unknown {unknown}; {len(missing)} writes missing")
    allowed = {"incremented", "conflict", "own"}
    if arguments.disturb:
        allowed |= {"unavailable", "counter unknown", "own unknown", "conflict after unknown"}
    good = done <= value <= done + unknown and not missing and set(total) <= allowed
    print("  as it must be" if good else "  WRONG")
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
