"""`FilesBackend`: all of deepagents' `BackendProtocol` but where the files of a run come from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from deepagents.backends.protocol import (
    BackendProtocol,
    DeleteResult,
    EditResult,
    FileDownloadResponse,
    FileUploadResponse,
    GlobResult,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)
from langgraph.runtime import Runtime

from wenchang.adapters import _folders
from wenchang.adapters._deepagents_desk import AnsweredError, Desk
from wenchang.adapters._deepagents_globs import accepting
from wenchang.adapters._deepagents_results import (
    file_info,
    glob_result,
    literal,
    nothing_read,
    read_result,
)
from wenchang.adapters._deepagents_run import current_call, current_runtime
from wenchang.adapters._refusals import refusal_text, unforeseen_text
from wenchang.adapters._seen import SeenVersions
from wenchang.errors import RestrictedScopeError, WenchangError
from wenchang.files.backend import (
    DEFAULT_READ_LINES,
    FileBackend,
    absolute,
    to_file,
    to_folder,
)
from wenchang.files.errors import (
    AlreadyExistsError,
    EditMatchError,
    EffectKeyReusedError,
    InvalidArgumentError,
    NotFoundError,
    VersionConflictError,
)

__all__ = ["FilesBackend"]

_ResultT = TypeVar("_ResultT")
_NAMED: Final = 20
"""Files that one error names."""
_OF_FOLDERS: Final = {"under": "path", "include": "glob"}
_OF_FILES: Final = {
    "path": "file_path",
    "old": "old_string",
    "new": "new_string",
    "edits[0].oldText": "old_string",
    "edits[0].newText": "new_string",
}
"""What deepagents calls our arguments, in its tools for folders and in those for files."""


class FilesBackend(BackendProtocol):
    """The protocol over the files that `_files_of` names; see `wenchang.adapters.deepagents`."""

    def __init__(
        self, *, display_prefix: str, overwrite: bool, regex: bool, effect_keys: bool
    ) -> None:
        """Keep the settings; `InvalidArgumentError` for a prefix that is no path."""
        prefix = to_folder(display_prefix, argument="display_prefix")
        self._prefix = absolute(prefix) if prefix else ""
        self._overwrite = overwrite
        self._regex = regex
        self._effect_keys = effect_keys
        self._seen = SeenVersions()

    # --- reading ---------------------------------------------------------------------------------

    def ls(self, path: str) -> LsResult:
        """List what is directly in a folder."""

        def call(at: Desk) -> LsResult:
            try:
                listing = at.files.ls(path)
            except NotFoundError:
                if at.is_file(path):
                    # The word that deepagents looks for to tell a file from a folder.
                    return LsResult(error=f"not_a_directory: {at.shown(path)} is a file.")
                raise
            if listing.truncated:
                return LsResult(
                    error=f"{at.shown(path)} holds too many entries to list. Use glob with a "
                    "pattern that fits fewer files."
                )
            return LsResult(entries=[file_info(entry) for entry in listing.entries])

        return self._returned(_OF_FOLDERS, call, lambda error: LsResult(error=error))

    def read(self, file_path: str, offset: int = 0, limit: int = DEFAULT_READ_LINES) -> ReadResult:
        """Return lines of a file as they are stored, and remember the version that was shown."""

        def call(at: Desk) -> ReadResult:
            if limit <= 0:
                to_file(file_path)
                return nothing_read()
            start = max(offset, 0)
            window = at.files.read(file_path, start, limit)
            if not window.lines and start:
                return ReadResult(
                    error=f"Line offset {start} exceeds file length ({window.total_lines} lines)"
                )
            at.saw(window)
            return read_result(window)

        return self._returned(_OF_FILES, call, lambda error: ReadResult(error=error))

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        """Find files by deepagents' grammar of patterns."""

        def call(at: Desk) -> GlobResult:
            folder = to_folder(path, argument="under")
            accept = accepting(pattern, folder, argument="pattern")
            listing = at.files.glob("**", absolute(folder), accept=accept)
            return glob_result(listing)

        return self._returned(_OF_FOLDERS, call, lambda error: GlobResult(error=error))

    def grep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
    ) -> GrepResult:
        """Find lines that hold the text; with `regex=True`, lines that the RE2 pattern matches."""

        def call(at: Desk) -> GrepResult:
            folder = to_folder(path, argument="under")
            accept = None if glob is None else accepting(glob, folder, argument="glob")
            if max_count is not None and max_count < 1:
                return GrepResult(matches=[], truncated=True)
            found = at.files.grep(
                pattern if self._regex else literal(pattern),
                absolute(folder),
                accept=accept,
                limit=max_count,
            )
            if found.unreadable and not found.matches:
                named = ", ".join(map(at.shown, found.unreadable[:_NAMED]))
                more = len(found.unreadable) - _NAMED
                rest = f" and {more} more" if more > 0 else ""
                return GrepResult(error=f"Not searched, because they are not text: {named}{rest}")
            # Never an error beside matches: a composite of deepagents passes both on as they are,
            # with paths that lack its prefix and so escape its permissions.
            return GrepResult(
                matches=[
                    {"path": match.path, "line": match.line, "text": match.text}
                    for match in found.matches
                ],
                truncated=found.truncated or bool(found.unreadable),
            )

        return self._returned(_OF_FOLDERS, call, lambda error: GrepResult(error=error))

    # --- changing --------------------------------------------------------------------------------

    def write(self, file_path: str, content: str) -> WriteResult:
        """Create a file, or replace the version of it that this agent has seen."""

        def call(at: Desk) -> WriteResult:
            return WriteResult(path=self._write(at, file_path, content))

        return self._returned(_OF_FILES, call, lambda error: WriteResult(error=error))

    def edit(
        self,
        file_path: str,
        old_string: str,
        new_string: str,
        replace_all: bool = False,
    ) -> EditResult:
        """Replace text in what the file holds at the moment of the commit."""

        def call(at: Desk) -> EditResult:
            wanted = _absolute(file_path)
            key = at.call.effect_key("edit", wanted, old_string, new_string, replace_all)
            try:
                change = at.files.edit(
                    wanted, old_string, new_string, replace_all=replace_all, effect_key=key
                )
            except EditMatchError as error:
                raise AnsweredError(at.no_match(wanted, error)) from error
            at.seen.edited(at.agent, wanted, change.previous, change.version)
            return EditResult(path=change.path, occurrences=change.replacements)

        return self._returned(_OF_FILES, call, lambda error: EditResult(error=error))

    def delete(self, file_path: str) -> DeleteResult:
        """Delete a file in the version that this agent has seen, or a folder with all in it."""

        def call(at: Desk) -> DeleteResult:
            wanted = _absolute(file_path)
            key = at.call.effect_key("delete", wanted)
            version = at.seen.base(at.agent, wanted, key)
            try:
                at.files.delete(wanted, version=version, effect_key=key)
            except NotFoundError:
                if version is not None and not at.is_folder(wanted):
                    # Gone. What another puts in its place from now on was never seen.
                    at.seen.forget(at.agent, wanted)
                    raise
                # A folder, or nothing: then this raises the same.
                _folders.remove(at.files, wanted, effect_key=at.call.effect_key("remove", wanted))
            except (VersionConflictError, EffectKeyReusedError) as error:
                if at.is_file(wanted):
                    repeated = isinstance(error, EffectKeyReusedError)
                    raise AnsweredError(
                        at.conflict(wanted, "deleted", repeated=repeated)
                    ) from error
            at.seen.forget(at.agent, wanted)
            return DeleteResult(path=wanted)

        return self._returned(_OF_FILES, call, lambda error: DeleteResult(error=error))

    # --- whole files -----------------------------------------------------------------------------

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Write files of UTF-8 by the rule of `write`, each on its own."""
        return [
            FileUploadResponse(path=path, error=self._upload(path, data)) for path, data in files
        ]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Return whole files as bytes of UTF-8, and remember the versions."""
        return [self._download(path) for path in paths]

    def _upload(self, path: str, data: bytes) -> str | None:
        def call(at: Desk) -> str | None:
            try:
                self._write(at, path, data.decode())
            except UnicodeDecodeError:
                return f"{at.shown(path)} was not written: files here are UTF-8 text."
            except InvalidArgumentError as error:
                return "invalid_path" if error.argument == "path" else at.text(error)
            except AlreadyExistsError as error:
                return "is_directory" if error.path == _absolute(path) else "invalid_path"
            except RestrictedScopeError:
                return "permission_denied"
            return None

        return self._returned(_OF_FILES, call, lambda error: error)

    def _download(self, path: str) -> FileDownloadResponse:
        def call(at: Desk) -> FileDownloadResponse:
            try:
                window = at.files.read(path, 0, _folders.EVERY_LINE)
            except NotFoundError:
                found = "is_directory" if at.is_folder(path) else "file_not_found"
                return FileDownloadResponse(path=path, error=found)
            except InvalidArgumentError:
                return FileDownloadResponse(path=path, error="invalid_path")
            at.saw(window)
            return FileDownloadResponse(path=path, content=window.text.encode())

        return self._returned(
            _OF_FILES, call, lambda error: FileDownloadResponse(path=path, error=error)
        )

    # --- how a call is made ----------------------------------------------------------------------

    def _write(self, at: Desk, file_path: str, content: str) -> str:
        wanted = _absolute(file_path)
        key = at.call.effect_key("write", wanted, content)
        version = at.seen.base(at.agent, wanted, key)
        try:
            change = at.files.write(
                wanted,
                content,
                version=version,
                create_only=version is None and not self._overwrite,
                effect_key=key,
            )
        except NotFoundError as error:
            at.seen.forget(at.agent, wanted)
            if version is None:
                raise
            raise AnsweredError(at.gone(wanted)) from error
        except (AlreadyExistsError, EffectKeyReusedError, VersionConflictError) as error:
            if isinstance(error, AlreadyExistsError) and (
                error.kind == "folder" or error.path != wanted
            ):
                raise
            current = at.look(wanted)
            if current is None or current.text != content:
                repeated = isinstance(error, EffectKeyReusedError)
                raise AnsweredError(
                    at.conflict(wanted, "written", current, repeated=repeated)
                ) from error
            # The file is what the call wants it to be, whoever made it so.
            at.saw(current)
            return current.path
        at.seen.saw(at.agent, wanted, change.version)
        return change.path

    @abstractmethod
    def _files_of(self, runtime: Runtime[None] | None) -> tuple[FileBackend, str]:
        """Return the files of the run, and whose they are."""

    def _returned(
        self,
        names: Mapping[str, str],
        call: Callable[[Desk], _ResultT],
        failed: Callable[[str], _ResultT],
    ) -> _ResultT:
        """Carry out a call, and return what it raises as the error of a result."""
        try:
            runtime = current_runtime()
            files, owner = self._files_of(runtime)
            desk = Desk(
                files=files,
                owner=owner,
                call=current_call(runtime, keyed=self._effect_keys),
                seen=self._seen,
                prefix=self._prefix,
                names=names,
            )
            return _answered(desk, call, failed)
        except WenchangError as error:
            return failed(refusal_text(error, names))
        except Exception as error:  # noqa: BLE001 - the protocol: errors are returned, never raised
            return failed(unforeseen_text(error))


def _answered(
    desk: Desk, call: Callable[[Desk], _ResultT], failed: Callable[[str], _ResultT]
) -> _ResultT:
    try:
        return call(desk)
    except AnsweredError as answered:
        return failed(str(answered))
    except WenchangError as error:
        return failed(desk.text(error))


def _absolute(file_path: str) -> str:
    return absolute(to_file(file_path))
