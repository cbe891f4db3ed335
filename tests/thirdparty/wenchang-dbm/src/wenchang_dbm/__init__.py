"""A backend over the standard library's `dbm`: one folder, any number of threads and processes."""

import dbm.dumb
import fcntl
import hashlib
import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from wenchang.storage import BackendDescriptor, ListedObject, PreconditionFailedError
from wenchang.storage import StorageConfigurationError, envelope, keys, outcomes


class DbmStorage:
    """Objects in a dbm file. A write makes a new copy and swaps it in, so a crash tears nothing."""

    def __init__(self, folder):
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._current = self._folder / "current"
        if not self._current.exists():
            with self._locked(), self._changed():
                pass

    def get(self, key):
        keys.check_key(key)
        with self._locked():
            return self._read(key)

    def put(self, key, data, metadata):
        return self._put(key, data, metadata, ...)

    def put_if_version(self, key, data, metadata, expected):
        keys.check_expected(expected, optional=True)
        return self._put(key, data, metadata, expected)

    def delete_if_version(self, key, expected):
        keys.check_key(key)
        keys.check_expected(expected, optional=False)
        with self._locked():
            self._require(key, expected)
            with self._changed() as db:
                del db[key.encode()]

    def list_page(self, prefix, start_after, limit):
        keys.check_listing(prefix, start_after, limit)
        with self._locked():
            with dbm.dumb.open(str(self._current / "objects"), "r") as db:
                names = sorted(key.decode() for key in db.keys())
            names = [one for one in names if one.startswith(prefix) and one > (start_after or "")]
            found = {one: self._read(one) for one in names[:limit]}
        return [ListedObject(name, one.metadata, one.version) for name, one in found.items()]

    def _put(self, key, data, metadata, expected):
        keys.check_key(key)
        keys.check_body(data)
        metadata = keys.check_metadata(metadata)
        version = outcomes.new_write_id()
        with self._locked():
            if expected is not ...:
                self._require(key, expected)
            with self._changed() as db:
                db[key.encode()] = envelope.encode(data, metadata, version)
        return version

    def _require(self, key, expected):
        found = self._read(key)
        if expected != (None if found is None else found.version):
            raise PreconditionFailedError(key, current=found)

    def _read(self, key):
        with dbm.dumb.open(str(self._current / "objects"), "r") as db:
            raw = db.get(key.encode())
        whole = None if raw is None else envelope.decode(raw)
        # A hand-edited object keeps the id of the write before it: its digest is its version.
        return whole and whole.stored(whole.remembered_id or hashlib.sha256(raw).hexdigest())

    @contextmanager
    def _changed(self):
        new, link = self._folder / f"new-{os.urandom(8).hex()}", self._folder / "next"
        shutil.copytree(self._current, new) if self._current.exists() else new.mkdir()
        with dbm.dumb.open(str(new / "objects"), "c") as db:
            yield db
        _sync(*new.iterdir(), new)
        link.unlink(missing_ok=True)
        link.symlink_to(new.name)
        link.replace(self._current)  # the one moment in which the change takes place
        _sync(self._folder)
        for old in set(self._folder.glob("new-*")) - {new}:
            shutil.rmtree(old)

    @contextmanager
    def _locked(self):
        with (self._folder / "lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                yield
            finally:
                # Closing is not enough: a forked child may have a copy of the open file.
                fcntl.flock(lock, fcntl.LOCK_UN)


def _sync(*paths):
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)


@dataclass(frozen=True)
class Options:
    """None."""


def _open(location):
    location.options_as(Options)
    if not location.address.startswith("/"):
        raise StorageConfigurationError("write dbm:///absolute/path/of/a/folder")
    return DbmStorage(location.address)


DESCRIPTOR = BackendDescriptor(
    name="dbm", contract="1.0", summary="a dbm file", options=Options, open=_open, local=True
)
