"""Crashes, failing disks and power failures at every single system call of a change."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from wenchang.storage import BackendUnavailableError, Storage, StorageRejectedError
from wenchang.storage._fs_disk import Disk
from wenchang.storage.filesystem import FilesystemStorage

# Closing and unlocking are what the kernel does for a process that is gone.
STEPS = [
    name for name in vars(Disk) if not name.startswith("_") and name not in ("close", "unlock")
]


# A normal run takes every fourth step of a recovery, at another offset for each crash.
STRIDE = 1 if os.environ.get("WENCHANG_SIZES") == "deep" else 4


class CrashError(BaseException):
    """The process is gone: no handler of the backend may run as if nothing had happened."""


class SteppedDisk(Disk):
    """A disk that stops, or fails, at the n-th system call. Folders and files are not synced for real."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.at: int | None = None
        self.failure: OSError | None = None
        self.lasting = False

    def arm(self, at: int | None, failure: OSError | None = None, *, lasting: bool = False) -> None:
        """Crash at step `at` from now (or fail once, or from then on); None disarms."""
        self.log.clear()
        self.at, self.failure, self.lasting = at, failure, lasting

    def step(self, name: str) -> bool:
        """Count a call; return True if it is to be torn in the middle (a crash within a write)."""
        self.log.append(name)
        if self.at is None or len(self.log) < self.at:
            return False
        if self.failure is None:
            if name == "write" and len(self.log) == self.at:
                return True
            raise CrashError
        if self.lasting or len(self.log) == self.at:
            raise OSError(self.failure.errno, os.strerror(self.failure.errno), "secret-name")
        return False

    @property
    def reached(self) -> bool:
        return self.at is not None and len(self.log) >= self.at

    def fsync(self, handle):
        self.step("fsync")

    def write(self, handle, data):
        if self.step("write"):
            super().write(handle, data[: len(data) // 2])
            raise CrashError
        super().write(handle, data)

    def read(self, handle):
        self.step("read")
        yield from super().read(handle)


def _counted(name: str) -> Callable[..., object]:
    original = getattr(Disk, name)

    def call(self, *arguments, **keywords):
        self.step(name)
        return original(self, *arguments, **keywords)

    return call


for _name in set(STEPS) - {"fsync", "write", "read"}:
    setattr(SteppedDisk, _name, _counted(_name))


@dataclass(frozen=True)
class Scenario:
    name: str
    key: str
    prepare: Callable[[Path, Storage], object]
    change: Callable[[Storage, str | None], object]
    new: tuple[bytes, dict[str, str]] | None


OLD = (b"old body", {"state": "old"})
NEW = (b"new body, longer", {"state": "new"})


def hand_made(root: Path, store: Storage) -> None:
    (root / "k%obj").write_bytes(OLD[0])


def edited(root: Path, store: Storage) -> None:
    store.put("k", *OLD)
    (root / "k%obj").write_bytes(b"edited")


def same_body(root: Path, store: Storage) -> None:
    store.put("k", NEW[0], OLD[1])


SCENARIOS = [
    Scenario(
        "create",
        "k",
        lambda root, store: None,
        lambda store, version: store.put_if_version("k", *NEW, None),
        NEW,
    ),
    Scenario(
        "create in new folders",
        "a/b/k",
        lambda root, store: None,
        lambda store, version: store.put("a/b/k", *NEW),
        NEW,
    ),
    Scenario(
        "replace",
        "k",
        lambda root, store: store.put("k", *OLD),
        lambda store, version: store.put_if_version("k", *NEW, version),
        NEW,
    ),
    Scenario(
        "replace metadata only",
        "k",
        same_body,
        lambda store, version: store.put_if_version("k", *NEW, version),
        NEW,
    ),
    Scenario(
        "replace hand-made",
        "k",
        hand_made,
        lambda store, version: store.put_if_version("k", *NEW, version),
        NEW,
    ),
    Scenario(
        "replace edited",
        "k",
        edited,
        lambda store, version: store.put_if_version("k", *NEW, version),
        NEW,
    ),
    Scenario(
        "delete",
        "a/k",
        lambda root, store: store.put("a/k", *OLD),
        lambda store, version: store.delete_if_version("a/k", version),
        None,
    ),
    Scenario(
        "delete hand-made",
        "k",
        hand_made,
        lambda store, version: store.delete_if_version("k", version),
        None,
    ),
]
scenarios = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)


@dataclass(frozen=True)
class State:
    data: bytes | None
    metadata: dict[str, str] | None
    version: str | None

    @classmethod
    def of(cls, store: Storage, key: str) -> State:
        """Read the state by every means, which have to agree."""
        found = store.get(key)
        listed = [entry for entry in store.list_page("", None, 100) if entry.key == key]
        if found is None:
            assert listed == []
            return cls(None, None, None)
        assert [(entry.metadata, entry.version) for entry in listed] == [
            (found.metadata, found.version)
        ]
        return cls(found.data, dict(found.metadata), found.version)

    @property
    def content(self) -> tuple[bytes, dict[str, str]] | None:
        return None if self.data is None else (self.data, self.metadata)


class Trial:
    """One fresh root with the scenario's old state and a disk that can be armed."""

    def __init__(self, root: Path, scenario: Scenario) -> None:
        self.root, self.scenario = root, scenario
        self.disk = SteppedDisk()
        self.store = FilesystemStorage(root, _disk=self.disk)
        self.store.put("other", b"untouched", {})
        scenario.prepare(root, self.store)
        self.old = State.of(self.store, scenario.key)
        self.other = self.store.get("other")

    def change(self) -> object:
        return self.scenario.change(self.store, self.old.version)

    def fresh(self) -> FilesystemStorage:
        """Another process: nothing but the files."""
        disk = SteppedDisk()
        return FilesystemStorage(self.root, _disk=disk)

    def is_new(self, state: State) -> bool:
        return state.content == self.scenario.new and state.version != self.old.version

    def leftovers(self) -> set[str]:
        names = {path.name for path in self.root.rglob("*") if path.is_file()}
        return {name for name in names if name.endswith(("%redo", "%new", "%tmp", "%old"))}

    def picture(self) -> frozenset[object]:
        """Return what lies in the root, to tell crashes apart that leave different things."""
        names = [
            (str(path.relative_to(self.root)), path.stat().st_size) for path in self.root.rglob("*")
        ]
        note = (self.root / ".lock").read_bytes().startswith(b"\n")
        return frozenset([*names, note])

    def check_clean(self) -> None:
        """Assert that nothing lies about but bodies, their sidecars and the folders they need."""
        assert self.leftovers() == set()
        bodies = {path for path in self.root.rglob("*%obj") if path.is_file()}
        for sidecar in self.root.rglob("*%meta"):
            assert sidecar.with_name(sidecar.name.replace("%meta", "%obj")) in bodies
        for path in self.root.rglob("*"):
            assert not path.is_dir() or any(path.iterdir())


def trials(tmp_path: Path, scenario: Scenario) -> Iterator[tuple[int, Trial]]:
    for at in itertools.count(1):
        root = tmp_path / f"{at}"
        yield at, Trial(root, scenario)
        shutil.rmtree(root)


def crash(trial: Trial, at: int) -> bool:
    """Run the change up to step `at`; return whether it was acknowledged before that."""
    trial.disk.arm(at)
    try:
        trial.change()
    except CrashError:
        return False
    finally:
        trial.disk.arm(None)
    return True


@scenarios
@pytest.mark.parametrize("recovery", ["reader", "next writer", "same key", "note lost", "listing"])
def test_mem_091_a_crash_at_any_step_leaves_the_old_state_or_the_new(tmp_path, scenario, recovery):
    """durable, get-atomic, list-clean (B94): rolled back before the decision, forward after it."""
    outcomes: list[bool] = []
    for at, trial in trials(tmp_path, scenario):
        acknowledged = crash(trial, at)
        store = trial.fresh()
        if recovery == "note lost":
            (trial.root / ".lock").write_bytes(b"")
        if recovery == "next writer":
            store.put("other", b"untouched", {})
        elif recovery == "listing":
            store.list_page("", None, 100)
            store.put("other", b"untouched", {})
            trial.check_clean()
        seen = State.of(store, scenario.key)
        is_new = trial.is_new(seen)
        assert is_new or seen == trial.old, trial.disk.log
        outcomes.append(is_new)
        if acknowledged:
            assert is_new
        if recovery == "same key":
            store.put(scenario.key, b"later", {})
            seen = State.of(store, scenario.key)
            assert seen.content == (b"later", {})
        # Whoever holds the lock next changes nothing of what readers saw, and sweeps.
        store.put("other", b"untouched", {})
        assert State.of(store, scenario.key) == seen
        assert State.of(trial.fresh(), scenario.key) == seen
        assert store.get("other").data == b"untouched"
        if recovery != "note lost":
            trial.check_clean()
        version = store.put_if_version(scenario.key, b"next", {}, seen.version)
        trial.check_clean()
        store.delete_if_version(scenario.key, version)
        trial.check_clean()
        if acknowledged:
            break
    # Decided once, and never undecided again.
    assert outcomes == sorted(outcomes)
    assert {False, True} == set(outcomes)
    assert outcomes.count(True) > 1


@scenarios
def test_a_crash_during_the_recovery_from_a_crash_changes_nothing_either(tmp_path, scenario):
    pictures = set()
    for at, trial in trials(tmp_path, scenario):
        acknowledged = crash(trial, at)
        picture = trial.picture()
        if picture in pictures:
            continue
        pictures.add(picture)
        seen = State.of(trial.fresh(), scenario.key)
        kept = tmp_path / "kept"
        shutil.copytree(trial.root, kept)
        for second in itertools.count(1 + at % STRIDE, STRIDE):
            # Hard links keep inode and times, which a copy would not.
            shutil.rmtree(trial.root)
            shutil.copytree(kept, trial.root, copy_function=os.link)
            lock = trial.root / ".lock"
            lock.unlink()
            shutil.copy(kept / ".lock", lock)
            disk = SteppedDisk()
            store = FilesystemStorage(trial.root, _disk=disk)
            disk.arm(second)
            crashed = True
            with suppress(CrashError):
                store.put("other", b"untouched", {})
                crashed = False
            assert State.of(trial.fresh(), scenario.key).content == seen.content, (at, second)
            if not crashed:
                break
        shutil.rmtree(kept)
        if acknowledged:
            break
    assert len(pictures) > 4


@scenarios
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO], ids=errno.errorcode.get)
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
def test_mem_a_failing_disk_is_reported_truthfully_and_loses_nothing(
    tmp_path, scenario, number, lasting
):
    """out-definite, out-unknown, out-mapped: ENOSPC and EIO at every system call."""
    failures = 0
    for at, trial in trials(tmp_path, scenario):
        trial.disk.arm(at, OSError(number, ""), lasting=lasting)
        outcome = "applied"
        try:
            trial.change()
        except StorageRejectedError as error:
            outcome, failure = "not_applied", error
        except BackendUnavailableError as error:
            outcome, failure = error.outcome, error
        reached = trial.disk.reached
        trial.disk.arm(None)
        if outcome != "applied":
            failures += 1
            shown = f"{failure} {failure!r} {failure.__cause__} {failure.__cause__!r}"
            assert "secret" not in shown
            assert scenario.key not in shown.split()
        for store in (trial.store, trial.fresh()):
            seen = State.of(store, scenario.key)
            if outcome == "applied":
                assert trial.is_new(seen), trial.disk.log
            elif outcome == "not_applied":
                assert seen == trial.old, trial.disk.log
            else:
                assert lasting, "a single failure can always be settled"
                assert seen == trial.old or trial.is_new(seen)
        # The next operation works and tidies up.
        trial.store.put("other", b"1", {})
        trial.check_clean()
        assert State.of(trial.store, scenario.key) == seen
        trial.store.put_if_version(scenario.key, b"next", {}, seen.version)
        assert trial.store.get(scenario.key).data == b"next"
        if not reached:
            assert outcome == "applied"
            break
    assert failures > 5


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EMFILE], ids=errno.errorcode.get)
@pytest.mark.parametrize("call", ["get", "list", "hand-made"])
def test_a_read_from_a_failing_disk_is_an_error_and_never_a_wrong_answer(tmp_path, number, call):
    scenario = SCENARIOS[4 if call == "hand-made" else 2]
    for at, trial in trials(tmp_path, scenario):
        trial.disk.arm(at, OSError(number, ""))
        try:
            if call == "list":
                found = trial.store.list_page("", None, 10)[0]
                assert (found.metadata, found.version) == (OLD[1], trial.old.version)
            else:
                found = trial.store.get("k")
                assert (found.data, found.version) == (OLD[0], trial.old.version)
        except (StorageRejectedError, BackendUnavailableError) as error:
            assert getattr(error, "outcome", "not_applied") == "not_applied"  # noqa: PT017 - both outcomes are fine, a wrong answer is not
        reached = trial.disk.reached
        trial.disk.arm(None)
        assert State.of(trial.store, "k") == trial.old
        if not reached:
            break
    assert at > 5


