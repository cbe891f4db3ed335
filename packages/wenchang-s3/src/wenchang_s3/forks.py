"""State that a forked child must not inherit: locks that a thread of the parent may have held."""

from __future__ import annotations

import os
import weakref
from abc import ABC, abstractmethod

__all__ = ["RenewedAfterFork"]


class RenewedAfterFork(ABC):
    """Has `_renew` called in each forked child, before anything else of the child runs."""

    def __init__(self) -> None:
        """Begin to be told of forks, for as long as the object lives."""
        _told.add(self)

    @abstractmethod
    def _renew(self) -> None:
        """Replace locks, and forget what must not be shared with the parent."""


_told: weakref.WeakSet[RenewedAfterFork] = weakref.WeakSet()


def _renew_all() -> None:
    for one in list(_told):
        one._renew()  # noqa: SLF001 - the class and its fork hook are one subject


os.register_at_fork(after_in_child=_renew_all)
