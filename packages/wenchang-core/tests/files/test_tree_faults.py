"""Killed anywhere, or cut off from the storage anywhere: all or nothing, and never a false answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wenchang.errors import BackendUnavailableError
from wenchang.files.edits import Edit
from wenchang.files.errors import TreeStateError, VersionConflictError
from wenchang.files.policy import HistoryPolicy

CALLS = {
    "create": lambda tree: tree.create("n/new.md", "new"),
    "put": lambda tree: tree.put("d/03.md", "put"),
    "append": lambda tree: tree.append("d/03.md", "+"),
    "edit": lambda tree: tree.edit("d/03.md", [Edit(old_text="t", new_text="T")]),
    "move": lambda tree: tree.move("d/03.md", "e/03.md"),
    "move-folder": lambda tree: tree.move("d", "e/f"),
    "delete": lambda tree: tree.delete("d/03.md"),
    "delete-folder": lambda tree: tree.delete("d", recursive=True),
    "purge": lambda tree: tree.purge(),
}


@pytest.fixture(params=[None, HistoryPolicy(versions=3)], ids=["plain", "history"])
def begin(request, hooked, open_tree_on, small):
    """Return a function that makes a storage with a tree of several pages, and opens it cold."""
    policy = replace(small, cleanup_after=1)

    def make():
        storage = hooked()
        tree = open_tree_on(storage, policy, history=request.param)
        for number in range(10):
            tree.create(f"d/{number:02}.md", f"t{number}")
        tree.close()
        storage.calls.clear()
        return storage, open_tree_on(storage, policy, history=request.param)

    return make


def expected(call, begin, texts):
    """Return the texts before and after a call that nothing disturbs, and how many requests it takes."""
    storage, tree = begin()
    before = texts(tree)
    storage, tree = begin()
    call(tree)
    requests = len(storage.calls)
    tree.close()
    return before, texts(tree), requests


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("fault", ["crash", "crash_after"])
def test_killed_at_any_request_a_call_is_applied_as_a_whole_or_not_at_all(
    name, fault, begin, texts, crash
):
    """item_093."""
    call = CALLS[name]
    before, after, requests = expected(call, begin, texts)
    ends = set()
    for number in range(requests):
        storage, tree = begin()
        count = iter(range(1000))
        storage.fault = lambda _m, _k, count=count, number=number: (
            fault if next(count) == number else None
        )
        with pytest.raises(crash):
            call(tree)
        storage.fault = lambda _m, _k: None
        held = texts(tree)
        assert held in (before, after)
        ends.add(held == after)
        # The tree object that saw the crash goes on working, and so does the tree.
        tree.put("z.md", "z")
        assert tree.verify().sound
        tree.collect_garbage()
        assert tree.verify().unreferenced == 0
        assert texts(tree) == {**held, "z.md": "z"}
    assert ends == {False, True} or requests == 1


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("fault", ["lost", "dropped", "late", "down"])
def test_cut_off_at_any_request_the_outcome_that_is_reported_is_true(name, fault, begin, texts):
    call = CALLS[name]
    before, after, requests = expected(call, begin, texts)
    for number in range(requests):
        storage, tree = begin()
        count = iter(range(1000))
        # From this request on, so that nothing can be settled any more.
        storage.fault = lambda _m, _k, count=count, number=number: (
            fault if next(count) >= number else None
        )
        outcome = None
        try:
            call(tree)
        except BackendUnavailableError as error:
            outcome = error.outcome
        else:
            # Only the removal of what became useless was cut off.
            outcome = "applied"
        storage.fault = lambda _m, _k: None
        storage.deliver()
        held = texts(tree)
        assert held in (before, after)
        if outcome == "applied":
            assert held == after
        elif outcome == "not_applied" and name != "purge":
            assert held == before
        assert tree.verify().sound


@pytest.mark.parametrize("name", [name for name in CALLS if name != "purge"])
@pytest.mark.parametrize("fault", ["lost", "dropped", "late", "down"])
def test_one_lost_answer_of_a_commit_is_settled_and_the_call_succeeds_or_says_why(
    name, fault, begin, texts
):
    call = CALLS[name]
    before, after, _ = expected(call, begin, texts)
    storage, tree = begin()
    once = iter([fault])
    storage.fault = lambda method, key: (
        next(once, None) if (method, key[-5:]) == ("put_if_version", "/root") else None
    )
    if fault == "down":
        with pytest.raises(BackendUnavailableError) as failed:
            call(tree)
        assert failed.value.outcome == "not_applied"
        assert texts(tree) == before
        return
    call(tree)
    storage.deliver()
    assert texts(tree) == after
    assert tree.verify().sound


def test_a_writer_that_always_loses_gives_up_and_has_changed_nothing(storage, open_tree_on, small):
    """item_082."""
    tree, rival = open_tree_on(storage), open_tree_on(storage.inner)
    tree.create("a", "0")
    turns = iter(range(10_000))

    def lose(method, key):
        if (method, key[-5:]) == ("put_if_version", "/root"):
            rival.put("b", str(next(turns)))

    storage.fault = lose
    with pytest.raises(VersionConflictError) as refused:
        tree.append("a", "1")
    assert refused.value.version is None
    with pytest.raises(BackendUnavailableError) as late:
        tree.put("a", "1")
    assert (late.value.reason, late.value.outcome) == ("timeout", "not_applied")
    storage.fault = lambda _m, _k: None
    assert tree.read_file("a")[1] == "0"


def test_a_log_that_others_have_outrun_leaves_the_outcome_unknown(
    storage, open_tree_on, monkeypatch
):
    monkeypatch.setattr("wenchang.files._working.LOG_LENGTH", 3)
    tree, rival = open_tree_on(storage), open_tree_on(storage.inner)
    tree.create("a", "0")

    def outrun(method, key):
        if (method, key[-5:]) == ("put_if_version", "/root"):
            storage.fault = lambda _m, _k: None
            for number in range(5):
                rival.put("b", str(number))
            return "dropped"
        return None

    storage.fault = outrun
    with pytest.raises(BackendUnavailableError) as failed:
        tree.append("a", "1")
    assert failed.value.outcome == "unknown"


def test_a_content_that_vanished_is_reported_as_damage_of_that_file_alone(
    storage, open_tree_on, texts
):
    tree = open_tree_on(storage)
    tree.create("a", "0")
    tree.create("b", "0")
    entry = tree.snapshot().lookup("a")
    key = f"@files/ada/{entry.key}"
    storage.inner.delete_if_version(key, storage.inner.get(key).version)
    cold = open_tree_on(storage)
    for act in (lambda: cold.read_file("a"), lambda: cold.append("a", "1")):
        with pytest.raises(TreeStateError) as damage:
            act()
        assert damage.value.reason == "missing_object"
    assert cold.append("b", "1").size == 2
    cold.delete("a")
    assert texts(cold) == {"b": "01"}


def test_a_page_that_vanished_is_reported_as_damage(storage, open_tree_on):
    tree = open_tree_on(storage)
    for number in range(12):
        tree.create(f"{number:02}", "x")
    ref = tree.snapshot()._root.pages[0]
    key = f"@files/ada/{ref.key}"
    storage.inner.delete_if_version(key, storage.inner.get(key).version)
    cold = open_tree_on(storage)
    for act in (
        lambda: cold.view(lambda snapshot: list(snapshot.walk())),
        lambda: cold.put(ref.first, "y"),
        cold.collect_garbage,
    ):
        with pytest.raises(TreeStateError) as damage:
            act()
        assert damage.value.reason == "missing_object"
    assert cold.put("99", "y").created


def test_a_content_of_another_encoding_can_be_deleted_but_not_read(storage, open_tree_on):
    tree = open_tree_on(storage)
    tree.create("a", "0")
    key = f"@files/ada/{tree.snapshot().lookup('a').key}"
    storage.inner.put(key, b"\xff\xfe", {})
    cold = open_tree_on(storage)
    with pytest.raises(TreeStateError) as damage:
        cold.read_file("a")
    assert damage.value.reason == "unreadable_content"
    with pytest.raises(TreeStateError):
        cold.edit("a", [Edit(old_text="0", new_text="1")])
    assert cold.delete("a").files == 1
