"""A suppression names what it suppresses and says why, in its own line."""

from __future__ import annotations

import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("packages", "conformance", "tests", "tools", "examples", "benchmarks")

DIRECTIVES = {
    "noqa": re.compile(r"#\s*noqa\b(?P<codes>:\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*)?(?P<reason>.*)"),
    "type: ignore": re.compile(r"#\s*type:\s*ignore(?P<codes>\[[\w, -]+\])?(?P<reason>.*)"),
    "pyright: ignore": re.compile(r"#\s*pyright:\s*ignore(?P<codes>\[[\w, ]+\])?(?P<reason>.*)"),
    "pragma": re.compile(r"#\s*pragma:\s*(?P<codes>no \w+)(?P<reason>.*)"),
}


def comments(path: Path):
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string


def faults(line: str) -> list[str]:
    """Return what is wrong with the suppressions in one comment."""
    found = []
    for name, pattern in DIRECTIVES.items():
        match = pattern.search(line)
        if match is None:
            continue
        if not match["codes"]:
            found.append(f"{name} without a code")
        if sum(map(str.isalpha, match["reason"])) < 5:
            found.append(f"{name} without a reason")
    return found


def test_every_suppression_in_the_repository_has_a_code_and_a_reason():
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {fault}"
        for path in [*files, ROOT / "dev.py", ROOT / "conftest.py"]
        for number, comment in comments(path)
        for fault in faults(comment)
    ]

    assert wrong == []


def test_a_bare_suppression_is_found():
    assert faults("# " + "noqa") == ["noqa without a code", "noqa without a reason"]
    assert faults("# " + "noqa: S101") == ["noqa without a reason"]
    assert faults("# " + "type: ignore[arg-type]") == ["type: ignore without a reason"]
    assert faults("# " + "type: ignore  # the SDK has no types") == ["type: ignore without a code"]
    assert faults("# " + "pragma: no cover") == ["pragma without a reason"]


def test_an_explained_suppression_is_accepted():
    assert faults("# " + "noqa: S101, B011 # the suite asserts") == []
    assert faults("# " + "type: ignore[arg-type]  # the SDK is untyped here") == []
    assert faults("# an ordinary comment about noqa") == []
