"""The proof that an endpoint honours conditions, before anything is written there.

Many servers and proxies accept a conditional request and ignore its condition: every test with one
writer passes, and two writers lose each other's work. So on endpoints that are not Amazon's own each
handle first tries the conditions on an object of its own, under a name that no key can have. The
proof is sequential: races inside a server it cannot see, the conformance suite can.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from wenchang.storage import BackendUnavailableError, StorageRejectedError
from wenchang.storage.keys import MAX_KEY_SEGMENTS
from wenchang.storage.outcomes import (
    Ambiguous,
    Applied,
    Attempt,
    Done,
    ReadAttempt,
    Refused,
    Rejected,
)
from wenchang_s3.calls import Call
from wenchang_s3.clients import is_amazon
from wenchang_s3.errors import Condition
from wenchang_s3.forks import RenewedAfterFork
from wenchang_s3.requests import Requests

__all__ = ["EndpointProof", "Prover"]

PROBE_FOLDER: Final = "wenchang-probe/"
# More segments than a key may have, so that no caller and no listing ever meets the probe.
_HIDDEN: Final = PROBE_FOLDER + "p/" * (MAX_KEY_SEGMENTS + 5)
_STALE: Final = "0" * 32


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointProof:
    """What an endpoint was found to honour. One that lacks more is refused by an error."""

    conditional_delete: bool
    """Otherwise a delete is a conditional replace by a tombstone."""


class _AgainError(Exception):
    """An attempt that was given up arrived late and spoiled the proof: it begins again elsewhere."""


class Prover(RenewedAfterFork):
    """Proves the endpoint of one handle once. Safe over threads: the others wait for the first."""

    def __init__(self, requests: Requests, root: str) -> None:
        """Prove nothing yet."""
        super().__init__()
        self._requests = requests
        self._root = root
        self._lock = threading.Lock()
        self._proof: EndpointProof | None = None

    def _renew(self) -> None:
        # What the parent has proved holds for the child.
        self._lock = threading.Lock()

    @property
    def known(self) -> EndpointProof | None:
        """The proof, if there is one already."""
        return self._proof

    def ensure(self, call: Call) -> EndpointProof:
        """Return the proof; give it first if need be.

        Raises `StorageRejectedError` where nothing may be written, and tries again at the next call.
        """
        if self._proof is not None:
            return self._proof
        if not self._lock.acquire(timeout=call.remaining()):
            raise BackendUnavailableError("timeout", outcome="not_applied")
        try:
            if self._proof is None:
                self._proof = self._own(call) or self.prove(call)
            return self._proof
        finally:
            self._lock.release()

    def own(self, call: Call) -> EndpointProof | None:
        """Return what needs no proof: the endpoint is Amazon's own. Sends nothing."""
        return self._proof or self._own(call)

    def _own(self, call: Call) -> EndpointProof | None:
        amazon = call.read(lambda seconds: self._requests.amazon(seconds, is_amazon))
        return EndpointProof(conditional_delete=True) if amazon else None

    def prove(self, call: Call) -> EndpointProof:
        """Try every condition, whoever's the endpoint is; see the module."""

        def attempt(_seconds: float) -> ReadAttempt[EndpointProof]:
            # Each step takes the time of an attempt; the call's deadline ends them all.
            probe = _Probe(self._requests, call, self._root + _HIDDEN + secrets.token_hex(8))
            try:
                return Done(value=probe.run())
            except _AgainError as again:
                return Ambiguous(error=again)
            except StorageRejectedError as error:
                return Rejected(error=error)
            finally:
                probe.clean()

        return call.read(attempt)


class _Probe:
    """One run of the proof, under one name that nobody else writes to."""

    def __init__(self, requests: Requests, call: Call, name: str) -> None:
        self._requests = requests
        self._call = call
        self._name = name
        self._left = False

    def run(self) -> EndpointProof:
        """Try everything; raise `StorageRejectedError` unless create and replace are conditional."""
        # What is refused may have landed all the same, if a proxy sent it twice: so it is looked at.
        first = self._put("absent") or self._current()
        if first is None:
            raise _unusable("a create of an absent object (PutObject with If-None-Match: *)")
        if self._put("absent") is not None:
            raise _unusable("conditional create (PutObject with If-None-Match: *)")
        if self._put("version", _STALE) is not None or self._current() != first:
            raise _unusable("conditional replace (PutObject with If-Match)")
        second = self._put("version", first) or self._current()
        if second is None or second == first:
            raise _unusable("a replace at the current version (PutObject with If-Match)")
        deletes = self._delete_is_conditional(first, second)
        absent = _Probe(self._requests, self._call, self._name + "-absent")
        try:
            if absent._put("version", second) is not None:
                raise _unusable("If-Match on an absent object, which must create nothing")
            absent._left = False
        finally:
            absent.clean()
        return EndpointProof(conditional_delete=deletes)

    def clean(self) -> None:
        """Remove what is left of the probe, as far as that works and there is time for it."""
        if not self._left:
            return
        try:
            self._requests.delete(self._name, self._call.attempt(), etag=None)
        except BackendUnavailableError:
            return

    def _delete_is_conditional(self, stale: str, current: str) -> bool:
        """Try to delete at a stale version, then at the current one."""
        if not self._delete_refused(stale) or self._current() != current:
            return False
        self._delete_refused(current)
        left = self._current()
        if left not in {None, current}:
            raise _AgainError
        self._left = left is not None
        return left is None

    def _put(self, condition: Condition, etag: str = "") -> str | None:
        """Store random bytes; return their ETag, or None where the condition was refused."""
        data = b"This object only tests conditions and may be deleted: "
        data += secrets.token_hex(16).encode()
        self._left = True
        attempt = self._answered(
            lambda seconds: self._requests.put(
                self._name, data, seconds, condition=condition, etag=etag
            )
        )
        if isinstance(attempt, Rejected):
            if _kind(attempt.error) == "unsupported":
                raise _unusable("conditional writes (PutObject with If-None-Match and If-Match)")
            raise attempt.error
        return attempt.version if isinstance(attempt, Applied) else None

    def _delete_refused(self, etag: str) -> bool:
        """Tell whether a conditional delete was refused for its condition."""
        attempt = self._answered(
            lambda seconds: self._requests.delete(self._name, seconds, etag=etag)
        )
        if isinstance(attempt, Rejected) and _kind(attempt.error) not in {"unsupported", "invalid"}:
            raise attempt.error
        return isinstance(attempt, Refused)

    def _answered(self, send: Callable[[float], Attempt]) -> Applied | Refused | Rejected:
        """Repeat a step until it is answered: sent twice, it is refused at worst."""

        def attempt(seconds: float) -> ReadAttempt[Applied | Refused | Rejected]:
            answer = send(seconds)
            if isinstance(answer, Applied | Refused | Rejected):
                return Done(value=answer)
            return answer

        return self._call.read(attempt)

    def _current(self) -> str | None:
        """Return the ETag of what is there, or None."""
        body = self._call.read(lambda seconds: self._requests.get(self._name, seconds))
        return None if body is None else body.etag


def _kind(error: Exception) -> str:
    """Return the kind of a rejection; "unsupported" where a server does not know a condition."""
    return error.kind if isinstance(error, StorageRejectedError) else ""


def _unusable(what: str) -> StorageRejectedError:
    return StorageRejectedError(
        "unsupported",
        f"the endpoint does not honour {what}, so that writers would lose each other's work; nothing is "
        "written there. Use a server that does, and no proxy that drops the headers of conditions",
    )
