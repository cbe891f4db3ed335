"""A memory server as an adopter would write one; the transport tests start it as a process.

`python server_for_tests.py stdio` serves on stdin and stdout, `... http` on a free loopback port,
whose number is the first line on stdout. Over HTTP the credential is the header `x-token`.
"""

from __future__ import annotations

import socket
import sys

from wenchang.core import MemoryStore
from wenchang.identity import Identity, ResolutionFailure, ScopeGrant
from wenchang.mcp import build_server
from wenchang.prompts import PromptSlots
from wenchang.scope import ScopePolicy
from wenchang.storage.memory import InMemoryStorage
from wenchang.transport import InProcessClient


class Resolver:
    """Grants by token: two people who share a team."""

    def resolve(self, token):
        if token not in {"anna", "ben"}:
            return ResolutionFailure("unknown token")
        return Identity(
            {
                "user": ScopeGrant(f"zq-sentinel-{token}", "owner"),
                "team": ScopeGrant("zq-sentinel-team", "member"),
            }
        )


def credentials(context):
    return "anna" if context.headers is None else context.headers.get("x-token")


def main() -> None:
    server = build_server(
        slots=PromptSlots("Notes.", "user is private; team is shared.", "preferences"),
        client=InProcessClient(MemoryStore(InMemoryStorage())),
        resolver=Resolver(),
        policy=ScopePolicy({}),
        credentials_from_context=credentials,
        source="process",
    )
    if sys.argv[1] == "stdio":
        server.run("stdio")
        return
    import uvicorn

    with socket.create_server(("127.0.0.1", 0)) as listener:
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        application = server.streamable_http_app()
        configuration = uvicorn.Config(application, log_level="warning", access_log=False)
        uvicorn.Server(configuration).run(sockets=[listener])


if __name__ == "__main__":
    main()
