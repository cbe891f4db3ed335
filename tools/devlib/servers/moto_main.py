"""moto's S3 on one loopback port, with its check and its write under one lock.

Runs inside moto's environment: `python moto_main.py PORT`. moto compares a condition and stores the
object in two steps without a lock, so that under load two writers can both win; a test of ours
would look guilty of that.
"""

from __future__ import annotations

import functools
import signal
import sys
import threading
from typing import Any

from moto.s3 import responses
from moto.server import ThreadedMotoServer

LOCKED = (
    "copy_object",
    "delete_object",
    "get_object",
    "head_object",
    "list_objects_v2",
    "put_object",
)


def serialise() -> None:
    """Run the methods of S3's answers one at a time; a renamed one raises AttributeError."""
    lock = threading.RLock()

    def locked(method: Any) -> Any:
        @functools.wraps(method)
        def alone(*args: Any, **kwargs: Any) -> Any:
            with lock:
                return method(*args, **kwargs)

        return alone

    for name in LOCKED:
        setattr(responses.S3Response, name, locked(getattr(responses.S3Response, name)))


def main() -> None:
    """Serve until the process is told to end."""
    serialise()
    server = ThreadedMotoServer("127.0.0.1", int(sys.argv[1]), verbose=False)
    server.start()
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    server.stop()


if __name__ == "__main__":
    main()
