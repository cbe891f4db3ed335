"""The memory prompt: what an agent is told about using memory with judgement.

The tools' own descriptions state their contracts. This text says what to remember, what never to
store, where to file it and when to bring it up. An application fills a few slots, and may replace
or leave out any section by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

__all__ = ["SECTION_ORDER", "PromptSlots", "build_memory_prompt"]

_HEADINGS: Final = {
    "memory": "Memory",
    "scopes": "Scopes",
    "seed_areas": "Areas to start with",
    "systems_of_record": "Systems of record",
    "applying": "Using what is remembered",
    "deciding": "Deciding what to remember",
    "never_store": "What never to store",
    "filing": "Filing",
    "writing": "Choosing a tool to write with",
    "curated": "Curated content",
    "forgetting": "Forgetting",
}

SECTION_ORDER: Final = tuple(_HEADINGS)
"""The names of the sections, in the order in which they stand in the prompt."""


@dataclass(frozen=True, slots=True)
class PromptSlots:
    """What an application says about its own memory. All texts are stripped.

    `purpose` is one or a few sentences on what this memory is for. `scope_guidance` says of each
    scope who sees it and what belongs there. `seed_areas` suggests areas to begin with.
    `systems_of_record` names the systems whose data is authoritative; None leaves that section out.
    `sections` replaces the body of a generic section by its name from `SECTION_ORDER`, or leaves the
    section out where the value is None.

    Raises TypeError for a wrong type and ValueError for a blank text, one that is not valid UTF-8, one
    with a heading of the first level, or an unknown section name.
    """

    purpose: str
    scope_guidance: str
    seed_areas: str
    systems_of_record: str | None = None
    sections: Mapping[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check all types first, then all values, in the order of the fields."""
        texts = ("purpose", "scope_guidance", "seed_areas", "systems_of_record")
        for name in texts:
            _check_type(name, getattr(self, name), optional=name == "systems_of_record")
        if not isinstance(self.sections, Mapping):
            msg = f"sections must be a mapping, not {type(self.sections).__name__}"
            raise TypeError(msg)
        sections = dict(self.sections)
        for name, body in sections.items():
            _check_type(f"sections[{name!r}]", body, optional=True)
        for name in texts:
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _check_value(name, value))
        for name, body in sections.items():
            if name not in _HEADINGS:
                msg = f"unknown section {name!r}; the sections are: {', '.join(SECTION_ORDER)}"
                raise ValueError(msg)
            if body is not None:
                sections[name] = _check_value(f"sections[{name!r}]", body)
        object.__setattr__(self, "sections", MappingProxyType(sections))


def build_memory_prompt(slots: PromptSlots, /) -> str:
    """Return the prompt: Markdown with `##` headings, no heading above them, one final newline.

    Raises TypeError unless `slots` is a `PromptSlots`.
    """
    if not isinstance(slots, PromptSlots):
        msg = f"slots must be a PromptSlots, not {type(slots).__name__}"
        raise TypeError(msg)
    bodies: dict[str, str | None] = dict(_GENERIC_BODIES)
    bodies["memory"] = f"{slots.purpose}\n\n{_GENERIC_BODIES['memory']}"
    bodies["scopes"] = slots.scope_guidance
    bodies["seed_areas"] = slots.seed_areas
    bodies["systems_of_record"] = (
        None
        if slots.systems_of_record is None
        else f"{_SYSTEMS_OF_RECORD}\n\n{slots.systems_of_record}"
    )
    bodies.update(slots.sections)
    parts = [
        f"## {_HEADINGS[name]}\n\n{bodies[name]}"
        for name in SECTION_ORDER
        if bodies[name] is not None
    ]
    return "\n\n".join(parts) + "\n"


def _check_type(name: str, value: object, *, optional: bool) -> None:
    if isinstance(value, str) or (optional and value is None):
        return
    wanted = "a str or None" if optional else "a str"
    msg = f"{name} must be {wanted}, not {type(value).__name__}"
    raise TypeError(msg)


def _check_value(name: str, value: str) -> str:
    text = str(value).strip()
    if not text:
        msg = f"{name} must not be blank"
        raise ValueError(msg)
    try:
        text.encode()
    except UnicodeEncodeError:
        msg = f"{name} is not valid UTF-8: it holds a lone surrogate"
        raise ValueError(msg) from None
    if any(line.startswith("# ") for line in text.splitlines()):
        msg = f"{name} must not hold a heading of the first level ('# ...')"
        raise ValueError(msg)
    return text


