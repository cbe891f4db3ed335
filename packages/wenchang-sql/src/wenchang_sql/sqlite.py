"""SQLite: one file, many processes.

The file is in write-ahead mode with full synchronisation: a reader never waits for a writer, and what
was acknowledged is on the disk. Writers take the write lock before anything else (BEGIN IMMEDIATE):
a transaction that reads first and then wants to write is refused at once when another has
written meanwhile, whatever the busy time-out.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa
from sqlalchemy.pool import QueuePool

from wenchang.storage import StorageConfigurationError, StorageRejectedError
from wenchang_sql.databases import fetch, upgrade_tables
from wenchang_sql.deadlines import remaining
from wenchang_sql.errors import is_missing_table
from wenchang_sql.options import SqliteOptions
from wenchang_sql.schema import ABSENT, read_layout

if TYPE_CHECKING:
    from wenchang.storage.errors import RejectionKind

__all__ = ["MEMORY", "Sqlite", "create_engine"]

MEMORY: Final = ":memory:"

# SQLite polls the lock itself, at most this long; then the attempt is judged as busy and repeated.
_MAX_POLL_SECONDS: Final = 1.0
# How often a connection looks whether its file is still the one of that name.
_LOOK_SECONDS: Final = 0.2
# The shared-memory file of the write-ahead log is not shared between the machines of such a system.
_NETWORK_SYSTEMS: Final = frozenset(
    (
        *("nfs", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "afs", "davfs"),
        *("ceph", "glusterfs", "lustre", "gpfs", "beegfs", "pvfs2", "ocfs2"),
        *("fuse.sshfs", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.gcsfuse"),
    )
)
_MOUNTS: Final = Path("/proc/self/mountinfo")
# Why the file cannot be reached or made; anything else is told as missing rights.
_NOT_MADE: Final[dict[int, tuple[RejectionKind, str]]] = {
    errno.EACCES: (
        "permission",
        "the database file, or the folder for it, cannot be made: check their permissions",
    ),
    errno.ENAMETOOLONG: ("invalid", "the path of the database file is too long"),
    errno.ENOTDIR: (
        "invalid",
        "something on the path of the database file is a file, not a folder",
    ),
    errno.ENOSPC: ("full", "there is no space left for the database file"),
    errno.EDQUOT: ("full", "the disk quota leaves no space for the database file"),
    errno.EROFS: ("locked", "the database file would have to be made on a read-only file system"),
}


class Sqlite:
    """The `Database` of SQLite."""

    kind = "sqlite"
    serial_writes = True

    def __init__(self, *, wal: bool = True) -> None:
        """`wal=False` keeps the rollback journal, for file systems without shared memory."""
        self._wal = wal
        self._in_memory = False

    def prepare(self, raw: sqlite3.Connection, info: dict[Any, Any]) -> None:
        """Set the journal and the synchronisation; refuse where the log cannot work."""
        _poll(raw, info)
        raw.execute("PRAGMA synchronous=FULL")
        path = next((row[2] for row in raw.execute("PRAGMA database_list") if row[1] == "main"), "")
        self._in_memory = not path
        if not path:
            return
        info["file"] = (path, _identity(path))
        _check_journal(raw, path, wal=self._wal)

    def check_server(self, raw: sqlite3.Connection) -> None:
        """Do nothing: the library is part of this process."""

    def is_stale(self, raw: sqlite3.Connection, info: dict[Any, Any]) -> bool:
        """Tell whether the file was removed or replaced: writes would go to where nobody looks."""
        del raw
        known = info.get("file")
        if known is None:
            return False
        now = time.monotonic()
        if now - info.get("looked", 0.0) < _LOOK_SECONDS:
            return False
        info["looked"] = now
        path, identity = known
        return bool(_identity(path) != identity)

    def begin(self, raw: sqlite3.Connection, info: dict[Any, Any], *, write: bool) -> None:
        """Bound the polling for the lock; take the write lock for a write."""
        _poll(raw, info)
        if write:
            if raw.in_transaction:
                # An engine that is not ours began by itself.
                raw.rollback()
            raw.execute("BEGIN IMMEDIATE")

    def commit(self, raw: sqlite3.Connection) -> None:
        """Commit: what is acknowledged after this is on the disk."""
        raw.commit()

    def upgrade(self, raw: sqlite3.Connection, table: str) -> None:
        """Make or upgrade the tables in one transaction that holds the write lock."""
        raw.rollback()
        raw.execute("BEGIN IMMEDIATE")
        try:
            try:
                layout = read_layout(lambda sql: fetch(raw, sql), table)
            except sqlite3.OperationalError as error:
                if not is_missing_table(error):
                    raise
                layout = ABSENT
            upgrade_tables(raw, self.kind, table, layout)
            raw.commit()
        except BaseException:
            raw.rollback()
            raise

    def lives_in_process(self) -> bool:
        """Tell whether it is `:memory:`, as the last connection showed."""
        return self._in_memory


def create_engine(path: str, options: SqliteOptions) -> sa.Engine:
    """Return an engine for the file at `path`, or for `:memory:`. Touches no file.

    The file is made at the first call, with mode 0600, and missing folders above it with mode 0700;
    what exists keeps its mode.
    """

    def connect() -> sqlite3.Connection:
        if path != MEMORY:
            _make_file(Path(path), create=options.create_schema)
        return sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)

    return sa.create_engine(
        # The path stays out of the engine's repr.
        "sqlite+pysqlite://",
        creator=connect,
        poolclass=QueuePool,
        # A database in memory is its one connection; threads take turns.
        pool_size=1 if path == MEMORY else options.concurrency,
        max_overflow=0,
        pool_use_lifo=True,
        hide_parameters=True,
    )


def _poll(raw: sqlite3.Connection, info: dict[Any, Any]) -> None:
    """Let SQLite poll for a lock as long as the attempt lasts, but not for long."""
    milliseconds = int(min(remaining(), _MAX_POLL_SECONDS) * 1000)
    if info.get("polls") != milliseconds:
        raw.execute(f"PRAGMA busy_timeout={milliseconds}")
        info["polls"] = milliseconds


def _make_file(path: Path, *, create: bool) -> None:
    """Make the file if it is missing, readable by its owner only; so are the log's files then."""
    try:
        is_folder, there = path.is_dir(), path.exists()
        if not there and create:
            _make_folders(path.parent)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        # The path is the storage's address: it is for nobody who reads an error.
        error.filename = None
        kind, msg = _NOT_MADE.get(error.errno or 0, _NOT_MADE[errno.EACCES])
        raise StorageRejectedError(kind, msg) from error
    if is_folder:
        msg = "the address of a SQLite database must be a file, and this is a folder"
        raise StorageConfigurationError(msg)
    if not there and not create:
        msg = "the database file does not exist: make it with `wenchang sql init`"
        raise StorageRejectedError("missing_container", msg)


