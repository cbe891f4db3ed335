"""Patterns of deepagents mean here what they mean in its own backends."""

from __future__ import annotations

from random import Random

import pytest

pytest.importorskip("deepagents", reason="the extra deepagents is not installed here")

from deepagents.backends.utils import InvalidGlobPatternError, compile_grep_include_glob

from wenchang.adapters import _deepagents_globs
from wenchang.adapters._deepagents_globs import MAX_ALTERNATIVES, accepting
from wenchang.files.errors import InvalidArgumentError

PATHS = [
    "top.py",
    "top.md",
    ".env",
    "src/main.py",
    "src/app/main.py",
    "src/app/test_main.py",
    "src/.hidden/main.py",
    "src/app/.config.yml",
    ".github/workflows/ci.yml",
    "docs/a.md",
    "docs/b/c.md",
    "a{b}.md",
    "x-y.txt",
    "file[1].md",
    "star*.md",
    "AB.md",
]
PATTERNS = [
    "*", "**", "*.py", "*.yml", ".env", ".*", "?op.py", "[st]*.py", "[!t]*.md", "[^t]*.md",
    "/*.py", "/**/*.py", "src/*.py", "src/**/*.py", "src/**", "**/main.py", "**/*.yml",
    ".github/**/*.yml", ".github/**", "src/.hidden/*", "src/.*/*.py", "**/.config.yml",
    "*.{py,md}", "{src,docs}/**/*.{py,md}", "{src/app,docs}/*", "*.{m{d,x},py}", "{top,AB}.md",
    "a{b}.md", "src/app/test_*.py", "**/test_[a-m]*.py", "docs/**/c.md", "*a*", "x?y.txt",
    "file\\[1\\].md", "file[[]1].md", "star\\*.md", "src/a*p/*.py", "s*c/**", "**/app/**",
    "nothing", "src", "docs/a.md/**", "{,src}/**", "*/*", "*/*/*", "t**.py", "[a-z]*.md", "{a,b}", "{,x}op.py",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_matches_what_it_matches_in_deepagents(pattern):
    theirs = compile_grep_include_glob(pattern)
    ours = accepting(pattern, "", argument="pattern")
    assert [p for p in PATHS if ours("/" + p)] == [p for p in PATHS if theirs(p)]


PIECES = [
    "a", "b", "*", "?", "**", "/", "/", ".", "{a,b}", "[ab]", "[!a]", "{a,*.b}", "{a/b,b}", "{,a}",
    ".a", "[^b]", "{a", "}", ",", "x-y",
]  # fmt: skip
NAMES = ["a", "b", "ab", ".a", ".b", "a.b", "ba", "aab", "b.a", "{a", "x-y"]


@pytest.mark.parametrize("seed", range(4))
def test_any_pattern_matches_what_it_matches_in_deepagents(seed):
    random = Random(seed)
    compared = 0
    for _ in range(500):
        pattern = "".join(random.choices(PIECES, k=random.randint(1, 6)))
        paths = ["/".join(random.choices(NAMES, k=random.randint(1, 4))) for _ in range(10)]
        try:
            ours = accepting(pattern, "", argument="pattern")
        except InvalidArgumentError:
            continue  # a name of no characters, say: theirs matches nothing, ours says why
        theirs = compile_grep_include_glob(pattern)
        matched = [path for path in paths if ours("/" + path)]
        assert (pattern, matched) == (pattern, [path for path in paths if theirs(path)])
        compared += 1
    assert compared > 100


def test_a_pattern_is_relative_to_the_folder():
    accept = accepting("app/*.py", "src", argument="pattern")
    assert accept("/src/app/main.py")
    assert not accept("/app/main.py")
    assert not accept("/src/x/app/main.py")
    assert accepting("*.py", "src/app/main.py", argument="pattern")("/src/app/main.py")


@pytest.mark.parametrize("pattern", ["../*.py", "src/../*.py", "..", "a\\..\\b"])
def test_both_refuse_to_leave_the_folder(pattern):
    with pytest.raises(InvalidGlobPatternError):
        compile_grep_include_glob(pattern)
    with pytest.raises(InvalidArgumentError, match=r"must not hold \.\. as a name"):
        accepting(pattern, "", argument="pattern")


def test_braces_stand_for_a_bounded_number_of_patterns():
    assert accepting("{a,b}" * 6, "", argument="pattern")("/ababab")
    assert MAX_ALTERNATIVES == 64
    for pattern in ("{a,b}" * 7, "{a,b}" * 40, "{" * 60 + "a,b" + "}" * 60 + "{a,b}" * 10):
        with pytest.raises(InvalidArgumentError, match="more than 64 patterns"):
            accepting(pattern, "", argument="pattern")


@pytest.mark.parametrize(
    "pattern", ["*a" * 90 + "b", "**/" * 60 + "x", "{" * 200, "{a," * 60, "}{" * 90]
)
def test_no_pattern_takes_long(pattern):
    # One that does never comes back: the runner ends it.
    accept = accepting(pattern, "", argument="pattern")
    for _ in range(20):
        accept("/" + "a" * 250)
        accept("/" + "a/" * 150 + "a")


def test_a_pattern_that_takes_too_long_over_many_files_is_refused(monkeypatch):
    """This one would take some 20 minutes for the 10,000 files that one call may look at."""
    monkeypatch.setattr(_deepagents_globs, "MATCHING_SECONDS", 0.05)
    accept = accepting("{,}" * 6 + "*" + "a" * 90 + "b", "", argument="pattern")
    with pytest.raises(InvalidArgumentError, match="takes too long to match"):
        for _ in range(100):
            accept("/" + "a" * 200)
