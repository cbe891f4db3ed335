"""A tree does what a dict of texts would do, whatever the pages look like."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wenchang.files.edits import Edit
from wenchang.files.errors import (
    AlreadyExistsError,
    EditMatchError,
    FileToolError,
    InvalidArgumentError,
    LimitExceededError,
    NotFoundError,
    VersionConflictError,
)
from wenchang.files.limits import TreeLimits
from wenchang.files.policy import HistoryPolicy
from wenchang.files.snapshot import position
from wenchang.files.values import FolderEntry

DEEP = os.environ.get("WENCHANG_SIZES") == "deep" or os.environ.get("WENCHANG_DEEP") == "1"
LIMITS = TreeLimits(max_depth=3, max_file_bytes=12, max_total_bytes=90, max_file_count=14)
_names = st.sampled_from(["a", "b", "c", "a.md", "a-b", "b0"])
_paths = st.lists(_names, min_size=1, max_size=4).map("/".join)
_texts = st.text(alphabet="xy\n", max_size=8)


@dataclass
class Model:
    """A dict of texts with the rules of a tree, as plainly as they can be written."""

    files: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    number: int = 0

    def is_folder(self, path: str) -> bool:
        return any(each.startswith(path + "/") for each in self.files)

    def check_place(self, path: str) -> None:
        if self.is_folder(path):
            raise AlreadyExistsError(path, "folder")
        names = path.split("/")
        for count in range(1, len(names)):
            if "/".join(names[:count]) in self.files:
                raise AlreadyExistsError("", "file")

    def store(self, path: str, text: str) -> int:
        old = self.files.get(path)
        before = 0 if old is None else len(old)
        if old is None and len(self.files) + 1 > LIMITS.max_file_count:
            raise LimitExceededError("maxFileCount", 0, 0)
        if len(text) > before:
            if len(text) > LIMITS.max_file_bytes:
                raise LimitExceededError("maxFileBytes", 0, 0)
            if sum(map(len, self.files.values())) + len(text) - before > LIMITS.max_total_bytes:
                raise LimitExceededError("maxTotalBytes", 0, 0)
        self.number += 1
        self.files[path], self.numbers[path] = text, self.number
        return self.number

    def create(self, path: str, text: str) -> int:
        if path in self.files:
            raise AlreadyExistsError(path, "file")
        self.check_place(path)
        if path.count("/") > LIMITS.max_depth:
            raise LimitExceededError("maxDepth", 0, 0)
        return self.store(path, text)

    def change(self, path: str, text: str) -> int:
        return self.numbers[path] if self.files[path] == text else self.store(path, text)

    def put(self, path: str, text: str) -> int:
        return self.change(path, text) if path in self.files else self.create(path, text)

    def append(self, path: str, text: str) -> int:
        if path not in self.files:
            return self.create(path, text)
        return self.change(path, self.files[path] + text)

    def check_file(self, path: str, number: int | None) -> None:
        if path not in self.files:
            if self.is_folder(path) and number is not None:
                raise InvalidArgumentError("version", "")
            raise NotFoundError(path)
        if number is not None and number != self.numbers[path]:
            raise VersionConflictError(path, "")

    def write(self, path: str, text: str, number: int) -> int:
        self.check_file(path, number)
        return self.change(path, text)

    def edit(self, path: str, old: str, new: str, number: int | None) -> int:
        self.check_file(path, number)
        count = sum(self.files[path].startswith(old, at) for at in range(len(self.files[path])))
        if count != 1:
            raise EditMatchError(path, 0, count)
        return self.change(path, self.files[path].replace(old, new))

    def move(self, source: str, target: str) -> int:
        if target.startswith(source + "/"):
            raise InvalidArgumentError("to", "")
        if source in self.files:
            moved = [source]
        else:
            moved = [each for each in self.files if each.startswith(source + "/")]
        if not moved:
            raise NotFoundError(source)
        if target in self.files:
            raise AlreadyExistsError(target, "file")
        self.check_place(target)
        targets = [target + each[len(source) :] for each in moved]
        deepest = max(each.count("/") for each in targets)
        if target.count("/") > source.count("/") and deepest > LIMITS.max_depth:
            raise LimitExceededError("maxDepth", 0, 0)
        for each, there in zip(moved, targets, strict=True):
            self.files[there] = self.files.pop(each)
            self.numbers[there] = self.numbers.pop(each)
        return len(moved)

    def delete(self, path: str, recursive: bool) -> int:
        if path in self.files:
            del self.files[path]
            return 1
        below = [each for each in self.files if each.startswith(path + "/")]
        if not below:
            raise NotFoundError(path)
        if not recursive:
            raise InvalidArgumentError("recursive", "")
        for each in below:
            del self.files[each]
        return len(below)

    def children(self, folder: str, depth: int) -> list[str]:
        low = folder + "/" if folder else ""
        shown = set()
        for path in self.files:
            if path.startswith(low):
                names = path[len(low) :].split("/")
                shown |= {
                    low + "/".join(names[:count]) + "/"
                    for count in range(1, min(len(names), depth + 1))
                }
                if len(names) <= depth:
                    shown.add(path)
        return sorted(shown)


def _result(act):
    """Return what a call came to, comparable between tree and model."""
    try:
        return act()
    except FileToolError as error:
        return type(error), getattr(error, "limit", None), getattr(error, "kind", None)


_operations = st.lists(
    st.one_of(
        st.tuples(st.just("create"), _paths, _texts),
        st.tuples(st.just("put"), _paths, _texts),
        st.tuples(st.just("append"), _paths, _texts),
        st.tuples(st.just("write"), _paths, _texts, st.booleans()),
        st.tuples(
            st.just("edit"), _paths, st.sampled_from(["x", "y", "xy"]), _texts, st.booleans()
        ),
        st.tuples(st.just("move"), _paths, _paths),
        st.tuples(st.just("delete"), _paths, st.booleans()),
    ),
    max_size=60,
)


class Pair:
    """A tree and a model that get the same calls."""

    def __init__(self, tree):
        self.tree = tree
        self.model = Model()

    def carry_out(self, name, path, *rest):
        tree, model = self.tree, self.model
        if name in ("create", "put", "append"):
            self.compare(getattr(tree, name), getattr(model, name), path, *rest)
        elif name == "write":
            text, right = rest
            number = model.numbers.get(path, 1) if right else 10**6
            found = _result(lambda: self.number(tree.write(path, text, self.token(number))))
            assert found == _result(lambda: model.write(path, text, number))
        elif name == "edit":
            old, new, right = rest
            number = model.numbers.get(path, 1) if right else None
            version = None if number is None else self.token(number)
            edit = Edit(old_text=old, new_text=new)
            found = _result(lambda: self.number(tree.edit(path, [edit], version)))
            assert found == _result(lambda: model.edit(path, old, new, number))
        elif name == "move":
            found = _result(lambda: tree.move(path, *rest).files)
            assert found == _result(lambda: model.move(path, *rest))
        else:
            found = _result(lambda: tree.delete(path, *rest).files)
            assert found == _result(lambda: model.delete(path, *rest))

    def compare(self, act, expect, path, text):
        assert _result(lambda: self.number(act(path, text))) == _result(lambda: expect(path, text))

    @staticmethod
    def number(written):
        return int(written.version[1:].partition("-")[0])

    def token(self, number):
        return self.tree.snapshot()._root.token(number)

    def check(self, texts):
        """Compare everything that can be read."""
        model, snapshot = self.model, self.tree.snapshot()
        assert texts(self.tree) == model.files
        entries = list(snapshot.walk())
        assert [each.path for each in entries] == sorted(model.files)
        assert {each.path: self.number(each) for each in entries} == {
            path: model.numbers[path] for path in model.files
        }
        for each in entries:
            text = model.files[each.path]
            lines = text.count("\n") + (not text.endswith("\n") and text != "")
            assert (each.size, each.lines) == (len(text), lines)
        usage = snapshot.usage
        assert (usage.files, usage.bytes) == (len(model.files), sum(map(len, model.files.values())))
        assert usage.depth == max((path.count("/") for path in model.files), default=0)
        assert usage.largest == max(map(len, model.files.values()), default=0)
        for folder in ("", "a", "a/b", "b", "a-b"):
            below = [
                path
                for path in sorted(model.files)
                if path.startswith(folder + "/" if folder else "")
            ]
            assert [each.path for each in snapshot.walk(folder)] == below
            for depth in (1, 2):
                shown = [position(each) for each in snapshot.children(folder, depth=depth)]
                assert shown == model.children(folder, depth)
                for count, after in enumerate(shown, start=1):
                    rest = snapshot.children(folder, after, depth=depth)
                    assert [position(each) for each in rest] == shown[count:]
            newest = [(each.modified, each.path) for each in snapshot.walk_modified(folder)]
            assert newest == sorted(newest, key=lambda each: (-each[0].timestamp(), each[1]))
            assert sorted(path for _, path in newest) == below
            for count, after in enumerate(newest, start=1):
                rest = snapshot.walk_modified(folder, after)
                assert [(each.modified, each.path) for each in rest] == newest[count:]
        for path in {"a", "a/b", "b/c", *model.files}:
            found = snapshot.lookup(path)
            if path in model.files:
                assert found == next(each for each in entries if each.path == path)
            elif model.is_folder(path):
                assert found == FolderEntry(path=path)
            else:
                assert found is None
        report = self.tree.verify()
        assert report.sound, report.problems


@pytest.mark.parametrize(
    "history", [None, HistoryPolicy(versions=2, max_bytes=1500)], ids=["plain", "history"]
)
@pytest.mark.parametrize("paged", [True, False], ids=["pages", "inline"])
@settings(
    max_examples=400 if DEEP else 30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
@given(operations=_operations)
def test_a_tree_does_what_a_dict_of_texts_does(
    history, paged, operations, open_tree_on, hooked, texts, small
):
    policy = small if paged else replace(small, inline_entries=1000, inline_bytes=10**6)
    storage = hooked()
    # Several changes share a time, so that the order by time has ties.
    ticks = iter(range(10**6))
    start = datetime(2026, 1, 1, tzinfo=UTC)
    clock = lambda: start + timedelta(seconds=next(ticks) // 5)  # noqa: E731 - one use
    pair = Pair(open_tree_on(storage, policy, limits=LIMITS, history=history, clock=clock))
    for operation in operations:
        pair.carry_out(*operation)
    pair.check(texts)
    # Another process sees the same, and nothing that is needed is ever removed.
    pair.tree.close()
    if pair.tree.snapshot().version is not None:
        pair.tree.collect_garbage()
    other = open_tree_on(storage, policy, limits=LIMITS, history=history)
    assert texts(other) == pair.model.files
    assert other.verify().unreferenced == 0


@pytest.mark.parametrize("seed", range(3))
def test_a_tree_of_many_pages_keeps_its_bounds(seed, size, open_tree_on, hooked, texts, small):
    rng = random.Random(seed)
    policy = replace(small, page_entries=8, page_bytes=600)
    tree = open_tree_on(hooked(), policy)
    files = {}
    for step in range(size("generated_calls") // 5):
        path = f"d{rng.randrange(6)}/{rng.randrange(40)}.md"
        if rng.random() < 0.3 and files:
            path = rng.choice(sorted(files))
            tree.delete(path)
            del files[path]
        else:
            tree.put(path, str(step))
            files[path] = str(step)
        root = tree.snapshot()._root
        assert all(ref.sums.records <= 8 for ref in root.pages if ref.key)
        assert all(ref.sums.weight <= 600 for ref in root.pages if ref.key)
    assert texts(tree) == files
    root = tree.snapshot()._root
    # Small pages are joined, so their number follows the number of files.
    assert len(root.pages) <= 2 + len(files)
    for path in sorted(files):
        tree.delete(path)
    assert tree.snapshot()._root.pages == ()
