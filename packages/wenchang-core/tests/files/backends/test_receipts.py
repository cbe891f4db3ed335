"""Receipts of file backends: what was committed and never answered is repeated, never done twice."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from wenchang.files.errors import EditMatchError, EffectKeyReusedError
from wenchang.files.state_backend import MAX_STATE_RECEIPTS, StateFileBackend
from wenchang.files.store_backend import StoreFileBackend, tree_base
from wenchang.files.tree import FileTree
from wenchang.storage.locations import StorageLocation
from wenchang.storage.memory import InMemoryStorage
from wenchang_conformance.file_backend.replay import ReplayConformance
from wenchang_conformance.locating import hooks_at


class TestReplayInMemory(ReplayConformance):
    @pytest.fixture
    def hooks(self):
        with hooks_at(StorageLocation.parse("memory://")) as hooks:
            assert hooks.spawn is None
            yield hooks


class TestReplayOnFiles(ReplayConformance):
    @pytest.fixture
    def hooks(self, tmp_path):
        with hooks_at(StorageLocation.parse(f"file://{tmp_path}")) as hooks:
            assert hooks.spawn
            yield hooks


def test_a_restored_checkpoint_repeats_what_it_holds_and_carries_out_what_it_does_not():
    """The state is the commit: what a killed run did after its checkpoint is not there either."""
    files, receipts = {}, {}
    run = StateFileBackend(files, receipts=receipts)
    run.write("/a.md", "x", effect_key="1")
    with pytest.raises(EditMatchError):
        run.edit("/a.md", "y", "z", effect_key="2")
    checkpoint = json.dumps([files, receipts])
    run.edit("/a.md", "x", "y", effect_key="3")

    files, receipts = json.loads(checkpoint)
    resumed = StateFileBackend(files, receipts=receipts)
    assert resumed.write("/a.md", "x", effect_key="1").replayed
    assert not resumed.edit("/a.md", "x", "y", effect_key="3").replayed
    with pytest.raises(EditMatchError):
        resumed.edit("/a.md", "y", "z", effect_key="2")
    with pytest.raises(EffectKeyReusedError):
        resumed.delete("/a.md", effect_key="1")
    assert resumed.read("/a.md").text == "y"


def test_a_state_keeps_its_newest_256_receipts():
    state = StateFileBackend()
    for number in range(MAX_STATE_RECEIPTS + 1):
        state.write("/a.md", str(number), effect_key=str(number))
    assert len(state.receipts) == MAX_STATE_RECEIPTS == 256
    assert state.write("/a.md", "1", effect_key="1").replayed
    assert not state.write("/a.md", "0", effect_key="0").replayed


class Clock:
    def __init__(self):
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self):
        return self.now


def test_a_store_keeps_its_newest_1000_receipts_and_all_of_seven_days_and_no_more():
    storage, clock = InMemoryStorage(), Clock()
    base = tree_base("acme")

    def handle():
        return StoreFileBackend(storage, tenant="acme", tree=FileTree(storage, base, clock=clock))

    def is_replayed(key):
        return handle().write("/a.md", key, effect_key=key).replayed

    files = handle()

    def write(name, count):
        def one(number):
            key = f"{name}-{number}"
            files.write("/a.md", key, effect_key=key)

        # Side by side, so that many share a commit.
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(one, range(count)))

    write("first", 1)
    write("week", 1200)
    clock.now += timedelta(days=7)
    write("next", 100)
    # More than a thousand are newer, and it is not older than the window.
    assert is_replayed("first-0")
    clock.now += timedelta(hours=1)
    write("late", 500)
    assert not is_replayed("first-0")
    # Older than the window, and among the newest thousand.
    assert is_replayed("week-1199")
    root = handle().tree.snapshot()._root
    # Pages go whole: those in the root, and a page of eight merged ones, may be there beside.
    assert 1000 <= len(root.receipts) + sum(page.size for page in root.receipt_pages) < 1800
