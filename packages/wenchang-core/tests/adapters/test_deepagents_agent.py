"""A real deepagents agent with a scripted model works on `/memories/` through its own tools."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import count

import pytest

pytest.importorskip("deepagents", reason="the extra deepagents is not installed here")

from deepagents import FilesystemPermission, create_deep_agent
from deepagents.backends import CompositeBackend, StateBackend
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import RunControl

from wenchang.adapters._deepagents_run import _Held
from wenchang.adapters.deepagents import TenantBackend, WenchangBackend
from wenchang.files.composite import CompositeFileBackend
from wenchang.files.state_backend import StateFileBackend
from wenchang.files.store_backend import StoreFileBackends


@dataclass
class Context:
    tenant: str | None


class Scripted(GenericFakeChatModel):
    """A chat model that says what it is told to say."""

    def bind_tools(self, tools, **kwargs):
        return self


def says(*turns):
    """Return a model; a turn is a text or a list of (tool, arguments)."""
    number = iter(range(1_000))
    messages = [
        AIMessage(turn)
        if isinstance(turn, str)
        else AIMessage(
            "",
            tool_calls=[
                {"name": tool, "args": arguments, "id": f"call-{next(number)}", "type": "tool_call"}
                for tool, arguments in turn
            ],
        )
        for turn in turns
    ]
    return Scripted(messages=iter(messages))


def agent_of(backend, *turns, **more):
    return create_deep_agent(
        model=says(*turns, "done"),
        backend=backend,
        context_schema=Context,
        checkpointer=InMemorySaver(),
        **more,
    )


def answers(result):
    return [
        (message.name, message.status, message.content)
        for message in result["messages"]
        if isinstance(message, ToolMessage)
    ]


def run(agent, tenant="acme", thread="t1", asked="Go on."):
    return answers(
        agent.invoke(
            {"messages": [("user", asked)]},
            {"configurable": {"thread_id": thread}},
            context=Context(tenant),
        )
    )


def mounted(stores):
    """The backend that the documentation shows."""
    memories = TenantBackend[Context](
        stores, lambda runtime: runtime.context.tenant, display_prefix="/memories"
    )
    return CompositeBackend(default=StateBackend(), routes={"/memories/": memories})


EVERY_TOOL = (
    [("write_file", {"file_path": "/memories/a/b.md", "content": "one\ntwo\n"})],
    [("edit_file", {"file_path": "/memories/a/b.md", "old_string": "two", "new_string": "2"})],
    [
        ("ls", {"path": "/memories"}),
        ("read_file", {"file_path": "/memories/a/b.md"}),
        ("glob", {"pattern": "/memories/**/*.md"}),
        ("grep", {"pattern": "2", "path": "/memories", "output_mode": "content"}),
    ],
    [("delete", {"file_path": "/memories/a"})],
    [("read_file", {"file_path": "/memories/a/b.md"})],
)


def check_every_tool(heard):
    assert [(name, status) for name, status, _ in heard] == [
        ("write_file", "success"),
        ("edit_file", "success"),
        ("ls", "success"),
        ("read_file", "success"),
        ("glob", "success"),
        ("grep", "success"),
        ("delete", "success"),
        ("read_file", "error"),
    ]
    said = [content for _, _, content in heard]
    assert "/memories/a/b.md" in said[0]
    assert "1 instance(s)" in said[1]
    assert "/memories/a/" in said[2]
    assert [line.split()[-1] for line in said[3].splitlines()[-2:]] == ["one", "2"]
    assert "/memories/a/b.md" in said[4]
    assert "2" in said[5]
    assert "/memories/a/b.md" in said[7]


def test_every_tool_works_on_the_tenants_files_in_the_composite_of_deepagents(stores):
    check_every_tool(run(agent_of(mounted(stores), *EVERY_TOOL)))
    assert stores.of("acme").ls("/").entries == ()


def test_every_tool_works_in_our_composite(stores):
    files = CompositeFileBackend(StateFileBackend(), {"/memories": stores.of("acme")})
    check_every_tool(run(agent_of(WenchangBackend(files), *EVERY_TOOL)))


def test_every_tool_works_asynchronously(stores):
    async def use():
        agent = agent_of(mounted(stores), *EVERY_TOOL)
        return await agent.ainvoke(
            {"messages": [("user", "Go on.")]},
            {"configurable": {"thread_id": "t1"}},
            context=Context("acme"),
        )

    check_every_tool(answers(asyncio.run(use())))


class TestTenants:
    def test_two_tenants_never_meet(self, stores):
        backend = mounted(stores)
        for tenant in ("acme", "globex"):
            write = [("write_file", {"file_path": "/memories/a.md", "content": tenant})]
            assert run(agent_of(backend, write), tenant)[0][1] == "success"
        look = [
            ("read_file", {"file_path": "/memories/a.md"}),
            ("grep", {"pattern": "acme", "path": "/memories"}),
        ]
        heard = run(agent_of(backend, look), "globex", "t2")
        assert "globex" in heard[0][2]
        assert "acme" not in heard[0][2] + heard[1][2]
        assert stores.of("acme").read("/a.md").text == "acme"

    @pytest.mark.parametrize(
        "path",
        ["/memories/../globex/a.md", "/memories/@store/globex/a.md", "/memories/%2E%2E/a.md"],
    )
    def test_no_path_reaches_another_tenant(self, stores, path):
        stores.of("globex").write("/a.md", "secret")
        heard = run(agent_of(mounted(stores), [("read_file", {"file_path": path})]))
        assert heard[0][1] == "error"
        assert "secret" not in heard[0][2]

    @pytest.mark.parametrize("tenant", [None, ""])
    def test_a_run_without_a_tenant_has_no_files(self, stores, tenant):
        calls = [
            ("write_file", {"file_path": "/memories/a.md", "content": "x"}),
            ("ls", {"path": "/memories"}),
        ]
        for _, status, content in run(agent_of(mounted(stores), calls), tenant):
            assert status == "error"
            assert "no tenant" in content

    def test_what_one_tenants_run_has_read_counts_for_no_other(self, stores):
        backend = mounted(stores)
        for tenant in ("acme", "globex"):
            stores.of(tenant).write("/a.md", "the same text")
        read = [("read_file", {"file_path": "/memories/a.md"})]
        write = [("write_file", {"file_path": "/memories/a.md", "content": "x"})]
        run(agent_of(backend, read), "acme")
        assert run(agent_of(backend, write), "globex")[0][1] == "error"


class TestVersions:
    def test_a_conflict_is_merged_and_goes_on_in_the_same_run(self, stores):
        files = stores.of("acme")
        files.write("/a.md", "theirs\n")
        heard = run(
            agent_of(
                mounted(stores),
                [("write_file", {"file_path": "/memories/a.md", "content": "mine\n"})],
                [("write_file", {"file_path": "/memories/a.md", "content": "theirs\nmine\n"})],
            )
        )
        assert [status for _, status, _ in heard] == ["error", "success"]
        assert "/memories/a.md is now at version v1-" in heard[0][2]
        assert heard[0][2].endswith("theirs\n")
        assert files.read("/a.md").text == "theirs\nmine\n"

    def test_what_one_thread_has_read_counts_in_its_next_turn_and_in_no_other_thread(self, stores):
        backend = mounted(stores)
        stores.of("acme").write("/a.md", "one")
        read = [("read_file", {"file_path": "/memories/a.md"})]
        write = [("write_file", {"file_path": "/memories/a.md", "content": "two"})]
        run(agent_of(backend, read), thread="t1")
        assert run(agent_of(backend, write), thread="t2")[-1][1] == "error"
        assert run(agent_of(backend, write), thread="t1")[-1][1] == "success"

    def test_without_a_thread_what_counts_is_what_the_run_has_read(self, stores):
        backend = mounted(stores)
        stores.of("acme").write("/a.md", "one")
        read = [("read_file", {"file_path": "/memories/a.md"})]
        write = [("write_file", {"file_path": "/memories/a.md", "content": "two"})]

        def heard(*turns):
            agent = create_deep_agent(
                model=says(*turns, "done"), backend=backend, context_schema=Context
            )
            asked = {"messages": [("user", "Go on.")]}
            return answers(agent.invoke(asked, context=Context("acme")))

        heard(read)
        assert heard(write)[-1][1] == "error"
        assert heard(read, write)[-1][1] == "success"

    def test_objects_are_told_apart_up_to_a_bound(self):
        held = _Held(2)
        owners = [RunControl() for _ in range(3)]
        numbers = count()
        assert [held.of(owner, numbers.__next__) for owner in owners] == [0, 1, 2]
        assert held.of(owners[2], numbers.__next__) == 2
        assert held.of(owners[0], numbers.__next__) > 2

    def test_what_the_main_agent_has_read_its_subagent_has_not(self, stores):
        stores.of("acme").write("/a.md", "one")
        heard = run(
            agent_of(
                mounted(stores),
                [("read_file", {"file_path": "/memories/a.md"})],
                [("task", {"description": "write", "subagent_type": "general-purpose"})],
                [("write_file", {"file_path": "/memories/a.md", "content": "two"})],
                "The subagent is done.",
                [("write_file", {"file_path": "/memories/a.md", "content": "three"})],
            )
        )
        assert heard[-1][:2] == ("write_file", "success")
        assert stores.of("acme").read("/a.md").text == "three"
        assert stores.of("acme").read("/a.md").version.startswith("v2-")


class TestTheRestOfDeepagents:
    def test_memory_files_are_loaded_and_a_missing_one_is_passed_over(self, stores):
        stores.of("acme").write("/AGENTS.md", "Answer in rhymes.")
        heard = []

        class Listening(Scripted):
            def _generate(self, messages, *args, **more):
                heard.extend(str(message.content) for message in messages)
                return super()._generate(messages, *args, **more)

        agent = create_deep_agent(
            model=Listening(messages=iter([AIMessage("done")])),
            backend=mounted(stores),
            context_schema=Context,
            memory=["/memories/AGENTS.md", "/memories/missing/AGENTS.md"],
        )
        agent.invoke({"messages": [("user", "Go on.")]}, context=Context("acme"))
        assert any("Answer in rhymes." in text for text in heard)

    def test_rules_that_deny_hold_for_what_is_found(self, stores):
        files = stores.of("acme")
        files.write("/secret/a.md", "tea")
        files.write("/open/b.md", "tea")
        heard = run(
            agent_of(
                mounted(stores),
                [
                    ("grep", {"pattern": "tea", "path": "/memories"}),
                    ("glob", {"pattern": "*.md", "path": "/memories"}),
                    ("read_file", {"file_path": "/memories/secret/a.md"}),
                    ("delete", {"file_path": "/memories/secret/a.md"}),
                ],
                permissions=[
                    FilesystemPermission(
                        operations=["read", "write"], paths=["/memories/secret/**"], mode="deny"
                    )
                ],
            )
        )
        assert "/memories/open/b.md" in heard[0][2]
        assert "/memories/open/b.md" in heard[1][2]
        assert "secret" not in heard[0][2] + heard[1][2]
        assert [status for _, status, _ in heard[2:]] == ["error", "error"]
        assert files.read("/secret/a.md").text == "tea"


class DiedError(Exception):
    """The process goes down."""


class Dying(WenchangBackend):
    """Dies after the change was committed and before its answer is returned."""

    def __init__(self, files, **more):
        super().__init__(files, **more)
        self.alive = 0

    def _die(self, result):
        self.alive -= 1
        if self.alive < 0:
            raise DiedError
        return result

    def write(self, file_path, content):
        return self._die(super().write(file_path, content))

    def edit(self, *args, **more):
        return self._die(super().edit(*args, **more))

    def delete(self, file_path):
        return self._die(super().delete(file_path))


class TestReplay:
    def resumed(self, storage, *calls, again):
        """Run calls, each killed after its commit, then resume the thread in another process."""
        saver = InMemorySaver()
        config = {"configurable": {"thread_id": "t1"}}
        dying = Dying(StoreFileBackends(storage).of("acme"))
        agent = create_deep_agent(model=says(*calls, "done"), backend=dying, checkpointer=saver)
        with pytest.raises(DiedError):
            agent.invoke({"messages": [("user", "Go on.")]}, config)
        again(StoreFileBackends(storage).of("acme"))
        # Another handle that remembers nothing, over a backend of its own: another process.
        files = StoreFileBackends(storage).of("acme")
        agent = create_deep_agent(
            model=says("done"), backend=WenchangBackend(files), checkpointer=saver
        )
        return answers(agent.invoke(None, config)), files

    def test_an_edit_is_not_applied_twice(self, storage):
        StoreFileBackends(storage).of("acme").write("/a.md", "a\n")
        edit = {"file_path": "/a.md", "old_string": "a", "new_string": "aa"}
        heard, files = self.resumed(
            storage,
            [("edit_file", edit)],
            again=lambda files: files.edit("/a.md", "aa", "aa, b"),
        )
        assert heard[0][1] == "success"
        assert files.read("/a.md").text == "aa, b\n"

    def test_a_created_file_stays_as_others_left_it(self, storage):
        heard, files = self.resumed(
            storage,
            [("write_file", {"file_path": "/a.md", "content": "mine"})],
            again=lambda files: files.write("/a.md", "theirs"),
        )
        assert heard[0][1] == "success"
        assert files.read("/a.md").text == "theirs"

    def test_a_deleted_file_that_another_made_anew_stays(self, storage):
        StoreFileBackends(storage).of("acme").write("/a.md", "a\n")
        heard, files = self.resumed(
            storage,
            [("delete", {"file_path": "/a.md"})],
            again=lambda files: files.write("/a.md", "anew"),
        )
        assert heard[0][1] == "success"
        assert files.read("/a.md").text == "anew"

    def test_a_deleted_folder_that_another_made_anew_stays(self, storage):
        StoreFileBackends(storage).of("acme").write("/x/a.md", "a\n")
        heard, files = self.resumed(
            storage,
            [("delete", {"file_path": "/x"})],
            again=lambda files: files.write("/x/b.md", "anew"),
        )
        assert heard[0][1] == "success"
        assert files.read("/x/b.md").text == "anew"

    def test_a_refusal_is_the_outcome_again(self, storage):
        edit = {"file_path": "/a.md", "old_string": "a", "new_string": "b"}
        heard, files = self.resumed(
            storage,
            [("edit_file", edit)],
            again=lambda files: files.write("/a.md", "a"),
        )
        assert heard[0][1] == "error"
        assert files.read("/a.md").text == "a"

    def test_a_conditional_write_that_a_new_process_repeats_is_not_applied_twice(self, storage):
        StoreFileBackends(storage).of("acme").write("/a.md", "one")
        saver = InMemorySaver()
        config = {"configurable": {"thread_id": "t1"}}
        dying = Dying(StoreFileBackends(storage).of("acme"))
        turns = (
            [("read_file", {"file_path": "/a.md"})],
            [("write_file", {"file_path": "/a.md", "content": "two"})],
        )
        agent = create_deep_agent(model=says(*turns, "done"), backend=dying, checkpointer=saver)
        with pytest.raises(DiedError):
            agent.invoke({"messages": [("user", "Go on.")]}, config)
        files = StoreFileBackends(storage).of("acme")
        assert files.read("/a.md").text == "two"
        files.write("/a.md", "theirs")
        agent = create_deep_agent(
            model=says("done"), backend=WenchangBackend(files), checkpointer=saver
        )
        heard = answers(agent.invoke(None, config))
        assert files.read("/a.md").text == "theirs"
        assert heard[-1][1] == "error"
        assert heard[-1][2].endswith("Its current text:\ntheirs")
        # It was written, and then replaced: the model must not be told that it never was.
        assert "nothing was written" not in heard[-1][2]
        assert "This call was carried out before and is not made again" in heard[-1][2]

    def test_in_the_same_process_a_repeated_conditional_write_has_its_first_outcome(self, storage):
        files = StoreFileBackends(storage).of("acme")
        files.write("/a.md", "one")
        saver = InMemorySaver()
        config = {"configurable": {"thread_id": "t1"}}
        dying = Dying(files)
        turns = (
            [("read_file", {"file_path": "/a.md"})],
            [("write_file", {"file_path": "/a.md", "content": "two"})],
        )
        agent = create_deep_agent(model=says(*turns, "done"), backend=dying, checkpointer=saver)
        with pytest.raises(DiedError):
            agent.invoke({"messages": [("user", "Go on.")]}, config)
        files.write("/a.md", "theirs")
        dying.alive = 1_000
        assert answers(agent.invoke(None, config))[-1][1] == "success"
        assert files.read("/a.md").text == "theirs"

    def test_two_equal_calls_are_two_calls(self, stores):
        stores.of("acme").write("/a.md", "-\n")
        edit = ("edit_file", {"file_path": "/memories/a.md", "old_string": "-", "new_string": "x-"})
        heard = run(agent_of(mounted(stores), [edit], [edit]))
        assert [status for _, status, _ in heard] == ["success", "success"]
        assert stores.of("acme").read("/a.md").text == "xx-\n"

    def test_equal_changes_of_one_call_are_all_made_and_none_is_repeated(self, storage):
        StoreFileBackends(storage).of("acme").write("/a.md", "-\n")

        def twice(backend):
            def mark_twice() -> str:
                """Mark the file twice."""
                results = [backend.edit("/a.md", "-", "x-") for _ in range(2)]
                return ", ".join(result.error or "marked" for result in results)

            return mark_twice

        saver = InMemorySaver()
        config = {"configurable": {"thread_id": "t1"}}
        dying = Dying(StoreFileBackends(storage).of("acme"))
        dying.alive = 1
        agent = create_deep_agent(
            model=says([("mark_twice", {})], "done"),
            backend=dying,
            tools=[twice(dying)],
            checkpointer=saver,
        )
        with pytest.raises(DiedError):
            agent.invoke({"messages": [("user", "Go on.")]}, config)
        files = StoreFileBackends(storage).of("acme")
        assert files.read("/a.md").text == "xx-\n"
        backend = WenchangBackend(files)
        agent = create_deep_agent(
            model=says("done"), backend=backend, tools=[twice(backend)], checkpointer=saver
        )
        assert answers(agent.invoke(None, config))[-1][2] == "marked, marked"
        assert files.read("/a.md").text == "xx-\n"
