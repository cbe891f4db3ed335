"""`WenchangMemoryStore`: Pydantic AI's memory on any storage. Needs the extra `pydantic-ai`.

    stores = StoreFileBackends(storage)  # once for each process
    memory = Memory(store_resolver=lambda ctx: WenchangMemoryStore(stores.of(ctx.deps.tenant)))
    agent = Agent(model, deps_type=Deps, capabilities=[memory])

The files are those of a `StoreFileBackend`, as every other harness sees them. Other file backends will
not do: only a tree can tell what an operation came to without knowing the text that it wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from wenchang.adapters._extras import missing_package
from wenchang.adapters._pydantic_ai_calls import (
    AtVersion,
    NotAtVersionError,
    NotDoneError,
    Recall,
    RefusedChangeError,
    effect_key_of,
)
from wenchang.files._calls import Call, DeleteFile, Put
from wenchang.files.errors import (
    EffectKeyReusedError,
    InvalidArgumentError,
    LimitExceededError,
    NotFoundError,
    TreeStateError,
)
from wenchang.files.paths import canonical_file
from wenchang.files.snapshot import Snapshot
from wenchang.files.store_backend import StoreFileBackend
from wenchang.files.values import Deleted, FileEntry, Written

try:
    import anyio.to_thread
    from pydantic_ai import ModelRetry
    from pydantic_ai_harness.memory import (
        MemoryConflictError,
        MemoryFile,
        MemoryMutation,
        MemoryOperation,
        MemoryOperationConflictError,
        MemorySearchResult,
    )

    # The package has no other place for the error and the rule of paths that its tools rely on.
    from pydantic_ai_harness.memory._store import (
        MemoryPathEscapeError,
        lexical_search,
        validate_store_path,
        validate_store_prefix,
    )
except ImportError as error:
    raise missing_package(__name__, "pydantic-ai", error) from error

__all__ = ["WenchangMemoryStore"]

_T = TypeVar("_T")


class WenchangMemoryStore:
    """A `MemoryStore` (and `SearchableMemoryStore`) over the files of one tenant.

    `backend` is the tenant's, as `StoreFileBackends.of` gives it in each run; nothing a model sends
    reaches another one. `source` (up to 100 characters) is kept with past versions as who wrote.

    **Versions** are those of the tree; a write or a delete is one conditional commit, so of any number
    of writers that name one version exactly one succeeds. **Operations** are remembered in that
    commit: repeated with the same fingerprint, in another process too, an operation returns its first
    outcome (`replayed`) and changes nothing. They are kept for seven days at least and the last 1,000 for
    ever; a lost race and a refusal are no outcomes.

    **Errors.** `MemoryConflictError`; `MemoryOperationConflictError` for an operation with another
    fingerprint; `MemoryPathEscapeError` for a path with `.` or `..` or an empty segment, ValueError for
    any other that the protocol or the tree refuses (400 characters, 10 folders, a file where a folder
    is). What the model can mend (a limit of the files, text with NUL) is a `ModelRetry` with the reason.
    An outage is `BackendUnavailableError` and ends the run. A call that is cancelled may still take
    effect; its operation tells.

    The `operation_id` of a file that is read is None. Metadata of writes is not kept:
    `Memory(write_metadata=...)` refuses this store.
    """

    def __init__(self, backend: StoreFileBackend, *, source: str = "") -> None:
        """Keep the backend; sends nothing.

        TypeError for anything but a `StoreFileBackend`, ValueError for a `source` that is too long.
        """
        if not isinstance(backend, StoreFileBackend):
            msg = f"backend must be a StoreFileBackend, not {type(backend).__name__}"
            raise TypeError(msg)
        try:
            # Here, and not at the first write: no model can mend what the application has set.
            Put(path="", text="", source=source).check()
        except InvalidArgumentError as error:
            raise ValueError(error.detail) from error
        self._tree = backend.tree
        self._source = source

    def __repr__(self) -> str:
        """Name the class alone: the tenant is not for logs."""
        return f"{type(self).__name__}()"

    async def read(self, path: str, *, max_chars: int) -> MemoryFile | None:
        """Return the first `max_chars` characters of a file, None where there is none."""
        wanted = _checked(path)
        if max_chars <= 0:
            msg = "max_chars must be positive"
            raise ValueError(msg)
        try:
            entry, text = await _in_thread(partial(self._tree.read_file, wanted))
        except NotFoundError:
            return None
        return MemoryFile(
            content=text[:max_chars],
            version=entry.version,
            operation_id=None,
            truncated=len(text) > max_chars,
        )

    async def get_operation(self, operation: MemoryOperation) -> MemoryMutation | None:
        """Return what an operation came to, None where it is not known; raises for another fingerprint."""
        call = Recall(path="", fingerprint=operation.fingerprint)
        try:
            return await self._run(call, operation)
        except NotDoneError:
            return None

    async def write(
        self,
        path: str,
        content: str,
        *,
        expected_version: str | None,
        operation: MemoryOperation | None = None,
    ) -> MemoryMutation:
        """Replace a file at this version, or create it where the version is None."""
        wanted = _checked(path)
        put = Put(path=wanted, text=content, source=self._source)
        return await self._change(put, expected_version, operation, deletes=False)

    async def delete(
        self,
        path: str,
        *,
        expected_version: str | None,
        operation: MemoryOperation | None = None,
    ) -> MemoryMutation:
        """Delete a file at this version; for None there must be no file, and nothing happens."""
        delete = DeleteFile(path=_checked(path))
        return await self._change(delete, expected_version, operation, deletes=True)

    async def list_paths(self, prefix: str = "", *, limit: int) -> list[str]:
        """Return at most `limit` paths that begin with `prefix`, in order.

        Files whose paths the protocol does not know (other harnesses may write them) are left out.
        """
        validate_store_prefix(prefix)
        if limit <= 0:
            msg = "limit must be positive"
            raise ValueError(msg)

        def read(snapshot: Snapshot) -> list[str]:
            paths: list[str] = []
            for entry in snapshot.walk(prefix.rpartition("/")[0]):
                if entry.path.startswith(prefix) and _is_known(entry.path):
                    paths.append(entry.path)
                    if len(paths) == limit:
                        break
            return paths

        return await _in_thread(partial(self._tree.view, read))

    async def search(
        self,
        prefix: str,
        query: str,
        *,
        limit: int,
        max_files: int,
        max_chars: int,
        max_file_chars: int,
    ) -> MemorySearchResult:
        """Search the files directly beneath a prefix for words, as they are in one snapshot."""
        validate_store_prefix(prefix)
        if not query.split() or min(limit, max_files, max_chars, max_file_chars) <= 0:
            return MemorySearchResult(matches=[], scanned=0, truncated=False)

        def read(snapshot: Snapshot) -> tuple[list[tuple[str, str]], bool]:
            found = _direct_files(snapshot, prefix, max_files + 1)
            texts = list(_beginnings(snapshot, found[:max_files], max_file_chars))
            cut = len(found) > max_files or any(longer for *_, longer in texts)
            return [(path, text) for path, text, _ in texts], cut

        files, cut = await _in_thread(partial(self._tree.view, read))
        result = await lexical_search(
            files,
            query,
            limit=limit,
            max_files=max_files,
            max_chars=max_chars,
            score_prefix=prefix,
        )
        return MemorySearchResult(
            matches=result.matches, scanned=result.scanned, truncated=result.truncated or cut
        )

    async def _change(
        self,
        inner: Call,
        expected_version: str | None,
        operation: MemoryOperation | None,
        *,
        deletes: bool,
    ) -> MemoryMutation:
        call = AtVersion(
            path=inner.path,
            inner=inner,
            version=expected_version,
            deletes=deletes,
            fingerprint="" if operation is None else operation.fingerprint,
        )
        try:
            return await self._run(call, operation)
        except NotAtVersionError as error:
            msg = "the memory file changed before it could be changed here"
            raise MemoryConflictError(msg) from error
        except (LimitExceededError, InvalidArgumentError) as error:
            raise ModelRetry(error.detail) from error
        except RefusedChangeError as error:
            if isinstance(error.refusal, LimitExceededError | InvalidArgumentError):
                raise ModelRetry(error.detail) from error
            # A folder is where the file was to be, or a file where a folder was.
            raise ValueError(error.detail) from error

    async def _run(self, call: Call, operation: MemoryOperation | None) -> MemoryMutation:
        """Have a call decided and committed as all calls of the tree are."""
        checked = call.checked(None if operation is None else effect_key_of(operation.id))
        try:
            outcome = await _in_thread(partial(self._tree.run, checked))
        except EffectKeyReusedError as error:
            msg = "the operation id was used with other arguments"
            raise MemoryOperationConflictError(msg) from error
        if isinstance(outcome, Written):
            return MemoryMutation(
                version=outcome.version, replayed=outcome.replayed, existed=not outcome.created
            )
        if isinstance(outcome, Deleted):
            return MemoryMutation(
                version=None, replayed=outcome.replayed, existed=outcome.files > 0
            )
        msg = f"a change of a memory file came to {type(outcome).__name__}"
        raise TypeError(msg)


if TYPE_CHECKING:
    from pydantic_ai_harness.memory import MemoryStore, SearchableMemoryStore

    _PROTOCOLS: tuple[type[MemoryStore], type[SearchableMemoryStore]] = (
        WenchangMemoryStore,
        WenchangMemoryStore,
    )


async def _in_thread(work: Callable[[], _T]) -> _T:
    """Run it in a thread. A cancel scope waits for its end; where the task itself is cancelled, it goes on."""
    return await anyio.to_thread.run_sync(work)


def _checked(path: str) -> str:
    """Return a path that both the protocol and the tree know."""
    try:
        validate_store_path(path)
    except ValueError as error:
        if any(segment in ("", ".") or ".." in segment for segment in path.split("/")):
            msg = "the memory path leaves the store"
            raise MemoryPathEscapeError(msg) from error
        raise
    try:
        return canonical_file(path)
    except InvalidArgumentError as error:
        raise ValueError(error.detail) from error


def _is_known(path: str) -> bool:
    try:
        validate_store_path(path)
    except ValueError:
        return False
    return True


def _direct_files(snapshot: Snapshot, prefix: str, most: int) -> list[FileEntry]:
    """Return the first files that begin with a prefix and lie in no folder beneath it."""
    found: list[FileEntry] = []
    for entry in snapshot.children(prefix.rpartition("/")[0]):
        if isinstance(entry, FileEntry) and entry.path.startswith(prefix) and _is_known(entry.path):
            found.append(entry)
            if len(found) == most:
                break
    return found


def _beginnings(
    snapshot: Snapshot, entries: list[FileEntry], most: int
) -> Iterator[tuple[str, str, bool]]:
    """Yield path and first characters of files, and whether there are more; without damaged ones.

    They are read side by side, and no more whole texts are kept than are read at a time.
    """
    at = 0
    while at < len(entries):
        try:
            for entry, text in snapshot.read_many(entries[at:]):
                at += 1
                yield entry.path, text[:most], len(text) > most
        except TreeStateError:
            # The damaged one is the first that was not yielded.
            at += 1
