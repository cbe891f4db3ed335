"""The memory tool on backends that know no folders: files in a checkpointed state, memory, mounts."""

from __future__ import annotations

import pytest

pytest.importorskip("anthropic", reason="the extra anthropic is not installed here")

from anthropic.tools import ToolError

from wenchang.adapters import _folders
from wenchang.adapters.anthropic import WenchangMemoryTool
from wenchang.core import MemoryStore
from wenchang.errors import BackendUnavailableError
from wenchang.files._patience import Patience
from wenchang.files.composite import CompositeFileBackend
from wenchang.files.errors import AlreadyExistsError, NotFoundError, VersionConflictError
from wenchang.files.memory_backend import MemoryFileBackend
from wenchang.files.policy import TreePolicy
from wenchang.files.state_backend import StateFileBackend
from wenchang.identity import Identity, ScopeGrant
from wenchang.metadata import EPOCH, FileMetadata
from wenchang.scope import ScopePolicy


@pytest.fixture
def memory(storage):
    identity = Identity({"user": ScopeGrant("ada", "member"), "org": ScopeGrant("press", "reader")})
    policy = ScopePolicy({"org": frozenset({"editor"})})
    return MemoryFileBackend(MemoryStore(storage), identity, policy, source="tool")


@pytest.fixture
def files_of_acme(stores):
    return stores.of("acme")


@pytest.fixture(params=["state", "memory", "mounts"])
def files(request, files, memory):
    if request.param == "state":
        return StateFileBackend()
    if request.param == "memory":
        return memory
    return CompositeFileBackend(StateFileBackend(), {"/user": files})


@pytest.fixture
def call(files):
    tool = WenchangMemoryTool(files)

    def call(command, **fields):
        try:
            return tool.call({"command": command, **fields})
        except ToolError as error:
            return error.content

    return call


A = "/memories/user/notes/a.md"
B = "/memories/user/diary/b.md"


def test_every_command_works(call):
    assert call("create", path=A, file_text="one\n") == f"File created successfully at: {A}"
    assert call("create", path=A, file_text="x") == f"Error: File {A} already exists"
    assert "1\tuno" in call("str_replace", path=A, old_str="one", new_str="uno")
    assert call("insert", path=A, insert_line=1, insert_text="due") == (
        f"The file {A} has been edited."
    )
    assert call("rename", old_path=A, new_path=B) == f"Successfully renamed {A} to {B}"
    assert call("view", path=B).splitlines()[1:] == ["     1\tuno", "     2\tdue"]
    assert call("view", path=A) == f"The path {A} does not exist. Please provide a valid path."
    assert [
        line.split("\t")[1] for line in call("view", path="/memories/user").splitlines()[1:]
    ] == [
        "/memories/user",
        "/memories/user/diary/",
        B,
    ]
    assert call("delete", path="/memories/user/diary") == (
        "Successfully deleted /memories/user/diary"
    )
    assert call("delete", path="/memories/user/diary") == (
        "Error: The path /memories/user/diary does not exist"
    )


def test_a_directory_is_renamed_with_all_in_it(call, files):
    for name in "ab":
        call("create", path=f"/memories/user/notes/{name}.md", file_text=name)
    call("create", path=B, file_text="b")
    assert call("rename", old_path="/memories/user/notes", new_path="/memories/user/diary") == (
        "Error: The destination /memories/user/diary already exists"
    )
    assert call("rename", old_path=A, new_path=B) == f"Error: The destination {B} already exists"
    assert call("rename", old_path="/memories/user/notes", new_path="/memories/user/old") == (
        "Successfully renamed /memories/user/notes to /memories/user/old"
    )
    assert [entry.path for entry in files.glob("**", "/user").entries] == [
        "/user/diary/b.md",
        "/user/old/a.md",
        "/user/old/b.md",
    ]
    assert "into itself" in call(
        "rename", old_path="/memories/user/old", new_path="/memories/user/old/x"
    )


def test_all_memory_is_cleared(call, files):
    call("create", path=A, file_text="a")
    call("create", path=B, file_text="b")
    assert WenchangMemoryTool(files).clear_all_memory() == "All memory cleared"
    assert files.glob("**").entries == ()


def test_what_an_identity_may_not_do_is_told(memory):
    with pytest.raises(ToolError, match="requires one of these roles: editor"):
        WenchangMemoryTool(memory).call(
            {"command": "create", "path": "/memories/org/house/a.md", "file_text": "x"}
        )


class Meddled(StateFileBackend):
    """Others change the file that is being moved, between its copy and the end of the original."""

    meddle = 0

    def delete(self, path, *, version=None, effect_key=None):
        if self.meddle and path == "/a.md":
            self.meddle -= 1
            self.write("/a.md", f"changed, {self.meddle} to come")
        return super().delete(path, version=version, effect_key=effect_key)


def test_a_file_that_changes_while_it_is_moved_arrives_as_it_was_last():
    files = Meddled()
    files.write("/a.md", "first")
    files.meddle = 3
    _folders.move(files, "/a.md", "/b.md")
    assert [entry.path for entry in files.glob("**").entries] == ["/b.md"]
    assert files.read("/b.md").text == "changed, 0 to come"


