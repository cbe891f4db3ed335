"""Effect keys: the first outcome is the only one, in any process, for as long as receipts are kept."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wenchang.files._receipts import MERGE_WIDTH, ReceiptPage, file_receipts
from wenchang.files.edits import Edit
from wenchang.files.errors import (
    AlreadyExistsError,
    EditMatchError,
    EffectKeyReusedError,
    InvalidArgumentError,
    LimitExceededError,
    NotFoundError,
    VersionConflictError,
)
from wenchang.files.limits import TreeLimits

EDIT = [Edit(old_text="x", new_text="y")]
SUCCESSES = {
    "create": lambda tree, key: tree.create("new", "x", effect_key=key),
    "put": lambda tree, key: tree.put("a", "xx", effect_key=key),
    "put-same": lambda tree, key: tree.put("a", "x", effect_key=key),
    "append": lambda tree, key: tree.append("a", "z", effect_key=key),
    "edit": lambda tree, key: tree.edit("a", EDIT, effect_key=key),
    "move": lambda tree, key: tree.move("a", "b", effect_key=key),
    "move-folder": lambda tree, key: tree.move("d", "e", effect_key=key),
    "delete": lambda tree, key: tree.delete("a", effect_key=key),
    "delete-folder": lambda tree, key: tree.delete("d", True, effect_key=key),
}
REFUSALS = {
    "exists": (lambda tree, key: tree.create("a", "x", effect_key=key), AlreadyExistsError),
    "is-folder": (lambda tree, key: tree.put("d", "x", effect_key=key), AlreadyExistsError),
    "conflict": (
        lambda tree, key: tree.write("a", "y", "v0-none", effect_key=key),
        VersionConflictError,
    ),
    "absent": (lambda tree, key: tree.delete("no", effect_key=key), NotFoundError),
    "no-match": (
        lambda tree, key: tree.edit("a", [Edit(old_text="q", new_text="")], effect_key=key),
        EditMatchError,
    ),
    "limit": (lambda tree, key: tree.put("a", "x" * 99, effect_key=key), LimitExceededError),
    "target": (lambda tree, key: tree.move("a", "d", effect_key=key), AlreadyExistsError),
}


@pytest.fixture
def begin(hooked, open_tree_on):
    def make():
        storage = hooked()
        limits = TreeLimits(max_file_bytes=50)
        tree = open_tree_on(storage, limits=limits)
        for path in ("a", "d/1", "d/2"):
            tree.create(path, "x")
        return storage, tree, lambda: open_tree_on(storage, limits=limits)

    return make


@pytest.mark.parametrize("name", SUCCESSES)
def test_a_call_repeated_in_another_process_returns_the_first_outcome(name, begin, texts):
    _, tree, reopen = begin()
    first = SUCCESSES[name](tree, "key")
    held = texts(tree)
    # What happened since has no say.
    tree.put("a", "later") if "a" in held else tree.create("a", "later")
    held = texts(tree)
    again = SUCCESSES[name](reopen(), "key")
    assert again == replace(first, replayed=True)
    assert texts(tree) == held


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_is_an_outcome_too(name, begin, texts):
    act, kind = REFUSALS[name]
    _, tree, reopen = begin()
    with pytest.raises(kind) as first:
        act(tree, "key")
    for path in [each for each in texts(tree) if each != "a"]:
        tree.delete(path)
    tree.put("a", "q")
    held = texts(tree)
    with pytest.raises(kind) as again:
        act(reopen(), "key")
    for field in kind.FIELDS:
        if field != "content":
            assert getattr(again.value, field) == getattr(first.value, field)
    assert texts(tree) == held


def test_a_receipt_never_holds_content(begin, storage):
    storage, tree, _ = begin()
    secret = "s3cr3t"
    tree.put("a", secret, effect_key="1")
    tree.edit("a", [Edit(old_text=secret, new_text=secret * 2)], effect_key="2")
    with pytest.raises(VersionConflictError) as refused:
        tree.write("a", secret * 3, "v0-none", effect_key="3")
    assert refused.value.content == secret * 2
    assert secret.encode() not in storage.inner.get("@files/ada/root").data


def test_a_key_with_other_arguments_is_refused_and_applies_nothing(begin, texts):
    _, tree, reopen = begin()
    tree.append("a", "1", effect_key="key")
    held = texts(tree)
    other = reopen()
    for act in (
        lambda: other.append("a", "2", effect_key="key"),
        lambda: other.append("d/1", "1", effect_key="key"),
        lambda: other.put("a", "1", effect_key="key"),
        lambda: other.delete("a", effect_key="key"),
    ):
        with pytest.raises(EffectKeyReusedError):
            act()
    assert texts(tree) == held


def test_what_does_not_depend_on_the_tree_is_not_recorded(begin):
    _, tree, _ = begin()
    with pytest.raises(InvalidArgumentError):
        tree.delete("d", effect_key="key")
    assert tree.delete("d", True, effect_key="key").files == 2


def test_an_outage_is_not_recorded(begin, storage):
    storage, tree, _ = begin()
    storage.fault = lambda _m, key: "down" if key.endswith("/root") else None
    with pytest.raises(Exception, match="unavailable"):
        tree.append("a", "1", effect_key="key")
    storage.fault = lambda _m, _k: None
    assert not tree.append("a", "1", effect_key="key").replayed


@pytest.mark.parametrize("key", ["", "k" * 201, "\ud800", "a\0", 5])
def test_a_key_has_one_to_two_hundred_characters(key, begin):
    _, tree, _ = begin()
    with pytest.raises(InvalidArgumentError):
        tree.append("a", "1", effect_key=key)


def test_old_receipts_move_to_pages_and_are_found_there(begin, texts):
    _, tree, reopen = begin()
    for number in range(40):
        tree.append("a", "1", effect_key=str(number))
    held = texts(tree)
    root = tree.snapshot()._root
    assert len(root.receipts) < 4
    assert 0 < len(root.receipt_pages) < 20
    other = reopen()
    assert all(other.append("a", "1", effect_key=str(n)).replayed for n in range(40))
    assert texts(other) == held
    assert other.verify().sound
    other.collect_garbage()
    assert reopen().append("a", "1", effect_key="0").replayed
    assert other.verify().sound


def test_a_receipt_goes_only_when_it_is_old_and_enough_newer_ones_are_kept(
    storage, open_tree_on, clock
):
    tree = open_tree_on(storage, clock=clock)
    tree.create("a", "")
    for number in range(6):
        tree.append("a", "1", effect_key=f"old{number}")
    clock.go(days=8)
    # Old, but among the newest five or more.
    assert tree.append("a", "1", effect_key="old5").replayed
    for number in range(12):
        tree.append("a", "1", effect_key=f"new{number}")
    assert not tree.append("a", "1", effect_key="old0").replayed
    assert all(tree.append("a", "1", effect_key=f"new{n}").replayed for n in range(12))


@given(
    st.lists(st.tuples(st.integers(1, 5), st.booleans()), max_size=60),
    st.integers(1, 4),
    st.integers(0, 12),
)
def test_filing_keeps_every_receipt_that_must_be_kept_in_order(steps, in_root, kept):
    """Receipts are numbers here; a page holds what it was made of."""
    receipts, pages, contents, added, now = [], (), {}, [], 0
    for count, pause in steps:
        now += 100 if pause else 1
        for _ in range(count):
            added.append(now)
            receipts.append(FakeReceipt(len(added) - 1, now))
        filed = file_receipts(receipts, pages, in_root=in_root, kept=kept, not_before=now - 50)
        receipts, pages = list(filed.receipts), filed.pages
        if filed.moved:
            rows = [row for page in filed.merged for row in contents[page.key]] + list(filed.moved)
            key = f"p{len(contents)}"
            contents[key] = rows
            pages = (*pages, ReceiptPage(key, filed.level, len(rows), rows[-1].time))
        held = [row for page in pages for row in contents[page.key]] + receipts
        assert [row.number for row in held] == list(range(held[0].number, len(added)))
        gone = added[: held[0].number]
        assert len(held) >= kept or not gone
        assert all(time < now - 50 for time in gone)
        assert len(receipts) < 2 * in_root + 5
        for level in range(2):
            assert sum(page.level == level for page in pages) < MERGE_WIDTH


class FakeReceipt:
    def __init__(self, number, time):
        self.number, self.time = number, time
