"""What a forked child must make anew: locks that a vanished thread may hold, and connections."""

from __future__ import annotations

import os
import weakref
from typing import Protocol

__all__ = ["renew_in_children"]


class _Renewable(Protocol):
    def renew(self) -> None: ...


def renew_in_children(one: _Renewable) -> None:
    """Have `one.renew()` called in each forked child, before its first own step, while `one` lives."""
    _renewed.add(one)


def _renew_all() -> None:
    for one in list(_renewed):
        one.renew()


_renewed: weakref.WeakSet[_Renewable] = weakref.WeakSet()
os.register_at_fork(after_in_child=_renew_all)
