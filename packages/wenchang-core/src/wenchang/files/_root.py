"""The root object: everything that one commit decides, in one object of at most 1 MiB.

It lists the pages with their sums (a small tree has its records here and no page), the newest
receipts, `seq` (the number of commits), the ids of the last 256 of them, and the incarnation and epoch
under which keys are made. Fields of a newer format are kept as they are.
"""

from __future__ import annotations

import base64
import json
import os
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from json.encoder import encode_basestring
from typing import Any, Final

from wenchang.files._pack import pack, unpack
from wenchang.files._pages import Page, PageRef, Sums, inline_ref
from wenchang.files._receipts import Receipt, ReceiptPage
from wenchang.files._records import decode_record, encode_record
from wenchang.files.errors import TreeStateError
from wenchang.files.values import Usage

__all__ = [
    "FORMAT",
    "LOG_LENGTH",
    "MAX_ROOT_BYTES",
    "WRITER",
    "Root",
    "decode_root",
    "encode_root",
    "new_root",
    "random_name",
]

FORMAT: Final = 1
"""The format that this code writes."""
WRITER: Final = 1
"""What this code may write: roots whose `min_writer` is not above it."""
LOG_LENGTH: Final = 256
"""Commit ids that the root remembers."""
MAX_ROOT_BYTES: Final = 1024 * 1024

_FIELDS: Final = frozenset(
    {
        "format",
        "min_writer",
        "incarnation",
        "epoch",
        "seq",
        "number",
        "time",
        "scope",
        "log",
        "receipts",
        "receipt_pages",
        "pages",
        "records",
    }
)


@dataclass(frozen=True, kw_only=True)
class Root:
    """A decoded root. `log` has the newest commit id first; `log[0]` is the id of commit `seq`.

    `number` is the last version number given out and `time` the last time stored. `scope` is the
    scope whose entity owns the tree, "" where nobody said. `inline` is the one page of a tree that has
    its records in the root; its ref has an empty key.
    """

    incarnation: str
    epoch: int = 1
    seq: int = 0
    number: int = 0
    time: int = 0
    scope: str = ""
    log: tuple[str, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    receipt_pages: tuple[ReceiptPage, ...] = ()
    pages: tuple[PageRef, ...] = ()
    inline: Page | None = None
    format: int = FORMAT
    min_writer: int = WRITER
    extra: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def firsts(self) -> list[str]:
        """The first path of each page."""
        return [ref.first for ref in self.pages]

    @property
    def is_empty(self) -> bool:
        """Whether it holds nothing that is anybody's: no file, no past state, no receipt."""
        return not (self.pages or self.receipts or self.receipt_pages)

    def page_number(self, path: str) -> int:
        """Return the number of the page that holds the path if any does; 0 without pages."""
        return max(0, bisect_right(self.firsts, path) - 1)

    def page_for(self, path: str) -> PageRef | None:
        """Return the page that holds the path if any does."""
        return self.pages[self.page_number(path)] if self.pages else None

    def pages_from(self, path: str) -> range:
        """Return the numbers of the pages that hold the path or anything after it."""
        return range(self.page_number(path), len(self.pages))

    def page_overlaps(self, number: int, low: str, high: str | None) -> bool:
        """Tell whether a page may hold a path from `low` on and before `high`."""
        last = number + 1 == len(self.pages)
        return (high is None or self.pages[number].first < high) and (
            last or self.pages[number + 1].first > low
        )

    def token(self, number: int) -> str:
        """Return the version token with this number."""
        return f"v{number}-{self.incarnation[:6]}"

    def usage(self) -> Usage:
        """Add up the pages."""
        if not self.pages:
            return Usage()
        _, files, size, _, deepest, largest, _, past, _ = zip(
            *(ref.sums for ref in self.pages), strict=True
        )
        return Usage(
            files=sum(files),
            bytes=sum(size),
            depth=max(deepest),
            largest=max(largest),
            history_bytes=sum(past),
        )

    def check_writable(self) -> None:
        """Raise `TreeStateError` where a newer version says that this one must not write."""
        if self.min_writer > WRITER:
            raise TreeStateError("newer_format")


def new_root(scope: str = "") -> Root:
    """Return the root of a tree that nothing was written to, with an incarnation of its own."""
    return Root(incarnation=random_name(), scope=scope)


def random_name() -> str:
    """Return 80 random bits as 16 characters."""
    return base64.b32encode(os.urandom(10)).decode("ascii").lower()


def encode_root(root: Root) -> bytes:
    """Return the object of a root: lines of JSON, compressed where there are many."""
    head: dict[str, Any] = {
        **root.extra,
        "format": root.format,
        "min_writer": root.min_writer,
        "incarnation": root.incarnation,
        "epoch": root.epoch,
        "seq": root.seq,
        "number": root.number,
        "time": root.time,
        **({"scope": root.scope} if root.scope else {}),
        "log": root.log,
    }
    lines = [_dump(head)[:-1]]
    lists: dict[str, list[bytes]] = {
        "receipts": [_dump(receipt) for receipt in root.receipts],
        "receipt_pages": [_dump(page) for page in root.receipt_pages],
    }
    if root.inline is not None:
        lists["records"] = [encode_record(each, root.incarnation) for each in root.inline.records]
    else:
        lists["pages"] = [_encode_ref(ref, root.incarnation) for ref in root.pages]
    for name, items in lists.items():
        if items:
            lines.append(b',"' + name.encode() + b'":[\n' + b",\n".join(items) + b"]")
    return pack(b"\n".join([*lines, b"}\n"]))


def _encode_ref(ref: PageRef, incarnation: str) -> bytes:
    """Return a ref as JSON, put together by hand: a commit writes hundreds of them."""
    key = ref.key.removeprefix(incarnation + "/")
    return f'[{encode_basestring(ref.first)},"{key}",{",".join(map(str, ref.sums))}]'.encode()


def _dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def decode_root(data: bytes) -> Root:
    """Return the root; `TreeStateError` where it is none, or of a format that cannot be read."""
    try:
        found: dict[str, Any] = json.loads(unpack(data))
        if found["format"] != FORMAT:
            raise TreeStateError("newer_format")
        incarnation: str = found["incarnation"]
        pages, inline = _decode_pages(found, incarnation)
        return Root(
            incarnation=incarnation,
            epoch=int(found["epoch"]),
            seq=int(found["seq"]),
            number=int(found["number"]),
            time=int(found["time"]),
            scope=str(found.get("scope", "")),
            log=tuple(found["log"]),
            receipts=tuple(Receipt(*row) for row in found.get("receipts", ())),
            receipt_pages=tuple(ReceiptPage(*row) for row in found.get("receipt_pages", ())),
            pages=pages,
            inline=inline,
            min_writer=int(found["min_writer"]),
            extra={name: value for name, value in found.items() if name not in _FIELDS},
        )
    except (ValueError, TypeError, KeyError, AttributeError, IndexError):
        raise TreeStateError("unreadable_root") from None


def _decode_pages(
    found: Mapping[str, Any], incarnation: str
) -> tuple[tuple[PageRef, ...], Page | None]:
    records = found.get("records")
    if records:
        page = Page([decode_record(row, incarnation) for row in records])
        return (inline_ref(page),), page
    refs = []
    for first, key, *sums in found.get("pages", ()):
        whole = f"{incarnation}/{key}" if key.count("/") == 1 else key
        refs.append(PageRef(first, whole, Sums(*sums)))
    return tuple(refs), None
