"""The commit of a batch of calls: decide all of them, upload, replace the root by one conditional write.

Only that write changes anything. A lost race is decided again on the new root, a lost answer is
settled by the commit log first, and nothing is told to any caller before the commit it rests on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Literal

from wenchang.errors import BackendUnavailableError, UnavailableReason
from wenchang.files._jobs import NO_RESULT, Job, Request, not_applied, own_copy
from wenchang.files._objects import Objects, RootState, new_key
from wenchang.files._patience import Patience
from wenchang.files._receipts import hash_key, is_recorded, make_receipt, replay
from wenchang.files._root import MAX_ROOT_BYTES, Root, encode_root, random_name
from wenchang.files._rules import Desk, Settings
from wenchang.files._settle import CommitVerdict, settle
from wenchang.files._uploads import Uploads
from wenchang.files._working import Planned, Working
from wenchang.files.errors import (
    EffectKeyReusedError,
    FileToolError,
    LimitExceededError,
    StaleSnapshotError,
    TreeStateError,
    VersionConflictError,
)
from wenchang.storage.errors import PreconditionFailedError, StorageError

__all__ = ["Committer"]

_UPLOAD_ATTEMPTS: Final = 3
_STALE_ATTEMPTS: Final = 4


@dataclass(slots=True)
class _Decision:
    """What one job came to on a working state. `counts` tells whether a commit carries it."""

    job: Job
    result: object = NO_RESULT
    error: Exception | None = None
    counts: bool = False


@dataclass(frozen=True, slots=True)
class _End:
    """How an attempt to commit ended. `clean` tells that no answer of it was lost."""

    kind: Literal["landed", "lost", "unknown", "failed", "too_large", "again"]
    error: Exception | None = None
    clean: bool = True


@dataclass(slots=True)
class _Batch:
    """The state of one batch over its rounds."""

    uploads: Uploads
    clean: bool = True
    lost: int = 0
    upload_failures: int = 0
    stale: list[tuple[str | None, str]] = field(default_factory=list)


class Committer:
    """Commits batches, one at a time, for one tree object."""

    def __init__(self, objects: Objects, settings: Settings, *, sweep: Callable[[], None]) -> None:
        self._objects = objects
        self._settings = settings
        self._policy = settings.policy
        self._sweep = sweep
        self._commits = 0
        self.patience = Patience(settings.policy)

    def commit(self, jobs: Sequence[Job]) -> None:
        """End every job. Raises only what is no `Exception` (an interrupt); then some may not be ended."""
        batch = _Batch(Uploads(self._objects))
        try:
            self._commit(batch, jobs)
        except Exception as error:  # noqa: BLE001 - every caller of the batch has to be told
            for job in jobs:
                if not job.done:
                    job.error = own_copy(not_applied(error))

    def _commit(self, batch: _Batch, jobs: Sequence[Job]) -> None:
        state = self._objects.cached_root()
        fresh = state is None
        if state is None:
            state = self._objects.read_root()
        while left := [job for job in jobs if not job.done]:
            state.root.check_writable()
            try:
                working, decisions = self._decide(batch, state, left, fresh=fresh)
                planned = self._plan(working) if working.touched else None
            except StaleSnapshotError as error:
                # Its objects were removed, or something is wrong: a newer root tells.
                self._note_stale(batch, state, error)
                state, fresh = self._objects.read_root(), True
                continue
            if planned is None:
                if fresh:
                    _publish(decisions)
                    return
                # Nothing to commit, so nothing proves that the cached root is the present one.
                state, fresh = self._objects.read_root(), True
                continue
            end = self._try(batch, state, planned, decisions)
            if end.kind == "landed":
                _publish(decisions)
                return
            if end.kind == "too_large" and len(left) > 1:
                # Which call makes the root too large shows when each is committed by itself.
                for job in left:
                    self._commit(_Batch(Uploads(self._objects)), [job])
                return
            _after_failure(decisions, end)
            if end.kind in ("lost", "unknown"):
                self.patience.pause(batch.lost, max(job.deadline for job in left))
                batch.lost += 1
                # After a pause the root may have changed again.
                state, fresh = self._objects.read_root(), True
                if end.kind == "lost" and _stands_in_log(planned.root, state.root):
                    # A request that went out twice was refused by its own twin.
                    _publish(decisions)
                    return
                self._end_late([each.job for each in decisions if each.counts])

    # --- deciding --------------------------------------------------------------------------------

    def _decide(
        self, batch: _Batch, state: RootState, jobs: Sequence[Job], *, fresh: bool
    ) -> tuple[Working, list[_Decision]]:
        """Decide the jobs in order on one working state.

        A missing object is the whole batch's matter while a newer root may do without it; under a
        fresh root that misses it again it is the fault of the one job that needs it.
        """
        objects = self._objects
        root = _adopted(state.root, objects.scope)
        working = Working(root, partial(objects.page, state.root), objects.receipts)
        desk = Desk(working, self._settings, batch.uploads)
        batch.uploads.begin(working.incarnation, working.epoch)
        decisions = []
        for number, job in enumerate(jobs):
            batch.uploads.turn(number)
            mark = working.mark()
            decision = _Decision(job)
            try:
                _decide_one(desk, job.request, decision)
            except StaleSnapshotError as error:
                working.back_to(mark)
                if not fresh or (state.version, error.key) not in batch.stale:
                    raise
                decision.error = TreeStateError("missing_object")
            except Exception as error:  # noqa: BLE001 - it ends its own call and no other
                working.back_to(mark)
                decision.error = not_applied(error)
            decision.counts = working.mark() != mark
            decisions.append(decision)
        return working, decisions

    def _note_stale(self, batch: _Batch, state: RootState, error: StaleSnapshotError) -> None:
        """Remember what was missing under which root, so that a second time is told from a first."""
        batch.stale.append((state.version, error.key))
        if batch.stale.count((state.version, error.key)) >= _STALE_ATTEMPTS:
            raise TreeStateError("missing_object") from error

    def _plan(self, working: Working) -> Planned:
        place = (working.incarnation, working.epoch)
        return working.plan(random_name(), self._policy, lambda: new_key(*place))

    # --- committing ------------------------------------------------------------------------------

    def _try(
        self, batch: _Batch, state: RootState, planned: Planned, decisions: Sequence[_Decision]
    ) -> _End:
        """Upload what the decisions need and commit them."""
        data = encode_root(planned.root)
        if len(data) > MAX_ROOT_BYTES and len(planned.root.pages) > len(state.root.pages):
            error = LimitExceededError("rootBytes", len(data), MAX_ROOT_BYTES)
            return _End("too_large", error)
        failed = self._upload(batch, planned, decisions)
        if failed is not None:
            return failed
        counting = [decision.job for decision in decisions if decision.counts]
        for job in counting:
            job.in_flight = True
        deadline = max(job.deadline for job in counting)
        end = self._push(state, planned.root, data, deadline)
        for job in counting:
            job.in_flight = False
        batch.clean = batch.clean and end.clean
        if end.kind == "landed":
            self._after_commit(batch, planned)
        return end

    def _upload(
        self, batch: _Batch, planned: Planned, decisions: Sequence[_Decision]
    ) -> _End | None:
        """Upload contents and pages side by side; return None once all are there."""
        uploads = batch.uploads
        contents = uploads.missing(planned.contents)
        works = [partial(uploads.upload, key) for key in contents]
        works += [partial(uploads.upload_page, page) for page in planned.pages]
        errors = self._objects.workers.each(works)
        failures = [error for error in errors if error is not None]
        if not failures:
            return None
        batch.upload_failures += 1
        lasting = batch.upload_failures >= _UPLOAD_ATTEMPTS
        for key, error in zip(contents, errors, strict=False):
            # An upload whose answer was lost is given up for a fresh key; any other failure is final.
            if error is not None and (lasting or not _is_unknown(error)):
                for number in uploads.jobs_of(key):
                    decisions[number].job.error = own_copy(not_applied(error))
        for error in errors[len(contents) :]:
            if error is not None and (lasting or not _is_unknown(error)):
                return _End("failed", error)
        return _End("again")

    def _push(self, state: RootState, root: Root, data: bytes, deadline: float) -> _End:
        """Replace the root, and find out whether that happened. This is the commit."""
        ambiguous = False
        attempt = 0
        while True:
            try:
                self._objects.put_root(root, data, state.version)
                return _End("landed", clean=not ambiguous)
            except PreconditionFailedError:
                if not ambiguous:
                    return _End("lost")
                # One's own first attempt may be what stands there: only the log can say.
                cause: Exception | None = None
            except BackendUnavailableError as error:
                if error.outcome == "not_applied" and not ambiguous:
                    return _End("failed", error)
                ambiguous = ambiguous or error.outcome != "not_applied"
                cause = error
            except StorageError as error:
                if not ambiguous:
                    return _End("failed", error)
                cause = error
            verdict = self._settled(root, deadline)
            if verdict == "landed":
                return _End("landed", clean=False)
            if verdict == "not_applied":
                return _End("lost", clean=False)
            if verdict == "unknown" or self.patience.is_over(deadline):
                return _End("unknown", cause, clean=False)
            self.patience.pause(attempt, deadline)
            attempt += 1

    def _settled(self, root: Root, deadline: float) -> CommitVerdict:
        """Read the commit log until it tells what became of a commit; `unknown` at the deadline."""
        attempt = 0
        while True:
            try:
                now = self._objects.read_root().root
                return settle(root.log[0], root.seq, now)
            except BackendUnavailableError:
                if self.patience.is_over(deadline):
                    return "unknown"
            except (StorageError, TreeStateError):
                return "unknown"
            self.patience.pause(attempt, deadline)
            attempt += 1

    def _after_commit(self, batch: _Batch, planned: Planned) -> None:
        """Remember what was written, and note what has become useless."""
        pages = {page.key for page in planned.pages}
        if batch.clean:
            # Without a lost answer it is certain that no other root refers to any of these.
            useless = batch.uploads.made - planned.contents - pages
            self._objects.discard(planned.dropped | useless)
        self._commits += 1
        if self._policy.sweep_every and self._commits % self._policy.sweep_every == 0:
            self._sweep()

    # --- ending ----------------------------------------------------------------------------------

    def _end_late(self, jobs: Sequence[Job]) -> None:
        """End the calls that have lost races until their deadline."""
        for job in jobs:
            if not job.done and self.patience.is_over(job.deadline):
                job.error = (
                    VersionConflictError(job.request.path, None)
                    if job.request.operation == "append"
                    else BackendUnavailableError(
                        "timeout", "too many writers at once", outcome="not_applied"
                    )
                )


def _adopted(root: Root, scope: str) -> Root:
    """Return the root as a tree of this scope changes it: an empty one belongs to who writes next.

    A purge that was cut off leaves an empty root that names the scope it was for. What another writes
    there must be found by the purge of its own entity, and by that one only.
    """
    return replace(root, scope=scope) if scope and root.is_empty else root


def _decide_one(desk: Desk, request: Request, decision: _Decision) -> None:
    """Decide one request, or repeat what it came to before; raise refusals that are not recorded."""
    working = desk.working
    if request.effect_key is None:
        decision.result = request.decide(desk)
        return
    key = hash_key(request.effect_key)
    receipt = working.find_receipt(key)
    if receipt is not None:
        if receipt.digest != request.digest():
            raise EffectKeyReusedError
        try:
            decision.result = replay(receipt, request.path, getattr(request, "target", ""))
        except FileToolError as error:
            decision.error = error
        return
    mark = working.mark()
    outcome: object
    try:
        decision.result = outcome = request.decide(desk)
    except FileToolError as error:
        if not is_recorded(error):
            raise
        working.back_to(mark)
        decision.error = outcome = error
    working.add_receipt(make_receipt(key, request.digest(), working.time, request.path, outcome))


def _after_failure(decisions: Sequence[_Decision], end: _End) -> None:
    """End the calls that a failed commit carried; the refused ones are decided again."""
    if end.kind not in ("failed", "unknown", "too_large"):
        return
    for decision in decisions:
        if decision.counts and not decision.job.done:
            error = end.error or BackendUnavailableError("unavailable")
            if end.kind == "unknown":
                timed_out = isinstance(error, BackendUnavailableError) and error.reason == "timeout"
                reason: UnavailableReason = "timeout" if timed_out else "unavailable"
                unknown = BackendUnavailableError(reason, outcome="unknown")
                unknown.__cause__ = error
                decision.job.error = unknown
            else:
                decision.job.error = own_copy(not_applied(error))


def _stands_in_log(ours: Root, now: Root) -> bool:
    return settle(ours.log[0], ours.seq, now) == "landed"


def _publish(decisions: Sequence[_Decision]) -> None:
    """Tell the callers, all of whose decisions rest on the present root now."""
    for decision in decisions:
        decision.job.result, decision.job.error = decision.result, decision.error


def _is_unknown(error: Exception) -> bool:
    return isinstance(error, BackendUnavailableError) and error.outcome != "not_applied"
