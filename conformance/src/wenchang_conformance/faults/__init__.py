"""Loopback proxies that lose, delay, double and spoil answers on purpose.

`FaultProxy` stands in front of an HTTP service, `StreamProxy` in front of a database. Both take a
script of rules that say which request meets which fault, count and log what they see, and leave no
thread or socket behind when they are closed.
"""

from __future__ import annotations

from wenchang_conformance.faults.coded import azure_error, gcs_error, s3_error
from wenchang_conformance.faults.http import FaultProxy
from wenchang_conformance.faults.kinds import Fault
from wenchang_conformance.faults.log import LogEntry, RequestLog
from wenchang_conformance.faults.messages import Request
from wenchang_conformance.faults.mysql import MySQL
from wenchang_conformance.faults.postgresql import PostgreSQL
from wenchang_conformance.faults.script import Chaos, Rule, Steps, matching
from wenchang_conformance.faults.streams import StreamProxy
from wenchang_conformance.faults.wire import (
    Statement,
    UnreadableStreamError,
    carrying,
    is_commit,
    statements,
)

__all__ = [
    "Chaos",
    "Fault",
    "FaultProxy",
    "LogEntry",
    "MySQL",
    "PostgreSQL",
    "Request",
    "RequestLog",
    "Rule",
    "Statement",
    "Steps",
    "StreamProxy",
    "UnreadableStreamError",
    "azure_error",
    "carrying",
    "gcs_error",
    "is_commit",
    "matching",
    "s3_error",
    "statements",
]
