"""What must hold on real servers: histories, lost answers, and how many requests it takes."""

from __future__ import annotations

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from wenchang.errors import BackendUnavailableError
from wenchang.storage import PreconditionFailedError
from wenchang.storage.envelope import decode
from wenchang_conformance.faults import Chaos, Fault, Rule, matching

WRITERS, INCREMENTS = 8, 25


def requests(proxy: Any) -> list[str]:
    """Return method and kind of each request that the proxy saw, and forget them."""
    seen = [
        "LIST" if "list-type=2" in entry.path else entry.method for entry in proxy.log.entries()
    ]
    proxy.log.clear()
    return seen


# --- versions ------------------------------------------------------------------------------------


def test_the_same_content_again_is_a_new_version(any_bucket: Any) -> None:
    storage = any_bucket.open()
    first = storage.put("k", b"A", {"n": "1"})
    storage.put("k", b"B", {"n": "1"})
    third = storage.put("k", b"A", {"n": "1"})
    assert first != third
    for call in (
        lambda: storage.put_if_version("k", b"C", {}, first),
        lambda: storage.delete_if_version("k", first),
    ):
        with pytest.raises(PreconditionFailedError) as caught:
            call()
        assert caught.value.current.version == third
    assert storage.get("k").data == b"A"


def test_a_change_of_metadata_alone_is_a_new_version(any_bucket: Any) -> None:
    storage = any_bucket.open()
    first = storage.put("k", b"A", {"n": "1"})
    second = storage.put("k", b"A", {"n": "2"})
    assert first != second
    with pytest.raises(PreconditionFailedError):
        storage.put_if_version("k", b"A", {"n": "3"}, first)
    assert storage.get("k").metadata == {"n": "2"}


def test_a_key_that_was_deleted_and_made_again_refuses_its_old_version(any_bucket: Any) -> None:
    storage = any_bucket.open()
    first = storage.put_if_version("k", b"A", {}, None)
    storage.delete_if_version("k", first)
    second = storage.put_if_version("k", b"A", {}, None)
    for call in (
        lambda: storage.put_if_version("k", b"B", {}, first),
        lambda: storage.delete_if_version("k", first),
    ):
        with pytest.raises(PreconditionFailedError):
            call()
    assert storage.get("k").version == second


def test_in_a_versioned_bucket_only_what_is_current_counts(any_bucket: Any) -> None:
    any_bucket.client.put_bucket_versioning(
        Bucket=any_bucket.name, VersioningConfiguration={"Status": "Enabled"}
    )
    storage = any_bucket.open()
    first = storage.put_if_version("k", b"A", {}, None)
    storage.delete_if_version("k", first)
    assert storage.get("k") is None
    assert storage.list_page("", None, 5) == []
    for call in (
        lambda: storage.put_if_version("k", b"B", {}, first),
        lambda: storage.delete_if_version("k", first),
    ):
        with pytest.raises(PreconditionFailedError) as caught:
            call()
        assert caught.value.current is None
    storage.put_if_version("k", b"B", {}, None)
    assert storage.get("k").data == b"B"
    # Emptied here, old versions included, since the fixture removes current objects only.
    found = any_bucket.client.list_object_versions(Bucket=any_bucket.name)
    for one in found.get("Versions", []) + found.get("DeleteMarkers", []):
        any_bucket.client.delete_object(
            Bucket=any_bucket.name, Key=one["Key"], VersionId=one["VersionId"]
        )


# --- lost answers --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["create", "replace", "put"])
def test_a_rival_that_replaces_our_landed_write_before_it_is_read_back_does_not_hide_it(
    any_bucket: Any, kind: str
) -> None:
    proxy = any_bucket.proxy()
    storage, rival = any_bucket.open_behind(proxy), any_bucket.open()
    rival.prove()
    before = None if kind == "create" else rival.put("k", b"before", {})
    ours: list[str] = []

    def overwrite() -> None:
        found = rival.get("k")
        assert found.data == b"ours"
        ours.append(found.version)
        rival.put_if_version("k", b"rival", {}, found.version)

    proxy.script(Rule(fault=Fault.drop_answer(), match=matching("PUT"), interloper=overwrite))
    if kind == "put":
        version = storage.put("k", b"ours", {})
    else:
        version = storage.put_if_version("k", b"ours", {}, before)
    assert [version] == ours
    assert storage.get("k").data == b"rival"
    assert not proxy.errors


