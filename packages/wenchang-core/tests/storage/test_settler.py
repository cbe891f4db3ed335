"""The settling loop with a scripted store: each kind of answer, each row of the table, each bound."""

from __future__ import annotations

import multiprocessing
import random
import threading

import pytest

from wenchang.errors import BackendUnavailableError
from wenchang.storage import (
    UNREAD,
    PreconditionFailedError,
    StorageConfigurationError,
    StorageRejectedError,
    StoredObject,
)
from wenchang.storage.outcomes import (
    LINEAGE_LIMIT,
    UNKNOWN_ID,
    Ambiguous,
    Applied,
    Busy,
    Delete,
    Done,
    Found,
    LineageMemory,
    NotSent,
    Refused,
    Rejected,
    RetryPolicy,
    Settler,
    Write,
    decide,
    new_write_id,
)

KEY = "the/key"
OURS = "a" * 20
THEIRS = "b" * 20
RESET = ConnectionResetError("reset")
TIMEOUT = TimeoutError("late")
DENIED = StorageRejectedError("permission", "not allowed")

REPLACE = Write(key=KEY, kind="replace", expected="v1", write_id=OURS)
CREATE = Write(key=KEY, kind="create", expected=None, write_id=OURS)
PUT = Write(key=KEY, kind="put", expected=None, write_id=OURS)
DELETE = Delete(key=KEY, expected="v1")

LOST = Ambiguous(error=RESET)
TIMED_OUT = Ambiguous(error=TIMEOUT, timed_out=True)
BUSY = Busy(error=OSError("slow down"))
NOT_SENT = NotSent(error=ConnectionRefusedError())
REJECTED = Rejected(error=DENIED)


def found(version, write_id=THEIRS, lineage=(), **marks):
    current = StoredObject(b"x", {}, version)
    return Found(current=current, write_id=write_id, lineage=lineage, **marks)


OWN = found("v2", OURS)
STILL = found("v1")
REPLACED = found("v3", THEIRS, ((UNKNOWN_ID, "v1"),))
OURS_REPLACED = found("v3", THEIRS, ((OURS, "v2"), (THEIRS, "v1")))
OTHER = found("v9", THEIRS, ((UNKNOWN_ID, "v8"),))
FOREIGN = found("v9", None)
OWN_EDITED = found("v5", OURS, ((THEIRS, "v1"),), edited=True)
BURIED = found("v3", THEIRS, ((UNKNOWN_ID, "v1"),), tombstone=True)


class Script:
    """A store whose answers were written down before, and a clock that moves when it is told to."""

    def __init__(self, *answers, takes=0.0, policy=None, confirm_refusals=True):
        self.answers = list(answers)
        self.takes = takes
        self.now = 100.0
        self.calls = []
        self.waits = []
        self.given = []
        self.settler = Settler(
            policy or RetryPolicy(),
            confirm_refusals=confirm_refusals,
            clock=lambda: self.now,
            sleep=self.sleep,
            rng=random.Random(1),
        )

    def sleep(self, seconds):
        assert seconds >= 0
        self.waits.append(seconds)
        self.now += seconds

    def answer(self, kind, seconds):
        assert seconds > 0
        self.calls.append(kind)
        self.given.append(seconds)
        self.now += min(self.takes, seconds)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def send(self, seconds):
        answer = self.answer("send", seconds)
        assert not isinstance(answer, Done | Found | None), "the script expected a read-back here"
        return answer

    def read(self, seconds):
        answer = self.answer("read", seconds)
        return Done(value=answer) if answer is None or isinstance(answer, Found) else answer

    def run(self, request):
        call = self.settler.delete if isinstance(request, Delete) else self.settler.write
        return call(request, self.send, self.read)

    def fails(self, request, kind=BackendUnavailableError):
        with pytest.raises(kind) as caught:
            self.run(request)
        assert KEY not in str(caught.value)
        return caught.value


