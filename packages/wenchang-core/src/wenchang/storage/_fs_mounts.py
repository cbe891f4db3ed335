"""Recognising network folders, whose locks and renames do not keep this backend's promises."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

__all__ = ["network_type", "type_of_device"]

_MOUNTS: Final = Path("/proc/self/mountinfo")
_NETWORK_TYPES: Final = frozenset(
    (
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "davfs",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "smb3",
        "smbfs",
    )
)
_NETWORK_PROGRAMS: Final = frozenset(
    ("ceph-fuse", "davfs2", "gcsfuse", "glusterfs", "rclone", "s3fs", "sshfs")
)


def network_type(device: int) -> str | None:
    """Return the type of the network file system that holds `device`, or None if it is local.

    Systems without `/proc/self/mountinfo` cannot tell: None.
    """
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    kind = type_of_device(mounts, os.major(device), os.minor(device))
    program = kind.removeprefix("fuse.")
    known = _NETWORK_PROGRAMS if program != kind else _NETWORK_TYPES
    return kind if program in known else None


def type_of_device(mounts: str, major: int, minor: int) -> str:
    """Return the file system type of a device in the text of `mountinfo`, or ""."""
    wanted = f"{major}:{minor}"
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split()
        if len(fields) > 2 and fields[2] == wanted and after:
            return after.split()[0]
    return ""