def test_a_delete_works_on_a_full_disk(tmp_path):
    class Full(SteppedDisk):
        full = False

        def create_file(self, name, folder):
            if self.full:
                raise OSError(errno.ENOSPC, "full")
            return super().create_file(name, folder)

        def write_note(self, handle, note):
            if self.full:
                raise OSError(errno.ENOSPC, "full")
            super().write_note(handle, note)

    disk = Full()
    store = FilesystemStorage(tmp_path / "root", _disk=disk)
    version = store.put("a/k", *OLD)
    disk.full = True
    with pytest.raises(StorageRejectedError) as caught:
        store.put("b/new", b"", {})
    assert caught.value.kind == "full"
    store.delete_if_version("a/k", version)
    assert store.list_page("", None, 10) == []
    assert {path.name for path in (tmp_path / "root").iterdir()} == {".lock"}


def test_new_folders_are_durable_before_anything_is_put_into_them(tmp_path):
    """durable: a lost folder would take acknowledged objects with it."""
    events: list[tuple[str, int]] = []

    class Watching(Disk):
        def make_folder(self, name, folder):
            super().make_folder(name, folder)
            events.append(("made in", os.fstat(folder).st_ino))

        def fsync(self, handle):
            events.append(("synced", os.fstat(handle).st_ino))

        def create_file(self, name, folder):
            events.append(("file in", os.fstat(folder).st_ino))
            return super().create_file(name, folder)

    store = FilesystemStorage(tmp_path / "root", _disk=Watching())
    events.clear()
    store.put("a/b/k", b"", {})
    root, first, second = ((tmp_path / "root" / name).stat().st_ino for name in (".", "a", "a/b"))
    assert events[:5] == [
        *(("made in", root), ("synced", root), ("made in", first), ("synced", first)),
        ("file in", second),
    ]
    assert events[-1] == ("synced", second)