class TestTable:
    """One case for each row, after an ambiguous attempt."""

    @pytest.mark.parametrize("request_", [REPLACE, CREATE, PUT], ids=["replace", "create", "put"])
    def test_out_landed_our_id_is_current(self, request_):
        script = Script(LOST, OWN)
        assert script.run(request_) == "v2"
        assert script.calls == ["send", "read"]

    @pytest.mark.parametrize("request_", [REPLACE, CREATE, PUT], ids=["replace", "create", "put"])
    def test_out_landed_our_id_is_in_the_lineage_of_a_later_write(self, request_):
        assert Script(LOST, OURS_REPLACED).run(request_) == "v2"

    def test_a_replace_whose_version_is_still_current_is_sent_again(self):
        script = Script(LOST, STILL, Applied(version="v2"))
        assert script.run(REPLACE) == "v2"
        assert script.calls == ["send", "read", "send"]

    @pytest.mark.parametrize("request_", [REPLACE, DELETE], ids=["replace", "delete"])
    def test_out_definite_another_write_replaced_the_version(self, request_):
        error = Script(LOST, REPLACED).fails(request_, PreconditionFailedError)
        assert error.current == REPLACED.current
        assert error.key == KEY

    @pytest.mark.parametrize("request_", [REPLACE, DELETE], ids=["replace", "delete"])
    def test_out_definite_the_version_was_replaced_long_ago(self, request_):
        older = tuple((UNKNOWN_ID, f"v{number}") for number in range(16, 0, -1))
        there = found("v17", THEIRS, older)
        error = Script(LOST, there).fails(request_, PreconditionFailedError)
        assert error.current == there.current

    def test_out_definite_a_tombstone_replaced_the_version_and_reads_as_absent(self):
        error = Script(LOST, BURIED).fails(REPLACE, PreconditionFailedError)
        assert error.current is None

    @pytest.mark.parametrize("there", [OTHER, FOREIGN, None], ids=["other", "foreign", "absent"])
    def test_out_unknown_a_replace_that_finds_no_trace_of_its_version(self, there):
        assert Script(LOST, there).fails(REPLACE).outcome == "unknown"

    @pytest.mark.parametrize("request_", [CREATE, PUT], ids=["create", "put"])
    @pytest.mark.parametrize(
        "there", [None, STILL, OTHER, REPLACED], ids=["absent", "v1", "other", "replaced"]
    )
    def test_out_unknown_create_and_put_are_never_sent_again(self, request_, there):
        script = Script(LOST, there)
        assert script.fails(request_).outcome == "unknown"
        assert script.calls == ["send", "read"]

    def test_a_delete_whose_version_is_still_current_is_sent_again(self):
        script = Script(LOST, STILL, Applied(version=""))
        assert script.run(DELETE) is None
        assert script.calls == ["send", "read", "send"]

    def test_out_delete_an_absent_key_is_success(self):
        assert Script(LOST, None).run(DELETE) is None

    @pytest.mark.parametrize("there", [OTHER, FOREIGN], ids=["other", "foreign"])
    def test_out_unknown_a_delete_that_finds_another_write(self, there):
        assert Script(LOST, there).fails(DELETE).outcome == "unknown"

    @pytest.mark.parametrize("request_", [REPLACE, CREATE, PUT, DELETE], ids=lambda r: str(r)[:40])
    def test_out_unknown_the_read_back_fails_until_the_deadline(self, request_):
        script = Script(LOST, LOST, takes=1.0)
        assert script.fails(request_).outcome == "unknown"
        assert script.calls.count("send") == 1
        assert script.calls.count("read") > 5

    def test_out_unknown_an_own_write_that_was_edited_in_place(self):
        assert Script(LOST, OWN_EDITED).fails(REPLACE).outcome == "unknown"
        assert Script(Refused(), OWN_EDITED).fails(REPLACE).outcome == "unknown"