@pytest.mark.parametrize("lost_by", ["reset", "time-out"])
def test_a_counter_is_exact_although_a_tenth_of_the_answers_is_lost(
    any_bucket: Any, lost_by: str
) -> None:
    proxy = any_bucket.proxy()
    options = {"deadline": 60.0, "attempt_timeout": 5.0 if lost_by == "reset" else 0.5}
    writers = [any_bucket.open_behind(proxy, **options) for _ in range(WRITERS)]
    fault = Fault.drop_answer() if lost_by == "reset" else Fault.hang(applied=True)
    any_bucket.open().put("counter", b"0", {})
    rate = 0.1 if lost_by == "reset" else 0.02
    proxy.script(Chaos(seed=3, rates=((fault, rate),), match=matching("PUT")))
    successes, unknown, errors = [], [], []

    def count(storage: Any) -> None:
        done = 0
        while done < INCREMENTS:
            try:
                found = storage.get("counter")
                body = b"%d" % (int(found.data) + 1)
                storage.put_if_version("counter", body, {}, found.version)
                successes.append(1)
                done += 1
            except PreconditionFailedError:
                continue
            except BackendUnavailableError as error:
                if error.outcome != "unknown":
                    continue
                unknown.append(1)
                done += 1
            except Exception as error:
                errors.append(error)
                return

    threads = [threading.Thread(target=count, args=(writer,)) for writer in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(150)
    proxy.clear()
    counted = int(any_bucket.open().get("counter").data)
    assert not errors
    assert len(successes) + len(unknown) == WRITERS * INCREMENTS
    assert len(successes) <= counted <= len(successes) + len(unknown)
    if lost_by == "reset":
        assert counted == WRITERS * INCREMENTS
        assert not unknown


# --- requests ------------------------------------------------------------------------------------


def test_each_call_takes_the_requests_that_it_must(any_bucket: Any) -> None:
    proxy = any_bucket.proxy()
    storage = any_bucket.open_behind(proxy)
    first = storage.put_if_version("k", b"1", {}, None)
    assert requests(proxy) == ["PUT"]
    second = storage.put_if_version("k", b"2", {}, first)
    assert requests(proxy) == ["PUT"]
    storage.get("k")
    assert requests(proxy) == ["GET"]
    assert storage.get("absent") is None
    assert requests(proxy) == ["GET"]
    with pytest.raises(PreconditionFailedError):
        storage.put_if_version("k", b"3", {}, first)
    assert requests(proxy) == ["PUT", "GET"]
    with pytest.raises(PreconditionFailedError):
        storage.delete_if_version("k", first)
    assert requests(proxy) == ["DELETE", "GET"]
    storage.delete_if_version("k", second)
    assert requests(proxy) == ["DELETE"]
    storage.put("k", b"4", {})
    assert requests(proxy) == ["GET", "PUT"]


def test_a_listing_reads_only_heads_that_are_new(any_bucket: Any) -> None:
    proxy = any_bucket.proxy()
    writer, reader = any_bucket.open(), any_bucket.open_behind(proxy)
    versions = {f"n/{n:03}": writer.put(f"n/{n:03}", b"x", {"n": str(n)}) for n in range(40)}
    page = reader.list_page("n/", None, 1000)
    assert {entry.key: entry.version for entry in page} == versions
    assert sorted(requests(proxy)) == ["GET"] * 40 + ["LIST"]
    assert reader.list_page("n/", None, 1000) == page
    assert requests(proxy) == ["LIST"]
    writer.put_if_version("n/007", b"y", {"n": "new"}, versions["n/007"])
    writer.delete_if_version("n/008", versions["n/008"])
    page = reader.list_page("n/", None, 1000)
    assert sorted(requests(proxy)) == ["GET", "LIST"]
    assert page[7].metadata == {"n": "new"}
    assert len(page) == 39
    assert len(reader.list_versions("n/", None, 1000)) == 39
    assert requests(proxy) == ["LIST"]


def test_a_cold_index_of_500_files_takes_few_waves(bucket: Any) -> None:
    proxy = bucket.proxy()
    reader = bucket.open_behind(proxy, deadline=120.0, attempt_timeout=60.0, concurrency=32)
    with ThreadPoolExecutor(8) as pool:
        writer = bucket.open()
        list(pool.map(lambda n: writer.put_if_version(f"i/{n:03}", b"x", {}, None), range(500)))
    # Every answer is held back until as many requests have come as can be under way at once.
    proxy.script(Rule(fault=Fault.hold(), times=None))
    pages: list[Any] = []
    lister = threading.Thread(target=lambda: pages.append(reader.list_page("i/", None, 1000)))
    lister.start()
    waves = 0
    for left in (1, *range(500, 0, -32)):
        proxy.wait_for_held(min(32, left), timeout=60)
        assert proxy.release(timeout=60) == min(32, left)
        waves += 1
    lister.join(60)
    assert len(pages[0]) == 500
    assert proxy.log.total == 501
    assert waves <= 18


def test_a_thousand_gets_from_many_threads_leave_no_connection_or_thread_behind(
    bucket: Any,
) -> None:
    storage = bucket.open(deadline=60.0, attempt_timeout=30.0, concurrency=8)
    version = storage.put("k", b"body", {})
    before = set(threading.enumerate())
    with warnings.catch_warnings(), ThreadPoolExecutor(32) as pool:
        warnings.simplefilter("error")
        found = list(pool.map(lambda _: storage.get("k").version, range(1000)))
    assert found == [version] * 1000
    pools = storage._requests._source.ready._endpoint.http_session._manager.pools
    (connections,) = [pools[key] for key in pools.keys()]  # noqa: SIM118 - it cannot be iterated
    assert connections.num_connections <= 8
    storage.close()
    for thread in set(threading.enumerate()) - before:
        # Other tests of this process may leave threads of other kinds that come and go.
        if thread.name == "wenchang-call":
            thread.join(20)
            assert not thread.is_alive()


def test_no_pool_ever_warns_that_it_is_full(bucket: Any, caplog: pytest.LogCaptureFixture) -> None:
    storage = bucket.open(deadline=60.0, attempt_timeout=30.0, concurrency=4)
    for number in range(20):
        storage.put(f"k{number}", b"", {})
    fresh = bucket.open(deadline=60.0, attempt_timeout=30.0, concurrency=4)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda _: fresh.list_page("", None, 100), range(32)))
    assert [record for record in caplog.records if "pool" in record.getMessage()] == []


