"""The conditions that fake-gcs-server ignores, added in front of it.

`python gcs_proxy.py PORT UPSTREAM_PORT`. The emulator honours `ifGenerationMatch` on uploads only;
on delete, patch and download it ignores every condition. This proxy looks the generation up and
answers 412 or 304 itself. All writes pass one lock, so that looking and writing are one step.
"""

from __future__ import annotations

import http.client
import json
import sys
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

_NOT_FORWARDED = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}
_WRITES = {"DELETE", "PATCH", "POST", "PUT"}


def unmet(query: dict[str, list[str]], generation: int, metageneration: int) -> int | None:
    """Return the status that answers a condition which does not hold, else None."""
    have = {"Generation": generation, "Metageneration": metageneration}
    for field, value in have.items():
        if (wanted := query.get(f"if{field}Match")) and int(wanted[0]) != value:
            return 412
        if (unwanted := query.get(f"if{field}NotMatch")) and int(unwanted[0]) == value:
            return 304
    return None


class Proxy(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    # Head and body leave as one packet; two would wait 40 ms for each other.
    wbufsize = -1
    disable_nagle_algorithm = True
    upstream: ClassVar[int]
    writes: ClassVar[threading.Lock] = threading.Lock()

    def handle_request(self) -> None:
        """Forward one request, unless one of its conditions does not hold."""
        body = self._body()
        if self.command in _WRITES:
            with self.writes:
                self._answer(body)
        else:
            self._answer(body)

    do_DELETE = do_GET = do_HEAD = handle_request  # noqa: N815 # the names that http.server calls
    do_PATCH = do_POST = do_PUT = handle_request  # noqa: N815 # as above

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            chunks = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass  # trailers
            return b"".join(chunks)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _answer(self, body: bytes) -> None:
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query, keep_blank_values=True)
        _, is_object, name = url.path.partition("/o/")
        conditional = any(key.startswith("if") for key in query)
        if is_object and name and conditional and "/upload/" not in url.path:
            found = self._look(url.path.replace("/download/storage/", "/storage/", 1))
            if found is not None and (status := unmet(query, *found)):
                self._refuse(status)
                return
        self._forward(body)

    def _look(self, path: str) -> tuple[int, int] | None:
        """Return generation and metageneration of an object, None where it is absent."""
        status, _, data = self._upstream("GET", path, {}, b"")
        if status != http.client.OK:
            return None
        record: dict[str, Any] = json.loads(data)
        return int(record["generation"]), int(record.get("metageneration", 1))

    def _upstream(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.upstream, timeout=60)
        try:
            connection.request(method, path, body=body or None, headers=headers)
            response = connection.getresponse()
            return response.status, response.getheaders(), response.read()
        finally:
            connection.close()

    def _forward(self, body: bytes) -> None:
        headers = {k: v for k, v in self.headers.items() if k.lower() not in _NOT_FORWARDED}
        if self.command in _WRITES:
            headers["Content-Length"] = str(len(body))
        self._send(*self._upstream(self.command, self.path, headers, body))

    def _refuse(self, status: int) -> None:
        message = "At least one of the pre-conditions you specified did not hold."
        reasons = [{"reason": "conditionNotMet", "message": message}]
        error = {"code": status, "message": message, "errors": reasons}
        body = b"" if status == http.client.NOT_MODIFIED else json.dumps({"error": error}).encode()
        self._send(status, [("Content-Type", "application/json")], body)

    def _send(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in _NOT_FORWARDED:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing; the tests report what matters."""


class Server(ThreadingHTTPServer):
    """Many clients at once; a burst of connections waits instead of being refused."""

    daemon_threads = True
    request_queue_size = 256


def main() -> None:
    """Serve until the process is told to end."""
    port, Proxy.upstream = int(sys.argv[1]), int(sys.argv[2])
    Server(("127.0.0.1", port), Proxy).serve_forever()


if __name__ == "__main__":
    main()
