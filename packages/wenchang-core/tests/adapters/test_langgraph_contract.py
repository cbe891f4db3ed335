"""What LangGraph documents of a `BaseStore`, for its own store in memory and for ours over storages.

Nothing here depends on the order of a search, which is not documented.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

pytest.importorskip("langgraph", reason="the extra langgraph is not installed here")

from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from wenchang.adapters.langgraph import WenchangStore
from wenchang.storage.filesystem import FilesystemStorage
from wenchang.storage.memory import InMemoryStorage

USERS = ("users", "u1")


@pytest.fixture(params=["langgraph-memory", "wenchang-memory", "wenchang-files"])
def store(request, tmp_path):
    if request.param == "langgraph-memory":
        return InMemoryStore()
    storage = (
        InMemoryStorage()
        if request.param == "wenchang-memory"
        else FilesystemStorage(tmp_path / "store")
    )
    return WenchangStore(storage, tenant="acme")


def keys(items):
    return sorted(item.key for item in items)


class TestItems:
    def test_an_item_comes_back_with_its_names_and_times(self, store):
        before = datetime.now(UTC)
        store.put(USERS, "prefs", {"theme": "dark", "n": [1, {"deep": None}], "é": "naïve 🙂"})

        item = store.get(USERS, "prefs")

        assert item.value == {"theme": "dark", "n": [1, {"deep": None}], "é": "naïve 🙂"}
        assert (item.namespace, item.key) == (USERS, "prefs")
        assert before <= item.created_at <= item.updated_at <= datetime.now(UTC)

    def test_an_absent_item_is_none(self, store):
        assert store.get(USERS, "absent") is None

    def test_a_put_replaces_the_whole_value(self, store):
        store.put(USERS, "prefs", {"a": 1, "b": 2})
        store.put(USERS, "prefs", {"c": 3})

        assert store.get(USERS, "prefs").value == {"c": 3}

    def test_a_deleted_item_is_gone_and_deleting_it_again_is_no_error(self, store):
        store.put(USERS, "prefs", {"a": 1})
        store.delete(USERS, "prefs")
        store.delete(USERS, "prefs")

        assert store.get(USERS, "prefs") is None

    def test_the_value_is_the_stores_own_copy(self, store):
        value = {"a": 1}
        store.put(USERS, "prefs", value)
        value["a"] = 2

        assert store.get(USERS, "prefs").value == {"a": 1}

    def test_equal_keys_in_different_namespaces_are_different_items(self, store):
        store.put(("a",), "k", {"at": "a"})
        store.put(("a", "k"), "k", {"at": "a/k"})
        store.put(("b",), "k", {"at": "b"})

        assert store.get(("a",), "k").value == {"at": "a"}
        assert store.get(("a", "k"), "k").value == {"at": "a/k"}
        assert store.get(("b",), "k").value == {"at": "b"}

    @pytest.mark.parametrize(
        "key",
        [
            *("", ".", "..", "a.b", "a/b", "/", "=", "%2F", "a b", " a ", "\\", "*"),
            *("A", "a", "é", "e\u0301", "\x00", "\n", "\uffff", "🙂", "x" * 3000, "%sha256-x"),
        ],
    )
    def test_any_text_is_a_key_of_its_own(self, store, key):
        store.put(("ns",), key, {"this": key})
        store.put(("ns",), key + "!", {"this": "another"})

        assert store.get(("ns",), key).value == {"this": key}
        assert store.get(("ns",), key).key == key
        assert keys(store.search(("ns",))) == sorted([key, key + "!"])

    @pytest.mark.parametrize("label", ["a/b", "=", "%", "é", " ", "*", "\n", "y" * 3000, "A"])
    def test_labels_are_kept_exactly(self, store, label):
        store.put(("ns", label, "end"), "k", {"v": 1})

        assert store.get(("ns", label, "end"), "k").namespace == ("ns", label, "end")
        assert store.list_namespaces(prefix=("ns",)) == [("ns", label, "end")]
        assert len(store.search(("ns", label))) == 1


class TestNamespacesThatAreNone:
    @pytest.mark.parametrize("namespace", [("a.b",), ("",), ("a", ""), ("a", 1), ("nul\x00",)])
    def test_a_label_that_breaks_the_rules_is_refused_everywhere(self, store, namespace):
        for call in (
            lambda: store.get(namespace, "k"),
            lambda: store.put(namespace, "k", {}),
            lambda: store.delete(namespace, "k"),
            lambda: store.search(namespace),
            lambda: store.list_namespaces(prefix=namespace),
            lambda: store.list_namespaces(suffix=namespace),
        ):
            with pytest.raises(InvalidNamespaceError):
                call()

    @pytest.mark.parametrize("namespace", [(), ("langgraph", "x")])
    def test_a_put_needs_a_namespace_of_its_own(self, store, namespace):
        with pytest.raises(InvalidNamespaceError):
            store.put(namespace, "k", {})

    def test_a_time_to_live_is_refused(self, store):
        with pytest.raises(NotImplementedError, match="TTL is not supported"):
            store.put(USERS, "k", {}, ttl=5)
        assert store.get(USERS, "k") is None
        assert not store.supports_ttl


class TestSearch:
    @pytest.fixture
    def filled(self, store):
        for number in range(10):
            store.put(
                ("docs", "even" if number % 2 == 0 else "odd"),
                f"d{number}",
                {"n": number, "kind": "report" if number < 5 else "note", "tags": ["x", number]},
            )
        store.put(("docsish",), "other", {"n": 3, "kind": "report"})
        return store

    def test_a_prefix_takes_whole_labels(self, filled):
        assert len(filled.search(("docs",), limit=100)) == 10
        assert len(filled.search(("docs", "odd"), limit=100)) == 5
        assert filled.search(("doc",), limit=100) == []
        assert len(filled.search((), limit=100)) == 11

    def test_ten_items_are_the_default(self, filled):
        assert len(filled.search(())) == 10

    def test_a_field_must_be_equal(self, filled):
        found = filled.search(("docs",), filter={"kind": "report"}, limit=100)
        assert keys(found) == ["d0", "d1", "d2", "d3", "d4"]

    @pytest.mark.parametrize(
        ("wanted", "numbers"),
        [
            ({"$eq": 3}, {3}),
            ({"$ne": 3}, {0, 1, 2, 4, 5, 6, 7, 8, 9}),
            ({"$gt": 7}, {8, 9}),
            ({"$gte": 7}, {7, 8, 9}),
            ({"$lt": 2}, {0, 1}),
            ({"$lte": 2.5}, {0, 1, 2}),
            ({"$gte": 3, "$lt": 5}, {3, 4}),
        ],
    )
    def test_operators_compare(self, filled, wanted, numbers):
        found = filled.search(("docs",), filter={"n": wanted}, limit=100)
        assert {item.value["n"] for item in found} == numbers

    def test_every_condition_has_to_hold(self, filled):
        found = filled.search(
            ("docs",), filter={"kind": "note", "n": {"$lt": 7}, "tags": ["x", 6]}, limit=100
        )
        assert keys(found) == ["d6"]

    def test_a_nested_field_is_compared_by_what_is_asked_of_it(self, store):
        store.put(("n",), "a", {"who": {"name": "Lin", "age": 9}})
        store.put(("n",), "b", {"who": "Lin"})

        assert keys(store.search(("n",), filter={"who": {"name": "Lin"}})) == ["a"]
        assert keys(store.search(("n",), filter={"who": {"age": {"$gt": 8}, "name": "Lin"}})) == [
            "a"
        ]
        assert store.search(("n",), filter={"who": {"name": "Ann"}}) == []

    def test_an_unknown_operator_is_refused(self, filled):
        with pytest.raises(ValueError, match=r"[Uu]nsupported operator"):
            filled.search(("docs",), filter={"n": {"$regex": "x"}})

    @pytest.mark.parametrize("wanted", [None, {"kind": {"$ne": "absent"}}])
    def test_pages_hold_each_item_once(self, filled, wanted):
        pages = [
            filled.search(("docs",), filter=wanted, limit=3, offset=offset)
            for offset in (0, 3, 6, 9, 12)
        ]
        assert [len(page) for page in pages] == [3, 3, 3, 1, 0]
        assert keys(item for page in pages for item in page) == [f"d{n}" for n in range(10)]

    @pytest.mark.parametrize("wanted", [None, {"n": {"$gte": 0}}])
    def test_numbers_beyond_every_item_are_taken_as_they_are(self, filled, wanted):
        total = len(filled.search(("docs",), filter=wanted, limit=1000))
        assert len(filled.search(("docs",), filter=wanted, limit=10**30)) == total > 1
        assert filled.search(("docs",), filter=wanted, limit=10**30, offset=10**30) == []

    def test_a_prefix_that_is_longer_than_any_namespace_finds_nothing(self, filled):
        labels = ("a label of some length",) * 100
        assert filled.search(labels) == []
        assert filled.list_namespaces(prefix=labels) == []

    def test_a_limit_of_nothing_finds_nothing(self, filled):
        assert filled.search(("docs",), limit=0) == []

    def test_without_an_index_a_query_changes_nothing(self, filled):
        """A store that was given no index ignores `query` and `index`."""
        filled.put(("docs", "even"), "indexed", {"kind": "report"}, index=["kind"])
        found = filled.search(("docs",), query="a kind of report", limit=100)
        assert len(found) == 11
        assert {item.score for item in found} == {None}


class TestListNamespaces:
    @pytest.fixture
    def filled(self, store):
        for namespace in (
            ("a", "b", "c"),
            ("a", "b", "d", "e"),
            ("a", "b", "d", "i"),
            ("a", "b", "f"),
            ("a", "c", "f"),
            ("x",),
        ):
            store.put(namespace, "k", {})
            store.put(namespace, "k2", {})
        return store

    def test_each_namespace_is_listed_once_in_order(self, filled):
        assert filled.list_namespaces() == [
            ("a", "b", "c"),
            ("a", "b", "d", "e"),
            ("a", "b", "d", "i"),
            ("a", "b", "f"),
            ("a", "c", "f"),
            ("x",),
        ]

    def test_deeper_ones_are_cut_to_a_depth_and_merged(self, filled):
        assert filled.list_namespaces(prefix=("a", "b"), max_depth=3) == [
            ("a", "b", "c"),
            ("a", "b", "d"),
            ("a", "b", "f"),
        ]
        assert filled.list_namespaces(max_depth=1) == [("a",), ("x",)]

    @pytest.mark.parametrize(
        ("conditions", "count"),
        [
            ({"prefix": ("a",)}, 5),
            ({"prefix": ("a", "*", "f")}, 2),
            ({"prefix": ("*", "c")}, 1),
            ({"suffix": ("f",)}, 2),
            ({"suffix": ("d", "*")}, 2),
            ({"prefix": ("a", "b"), "suffix": ("f",)}, 1),
            ({"prefix": ("a", "b", "c", "d", "e")}, 0),
            ({"prefix": ("b",)}, 0),
        ],
    )
    def test_prefix_and_suffix_and_wildcards_choose(self, filled, conditions, count):
        assert len(filled.list_namespaces(**conditions)) == count

    def test_pages_follow_each_other(self, filled):
        whole = filled.list_namespaces()
        assert filled.list_namespaces(limit=2) == whole[:2]
        assert filled.list_namespaces(limit=2, offset=2) == whole[2:4]
        assert filled.list_namespaces(limit=100, offset=5) == whole[5:]

    def test_an_unknown_kind_of_match_is_refused(self, filled):
        condition = MatchCondition(match_type="infix", path=("a",))
        with pytest.raises(ValueError, match=r"[Uu]nsupported match type"):
            filled.batch([ListNamespacesOp(match_conditions=(condition,))])


class TestBatches:
    def test_results_stand_where_their_operations_stood(self, store):
        store.put(("a",), "k", {"v": 1})

        got, put, listed, searched, missing = store.batch(
            [
                GetOp(("a",), "k"),
                PutOp(("b",), "k", {"v": 2}),
                ListNamespacesOp(),
                SearchOp(("a",)),
                GetOp(("a",), "absent"),
            ]
        )

        assert got.value == {"v": 1}
        assert put is None
        assert listed == [("a",)]
        assert keys(searched) == ["k"]
        assert missing is None

    def test_reads_see_what_was_there_before_the_batch(self, store):
        store.put(("a",), "k", {"v": 1})

        _, got, searched = store.batch(
            [PutOp(("a",), "k", {"v": 2}), GetOp(("a",), "k"), SearchOp(("a",))]
        )

        assert got.value == {"v": 1}
        assert [item.value for item in searched] == [{"v": 1}]
        assert store.get(("a",), "k").value == {"v": 2}

    def test_of_several_puts_of_one_item_the_last_one_counts(self, store):
        store.batch(
            [
                PutOp(("a",), "k", {"v": 1}),
                PutOp(("a",), "k", None),
                PutOp(("a",), "k", {"v": 3}),
                PutOp(("a",), "gone", {"v": 1}),
                PutOp(("a",), "gone", None),
            ]
        )

        assert store.get(("a",), "k").value == {"v": 3}
        assert store.get(("a",), "gone") is None

    def test_an_empty_batch_is_nothing(self, store):
        assert store.batch([]) == []

    def test_what_is_no_operation_is_refused(self, store):
        with pytest.raises(ValueError, match=r"[Uu]nknown operation"):
            store.batch(["get"])


def test_the_async_twins_do_the_same(store):
    async def run():
        await store.aput(USERS, "a", {"v": 1})
        await store.aput(USERS, "b", {"v": 2})
        await store.adelete(USERS, "a")
        return (
            await store.aget(USERS, "a"),
            (await store.aget(USERS, "b")).value,
            keys(await store.asearch(("users",), filter={"v": {"$gt": 1}})),
            await store.alist_namespaces(suffix=("u1",)),
        )

    assert asyncio.run(run()) == (None, {"v": 2}, ["b"], [USERS])
