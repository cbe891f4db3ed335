"""Counters under lost answers, and requests counted at a proxy, on the emulator."""

from __future__ import annotations

from collections import Counter
from functools import partial
from urllib.parse import urlsplit

import pytest

from wenchang.errors import BackendUnavailableError
from wenchang.storage import PreconditionFailedError
from wenchang_conformance.faults import Chaos, Fault, FaultProxy, matching

WRITERS, INCREMENTS = 8, 25
WRITES = matching("POST", "DELETE")


@pytest.fixture
def proxy(emulator):
    parts = urlsplit(emulator)
    with FaultProxy((parts.hostname, parts.port)) as proxy:
        yield proxy


@pytest.fixture
def open_behind(proxy, open_at, emulator_bucket):
    return partial(open_at, f"http://127.0.0.1:{proxy.port}", emulator_bucket)


def count_up(storage, ends):
    """Increment until there were enough successes or unknown outcomes of one's own."""
    while ends["returned"] + ends["unknown"] < INCREMENTS:
        found = storage.get("counter")
        try:
            storage.put_if_version("counter", b"%d" % (int(found.data) + 1), {}, found.version)
            ends["returned"] += 1
        except PreconditionFailedError:
            ends["conflict"] += 1
        except BackendUnavailableError as error:
            ends[error.outcome] += 1
    return ends


def counted(storage, open_one, race):
    """Count up in threads, each with a handle of its own; return their ends and the counter."""
    storage.put("counter", b"0", {})
    handles = [open_one() for _ in range(WRITERS)]
    results = race([partial(count_up, one, Counter()) for one in handles], 170.0)
    for result in results:
        assert isinstance(result, Counter), result
    return sum(results, Counter()), int(storage.get("counter").data)


@pytest.mark.parametrize("seed", [1, 2])
def test_race_cas_a_counter_is_exact_although_a_tenth_of_the_answers_is_reset(
    proxy, open_behind, open_at, emulator, emulator_bucket, race, seed
):
    storage = open_at(emulator, emulator_bucket, deadline=30.0, attempt_timeout=10.0)
    proxy.script(Chaos(seed=seed, rates=((Fault.drop_answer(), 0.1),), match=WRITES))
    ends, counter = counted(
        storage, partial(open_behind, deadline=30.0, attempt_timeout=10.0), race
    )
    assert ends["unknown"] == ends["not_applied"] == 0, ends
    assert counter == ends["returned"] == WRITERS * INCREMENTS
    assert sum(entry.fault == "DropAnswer" for entry in proxy.log.entries()) > 5


def test_race_cas_a_counter_stays_within_its_bounds_where_answers_never_come(
    proxy, open_behind, open_at, emulator, emulator_bucket, race
):
    storage = open_at(emulator, emulator_bucket, deadline=30.0, attempt_timeout=10.0)
    proxy.script(Chaos(seed=3, rates=((Fault.hang(applied=True), 0.1),), match=WRITES))
    ends, counter = counted(storage, partial(open_behind, deadline=9.0, attempt_timeout=0.5), race)
    assert ends["returned"] <= counter <= ends["returned"] + ends["unknown"], (ends, counter)
    assert ends["returned"] > 0


def test_requests_counted_at_the_proxy_are_those_that_the_documents_name(proxy, open_behind):
    storage = open_behind(deadline=30.0, attempt_timeout=10.0)

    def requests(call):
        proxy.log.clear()
        return call(), proxy.log.total

    version, count = requests(lambda: storage.put_if_version("k", b"1", {"n": "1"}, None))
    assert count == 1
    version, count = requests(lambda: storage.put_if_version("k", b"2", {"n": "2"}, version))
    assert count == 1
    found, count = requests(lambda: storage.get("k"))
    assert (found.data, count) == (b"2", 2)
    for number in range(120):
        storage.put_if_version(f"page/{number:04}", b"", {"n": "1"}, None)
    for limit, start in ((1000, None), (100, None), (100, "page/0000")):
        page, count = requests(
            lambda limit=limit, start=start: storage.list_page("page/", start, limit)
        )
        assert (len(page), count) == (min(limit, 120), 1)
    _, count = requests(lambda: storage.delete_if_version("k", version))
    assert count == 1
    assert not [entry for entry in proxy.log.entries() if "/o" not in entry.path]


def test_b58_a_key_is_percent_encoded_once(open_behind):
    storage = open_behind()
    keys = ["100%/50%25.md", "a+b", "a b", "a%20b", "a?b#c", "ä/ä", "😀/％"]
    for key in keys:
        storage.put_if_version(key, key.encode(), {}, None)
    assert sorted(keys) == [one.key for one in storage.list_page("", None, 50)]
    assert [storage.get(key).data for key in keys] == [key.encode() for key in keys]


def test_b67_the_longest_key_behind_the_longest_prefix(open_at, emulator, emulator_bucket):
    storage = open_at(
        emulator, f"{emulator_bucket}/{'p' * 123}", deadline=30.0, attempt_timeout=10.0
    )
    for key in ("k" * 900, "😀" * 225, "/".join("k" * 200)):
        version = storage.put_if_version(key, b"x", {}, None)
        assert [one.key for one in storage.list_page(key, None, 5)] == [key]
        storage.delete_if_version(key, version)