def test_a_move_that_never_gets_through_leaves_the_file_where_it_was(monkeypatch):
    monkeypatch.setattr(
        _folders, "PATIENCE", Patience(TreePolicy(deadline=1), monotonic=iter(range(100)).__next__)
    )
    files = Meddled()
    files.write("/a.md", "first")
    files.meddle = 1_000
    with pytest.raises(VersionConflictError):
        _folders.move(files, "/a.md", "/b.md")
    assert [entry.path for entry in files.glob("**").entries] == ["/a.md"]
    with pytest.raises(NotFoundError):
        files.read("/b.md")


def test_a_move_never_overwrites():
    files = StateFileBackend()
    files.write("/a.md", "a")
    files.write("/b.md", "b")
    with pytest.raises(AlreadyExistsError):
        _folders.move(files, "/a.md", "/b.md")
    assert files.read("/b.md").text == "b"


def test_a_refused_rename_of_a_file_that_may_only_be_read_leaves_no_copy(memory, storage):
    MemoryStore(storage).write_file(
        "org/press/house/x.md", "x", FileMetadata("", (), frozenset(), EPOCH), None, source="t"
    )
    fields = {"old_path": "/memories/org/house/x.md", "new_path": "/memories/user/notes/x.md"}
    with pytest.raises(ToolError, match="editor"):
        WenchangMemoryTool(memory).call({"command": "rename", **fields})
    assert [entry.path for entry in memory.glob("**").entries] == ["/org/house/x.md"]


class Vanishing(StateFileBackend):
    """Others delete the file that is being moved, after it was copied."""

    def delete(self, path, *, version=None, effect_key=None):
        if path == "/a.md":
            super().delete(path)
        return super().delete(path, version=version, effect_key=effect_key)


def test_a_file_that_is_deleted_while_it_is_moved_does_not_come_back():
    files = Vanishing()
    files.write("/a.md", "first")
    with pytest.raises(NotFoundError):
        _folders.move(files, "/a.md", "/b.md")
    assert files.glob("**").entries == ()


class Dark(StateFileBackend):
    """The answer to the deletion of the file that is being moved is lost."""

    def delete(self, path, *, version=None, effect_key=None):
        super().delete(path, version=version, effect_key=effect_key)
        raise BackendUnavailableError("timeout", "lost", outcome="unknown")


def test_a_move_whose_end_is_not_known_keeps_the_copy():
    files = Dark()
    files.write("/a.md", "first")
    with pytest.raises(BackendUnavailableError):
        _folders.move(files, "/a.md", "/b.md")
    assert files.read("/b.md").text == "first"


@pytest.mark.parametrize("mounted", [True, False])
def test_a_repeated_deletion_of_a_folder_leaves_what_others_put_there_since(files_of_acme, mounted):
    files = CompositeFileBackend(StateFileBackend(), {"/user": files_of_acme} if mounted else {})
    for name in "ab":
        files.write(f"/user/notes/{name}.md", "old")
    _folders.remove(files, "/user/notes", effect_key="call-1")
    assert files.glob("**").entries == ()
    with pytest.raises(NotFoundError):
        _folders.remove(files, "/user/notes", effect_key="call-1")
    files.write("/user/notes/a.md", "theirs")
    _folders.remove(files, "/user/notes", effect_key="call-1")
    assert files.read("/user/notes/a.md").text == "theirs"
    _folders.remove(files, "/user/notes", effect_key="call-2")
    assert files.glob("**").entries == ()


class Failing(StateFileBackend):
    """The storage goes away before a deletion, once so many of them were made."""

    deletions = 1

    def delete(self, path, *, version=None, effect_key=None):
        if not self.deletions:
            raise BackendUnavailableError("unavailable", outcome="not_applied")
        self.deletions -= 1
        return super().delete(path, version=version, effect_key=effect_key)


@pytest.mark.parametrize(
    "command",
    [
        {"command": "delete", "path": "/memories/x"},
        {"command": "rename", "old_path": "/memories/x", "new_path": "/memories/y"},
        {"command": "rename", "old_path": "/memories/x/c.md", "new_path": "/memories/y.md"},
        None,
    ],
    ids=["delete", "rename", "rename one", "clear"],
)
def test_an_outage_in_the_middle_does_not_say_that_nothing_was_changed(command):
    files = Failing()
    for path in ("/x/a.md", "/x/b.md", "/x/c.md"):
        files.write(path, "x")
    files.deletions = 0 if command and command.get("old_path", "").endswith(".md") else 2
    before = files.glob("**").entries
    tool = WenchangMemoryTool(files)
    with pytest.raises(ToolError) as failed:
        tool.call(command) if command else tool.clear_all_memory()
    assert files.glob("**").entries != before
    assert "Whether the change was made is not known" in failed.value.content


def test_an_outage_before_the_first_change_says_that_nothing_was_changed():
    files = Failing()
    files.write("/x/a.md", "x")
    files.deletions = 0
    with pytest.raises(ToolError, match="Nothing was changed"):
        WenchangMemoryTool(files).call({"command": "delete", "path": "/memories/x"})
