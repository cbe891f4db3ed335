"""What `WenchangStore` promises beyond the protocol: versions, tenants, exactness, and calm refusals."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

pytest.importorskip("langgraph", reason="the extra langgraph is not installed here")

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime, get_runtime
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    PutOp,
    SearchOp,
)

from wenchang.adapters.langgraph import ItemConflictError, ItemStateError, WenchangStore
from wenchang.errors import BackendUnavailableError
from wenchang.files.errors import NoTenantError
from wenchang.storage import PreconditionFailedError
from wenchang.storage.memory import InMemoryStorage

NS = ("users", "u1")
EDITORS = 20
WAIT = 60


@pytest.fixture
def storage():
    return InMemoryStorage()


@pytest.fixture
def store(storage):
    return WenchangStore(storage, tenant="acme")


def object_keys(storage):
    return [listed.key for listed in storage.list_page("", None, 1000)]


class TestVersions:
    def test_an_item_is_created_once(self, store):
        version = store.put_if(NS, "k", {"n": 1}, None)

        with pytest.raises(ItemConflictError) as refused:
            store.put_if(NS, "k", {"n": 2}, None)

        assert refused.value.current.version == version
        assert refused.value.current.item.value == {"n": 1}
        assert store.get_versioned(NS, "k").version == version

    def test_a_stale_version_is_refused_and_changes_nothing(self, store):
        old = store.put_if(NS, "k", {"n": 1}, None)
        new = store.put_if(NS, "k", {"n": 2}, old)

        with pytest.raises(ItemConflictError) as refused:
            store.put_if(NS, "k", {"n": 3}, old)

        assert (refused.value.current.version, refused.value.current.item.value) == (new, {"n": 2})
        assert store.get(NS, "k").value == {"n": 2}

    def test_a_replacement_of_what_is_gone_is_refused(self, store):
        version = store.put_if(NS, "k", {"n": 1}, None)
        store.delete_if(NS, "k", version)

        with pytest.raises(ItemConflictError) as refused:
            store.put_if(NS, "k", {"n": 2}, version)
        with pytest.raises(ItemConflictError):
            store.delete_if(NS, "k", version)

        assert refused.value.current is None
        assert store.get_versioned(NS, "k") is None

    def test_a_put_makes_versions_stale_even_with_an_equal_value(self, store):
        version = store.put_if(NS, "k", {"n": 1}, None)
        store.put(NS, "k", {"n": 1})

        with pytest.raises(ItemConflictError):
            store.delete_if(NS, "k", version)

    def test_the_async_twins_do_the_same(self, store):
        async def run():
            version = await store.aput_if(NS, "k", {"n": 1}, None)
            assert (await store.aget_versioned(NS, "k")).version == version
            with pytest.raises(ItemConflictError):
                await store.aput_if(NS, "k", {"n": 2}, "another")
            await store.adelete_if(NS, "k", version)
            return await store.aget_versioned(NS, "k")

        assert asyncio.run(run()) is None

    @pytest.mark.parametrize("namespace", [(), ("langgraph",), ("a.b",), ("",)])
    def test_namespaces_are_refused_as_put_refuses_them(self, store, storage, namespace):
        with pytest.raises(InvalidNamespaceError):
            store.put_if(namespace, "k", {}, None)
        with pytest.raises(InvalidNamespaceError):
            store.delete_if(namespace, "k", "v")
        assert object_keys(storage) == []


class TestTimes:
    def test_a_put_keeps_the_time_of_creation(self, store):
        store.put(NS, "k", {"n": 1})
        first = store.get(NS, "k")
        store.put(NS, "k", {"n": 2})
        version = store.get_versioned(NS, "k").version
        store.put_if(NS, "k", {"n": 3}, version)

        last = store.get(NS, "k")

        assert last.created_at == first.created_at
        assert last.updated_at >= first.updated_at

    def test_the_time_of_an_update_never_goes_back(self, storage, store):
        store.put(NS, "k", {"n": 1})
        (key,) = object_keys(storage)
        body = json.loads(storage.get(key).data)
        body["updated_at"] = later = datetime(2999, 1, 1, tzinfo=UTC).isoformat()
        storage.put(key, json.dumps(body).encode(), {})

        store.put(NS, "k", {"n": 2})

        assert store.get(NS, "k").updated_at.isoformat() == later


def increment(store, start):
    """Add one with what the store gives for it; return how often it lost a race."""
    found = store.get_versioned(NS, "count")
    start.wait(WAIT)
    lost = 0
    while True:
        value = {"n": found.item.value["n"] + 1}
        try:
            store.put_if(NS, "count", value, found.version)
        except ItemConflictError as conflict:
            found = conflict.current
            lost += 1
        else:
            return lost


class TestRaces:
    def test_of_twenty_concurrent_edits_none_is_lost(self, storage, store):
        """All read the same version before the first writes, so all but one must lose a race."""
        store.put(NS, "count", {"n": 0})
        start = threading.Barrier(EDITORS)
        other = WenchangStore(storage, tenant="acme")

        with ThreadPoolExecutor(EDITORS) as pool:
            lost = list(
                pool.map(lambda n: increment(other if n % 2 else store, start), range(EDITORS))
            )

        assert store.get(NS, "count").value == {"n": EDITORS}
        assert sum(count > 0 for count in lost) == EDITORS - 1

    def test_of_twenty_concurrent_async_edits_none_is_lost(self, store):
        async def add(arrived, start):
            found = await store.aget_versioned(NS, "count")
            arrived.append(found.version)
            await start.wait()
            while True:
                try:
                    value = {"n": found.item.value["n"] + 1}
                    return await store.aput_if(NS, "count", value, found.version)
                except ItemConflictError as conflict:
                    found = conflict.current

        async def run():
            await store.aput(NS, "count", {"n": 0})
            arrived, start = [], asyncio.Barrier(EDITORS)
            async with asyncio.timeout(WAIT):
                await asyncio.gather(*(add(arrived, start) for _ in range(EDITORS)))
            return arrived

        arrived = asyncio.run(run())

        assert len(set(arrived)) == 1, "all had read the same version"
        assert store.get(NS, "count").value == {"n": EDITORS}

    def test_a_plain_put_that_loses_its_race_puts_again_and_keeps_the_creation(
        self, storage, store
    ):
        store.put(NS, "k", {"n": 0})
        created = store.get(NS, "k").created_at
        rival = WenchangStore(storage, tenant="acme")
        hooked = Meddled(storage, lambda: rival.put(NS, "k", {"n": 1}))

        WenchangStore(hooked, tenant="acme").put(NS, "k", {"n": 2})

        assert hooked.meddled
        assert store.get(NS, "k").value == {"n": 2}
        assert store.get(NS, "k").created_at == created

    def test_a_delete_that_loses_its_race_deletes_what_is_there_then(self, storage, store):
        store.put(NS, "k", {"n": 0})
        hooked = Meddled(storage, lambda: store.put(NS, "k", {"n": 1}))

        WenchangStore(hooked, tenant="acme").delete(NS, "k")

        assert hooked.meddled
        assert store.get(NS, "k") is None

    def test_a_put_that_always_loses_gives_up_and_has_changed_nothing(self, storage):
        always = Meddled(storage, lambda: None, times=10**9)
        store = WenchangStore(always, tenant="acme", deadline=0.05)

        with pytest.raises(BackendUnavailableError) as given_up:
            store.put(NS, "k", {"n": 1})

        assert given_up.value.outcome == "not_applied"
        assert object_keys(storage) == []


class Meddled:
    """A storage in which somebody else is faster, `times` times, before a conditional call."""

    def __init__(self, inner, meddle, times=1):
        self.inner, self.meddle, self.times, self.meddled = inner, meddle, times, False
        self.get, self.list_page = inner.get, inner.list_page

    def _first(self, key):
        if self.times:
            self.times -= 1
            self.meddled = True
            self.meddle()
            raise PreconditionFailedError(key)

    def put_if_version(self, key, data, metadata, expected):
        self._first(key)
        return self.inner.put_if_version(key, data, metadata, expected)

    def delete_if_version(self, key, expected):
        self._first(key)
        self.inner.delete_if_version(key, expected)


class TestTenants:
    def test_tenants_see_nothing_of_each_other(self, storage):
        ours, theirs = (WenchangStore(storage, tenant=name) for name in ("acme", "globex"))
        ours.put(NS, "k", {"whose": "ours"})
        theirs.put(NS, "k", {"whose": "theirs"})
        theirs.put(("theirs",), "k", {})

        assert ours.get(NS, "k").value == {"whose": "ours"}
        assert [item.value for item in ours.search(())] == [{"whose": "ours"}]
        assert ours.list_namespaces() == [NS]
        ours.delete(NS, "k")
        assert theirs.get(NS, "k").value == {"whose": "theirs"}

    @pytest.mark.parametrize(
        ("one", "other"), [("a", "a/b"), ("a", "A"), ("é", "e\u0301"), ("t" * 300, "t" * 301)]
    )
    def test_tenants_with_similar_names_do_not_meet(self, storage, one, other):
        WenchangStore(storage, tenant=one).put(("b",), "k", {"n": 1})

        assert WenchangStore(storage, tenant=other).search(()) == []
        assert WenchangStore(storage, tenant=one).get(("b",), "k").value == {"n": 1}

    def test_no_namespace_leaves_the_tenants_part_of_the_storage(self, storage, store):
        for namespace in (("..", "globex"), ("/", "globex"), ("@items", "globex"), ("%2E%2E",)):
            try:
                store.put(namespace, "../globex", {})
            except InvalidNamespaceError:
                continue

        assert object_keys(storage)
        assert all(key.startswith("@items/acme/") for key in object_keys(storage))

    def test_a_purge_erases_one_tenant_and_no_other(self, storage, store):
        other = WenchangStore(storage, tenant="acme2")
        for each in (store, other):
            each.put(NS, "a", {})
            each.put(("x" * 99,), "b", {})
        store.search((), filter={"n": None})

        assert store.purge() == 2

        assert store.search(()) == []
        assert len(other.search(())) == 2
        assert store.purge() == 0

    def test_a_run_without_a_tenant_is_refused(self, storage):
        with pytest.raises(NoTenantError):
            WenchangStore(storage, tenant="")
        store = WenchangStore(storage, tenant=lambda: None)
        for call in (
            lambda: store.get(NS, "k"),
            lambda: store.put(NS, "k", {}),
            lambda: store.put_if(NS, "k", {}, None),
            lambda: store.search(()),
            lambda: asyncio.run(store.aget(NS, "k")),
        ):
            with pytest.raises(NoTenantError):
                call()
        assert object_keys(storage) == []


def nested(levels):
    """Return a mapping of so many levels."""
    value = {}
    for _ in range(levels):
        value = {"in": value}
    return value


class TestRefusals:
    @pytest.mark.parametrize(
        ("value", "kind"),
        [
            ({"t": datetime(2026, 1, 1, tzinfo=UTC)}, TypeError),
            ({"s": {1, 2}}, TypeError),
            ({1: "one"}, TypeError),
            ({"a": {2: "two"}}, TypeError),
            (["a list"], TypeError),
            ({"n": float("nan")}, ValueError),
            ({"n": [float("inf")]}, ValueError),
            ({"n": ["\ud83d\ude00"]}, ValueError),
            ({"\ud83d\ude00": 1, "\U0001f600": 2}, ValueError),
            ({"big": "x" * (4 * 1024 * 1024)}, ValueError),
        ],
    )
    def test_a_value_that_is_no_json_or_too_large_is_refused_before_any_change(
        self, storage, store, value, kind
    ):
        with pytest.raises(kind):
            store.put(NS, "k", value)
        with pytest.raises(kind):
            store.put_if(NS, "k", value, None)
        with pytest.raises(kind):
            store.batch([PutOp(NS, "first", {}), PutOp(NS, "k", value)])
        assert object_keys(storage) == []

    def test_a_value_nested_too_deeply_is_refused(self, store):
        with pytest.raises(ValueError, match="levels"):
            store.put(NS, "k", nested(5000))

    def test_unpaired_surrogates_survive_in_a_value_and_are_refused_in_a_name(self, store):
        store.put(NS, "k", {"half": "\ud83d", "é": "\0"})

        assert store.get(NS, "k").value == {"half": "\ud83d", "é": "\0"}
        with pytest.raises(ValueError, match="surrogate"):
            store.put(NS, "\ud83d", {})
        with pytest.raises(ValueError, match="surrogate"):
            store.search(("\ud83d",))

    def test_names_that_are_too_long_together_are_refused(self, store):
        with pytest.raises(ValueError, match="too long together"):
            store.put(("label" * 10,) * 20, "k", {})
        with pytest.raises(ValueError, match="too long together"):
            store.get(("a",) * 500, "k")

    @pytest.mark.parametrize(
        "op",
        [
            PutOp(NS, "k", {}, ttl=1.0),
            SearchOp((), limit=-1),
            SearchOp((), offset=-1),
            SearchOp((), filter={"n": {"$gt": "many"}}),
            SearchOp((), filter=nested(100_000)),
            GetOp(("a.b",), "k"),
            PutOp(("",), "k", None),
        ],
    )
    def test_an_operation_that_is_none_keeps_the_whole_batch_from_happening(
        self, storage, store, op
    ):
        with pytest.raises(ValueError):
            store.batch([PutOp(NS, "first", {}), op])
        assert object_keys(storage) == []

    @pytest.mark.parametrize(
        "op",
        [
            GetOp(NS, 7),
            PutOp(NS, b"k", {}),
            PutOp(NS, "k", "text"),
            SearchOp((), limit="5"),
            SearchOp((), filter=["n"]),
            ListNamespacesOp(max_depth="5"),
        ],
    )
    def test_wrong_types_are_refused_before_any_change(self, storage, store, op):
        with pytest.raises(TypeError):
            store.batch([PutOp(NS, "first", {}), op])
        assert object_keys(storage) == []

    def test_settings_that_mean_nothing_are_refused(self, storage):
        for settings in ({"parallel": 0}, {"deadline": 0}, {"tenant": 7}, {"tenant": "\ud83d"}):
            with pytest.raises(ValueError):
                WenchangStore(storage, **{"tenant": "acme"} | settings)

    @pytest.mark.parametrize("value", [None, "text", [1], {"n": 1}, True])
    def test_what_is_no_number_is_neither_more_nor_less(self, store, value):
        store.put(NS, "k", {"n": value})
        wanted = {"n": {"$gt": 5}}
        assert store.search((), filter=wanted) == []

    def test_no_text_of_a_refusal_names_a_key_or_a_tenant(self, store):
        version = store.put_if(("secret-label",), "secret-key", {"secret": 1}, None)
        texts = []
        for call in (
            lambda: store.put_if(("secret-label",), "secret-key", {}, None),
            lambda: store.put_if(("secret-label",), "secret-key2", {}, version),
            lambda: store.put(("secret-label" * 9,) * 50, "secret-key", {}),
            lambda: store.put(("secret-label",), "secret-key", {"secret": object()}),
        ):
            with pytest.raises(Exception) as refused:
                call()
            texts.append(str(refused.value) + repr(refused.value))
        assert not any("secret" in text or "acme" in text or "@items" in text for text in texts)


_NAMES = b'"namespace":["users"],"key":"bad","value":{},"format":1'
_AWARE = b'"created_at":"2026-01-01T00:00:00+00:00","updated_at":"2026-01-01T00:00:00+00:00"'
STRANGE_WRITER = b'{%b,%b,"min_writer":Infinity}' % (_NAMES, _AWARE)
NAIVE_TIMES = b'{%b,%b,"min_writer":1}' % (_NAMES, _AWARE.replace(b"+00:00", b""))


class TestStoredState:
    def damage(self, storage, store, data):
        store.put(NS, "whole", {"n": 1})
        store.put(NS, "bad", {"n": 2})
        key = next(key for key in object_keys(storage) if key.endswith("=bad"))
        storage.put(key, data, {})

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"\xff",
            b"[]",
            b"{}",
            b'{"namespace":1,"key":"k","value":{}}',
            b"[" * 99999,
            STRANGE_WRITER,
            NAIVE_TIMES,
        ],
    )
    def test_a_damaged_item_is_told_of_and_can_be_deleted_or_replaced(
        self, storage, store, caplog, data
    ):
        self.damage(storage, store, data)

        with pytest.raises(ItemStateError) as told:
            store.get(NS, "bad")
        assert told.value.reason == "unreadable"
        with caplog.at_level(logging.WARNING):
            assert [item.key for item in store.search(())] == ["whole"]
        assert "left out of a search" in caplog.text
        store.put(NS, "bad", {"n": 3})
        assert store.get(NS, "bad").value == {"n": 3}
        self.damage(storage, store, data)
        store.delete(NS, "bad")
        assert store.get(NS, "bad") is None

    def test_an_item_that_only_a_newer_version_may_write_is_read_and_not_written(
        self, storage, store
    ):
        store.put(NS, "k", {"n": 1})
        (key,) = object_keys(storage)
        body = json.loads(storage.get(key).data) | {"format": 9, "min_writer": 9, "more": True}
        version = storage.put(key, json.dumps(body).encode(), {})

        assert store.get(NS, "k").value == {"n": 1}
        for call in (
            lambda: store.put(NS, "k", {}),
            lambda: store.put_if(NS, "k", {}, version),
            lambda: store.delete(NS, "k"),
            lambda: store.delete_if(NS, "k", version),
        ):
            with pytest.raises(ItemStateError) as refused:
                call()
            assert refused.value.reason == "newer_format"
        assert storage.get(key).version == version

    def test_foreign_objects_beside_the_items_do_not_disturb(self, storage, store):
        store.put(NS, "k", {"n": 1})
        storage.put("@items/acme/users/readme", b"hello", {})
        storage.put("@items/acme/%FF/=k", b"hello", {})

        assert [item.key for item in store.search(())] == ["k"]
        assert store.list_namespaces() == [NS]

    def test_a_search_that_is_repeated_reads_only_what_changed(self, storage):
        reads = []
        counted = Counted(storage, reads)
        store = WenchangStore(counted, tenant="acme")
        for number in range(5):
            store.put(NS, f"k{number}", {"n": number})
        wanted = {"n": {"$gte": 0}}
        store.search((), filter=wanted)
        store.put(NS, "k3", {"n": 33})
        reads.clear()

        found = store.search((), filter=wanted)

        assert sorted(item.value["n"] for item in found) == [0, 1, 2, 4, 33]
        assert len(reads) == 1

    def test_namespaces_are_listed_page_by_page(self, storage, store, monkeypatch):
        monkeypatch.setattr("wenchang.adapters._langgraph_reading._LIST_LIMIT", 3)
        names = [("a",), ("a", "b"), ("a", "b", "c"), ("a", "1"), ("b",), ("c" * 99,)]
        for name in names:
            for number in range(5):
                store.put(name, f"k{number}", {})

        assert store.list_namespaces() == sorted(names)
        assert len(store.search((), limit=100)) == 30


class Counted:
    def __init__(self, inner, reads):
        self.put_if_version, self.list_page = inner.put_if_version, inner.list_page
        self.get = lambda key: (reads.append(key), inner.get(key))[1]


@dataclass
class Context:
    tenant: str


def remember(state: dict, *, store: BaseStore, runtime: Runtime[Context]) -> dict:
    known = store.get(("facts",), "tea")
    store.put(("facts",), "tea", {"seen": (known.value["seen"] if known else 0) + 1})
    return {"seen": store.get(("facts",), "tea").value["seen"]}


async def remember_async(state: dict, *, store: BaseStore) -> dict:
    known = await store.aget(("facts",), "tea")
    await store.aput(("facts",), "tea", {"seen": (known.value["seen"] if known else 0) + 1})
    return {"seen": (await store.aget(("facts",), "tea")).value["seen"]}


class TestGraph:
    @pytest.fixture
    def tenant_store(self, storage):
        return WenchangStore(storage, tenant=lambda: get_runtime(Context).context.tenant)

    def graph(self, store, node):
        builder = StateGraph(dict, context_schema=Context)
        builder.add_node("remember", node)
        builder.add_edge(START, "remember")
        builder.add_edge("remember", END)
        return builder.compile(store=store)

    def test_one_compiled_graph_serves_the_tenant_of_each_run(self, tenant_store):
        graph = self.graph(tenant_store, remember)

        seen = [
            graph.invoke({}, context=Context(tenant))["seen"]
            for tenant in ("acme", "acme", "globex", "acme")
        ]

        assert seen == [1, 2, 1, 3]

    def test_async_nodes_find_the_tenant_of_their_run_too(self, tenant_store):
        graph = self.graph(tenant_store, remember_async)

        async def run():
            runs = (graph.ainvoke({}, context=Context(t)) for t in ("acme", "globex", "initech"))
            return [done["seen"] for done in await asyncio.gather(*runs)]

        assert asyncio.run(run()) == [1, 1, 1]


def test_the_store_backend_of_deepagents_keeps_its_files_in_it(store):
    backends = pytest.importorskip(
        "deepagents.backends", reason="the extra deepagents is not installed here"
    )
    backend = backends.StoreBackend(namespace=lambda _runtime: ("files",), store=store)

    assert backend.write("/notes/a.md", "tea\nmore\n").error is None
    assert backend.edit("/notes/a.md", "tea", "oolong").error is None

    assert backend.read("/notes/a.md").file_data["content"] == "oolong\nmore\n"
    assert [entry["path"] for entry in backend.ls("/notes").entries] == ["/notes/a.md"]
    assert [match["line"] for match in backend.grep("more").matches] == [2]
    assert [item.key for item in store.search(("files",))] == ["/notes/a.md"]


def test_without_langgraph_the_import_names_the_line_to_run():
    script = (
        "import sys; sys.modules['langgraph'] = None\n"
        "try:\n    import wenchang.adapters.langgraph\n"
        "except ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert 'pip install "wenchang[langgraph]"' in done.stdout
