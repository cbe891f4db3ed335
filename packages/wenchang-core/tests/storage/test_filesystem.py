"""What is particular to the storage in files: layout, hand-made changes, links, rights."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import stat
import tempfile
import traceback
from pathlib import Path

import pytest

from wenchang.storage import (
    BackendUnavailableError,
    InvalidStorageKeyError,
    PreconditionFailedError,
    StorageConfigurationError,
    StorageRejectedError,
    open_storage,
)
from wenchang.storage import _fs_root as root_module
from wenchang.storage._fs_disk import Disk
from wenchang.storage._fs_mounts import network_type, type_of_device
from wenchang.storage.filesystem import DESCRIPTOR, FilesystemStorage


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def store(root) -> FilesystemStorage:
    return FilesystemStorage(root)


def files(root: Path) -> set[str]:
    found = {str(path.relative_to(root)) for path in root.rglob("*")}
    return found - {".lock"}


def keys(store: FilesystemStorage) -> list[str]:
    return [entry.key for entry in store.list_page("", None, 1000)]


def assert_same_everywhere(store: FilesystemStorage, key: str) -> str:
    """Return the version after checking that get and both listings agree on it, twice."""
    found = store.get(key)
    assert found is not None
    for _ in range(2):
        assert store.get(key) == found
        (entry,) = [e for e in store.list_page(key, None, 10) if e.key == key]
        assert (entry.metadata, entry.version) == (found.metadata, found.version)
        assert (key, found.version) in store.list_versions(key, None, 10)
    return found.version


class TestLayout:
    def test_mem_090_a_key_is_a_body_file_and_a_sidecar(self, store, root):
        version = store.put("a/B/c.md", b"exact \xff body", {"description": "記憶"})
        assert files(root) == {"a", "a/%42", "a/%42/c.md%obj", "a/%42/c.md%meta"}
        assert (root / "a/%42/c.md%obj").read_bytes() == b"exact \xff body"
        sidecar = json.loads((root / "a/%42/c.md%meta").read_text(encoding="utf-8"))
        assert sidecar["version"] == version
        assert int(version, 16) >= 0
        assert sidecar["metadata"] == {"description": "記憶"}
        assert sidecar["digest"] == hashlib.sha256(b"exact \xff body").hexdigest()
        body = (root / "a/%42/c.md%obj").stat()
        assert (sidecar["size"], sidecar["mtime_ns"], sidecar["inode"]) == (
            body.st_size,
            body.st_mtime_ns,
            body.st_ino,
        )
        assert (sidecar["format"], sidecar["min_writer"], sidecar["lineage"]) == (1, 1, [])

    def test_a_conditional_replace_stores_its_lineage_and_other_puts_store_none(self, store, root):
        def lineage() -> list[list[str]]:
            return json.loads((root / "k%meta").read_text(encoding="utf-8"))["lineage"]

        versions = [store.put_if_version("k", b"0", {}, None)]
        for number in range(20):
            versions.append(store.put_if_version("k", b"%d" % number, {}, versions[-1]))
        assert [version for _, version in lineage()] == versions[-2:-18:-1]
        store.put("k", b"", {})
        assert lineage() == []

    def test_mem_091_nothing_but_bodies_and_sidecars_stays_and_empty_folders_go(self, store, root):
        version = store.put("a/b/c", b"", {})
        store.put("a/d", b"", {})
        version = store.put_if_version("a/b/c", b"2", {}, version)
        store.delete_if_version("a/b/c", version)
        assert files(root) == {"a", "a/d%obj", "a/d%meta"}
        store.delete_if_version("a/d", store.get("a/d").version)
        assert files(root) == set()

    def test_files_and_folders_are_for_their_owner_alone_whatever_the_umask(self, tmp_path):
        for mask in (0o000, 0o022, 0o777):
            root = tmp_path / f"{mask}" / "root"
            before = os.umask(mask)
            try:
                FilesystemStorage(root).put("a/b/c", b"", {})
            finally:
                os.umask(before)
            for path in (root.parent, root, *root.rglob("*")):
                expected = 0o700 if path.is_dir() else 0o600
                assert stat.S_IMODE(path.stat().st_mode) == expected, path

    def test_foreign_files_and_folders_are_no_objects(self, store, root):
        """list-clean, obj-foreign."""
        store.put("a/b", b"", {})
        for name in (
            "notes.txt",
            "Upper%obj",
            "a%20b",
            ".hidden%obj",
            "%61%obj",
            "x%meta%obj",
            "é%obj",
        ):
            (root / name).write_bytes(b"")
        for name in ("Folder", ".git", "%2E%2E", "empty", "y%obj"):
            (root / name).mkdir()
        (root / ".git" / "z%obj").write_bytes(b"")
        (root / "%2E%2E" / "z%obj").write_bytes(b"")
        (root / os.fsdecode(b"\xff%obj")).write_bytes(b"")
        os.mkfifo(root / "pipe%obj")
        assert keys(store) == ["a/b"]
        assert store.get("pipe") is None
        assert store.get("y") is None

    def test_only_the_folders_that_can_hold_matches_are_read(self, root):
        """Listing descends by decoded order instead of walking the tree."""
        read: list[str] = []

        class Watching(Disk):
            def names(self, folder):
                read.append(str(Path(f"/proc/self/fd/{folder}").readlink()))
                return super().names(folder)

        store = FilesystemStorage(root, _disk=Watching())
        for top in "abcd":
            for middle in "xyz":
                store.put(f"{top}/{middle}/k", b"", {})

        def folders_read(*arguments) -> list[str]:
            read.clear()
            store.list_page(*arguments)
            return [str(Path(path).relative_to(root)) for path in read]

        assert folders_read("c/", None, 100) == ["c", "c/x", "c/y", "c/z"]
        assert folders_read("c/y/", None, 100) == ["c/y"]
        assert folders_read("c/y/no/such", None, 100) == []
        assert folders_read("", "b/y/k", 1) == [".", "b", "b/y", "b/z"]
        assert folders_read("", "d/z", 1) == [".", "d", "d/z"]
        assert folders_read("", None, 1) == [".", "a", "a/x"]

    def test_a_listing_reads_no_body_that_its_sidecar_describes(self, root):
        """list-meta."""
        read: list[str] = []

        class Watching(Disk):
            def read(self, handle):
                read.append(str(Path(f"/proc/self/fd/{handle}").readlink()))
                return super().read(handle)

        store = FilesystemStorage(root, _disk=Watching())
        for number in range(5):
            store.put(f"k{number}", b"body", {})
        (root / "k3%obj").write_bytes(b"edit")
        read.clear()
        store.list_page("", None, 100)
        assert [Path(path).name for path in read if path.endswith("%obj")] == ["k3%obj"]


class TestHandMadeChanges:
    def test_mem_091_an_edited_body_has_a_version_of_its_own_without_a_write(self, store, root):
        old = store.put("k", b"before", {"a": "1"})
        sidecar = (root / "k%meta").read_bytes()
        seen = {old}
        for body in (b"after!", b"longer than before", b""):
            (root / "k%obj").write_bytes(body)
            version = assert_same_everywhere(store, "k")
            assert version not in seen
            seen.add(version)
            assert (store.get("k").data, store.get("k").metadata) == (body, {"a": "1"})
        assert (root / "k%meta").read_bytes() == sidecar
        for stale in seen - {version}:
            with pytest.raises(PreconditionFailedError):
                store.put_if_version("k", b"", {}, stale)
            with pytest.raises(PreconditionFailedError):
                store.delete_if_version("k", stale)
        assert store.put_if_version("k", b"mine", {}, version) not in seen

    def test_an_edit_of_the_same_size_in_the_same_clock_tick_is_noticed(self, store, root):
        for _ in range(50):
            old = store.put("k", b"A", {})
            with (root / "k%obj").open("r+b") as body:
                body.write(b"B")
            assert assert_same_everywhere(store, "k") != old
            with pytest.raises(PreconditionFailedError):
                store.put_if_version("k", b"C", {}, old)

    def test_an_edit_while_the_clock_of_the_files_stands_still_is_noticed(self, root):
        """Kernels stamp files with a clock that moves every few milliseconds only."""

        class Watching(Disk):
            tick = 0

            def backdate(self, handle):
                self.tick = os.fstat(handle).st_mtime_ns
                super().backdate(handle)

        disk = Watching()
        store = FilesystemStorage(root, _disk=disk)
        old = store.put("k", b"A", {})
        with (root / "k%obj").open("r+b") as body:
            body.write(b"B")
        os.utime(root / "k%obj", ns=(disk.tick, disk.tick))
        assert assert_same_everywhere(store, "k") != old

    def test_a_touched_or_copied_body_keeps_its_version(self, store, root, tmp_path):
        version = store.put("a/k", b"same", {"a": "1"})
        os.utime(root / "a/k%obj")
        assert assert_same_everywhere(store, "a/k") == version
        copy = tmp_path / "copy"
        shutil.copytree(root, copy)
        assert assert_same_everywhere(FilesystemStorage(copy), "a/k") == version
        assert store.put_if_version("a/k", b"", {}, version)

    def test_edited_metadata_has_a_version_of_its_own(self, store, root):
        old = store.put("k", b"", {"a": "1"})
        text = (root / "k%meta").read_text(encoding="utf-8")
        (root / "k%meta").write_text(text.replace('"1"', '"2"'), encoding="utf-8")
        assert assert_same_everywhere(store, "k") != old
        assert store.get("k").metadata == {"a": "2"}

    def test_mem_090_a_body_without_sidecar_is_an_object(self, store, root):
        """obj-foreign."""
        (root / "a").mkdir()
        (root / "a" / "hand.md%obj").write_bytes(b"made by hand")
        (root / "a" / "same.md%obj").write_bytes(b"made by hand")
        version = assert_same_everywhere(store, "a/hand.md")
        assert store.get("a/hand.md").metadata == {}
        assert version != store.get("a/same.md").version
        with pytest.raises(PreconditionFailedError):
            store.put_if_version("a/hand.md", b"", {}, None)
        store.put_if_version("a/hand.md", b"ours", {"a": "1"}, version)
        assert store.get("a/hand.md").metadata == {"a": "1"}
        store.delete_if_version("a/same.md", store.get("a/same.md").version)
        assert keys(store) == ["a/hand.md"]

    def test_a_sidecar_without_body_is_absent_and_swept(self, store, root):
        store.put("a/gone", b"", {})
        (root / "a/gone%obj").unlink()
        store.put("b/gone", b"", {})
        (root / "b/gone%obj").unlink()
        assert store.get("a/gone") is None
        assert keys(store) == []
        with pytest.raises(PreconditionFailedError):
            store.put_if_version("a/gone", b"", {}, "v")
        store.put("other", b"", {})
        assert files(root) == {"other%obj", "other%meta"}

    @pytest.mark.parametrize(
        "damage",
        [
            b"",
            b"{",
            b"null",
            b"[]",
            b'{"version": 1, "metadata": {}}',
            b'{"version": "", "metadata": {}}',
            b'{"version": "v"}',
            b'{"version": "v", "metadata": {"Bad": "x"}}',
            b'{"version": "v", "metadata": {}, "size": "1"}',
            b'{"version": "v", "metadata": {}, "lineage": [1]}',
            b'{"version": "v", "metadata": {}, "lineage": [[1, 2]]}',
            b'{"version": "v", "metadata": {}, "min_writer": "1"}',
            b'{"version": "v", "metadata": {}, "digest": 1}',
            b'{"version": "v", "metadata": {}, "lineage": {"a": 1}}',
            b"[" * 100_000,
            b"\xff\xfe",
            b" " * (2 << 20),
            b'{"version": "\\ud800", "metadata": {}}',
        ],
        ids=lambda damage: repr(damage[:60]),
    )
    def test_an_unreadable_sidecar_leaves_the_object_whole(self, store, root, damage):
        """obj-foreign."""
        old = store.put("k", b"body", {"a": "1"})
        store.put("z", b"", {})
        (root / "k%meta").write_bytes(damage)
        version = assert_same_everywhere(store, "k")
        assert version != old
        assert store.get("k").data == b"body"
        assert list(store.get("k").metadata) == ["wenchang-unreadable"]
        assert keys(store) == ["k", "z"]
        store.put_if_version("k", b"repaired", {}, version)
        assert store.get("k").metadata == {}

    def test_an_edit_on_top_of_an_unfinished_write_is_an_edit_of_that_write(self, store, root):
        store.put("k", b"old", {"a": "old"})
        decided = store.put("k", b"new", {"a": "new"})
        (root / "k%meta").rename(root / "k%redo")
        (root / "k%obj").write_bytes(b"edited by hand")
        version = assert_same_everywhere(store, "k")
        assert version != decided
        assert (store.get("k").data, store.get("k").metadata) == (b"edited by hand", {"a": "new"})
        store.put("other", b"", {})
        assert assert_same_everywhere(store, "k") == version
        assert store.put_if_version("k", b"next", {}, version)
        assert files(root) == {"k%obj", "k%meta", "other%obj", "other%meta"}

    def test_a_body_that_is_edited_while_it_is_read_never_goes_with_the_old_version(self, root):
        class Editing(Disk):
            armed = False

            def read(self, handle):
                pieces = list(super().read(handle))
                if self.armed and pieces == [b"before"]:
                    self.armed = False
                    (root / "k%obj").write_bytes(b"after!")
                yield from pieces

        disk = Editing()
        store = FilesystemStorage(root, _disk=disk)
        old = store.put("k", b"before", {})
        disk.armed = True
        found = store.get("k")
        assert not disk.armed
        assert found.data == b"after!"
        assert found.version != old
        assert assert_same_everywhere(store, "k") == found.version

    def test_a_sidecar_of_version_and_metadata_only_is_taken_as_it_is(self, store, root):
        (root / "k%obj").write_bytes(b"body")
        (root / "k%meta").write_text('{"version": "abc", "metadata": {"a": "1"}}', encoding="utf-8")
        assert assert_same_everywhere(store, "k") == "abc"
        assert store.get("k").metadata == {"a": "1"}
        store.put_if_version("k", b"", {}, "abc")

    def test_a_newer_format_is_read_but_never_replaced(self, store, root):
        """format-guard."""
        version = store.put("k", b"body", {"a": "1"})
        sidecar = json.loads((root / "k%meta").read_text(encoding="utf-8"))
        sidecar.update(format=2, min_writer=2, future=[1])
        (root / "k%meta").write_text(json.dumps(sidecar), encoding="utf-8")
        assert assert_same_everywhere(store, "k") == version
        for change in (
            lambda: store.put("k", b"", {}),
            lambda: store.put_if_version("k", b"", {}, version),
            lambda: store.delete_if_version("k", version),
        ):
            with pytest.raises(StorageRejectedError, match="upgrade"):
                change()
        assert store.get("k").data == b"body"
        sidecar["min_writer"] = 1
        (root / "k%meta").write_text(json.dumps(sidecar), encoding="utf-8")
        store.put_if_version("k", b"new", {}, version)
        kept = json.loads((root / "k%meta").read_text(encoding="utf-8"))
        assert (kept["future"], kept["format"]) == ([1], 1)

    def test_a_file_that_may_not_be_read_does_not_hide_the_others(self, root):
        class Forbidding(Disk):
            def open_file(self, name, folder):
                if name == "b%obj":
                    raise PermissionError(errno.EACCES, "no", name)
                return super().open_file(name, folder)

        FilesystemStorage(root).put("a", b"", {})
        FilesystemStorage(root).put("c", b"", {})
        (root / "b%obj").write_bytes(b"")
        store = FilesystemStorage(root, _disk=Forbidding())
        assert keys(store) == ["a", "c"]
        with pytest.raises(StorageRejectedError) as caught:
            store.get("b")
        assert caught.value.kind == "permission"


class TestLinks:
    @pytest.fixture
    def outside(self, tmp_path) -> Path:
        outside = tmp_path / "outside"
        (outside / "sub").mkdir(parents=True)
        (outside / "secret%obj").write_bytes(b"secret")
        (outside / "sub" / "secret%obj").write_bytes(b"secret")
        return outside

    def test_a_linked_folder_is_neither_listed_nor_read_nor_written(self, store, root, outside):
        (root / "link").symlink_to(outside)
        (root / "a").mkdir()
        (root / "a" / "link").symlink_to(outside / "sub")
        assert keys(store) == []
        for key in ("link/secret", "link/sub/secret", "a/link/secret"):
            assert store.get(key) is None
            assert store.list_page(key, None, 10) == []
            with pytest.raises(StorageRejectedError) as caught:
                store.put(key, b"", {})
            assert caught.value.kind == "invalid"
            with pytest.raises(PreconditionFailedError):
                store.delete_if_version(key, "v")
        assert (outside / "secret%obj").read_bytes() == b"secret"
        assert sorted(path.name for path in outside.iterdir()) == ["secret%obj", "sub"]

    def test_a_linked_body_is_no_object_and_a_write_replaces_the_link_itself(
        self, store, root, outside
    ):
        for target in (outside / "secret%obj", outside / "absent", outside):
            (root / "k%obj").symlink_to(target)
            assert store.get("k") is None
            assert keys(store) == []
            version = store.put_if_version("k", b"ours", {}, None)
            assert not (root / "k%obj").is_symlink()
            store.delete_if_version("k", version)
        assert (outside / "secret%obj").read_bytes() == b"secret"
        assert not (outside / "absent").exists()

    @pytest.mark.parametrize("suffix", ["%meta", "%redo", "%new", "%tmp", "%old"])
    def test_links_at_the_other_files_are_never_followed(self, store, root, outside, suffix):
        version = store.put("k", b"1", {"a": "1"})
        (root / f"k{suffix}").unlink(missing_ok=True)
        (root / f"k{suffix}").symlink_to(outside / "secret%obj")
        found = store.get("k")
        assert found.data == b"1"
        assert keys(store) == ["k"]
        if suffix != "%meta":
            assert found.version == version
        version = store.put_if_version("k", b"2", {}, found.version)
        store.delete_if_version("k", version)
        assert files(root) == set()
        assert (outside / "secret%obj").read_bytes() == b"secret"

    @pytest.mark.parametrize("suffix", ["%obj", "%meta", "%redo", "%new", "%tmp"])
    def test_a_folder_in_the_place_of_a_file_is_refused_and_changes_nothing(
        self, store, root, suffix
    ):
        store.put("other", b"", {})
        (root / f"k{suffix}").mkdir()
        with pytest.raises(StorageRejectedError) as caught:
            store.put("k", b"", {})
        assert caught.value.kind in ("invalid", "permission")
        assert store.get("k") is None
        assert keys(store) == ["other"]
        (root / f"k{suffix}").rmdir()
        store.put("k", b"1", {})
        assert store.get("k").data == b"1"

    def test_the_root_itself_may_be_a_link_and_is_resolved_once(self, tmp_path):
        real, link = tmp_path / "real", tmp_path / "link"
        real.mkdir()
        link.symlink_to(real)
        store = FilesystemStorage(link)
        store.put("k", b"1", {})
        link.unlink()
        assert store.get("k").data == b"1"
        assert (real / "k%obj").exists()

    def test_a_lock_file_that_is_a_link_is_refused(self, root, tmp_path):
        root.mkdir()
        (root / ".lock").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(StorageConfigurationError):
            FilesystemStorage(root)
        assert not (tmp_path / "elsewhere").exists()


class TestRoot:
    def test_mem_090_a_missing_root_is_made_with_its_parents(self, tmp_path):
        FilesystemStorage(tmp_path / "a" / "b" / "c").put("k", b"", {})
        assert (tmp_path / "a/b/c/k%obj").exists()

    def test_a_root_that_cannot_be_used_is_a_configuration_error_without_its_path(self, tmp_path):
        """init-fail, out-mapped."""
        (tmp_path / "file").write_bytes(b"")
        (tmp_path / "dangling").symlink_to(tmp_path / "loop")
        (tmp_path / "loop").symlink_to(tmp_path / "dangling")
        for bad in (
            tmp_path / "file",
            tmp_path / "file" / "below",
            tmp_path / "dangling",
            Path("/proc/nothing/here"),
            tmp_path / ("x" * 300),
        ):
            with pytest.raises(StorageConfigurationError) as caught:
                FilesystemStorage(bad)
            shown = "".join(traceback.format_exception_only(caught.value))
            shown += repr(caught.value.__cause__) + str(caught.value.__cause__)
            assert str(tmp_path) not in shown
            assert "nothing" not in shown
        for bad in ("", "a\0b"):
            with pytest.raises(StorageConfigurationError):
                FilesystemStorage(bad)
        with pytest.raises(TypeError):
            FilesystemStorage(None)
        for deadline in (0, -1, True, "1", float("nan"), float("inf"), 1e300):
            with pytest.raises(StorageConfigurationError, match="deadline"):
                FilesystemStorage(tmp_path / "r", deadline=deadline)

    @pytest.mark.parametrize("number", [errno.EACCES, errno.ENOSPC, errno.EIO])
    def test_an_unwritable_root_is_a_configuration_error(self, root, number):
        class Refusing(Disk):
            def open_lock(self, name, folder, *, write):
                raise OSError(number, "refused", name)

        with pytest.raises(StorageConfigurationError):
            FilesystemStorage(root, _disk=Refusing())

    def test_a_root_on_a_read_only_disk_can_be_read_but_not_written(self, root):
        class ReadOnly(Disk):
            def open_lock(self, name, folder, *, write):
                if write or not (root / name).exists():
                    raise OSError(errno.EROFS, "read-only", name)
                return super().open_lock(name, folder, write=write)

            def fsync(self, handle):
                raise OSError(errno.EROFS, "read-only")

        version = FilesystemStorage(root).put("k", b"1", {})
        (root / "hand%obj").write_bytes(b"")
        (root / "k%meta").rename(root / "k%redo")
        for lock_there in (True, False):
            if not lock_there:
                (root / ".lock").unlink()
            store = FilesystemStorage(root, _disk=ReadOnly())
            assert store.get("k").version == version
            assert keys(store) == ["hand", "k"]
            for change in (
                lambda store=store: store.put("k", b"", {}),
                lambda store=store: store.delete_if_version("k", version),
            ):
                with pytest.raises(StorageRejectedError) as caught:
                    change()
                assert caught.value.kind == "locked"

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
    def test_another_user_gets_clear_errors(self):
        if not Path(tempfile.gettempdir()).stat().st_mode & 0o001:
            pytest.skip("the folder for temporary files is closed to other users")
        parent = Path(tempfile.mkdtemp(prefix="wenchang-test-"))
        parent.chmod(0o755)
        try:
            self.check_as_another_user(parent)
        finally:
            shutil.rmtree(parent)

    def check_as_another_user(self, parent):
        root = parent / "root"
        store = FilesystemStorage(root)
        store.put("a/k", b"", {})
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.setegid(65534)
                os.seteuid(65534)
                with pytest.raises(StorageConfigurationError):
                    FilesystemStorage(root)
                with pytest.raises(StorageConfigurationError):
                    FilesystemStorage(parent / "mine")
                for call in (
                    lambda: store.get("a/k"),
                    lambda: store.list_page("", None, 1),
                    lambda: store.put("a/k", b"", {}),
                ):
                    with pytest.raises(StorageRejectedError) as caught:
                        call()
                    assert caught.value.kind == "permission"
                status = 0
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    def test_a_root_that_vanished_does_not_look_empty(self, store, root):
        store.put("k", b"", {})
        shutil.rmtree(root)
        for call in (
            lambda: store.get("k"),
            lambda: store.list_page("", None, 1),
            lambda: store.put("k", b"", {}),
            lambda: store.delete_if_version("k", "v"),
        ):
            with pytest.raises(StorageRejectedError) as caught:
                call()
            assert caught.value.kind == "missing_container"
            assert str(root) not in str(caught.value.__cause__)

    def test_a_network_folder_is_refused(self, root, monkeypatch):
        monkeypatch.setattr(root_module, "network_type", lambda device: "nfs4")
        with pytest.raises(StorageConfigurationError, match="network"):
            FilesystemStorage(root)

    @pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
    def test_a_file_system_without_locks_is_refused(self, root, number):
        class NoLocks(Disk):
            refuse = True

            def try_lock(self, handle, *, exclusive):
                if self.refuse:
                    raise OSError(number, "no locks")
                return super().try_lock(handle, exclusive=exclusive)

        disk = NoLocks()
        with pytest.raises(StorageConfigurationError, match="flock"):
            FilesystemStorage(root, _disk=disk)
        disk.refuse = False
        store = FilesystemStorage(root, _disk=disk)
        disk.refuse = True
        with pytest.raises(StorageRejectedError) as caught:
            store.put("k", b"", {})
        assert caught.value.kind == "unsupported"

    def test_file_system_types_are_found_in_the_mount_table(self, monkeypatch, tmp_path):
        table = tmp_path / "mountinfo"
        table.write_text(
            "22 1 254:0 / / rw - ext4 /dev/vda rw\n"
            "30 22 0:51 / /mnt/a\\040b rw shared:1 - nfs4 server:/export rw\n"
            "31 22 0:52 / /mnt/s rw - fuse.sshfs me@host: rw\n"
            "32 22 0:53 / /mnt/f rw - fuse.bindfs x rw\n"
            "broken line\n",
            encoding="utf-8",
        )
        monkeypatch.setattr("wenchang.storage._fs_mounts._MOUNTS", table)
        assert network_type(os.makedev(254, 0)) is None
        assert network_type(os.makedev(0, 51)) == "nfs4"
        assert network_type(os.makedev(0, 52)) == "fuse.sshfs"
        assert network_type(os.makedev(0, 53)) is None
        assert network_type(os.makedev(9, 9)) is None
        assert type_of_device("", 1, 1) == ""
        table.unlink()
        assert network_type(os.makedev(0, 51)) is None

    def test_mem_090_its_url_takes_an_absolute_path(self, tmp_path):
        """init-fail."""
        odd = tmp_path / "a b%c é"
        store = open_storage("file://" + str(odd).replace("%", "%25").replace(" ", "%20"))
        store.put("k", b"1", {})
        assert FilesystemStorage(odd).get("k").data == b"1"
        assert open_storage(f"file://{tmp_path}?deadline=2.5")._deadline == 2.5
        for url in ("file://relative/path", "file://", "file://./x", f"file://{tmp_path}?mode=1"):
            with pytest.raises(StorageConfigurationError):
                open_storage(url)
        assert (DESCRIPTOR.durable, DESCRIPTOR.shared, DESCRIPTOR.local) == (True, True, True)

    def test_the_class_is_not_exported_by_the_contract_package(self):
        import wenchang.storage

        assert "FilesystemStorage" not in wenchang.storage.__all__


class TestErrors:
    def test_b68_a_long_segment_is_a_typed_error_from_every_method(self, store):
        """key-range."""
        for key in ("a/" + "A" * 67, "é" * 34, "x" * 201, "記" * 23 + "/a"):
            for call in (
                lambda key=key: store.get(key),
                lambda key=key: store.put(key, b"", {}),
                lambda key=key: store.put_if_version(key, b"", {}, None),
                lambda key=key: store.delete_if_version(key, "v"),
            ):
                with pytest.raises(InvalidStorageKeyError):
                    call()
            assert store.list_page(key + "/", None, 10) == []
        assert store.put("記" * 22 + "/a", b"", {})

    def test_every_error_number_is_mapped_and_no_text_shows_a_key(self, root):
        """out-mapped."""

        class Failing(Disk):
            number = 0

            def open_folder(self, name, folder):
                if self.number:
                    raise OSError(self.number, os.strerror(self.number), name)
                return super().open_folder(name, folder)

        disk = Failing()
        store = FilesystemStorage(root, _disk=disk)
        store.put("secret-key/k", b"", {})
        kinds = {}
        for number in errno.errorcode:
            if number in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                continue
            disk.number = number
            for call in (
                lambda: store.put("secret-key/k", b"", {}),
                lambda: store.get("secret-key/k"),
            ):
                with pytest.raises(
                    (BackendUnavailableError, StorageRejectedError, InvalidStorageKeyError)
                ) as caught:
                    call()
                error = caught.value
                kinds[errno.errorcode[number]] = getattr(error, "kind", None)
                assert isinstance(error.__cause__, OSError)
                shown = f"{error} {error!r} {error.__cause__} {error.__cause__!r}"
                assert "secret" not in shown
                assert getattr(error, "outcome", "not_applied") == "not_applied"
        assert kinds["ENOSPC"] == kinds["EDQUOT"] == "full"
        assert kinds["EROFS"] == "locked"
        assert kinds["EACCES"] == kinds["EPERM"] == "permission"
        assert kinds["EIO"] is None
        disk.number = 0
        assert store.get("secret-key/k") is not None
