"""The hooks of the two backends of the core: memory and files."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from wenchang.storage.filesystem import FilesystemStorage
from wenchang.storage.locations import StorageLocation
from wenchang.storage.memory import InMemoryStorage
from wenchang.storage.registry import open_storage
from wenchang_conformance.hooks import Recipe, StorageHooks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from wenchang.storage import Storage

__all__ = ["FolderBackdoor", "filesystem_hooks", "memory_hooks", "open_folder"]

_SDKS: Final = ("boto3", "google", "azure", "sqlalchemy", "mcp", "click")
_PLAIN: Final = b"abcdefghijklmnopqrstuvwxyz0123456789-_~."


@contextmanager
def memory_hooks(location: StorageLocation, namespace: str) -> Iterator[StorageHooks]:
    """Make the hooks of a store in memory; each store is a namespace of its own."""
    storage = open_storage(location)
    if not isinstance(storage, InMemoryStorage):
        msg = f"these hooks are for memory storage, not for {namespace!r} in {location.scheme}"
        raise TypeError(msg)
    yield StorageHooks(
        open=lambda: storage,
        local=True,
        durable=False,
        shared=False,
        unsupported={
            "obj-foreign": "nothing but the storage itself reaches the memory of its process",
            "format-guard": "nothing outlives the process, so there is no stored format",
        },
        wrong_options=_wrong(location, no_such_option=1),
        import_module="wenchang.storage.memory",
        sdk_modules=_SDKS,
    )


@contextmanager
def filesystem_hooks(location: StorageLocation, namespace: str) -> Iterator[StorageHooks]:
    """Make the hooks of a fresh folder below the location's; it is removed at the end."""
    root = Path(unquote(location.address)) / namespace
    opened: list[FilesystemStorage] = []

    def open_one() -> Storage:
        storage = FilesystemStorage(root)
        opened.append(storage)
        return storage

    try:
        yield StorageHooks(
            open=open_one,
            reopen=open_one,
            spawn=Recipe(target=f"{__name__}:open_folder", args=(str(root),)),
            backdoor=FolderBackdoor(root),
            local=True,
            segment_bytes=200,
            secrets=(str(root),),
            wrong_options=_wrong(location, no_such_option=1, deadline=-1),
            import_module="wenchang.storage.filesystem",
            sdk_modules=_SDKS,
        )
    finally:
        for storage in opened:
            storage.close()
        shutil.rmtree(root, ignore_errors=True)


def open_folder(root: str) -> Storage:
    """Open a handle in another process."""
    return FilesystemStorage(Path(root))


def _wrong(location: StorageLocation, **options: Any) -> Mapping[str, Callable[[], object]]:
    """Return a function for each option that opens the location with this wrong value."""
    return {
        name: partial(
            open_storage,
            StorageLocation(
                scheme=location.scheme,
                address=location.address,
                options={**location.options, name: value},
            ),
        )
        for name, value in options.items()
    }


class FolderBackdoor:
    """The folder as a person with an editor sees it."""

    def __init__(self, root: Path) -> None:
        """Reach into the folder `root`."""
        self._root = root

    def put_raw(self, key: str, body: bytes) -> None:
        """Write a body without a sidecar.

        A name that no key can have is written as near as a file system comes to it.
        """
        file = self._file(key, "%obj")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body)

    def corrupt(self, key: str) -> None:
        """Cut the sidecar off in the middle."""
        file = self._file(key, "%meta")
        file.write_bytes(file.read_bytes()[:20])

    def put_future(self, key: str, body: bytes) -> None:
        """Write a body and a sidecar of a later format."""
        self.put_raw(key, body)
        later = {"format": 99, "min_writer": 99, "version": "0" * 32, "metadata": {}, "later": [1]}
        self._file(key, "%meta").write_text(json.dumps(later), encoding="utf-8")

    def list_raw(self) -> Sequence[str]:
        """Return the paths of all files below the folder."""
        return sorted(
            str(file.relative_to(self._root)) for file in self._root.rglob("*") if file.is_file()
        )

    def _file(self, key: str, suffix: str) -> Path:
        # An empty segment in the middle has no file of its own; an undecodable name stands for it.
        *folders, last = key.split("/")
        names = [_encoded(folder) or "%zz" for folder in folders]
        return self._root.joinpath(*names, _encoded(last) + suffix)


def _encoded(segment: str) -> str:
    """Spell a segment as the file system backend does."""
    spelled = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in segment.encode())
    return f"%2E{spelled[1:]}" if spelled.startswith(".") else spelled