class TestAttempts:
    def test_an_applied_attempt_returns_its_version_and_reads_nothing(self):
        script = Script(Applied(version="v7"))
        assert script.run(PUT) == "v7"
        assert script.calls == ["send"]

    @pytest.mark.parametrize(
        "request_", [REPLACE, CREATE, DELETE], ids=["replace", "create", "del"]
    )
    def test_a_refusal_is_read_back_over_http_and_carries_what_was_read(self, request_):
        script = Script(Refused(), OTHER)
        assert script.fails(request_, PreconditionFailedError).current == OTHER.current
        assert script.calls == ["send", "read"]
        assert Script(Refused(), None).fails(request_, PreconditionFailedError).current is None

    @pytest.mark.parametrize("request_", [REPLACE, CREATE], ids=["replace", "create"])
    @pytest.mark.parametrize("there", [OWN, OURS_REPLACED], ids=["current", "replaced"])
    def test_out_landed_a_refusal_of_ones_own_doubled_request_is_success(self, request_, there):
        assert Script(Refused(), there).run(request_) == "v2"

    def test_a_refusal_is_believed_where_requests_cannot_be_doubled(self):
        script = Script(Refused(), confirm_refusals=False)
        assert script.fails(REPLACE, PreconditionFailedError).current is UNREAD
        assert script.calls == ["send"]

    def test_a_refusal_after_an_ambiguous_attempt_is_read_back_everywhere(self):
        script = Script(LOST, STILL, Refused(), OURS_REPLACED, confirm_refusals=False)
        assert script.run(REPLACE) == "v2"
        assert script.calls == ["send", "read", "send", "read"]

    def test_out_unknown_a_refusal_whose_read_back_fails(self):
        assert Script(Refused(), LOST, takes=1.0).fails(REPLACE).outcome == "unknown"
        assert Script(Refused(), REJECTED).fails(REPLACE).outcome == "unknown"

    @pytest.mark.parametrize("request_", [REPLACE, CREATE, PUT, DELETE], ids=lambda r: str(r)[:40])
    def test_a_rejection_raises_its_own_error_at_once(self, request_):
        script = Script(REJECTED)
        assert script.fails(request_, StorageRejectedError) is DENIED
        assert script.calls == ["send"]

    def test_out_unknown_a_rejection_after_an_ambiguous_attempt_decides_nothing(self):
        error = Script(LOST, STILL, REJECTED).fails(REPLACE)
        assert error.outcome == "unknown"
        assert error.__cause__ is DENIED

    def test_out_unknown_a_rejected_read_back_decides_nothing(self):
        error = Script(LOST, REJECTED).fails(REPLACE)
        assert error.outcome == "unknown"
        assert error.__cause__ is DENIED

    @pytest.mark.parametrize("busy", [BUSY, NOT_SENT], ids=["busy", "not_sent"])
    @pytest.mark.parametrize("request_", [REPLACE, CREATE, PUT, DELETE], ids=lambda r: str(r)[:40])
    def test_out_busy_what_was_not_applied_is_sent_again_without_a_read(self, request_, busy):
        script = Script(busy, busy, Applied(version="v2"))
        script.run(request_)
        assert script.calls == ["send", "send", "send"]
        assert len(script.waits) == 2

    @pytest.mark.parametrize("busy", [BUSY, NOT_SENT], ids=["busy", "not_sent"])
    def test_out_unknown_not_applied_is_said_only_when_no_attempt_was_ambiguous(self, busy):
        assert Script(busy, takes=1.0).fails(PUT).outcome == "not_applied"
        assert Script(LOST, STILL, busy, takes=1.0).fails(REPLACE).outcome == "unknown"

    @pytest.mark.parametrize("request_", [CREATE, PUT], ids=["create", "put"])
    def test_a_create_or_put_that_was_busy_first_is_not_sent_again_once_ambiguous(self, request_):
        script = Script(BUSY, LOST, None)
        assert script.fails(request_).outcome == "unknown"
        assert script.calls == ["send", "send", "read"]

    def test_an_unconditional_put_never_ends_as_a_conflict(self):
        assert Script(Refused(), OTHER).fails(PUT).outcome == "unknown"

    @pytest.mark.parametrize(
        ("answer", "reason"),
        [(LOST, "unavailable"), (TIMED_OUT, "timeout"), (NOT_SENT, "unavailable")],
        ids=["reset", "timeout", "refused"],
    )
    def test_the_reason_and_the_cause_are_those_of_the_last_attempt(self, answer, reason):
        error = Script(answer, answer, takes=1.0).fails(REPLACE)
        assert error.reason == reason
        assert error.__cause__ is answer.error


