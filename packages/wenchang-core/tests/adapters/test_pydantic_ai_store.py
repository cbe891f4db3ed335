"""`WenchangMemoryStore` keeps the protocol of Pydantic AI's memory, and works inside its `Memory`.

What the protocol says is tried on the package's own store in memory too.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

pytest.importorskip("pydantic_ai_harness", reason="the extra pydantic-ai is not installed here")

from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import (
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai_harness.memory import (
    InMemoryStore,
    Memory,
    MemoryConflictError,
    MemoryOperation,
    MemoryOperationConflictError,
    MemoryStore,
    MetadataMemoryStore,
    SearchableMemoryStore,
)

from wenchang.adapters.pydantic_ai import WenchangMemoryStore
from wenchang.errors import BackendUnavailableError
from wenchang.files.limits import TreeLimits
from wenchang.files.policy import TreePolicy
from wenchang.files.store_backend import StoreFileBackend, StoreFileBackends
from wenchang.storage.filesystem import FilesystemStorage
from wenchang.storage.memory import InMemoryStorage

PATH = "acme/main/MEMORY.md"
EDITORS = 20
WAIT = 60


def ours(storage, tenant="acme"):
    return WenchangMemoryStore(StoreFileBackend(storage, tenant=tenant))


@pytest.fixture
def storage():
    return InMemoryStorage()


@pytest.fixture(params=["package", "wenchang-memory", "wenchang-files"])
def store(request, tmp_path):
    if request.param == "package":
        return InMemoryStore()
    return ours(
        InMemoryStorage()
        if request.param == "wenchang-memory"
        else FilesystemStorage(tmp_path / "store")
    )


def run(work):
    async def bounded():
        async with asyncio.timeout(WAIT):
            return await work

    return asyncio.run(bounded())


class TestProtocol:
    def test_a_store_is_one_of_the_protocol_and_searches(self, store):
        assert isinstance(store, MemoryStore)
        assert isinstance(store, SearchableMemoryStore)

    def test_a_file_is_created_read_replaced_and_deleted(self, store):
        async def work():
            assert await store.read(PATH, max_chars=100) is None
            created = await store.write(PATH, "one\n", expected_version=None)
            replaced = await store.write(PATH, "two\r\n", expected_version=created.version)
            read = await store.read(PATH, max_chars=100)
            deleted = await store.delete(PATH, expected_version=replaced.version)
            return created, replaced, read, deleted, await store.read(PATH, max_chars=100)

        created, replaced, read, deleted, after = run(work())

        assert (created.existed, replaced.existed, deleted.existed) == (False, True, True)
        assert [each.replayed for each in (created, replaced, deleted)] == [False] * 3
        assert created.version != replaced.version
        assert (read.content, read.version, read.truncated) == ("two\r\n", replaced.version, False)
        assert (deleted.version, after) == (None, None)

    @pytest.mark.parametrize("stale", [None, "v0", "", "of another file"])
    def test_another_version_is_a_conflict_and_changes_nothing(self, store, stale):
        async def work():
            await store.write(PATH, "one", expected_version=None)
            with pytest.raises(MemoryConflictError):
                await store.write(PATH, "two", expected_version=stale)
            with pytest.raises(MemoryConflictError):
                await store.delete(PATH, expected_version=stale)
            return (await store.read(PATH, max_chars=9)).content

        assert run(work()) == "one"

    def test_a_version_of_what_is_gone_is_a_conflict(self, store):
        async def work():
            version = (await store.write(PATH, "one", expected_version=None)).version
            await store.delete(PATH, expected_version=version)
            with pytest.raises(MemoryConflictError):
                await store.write(PATH, "two", expected_version=version)
            with pytest.raises(MemoryConflictError):
                await store.delete(PATH, expected_version=version)
            again = (await store.write(PATH, "one", expected_version=None)).version
            return version, again

        version, again = run(work())
        assert version != again

    def test_deleting_what_was_never_there_is_told(self, store):
        assert not run(store.delete(PATH, expected_version=None)).existed

    @pytest.mark.parametrize(("most", "text", "cut"), [(3, "äöü", True), (4, "äöü🙂", False)])
    def test_a_read_is_cut_after_so_many_characters(self, store, most, text, cut):
        async def work():
            await store.write(PATH, "äöü🙂", expected_version=None)
            return await store.read(PATH, max_chars=most)

        found = run(work())
        assert (found.content, found.truncated) == (text, cut)

    def test_paths_are_listed_in_order_by_a_plain_prefix(self, store):
        names = ["b/MEMORY.md", "a/x.md", "a/MEMORY.md", "ab/x.md", "a/deep/x.md", "c.md"]

        async def work():
            for name in names:
                await store.write(name, "text", expected_version=None)
            return [
                await store.list_paths(limit=100),
                await store.list_paths("a/", limit=100),
                await store.list_paths("a", limit=100),
                await store.list_paths("a/", limit=2),
                await store.list_paths("zz/", limit=2),
            ]

        whole, folder, prefix, two, none = run(work())
        assert whole == sorted(names)
        assert folder == ["a/MEMORY.md", "a/deep/x.md", "a/x.md"]
        assert prefix == [*folder, "ab/x.md"]
        assert (two, none) == (folder[:2], [])

    def test_a_search_ranks_the_files_of_one_folder(self, store):
        async def work():
            for name, text in {
                "a/one.md": "tea and tea",
                "a/two.md": "some Tea",
                "a/three.md": "coffee",
                "a/deep/four.md": "tea",
                "b/five.md": "tea",
            }.items():
                await store.write(name, text, expected_version=None)
            bounds = {"max_files": 10, "max_chars": 100, "max_file_chars": 100}
            return [
                await store.search("a/", "tea", limit=5, **bounds),
                await store.search("a/", "tea", limit=1, **bounds),
                await store.search("a/", "tea", limit=5, **bounds | {"max_files": 2}),
                await store.search("a/", "coffee", limit=5, **bounds | {"max_file_chars": 3}),
                await store.search("a/", " ", limit=5, **bounds),
            ]

        full, one, few, short, nothing = run(work())
        assert [match.path for match in full.matches] == ["a/one.md", "a/two.md"]
        assert (full.scanned, full.truncated) == (3, False)
        assert (len(one.matches), one.truncated) == (1, True)
        assert (few.scanned, few.truncated) == (2, True)
        assert (short.matches, short.truncated) == ([], True)
        assert (nothing.matches, nothing.scanned) == ([], 0)

    @pytest.mark.parametrize(
        "path",
        [
            "",
            "/",
            "/a",
            "a/",
            "a//b",
            ".",
            "..",
            "../b",
            "a/./b",
            "a..b",
            "ü",
            "a b",
            "a\\b",
            "a\0",
        ],
    )
    def test_a_path_that_could_mean_another_is_refused(self, store, path):
        async def work():
            for call in (
                store.read(path, max_chars=1),
                store.write(path, "", expected_version=None),
                store.delete(path, expected_version=None),
            ):
                with pytest.raises(ValueError):
                    await call

        run(work())

    def test_bounds_below_one_are_refused(self, store):
        async def work():
            with pytest.raises(ValueError):
                await store.read(PATH, max_chars=0)
            with pytest.raises(ValueError):
                await store.list_paths(limit=0)

        run(work())


class TestOperations:
    FIRST = MemoryOperation(id="run/1", fingerprint="append tea")

    def test_an_operation_is_carried_out_once_whatever_its_text_is_by_then(self, store):
        async def work():
            first = await store.write(PATH, "tea", expected_version=None, operation=self.FIRST)
            again = await store.write(
                PATH, "tea\ntea", expected_version=first.version, operation=self.FIRST
            )
            return (
                first,
                again,
                await store.get_operation(self.FIRST),
                await store.read(PATH, max_chars=99),
            )

        first, again, asked, read = run(work())
        assert (first.replayed, again.replayed, asked.replayed) == (False, True, True)
        assert first.version == again.version == asked.version == read.version
        assert first.existed == again.existed == asked.existed
        assert read.content == "tea"

    def test_an_operation_that_lost_a_race_can_still_be_carried_out(self, store):
        async def work():
            with pytest.raises(MemoryConflictError):
                await store.write(PATH, "tea", expected_version="v9", operation=self.FIRST)
            assert await store.get_operation(self.FIRST) is None
            return await store.write(PATH, "tea", expected_version=None, operation=self.FIRST)

        assert not run(work()).replayed

    def test_a_deletion_is_repeated_too(self, store):
        other = MemoryOperation(id="run/2", fingerprint="delete")
        missing = MemoryOperation(id="run/3", fingerprint="delete what is not there")

        async def work():
            version = (await store.write(PATH, "tea", expected_version=None)).version
            first = await store.delete(PATH, expected_version=version, operation=other)
            await store.write(PATH, "again", expected_version=None)
            again = await store.delete(PATH, expected_version=version, operation=other)
            await store.delete("no/file.md", expected_version=None, operation=missing)
            return (
                first,
                again,
                await store.get_operation(missing),
                await store.read(PATH, max_chars=9),
            )

        first, again, nothing, read = run(work())
        assert (first.existed, first.replayed) == (True, False)
        assert (again.existed, again.replayed, again.version) == (True, True, None)
        assert (nothing.existed, nothing.replayed) == (False, True)
        assert read.content == "again"

    def test_an_id_with_another_fingerprint_is_refused(self, store):
        other = MemoryOperation(id=self.FIRST.id, fingerprint="append coffee")

        async def work():
            await store.write(PATH, "tea", expected_version=None, operation=self.FIRST)
            for call in (
                store.get_operation(other),
                store.write(PATH, "coffee", expected_version=None, operation=other),
                store.delete(PATH, expected_version=None, operation=other),
            ):
                with pytest.raises(MemoryOperationConflictError):
                    await call

        run(work())

    def test_an_outcome_is_known_to_another_process(self, tmp_path):
        """Another handle on the same folder, as a process that resumes the run would have."""
        first = ours(FilesystemStorage(tmp_path))
        done = run(first.write(PATH, "tea", expected_version=None, operation=self.FIRST))
        later = ours(FilesystemStorage(tmp_path))

        again = run(later.write(PATH, "tea", expected_version="v1", operation=self.FIRST))

        assert (again.replayed, again.version) == (True, done.version)

    @pytest.mark.parametrize("kind", ["write", "delete"])
    def test_a_process_killed_behind_its_commit_finds_what_it_came_to(self, storage, kind):
        """The commit lands, the caller never hears of it, and the resumed run repeats the call."""

        class Killed(BaseException):
            pass

        class Dying:
            def __getattr__(self, name):
                return getattr(storage, name)

            def put_if_version(self, key, data, metadata, expected):
                version = storage.put_if_version(key, data, metadata, expected)
                if expected is None:
                    return version
                raise Killed  # what is replaced is the root: that was the commit

        version = run(ours(storage).write(PATH, "old", expected_version=None)).version
        change = {"expected_version": version, "operation": self.FIRST}
        dying, later = ours(Dying()), ours(storage)
        with pytest.raises(Killed):
            if kind == "write":
                run(dying.write(PATH, "old\nnew", **change))
            else:
                run(dying.delete(PATH, **change))

        again = run(
            later.write(PATH, "old\nnew\nnew", **change)
            if kind == "write"
            else later.delete(PATH, **change)
        )

        assert (again.replayed, again.existed) == (True, True)
        read = run(later.read(PATH, max_chars=99))
        assert (read and read.content) == ("old\nnew" if kind == "write" else None)

    def test_an_operation_of_any_length_is_remembered(self, storage):
        long = MemoryOperation(id="\ud83d" + "x" * 10_000, fingerprint="y" * 10_000)

        async def work():
            await ours(storage).write(PATH, "tea", expected_version=None, operation=long)
            return await ours(storage).get_operation(long)

        assert run(work()).replayed


class TestOurs:
    def test_only_a_tenants_backend_is_taken(self):
        with pytest.raises(TypeError):
            WenchangMemoryStore(InMemoryStorage())

    def test_a_source_that_is_too_long_is_told_to_the_application(self, storage):
        with pytest.raises(ValueError, match="source"):
            WenchangMemoryStore(StoreFileBackend(storage, tenant="acme"), source="x" * 101)

    def test_metadata_of_writes_is_not_promised(self, storage):
        assert not isinstance(ours(storage), MetadataMemoryStore)

    def test_tenants_see_nothing_of_each_other(self, storage):
        one, other = ours(storage, "acme"), ours(storage, "globex")
        operation = MemoryOperation(id="run/1", fingerprint="x")

        async def work():
            await one.write(PATH, "ours", expected_version=None, operation=operation)
            return (
                await other.read(PATH, max_chars=9),
                await other.list_paths(limit=9),
                await other.get_operation(operation),
            )

        assert run(work()) == (None, [], None)

    def test_what_the_model_can_mend_is_told_to_it(self, storage):
        stores = StoreFileBackends(storage, limits=TreeLimits(max_file_bytes=10))
        store = WenchangMemoryStore(stores.of("acme"))

        async def work():
            for text, reason in (("x" * 11, "at most 10"), ("a\0", "NUL"), ("\ud83d", "surrogate")):
                with pytest.raises(ModelRetry, match=reason) as told:
                    await store.write(PATH, text, expected_version=None)
                assert "acme" not in str(told.value)
            return await store.list_paths(limit=9)

        assert run(work()) == []

    @pytest.mark.parametrize(("path", "text"), [(PATH, "x" * 11), ("acme/main", "x")])
    def test_a_refused_operation_has_no_outcome_and_can_be_carried_out_later(
        self, storage, path, text
    ):
        """A resumed run asks for the outcome first; only refusals of the call itself may end it."""
        stores = StoreFileBackends(storage, limits=TreeLimits(max_file_bytes=10))
        store = WenchangMemoryStore(stores.of("acme"))
        operation = MemoryOperation(id="run/1", fingerprint="x")

        async def work():
            there = await store.write("acme/main/a.md", "tea", expected_version=None)
            with pytest.raises((ModelRetry, ValueError)):
                await store.write(path, text, expected_version=None, operation=operation)
            known = await store.get_operation(operation)
            await store.delete("acme/main/a.md", expected_version=there.version)
            done = await store.write(path, "x", expected_version=None, operation=operation)
            return known, done.replayed

        assert run(work()) == (None, False)

    @pytest.mark.parametrize(
        "path",
        [
            "acme/main",
            "acme/main/MEMORY.md/x.md",
            "/".join(["a"] * 20),
            "a" * 150 + "/" + "b" * 150 + "/" + "c" * 150,
        ],
    )
    def test_a_path_that_no_tree_has_is_refused(self, storage, path):
        async def work():
            await ours(storage).write(PATH, "tea", expected_version=None)
            with pytest.raises((ValueError, ModelRetry)):
                await ours(storage).write(path, "tea", expected_version=None)

        run(work())

    def test_files_of_other_harnesses_with_other_names_are_left_out(self, storage):
        backend = StoreFileBackend(storage, tenant="acme")
        for path in ("/notes/über.md", "/notes/a b.md", "/notes/plain.md", "/notes/a..b.md"):
            backend.write(path, "tea")
        store = WenchangMemoryStore(backend)

        async def work():
            found = await store.search(
                "notes/", "tea", limit=9, max_files=9, max_chars=99, max_file_chars=99
            )
            return await store.list_paths("notes/", limit=9), [m.path for m in found.matches]

        assert run(work()) == (["notes/plain.md"], ["notes/plain.md"])

    def test_a_damaged_file_does_not_hide_the_others_from_a_search(self, storage):
        async def work():
            await ours(storage).write("a/one.md", "tea", expected_version=None)
            await ours(storage).write("a/two.md", "more tea", expected_version=None)
            for listed in storage.list_page("", None, 100):
                if storage.get(listed.key).data.endswith(b"more tea"):
                    storage.put(listed.key, b"\xff", dict(listed.metadata))
            return await ours(storage).search(
                "a/", "tea", limit=9, max_files=9, max_chars=99, max_file_chars=99
            )

        assert [match.path for match in run(work()).matches] == ["a/one.md"]

    def test_a_search_keeps_no_more_of_the_files_than_it_looks_at(self, storage):
        written = StoreFileBackend(storage, tenant="acme")
        for number in range(30):
            written.write(f"/notes/{number}.md", "tea" + "x" * 1_000_000)
        policy = TreePolicy(content_cache_bytes=1, parallel=2)
        store = WenchangMemoryStore(StoreFileBackends(storage, policy=policy).of("acme"))
        bounds = {"limit": 9, "max_files": 30, "max_chars": 99, "max_file_chars": 99}
        tracemalloc.start()
        try:
            found = run(store.search("notes/", "tea", **bounds))
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert (found.scanned, found.truncated) == (30, True)
        assert most < 15_000_000

    def test_an_outage_says_that_nothing_was_changed(self, storage):
        class Down:
            def __getattr__(self, name):
                def fail(*_):
                    raise BackendUnavailableError("unavailable", outcome="not_applied")

                return fail

        with pytest.raises(BackendUnavailableError) as told:
            run(ours(Down()).write(PATH, "tea", expected_version=None))
        assert told.value.outcome == "not_applied"

    def test_edits_of_another_harness_at_the_same_time_are_kept(self, storage):
        """Half of the callers edit the file through a file backend, half through this store."""
        backend = StoreFileBackend(storage, tenant="acme")
        backend.write(PATH, "".join(f"slot {n:02}\n" for n in range(EDITORS)))
        store, start = ours(storage), threading.Barrier(EDITORS)

        async def replace(number):
            await asyncio.to_thread(start.wait, WAIT)
            while True:
                found = await store.read(PATH, max_chars=10_000)
                text = found.content.replace(f"slot {number:02}", f"done {number:02}")
                try:
                    return await store.write(PATH, text, expected_version=found.version)
                except MemoryConflictError:
                    continue

        def edit(number):
            start.wait(WAIT)
            backend.edit(PATH, f"slot {number:02}", f"done {number:02}")

        async def work():
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(EDITORS))
            await asyncio.gather(
                *(replace(n) for n in range(0, EDITORS, 2)),
                *(asyncio.to_thread(edit, n) for n in range(1, EDITORS, 2)),
            )

        run(work())
        assert backend.read(PATH).text == "".join(f"done {n:02}\n" for n in range(EDITORS))

    def test_nothing_printed_names_the_tenant(self, storage):
        store = ours(storage)
        with pytest.raises(MemoryConflictError) as told:
            run(store.write(PATH, "tea", expected_version="v1"))
        assert "acme" not in str(told.value) + repr(told.value) + repr(store)


@dataclass
class Deps:
    tenant: str


def scripted(*calls):
    """Return a model that makes these tool calls one after another and then repeats the last answer."""

    def respond(messages, info):
        made = sum(isinstance(part, ToolCallPart) for each in messages for part in each.parts)
        if made < len(calls):
            tool, arguments = calls[made]
            return ModelResponse(parts=[ToolCallPart(tool, arguments, tool_call_id=f"call-{made}")])
        last = messages[-1].parts[-1]
        text = last.model_response_str() if isinstance(last, ToolReturnPart) else str(last.content)
        return ModelResponse(parts=[TextPart(text)])

    return FunctionModel(respond)


class TestInsideTheHarness:
    @pytest.fixture
    def memory(self, storage):
        stores = StoreFileBackends(storage)
        return Memory(store_resolver=lambda ctx: WenchangMemoryStore(stores.of(ctx.deps.tenant)))

    def ask(self, memory, tenant, *calls):
        agent = Agent(scripted(*calls), deps_type=Deps, capabilities=[memory])
        return run(agent.run("Go on.", deps=Deps(tenant)))

    def test_an_agent_writes_edits_reads_searches_and_deletes(self, memory, storage):
        self.ask(memory, "acme", ("write_memory", {"content": "Lin likes tea."}))
        edit = {"content": "oolong", "old_text": "tea"}
        self.ask(
            memory,
            "acme",
            ("write_memory", edit),
            ("write_memory", {"content": "more", "file": "x"}),
        )

        read = self.ask(memory, "acme", ("read_memory", {"file": "MEMORY.md"})).output
        found = json.loads(self.ask(memory, "acme", ("search_memory", {"query": "oolong"})).output)
        gone = json.loads(self.ask(memory, "acme", ("delete_memory", {"file": "x"})).output)

        assert read == "Lin likes oolong.\n"
        assert [match["file"] for match in found["matches"]] == ["MEMORY.md"]
        assert gone["status"] == "deleted"
        backend = StoreFileBackend(storage, tenant="acme")
        assert [entry.path for entry in backend.glob("**").entries] == ["/main/MEMORY.md"]

    def test_what_is_remembered_is_shown_to_the_tenants_next_run_and_to_no_other(self, memory):
        self.ask(memory, "acme", ("write_memory", {"content": "Lin likes tea."}))

        ours = self.ask(memory, "acme").all_messages_json().decode()
        theirs = self.ask(memory, "globex").all_messages_json().decode()

        assert "Lin likes tea." in ours
        assert "Lin likes tea." not in theirs

    def test_the_packages_test_model_can_call_the_tools(self, memory, storage):
        tools = ["write_memory", "search_memory"]
        agent = Agent(TestModel(call_tools=tools), deps_type=Deps, capabilities=[memory])

        done = json.loads(run(agent.run("Go on.", deps=Deps("acme"))).output)

        assert list(done) == tools
        assert done["write_memory"]["status"] == "created"

    def test_text_that_no_file_takes_is_told_to_the_model(self, memory, storage):
        done = self.ask(memory, "acme", ("write_memory", {"content": "a\0b"}))

        assert "NUL" in done.output
        assert storage.list_page("", None, 10) == []

    def test_of_twenty_concurrent_agents_none_loses_its_line(self, storage):
        """Each has read the same version before the first of them writes."""
        stores = StoreFileBackends(storage)
        start = asyncio.Barrier(EDITORS)

        class Together(WenchangMemoryStore):
            met = False

            async def read(self, path, *, max_chars):
                found = await super().read(path, max_chars=max_chars)
                if not self.met:
                    self.met = True
                    versions.append(found and found.version)
                    await start.wait()
                return found

            async def write(self, *args, **kwargs):
                try:
                    return await super().write(*args, **kwargs)
                except MemoryConflictError:
                    conflicts.append(1)
                    raise

        versions, conflicts = [], []

        def insist(line):
            def respond(messages, info):
                # After 16 lost races the tool asks the model to call again: that acknowledges nothing.
                last = messages[-1].parts[-1]
                if isinstance(last, ToolReturnPart) and last.outcome == "success":
                    return ModelResponse(parts=[TextPart(last.content["status"])])
                call = ToolCallPart(
                    "write_memory", {"content": line}, tool_call_id=f"call-{len(messages)}"
                )
                return ModelResponse(parts=[call])

            return FunctionModel(respond)

        async def work():
            runs = []
            for number in range(EDITORS):
                memory = Memory(store=Together(stores.of("acme")), inject_memory=False)
                agent = Agent(insist(f"line {number}"), capabilities=[memory], retries=EDITORS)
                runs.append(agent.run("Go on."))
            return await asyncio.gather(*runs)

        done = run(work())
        text = StoreFileBackend(storage, tenant="acme").read("/main/MEMORY.md").text

        assert versions == [None] * EDITORS
        assert len(conflicts) >= EDITORS - 1
        assert sorted(each.output for each in done) == ["appended"] * (EDITORS - 1) + ["created"]
        assert sorted(text.splitlines()) == sorted(f"line {n}" for n in range(EDITORS))


def test_without_the_package_the_import_names_the_line_to_run():
    script = (
        "import sys; sys.modules['pydantic_ai'] = None\n"
        "try:\n    import wenchang.adapters.pydantic_ai\n"
        "except ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert 'pip install "wenchang[pydantic-ai]"' in done.stdout
