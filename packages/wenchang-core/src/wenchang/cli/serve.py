"""`wenchang serve`: the memory tools, the file tools or both, over stdio or streamable HTTP.

Everything that can be refused is refused before the storage is opened, so that a wrong call leaves
nothing behind.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from wenchang.config import (
    Config,
    ConfigurationError,
    choose_storage,
    default_grants,
    load_config,
    parse_grant,
)
from wenchang.core import MemoryStore
from wenchang.errors import BackendUnavailableError
from wenchang.identity import Identity, SandboxResolver, ScopeGrant
from wenchang.scope import ScopePolicy
from wenchang.storage import Storage, StorageError, open_storage
from wenchang.storage.memory import InMemoryStorage
from wenchang.transport import InProcessClient

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from wenchang.files.accounts import FileAccounts

__all__ = ["serve"]

_MEMORY: Final = "memory"
_BOTH: Final = "both"
_LOOPBACK_NAMES: Final = ("localhost",)


@click.command()
@click.option("--storage", "storage_url", metavar="URL", help="Where the memory lies.")
@click.option(
    "--config",
    "config_path",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Read this configuration file.",
)
@click.option(
    "--scope",
    "scopes",
    metavar="NAME=ENTITY[:ROLE]",
    multiple=True,
    help="Grant a scope; repeatable. Default: user=<login name>:owner.",
)
@click.option(
    "--tools",
    "tools",
    type=click.Choice(("memory", "files", "both")),
    default="memory",
    show_default=True,
    help="Which tools to serve.",
)
@click.option(
    "--http",
    "http",
    metavar="HOST:PORT",
    help="Serve streamable HTTP on this loopback address instead of stdio.",
)
def serve(
    storage_url: str | None,
    config_path: Path | None,
    scopes: tuple[str, ...],
    tools: str,
    http: str | None,
) -> int:
    """Serve memory and files to MCP clients, over stdio by default."""
    try:
        config = load_config(config_path, os.environ)
        identity = _identity(config, scopes)
        if tools != _MEMORY:
            _check_files(config, identity)
        choice = choose_storage(storage_url, os.environ, config)
        listener = _listen(http) if http is not None else None
    except (ConfigurationError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    try:
        # What the settings alone can make fail, fails before the real storage makes a folder or a file.
        _server(config, identity, InMemoryStorage(), tools)
        storage = open_storage(
            choice.url, options=choice.options, provider=choice.provider, source=choice.source
        )
        server = _server(config, identity, storage, tools)
        _prepare(storage, choice.url)
    except (StorageError, BackendUnavailableError, ImportError, ValueError) as error:
        if listener is not None:
            listener.close()
        raise click.ClickException(_one_line(error)) from error
    try:
        if listener is None:
            server.run("stdio")
        else:
            _serve_http(server, listener)
    finally:
        close = getattr(storage, "close", None)
        if close is not None:
            close()
    return 0


def _identity(config: Config, scopes: tuple[str, ...]) -> Identity:
    """Build the one identity of a local server: flags, else the file, else the login name."""
    grants: dict[str, ScopeGrant] = {}
    for text in scopes:
        name, grant = parse_grant(text, where="--scope")
        if name in grants:
            msg = f"--scope names the scope {name!r} twice"
            raise ConfigurationError(msg)
        grants[name] = grant
    return Identity(grants or dict(config.grants) or default_grants())


def _check_files(config: Config, identity: Identity) -> None:
    """Refuse to serve file tools to an identity that has no files."""
    scope = config.files.scope
    if scope not in identity.grants:
        msg = f"--tools: files belong to the scope '{scope}'; grant it with --scope {scope}=ENTITY"
        raise ConfigurationError(msg)


def _server(config: Config, identity: Identity, storage: Storage, tools: str) -> MCPServer:
    """Assemble the MCP server with the tools that were asked for."""
    from wenchang.files.accounts import FileAccounts
    from wenchang.mcp import build_file_server

    files = None if tools == _MEMORY else FileAccounts(storage, config.files)
    if files is None or tools == _BOTH:
        return _memory_server(config, identity, storage, files)
    return build_file_server(
        files=files,
        resolver=SandboxResolver(identity),
        policy=ScopePolicy(dict(config.write_roles)),
        credentials_from_context=lambda _context: None,
        source=config.source,
        tool_prefix=config.tool_prefix,
        known_scopes=frozenset(identity.scope_map),
    )


def _memory_server(
    config: Config, identity: Identity, storage: Storage, files: FileAccounts | None
) -> MCPServer:
    """Assemble store, policy and MCP server; `files` adds the file tools."""
    from wenchang.mcp import build_server
    from wenchang.prompts import PromptSlots

    limits = config.limits
    sizes = {
        name: value
        for name in (
            "max_file_bytes",
            "index_max_bytes",
            "list_page_size",
            "max_files_per_entity",
        )
        if (value := getattr(limits, name)) is not None
    }
    store = MemoryStore(storage, scope_priority=limits.scope_priority, **sizes)
    prompt = config.prompt
    return build_server(
        slots=PromptSlots(
            purpose=prompt.purpose,
            scope_guidance=prompt.scope_guidance,
            seed_areas=prompt.seed_areas,
            systems_of_record=prompt.systems_of_record,
        ),
        client=InProcessClient(store),
        resolver=SandboxResolver(identity),
        policy=ScopePolicy(dict(config.write_roles)),
        # A local server has one user: whoever may start it or reach its loopback port.
        credentials_from_context=lambda _context: None,
        source=config.source,
        product=config.product,
        tool_prefix=config.tool_prefix,
        known_scopes=frozenset(identity.scope_map),
        files=files,
    )


def _prepare(storage: Storage, url: str) -> None:
    """Make or open a database file at once: one that cannot be used is told here, not at each call.

    Servers are not waited for: one that is down for a moment must not keep an agent's host from starting.
    """
    prepare = getattr(storage, "prepare", None)
    if prepare is not None and url.lower().startswith("sqlite:"):
        prepare()


def _listen(address: str) -> socket.socket:
    """Bind the loopback address; raise `ConfigurationError` for any other, or one in use."""
    host, separator, port_text = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not separator or not host or not port_text.isascii() or not port_text.isdecimal():
        msg = "--http: write HOST:PORT, such as 127.0.0.1:8765"
        raise ConfigurationError(msg)
    if not _is_loopback(host):
        msg = (
            "--http: without authentication only a loopback address is served; "
            "use 127.0.0.1, ::1 or localhost"
        )
        raise ConfigurationError(msg)
    if host in _LOOPBACK_NAMES:
        host = "127.0.0.1"
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, int(port_text)))
        listener.listen()
    except (OSError, OverflowError) as error:
        listener.close()
        reason = error.strerror if isinstance(error, OSError) else "no such port"
        msg = f"--http: port {port_text} cannot be served: {reason}"
        raise ConfigurationError(msg) from error
    return listener


def _is_loopback(host: str) -> bool:
    if host in _LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _serve_http(server: MCPServer, listener: socket.socket) -> None:
    """Serve until the process is told to end; Host and Origin must be loopback names."""
    import uvicorn
    from mcp.server.transport_security import TransportSecuritySettings

    with closing(listener):
        host, port = listener.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        names = ("127.0.0.1", "localhost", "[::1]", shown)
        application = server.streamable_http_app(
            host=host,
            transport_security=TransportSecuritySettings(
                enable_dns_rebinding_protection=True,
                allowed_hosts=[f"{name}:{port}" for name in names],
                allowed_origins=[f"http://{name}:{port}" for name in names],
            ),
        )
        sys.stderr.write(f"wenchang: memory is served at http://{shown}:{port}/mcp\n")
        sys.stderr.flush()
        configuration = uvicorn.Config(application, log_level="warning", access_log=False)
        uvicorn.Server(configuration).run(sockets=[listener])


def _one_line(error: BaseException) -> str:
    """Fold an error's text onto one line."""
    return " ".join(str(error).split()) or type(error).__name__
