"""Hooks for the conformance suite: the storages in memory and in files, opened as it needs them.

Imported by `wenchang check` and by tests only; needs `wenchang-conformance`.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from wenchang.storage import filesystem, memory
from wenchang.storage._fs_disk import disk_errors
from wenchang.storage._fs_names import BODY, MAX_NAME_BYTES, SIDECAR, encode_segment
from wenchang.storage.filesystem import FilesystemStorage
from wenchang.storage.memory import InMemoryStorage
from wenchang_conformance.hooks import Recipe, StorageHooks

if TYPE_CHECKING:
    from wenchang.storage.contract import Storage
    from wenchang.storage.descriptor import BackendDescriptor
    from wenchang.storage.locations import OptionValue, StorageLocation

__all__ = ["file_hooks", "memory_hooks", "open_folder"]


@contextmanager
def memory_hooks(location: StorageLocation, namespace: str) -> Iterator[StorageHooks]:
    """Make the hooks of one store in memory, whose only handle is that store; see `HooksFactory`."""
    del namespace
    store = InMemoryStorage()
    yield StorageHooks(
        open=lambda: store,
        local=True,
        durable=False,
        shared=False,
        unsupported=memory.DESCRIPTOR.unsupported,
        wrong_options=_wrong_options(memory.DESCRIPTOR, location, {"no_such_option": 1}),
        import_module="wenchang.storage.memory",
    )


@contextmanager
def file_hooks(location: StorageLocation, namespace: str) -> Iterator[StorageHooks]:
    """Make the hooks of one fresh folder below the location's; see `HooksFactory`."""
    folder = Path(unquote(location.address)) / f"check-{namespace}"
    open_one = partial(open_folder, str(folder))
    try:
        yield StorageHooks(
            open=open_one,
            reopen=open_one,
            spawn=Recipe(target=f"{__name__}:open_folder", args=(str(folder),)),
            backdoor=FolderBackdoor(folder),
            local=True,
            segment_bytes=MAX_NAME_BYTES,
            secrets=(str(folder), folder.name),
            wrong_options=_wrong_options(
                filesystem.DESCRIPTOR, location, {"deadline": -1, "no_such_option": 1}
            ),
            import_module="wenchang.storage.filesystem",
            sdk_errors=_system_errors,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def open_folder(folder: str) -> Storage:
    """Open a handle, in another process too."""
    return FilesystemStorage(folder)


def _wrong_options(
    descriptor: BackendDescriptor, location: StorageLocation, wrong: Mapping[str, OptionValue]
) -> Mapping[str, Callable[[], object]]:
    """Return for each option a function that opens the location with a wrong value for it."""
    return {
        name: partial(descriptor.open, replace(location, options={name: value}))
        for name, value in wrong.items()
    }


def _system_errors() -> Iterator[tuple[BaseException, BaseException]]:
    """Yield each system error with the error that a call makes of it."""
    for number in sorted(errno.errorcode):
        error = OSError(number, os.strerror(number), "file-name")
        yield error, _mapped(error)


def _mapped(error: OSError) -> Exception:
    """Return what a call raises after this system error."""

    def fail() -> None:
        with disk_errors():
            raise error

    try:
        fail()
    except Exception as mapped:  # noqa: BLE001 - whatever it is mapped to is the answer
        return mapped
    return error


@dataclass(frozen=True, slots=True)
class FolderBackdoor:
    """The folder as a shell sees it."""

    folder: Path

    def put_raw(self, key: str, body: bytes) -> None:
        """Write a body file without a sidecar. A key that is none gets the nearest file name."""
        path = self._path(key, BODY)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)

    def corrupt(self, key: str) -> None:
        """Cut the sidecar off in the middle."""
        self._path(key, SIDECAR).write_bytes(b'{"version": "cut')

    def put_future(self, key: str, body: bytes) -> None:
        """Write an object with the marks of a later format."""
        self.put_raw(key, body)
        sidecar = {"format": 99, "min_writer": 99, "version": "future", "metadata": {}, "more": 1}
        self._path(key, SIDECAR).write_text(json.dumps(sidecar), encoding="utf-8")

    def list_raw(self) -> Sequence[str]:
        """Return the names of all files."""
        return [str(path.relative_to(self.folder)) for path in self.folder.rglob("*")]

    def _path(self, key: str, suffix: str) -> Path:
        """Return the path of a key's file; an inner empty segment is spelled as an escaped slash."""
        *folders, stem = key.replace("//", "/\0").split("/")
        names = [encode_segment(folder.replace("\0", "/")) for folder in folders]
        last = encode_segment(stem.replace("\0", "/")) if stem else ""
        return self.folder.joinpath(*names, last + suffix)
