"""Storages that write, refuse or delete when they should not."""

from __future__ import annotations

import time
from collections.abc import Mapping

from wenchang.errors import BackendUnavailableError
from wenchang.storage import StoredObject
from wenchang.storage.keys import check_body, check_expected
from wenchang_conformance.broken.plain import PlainStorage

__all__ = [
    "AbsentIsAnError",
    "ChangesAndRefuses",
    "CheckThenCreate",
    "CheckThenDelete",
    "CheckThenReplace",
    "CreateReplaces",
    "DeleteIgnoresVersion",
    "DeleteOfAbsentIsFine",
    "DropsDeletedObjectLate",
    "KeyInTheError",
    "PutRefusesToReplace",
    "ReplaceCreates",
    "SmallBodies",
    "ThrottledConflict",
    "TruncatesBodies",
    "WeakReplace",
]

_WINDOW = 0.002
"""Seconds between a check and the act that should not be apart: enough for a rival to get in."""


class CreateReplaces(PlainStorage):
    """A create that ignores its condition."""

    def allows_put(self, found: StoredObject | None, expected: str | None) -> bool:
        return expected is None or super().allows_put(found, expected)


class ReplaceCreates(PlainStorage):
    """A replace that creates where nothing is: If-Match ignored on a missing key."""

    def allows_put(self, found: StoredObject | None, expected: str | None) -> bool:
        return (found is None and expected is not None) or super().allows_put(found, expected)


class WeakReplace(PlainStorage):
    """A replace that ignores its condition."""

    def allows_put(self, found: StoredObject | None, expected: str | None) -> bool:
        if expected is None:
            return found is None
        return found is not None


class DeleteIgnoresVersion(PlainStorage):
    """A delete that ignores its condition."""

    def allows_delete(self, found: StoredObject | None, expected: str) -> bool:
        return found is not None


class DeleteOfAbsentIsFine(PlainStorage):
    """A delete that takes 404 for done."""

    def allows_delete(self, found: StoredObject | None, expected: str) -> bool:
        return found is None or found.version == expected


class ChangesAndRefuses(PlainStorage):
    """Writes first and checks afterwards."""

    def put_if_version(
        self, key: str, data: bytes, metadata: Mapping[str, str], expected: str | None
    ) -> str:
        self.check_key(key)
        check_body(data)
        kept = self.checked(metadata)
        check_expected(expected, optional=True)
        with self.state.lock:
            found = self.find(key)
            if not self.allows_put(found, expected):
                if found is not None:
                    self.state.objects[key] = StoredObject(data, kept, found.version)
                raise self.refusal(key)
            return self.store(key, data, kept)


class PutRefusesToReplace(PlainStorage):
    """An unconditional put that only creates."""

    def put(self, key: str, data: bytes, metadata: Mapping[str, str]) -> str:
        return self.put_if_version(key, data, metadata, None)


class _CheckThenAct(PlainStorage):
    """Looks, lets go, and acts on what it saw."""

    def checked_apart(self, key: str, expected: str | None) -> bool:
        with self.state.lock:
            allowed = self.allows_put(self.find(key), expected)
        time.sleep(_WINDOW)  # the window in which the condition can become untrue
        return allowed


class CheckThenCreate(_CheckThenAct):
    """A create that looks before it writes, unlocked."""

    def put_if_version(
        self, key: str, data: bytes, metadata: Mapping[str, str], expected: str | None
    ) -> str:
        if expected is not None:
            return super().put_if_version(key, data, metadata, expected)
        self.check_key(key)
        check_body(data)
        kept = self.checked(metadata)
        if not self.checked_apart(key, None):
            raise self.refusal(key)
        with self.state.lock:
            return self.store(key, data, kept)


class CheckThenReplace(_CheckThenAct):
    """A replace that looks before it writes, unlocked: lost updates."""

    def put_if_version(
        self, key: str, data: bytes, metadata: Mapping[str, str], expected: str | None
    ) -> str:
        if expected is None:
            return super().put_if_version(key, data, metadata, expected)
        self.check_key(key)
        check_body(data)
        kept = self.checked(metadata)
        check_expected(expected, optional=True)
        if not self.checked_apart(key, expected):
            raise self.refusal(key)
        with self.state.lock:
            return self.store(key, data, kept)


class CheckThenDelete(_CheckThenAct):
    """A delete that looks before it deletes, unlocked: two deleters win."""

    def delete_if_version(self, key: str, expected: str) -> None:
        self.check_key(key)
        check_expected(expected, optional=False)
        with self.state.lock:
            allowed = self.allows_delete(self.find(key), expected)
        time.sleep(_WINDOW)  # the window in which another deleter is told the same
        if not allowed:
            raise self.refusal(key)
        with self.state.lock:
            self.remove(key)


class ThrottledConflict(PlainStorage):
    """Calls a crowd an outage instead of a conflict."""

    def refusal(self, key: str) -> Exception:
        return BackendUnavailableError("unavailable", outcome="not_applied")


class KeyInTheError(PlainStorage):
    """An error that repeats the key."""

    def refusal(self, key: str) -> Exception:
        error = super().refusal(key)
        error.args = (f"precondition failed for {key}",)
        return error


class AbsentIsAnError(PlainStorage):
    """Raises where nothing is stored."""

    def get(self, key: str) -> StoredObject | None:
        found = super().get(key)
        if found is None:
            raise KeyError("no such object")
        return found


class TruncatesBodies(PlainStorage):
    """A column that cuts silently."""

    def store(self, key: str, data: bytes, metadata: dict[str, str]) -> str:
        return super().store(key, data[: 64 * 1024], metadata)


class SmallBodies(PlainStorage):
    """A packet that is too small for the largest body."""

    def store(self, key: str, data: bytes, metadata: dict[str, str]) -> str:
        if len(data) > 1024 * 1024:
            msg = "packet too large"
            raise RuntimeError(msg)
        return super().store(key, data, metadata)


class DropsDeletedObjectLate(PlainStorage):
    """A deleted object that stays readable."""

    def remove(self, key: str) -> None:
        found = self.state.objects.get(key)
        super().remove(key)
        if found is not None:
            self._ghosts()[key] = found

    def get(self, key: str) -> StoredObject | None:
        return super().get(key) or self._ghosts().get(key)

    def _ghosts(self) -> dict[str, StoredObject]:
        if not hasattr(self, "_kept"):
            self._kept: dict[str, StoredObject] = {}
        return self._kept
