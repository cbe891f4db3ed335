"""The members that only a race, a fork or a second handle shows, with what else each of them breaks.

A race shows itself by whichever of its symptoms comes first, so these may fail more than one requirement,
and not the same ones in every run. What each may fail is derived from the fault; nothing else may.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from wenchang_conformance.broken import lifecycle, listing, writing
from wenchang_conformance.broken.member import RACING, Member, in_memory
from wenchang_conformance.broken.plain import PlainStorage

__all__ = ["RACERS"]

_HISTORIES: Final = "the recorded histories make the same calls"
_FRESH: Final = "its racers are the first callers of their handles"
_TWO: Final = "its racers use two handles"


def _racer(
    storage: type[PlainStorage], breaks: str, also: Mapping[str, str] | None = None
) -> Member:
    reasons = also or {}
    return Member(
        name=storage.__name__,
        breaks=breaks,
        also=frozenset(reasons),
        reasons=reasons,
        hooks=in_memory(storage),
        areas=RACING,
    )


RACERS: Final[tuple[Member, ...]] = (
    _racer(writing.CheckThenCreate, "race-create", {"race-linear": _HISTORIES}),
    _racer(writing.CheckThenReplace, "race-cas", {"race-linear": _HISTORIES}),
    _racer(writing.CheckThenDelete, "race-delete", {"race-linear": _HISTORIES}),
    _racer(
        listing.ListsStagingFiles,
        "list-clean",
        {
            "fork": "the child compares its listing with the one key that it wrote",
            "list-linear": "a listing is compared with the one object that there is",
            "race-linear": "the recorded histories list, and the temporary name has no metadata",
            "threads": "the temporary name has no metadata",
            "two-handles": "a listing is compared with the one object that there is",
        },
    ),
    _racer(
        listing.StaleListing,
        "two-handles",
        {
            "list-linear": "a listing through a second handle is asked for again after each write",
            "race-linear": "the recorded histories list through two handles",
        },
    ),
    _racer(
        lifecycle.HandlesApart,
        "two-handles",
        {
            "list-clean": "what the first handle created is replaced through the second",
            "list-linear": "what the first handle wrote is listed through the second",
            "race-cas": _TWO,
            "race-create": _TWO,
            "race-linear": "the recorded histories are of two handles",
        },
    ),
    _racer(
        lifecycle.ReadsOwnCache,
        "two-handles",
        {"race-linear": "the recorded histories read through two handles"},
    ),
    _racer(
        lifecycle.LostUpdates,
        "race-linear",
        {
            "race-cas": "increments of two threads are written back one over the other",
            "race-create": "two threads create, each in a copy where the key is absent",
            "threads": "what a thread created is gone when another one writes its own key",
        },
    ),
    _racer(
        lifecycle.OneThreadOnly,
        "threads",
        {
            "race-cas": "each racer is a thread",
            "race-create": "each racer is a thread",
            "race-delete": "each racer is a thread",
            "race-linear": "each racer is a thread",
        },
    ),
    _racer(
        lifecycle.SlowFirstUse,
        "threads",
        {
            "race-cas": _FRESH,
            "race-create": _FRESH,
            "race-delete": _FRESH,
            "race-linear": _FRESH,
        },
    ),
    _racer(lifecycle.ForkBroken, "fork"),
)
"""All of them. They are shown to the areas with threads, processes, forks and restarts."""
