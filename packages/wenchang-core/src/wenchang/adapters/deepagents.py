"""Files of wenchang as a backend of deepagents (0.7 or newer): the extra `deepagents`.

    stores = StoreFileBackends(storage)            # once for each process
    memories = TenantBackend(stores, lambda runtime: runtime.context.tenant, display_prefix="/memories")
    backend = CompositeBackend(default=StateBackend(), routes={"/memories/": memories})
    agent = create_deep_agent(model=..., backend=backend, context_schema=Context)

Both classes here implement `BackendProtocol`, all of it and the async methods too. Errors are
returned, never raised, as text that tells the model what to do next; the text of an outage or of
anything unforeseen names no path of the host, no key, no URL.

**Versions.** The tools of deepagents name none, so the adapter remembers which version of which file
each agent has seen. A `write` or `delete` of a file that the agent has read is made on that version
only; a `write` of one that it has not read only creates. Where that fails the error holds the current
version and text, the agent has then seen it, and the same call again goes on from there. An `edit` is
decided on what is stored at the moment of its commit, so edits at once are all in the file.

**Replay.** A tool call that a resumed thread repeats returns its first outcome and changes nothing:
its effect key is made of thread, checkpoint and task, where the run has a checkpointer and LangGraph
gives each tool call a task of its own, as deepagents does. Elsewhere there is no key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeAlias, cast

from wenchang.adapters._extras import missing_package
from wenchang.files.backend import FileBackend
from wenchang.files.errors import NoTenantError
from wenchang.files.store_backend import StoreFileBackends

try:
    from langgraph.runtime import Runtime
    from langgraph.typing import ContextT

    from wenchang.adapters._deepagents_backend import FilesBackend
except ImportError as missing:
    raise missing_package("wenchang.adapters.deepagents", "deepagents", missing) from missing

__all__ = ["TenantBackend", "TenantOf", "WenchangBackend"]

TenantOf: TypeAlias = Callable[[Runtime[ContextT]], str | None]
"""Names the tenant of a run from its runtime: context, authenticated user; None for a run without one."""


class WenchangBackend(FilesBackend):
    """A `BackendProtocol` over one `FileBackend`, which is bound to a tenant already.

    `display_prefix` is where the files are mounted ("/memories"): error texts name paths with it,
    results do not, since deepagents' `CompositeBackend` adds it to those. `overwrite` lets a write
    replace a file that the agent has not read. `regex` lets `grep` take RE2 patterns; without it the
    pattern is literal text, as deepagents tells its models. `effect_keys=False` turns replay off.
    """

    def __init__(
        self,
        files: FileBackend,
        *,
        display_prefix: str = "",
        overwrite: bool = False,
        regex: bool = False,
        effect_keys: bool = True,
    ) -> None:
        """Keep the settings; sends nothing. `InvalidArgumentError` for a prefix that is no path."""
        super().__init__(
            display_prefix=display_prefix,
            overwrite=overwrite,
            regex=regex,
            effect_keys=effect_keys,
        )
        self._files = files

    def _files_of(self, runtime: Runtime[None] | None) -> tuple[FileBackend, str]:
        del runtime  # the tenant does not depend on it
        return self._files, ""


class TenantBackend(FilesBackend, Generic[ContextT]):
    """A `BackendProtocol` that gives each run the files of its own tenant.

    `tenant_of` is asked in every call and gets the runtime of the run (`langgraph.runtime`): what the
    application passed as `context`, or the user that a server authenticated. The tenant is never
    taken from a path or an argument. Outside of a run, and in a run without a tenant, every call is
    refused. The settings are those of `WenchangBackend`.
    """

    def __init__(
        self,
        stores: StoreFileBackends,
        tenant_of: TenantOf[ContextT],
        *,
        source: str = "",
        display_prefix: str = "",
        overwrite: bool = False,
        regex: bool = False,
        effect_keys: bool = True,
    ) -> None:
        """Keep the settings; sends nothing. `source` says who writes, where the files keep history."""
        super().__init__(
            display_prefix=display_prefix,
            overwrite=overwrite,
            regex=regex,
            effect_keys=effect_keys,
        )
        self._stores = stores
        self._tenant_of = tenant_of
        self._source = source

    def _files_of(self, runtime: Runtime[None] | None) -> tuple[FileBackend, str]:
        if runtime is None:
            raise NoTenantError
        given = cast("Runtime[ContextT]", runtime)  # whose context is the application's
        tenant = self._tenant_of(given)
        return self._stores.of(tenant, source=self._source), tenant or ""
