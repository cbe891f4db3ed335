"""The purge of an entity reaches its file tree: whole, or not at all, and never forgotten."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from wenchang.core import MemoryStore, PurgeIncompleteError
from wenchang.errors import BackendUnavailableError
from wenchang.files.accounts import FileAccounts
from wenchang.files.erasure import purge_entity
from wenchang.files.errors import NotFoundError, TreeStateError, VersionConflictError
from wenchang.files.policy import HistoryPolicy
from wenchang.files.settings import FileSettings
from wenchang.metadata import FileMetadata
from wenchang.storage.memory import InMemoryStorage

ROOT = "@files/ada/root"
NOTE = FileMetadata("a note", (), frozenset(), datetime(2026, 1, 1, tzinfo=UTC))


def keys(storage, below="@files/ada/"):
    """Return the keys that are there, past every fault."""
    inner = getattr(storage, "inner", storage)
    return [each.key for each in inner.list_page(below, None, 1000)]


def remember(storage, scope="user", entity="ada"):
    """Write two memory files of an entity."""
    store = MemoryStore(storage)
    for name in ("tea", "work"):
        store.write_file(f"{scope}/{entity}/notes/{name}.md", "text\n", NOTE, None, source="t")


def plant(storage, scope="user", entity="ada"):
    """Make the tree of an account as the tools make it."""
    tree = FileAccounts(storage, FileSettings(scope=scope)).tree(entity)
    tree.create("a.md", "a")
    return tree


@pytest.fixture
def begin(hooked, open_tree_on, small):
    """Return a function that makes a storage with memory and a tree of several pages."""

    def make():
        storage = hooked()
        remember(storage)
        tree = open_tree_on(storage, small, history=HistoryPolicy(versions=3), scope="user")
        for number in range(9):
            tree.put(f"d/{number % 7}.md", f"t{number}", effect_key=f"effect {number}")
        tree.close()
        storage.calls.clear()
        return storage, tree

    return make


def test_it_takes_memory_and_tree_and_no_neighbour(begin):
    storage, _ = begin()
    remember(storage, entity="adam")
    plant(storage, entity="adam")
    others = set(keys(storage, "")) - set(keys(storage)) - set(keys(storage, "user/ada/"))
    count = len(keys(storage)) + len(keys(storage, "user/ada/"))
    # One object more than there was: the empty root takes the place of the old one.
    assert MemoryStore(storage).purge("user", "ada") == count
    assert set(keys(storage, "")) == others
    assert MemoryStore(storage).purge("user", "ada") == 0


def test_the_tree_is_empty_first_its_content_goes_next_and_its_root_last(
    begin, open_tree_on, texts
):
    storage, _ = begin()
    steps = []

    def watch(method, key):
        if key.startswith("@files/") and method not in {"list_page", "get"}:
            steps.append((method, key == ROOT))
            if method == "delete_if_version":
                assert texts(open_tree_on(storage.inner)) == {}

    storage.fault = watch
    MemoryStore(storage).purge("user", "ada")
    assert steps[0] == ("put_if_version", True)
    assert set(steps[1:-1]) == {("delete_if_version", False)}
    assert steps[-1] == ("delete_if_version", True)


def test_every_version_is_stale_and_every_receipt_and_past_state_is_gone(begin, texts):
    """item_119."""
    storage, tree = begin()
    old = {entry.path: entry.version for entry in tree.snapshot().walk()}
    MemoryStore(storage).purge("user", "ada")
    assert texts(tree) == {}
    for path, version in old.items():
        with pytest.raises(NotFoundError):
            tree.file_history(path)
        assert not tree.put(path, "new", effect_key="effect 8").replayed
        tree.delete(path)
        # As many changes as before, so that the numbers of the old versions come again.
        assert tree.put(path, "t8").version not in old.values()
        with pytest.raises(VersionConflictError):
            tree.write(path, "x", version)
        with pytest.raises(VersionConflictError):
            tree.delete(path, version=version)
        MemoryStore(storage).purge("user", "ada")


@pytest.mark.parametrize("history", [None, HistoryPolicy(versions=3)])
def test_the_writer_of_a_purged_tree_never_gives_a_version_again(history, storage, open_tree_on):
    """item_119, item_157."""
    tree = open_tree_on(storage, history=history, scope="user")
    seen = set()
    for _ in range(5):
        version = tree.create("a", "1").version
        assert version not in seen
        seen.add(version)
        MemoryStore(storage.inner).purge("user", "ada")


def test_a_first_root_that_landed_unseen_does_not_bring_its_versions_back(storage, open_tree_on):
    """item_119: the creation is lost on its way back, others use the tree, and it is purged."""
    tree, other = open_tree_on(storage), open_tree_on(storage.inner)
    storage.fault = lambda method, key: (
        "lost"
        if key == ROOT and method == "put_if_version"
        else "down"
        if key == ROOT and storage.inner.get(ROOT)
        else None
    )
    with pytest.raises(BackendUnavailableError) as failed:
        tree.create("a", "1")
    assert failed.value.outcome == "unknown"
    storage.fault = lambda _m, _k: None
    version = other.snapshot().lookup("a").version
    MemoryStore(storage.inner).purge("user", "ada")
    assert tree.create("a", "1").version != version


@pytest.mark.parametrize("fault", ["crash", "crash_after", "lost", "dropped", "down"])
def test_broken_off_at_any_request_the_old_tree_or_an_empty_one_is_left_and_repeating_completes_it(
    fault, begin, open_tree_on, texts, crash
):
    storage, tree = begin()
    before = texts(tree)
    storage.calls.clear()
    MemoryStore(storage).purge("user", "ada")
    requests = len(storage.calls)
    held = set()
    for number in range(requests):
        storage, _ = begin()
        count = iter(range(10_000))
        storage.fault = lambda _m, _k, count=count, number=number: (
            fault if next(count) == number else None
        )
        with suppress(crash, BackendUnavailableError):
            MemoryStore(storage).purge("user", "ada")
        storage.fault = lambda _m, _k: None
        left = texts(open_tree_on(storage.inner))
        assert left in ({}, before)
        held.add(bool(left))
        # No root refers to what has been deleted, whatever is left.
        assert open_tree_on(storage.inner).verify().lost == ()
        MemoryStore(storage).purge("user", "ada")
        assert keys(storage, "") == []
    assert held == {True, False}


@pytest.mark.parametrize("left", ["user/ada/notes/tea.md", "@files/ada/x/9/stray"])
def test_what_keeps_coming_makes_it_incomplete_and_all_the_rest_goes(left, begin):
    storage, _ = begin()

    def write(method, key):
        if method == "delete_if_version" and key.startswith(left.partition("/ada/")[0]):
            storage.inner.put(left, b"", {})

    storage.fault = write
    with pytest.raises(PurgeIncompleteError) as incomplete:
        MemoryStore(storage).purge("user", "ada", max_passes=2)
    assert set(keys(storage, "")) in ({left}, {left, ROOT})
    assert incomplete.value.remaining == len(keys(storage, ""))
    assert incomplete.value.deleted >= 16
    storage.fault = lambda _m, _k: None
    MemoryStore(storage).purge("user", "ada")
    assert keys(storage, "") == []


def test_a_writer_that_commits_meanwhile_loses_nothing_that_its_root_refers_to(
    begin, open_tree_on, texts
):
    storage, tree = begin()
    writer = open_tree_on(storage.inner)
    states = []

    def write(method, key):
        if method == "delete_if_version" and key.startswith("@files/"):
            # Whatever is deleted next, what the writer sees is whole.
            states.append(open_tree_on(storage.inner).verify().sound)
            if len(states) % 5 == 0:
                writer.put(f"late/{len(states)}.md", "late")
                states.append(texts(open_tree_on(storage.inner)) != {})

    storage.fault = write
    with pytest.raises(PurgeIncompleteError):
        MemoryStore(storage).purge("user", "ada", max_passes=2)
    storage.fault = lambda _m, _k: None
    assert states
    assert all(states)
    assert open_tree_on(storage.inner).verify().sound
    MemoryStore(storage).purge("user", "ada")
    assert keys(storage, "") == []
    assert texts(tree) == {}


class TestWhoseTree:
    def test_a_tree_of_another_scope_with_the_same_id_is_left_alone(self):
        storage = InMemoryStorage()
        remember(storage)
        remember(storage, scope="team")
        tree = plant(storage, scope="team")
        assert MemoryStore(storage).purge("user", "ada") == 2
        assert tree.read_file("a.md")[1] == "a"
        assert MemoryStore(storage).purge("team", "ada") == 4
        assert keys(storage, "") == []

    def test_a_tree_that_names_no_scope_is_the_users(self, open_tree_on):
        storage = InMemoryStorage()
        open_tree_on(storage).create("a", "1")
        assert MemoryStore(storage).purge("team", "ada") == 0
        assert MemoryStore(storage).purge("user", "ada") == 2

    def test_every_writer_keeps_the_scope_that_the_tree_was_made_for(self, open_tree_on):
        storage = InMemoryStorage()
        plant(storage, scope="team")
        tree = open_tree_on(storage)
        for number in range(20):
            tree.put(f"{number}.md", "x", effect_key=str(number))
        tree.collect_garbage()
        assert tree.owner() == "team"
        tree.purge()
        tree.put("a.md", "x")
        for repair in (lambda: tree.verify(rebuild=True), tree.purge):
            storage.put(ROOT, b"{", storage.get(ROOT).metadata)
            repair()
            tree.put("a.md", "x")
            assert tree.owner() == "team"
        assert MemoryStore(storage).purge("user", "ada") == 0

    @pytest.mark.parametrize("data", [b"", b"{", b"null", b"\xff"])
    def test_a_damaged_root_names_its_scope_and_can_be_purged(self, data):
        storage = InMemoryStorage()
        plant(storage, scope="team")
        storage.put(ROOT, data, storage.get(ROOT).metadata)
        assert MemoryStore(storage).purge("user", "ada") == 0
        assert MemoryStore(storage).purge("team", "ada") == 2
        assert keys(storage, "") == []

    def test_a_root_that_was_copied_without_its_metadata_names_its_scope(self):
        storage = InMemoryStorage()
        plant(storage, scope="team")
        storage.put(ROOT, storage.get(ROOT).data, {})
        assert MemoryStore(storage).purge("user", "ada") == 0
        assert MemoryStore(storage).purge("team", "ada") == 2
        assert keys(storage, "") == []

    def test_content_that_a_killed_writer_left_without_a_root_goes(
        self, storage, open_tree_on, crash
    ):
        storage.fault = lambda _m, key: "crash" if key == ROOT else None
        tree = open_tree_on(storage)
        tree._objects.upload("abc/1/first", b"private", {})
        storage.fault = lambda _m, _k: None
        assert keys(storage) != []
        MemoryStore(storage).purge("team", "ada")
        assert keys(storage) == []

    def test_an_empty_root_that_a_cut_off_purge_left_belongs_to_who_writes_next(
        self, storage, open_tree_on, crash
    ):
        """Nothing had told whose the content without a root was, so the purge began a root for it."""
        open_tree_on(storage)._objects.upload("abc/1/first", b"private", {})
        storage.fault = lambda m, key: "crash" if (m, key) == ("delete_if_version", ROOT) else None
        with pytest.raises(crash):
            MemoryStore(storage).purge("user", "ada")
        storage.fault = lambda _m, _k: None
        assert keys(storage) == [ROOT]
        tree = plant(storage, scope="team")
        assert MemoryStore(storage).purge("user", "ada") == 0
        assert tree.read_file("a.md")[1] == "a"
        assert MemoryStore(storage).purge("team", "ada") == 2
        assert keys(storage, "") == []

    def test_a_file_that_another_scope_writes_during_a_purge_stays(self, storage, open_tree_on):
        open_tree_on(storage)._objects.upload("abc/1/first", b"private", {})
        trees = []

        def write_once(method, key):
            if method == "delete_if_version" and key != ROOT and not trees:
                trees.append(None)
                trees[0] = plant(storage, scope="team")

        storage.fault = write_once
        assert MemoryStore(storage).purge("user", "ada") == 1
        assert trees[0].read_file("a.md")[1] == "a"
        assert MemoryStore(storage).purge("team", "ada") == 2
        assert keys(storage, "") == []


def test_two_purges_at_once_both_end_and_leave_nothing(begin):
    storage, _ = begin()
    others = []

    def purge_once(method, key):
        if (method, key) == ("put_if_version", ROOT):
            others.append("due")
        elif others == ["due"] and (method, key) == ("get", ROOT):
            others.append(MemoryStore(storage.inner).purge("user", "ada"))

    storage.fault = purge_once
    assert MemoryStore(storage).purge("user", "ada") == 2
    assert len(others) == 2
    assert keys(storage, "") == []


@pytest.mark.parametrize("entity", ["ada/{}", "ada/", "", "..", "ada\\x", "\ud83d"])
def test_what_is_no_entity_id_reaches_no_tree(entity):
    """With a slash it would be a part of another one's tree."""
    storage = InMemoryStorage()
    tree = plant(storage)
    wanted = entity.format(keys(storage)[0].split("/")[2])
    with pytest.raises(ValueError, match="entity"):
        purge_entity(storage, "user", wanted)
    with pytest.raises(ValueError, match="entity"):
        FileAccounts(storage).tree(wanted)
    assert tree.read_file("a.md")[1] == "a"


def test_a_tree_of_a_newer_format_is_refused_and_stays(storage, open_tree_on):
    open_tree_on(storage).create("a", "1")
    remember(storage)
    fields = json.loads(storage.inner.get(ROOT).data)
    storage.inner.put(ROOT, json.dumps({**fields, "min_writer": 99}).encode(), {})
    before = keys(storage)
    with pytest.raises(TreeStateError) as refused:
        MemoryStore(storage).purge("user", "ada")
    assert refused.value.reason == "newer_format"
    assert keys(storage) == before


def test_an_entity_without_a_tree_costs_three_requests_and_gets_none(storage):
    MemoryStore(storage).purge("user", "ada")
    asked = [(method, key) for method, key in storage.calls if key.startswith("@files")]
    assert asked == [("get", ROOT), ("list_page", "@files/ada/"), ("get", ROOT)]
    assert keys(storage, "") == []


def test_whoever_purges_nothing_does_not_load_the_file_tree():
    code = "import sys, wenchang.core; sys.exit('wenchang.files' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
