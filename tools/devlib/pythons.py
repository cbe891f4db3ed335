"""Finding the Python interpreters of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

_ASK = "import sys; print('%d.%d' % sys.version_info[:2])"


def _version(candidate: Path) -> str | None:
    """Return the version that the program answers, None if it is no working interpreter."""
    try:
        answer = subprocess.run(
            [candidate, "-I", "-c", _ASK],
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


def find(version: str) -> Path | None:
    """Return an interpreter of `version` ("3.12"), or None.

    Looks at the running one, at PATH and at the folders where pyenv and uv keep theirs. A name on
    PATH is asked before it is believed: version managers leave shims that only print an error.
    """
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return Path(sys.executable)
    home = Path.home()
    candidates: list[Path] = []
    if named := shutil.which(f"python{version}"):
        candidates.append(Path(named))
    pyenv = Path(os.environ.get("PYENV_ROOT", home / ".pyenv"))
    candidates += sorted(pyenv.glob(f"versions/{version}.*/bin/python"), reverse=True)
    uv = home / ".local" / "share" / "uv" / "python"
    candidates += sorted(uv.glob(f"cpython-{version}.*/bin/python3"), reverse=True)
    for candidate in candidates:
        if _version(candidate) == version:
            return candidate
    return None
