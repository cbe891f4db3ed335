"""A file's metadata: its value, its stored form, and the rules for what callers pass.

The stored form is a flat map under four keys; the lists are JSON arrays with nothing escaped that
need not be. Decoding ignores keys it does not know. The single-line rules bind what a caller
passes: stored text that breaks them stays readable and is kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from wenchang.errors import InvalidArgumentError, MetadataFormatError
from wenchang.facts import single_line_problem
from wenchang.storage.keys import MAX_METADATA_BYTES, UNREADABLE_METADATA, metadata_size

__all__ = [
    "ALIASES_KEY",
    "DESCRIPTION_KEY",
    "EPOCH",
    "LAST_UPDATED_KEY",
    "MAX_SOURCE_CHARS",
    "METADATA_KEYS",
    "RECEIPTS_KEY",
    "SOURCES_KEY",
    "FileMetadata",
    "check_aliases",
    "check_description",
    "check_metadata_size",
    "check_source",
    "decode_metadata",
    "encode_metadata",
    "format_timestamp",
    "merge_aliases",
    "unreadable_metadata",
]

DESCRIPTION_KEY: Final = "description"
ALIASES_KEY: Final = "aliases"
SOURCES_KEY: Final = "sources"
LAST_UPDATED_KEY: Final = "last-updated"
METADATA_KEYS: Final = (DESCRIPTION_KEY, ALIASES_KEY, SOURCES_KEY, LAST_UPDATED_KEY)
RECEIPTS_KEY: Final = "receipts"
"""A fifth stored key, written only where effect keys are used, and ignored here."""
MAX_SOURCE_CHARS: Final = 64
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""`last_updated` of a file that does not say when it was written."""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
# JSON leaves these bare when it may write non-ASCII, and stored values must not hold them.
_BARE_CONTROL: Final = re.compile(r"[\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class FileMetadata:
    """What is known of a file besides its content.

    `aliases` keeps its order; `last_updated` is aware and held in UTC. Raises TypeError for other
    types and ValueError for a time without zone. Passed to `write_file`, only `description`,
    `aliases` and `sources` count: the store stamps the time.
    """

    description: str
    aliases: tuple[str, ...]
    sources: frozenset[str]
    last_updated: datetime

    def __post_init__(self) -> None:
        """Check the types and bring the time to UTC."""
        if not isinstance(self.description, str):
            msg = f"description must be a str, not {type(self.description).__name__}"
            raise TypeError(msg)
        if not isinstance(self.aliases, tuple) or not all(isinstance(a, str) for a in self.aliases):
            msg = "aliases must be a tuple of str"
            raise TypeError(msg)
        if not isinstance(self.sources, frozenset) or not all(
            isinstance(source, str) for source in self.sources
        ):
            msg = "sources must be a frozenset of str"
            raise TypeError(msg)
        object.__setattr__(self, "last_updated", _in_utc(self.last_updated))


def _in_utc(moment: object) -> datetime:
    """Return an aware datetime in UTC; TypeError or ValueError for anything else."""
    if not isinstance(moment, datetime):
        msg = f"last_updated must be a datetime, not {type(moment).__name__}"
        raise TypeError(msg)
    if moment.utcoffset() is None:
        msg = "last_updated must have a time zone"
        raise ValueError(msg)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        msg = "last_updated is outside the years that can be expressed in UTC"
        raise ValueError(msg) from None


def format_timestamp(moment: datetime) -> str:
    """Return ISO 8601 in UTC with `Z`; microseconds only where there are any."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def encode_metadata(
    metadata: FileMetadata, extra: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the stored map: the four keys, after them those of `extra`.

    Sizes are not checked here, see `check_metadata_size`.
    """
    encoded = {
        DESCRIPTION_KEY: metadata.description,
        ALIASES_KEY: _dump(metadata.aliases),
        SOURCES_KEY: _dump(sorted(metadata.sources)),
        LAST_UPDATED_KEY: format_timestamp(metadata.last_updated),
    }
    if extra is not None:
        encoded.update({name: extra[name] for name in extra if name not in encoded})
    return encoded


def decode_metadata(stored: Mapping[str, str]) -> FileMetadata:
    """Return what a stored map says.

    A map with none of our keys belongs to a file that was made by hand: empty metadata and `EPOCH`.
    Raises `MetadataFormatError`, which names the key and no value, for a key that is missing beside
    others or cannot be decoded, and where the storage itself could not decode the map.
    """
    if UNREADABLE_METADATA in stored:
        raise MetadataFormatError(UNREADABLE_METADATA, "the storage could not decode the metadata")
    if not any(key in stored for key in METADATA_KEYS):
        return FileMetadata("", (), frozenset(), EPOCH)
    for key in METADATA_KEYS:
        if key not in stored:
            raise MetadataFormatError(key, "it is missing")
    return FileMetadata(
        stored[DESCRIPTION_KEY],
        _load(ALIASES_KEY, stored[ALIASES_KEY]),
        frozenset(_load(SOURCES_KEY, stored[SOURCES_KEY])),
        _load_timestamp(stored[LAST_UPDATED_KEY]),
    )


def unreadable_metadata(problem: MetadataFormatError) -> FileMetadata:
    """Return what listings show for a file whose metadata cannot be decoded."""
    return FileMetadata(
        f"This file cannot be read: {problem}. Replace it with write_file, or remove it with "
        "delete_file, naming the version shown here.",
        (),
        frozenset(),
        EPOCH,
    )


def _dump(values: Iterable[str]) -> str:
    """Return a JSON array, compact and with characters outside ASCII as they are."""
    text = json.dumps(list(values), ensure_ascii=False, separators=(",", ":"))
    return _BARE_CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _load(key: str, text: str) -> tuple[str, ...]:
    """Return the strings of a JSON array."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise MetadataFormatError(key, "it is not a JSON array of strings")
    if any(_SURROGATE.search(value) for value in values):
        raise MetadataFormatError(key, "it holds a lone surrogate")
    return tuple(values)


def _load_timestamp(text: str) -> datetime:
    """Return the moment that an ISO 8601 text with any offset names."""
    try:
        return _in_utc(datetime.fromisoformat(text))
    except ValueError:
        # Chaining would keep the stored text, which the message of the original quotes.
        pass
    raise MetadataFormatError(LAST_UPDATED_KEY, "it is not an ISO 8601 time with an offset")


# --- the rules for what callers pass -------------------------------------------------------------


def check_source(source: str) -> str:
    """Return `source`, the surface's name that is stored with each write.

    Raises TypeError unless it is a str, ValueError unless it is one line of 1 to 64 characters.
    """
    if not isinstance(source, str):
        msg = f"source must be a str, not {type(source).__name__}"
        raise TypeError(msg)
    if not 1 <= len(source) <= MAX_SOURCE_CHARS:
        msg = f"source has 1 to {MAX_SOURCE_CHARS} characters"
        raise ValueError(msg)
    problem = single_line_problem(source)
    if problem is not None:
        msg = f"source is invalid: {problem}"
        raise ValueError(msg)
    return source


def check_description(description: str) -> str:
    """Return `description`; `InvalidArgumentError` unless it is one line, TypeError for no str."""
    if not isinstance(description, str):
        msg = f"description must be a str, not {type(description).__name__}"
        raise TypeError(msg)
    problem = single_line_problem(description)
    if problem is not None:
        raise InvalidArgumentError("description", problem)
    return description


def check_aliases(aliases: Iterable[str]) -> tuple[str, ...]:
    """Return `aliases` without empty ones and repetitions, in their order.

    Raises TypeError for a bare str or bytes, for no iterable and for a member that is no str, and
    `InvalidArgumentError` for one that is not a single line.
    """
    if isinstance(aliases, str | bytes | bytearray) or not isinstance(aliases, Iterable):
        msg = f"aliases must be a sequence of str, not {type(aliases).__name__}"
        raise TypeError(msg)
    kept: dict[str, None] = {}
    for alias in aliases:
        if not isinstance(alias, str):
            msg = f"aliases must hold str, not {type(alias).__name__}"
            raise TypeError(msg)
        problem = single_line_problem(alias)
        if problem is not None:
            raise InvalidArgumentError("aliases", f"in one of them, {problem}")
        if alias:
            kept[alias] = None
    return tuple(kept)


def merge_aliases(stored: tuple[str, ...], added: Iterable[str]) -> tuple[str, ...]:
    """Return the stored aliases exactly as they are, and after them the new ones, each once."""
    return stored + tuple(alias for alias in dict.fromkeys(added) if alias not in stored)


def check_metadata_size(encoded: Mapping[str, str]) -> None:
    """Raise `InvalidArgumentError` if a stored map is over the limit of every backend.

    It names `description` or `aliases`, whichever is larger, with the size and the limit.
    """
    size = metadata_size(encoded)
    if size <= MAX_METADATA_BYTES:
        return
    description = len(encoded.get(DESCRIPTION_KEY, "").encode())
    argument = (
        "description" if description > len(encoded.get(ALIASES_KEY, "").encode()) else "aliases"
    )
    raise InvalidArgumentError(
        argument,
        f"description, aliases and sources together would take {size} bytes, and a file has room "
        f"for {MAX_METADATA_BYTES}; shorten {argument}",
    )
