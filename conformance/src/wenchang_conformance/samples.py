"""Keys, metadata and bodies that have broken some storage before, and strategies for more."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from wenchang.storage.keys import MAX_METADATA_BYTES, is_valid_key

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "BAD_KEYS",
    "BAD_METADATA",
    "BAD_RANGES",
    "BODIES",
    "FOREIGN_VERSIONS",
    "LOOKALIKES",
    "METADATA_VALUES",
    "ORDERED_KEYS",
    "bodies",
    "dense_text",
    "keys",
    "metadata_maps",
]

LOOKALIKES: Final[tuple[str, ...]] = (
    "notes/a",
    "notes/A",
    "Notes/a",
    "notes/a ",
    " notes/a",
    "notes/ a",
    "notes/a.md",
    "notes/a+b",
    "notes/a b",
    "notes/a%20b",
    "notes/a%2Bb",
    "notes/a%2bb",
    "notes/x%2Fy",
    "notes/x/y",
    "notes/x:y",
    "100%/50%25.md",
    "q?x=1",
    "h#frag",
    "a&b=c;d",
    "caf\N{LATIN SMALL LETTER E WITH ACUTE}",
    "cafe\N{COMBINING ACUTE ACCENT}",
    "cafe",
    "\N{ANGSTROM SIGN}",
    "\N{LATIN CAPITAL LETTER A WITH RING ABOVE}",
    "stra\N{LATIN SMALL LETTER SHARP S}e",
    "strasse",
    "\N{LATIN SMALL LETTER DOTLESS I}",
    "i",
    "I",
    "e/\N{TOP HAT}",
    "e/\N{COLLISION SYMBOL}",
    "zero\N{ZERO WIDTH SPACE}width",
    "zerowidth",
    "\N{FULLWIDTH LATIN SMALL LETTER A}",
    "a",
    "a.",
    "a..b",
    "...",
    "~",
    "-rf",
    "*",
    "[a]",
    "'quoted'",
    '"double"',
    "con",
    "%obj",
    "a%meta",
    "$dollar",
    "a\N{NO-BREAK SPACE}b",
    "\N{BYTE ORDER MARK}bom",
    "\N{RIGHT-TO-LEFT OVERRIDE}txt",
)
"""Different keys that some store takes for one another or cannot name."""

ORDERED_KEYS: Final[tuple[str, ...]] = tuple(
    sorted(
        {
            "A",
            "B/x",
            "a",
            "a b",
            "a+b",
            "a-",
            "a-b",
            "a.b",
            "a/b",
            "a/b/c",
            "a/b-c",
            "a/b.c",
            "a0",
            "a_z",
            "ab",
            "aB",
            "z",
            "Z",
            "\N{LATIN SMALL LETTER E WITH ACUTE}",
            "e\N{COMBINING ACUTE ACCENT}",
            "\N{LATIN SMALL LETTER SHARP S}",
            "\N{CJK UNIFIED IDEOGRAPH-4E2D}",
            "\ue000",
            "\uffed",
            "\N{BYTE ORDER MARK}",
            "\U00010000",
            "\N{TOP HAT}",
            "\U0010fffd",
            "~",
            "10",
            "9",
            "%41",
            "!",
        }
    )
)
"""Keys in the right order that every wrong order gets wrong somewhere."""

BAD_KEYS: Final[tuple[tuple[str, str], ...]] = (
    ("the empty key", ""),
    ("a leading slash", "/a"),
    ("a trailing slash", "a/"),
    ("only a slash", "/"),
    ("an empty segment", "a//b"),
    ("a '.' segment", "a/./b"),
    ("a '..' segment", "a/../b"),
    ("'.' alone", "."),
    ("'..' at the end", "a/.."),
    ("a backslash", "a\\b"),
    ("NUL", "a\x00b"),
    ("a line break", "a\nb"),
    ("a trailing line break", "a\n"),
    ("a tab", "a\tb"),
    ("DEL", "a\x7f"),
    ("a C1 control", "a\x85b"),
    ("a lone surrogate", "a\ud800"),
    ("a lone low surrogate", "\udc00a"),
    ("the noncharacter U+FDD0", "a\ufdd0"),
    ("the noncharacter U+FFFF", "a\uffff"),
    ("the noncharacter U+1FFFE", "a\U0001fffe"),
    ("the noncharacter U+10FFFF", "a\U0010ffff"),
    ("901 bytes", "k" * 901),
    ("901 bytes in 301 characters", "\N{CJK UNIFIED IDEOGRAPH-4E2D}" * 300 + "k"),
    ("201 segments", "/".join(["s"] * 201)),
)
"""What is wrong with a key, and the key."""

BAD_RANGES: Final[tuple[tuple[str, str], ...]] = (
    ("NUL", "a\x00"),
    ("a line break", "a\n"),
    ("DEL", "\x7f"),
    ("a C1 control", "\x9f"),
    ("a lone surrogate", "\ud800"),
    ("1,025 bytes", "k" * 1025),
    ("1,025 bytes in 513 characters", "\N{LATIN SMALL LETTER E WITH ACUTE}" * 512 + "k"),
)
"""What is wrong with a prefix or start, and the text."""

METADATA_VALUES: Final[dict[str, str]] = {
    "ascii": "plain text",
    "empty": "",
    "space": " ",
    "spaces": "  two  in  between  ",
    "leading": " leading",
    "trailing": "trailing ",
    "tab": "\ta\tb\t",
    "newline": "line 1\nline 2\n",
    "crlf": "line 1\r\nline 2\r",
    "latin": "Pr\N{LATIN SMALL LETTER U WITH DIAERESIS}fung",
    "cjk": "\u8a18\u61b6\u306e\u30d5\u30a1\u30a4\u30eb",
    "emoji": "\N{GRINNING FACE}\N{ZERO WIDTH JOINER}\N{TOP HAT}",
    "nfc": "\N{LATIN SMALL LETTER E WITH ACUTE}",
    "nfd": "e\N{COMBINING ACUTE ACCENT}",
    "encoded-word": "=?utf-8?q?caf=C3=A9?=",
    "encoded-word-b": "=?UTF-8?B?w6k=?=",
    "percent": "50%25 %C3%A9",
    "json": '{"a": "b", "c": [1, "\\u00e9", null]}',
    "quotes": "\"double\" 'single' `back`",
    "backslash": "\\n is not a line break \\",
    "comma": "a,b, c;d=e",
    "colon": "name: value",
    "nbsp": "\N{NO-BREAK SPACE}edge\N{NO-BREAK SPACE}",
    "bom": "\N{BYTE ORDER MARK}x",
    "separator": "a\N{LINE SEPARATOR}b\N{PARAGRAPH SEPARATOR}",
    "noncharacter": "a\uffffb",
    "private": "\ue000\U0010fffd",
    "rtl": "\u05e9\u05dc\u05d5\u05dd",
    "number": "007",
    "null": "null",
    "a": "name of one letter",
    "a-0-b": "name with digits and hyphens",
    "trailing-": "name with a hyphen at its end",
    "x" * 64: "name of 64 characters",
}
"""Names and values that have to come back equal."""

BAD_METADATA: Final[tuple[tuple[str, str, str], ...]] = (
    ("an empty name", "", "v"),
    ("an upper-case name", "Name", "v"),
    ("a name with an underscore", "a_b", "v"),
    ("a name that begins with a digit", "1a", "v"),
    ("a name that begins with a hyphen", "-a", "v"),
    ("a name with a space", "a b", "v"),
    ("a name with a line break at its end", "a\n", "v"),
    ("a name outside ASCII", "\N{LATIN SMALL LETTER E WITH ACUTE}", "v"),
    ("a name of 65 characters", "x" * 65, "v"),
    ("a reserved name", "wenchang-write-id", "v"),
    ("the reserved name of unreadable objects", "wenchang-unreadable", "v"),
    ("NUL in a value", "a", "x\x00y"),
    ("an escape in a value", "a", "\x1b[0m"),
    ("a vertical tab in a value", "a", "\x0b"),
    ("a form feed in a value", "a", "\x0c"),
    ("DEL in a value", "a", "\x7f"),
    ("a C1 control in a value", "a", "\x85"),
    ("a lone surrogate in a value", "a", "\udfff"),
)
"""What is wrong with an entry, its name and its value."""

BODIES: Final[tuple[tuple[str, bytes], ...]] = (
    ("an empty body", b""),
    ("one NUL", b"\x00"),
    ("all byte values", bytes(range(256))),
    ("invalid UTF-8", b"\xff\xfe\xc3\x28"),
    ("carriage returns and line feeds", b"a\r\nb\nc\rd\r\n"),
    ("no line feed at the end", b"text"),
    ("trailing white space", b"text \t\n\n"),
    ("front matter of its own", b"---\nformat: 1\nversion: 2\n---\nbody\n"),
    ("front matter that is not closed", b"---\nkey: value\n"),
    ("a UTF-8 byte order mark", b"\xef\xbb\xbf# title\n"),
    ("JSON", b'{"data": null}'),
    ("gzip's magic number", b"\x1f\x8b\x08\x00not gzip"),
    ("an HTTP chunk", b"5\r\nhello\r\n0\r\n\r\n"),
    ("16 KiB", bytes(range(256)) * 64),
)
"""What is special about a body, and the body."""

FOREIGN_VERSIONS: Final[tuple[tuple[str, str], ...]] = (
    ("the empty string", ""),
    ("'0'", "0"),
    ("'1'", "1"),
    ("'-1'", "-1"),
    ("'007'", "007"),
    ("a word", "abc"),
    ("'*'", "*"),
    ("'null'", "null"),
    ("'None'", "None"),
    ("a number of 30 digits", "9" * 30),
    ("a fraction", "1.0"),
    ("quotes", '""'),
    ("a quoted hash", '"d41d8cd98f00b204e9800998ecf8427e"'),
    ("a list of tags", '"a", "b"'),
    ("a weak tag", 'W/"1"'),
    ("a header injection", "a\r\nX-Injected: 1"),
    ("a quote of SQL", "' OR '1'='1"),
    ("a per cent sign", "%"),
    ("NUL", "\x00"),
    ("text outside ASCII", "\N{CJK UNIFIED IDEOGRAPH-4E2D}\N{TOP HAT}"),
    ("a lone surrogate", "\ud800"),
    ("1 MiB of text", "x" * (1 << 20)),
)
"""What a foreign version looks like, and the version."""


def dense_text(size: int, seed: int = 7) -> str:
    """Return exactly `size` bytes of UTF-8 that do not compress well, in many scripts."""
    draw = random.Random(seed)  # noqa: S311 - the same text in each run
    letters: list[str] = []
    left = size
    while left >= 3:
        letters.append(chr(draw.randrange(0x4E00, 0x9FFF)))
        left -= 3
    return "".join(letters) + "x" * left


def full_metadata() -> dict[str, str]:
    """Return a map of exactly the largest permitted size."""
    return {"description": dense_text(MAX_METADATA_BYTES - len("description"))}


_KEY_CHARACTERS: Final = st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="\\")


def keys(max_bytes: int = 900) -> st.SearchStrategy[str]:
    """Draw valid keys, short ones and ones near the limit."""
    segment = st.text(_KEY_CHARACTERS, min_size=1, max_size=12)
    return (
        st.lists(segment, min_size=1, max_size=6)
        .map("/".join)
        .filter(lambda key: is_valid_key(key) and len(key.encode()) <= max_bytes)
    )


def metadata_maps() -> st.SearchStrategy[dict[str, str]]:
    """Draw valid metadata maps."""
    names = st.text("abz09-", max_size=12).map("n".__add__)
    values = st.text(st.characters(exclude_categories=("Cc", "Cs")) | st.sampled_from("\t\n\r "))
    return st.dictionaries(names, values, max_size=6).filter(
        lambda drawn: (
            sum(len(k.encode()) + len(v.encode()) for k, v in drawn.items()) <= MAX_METADATA_BYTES
        )
    )


def bodies() -> st.SearchStrategy[bytes]:
    """Draw bodies."""
    return st.binary(max_size=300)


def shuffled(items: Sequence[str], seed: int = 3) -> list[str]:
    """Return the items in an order that is the same in each run and not theirs."""
    mixed = list(items)
    random.Random(seed).shuffle(mixed)  # noqa: S311 - the same order in each run
    return mixed