class TestReads:
    def test_a_read_is_repeated_until_it_is_answered(self):
        script = Script(LOST, BUSY, NOT_SENT, None)
        assert script.settler.read(script.read) is None
        assert script.calls == ["read"] * 4

    def test_a_rejected_read_raises_its_own_error(self):
        script = Script(REJECTED)
        with pytest.raises(StorageRejectedError):
            script.settler.read(script.read)

    def test_a_read_that_is_never_answered_changed_nothing(self):
        script = Script(TIMED_OUT, takes=1.0)
        with pytest.raises(BackendUnavailableError) as caught:
            script.settler.read(script.read)
        assert (caught.value.reason, caught.value.outcome) == ("timeout", "not_applied")


class TestBounds:
    @pytest.mark.parametrize("takes", [0.0, 0.3, 9.0, 1000.0])
    @pytest.mark.parametrize("answer", [BUSY, LOST, NOT_SENT], ids=["busy", "lost", "not_sent"])
    def test_out_bounded_a_call_ends_within_the_deadline(self, answer, takes):
        policy = RetryPolicy(deadline=20.0, attempt_timeout=6.0)
        script = Script(answer, answer, takes=takes, policy=policy)
        script.fails(REPLACE)
        assert script.now - 100.0 <= 20.0
        assert max(script.given) <= 6.0

    @pytest.mark.parametrize("deadline", [1.0, 5.0, 30.0])
    def test_out_bounded_an_attempt_leaves_time_for_the_read_back(self, deadline):
        policy = RetryPolicy(deadline=deadline, attempt_timeout=60.0)
        script = Script(TIMED_OUT, OWN, takes=1000.0, policy=policy)
        assert script.run(REPLACE) == "v2"

    def test_out_unknown_no_write_is_sent_that_could_only_time_out(self):
        """It would turn what was certainly not applied into what is not known."""
        policy = RetryPolicy(deadline=10.0, attempt_timeout=1.0)
        script = Script(BUSY, takes=0.19, policy=policy)
        assert script.fails(REPLACE).outcome == "not_applied"
        assert len(script.given) > 5
        assert min(script.given) >= 0.2
        assert 110.0 - script.now < 2.5

    def test_waits_grow_are_random_and_never_exceed_the_cap(self):
        policy = RetryPolicy(deadline=1000.0, backoff_base=0.1, backoff_cap=2.0)
        script = Script(BUSY, policy=policy)
        script.fails(PUT)
        for number, wait in enumerate(script.waits):
            assert wait <= min(2.0, 0.1 * 2.0**number)
        assert len(set(script.waits)) == len(script.waits)
        assert max(script.waits) > 1.0

    def test_a_wait_that_the_service_asks_for_is_kept(self):
        busy = Busy(error=OSError(), retry_after=7.5)
        script = Script(busy, Applied(version="v2"))
        script.run(PUT)
        assert script.waits == [7.5]

    @pytest.mark.parametrize("retry_after", [30.0, 1e9, float("inf")])
    def test_out_bounded_a_wait_beyond_the_deadline_is_not_begun(self, retry_after):
        script = Script(Busy(error=OSError(), retry_after=retry_after))
        assert script.fails(PUT).outcome == "not_applied"
        assert script.waits == []

    @pytest.mark.parametrize("retry_after", [-5.0, 0.0, float("nan")])
    def test_a_wait_that_makes_no_sense_is_ignored(self, retry_after):
        script = Script(Busy(error=OSError(), retry_after=retry_after), Applied(version="v2"))
        script.run(PUT)
        assert 0 <= script.waits[0] <= 0.05

    @pytest.mark.parametrize(
        "option", ["deadline", "attempt_timeout", "backoff_base", "backoff_cap"]
    )
    @pytest.mark.parametrize(
        "value", [0, -1, float("nan"), float("inf"), 1e300, True, "5", None], ids=str
    )
    def test_init_fail_a_bound_that_is_no_positive_number_is_named(self, option, value):
        with pytest.raises(StorageConfigurationError, match=f"'{option}'"):
            RetryPolicy(**{option: value})


