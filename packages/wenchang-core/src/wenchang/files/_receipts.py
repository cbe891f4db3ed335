"""Receipts: what calls with an effect key came to, committed together with what they did.

The newest stand in the root, older ones in receipt pages: immutable lists that are merged eight to
one, so that there are few of them. A page goes when all in it are older than the window and enough newer
receipts are kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from wenchang.files._pack import pack, unpack
from wenchang.files._records import to_datetime, to_micros
from wenchang.files.errors import (
    AlreadyExistsError,
    EditMatchError,
    FileToolError,
    LimitExceededError,
    NotFoundError,
    TreeStateError,
    VersionConflictError,
)
from wenchang.files.values import Deleted, Moved, Outcome, Written

__all__ = [
    "MERGE_WIDTH",
    "Filed",
    "Receipt",
    "ReceiptPage",
    "decode_receipts",
    "encode_receipts",
    "file_receipts",
    "find_receipt",
    "hash_key",
    "is_recorded",
    "make_receipt",
    "replay",
]

MERGE_WIDTH: Final = 8
"""Pages of one level that are merged into one of the next."""
TOP_LEVEL: Final = 2

_RECORDED: Final = (
    VersionConflictError,
    NotFoundError,
    AlreadyExistsError,
    EditMatchError,
    LimitExceededError,
)


class Receipt(NamedTuple):
    """One outcome. `key` and `digest` are hashes of the effect key and of the call's arguments."""

    key: str
    digest: str
    time: int
    outcome: Sequence[Any]


class ReceiptPage(NamedTuple):
    """A receipt page as the root lists it, with `size` receipts; `newest` is the time of its newest receipt."""

    key: str
    level: int
    size: int
    newest: int


def hash_key(effect_key: str) -> str:
    """Return what stands for an effect key in a receipt."""
    return hashlib.sha256(effect_key.encode()).hexdigest()[:24]


def is_recorded(error: FileToolError) -> bool:
    """Tell whether a refusal is an outcome to keep: it depends on the tree, not on the call alone."""
    return isinstance(error, _RECORDED)


def make_receipt(key: str, digest: str, time: int, path: str, outcome: object) -> Receipt:
    """Return the receipt of what a call on `path` came to. Content is never in it."""
    return Receipt(key, digest, time, _encode_outcome(path, outcome))


def _encode_outcome(path: str, outcome: object) -> list[Any]:
    if isinstance(outcome, Written):
        return [
            "written",
            outcome.version,
            outcome.size,
            outcome.lines,
            to_micros(outcome.modified),
            outcome.created,
            outcome.changed,
            outcome.replacements,
        ]
    if isinstance(outcome, Moved):
        return ["moved", outcome.kind, outcome.files]
    if isinstance(outcome, Deleted):
        return ["deleted", outcome.kind, outcome.files]
    if not isinstance(outcome, FileToolError):
        msg = f"{type(outcome).__name__} is no outcome of a call"
        raise TypeError(msg)
    fields = {
        name: getattr(outcome, name)
        for name in outcome.FIELDS
        if name != "content" and not (name == "path" and getattr(outcome, name) == path)
    }
    return ["refused", outcome.code, fields]


def replay(receipt: Receipt, path: str, target: str) -> Outcome:
    """Return the outcome of the first call, or raise its refusal; the arguments are the same ones."""
    kind, *values = receipt.outcome
    if kind == "written":
        version, size, lines, modified, created, changed, replacements = values
        return Written(
            path=path,
            version=version,
            size=size,
            lines=lines,
            modified=to_datetime(modified),
            created=created,
            changed=changed,
            replacements=replacements,
            replayed=True,
        )
    if kind == "moved":
        return Moved(source=path, target=target, kind=values[0], files=values[1], replayed=True)
    if kind == "deleted":
        return Deleted(path=path, kind=values[0], files=values[1], replayed=True)
    code, fields = values
    raise _REFUSALS[code](**({"path": path} if code in _WITH_PATH else {}) | fields)


_REFUSALS: Final[dict[str, Callable[..., FileToolError]]] = {cls.code: cls for cls in _RECORDED}
_WITH_PATH: Final = frozenset(cls.code for cls in _RECORDED if "path" in cls.FIELDS)


def find_receipt(receipts: Sequence[Receipt], key: str) -> Receipt | None:
    """Return the receipt with this key."""
    return next((receipt for receipt in receipts if receipt.key == key), None)


def encode_receipts(receipts: Sequence[Receipt]) -> bytes:
    """Return the object of a receipt page."""
    header = {"format": 1, "kind": "receipts"}
    rows = [header, *receipts]
    return pack(
        b"".join(
            json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
            for row in rows
        )
    )


def decode_receipts(data: bytes) -> tuple[Receipt, ...]:
    """Return the receipts of a page; `TreeStateError` where it is none."""
    try:
        lines = unpack(data).decode().split("\n")[1:-1]
        return tuple(Receipt(*json.loads(line)) for line in lines)
    except (ValueError, TypeError):
        raise TreeStateError("unreadable_page") from None


class Filed(NamedTuple):
    """What filing did: the receipts left in the root, the pages kept, one to write, those it replaces.

    `merged` are pages whose receipts go into the new one, before `moved`.
    """

    receipts: tuple[Receipt, ...]
    pages: tuple[ReceiptPage, ...]
    merged: tuple[ReceiptPage, ...] = ()
    moved: tuple[Receipt, ...] = ()
    level: int = 0


def file_receipts(
    receipts: Sequence[Receipt],
    pages: Sequence[ReceiptPage],
    *,
    in_root: int,
    kept: int,
    not_before: int,
) -> Filed:
    """Decide where the receipts of a root go, oldest first in each sequence.

    At twice `in_root` the older ones leave for a page of their own; where that makes
    `MERGE_WIDTH` pages of a level at the end, they become one of the next. A page is dropped once all
    in it are older than `not_before` and at least `kept` newer receipts remain.
    """
    rest = list(pages)
    newer = len(receipts) + sum(page.size for page in rest)
    while rest and rest[0].newest < not_before and newer - rest[0].size >= kept:
        newer -= rest.pop(0).size
    if len(receipts) < 2 * in_root:
        return Filed(tuple(receipts), tuple(rest))
    moved = tuple(receipts[:-in_root])
    merged: list[ReceiptPage] = []
    level = 0
    while level < TOP_LEVEL:
        run = _run_at_end(rest, level)
        if len(run) + 1 < MERGE_WIDTH:
            break
        merged = [*run, *merged]
        del rest[len(rest) - len(run) :]
        level += 1
    return Filed(tuple(receipts[-in_root:]), tuple(rest), tuple(merged), moved, level)


def _run_at_end(pages: Sequence[ReceiptPage], level: int) -> list[ReceiptPage]:
    """Return the pages of a level that stand at the end."""
    at = len(pages)
    while at and pages[at - 1].level == level:
        at -= 1
    return list(pages[at:])
