"""A look of a few seconds: does this endpoint honour conditions?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from wenchang.storage import PreconditionFailedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from wenchang.storage import Storage

__all__ = ["Answer", "probe"]

_KEY: Final = "probe"
_STRANGE: Final = "a-version-that-was-never-issued"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What was tried, whether it was as it should be, and what came back."""

    condition: str
    honoured: bool
    detail: str = ""


def probe(storage: Storage) -> list[Answer]:
    """Try each condition on one object, one after the other, and remove the object.

    A sequential look cannot see a server's races; the suite can.
    """
    first = storage.put_if_version(_KEY, b"1", {}, None)
    answers = [
        _refused("create only if absent", lambda: storage.put_if_version(_KEY, b"x", {}, None)),
        _refused(
            "replace only at the version",
            lambda: storage.put_if_version(_KEY, b"x", {}, _STRANGE),
        ),
    ]
    found = storage.get(_KEY)
    current = first if found is None else found.version
    second = storage.put_if_version(_KEY, b"1", {}, current)
    answers += [
        _refused(
            "an old version is stale", lambda: storage.put_if_version(_KEY, b"x", {}, current)
        ),
        _refused("delete only at the version", lambda: storage.delete_if_version(_KEY, current)),
    ]
    unharmed = storage.get(_KEY)
    intact = unharmed is not None and (unharmed.data, unharmed.version) == (b"1", second)
    answers.append(Answer(condition="a refused write changes nothing", honoured=intact))
    if unharmed is not None:
        storage.delete_if_version(_KEY, unharmed.version)
    answers.append(
        _refused(
            "no version matches an absent object",
            lambda: storage.put_if_version(_KEY, b"x", {}, second),
        )
    )
    left = storage.get(_KEY)
    if left is not None:
        storage.delete_if_version(_KEY, left.version)
    return answers


def _refused(condition: str, call: Callable[[], object]) -> Answer:
    """Require a conflict."""
    try:
        call()
    except PreconditionFailedError:
        return Answer(condition=condition, honoured=True)
    return Answer(condition=condition, honoured=False, detail="the call succeeded")
