"""Fact lines and bodies."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wenchang.facts import (
    ConfidenceLabel,
    Fact,
    fact_line_problem,
    format_fact,
    parse_body,
    parse_fact,
    serialize_body,
    single_line_problem,
    text_problem,
)

NO_FACTS = {
    "no label": "- likes tea",
    "unknown label": "- [guessed] likes tea",
    "upper case": "- [Stated] likes tea",
    "blank text": "- [stated]   ",
    "no text": "- [stated] ",
    "nothing after the label": "- [stated]",
    "no space after the dash": "-[stated] likes tea",
    "no space after the label": "- [stated]likes tea",
    "two spaces after the dash": "-  [stated] likes tea",
    "indented": " - [stated] likes tea",
    "indented by a tab": "\t- [stated] likes tea",
    "another bullet": "* [stated] likes tea",
    "prose": "likes tea",
    "empty": "",
    "two lines": "- [stated] likes tea\n- [stated] likes milk",
    "line break at the end": "- [stated] likes tea\n",
}

texts = st.text(st.sampled_from("-[] \t\nabs\r\u2028") | st.characters(exclude_categories=["Cs"]))
lines = st.sampled_from(
    ["- [stated] a", "- [system] b ", "- [STATED] c", "", "prose", " - [stated] d", "- [inferred] "]
)


@pytest.mark.parametrize("label", ["stated", "observed", "inferred", "system"])
def test_mem_015_a_label_and_a_text_make_a_fact(label: str) -> None:
    line = f"- [{label}] Has grey eyes."
    assert parse_fact(line) == Fact(ConfidenceLabel(label), "Has grey eyes.")
    assert fact_line_problem(line) is None


def test_mem_015_there_are_four_labels() -> None:
    assert list(ConfidenceLabel) == ["stated", "observed", "inferred", "system"]


@pytest.mark.parametrize("line", NO_FACTS.values(), ids=NO_FACTS)
def test_mem_016_everything_else_is_no_fact_line(line: str) -> None:
    assert parse_fact(line) is None
    assert fact_line_problem(line)


@pytest.mark.parametrize(
    "breaker",
    ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"],
)
def test_mem_016_every_line_boundary_makes_two_lines_of_it(breaker: str) -> None:
    assert fact_line_problem(f"- [stated] likes{breaker}tea")
    assert fact_line_problem(f"- [stated] likes tea{breaker}")
    assert single_line_problem(f"a{breaker}") is not None


@pytest.mark.parametrize("control", ["\x00", "\t", "\x1b", "\x7f", "\x80", "\ud800"])
def test_mem_016_a_control_character_or_a_surrogate_is_refused(control: str) -> None:
    assert fact_line_problem(f"- [stated] likes{control}tea")


@pytest.mark.parametrize("text", ["", " ", "a", "文昌", "a\u00a0b", "\U0001f375"])
def test_a_single_line_may_hold_any_other_text(text: str) -> None:
    assert single_line_problem(text) is None


def test_mem_017_the_label_system_may_be_appended() -> None:
    assert fact_line_problem("- [system] Curated.") is None


@pytest.mark.parametrize("text", ["", "\r\n\ufeff", "a\u2028b", "\x01\x7f", "\U0010ffff"])
def test_content_may_be_any_text_without_nul(text: str) -> None:
    assert text_problem(text) is None


@pytest.mark.parametrize("text", ["\x00", "a\ud800", "\udfff"])
def test_content_with_nul_or_a_surrogate_is_refused(text: str) -> None:
    assert text_problem(text)


@given(texts)
@example("")
@example("\n")
@example("- [stated] a\r\n- [stated] b\n")
def test_mem_018_serializing_what_was_parsed_gives_the_same_text(text: str) -> None:
    parsed = parse_body(text)
    assert parsed
    assert serialize_body(parsed) == text


@given(st.lists(lines, min_size=1))
def test_mem_018_only_fact_lines_become_facts(chosen: list[str]) -> None:
    parsed = parse_body("\n".join(chosen))
    assert [isinstance(line, Fact) for line in parsed] == [
        line in {"- [stated] a", "- [system] b "} for line in chosen
    ]


@given(st.sampled_from(ConfidenceLabel), texts)
def test_a_fact_comes_back_from_its_line(label: ConfidenceLabel, text: str) -> None:
    if "\n" in text or not text.strip():
        with pytest.raises(ValueError):
            Fact(label, text)
    else:
        fact = Fact(label, text)
        assert parse_fact(format_fact(fact)) == fact


@pytest.mark.parametrize("body", [[], ["a\nb"], ["- [stated] a"]])
def test_a_body_that_would_not_come_back_is_refused(body: list[str]) -> None:
    with pytest.raises(ValueError):
        serialize_body(body)


def test_the_label_of_a_fact_must_be_a_label() -> None:
    with pytest.raises(TypeError):
        Fact("stated", "a")  # type: ignore[arg-type]  # the wrong type is the case