_SYSTEMS_OF_RECORD: Final = """\
The systems named here hold the authoritative data. Do not copy their records into memory. Refer to
a record by its name or identifier, and store only what those systems cannot say: how a record is
used here, how it is to be read, what the user corrected. If memory and such a system disagree, say
so and ask before changing memory."""

_GENERIC_BODIES: Final = {
    "memory": """\
This memory is a set of small Markdown files that outlive the conversation. Some are shared: other
people and other agents read and write the same files, often at the same time.

- A file is addressed by scope, area and name. The tools may be listed under names with a prefix.
- Begin each session with `get_memory_index()`, before the first answer. It lists what is known,
  without the contents. Open what bears on the task with `read_file(scope, area, name)`.
- A file is made of fact lines, `- [label] text`, one fact each. Other lines are allowed too.
- Keep one subject per file. When a file comes near its size limit, split it into files with
  narrower subjects instead of cutting facts.""",
    "applying": """\
- Bring up a remembered fact only if the answer would be different without it. Memory that is shown
  for its own sake feels like being watched.
- Use facts quietly: act on a preference, do not recite it.
- Claim no more than the line and its label support. What was inferred is a guess; one occurrence
  is not a habit.
- If what the user says now contradicts memory, the user is right: go by it, and correct the file.""",
    "deciding": """\
Ask of each fact whether a later session would go better for knowing it. If so, save it at once,
without being asked: the conversation can end at any moment.

- `[stated]`: the user said so. `[observed]`: a tool result, the data of the session or behaviour
  showed it. `[inferred]`: it follows from several observations; say so in the wording.
- Never write a `[system]` line: that label belongs to curated content. Keep it where it stands.
- When you merge or move lines, keep the labels they have.
- Findings that took effort and can be used again are worth saving, and so are corrections.
- Leave out what goes stale within days, what is easily looked up, and small talk.
- Put an end date into the sentence only if the user gave one: "until the end of March 2027".""",
    "never_store": """\
Some things are stored in no scope, not even if the user asks for it:

- numbers of bank accounts, cards or other means of payment, passwords, keys and access tokens;
- health diagnoses and treatments of a person;
- anything that suggests that a person is a minor.

Carry on with the task, and say that you will not keep this. Be stricter still in a shared scope:
what is written there reaches others and cannot be called back. Nothing checks the content for you,
so a write that succeeds is not a sign that it was right.""",
    "filing": """\
File by subject, not by date or conversation. Use the areas that exist; make a new one only for a
kind of subject that none of them covers.

Before you create a file, look through the descriptions and aliases in the index for the subject. If
the index reports its area under `capped`, page through that area with
`list_prefix(scope, area, cursor)`. Read the one or two likely files. Create a file only if none of
them is about the subject; otherwise add to it.

Description and aliases are all that a later search can see. Give each file a description that says
what it holds, and with every write add the names by which someone might look for it: short forms,
other spellings, other languages.""",
    "writing": """\
- One new fact: `append_line(scope, area, name, line, expected_version)`.
- One fact changed: `replace_fact(scope, area, name, old_string, new_string, expected_version)`.
  Quote the whole line, so that it is found exactly once.
- One fact dropped: the same, with the line and its line break as `old_string` and an empty
  `new_string`.
- A new file, a rewritten one, aliases to be dropped, or only a new description:
  `write_file(scope, area, name, content, description, aliases, expected_version)`.
- A whole file that should go: `delete_file(scope, area, name, expected_version)`.

A version conflict means that someone else wrote first. It is routine and never worth mentioning:
merge your change into the content that the error shows, and repeat the call with its version. After
an error that says the outcome is unknown, read the file before you repeat the change.""",
    "curated": """\
The area `system` of a scope is kept by people, who replace it as a whole. Read it like any other
area and trust it. It cannot be written with these tools.

If the user says that something there is wrong, and only then, write the correction as a labelled
fact into a file of an area that you can write, tell the user where, and go by it from then on.""",
    "forgetting": """\
When the user asks to forget something, remove it completely: the line, whatever was inferred from
it, files that exist only because of it, and traces in descriptions and aliases. If it is not clear
whether one fact or a whole file is meant, ask. Then say briefly that it is gone, without repeating
it.

A date that has passed is a reason to check whether a fact still holds, not to drop it. The area
`system` is not yours to clean.""",
}
