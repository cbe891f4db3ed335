"""Handles in other processes.

The child is a plain Python process that runs `wenchang_conformance.worker` and speaks pickles over
its standard streams: no fork of a process with threads, and no need for the caller's main module to
be importable.
"""

from __future__ import annotations

import os
import pickle
import select
import subprocess
import sys
from typing import IO, TYPE_CHECKING, Any, Final

from wenchang_conformance.hooks import Recipe

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from wenchang.storage import ListedObject, StoredObject

__all__ = ["SpawnedStorage"]

_ANSWER_SECONDS: Final = 120.0


class SpawnedStorage:
    """A storage handle that lives in a process of its own; calls are carried out there."""

    def __init__(self, recipe: Recipe) -> None:
        """Start the process and open the handle.

        Raises what opening raised in the child, or RuntimeError if the child died.
        """
        environment = dict(os.environ)
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "wenchang_conformance.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        try:
            self.send(recipe)
            self.receive()
        except BaseException:
            self.kill()
            raise

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def get(self, key: str) -> StoredObject | None:
        """Call `get` in the child."""
        found: StoredObject | None = self._call("get", key)
        return found

    def put(self, key: str, data: bytes, metadata: Mapping[str, str]) -> str:
        """Call `put` in the child."""
        version: str = self._call("put", key, data, dict(metadata))
        return version

    def put_if_version(
        self, key: str, data: bytes, metadata: Mapping[str, str], expected: str | None
    ) -> str:
        """Call `put_if_version` in the child."""
        version: str = self._call("put_if_version", key, data, dict(metadata), expected)
        return version

    def delete_if_version(self, key: str, expected: str) -> None:
        """Call `delete_if_version` in the child."""
        self._call("delete_if_version", key, expected)

    def list_page(self, prefix: str, start_after: str | None, limit: int) -> Sequence[ListedObject]:
        """Call `list_page` in the child."""
        page: Sequence[ListedObject] = self._call("list_page", prefix, start_after, limit)
        return page

    def start(self, task: Callable[..., object], *arguments: object) -> None:
        """Let the child run `task(storage, *arguments)`; `receive` returns its value.

        `task` is a function of an importable module.
        """
        self.send((task, arguments))

    def run(self, task: Callable[..., object], *arguments: object) -> Any:
        """Run `task(storage, *arguments)` in the child and return its value."""
        self.start(task, *arguments)
        return self.receive()

    def send(self, message: object) -> None:
        """Send one message to the child."""
        try:
            pickle.dump(message, self._pipe(self._process.stdin))
            self._pipe(self._process.stdin).flush()
        except BrokenPipeError:
            # The child's last words, if any, are read by `receive`.
            return

    def receive(self) -> Any:
        """Return the child's next answer, or raise the error it sent.

        Raises RuntimeError if the child died, TimeoutError if it does not answer.
        """
        pipe = self._pipe(self._process.stdout)
        ready, _, _ = select.select([pipe], [], [], _ANSWER_SECONDS)
        if not ready:
            msg = f"the handle in another process did not answer within {_ANSWER_SECONDS:g} seconds"
            raise TimeoutError(msg)
        try:
            kind, value = pickle.load(pipe)  # noqa: S301 - from our own child
        except (EOFError, pickle.UnpicklingError):
            code = self._process.wait(10)
            msg = f"the process with the other handle ended with exit status {code}"
            raise RuntimeError(msg) from None
        if kind == "error":
            raise value
        return value

    def kill(self) -> None:
        """Kill the process with SIGKILL, as `kill -9` does, and wait for its end."""
        self._process.kill()
        self._process.wait(10)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue

    def close(self) -> None:
        """Let the child close its handle and end; kill it if it does not."""
        if self._process.poll() is None:
            try:
                self._pipe(self._process.stdin).close()
                self._process.wait(10)
            except (BrokenPipeError, subprocess.TimeoutExpired):
                pass
        self.kill()

    def _call(self, method: str, *arguments: object) -> Any:
        self.send((method, arguments))
        return self.receive()

    @staticmethod
    def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
        if pipe is None:
            msg = "the process was started without a pipe"
            raise RuntimeError(msg)
        return pipe
