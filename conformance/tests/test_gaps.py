"""`conformance-gaps.toml`: what may stand in it."""

from __future__ import annotations

import pytest

from wenchang_conformance.gaps import find_gaps, read_gaps


def write(folder, text):
    file = folder / "conformance-gaps.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_whole_entry_is_read(tmp_path):
    file = write(
        tmp_path, '[[gap]]\nid = "list-order"\nreason = "r"\nissue = "#1"\nsubject = "TestA"\n'
    )
    gaps = read_gaps(file)
    assert gaps.problems == ()
    assert gaps.of("x/test_a.py::TestA") == gaps.of("TestA[p]") != {}
    assert gaps.of("x/test_a.py::TestB") == {}


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ('id = "no-such"\nreason = "r"\nissue = "#1"', "no-such"),
        ('id = "list-order"\nissue = "#1"', "reason"),
        ('id = "list-order"\nreason = "r"', "issue"),
        ('id = "list-order"\nreason = " "\nissue = "#1"', "reason"),
        ('id = "list-order"\nreason = "r"\nissue = "#1"\nuntil = "2030"', "until"),
    ],
)
def test_an_unknown_or_unexplained_entry_is_a_problem(tmp_path, entry, problem):
    gaps = read_gaps(write(tmp_path, f"[[gap]]\n{entry}\n"))
    assert len(gaps.problems) == 1
    assert problem in gaps.problems[0]
    assert gaps.gaps == ()


def test_a_broken_file_is_a_problem_and_no_crash(tmp_path):
    gaps = read_gaps(write(tmp_path, "[[gap"))
    assert "cannot be read" in gaps.problems[0]


def test_the_nearest_file_is_found(tmp_path):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    outer = write(tmp_path, "")
    assert find_gaps(inner, tmp_path) == outer
    nearer = write(tmp_path / "a", "")
    assert find_gaps(inner, tmp_path) == nearer
    assert find_gaps(inner, inner) is None
