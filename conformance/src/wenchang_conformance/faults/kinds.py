"""The faults a proxy can inject, as values.

A fault says what happens to one request (or one database statement) and nothing else; which
request it happens to is the script's business. Build faults with the constructors of `Fault`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

CONDITIONAL_HEADERS = frozenset(
    {
        "if-match",
        "if-none-match",
        "if-modified-since",
        "if-unmodified-since",
        "x-goog-if-generation-match",
        "x-goog-if-metageneration-match",
    }
)
"""Request headers that carry a precondition of S3, Azure or GCS (lower case)."""

CONDITIONAL_PARAMETERS = frozenset(
    {
        "ifGenerationMatch",
        "ifGenerationNotMatch",
        "ifMetagenerationMatch",
        "ifMetagenerationNotMatch",
    }
)
"""Query parameters that carry a precondition of GCS's JSON interface."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to one request.

    `applies` is True when the server has processed the request by the time the client learns
    anything, so an interloper has a moment to act in. `streams` is True when the fault also makes
    sense on a database connection (`StreamProxy`); the others are for HTTP only.
    """

    applies: ClassVar[bool] = True
    streams: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The fault's name in logs: the class's name."""
        return type(self).__name__

    @staticmethod
    def pass_through() -> Fault:
        """Forward the request and give back the answer, both unharmed."""
        return PassThrough()

    @staticmethod
    def drop_request(*, reset: bool = True) -> Fault:
        """Cut the client off without forwarding anything: the write did not happen.

        `reset` sends a TCP reset; otherwise the connection ends with an orderly close.
        """
        return DropRequest(reset=reset)

    @staticmethod
    def drop_answer(*, reset: bool = True) -> Fault:
        """Let the server apply the request, read its whole answer, then cut the client off."""
        return DropAnswer(reset=reset)

    @staticmethod
    def cut_after_answer(*, reset: bool = False) -> Fault:
        """Deliver the whole answer, then end a connection the client believes to be alive."""
        return CutAfterAnswer(reset=reset)

    @staticmethod
    def answer_in_front(
        status: int, *, headers: tuple[tuple[str, str], ...] = (), body: bytes = b""
    ) -> Fault:
        """Answer with this status in place of the server, which never sees the request.

        With the provider's own error body this is a *coded* refusal, bare it is what a load
        balancer says.
        """
        return AnswerInFront(status=status, headers=headers, body=body)

    @staticmethod
    def answer_after(
        status: int, *, headers: tuple[tuple[str, str], ...] = (), body: bytes = b""
    ) -> Fault:
        """Let the server apply the request, then give this answer in place of the server's."""
        return AnswerAfter(status=status, headers=headers, body=body)

    @staticmethod
    def truncate_body(*, keep: int | None = None, reset: bool = False) -> Fault:
        """Give the answer's whole head and its first `keep` body bytes (half if None), then end.

        An answer without a body cannot be truncated and passes unharmed.
        """
        return TruncateBody(keep=keep, reset=reset)

    @staticmethod
    def tear_head(*, header: str | None = None, keep: int = 6, reset: bool = False) -> Fault:
        """End the connection inside the answer's head.

        With `header`, right after the first `keep` characters of that header's value (a torn
        version); without it, or if the answer has no such header, in the middle of the head.
        """
        return TearHead(header=header, keep=keep, reset=reset)

    @staticmethod
    def hang(*, applied: bool = False) -> Fault:
        """Never answer. The connection stays open until the client leaves or the proxy closes.

        With `applied` the server processes the request first.
        """
        return HangApplied() if applied else Hang()

    @staticmethod
    def delay(seconds: float, *, applied: bool = False) -> Fault:
        """Wait before forwarding the request or, with `applied`, before giving the answer."""
        return Delay(seconds=seconds, applied=applied)

    @staticmethod
    def hold(*, applied: bool = False) -> Fault:
        """As `delay`, until `release()` is called on the proxy."""
        return Delay(seconds=None, applied=applied)

    @staticmethod
    def drip(*, interval: float = 0.05, size: int = 1) -> Fault:
        """Give the answer `size` bytes at a time with `interval` seconds between them."""
        return Drip(interval=interval, size=size)

    @staticmethod
    def deliver_late(*, after: float | None = None, reset: bool = True) -> Fault:
        """Cut the client off at once and forward its request later.

        Later means after `after` seconds, or when `release()` is called on the proxy. What is
        still held when the proxy closes is never delivered.
        """
        return DeliverLate(after=after, reset=reset)

    @staticmethod
    def deliver_twice(*, answer: Literal["first", "second"] = "second") -> Fault:
        """Send the request to the server twice and give the client one of the two answers."""
        return DeliverTwice(answer=answer)

    @staticmethod
    def strip_conditions(
        *,
        headers: frozenset[str] = CONDITIONAL_HEADERS,
        parameters: frozenset[str] = CONDITIONAL_PARAMETERS,
    ) -> Fault:
        """Forward the request without its preconditions, as a careless intermediary does."""
        return StripConditions(
            headers=frozenset(name.lower() for name in headers), parameters=parameters
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PassThrough(Fault):
    """See `Fault.pass_through`."""

    streams: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DropRequest(Fault):
    """See `Fault.drop_request`."""

    applies: ClassVar[bool] = False
    streams: ClassVar[bool] = True
    reset: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DropAnswer(Fault):
    """See `Fault.drop_answer`."""

    streams: ClassVar[bool] = True
    reset: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CutAfterAnswer(Fault):
    """See `Fault.cut_after_answer`."""

    streams: ClassVar[bool] = True
    reset: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerInFront(Fault):
    """See `Fault.answer_in_front`."""

    applies: ClassVar[bool] = False
    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerAfter(Fault):
    """See `Fault.answer_after`."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncateBody(Fault):
    """See `Fault.truncate_body`."""

    keep: int | None = None
    reset: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TearHead(Fault):
    """See `Fault.tear_head`."""

    header: str | None = None
    keep: int = 6
    reset: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Hang(Fault):
    """See `Fault.hang`: the server never sees the request."""

    applies: ClassVar[bool] = False
    streams: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class HangApplied(Fault):
    """See `Fault.hang`: the server has applied the request."""

    streams: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay(Fault):
    """See `Fault.delay` and `Fault.hold`; `seconds=None` waits for `release()`."""

    streams: ClassVar[bool] = True
    seconds: float | None
    applied: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Drip(Fault):
    """See `Fault.drip`."""

    interval: float = 0.05
    size: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverLate(Fault):
    """See `Fault.deliver_late`."""

    applies: ClassVar[bool] = False
    streams: ClassVar[bool] = True
    after: float | None = None
    reset: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverTwice(Fault):
    """See `Fault.deliver_twice`."""

    answer: Literal["first", "second"] = "second"


@dataclass(frozen=True, slots=True, kw_only=True)
class StripConditions(Fault):
    """See `Fault.strip_conditions`."""

    headers: frozenset[str] = CONDITIONAL_HEADERS
    parameters: frozenset[str] = CONDITIONAL_PARAMETERS
