"""Recording what concurrent clients do to a storage, and checking that one order explains it all.

    recorder = Recorder()
    clients = [RecordingStorage(make_storage(), recorder, client=str(n)) for n in range(8)]
    ...  # use the clients from as many threads, every write with bytes of its own
    assert_linearizable(recorder.history())

Histories of several processes are merged by the machine's monotonic clock; a journal keeps the
history of a process that is killed.
"""

from __future__ import annotations

from wenchang_conformance.linearizability.checker import (
    KeyReport,
    Report,
    Verdict,
    assert_linearizable,
    check,
)
from wenchang_conformance.linearizability.operations import (
    SOME,
    History,
    Kind,
    Operation,
    Outcome,
    Presence,
)
from wenchang_conformance.linearizability.recorder import Pending, Recorder
from wenchang_conformance.linearizability.recording import RecordingStorage

__all__ = [
    "SOME",
    "History",
    "KeyReport",
    "Kind",
    "Operation",
    "Outcome",
    "Pending",
    "Presence",
    "Recorder",
    "RecordingStorage",
    "Report",
    "Verdict",
    "assert_linearizable",
    "check",
]