# --- power failures -------------------------------------------------------------------------------


class VolatileDisk(SteppedDisk):
    """Knows which names and contents were synced, and can lose any of the others.

    Only for objects directly in the root. Every file is also linked into a vault, so that a lost or
    replaced name can come back with its inode.
    """

    def __init__(self, vault: Path) -> None:
        super().__init__()
        self.vault = vault
        vault.mkdir()
        self.inodes: dict[int, Path] = {}
        self.synced_files: set[int] = set()
        self.durable: dict[str, int] = {}
        self.current: dict[str, int] = {}
        self.pending: list[tuple[str, str, str, int]] = []
        self.changes = 0

    def create_file(self, name, folder):
        handle = super().create_file(name, folder)
        inode = os.fstat(handle).st_ino
        self.inodes[inode] = self.vault / f"{inode}"
        os.link(name, self.inodes[inode], src_dir_fd=folder)
        self._change("create", name, "", inode)
        return handle

    def rename(self, old, new, folder):
        super().rename(old, new, folder)
        self._change("rename", old, new, self.current[old])

    def unlink(self, name, folder):
        super().unlink(name, folder)
        self._change("unlink", name, "", 0)

    def fsync(self, handle):
        super().fsync(handle)
        self.changes += 1
        found = os.fstat(handle)
        if stat.S_ISDIR(found.st_mode):
            self.durable = dict(self.current)
            self.pending.clear()
        else:
            self.synced_files.add(found.st_ino)

    def _change(self, kind: str, old: str, new: str, inode: int) -> None:
        self.changes += 1
        self.pending.append((kind, old, new, inode))
        self._apply(self.current, kind, old, new, inode)

    @staticmethod
    def _apply(names: dict[str, int], kind: str, old: str, new: str, inode: int) -> None:
        if kind == "create":
            names[old] = inode
        else:
            names.pop(old, None)
            if kind == "rename":
                names[new] = inode

    def surviving(self) -> Iterator[dict[str, int]]:
        """Yield every set of names that a power failure now could leave."""
        for kept in itertools.product((False, True), repeat=len(self.pending)):
            if not self._in_order(kept):
                continue
            names = dict(self.durable)
            for keep, change in zip(kept, self.pending, strict=True):
                if keep:
                    self._apply(names, *change)
            yield names

    def _in_order(self, kept: tuple[bool, ...]) -> bool:
        """Changes of one name reach the disk in order; nothing else is promised."""
        lost: set[str] = set()
        for keep, (_, old, new, _) in zip(kept, self.pending, strict=True):
            names = {old, new} - {""}
            if keep and names & lost:
                return False
            if not keep:
                lost |= names
        return True

    def lose_power(self, root: Path, names: dict[str, int]) -> None:
        """Put exactly these names into the root; contents that were not synced are lost."""
        for path in root.iterdir():
            path.unlink()
        for name, inode in names.items():
            if inode in self.synced_files:
                os.link(self.inodes[inode], root / name)
            else:
                (root / name).write_bytes(b"")


