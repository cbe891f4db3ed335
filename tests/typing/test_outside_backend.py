"""Someone else's backend type-checks as a `Storage`, and a wrong one does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
GOOD = HERE / "outside_backend.py"

CHECKERS = {
    "mypy": ["-m", "mypy", "--config-file", str(ROOT / "pyproject.toml")],
    "basedpyright": ["-m", "basedpyright", "--pythonpath", sys.executable],
}

# What an author may get wrong, as an edit of the good file.
MISTAKES = {
    "a missing method": ("def delete_if_version(", "def delete("),
    "a required version": ("expected: str | None", "expected: str"),
    "a version that is a number": (
        "metadata: Mapping[str, str]) -> str:",
        "metadata: Mapping[str, str]) -> int:",
    ),
    "a page of keys": ("-> Sequence[ListedObject]:", "-> Sequence[str]:"),
}


def check(checker: str, file: Path) -> subprocess.CompletedProcess[str]:
    pytest.importorskip(checker, reason=f"{checker} is not in this environment")
    return subprocess.run(
        [sys.executable, *CHECKERS[checker], str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=170,
        check=False,
    )


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_backend_without_our_base_class_is_accepted_as_a_storage(checker):
    done = check(checker, GOOD)

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_backend_with_a_wrong_signature_is_refused(mistake, tmp_path):
    right, wrong = MISTAKES[mistake]
    text = GOOD.read_text(encoding="utf-8")
    assert right in text
    edited = tmp_path / "edited_backend.py"
    edited.write_text(text.replace(right, wrong), encoding="utf-8")

    done = check("mypy", edited)

    assert done.returncode == 1
    assert 'expression has type "DictStorage", variable has type "Storage"' in done.stdout
