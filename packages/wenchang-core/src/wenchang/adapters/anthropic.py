"""Files of wenchang as the memory tool of the Anthropic SDK, `memory_20250818`: the extra `anthropic`.

    stores = StoreFileBackends(storage)              # once for each process
    tool = WenchangMemoryTool(stores.of(tenant))     # in each run, with the tenant of that run
    client.beta.messages.tool_runner(model=..., messages=[...], tools=[tool])

`/memories` is the root of the backend, so deepagents with the same backend mounted at `/memories/` works
on the same files. The tenant is that of the backend; no command can name one.

The tool's commands name no version. `create` never replaces a file. `str_replace` and `insert` are
decided on a version and written only where the file is still at it, and decided again where it is not,
so every acknowledged change of any number of callers is in the file. `rename` and `delete` of a file or
a folder are one commit each on a `StoreFileBackend`, and file by file elsewhere.

Texts of success and failure are those that the tool documents, with `is_error` for failures. A text for
what no command foresees names no path of the host, no key, no URL. Calls have no effect keys: the SDK
does not tell a tool which call it carries out.
"""

from __future__ import annotations

from collections.abc import Callable

from wenchang.adapters._extras import missing_package
from wenchang.files.backend import FileBackend

try:
    from anthropic.tools import ToolError
    from anthropic.tools.memory import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool
    from anthropic.types.beta import (
        BetaCacheControlEphemeralParam,
        BetaMemoryTool20250818Command,
        BetaMemoryTool20250818CreateCommand,
        BetaMemoryTool20250818DeleteCommand,
        BetaMemoryTool20250818InsertCommand,
        BetaMemoryTool20250818RenameCommand,
        BetaMemoryTool20250818StrReplaceCommand,
        BetaMemoryTool20250818ViewCommand,
    )
    from anyio.to_thread import run_sync

    from wenchang.adapters._anthropic_commands import Commands
except ImportError as missing:
    raise missing_package("wenchang.adapters.anthropic", "anthropic", missing) from missing

__all__ = ["WenchangAsyncMemoryTool", "WenchangMemoryTool"]


class WenchangMemoryTool(BetaAbstractMemoryTool):
    """The memory tool over a `FileBackend`, which is bound to the tenant of the run."""

    def __init__(
        self,
        files: FileBackend,
        *,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        """Keep the files; sends nothing."""
        super().__init__(cache_control=cache_control)
        self._commands = Commands(files)

    def execute(self, command: BetaMemoryTool20250818Command) -> str:
        """Carry out one command."""
        return _prepared(self._commands, command)()

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Show a file with line numbers, or what is in a folder two levels deep."""
        return self.execute(command)

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Make a new file; never replaces one."""
        return self.execute(command)

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace the one occurrence of a text."""
        return self.execute(command)

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Put text after a line, 0 being the top."""
        return self.execute(command)

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a folder with all in it."""
        return self.execute(command)

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Rename a file, or a folder with all in it; never replaces anything."""
        return self.execute(command)

    def clear_all_memory(self) -> str:
        """Delete every file of the tenant."""
        return self._commands.clear()


class WenchangAsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """`WenchangMemoryTool` for the asynchronous client; each command runs in a thread."""

    def __init__(
        self,
        files: FileBackend,
        *,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        """Keep the files; sends nothing."""
        super().__init__(cache_control=cache_control)
        self._commands = Commands(files)

    async def execute(self, command: BetaMemoryTool20250818Command) -> str:
        """Carry out one command."""
        return await run_sync(_prepared(self._commands, command))

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Show a file with line numbers, or what is in a folder two levels deep."""
        return await self.execute(command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Make a new file; never replaces one."""
        return await self.execute(command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace the one occurrence of a text."""
        return await self.execute(command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Put text after a line, 0 being the top."""
        return await self.execute(command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a folder with all in it."""
        return await self.execute(command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Rename a file, or a folder with all in it; never replaces anything."""
        return await self.execute(command)

    async def clear_all_memory(self) -> str:
        """Delete every file of the tenant."""
        return await run_sync(self._commands.clear)


def _prepared(commands: Commands, command: object) -> Callable[[], str]:
    """Return the call that a command stands for.

    The SDK does not validate what the model sent: any field may be missing or of another type.
    """

    def field(name: str) -> object:
        return getattr(command, name, None)

    calls: dict[object, Callable[[], str]] = {
        "view": lambda: commands.view(field("path"), field("view_range")),
        "create": lambda: commands.create(field("path"), field("file_text")),
        "str_replace": lambda: commands.str_replace(
            field("path"), field("old_str"), field("new_str")
        ),
        "insert": lambda: commands.insert(
            field("path"), field("insert_line"), field("insert_text")
        ),
        "delete": lambda: commands.delete(field("path")),
        "rename": lambda: commands.rename(field("old_path"), field("new_path")),
    }
    name = field("command")
    if not isinstance(name, str) or name not in calls:
        known = ", ".join(map(str, calls))
        raise ToolError(f"Argument command is invalid: it must be one of {known}.")
    return calls[name]
