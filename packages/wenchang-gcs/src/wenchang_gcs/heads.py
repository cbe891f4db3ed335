"""What the service tells of an object besides its bytes, in our terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Self, TypeAlias

from wenchang.storage import ListedObject, StorageRejectedError, StoredObject
from wenchang.storage.outcomes import LINEAGE_LIMIT, UNKNOWN_ID, Found, Lineage, LineageMemory
from wenchang_gcs.marks import FORMAT, Marks, decode_marks
from wenchang_gcs.tokens import Token

__all__ = ["Blob", "Head", "HeadCache", "check_format"]

Blob: TypeAlias = Any
"""An object of the client's. It has no types, and what a checker infers from defaults is wrong."""

_PATCHES: Final = LINEAGE_LIMIT - 1


class Head(NamedTuple):
    """Version and metadata of one object, as of one moment."""

    token: Token
    marks: Marks
    version: str
    """The version that callers hold: the token as text, spelled once for all listings."""

    @classmethod
    def of(cls, blob: Blob) -> Self:
        """Take an answer of the service apart. Raises ValueError when it names no generation."""
        generation, metageneration = blob.generation, blob.metageneration
        if generation is None or metageneration is None:
            msg = "the answer names no generation"
            raise ValueError(msg)
        # `blob.metadata` copies deeply, which would take longer than all that is done here.
        marks = decode_marks(blob._properties.get("metadata"))  # noqa: SLF001 - as said above
        token = Token(
            int(generation), int(metageneration), marks.min_writer, extra=bool(marks.extra)
        )
        return cls(token, marks, str(token))

    @property
    def _metadata(self) -> Mapping[str, str]:
        return dict(self.marks.metadata)

    @property
    def _patched(self) -> bool:
        """Somebody changed the metadata in place, so that the marks are those of a version before."""
        return self.token.metageneration != 1

    @property
    def _lineage(self) -> Lineage:
        """The versions before this one, newest first.

        A patch keeps generation and marks and counts the metageneration up by one, which is how the
        versions between, and the version that the write id belongs to, are known.
        """
        if not self._patched:
            return self.marks.lineage
        newest = self.token.metageneration
        between = tuple(
            (UNKNOWN_ID, str(self.token._replace(metageneration=number)))
            for number in range(newest - 1, max(1, newest - 1 - _PATCHES), -1)
        )
        first = str(self.token._replace(metageneration=1))
        written = (self.marks.write_id or UNKNOWN_ID, first)
        return (*between, written, *self.marks.lineage)[:LINEAGE_LIMIT]

    def found(self, body: bytes) -> Found:
        """Return what the settling of a lost answer is told after reading this object back."""
        return Found(
            current=StoredObject(body, self._metadata, self.version),
            write_id=None if self._patched else self.marks.write_id,
            lineage=self._lineage,
        )

    def listed(self, key: str) -> ListedObject:
        """Return the object as a listing reports it."""
        return ListedObject(key, self._metadata, self.version)

    def remember(self, memory: LineageMemory, key: str) -> None:
        """Keep write id and lineage for the handle's next replace."""
        ours = self.marks.write_id
        write_id = UNKNOWN_ID if ours is not None and self._patched else ours
        memory.remember(key, self.version, write_id, self._lineage)


class HeadCache:
    """Heads by name, generation and metageneration, which together never stand for anything else.

    A repeated listing so takes the metadata of each object apart only once. Bounded; when it is full it
    begins anew. Safe over threads and fork without a lock: each step is one operation on a dict.
    """

    def __init__(self, limit: int = 8192) -> None:
        """Make an empty cache of at most `limit` heads."""
        self._limit = limit
        self._heads: dict[tuple[str, object, object], Head] = {}

    def of(self, blob: Blob) -> Head:
        """Return the head in an answer of the service; see `Head.of`."""
        place = (blob.name, blob.generation, blob.metageneration)
        head = self._heads.get(place)
        if head is None:
            head = Head.of(blob)
            if len(self._heads) >= self._limit:
                self._heads = {}
            self._heads[place] = head
        return head


def check_format(min_writer: int) -> None:
    """Raise `StorageRejectedError` if only a newer release may replace or delete the object."""
    if min_writer > FORMAT:
        raise StorageRejectedError(
            "unsupported",
            f"the stored object needs a writer of format {min_writer} and this release writes format "
            f"{FORMAT}; upgrade wenchang in every process that writes here",
        )