# --- strangers -----------------------------------------------------------------------------------


def test_a_markdown_file_uploaded_by_hand_reads_lists_and_gets_our_format_when_written(
    any_bucket: Any,
) -> None:
    text = "---\ntitle: Grüße\n---\n\n# By hand\r\n".encode()
    any_bucket.backdoor.put_raw("notes/hand.md", text)
    storage = any_bucket.open()
    found = storage.get("notes/hand.md")
    assert (found.data, found.metadata) == (text, {})
    (entry,) = any_bucket.open().list_page("notes/", None, 5)
    assert (entry.key, entry.metadata, entry.version) == ("notes/hand.md", {}, found.version)
    storage.put_if_version("notes/hand.md", text, {"d": "ours"}, found.version)
    raw = any_bucket.backdoor.get_raw("notes/hand.md")
    assert raw.startswith(b"---\nwenchang: {")
    assert decode(raw).body == text
    assert storage.get("notes/hand.md").metadata == {"d": "ours"}


def test_a_body_edited_by_hand_is_read_as_edited_under_a_new_version(any_bucket: Any) -> None:
    storage = any_bucket.open()
    version = storage.put_if_version("k", b"as written", {"d": "kept"}, None)
    raw = any_bucket.backdoor.get_raw("k")
    any_bucket.backdoor.put_raw("k", raw.replace(b"as written", b"as edited"))
    found = storage.get("k")
    assert (found.data, found.metadata) == (b"as edited", {"d": "kept"})
    assert found.version != version
    with pytest.raises(PreconditionFailedError):
        storage.put_if_version("k", b"over it", {}, version)
    storage.put_if_version("k", b"after it", {}, found.version)


def test_broken_metadata_hides_no_neighbour(any_bucket: Any) -> None:
    storage = any_bucket.open()
    for name in ("a", "b", "c"):
        storage.put(name, b"body", {"n": name})
    any_bucket.backdoor.corrupt("b")
    any_bucket.backdoor.put_raw("b2", b'---\nwenchang: {"format":')
    any_bucket.backdoor.put_raw("b3", b"\xff\xfe\x00")
    page = any_bucket.open().list_page("", None, 10)
    assert [entry.key for entry in page] == ["a", "b", "b2", "b3", "c"]
    assert list(page[1].metadata) == ["wenchang-unreadable"]
