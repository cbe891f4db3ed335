"""Two agents that work on one memory: what each does, and what it was promised.

An agent here is a script, not a model, but it behaves as the memory prompt asks: it loads the index
first, names the version it read with every change, and answers a conflict by merging into the text
that came back with it.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp import Client

Payload = dict[str, Any]


@dataclass(slots=True)
class Ledger:
    """What the agents were told: the acknowledged lines of each file, and what happened."""

    promised: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)
    events: Counter[str] = field(default_factory=Counter)

    def promise(self, scope: str, area: str, name: str, line: str) -> None:
        """Remember that the server acknowledged `line`."""
        self.promised.setdefault((scope, area, name), []).append(line)


class UnexpectedAnswerError(Exception):
    """The server answered in a way that the demo did not ask for."""


class Agent:
    """One MCP client with a name and the habits that the memory prompt teaches."""

    def __init__(self, name: str, client: Client, ledger: Ledger, seed: int) -> None:
        """Wrap a connected client."""
        self.name = name
        self._client = client
        self._ledger = ledger
        self._random = random.Random(seed)

    async def call(self, tool: str, **arguments: object) -> Payload:
        """Call one tool; return its payload, also when it is a rendered error."""
        result = await self._client.call_tool(tool, arguments)
        payload = result.structured_content
        if not isinstance(payload, dict):
            msg = f"{tool} answered without structured content"
            raise UnexpectedAnswerError(msg)
        self._ledger.events[tool] += 1
        if result.is_error:
            self._ledger.events[str(payload["error"])] += 1
        return payload

    async def must(self, tool: str, **arguments: object) -> Payload:
        """Call one tool that has to succeed."""
        payload = await self.call(tool, **arguments)
        if "error" in payload:
            msg = f"{tool} was refused: {payload['message']}"
            raise UnexpectedAnswerError(msg)
        return payload

    async def append(self, scope: str, area: str, name: str, line: str) -> int:
        """Append a line, merging on conflict until it is acknowledged; return the conflicts met."""
        where = {"scope": scope, "area": area, "name": name}
        version = (await self.must("read_file", **where))["version"]
        conflicts = 0
        while True:
            answer = await self.call("append_line", **where, line=line, expected_version=version)
            if "error" not in answer:
                self._ledger.promise(scope, area, name, line)
                return conflicts
            if answer["error"] == "VersionConflictError":
                # The conflict brings the current version, so no second read is needed.
                conflicts += 1
                version = answer["version"]
            elif answer.get("outcome") == "unknown":
                current = await self.must("read_file", **where)
                if line in current["content"].splitlines():
                    self._ledger.promise(scope, area, name, line)
                    return conflicts
                version = current["version"]
            else:
                msg = f"append_line was refused: {answer['message']}"
                raise UnexpectedAnswerError(msg)

    async def replace_fact(self, scope: str, area: str, name: str, old: str, new: str) -> Payload:
        """Replace one fact at the version read first; the store re-applies it if that moved."""
        where = {"scope": scope, "area": area, "name": name}
        version = (await self.must("read_file", **where))["version"]
        answer = await self.must(
            "replace_fact", **where, old_string=old, new_string=new, expected_version=version
        )
        self._ledger.promise(scope, area, name, new)
        return answer

    async def rewrite(self, scope: str, area: str, name: str, line: str, version: str) -> int:
        """Rewrite a whole file with one more line, merging on conflict; return the conflicts met."""
        where = {"scope": scope, "area": area, "name": name}
        current = await self.must("read_file", **where)
        content, conflicts = current["content"], 0
        while True:
            answer = await self.call(
                "write_file",
                **where,
                content=f"{content}{line}\n",
                description=current["description"],
                aliases=current["aliases"],
                expected_version=version,
            )
            if "error" not in answer:
                self._ledger.promise(scope, area, name, line)
                return conflicts
            if answer["error"] != "VersionConflictError":
                msg = f"write_file was refused: {answer['message']}"
                raise UnexpectedAnswerError(msg)
            conflicts += 1
            content, version, current = answer["content"], answer["version"], answer

    def thought(self, about: str, number: int) -> str:
        """Invent a fact line that no other call writes."""
        label = self._random.choice(("stated", "observed", "inferred"))
        return f"- [{label}] {self.name} note {number} on {about}."
