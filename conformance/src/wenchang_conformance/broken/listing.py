"""Storages that list wrongly."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence

from wenchang.storage import ListedObject
from wenchang_conformance.broken.plain import PlainStorage, State

__all__ = [
    "AllInOnePage",
    "BodiesInListings",
    "CaseInsensitivePrefix",
    "DirectoryOrder",
    "EmptyPageEnds",
    "FullPageEnds",
    "InclusiveStart",
    "LikePrefix",
    "LinguisticOrder",
    "ListsStagingFiles",
    "NoMetadataInListings",
    "PageBorderLoss",
    "PageOverflow",
    "PathPrefix",
    "PatternPrefix",
    "ReverseOrder",
    "SegmentPrefix",
    "ShortPages",
    "StaleListing",
    "StartMustExist",
    "Utf16Order",
]


class ReverseOrder(PlainStorage):
    """The newest last, or no order at all."""

    def ordered(self, keys: list[str]) -> list[str]:
        return sorted(keys, reverse=True)

    def is_after(self, key: str, start: str) -> bool:
        return key < start


class DirectoryOrder(PlainStorage):
    """A walk of folders: each folder's names in order, so `/` comes first."""

    def ordered(self, keys: list[str]) -> list[str]:
        return sorted(keys, key=lambda key: key.split("/"))

    def is_after(self, key: str, start: str) -> bool:
        return key.split("/") > start.split("/")


class Utf16Order(PlainStorage):
    """An order of UTF-16 code units: emoji before the last of the basic plane."""

    def ordered(self, keys: list[str]) -> list[str]:
        return sorted(keys, key=lambda key: key.encode("utf-16-be", "surrogatepass"))

    def is_after(self, key: str, start: str) -> bool:
        return key.encode("utf-16-be") > start.encode("utf-16-be", "surrogatepass")


class LinguisticOrder(PlainStorage):
    """A dictionary's order, which looks at letters first."""

    def ordered(self, keys: list[str]) -> list[str]:
        return sorted(keys, key=self._weight)

    def is_after(self, key: str, start: str) -> bool:
        return self._weight(key) > self._weight(start)

    def _weight(self, key: str) -> tuple[str, str]:
        return re.sub(r"[\W_]", "", key).lower(), key


class InclusiveStart(PlainStorage):
    """A provider's inclusive start, handed on."""

    def is_after(self, key: str, start: str) -> bool:
        return key >= start


class StartMustExist(PlainStorage):
    """Looks for the start among the keys, and begins anew where it is gone."""

    def is_after(self, key: str, start: str) -> bool:
        return start not in self.state.objects or key > start


class PageBorderLoss(PlainStorage):
    """Skips the first entry of each further page."""

    def list_page(self, prefix: str, start_after: str | None, limit: int) -> Sequence[ListedObject]:
        page = super().list_page(prefix, start_after, limit + 1)
        return page[1 : limit + 1] if start_after in self.state.objects else page[:limit]


class FullPageEnds(PlainStorage):
    """Takes a full page for the last one."""

    def list_page(self, prefix: str, start_after: str | None, limit: int) -> Sequence[ListedObject]:
        if start_after is not None and self._ended == (prefix, start_after):
            return []
        page = super().list_page(prefix, start_after, limit)
        if start_after is not None and len(page) == limit:
            self._ended = (prefix, page[-1].key)
        return page

    _ended: tuple[str, str] | None = None


class ShortPages(PlainStorage):
    """A provider's page size, handed on."""

    def cut(self, keys: list[str], limit: int) -> list[str]:
        return keys[: min(limit, 10)]


class EmptyPageEnds(PlainStorage):
    """Filters after it has cut, so that a page can be empty before the end."""

    def list_page(self, prefix: str, start_after: str | None, limit: int) -> Sequence[ListedObject]:
        page = super().list_page("", start_after, limit)
        return [entry for entry in page if entry.key.startswith(prefix)]


class PageOverflow(PlainStorage):
    """One entry more than was asked for."""

    def cut(self, keys: list[str], limit: int) -> list[str]:
        return keys[: limit + 1]


class AllInOnePage(PlainStorage):
    """Ignores the limit."""

    def cut(self, keys: list[str], limit: int) -> list[str]:
        return keys


class LikePrefix(PlainStorage):
    """SQL's LIKE, without an escape."""

    def has_prefix(self, key: str, prefix: str) -> bool:
        pattern = re.escape(prefix).replace("%", ".*").replace("_", ".")
        return re.match(pattern, key, re.DOTALL) is not None


class PatternPrefix(PlainStorage):
    """A shell pattern."""

    def has_prefix(self, key: str, prefix: str) -> bool:
        return fnmatch.fnmatchcase(key, prefix + "*")


class CaseInsensitivePrefix(PlainStorage):
    """LIKE ignores the case of ASCII letters."""

    def has_prefix(self, key: str, prefix: str) -> bool:
        return key.lower().startswith(prefix.lower())


class SegmentPrefix(PlainStorage):
    """Takes a prefix for whole segments: `a` does not match `ab`."""

    def has_prefix(self, key: str, prefix: str) -> bool:
        if not prefix or prefix.endswith("/"):
            return key.startswith(prefix)
        return key == prefix or key.startswith(prefix + "/")


class PathPrefix(PlainStorage):
    """Joins prefix and name with a slash."""

    def has_prefix(self, key: str, prefix: str) -> bool:
        return not prefix or key.startswith(prefix.rstrip("/") + "/")


class NoMetadataInListings(PlainStorage):
    """LIST returns no metadata, and nobody asked for it."""

    def listed(self, key: str, found: object) -> ListedObject:
        return ListedObject(key, {}, self.state.objects[key].version)


class BodiesInListings(PlainStorage):
    """An entry of another type than the contract's."""

    def listed(self, key: str, found: object) -> ListedObject:
        return self.state.objects[key]  # type: ignore[return-value] # pyright: ignore[reportReturnType] # that is the fault


class ListsStagingFiles(PlainStorage):
    """Shows the temporary name beside the object."""

    def list_page(self, prefix: str, start_after: str | None, limit: int) -> Sequence[ListedObject]:
        page = list(super().list_page(prefix, start_after, limit))
        if page and len(page) < limit:
            last = page[-1]
            page.append(ListedObject(last.key + ".tmp", {}, last.version))
        return page


class StaleListing(PlainStorage):
    """A cache of listings that own writes do not clear in other handles."""

    def __init__(self, state: State | None = None) -> None:
        super().__init__(state)
        self._pages: dict[tuple[str, str | None, int], Sequence[ListedObject]] = {}

    def list_page(self, prefix: str, start_after: str | None, limit: int) -> Sequence[ListedObject]:
        question = (prefix, start_after, limit)
        page = self._pages.get(question)
        if page is None:
            page = self._pages[question] = super().list_page(prefix, start_after, limit)
        return page

    def store(self, key: str, data: bytes, metadata: dict[str, str]) -> str:
        self._pages.clear()
        return super().store(key, data, metadata)

    def remove(self, key: str) -> None:
        self._pages.clear()
        super().remove(key)
