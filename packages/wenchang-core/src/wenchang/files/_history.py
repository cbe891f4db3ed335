"""Past states: what is kept of a path when its content is replaced, and what gives way for room."""

from __future__ import annotations

from wenchang.files._records import Record, State, deleted
from wenchang.files._working import Working
from wenchang.files.policy import HistoryPolicy

__all__ = ["drop_expired", "kept_states", "make_room", "merged_states"]


def oldest_time(policy: HistoryPolicy, now: int) -> int:
    """Return the time before which nothing is kept, in microseconds."""
    return now - int(policy.max_age.total_seconds() * 1_000_000)


def kept_states(
    policy: HistoryPolicy | None, record: Record | None, now: int, *, replaced: bool
) -> tuple[State, ...]:
    """Return the past states to keep of a path whose record changes, the newest first.

    With `replaced` the present state becomes a past one. Without a policy nothing is kept.
    """
    if policy is None or record is None:
        return ()
    present = (record.state(),) if replaced and record.live else ()
    oldest = oldest_time(policy, now)
    kept = (state for state in (*present, *record.history) if state.modified >= oldest)
    return tuple(kept)[: policy.versions]


def merged_states(
    policy: HistoryPolicy | None, moved: Record, replaced: Record | None
) -> tuple[State, ...]:
    """Return the past states of a file that moves to where a deleted one has some."""
    if replaced is None:
        return moved.history
    states = sorted((*moved.history, *replaced.history), key=lambda state: -state.number)
    return tuple(states)[: policy.versions] if policy is not None else moved.history


def make_room(working: Working, policy: HistoryPolicy | None, room: int) -> None:
    """Let past states give way, the oldest first, until they fit into what files leave of `room` bytes."""
    allowed = max(0, room - working.bytes)
    if policy is not None:
        allowed = min(allowed, policy.max_bytes)
    while working.past > allowed:
        record = working.oldest_past()
        if record is None:
            return
        _put_history(working, record, record.history[:-1])


def drop_expired(working: Working, policy: HistoryPolicy, now: int) -> None:
    """Drop every past state that is older than the policy keeps."""
    oldest = oldest_time(policy, now)
    record = working.oldest_past()
    while record is not None and record.history[-1].modified < oldest:
        kept = tuple(state for state in record.history if state.modified >= oldest)
        _put_history(working, record, kept)
        record = working.oldest_past()


def _put_history(working: Working, record: Record, history: tuple[State, ...]) -> None:
    if record.live:
        working.put(record._replace(history=history))
    elif history:
        working.put(deleted(record.path, history))
    else:
        working.remove(record.path)