def life(store: Storage, reached: Callable[[object, object], None]) -> None:
    """A sequence of changes of one object; `reached` is told before and after each."""
    version = None
    for number in range(7):
        data, metadata = b"%d" % number * (number % 3 + 1), {"n": str(number)}
        if number == 3:
            reached((b"2" * 3, {"n": "2"}), None)
            store.delete_if_version("k", version)
            version = None
        before = None if version is None else (store.get("k").data, store.get("k").metadata)
        reached(before, (data, metadata))
        if number % 2:
            version = store.put("k", data, metadata)
        else:
            version = store.put_if_version("k", data, metadata, version)
    reached((data, metadata), (data, metadata))


def test_a_power_failure_at_any_step_keeps_what_was_acknowledged(tmp_path):
    """durable: also when the disk kept any subset of the renames that were not synced."""
    cases = 0
    last: object = None
    for at in itertools.count(1):
        root = tmp_path / f"{at}"
        disk = VolatileDisk(tmp_path / f"{at}-vault")
        store = FilesystemStorage(root, _disk=disk)
        possible: list[object] = [None, None]
        disk.arm(at)
        finished = False
        with suppress(CrashError):
            life(store, lambda *states, possible=possible: possible.__setitem__(slice(2), states))
            finished = True
        disk.arm(None)
        # Steps that only look leave the disk as the step before did.
        this = (disk.changes, tuple(map(str, possible)), finished)
        if this == last:
            continue
        last = this
        for names in list(disk.surviving()):
            cases += 1
            disk.lose_power(root, names)
            after = FilesystemStorage(root, _disk=SteppedDisk())
            seen = State.of(after, "k")
            assert seen.content in possible, (at, disk.log[-12:], names)
            after.put("other", b"", {})
            assert State.of(after, "k") == seen
            after.put_if_version("k", b"next", {}, seen.version)
            assert {path.name for path in root.iterdir()} == {
                *(".lock", "k%obj", "k%meta", "other%obj", "other%meta")
            }
        shutil.rmtree(root)
        if finished:
            break
    assert cases > 300


