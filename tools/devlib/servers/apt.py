"""Installing packages of Debian and its relatives, where the person asked for it."""

from __future__ import annotations

import os
import shutil
from functools import cache

from devlib.console import DevError, clean_environ, run_quietly


def install(*names: str, allowed: bool) -> None:
    """Install `names`.

    Raises:
        DevError: not allowed, not root, no apt here, or apt failed. The text says which.
    """
    sudo = "" if os.getuid() == 0 else "sudo "
    command = f"{sudo}apt-get install -y --no-install-recommends {' '.join(names)}"
    if shutil.which("apt-get") is None:
        raise DevError(f"not installed; it is in the Debian package {names[0]}")
    if not allowed or os.getuid() != 0:
        raise DevError(f"not installed; this would: {command}")
    _update()
    run_quietly(
        ["apt-get", "install", "-y", "--no-install-recommends", *names],
        what="apt-get install",
        env=clean_environ({"DEBIAN_FRONTEND": "noninteractive"}),
    )


@cache
def _update() -> None:
    run_quietly(["apt-get", "update"], what="apt-get update")
