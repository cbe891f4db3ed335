"""What each file tool does: arguments in, an answer out, on the tree of one account."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, get_args

from wenchang.files._answers import FileAnswer, Room
from wenchang.files._arguments import Arguments
from wenchang.files._results import (
    deleted_answer,
    found_answer,
    history_answer,
    listed_answer,
    moved_answer,
    read_answer,
    search_answer,
    written_answer,
)
from wenchang.files.cursors import PageCursor
from wenchang.files.errors import InvalidArgumentError
from wenchang.files.listing import (
    DEFAULT_LIST_PAGE,
    MAX_LIST_DEPTH,
    SortBy,
    find_page,
    list_page,
)
from wenchang.files.reading import read_page
from wenchang.files.search import (
    DEFAULT_SEARCH_PAGE,
    MAX_CONTEXT_LINES,
    SearchMode,
    SearchQuery,
    search_page,
)
from wenchang.files.snapshot import Snapshot
from wenchang.files.tree import FileTree

__all__ = ["OPERATIONS", "Account"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The account that a call works on: its name, its tree, who writes, and how long answers are."""

    name: str
    tree: FileTree
    source: str
    max_answer_chars: int

    def room(self) -> Room:
        """Return an empty answer."""
        return Room(self.max_answer_chars)

    def cursors(self, tool: str, *arguments: str | int | bool | None) -> PageCursor:
        """Return what makes and reads the cursors of a call."""
        return PageCursor(self.name, tool, arguments)


def _list(account: Account, given: Arguments) -> FileAnswer:
    path = given.folder()
    depth = given.whole("depth", 1, MAX_LIST_DEPTH) or 1
    cursors = account.cursors("file_list", path, depth)
    start = cursors.decode(given.cursor())
    size = given.page_size(DEFAULT_LIST_PAGE)

    def read(snapshot: Snapshot) -> FileAnswer:
        page = list_page(snapshot, path, depth, start, size, account.room())
        cursor = None if page.position is None else cursors.encode(page.position)
        return listed_answer(path, page, cursor, snapshot.limits, snapshot.usage)

    return account.tree.view(read)


def _read(account: Account, given: Arguments) -> FileAnswer:
    paths, lines = given.read_wanted()
    bound = account.max_answer_chars
    return account.tree.view(lambda snapshot: read_answer(read_page(snapshot, paths, lines, bound)))


def _find(account: Account, given: Arguments) -> FileAnswer:
    pattern, glob = given.pattern("pattern")
    if glob is None:
        raise InvalidArgumentError("pattern", "it is required")
    path = given.folder()
    sort_by = given.choice("sortBy", get_args(SortBy))
    cursors = account.cursors("file_find", path, pattern, sort_by)
    start = cursors.decode(given.cursor())
    size = given.page_size(DEFAULT_LIST_PAGE)

    def read(snapshot: Snapshot) -> FileAnswer:
        page = find_page(snapshot, path, glob, sort_by, start, size, account.room())
        cursor = None if page.position is None else cursors.encode(page.position)
        return found_answer(path, page, cursor)

    return account.tree.view(read)


def _search(account: Account, given: Arguments) -> FileAnswer:
    text = given.search_text()
    path = given.folder()
    pattern, glob = given.pattern("glob")
    query = SearchQuery(
        text=text,
        folder=path,
        glob=glob,
        case_sensitive=given.flag("caseSensitive"),
        mode=given.choice("mode", get_args(SearchMode)),
        context=given.whole("context", 0, MAX_CONTEXT_LINES) or 0,
    )
    cursors = account.cursors(
        "file_search", path, text, pattern, query.case_sensitive, query.mode, query.context
    )
    start = cursors.decode(given.cursor())
    size = given.page_size(DEFAULT_SEARCH_PAGE)

    def read(snapshot: Snapshot) -> FileAnswer:
        page = search_page(snapshot, query, start, size, account.room())
        cursor = None if page.position is None else cursors.encode(page.position)
        return search_answer(path, query.mode, page, cursor)

    return account.tree.view(read)


def _create(account: Account, given: Arguments) -> FileAnswer:
    path, content = given.file(), given.content("content")
    return written_answer("file_create", account.tree.create(path, content, source=account.source))


def _append(account: Account, given: Arguments) -> FileAnswer:
    path, text = given.file(), given.content("text")
    return written_answer("file_append", account.tree.append(path, text, source=account.source))


def _move(account: Account, given: Arguments) -> FileAnswer:
    source, target, version = given.file("from"), given.file("to"), given.version()
    return moved_answer(account.tree.move(source, target, version))


def _edit(account: Account, given: Arguments) -> FileAnswer:
    path, edits, version = given.file(), given.edits(), given.version()
    return written_answer(
        "file_edit", account.tree.edit(path, edits, version, source=account.source)
    )


def _write(account: Account, given: Arguments) -> FileAnswer:
    path, content, version = given.file(), given.content("content"), given.version()
    return written_answer(
        "file_write", account.tree.write(path, content, version, source=account.source)
    )


def _delete(account: Account, given: Arguments) -> FileAnswer:
    path, recursive, version = given.file(), given.flag("recursive"), given.version()
    return deleted_answer(account.tree.delete(path, recursive, version))


def _history(account: Account, given: Arguments) -> FileAnswer:
    path = given.file()
    return history_answer(path, account.tree.file_history(path), account.room())


def _restore(account: Account, given: Arguments) -> FileAnswer:
    path, version = given.file(), given.version() or ""
    return written_answer(
        "file_restore", account.tree.restore(path, version, source=account.source)
    )


OPERATIONS: Final[Mapping[str, Callable[[Account, Arguments], FileAnswer]]] = MappingProxyType(
    {
        "file_list": _list,
        "file_read": _read,
        "file_find": _find,
        "file_search": _search,
        "file_create": _create,
        "file_append": _append,
        "file_move": _move,
        "file_edit": _edit,
        "file_write": _write,
        "file_delete": _delete,
        "file_history": _history,
        "file_restore": _restore,
    }
)
"""The tools by name."""