@pytest.mark.parametrize("change", ["create", "replace", "delete"])
def test_a_power_failure_after_a_failed_call_keeps_what_the_call_reported(tmp_path, change):
    """out-definite, durable: `not_applied` stays so, whatever the disk kept."""
    reported = set()
    for at in itertools.count(1):
        root = tmp_path / f"{at}"
        disk = VolatileDisk(tmp_path / f"{at}-vault")
        store = FilesystemStorage(root, _disk=disk)
        old = None if change == "create" else OLD
        version = None if old is None else store.put("k", *OLD)
        new = None if change == "delete" else NEW
        disk.arm(at, OSError(errno.EIO, ""))
        possible = [new]
        try:
            if change == "delete":
                store.delete_if_version("k", version)
            else:
                store.put_if_version("k", *NEW, version)
        except BackendUnavailableError as error:
            possible = [old] if error.outcome == "not_applied" else [old, new]
            reported.add(error.outcome)
        reached = disk.reached
        disk.arm(None)
        for names in list(disk.surviving()):
            disk.lose_power(root, names)
            after = FilesystemStorage(root, _disk=SteppedDisk())
            seen = State.of(after, "k")
            assert seen.content in possible, (at, names)
            after.put("other", b"", {})
            assert State.of(after, "k") == seen
        shutil.rmtree(root)
        if not reached:
            break
    assert reported == {"not_applied"}
