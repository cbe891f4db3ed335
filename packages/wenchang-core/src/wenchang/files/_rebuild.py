"""Verification of a tree, and a new root after a disaster.

Path, version, size, lines and time stand with each content, so a tree without a readable root can
be made again from its contents alone: the newest one of each path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise

from wenchang.files._garbage import epoch_of
from wenchang.files._objects import Objects, new_key
from wenchang.files._pages import PageRef, sums_of
from wenchang.files._records import Record, to_micros
from wenchang.files._root import Root, encode_root, new_root, random_name
from wenchang.files._rules import Settings
from wenchang.files._uploads import Uploads
from wenchang.files._working import Working
from wenchang.files.errors import StaleSnapshotError, TreeStateError
from wenchang.files.paths import ancestors, canonical_file
from wenchang.files.values import TreeReport

__all__ = ["verify"]


@dataclass(slots=True)
class _Findings:
    """What an inspection found. `damaged` are the ranges of paths whose page cannot be read."""

    root: Root | None = None
    records: list[Record] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    damaged: list[tuple[str, str | None]] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    referenced: set[str] = field(default_factory=set)


def verify(objects: Objects, settings: Settings, *, rebuild: bool) -> TreeReport:
    """Inspect a tree and, if wanted, repair it; see `FileTree.verify`."""
    stored = {key: metadata for key, metadata in objects.described() if epoch_of(key) is not None}
    found = _inspect(objects, stored)
    live = [record for record in found.records if record.live]
    report = TreeReport(
        files=len(live),
        bytes=sum(record.size for record in live),
        problems=tuple(found.problems),
        unreferenced=len(stored.keys() - found.referenced),
        lost=tuple(found.lost),
    )
    if report.sound or not rebuild:
        return report
    return _rebuild(objects, settings, found, stored, report)


def _inspect(objects: Objects, stored: Mapping[str, Mapping[str, str]]) -> _Findings:
    found = _Findings()
    try:
        state = objects.read_root()
    except TreeStateError as error:
        if error.reason == "newer_format":
            raise
        found.problems.append("The root cannot be read.")
        found.damaged.append(("", None))
        return found
    if state.version is None:
        if stored:
            found.problems.append("The root is missing.")
            found.damaged.append(("", None))
        return found
    root = found.root = state.root
    for number, ref in enumerate(root.pages):
        _inspect_page(objects, root, number, ref, found)
    for page in root.receipt_pages:
        found.referenced.add(page.key)
        if page.key not in stored:
            found.problems.append("A page of receipts is missing.")
    for record in found.records:
        found.referenced.update(record.all_keys())
        if record.live and record.key not in stored:
            found.problems.append(f"The content of {record.path} is missing.")
            found.lost.append(record.path)
        if any(state.key not in stored for state in record.history):
            found.problems.append(f"A past state of {record.path} is missing.")
    _inspect_shape(found)
    return found


def _inspect_page(
    objects: Objects, root: Root, number: int, ref: PageRef, found: _Findings
) -> None:
    """Read a page and hold it against what the root says of it."""
    last = number + 1 == len(root.pages)
    low = "" if number == 0 else ref.first
    high = None if last else root.pages[number + 1].first
    if ref.key:
        found.referenced.add(ref.key)
    try:
        records = objects.page(root, ref).records
    except (StaleSnapshotError, TreeStateError):
        found.problems.append(f"The page of the paths from {ref.first} on cannot be read.")
        found.damaged.append((low, high))
        return
    found.records.extend(records)
    if sums_of(records, ref.sums.weight) != ref.sums:
        found.problems.append(f"The sums of the page from {ref.first} on are wrong.")
    inside = all(low <= each.path and (high is None or each.path < high) for each in records)
    if not inside:
        found.problems.append(f"The page from {ref.first} on holds paths of another.")


def _inspect_shape(found: _Findings) -> None:
    """Check the order of paths, and that none is both a file and a folder."""
    paths = [record.path for record in found.records]
    if any(before >= after for before, after in pairwise(paths)):
        found.problems.append("Paths are out of order.")
    files = {record.path for record in found.records if record.live}
    found.problems.extend(
        f"{folder} is both a file and a folder."
        for folder in sorted({each for path in files for each in ancestors(path)} & files)
    )


def _rebuild(
    objects: Objects,
    settings: Settings,
    found: _Findings,
    stored: Mapping[str, Mapping[str, str]],
    report: TreeReport,
) -> TreeReport:
    """Make a new root of everything that is left."""
    raw = objects.raw_root()
    records = {record.path: record for record in _whole(found.records, stored)}
    for record in _from_contents(stored, found.damaged):
        known = records.get(record.path)
        if known is None or not known.live or known.number < record.number:
            records[record.path] = record
    renamed = _separate(records)
    old = found.root if found.root is not None else new_root(objects.owner() or objects.scope)
    newest = max([old.epoch, *(epoch_of(key) or 0 for key in stored)])
    numbers = [state.number for each in records.values() for state in (each.state(), *each.history)]
    pages = tuple(page for page in old.receipt_pages if page.key in stored)
    base = replace(
        old,
        incarnation=random_name(),
        epoch=newest + 1,
        number=max([old.number, *numbers]),
        time=max([old.time, *(each.modified for each in records.values())]),
        receipt_pages=pages,
        pages=(),
        inline=None,
    )
    working = Working(base, lambda ref: objects.page(base, ref), objects.receipts)
    for record in records.values():
        working.put(record)
    planned = working.plan(
        random_name(), settings.policy, lambda: new_key(base.incarnation, base.epoch)
    )
    uploads = Uploads(objects)
    for page in planned.pages:
        uploads.upload_page(page)
    expected = None if raw is None else raw.version
    objects.forget_root()
    objects.put_root(planned.root, encode_root(planned.root), expected)
    live = [record for record in records.values() if record.live]
    return replace(
        report,
        files=len(live),
        bytes=sum(record.size for record in live),
        rebuilt=True,
        renamed=renamed,
    )


def _whole(records: Iterable[Record], stored: Mapping[str, Mapping[str, str]]) -> Iterable[Record]:
    """Yield the records as far as their contents are there."""
    for record in records:
        history = tuple(state for state in record.history if state.key in stored)
        if not record.live or record.key in stored:
            if record.live or history:
                yield record._replace(history=history)
        elif history:
            # The newest state that is left takes the place of the one that is gone.
            yield Record(record.path, *history[0], history[1:])


def _from_contents(
    stored: Mapping[str, Mapping[str, str]], damaged: Iterable[tuple[str, str | None]]
) -> Iterable[Record]:
    """Yield a record for every content of a damaged range of paths that says what it is."""
    ranges = list(damaged)
    for key, metadata in stored.items():
        record = _described(key, metadata)
        if record is not None and any(
            low <= record.path and (high is None or record.path < high) for low, high in ranges
        ):
            yield record


def _described(key: str, metadata: Mapping[str, str]) -> Record | None:
    """Return what the metadata of a content say of it; None where it is no content or says nothing."""
    try:
        if metadata["kind"] != "content":
            return None
        number = int(metadata["version"].partition("-")[0].removeprefix("v"))
        return Record(
            canonical_file(metadata["path"]),
            key,
            int(metadata["size"]),
            int(metadata["lines"]),
            number,
            to_micros(datetime.fromisoformat(metadata["modified"])),
        )
    except (KeyError, ValueError, TypeError):
        return None


def _separate(records: dict[str, Record]) -> tuple[tuple[str, str], ...]:
    """Give files that stand where a folder has to be another name; return old and new names."""
    live = {path for path, record in records.items() if record.live}
    renamed = []
    for path in sorted({each for below in live for each in ancestors(below)} & live):
        count, name = 1, f"{path}.recovered"
        while name in records or any(each.startswith(name + "/") for each in records):
            count += 1
            name = f"{path}.recovered-{count}"
        records[name] = records.pop(path)._replace(path=name)
        renamed.append((path, name))
    return tuple(renamed)
