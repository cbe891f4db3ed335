"""A policy that names a scope nobody has restricts nothing: find the misspelling.

With the scopes known, it is refused at once. Without, the first identities that are resolved show
which scopes exist, and a policy scope that none of them had is worth one warning.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterable
from typing import Final

from wenchang.identity import Identity
from wenchang.scope import ScopePolicy

__all__ = ["RESOLUTIONS_WATCHED", "ScopeWatch", "check_known_scopes", "process_watch"]

RESOLUTIONS_WATCHED: Final = 100
"""After this many identities a policy scope that none of them had is reported."""

_logger = logging.getLogger(__name__)


def check_known_scopes(policy: ScopePolicy, known_scopes: Iterable[str] | None) -> None:
    """Raise ValueError if the policy names a scope that is not known, TypeError for other types.

    None means that the scopes are not known, and nothing is checked.
    """
    if known_scopes is None:
        return
    if isinstance(known_scopes, str | bytes) or not isinstance(known_scopes, Iterable):
        msg = f"known_scopes must be a collection of str, not {type(known_scopes).__name__}"
        raise TypeError(msg)
    known = set(known_scopes)
    if not all(isinstance(scope, str) for scope in known):
        msg = "known_scopes must hold str only"
        raise TypeError(msg)
    unknown = sorted(set(policy.write_roles) - known)
    if unknown:
        msg = (
            f"the policy restricts scopes that are not known: {', '.join(unknown)}; "
            f"known scopes: {', '.join(sorted(known)) or 'none'}"
        )
        raise ValueError(msg)


class ScopeWatch:
    """Counts identities and reports, once, the policy scopes that none of the first 100 had.

    Safe over threads. After its report it does nothing.
    """

    def __init__(self) -> None:
        """Start with nothing seen."""
        self._lock = threading.Lock()
        self._resolutions = 0
        self._granted: set[str] = set()
        self._restricted: set[str] = set()

    def note(self, identity: Identity, policy: ScopePolicy) -> None:
        """Count one resolution; at the hundredth, log one WARNING for each scope nobody had."""
        with self._lock:
            if self._resolutions >= RESOLUTIONS_WATCHED:
                return
            self._resolutions += 1
            self._granted.update(identity.grants)
            self._restricted.update(policy.write_roles)
            if self._resolutions < RESOLUTIONS_WATCHED:
                return
            missing = sorted(self._restricted - self._granted)
        for scope in missing:
            _logger.warning(
                "the policy restricts scope %r, which none of the first %d identities had: "
                "is it spelt as the resolver spells it?",
                scope,
                RESOLUTIONS_WATCHED,
            )

    def renew_after_fork(self) -> None:
        """Take a new lock in a forked child, where a thread that is gone may hold the old one."""
        self._lock = threading.Lock()


process_watch: Final = ScopeWatch()
"""The watch over every binding of this process."""

os.register_at_fork(after_in_child=process_watch.renew_after_fork)