def _make_folders(folder: Path) -> None:
    """Make the missing folders, for their owner only (`Path.mkdir` gives that mode to the last one)."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)


def _identity(path: str) -> tuple[int, int] | None:
    """Return what tells a file from another of the same name."""
    try:
        found = os.stat(path)  # noqa: PTH116 - on the path of every call; Path costs as much as stat
    except OSError:
        return None
    return (found.st_dev, found.st_ino)


def _check_journal(raw: sqlite3.Connection, path: str, *, wal: bool) -> None:
    """Set the journal's mode; refuse a log that cannot work, warn of a journal on a network."""
    remote = _network_system(path)
    if not wal:
        raw.execute("PRAGMA journal_mode=DELETE")
        if remote:
            warnings.warn(
                f"the SQLite file lies on a network file system ({remote}), whose locks may fail: "
                "use it from one machine at a time",
                RuntimeWarning,
                stacklevel=2,
            )
        return
    if remote:
        msg = (
            f"the SQLite file lies on a network file system ({remote}), where its write-ahead log "
            "corrupts it: move the file to a local disk, use a database server, or set the option "
            "wal=false and use it from one machine at a time"
        )
        raise StorageConfigurationError(msg)
    mode = raw.execute("PRAGMA journal_mode=WAL").fetchone()[0]
    if mode != "wal":
        msg = (
            f"SQLite cannot keep a write-ahead log here (the journal stays '{mode}'): move the file "
            "to a local disk, or set the option wal=false"
        )
        raise StorageConfigurationError(msg)


def _network_system(path: str) -> str:
    """Return the type of the network file system that holds `path`, or "" (always off Linux)."""
    try:
        device = os.stat(path).st_dev  # noqa: PTH116 - as in `_identity`
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split()
        if len(fields) > 2 and fields[2] == wanted and after:
            system = after.split()[0]
            return system if system in _NETWORK_SYSTEMS else ""
    return ""
