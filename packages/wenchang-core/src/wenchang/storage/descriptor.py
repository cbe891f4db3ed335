"""What a backend tells of itself before it is opened.

A distribution announces a backend by an entry point of the group `wenchang.storage`. Its name is the
URL scheme; its value is a `BackendDescriptor` in a module that imports no SDK: listing the installed
backends stays cheap and cannot fail because one SDK does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, is_dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from wenchang.storage.contract import Storage
    from wenchang.storage.locations import StorageLocation

__all__ = ["ENTRY_POINT_GROUP", "BackendDescriptor"]

ENTRY_POINT_GROUP: Final = "wenchang.storage"
"""The entry-point group of storage backends."""

_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*")
_CONTRACT: Final = re.compile(r"[0-9]+\.[0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendDescriptor:
    """One backend: its name, the contract it was built for, its options, and how to open it.

    Raises ValueError or TypeError where a field cannot be right, so that a faulty plug-in is
    reported by its own import.
    """

    name: str
    """The URL scheme, equal to the name of the entry point."""
    contract: str
    """The version of the storage contract it was built for, `major.minor` (`STORAGE_CONTRACT`)."""
    summary: str
    """One line for people: what it stores where."""
    options: type
    """A frozen dataclass: its fields are the URL parameters and keys of `[storage.options]`."""
    open: Callable[[StorageLocation], Storage]
    """Opens a location. The SDK is imported inside; no network call is made."""
    durable: bool = True
    """What was acknowledged survives the process."""
    shared: bool = True
    """A second handle, in another process too, that opens the same URL sees the same objects."""
    local: bool = False
    """Calls cannot lose their answers, so the requirements on lost answers do not apply."""
    unsupported: Mapping[str, str] = field(default_factory=dict)
    """Contract requirements that the backend declines: id and reason."""
    hooks: str = ""
    """`module:attribute` of the hooks for the conformance suite; only the suite loads it."""

    def __post_init__(self) -> None:
        """Check the fields and freeze `unsupported`."""
        if not isinstance(self.name, str) or not _SCHEME.fullmatch(self.name):
            msg = "name must be a URL scheme: a-z, 0-9, '+', '.' and '-', the first a letter"
            raise ValueError(msg)
        if not isinstance(self.contract, str) or not _CONTRACT.fullmatch(self.contract):
            msg = "contract must be 'major.minor'"
            raise ValueError(msg)
        if not (isinstance(self.options, type) and is_dataclass(self.options)):
            msg = "options must be a dataclass"
            raise TypeError(msg)
        if not callable(self.open):
            msg = "open must be callable"
            raise TypeError(msg)
        object.__setattr__(self, "unsupported", MappingProxyType(dict(self.unsupported)))
