"""What one racer does, in a thread or in a process of its own. Functions of (storage, …) only."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from wenchang.storage import BackendUnavailableError, PreconditionFailedError
from wenchang_conformance.linearizability import Recorder, RecordingStorage

if TYPE_CHECKING:
    from wenchang.storage import Storage

__all__ = ["create_each", "fork_child", "increment", "mixed", "put_until_killed", "recorded"]


def create_each(storage: Storage, who: int, count: int) -> list[int]:
    """Try to create each of `count` keys; return the numbers of those that succeeded."""
    won = []
    for number in range(count):
        try:
            storage.put_if_version(f"p/{number}", b"%d" % who, {}, None)
        except PreconditionFailedError:
            continue
        won.append(number)
    return won


def increment(storage: Storage, key: str, goal: int) -> tuple[int, int]:
    """Increment a counter until `goal` increments returned or are unknown; return both counts."""
    successes = unknown = 0
    while successes + unknown < goal:
        try:
            found = storage.get(key)
        except BackendUnavailableError:
            continue
        if found is None:
            msg = "the counter has vanished"
            raise LookupError(msg)
        try:
            storage.put_if_version(key, b"%d" % (int(found.data) + 1), {}, found.version)
        except PreconditionFailedError:
            continue
        except BackendUnavailableError as error:
            unknown += error.outcome != "not_applied"
            continue
        successes += 1
    return successes, unknown


def mixed(storage: Storage, who: int, seed: int, keys: tuple[str, ...], count: int) -> int:
    """Do `count` calls of every kind, drawn from the seed; every write has bytes of its own."""
    draw = random.Random(seed * 1000 + who)  # noqa: S311 - the same calls for the same seed
    known: dict[str, str | None] = dict.fromkeys(keys)
    for number in range(count):
        key = draw.choice(keys)
        tag = f"{who}-{seed}-{number}"
        body, metadata = tag.encode(), {"tag": tag}
        kind = draw.choice(
            ("get", "create", "replace", "replace", "replace", "put", "delete", "list")
        )
        version = known[key]
        if kind in {"replace", "delete"} and version is None:
            kind = "get"
        try:
            if kind == "get":
                found = storage.get(key)
                known[key] = None if found is None else found.version
            elif kind == "create":
                known[key] = storage.put_if_version(key, body, metadata, None)
            elif kind == "replace":
                known[key] = storage.put_if_version(key, body, metadata, version)
            elif kind == "put":
                known[key] = storage.put(key, body, metadata)
            elif kind == "delete" and version is not None:
                storage.delete_if_version(key, version)
                known[key] = None
            else:
                page = storage.list_page(key, None, 10)
                known[key] = next((entry.version for entry in page if entry.key == key), None)
        except (PreconditionFailedError, BackendUnavailableError):
            known[key] = None
    return count


def recorded(storage: Storage, who: int, seed: int, keys: tuple[str, ...], count: int) -> str:
    """Do as `mixed` and return the recorded history as JSON."""
    recorder = Recorder()
    client = RecordingStorage(storage, recorder, client=f"p{who}", keys=keys, tag="tag")
    mixed(client, who, seed, keys, count)
    return recorder.history().to_json()


def put_until_killed(storage: Storage, key: str, body: bytes) -> str:
    """Write one object; the caller kills this process when it has the answer."""
    return storage.put(key, body, {"n": "1"})


def fork_child(storage: Storage, key: str) -> str:
    """Use an inherited handle in a forked child; return what went wrong, or nothing."""
    found = storage.get("before-fork")
    if found is None or found.data != b"parent":
        return f"get of what the parent wrote returned {found!r}"
    version = storage.put_if_version(key, b"child", {"n": "1"}, None)
    version = storage.put_if_version(key, b"child again", {}, version)
    listed = [entry.key for entry in storage.list_page(key, None, 5)]
    if listed != [key]:
        return f"a listing in the child shows {listed!r}"
    return ""
