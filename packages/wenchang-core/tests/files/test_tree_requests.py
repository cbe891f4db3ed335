"""How many requests a call of the tree costs, and that no content is read without need."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from wenchang.files.edits import Edit
from wenchang.files.errors import (
    AlreadyExistsError,
    LimitExceededError,
    NotFoundError,
    VersionConflictError,
)
from wenchang.files.limits import TreeLimits
from wenchang.files.policy import TreePolicy

PLAIN = TreePolicy(parallel=1)
COMMIT = ["put_if_version object", "put_if_version root"]


@pytest.fixture
def warm(storage, open_tree_on):
    """Return a small tree that knows its root and contents."""
    tree = open_tree_on(storage, PLAIN)
    for number in range(20):
        tree.create(f"d/{number}.md", f"text {number}\n")
    storage.taken()
    return tree


def test_listing_a_small_tree_costs_one_read(storage, warm):
    assert len(list(warm.snapshot().children("d"))) == 20
    assert storage.taken() == ["get root"]
    assert len(list(warm.snapshot().walk())) == 20
    assert storage.taken() == ["get root"]


def test_reading_a_file_costs_two_reads_and_one_where_the_content_is_known(
    storage, warm, open_tree_on
):
    cold = open_tree_on(storage, PLAIN)
    assert cold.read_file("d/1.md")[1] == "text 1\n"
    assert storage.taken() == ["get root", "get object"]
    cold.read_file("d/1.md")
    assert storage.taken() == ["get root"]


@pytest.mark.parametrize(
    "act",
    [
        lambda tree: tree.create("d/new.md", "x"),
        lambda tree: tree.put("d/1.md", "x"),
        lambda tree: tree.append("d/1.md", "x"),
        lambda tree: tree.edit("d/1.md", [Edit(old_text="text", new_text="TEXT")]),
        lambda tree: tree.write("d/1.md", "x", tree._objects.cached_root().root.token(2)),
    ],
    ids=["create", "put", "append", "edit", "write"],
)
def test_a_change_of_a_warm_small_tree_costs_one_content_and_one_commit(storage, warm, act):
    act(warm)
    assert storage.taken() == COMMIT


@pytest.mark.parametrize(
    "act",
    [
        lambda tree: tree.move("d/1.md", "d/x.md"),
        lambda tree: tree.move("d", "e/f"),
        lambda tree: tree.delete("d/1.md"),
        lambda tree: tree.delete("d", recursive=True),
    ],
    ids=["move", "move-folder", "delete", "delete-folder"],
)
def test_moving_and_deleting_in_a_warm_small_tree_is_one_commit_and_nothing_else(
    storage, warm, act
):
    act(warm)
    assert storage.taken() == ["put_if_version root"]


def test_moving_and_deleting_never_read_a_content(storage, warm, open_tree_on):
    cold = open_tree_on(storage, PLAIN)
    cold.move("d", "e")
    cold.delete("e/1.md")
    cold.delete("e", recursive=True)
    assert "get object" not in storage.taken()


def test_a_refusal_rests_on_a_root_read_during_the_call(storage, warm, open_tree_on):
    other = open_tree_on(storage, PLAIN)
    other.delete("d/1.md")
    storage.taken()
    # What the first tree remembers would refuse this.
    warm.create("d/1.md", "again")
    storage.taken()
    with pytest.raises(AlreadyExistsError):
        warm.create("d/1.md", "x")
    assert storage.taken() == ["get root"]
    with pytest.raises(NotFoundError):
        warm.edit("d/none.md", [Edit(old_text="a", new_text="b")])
    assert storage.taken() == ["get root"]


def test_a_call_over_a_limit_uploads_nothing(storage, open_tree_on):
    """item_132."""
    tree = open_tree_on(storage, PLAIN, limits=TreeLimits(max_file_bytes=10))
    tree.create("a", "x")
    storage.taken()
    with pytest.raises(LimitExceededError):
        tree.append("a", "x" * 10)
    assert storage.taken() == ["get root"]


def test_a_conflict_of_a_large_file_does_not_read_it(storage, warm):
    big = warm.put("big", "x" * 20_000)
    warm.put("big", "y" * 20_000)
    storage.taken()
    warm._objects._contents.drop(warm.snapshot().lookup("big").key)
    storage.taken()
    with pytest.raises(VersionConflictError) as refused:
        warm.write("big", "z", big.version)
    assert refused.value.content is None
    assert storage.taken() == ["get root"]


def test_a_change_that_changes_nothing_commits_nothing(storage, warm):
    """item_150."""
    before = warm.snapshot().lookup("d/1.md")
    storage.taken()
    for written in (
        warm.put("d/1.md", "text 1\n"),
        warm.append("d/1.md", ""),
        warm.edit("d/1.md", [Edit(old_text="text", new_text="text")]),
        warm.write("d/1.md", "text 1\n", before.version),
    ):
        assert (written.version, written.modified) == (before.version, before.modified)
        assert not written.changed
    assert storage.taken() == ["get root"] * 4


def test_a_change_of_a_large_tree_writes_one_page_more(storage, open_tree_on):
    policy = TreePolicy(parallel=1, page_entries=32, inline_entries=16, cleanup_after=1000)
    tree = open_tree_on(storage, policy)
    for number in range(200):
        tree.create(f"d/{number:03}.md", "x")
    assert len(tree.snapshot()._root.pages) > 4
    storage.taken()
    tree.edit("d/100.md", [Edit(old_text="x", new_text="y")])
    assert storage.taken() == [COMMIT[0], *COMMIT]


def test_content_and_page_of_a_change_are_uploaded_side_by_side(hooked, open_tree_on):
    barrier = threading.Barrier(2)
    together = []

    def meet(method, key):
        if method == "put_if_version" and not key.endswith("/root") and armed:
            barrier.wait(30)
            together.append(key)

    armed = False
    storage = hooked()
    storage.fault = meet
    policy = replace(PLAIN, parallel=4, page_entries=32, inline_entries=16)
    tree = open_tree_on(storage, policy)
    for number in range(40):
        tree.create(f"{number:03}.md", "x")
    armed = True
    tree.edit("010.md", [Edit(old_text="x", new_text="y")])
    assert len(together) == 2


def test_contents_are_read_side_by_side_and_a_bounded_number_ahead(hooked, open_tree_on):
    barrier = threading.Barrier(4)
    asked = []
    storage = hooked()
    policy = replace(PLAIN, parallel=4)
    writer = open_tree_on(storage, policy)
    for number in range(20):
        writer.create(f"{number:03}.md", str(number))

    def meet(method, key):
        if method == "get" and not key.endswith("/root"):
            asked.append(key)
            if len(asked) <= 4:
                barrier.wait(30)

    storage.fault = meet
    snapshot = open_tree_on(storage, policy).snapshot()
    found = snapshot.read_many(snapshot.walk())
    entry, text = next(found)
    assert (entry.path, text) == ("000.md", "0")
    assert len(asked) <= 5
    found.close()


def test_an_answer_lost_once_costs_a_look_into_the_log_and_nothing_twice(storage, warm):
    lost = iter(["lost"])
    storage.fault = lambda method, key: (
        next(lost, None) if (method, key[-5:]) == ("put_if_version", "/root") else None
    )
    warm.append("d/1.md", "x")
    assert storage.taken() == [*COMMIT, "get root"]
    assert warm.read_file("d/1.md")[1] == "text 1\nx"


def test_an_upload_is_used_again_after_a_lost_race(storage, warm, open_tree_on):
    other = open_tree_on(storage, PLAIN)
    other.put("d/2.md", "other")
    storage.taken()
    warm.put("d/1.md", "mine")
    assert storage.taken() == [*COMMIT, "get root", "put_if_version root"]


def test_an_upload_whose_answer_was_lost_is_given_up_for_a_fresh_key(storage, warm):
    lost = iter(["lost"])
    storage.fault = lambda method, key: (
        next(lost, None) if method == "put_if_version" and not key.endswith("/root") else None
    )
    warm.put("d/1.md", "mine")
    assert storage.taken() == [COMMIT[0], *COMMIT]
    assert warm.read_file("d/1.md")[1] == "mine"
    keys = {key for key, _ in warm._objects.listed()}
    assert len(keys) == 22