class TestLineages:
    def test_the_first_pair_is_the_replaced_version_even_when_nothing_is_remembered(self):
        assert LineageMemory().lineage_for_replace(KEY, "v1") == ((UNKNOWN_ID, "v1"),)

    def test_what_was_read_or_written_is_continued(self):
        memory = LineageMemory()
        memory.remember(KEY, "v2", OURS, ((THEIRS, "v1"),))
        assert memory.lineage_for_replace(KEY, "v2") == ((OURS, "v2"), (THEIRS, "v1"))
        assert memory.lineage_for_replace("another/key", "v2") == ((UNKNOWN_ID, "v2"),)

    def test_an_object_that_is_not_ours_starts_no_lineage(self):
        memory = LineageMemory()
        memory.remember(KEY, "v2", None, ((THEIRS, "v1"),))
        assert memory.lineage_for_replace(KEY, "v2") == ((UNKNOWN_ID, "v2"),)

    def test_a_lineage_never_exceeds_its_limit_and_keeps_the_newest(self):
        memory = LineageMemory()
        lineage = ()
        for number in range(40):
            memory.remember(KEY, f"v{number}", OURS, lineage)
            lineage = memory.lineage_for_replace(KEY, f"v{number}")
            assert len(lineage) == min(number + 1, LINEAGE_LIMIT)
            assert [version for _, version in lineage] == [
                f"v{n}" for n in range(number, number - len(lineage), -1)
            ]

    def test_the_memory_is_bounded_and_forgets_the_oldest(self):
        memory = LineageMemory(max_entries=2)
        for number in range(4):
            memory.remember(KEY, f"v{number}", OURS, ())
        assert memory.lineage_for_replace(KEY, "v1") == ((UNKNOWN_ID, "v1"),)
        assert memory.lineage_for_replace(KEY, "v3") == ((OURS, "v3"),)

    # Newer Pythons warn of exactly what is tested here: fork while other threads run.
    @pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
    def test_fork_a_child_can_use_a_memory_whose_lock_was_held_in_the_parent(self):
        memory = LineageMemory()
        memory.remember(KEY, "v1", OURS, ())
        held, release = threading.Event(), threading.Event()

        def hold():
            with memory._lock:
                held.set()
                release.wait(60)

        holder = threading.Thread(target=hold)
        holder.start()
        try:
            assert held.wait(60)
            child = multiprocessing.get_context("fork").Process(
                target=lambda: memory.remember(KEY, *_next_version(memory))
            )
            child.start()
            child.join(60)
            assert child.exitcode == 0
        finally:
            release.set()
            holder.join(60)

    def test_threads_may_share_a_memory(self):
        memory = LineageMemory(max_entries=50)
        barrier = threading.Barrier(4)
        failures = []

        def work(name):
            try:
                barrier.wait(60)
                for number in range(300):
                    memory.remember(name, f"v{number}", OURS, ())
                    memory.lineage_for_replace(name, f"v{number}")
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(f"k{n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert failures == []
        assert len(memory._entries) == 50


def _next_version(memory):
    lineage = memory.lineage_for_replace(KEY, "v1")
    assert lineage == ((OURS, "v1"),)
    return "v2", THEIRS, lineage


def test_write_ids_are_eighty_random_bits():
    made = {new_write_id() for _ in range(1000)}
    assert len(made) == 1000
    assert all(len(write_id) == 20 and int(write_id, 16) >= 0 for write_id in made)


def test_a_predecessor_is_recognised_by_version_and_never_by_id():
    copied = found("v9", THEIRS, ((OURS[:-1] + "c", "v8"),))
    assert decide(REPLACE, copied, ambiguous=True).outcome == "unknown"
