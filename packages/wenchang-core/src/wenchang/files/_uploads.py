"""The contents that one batch of calls plans, and their uploads, which survive a lost race."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from wenchang.files._objects import Objects, new_key
from wenchang.files._records import State, to_datetime
from wenchang.files._working import NewPage

__all__ = ["Uploads"]


@dataclass(slots=True, kw_only=True)
class _Content:
    """A planned content. `jobs` are the calls it is made of, the one that planned it last."""

    path: str
    data: bytes
    number: int
    token: str
    state: State
    place: tuple[str, int]
    jobs: frozenset[int]
    uploaded: bool = False


class Uploads:
    """Implements `Contents` for one batch. `begin` starts a decision, `job` says whose turn it is."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._planned: dict[str, _Content] = {}
        self._kept: dict[str, _Content] = {}
        self._place = ("", 0)
        self._job = -1
        self.made: set[str] = set()
        """Keys that this batch uploaded something under, pages included."""

    def begin(self, incarnation: str, epoch: int) -> None:
        """Start deciding on a root; uploads made under this incarnation and epoch may be used again."""
        self._place = (incarnation, epoch)
        self._kept = {
            key: content
            for key, content in {**self._kept, **self._planned}.items()
            if content.uploaded and content.place == self._place
        }
        self._planned = {}

    def turn(self, job: int) -> None:
        """Say which call is decided next."""
        self._job = job

    def load(self, key: str) -> bytes:
        """Return a content, a planned one included."""
        planned = self._planned.get(key)
        return self._objects.content(key) if planned is None else planned.data

    def plan(
        self,
        state: State,
        path: str,
        data: bytes,
        token: str,
        *,
        newest: int,
        based_on: str | None,
    ) -> str:
        """Return the key of a new content: that of an upload that is still right, or a fresh one.

        An upload that carries an older token than the one given out now is right as long as that token
        is newer than every other of the path: a rebuilt tree has to find the newest content.
        """
        base = self._planned.get(based_on) if based_on is not None else None
        jobs = frozenset({self._job}) | (base.jobs if base is not None else frozenset())
        for key, kept in self._kept.items():
            if kept.path == path and kept.data == data and kept.number > newest:
                del self._kept[key]
                kept.jobs = jobs
                self._planned[key] = kept
                return key
        key = new_key(*self._place)
        self._planned[key] = _Content(
            path=path,
            data=data,
            number=state.number,
            token=token,
            state=state,
            place=self._place,
            jobs=jobs,
        )
        return key

    def jobs_of(self, key: str) -> frozenset[int]:
        """Return the calls that a planned content is made of."""
        return self._planned[key].jobs

    def missing(self, keys: Iterable[str]) -> list[str]:
        """Return those of the planned contents that still have to be uploaded."""
        return [key for key in keys if key in self._planned and not self._planned[key].uploaded]

    def upload(self, key: str) -> None:
        """Upload a planned content; after an error its key is never used again."""
        content = self._planned[key]
        state = content.state
        metadata = {
            "kind": "content",
            "path": content.path,
            "version": content.token,
            "size": str(state.size),
            "lines": str(state.lines),
            "modified": to_datetime(state.modified).isoformat(),
        }
        self._objects.upload(key, content.data, metadata)
        content.uploaded = True
        self.made.add(key)
        self._objects.note_content(key, content.data)

    def upload_page(self, page: NewPage) -> None:
        """Upload a page; after an error its key is never used again."""
        kind = "receipts" if page.page is None else "page"
        self._objects.upload(page.key, page.data, {"kind": kind})
        self.made.add(page.key)
        if page.page is not None:
            self._objects.note_page(page.key, page.page)
