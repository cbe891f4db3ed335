"""What a long-term store as files does, fact by fact (L1 to L19)."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise

import pytest

from wenchang.files.composite import CompositeFileBackend
from wenchang.files.errors import (
    AlreadyExistsError,
    EditMatchError,
    InvalidArgumentError,
    LimitExceededError,
    NoTenantError,
    NotFoundError,
    TreeStateError,
)
from wenchang.files.limits import TreeLimits
from wenchang.files.state_backend import StateFileBackend
from wenchang.files.store_backend import StoreFileBackend, StoreFileBackends, tree_base
from wenchang.storage import open_storage

URLS = ("memory://", "file://{}", "sqlite:///{}/files.db")


@pytest.fixture(params=URLS, ids=lambda url: url.partition(":")[0])
def storage(request, tmp_path):
    if request.param.startswith("sqlite"):
        pytest.importorskip("wenchang_sql", reason="the SQL backend is not installed")
    with open_storage(request.param.format(tmp_path)) as storage:
        yield storage


@pytest.fixture
def store(storage):
    return StoreFileBackend(storage, tenant="acme")


def paths(listing):
    return [entry.path for entry in listing.entries]


def root_writes(storage):
    """Count the conditional writes of roots, which are the commits."""
    commits = []
    original = storage.put_if_version

    def counted(key, *rest):
        if key.endswith("/root"):
            commits.append(key)
        return original(key, *rest)

    storage.put_if_version = counted
    return commits


def test_l_01_files_mounted_at_memories_outlive_the_thread(storage):
    for expected in ("", "fact\n"):
        thread = StateFileBackend()
        files = CompositeFileBackend(
            thread, {"/memories": StoreFileBackend(storage, tenant="acme")}
        )
        files.write("/draft.md", "gone with the thread")
        seen = [files.read(path).text for path in paths(files.glob("**", "/memories"))]
        assert "".join(seen) == expected
        files.write("/memories/a.md", "fact\n")


def test_l_02_the_namespace_begins_with_the_tenant_whatever_is_configured(storage):
    victim = StoreFileBackends(storage).of("acme")
    victim.write("/secret.md", "x")
    for namespace in ((), ("acme",), ("..", "acme"), ("@store", "acme"), ("../acme",), ("=",)):
        thief = StoreFileBackends(storage, namespace).of("evil")
        assert thief.glob("**").entries == ()
        thief.write("/secret.md", "mine")
    assert victim.read("/secret.md").text == "x"


@pytest.mark.parametrize("tenant", [None, ""])
def test_l_02_a_run_without_a_tenant_is_refused(storage, tenant):
    with pytest.raises(NoTenantError):
        StoreFileBackend(storage, tenant=tenant)
    with pytest.raises(NoTenantError):
        StoreFileBackends(storage).of(tenant)


def test_l_02_no_two_tenants_or_namespaces_meet():
    long = "x" * 61
    places = [
        tree_base(tenant, namespace)
        for tenant, namespace in (
            ("a", ()),
            ("a", ("b",)),
            ("a/b", ()),
            ("a%2Fb", ()),
            ("A", ()),
            ("a.", ()),
            ("..", ()),
            ("=", ()),
            ("a", ("=",)),
            ("é", ()),
            ("é" * 40, ()),
            (long, ()),
            (long + "y", ()),
        )
    ]
    assert len(set(places)) == len(places)
    # None lies beneath another, where its garbage would be collected.
    for one, other in pairwise(sorted(places)):
        assert not other.startswith(one + "/")
    for place in places:
        assert all(len(segment) <= 60 for segment in place.split("/"))
        assert all(segment not in {"", ".", ".."} for segment in place.split("/"))


def test_l_03_a_state_file_is_one_entry_with_its_content():
    files = {}
    state = StateFileBackend(files)
    state.write("/a/b.md", "text")
    assert files == {"/a/b.md": {"content": "text"}}
    assert json.loads(json.dumps(files)) == files
    assert paths(state.ls("/")) == ["/a"]
    state.delete("/a/b.md")
    assert paths(state.ls("/")) == []


def test_l_03_a_checkpointed_entry_never_changes_and_foreign_fields_stay():
    files = {"/a.md": {"content": "one", "modified_at": "then"}}
    taken = dict(files)
    state = StateFileBackend(files)
    state.edit("/a.md", "one", "two")
    assert taken == {"/a.md": {"content": "one", "modified_at": "then"}}
    assert files == {"/a.md": {"content": "two", "modified_at": "then"}}


def test_l_04_and_l_19_locks_name_the_store_the_namespace_and_the_file(storage):
    store = StoreFileBackend(storage, ("assistant",), tenant="acme corp")
    assert store.locks("/notes/a.md") == ("files/store/acme%20corp/assistant/notes/a.md",)
    composite = CompositeFileBackend(StateFileBackend(), {"/memories": store})
    assert composite.locks("/memories/notes/a.md") == store.locks("/notes/a.md")
    assert composite.locks("/a.md") == ("files/state/a.md",)


def test_l_05_each_mutation_is_one_commit(store, storage):
    store.write("/a.md", "x")
    commits = root_writes(storage)
    for count, call in enumerate(
        (
            lambda: store.write("/a.md", "one", effect_key="1"),
            lambda: store.edit("/a.md", "one", "two", effect_key="2"),
            lambda: store.delete("/a.md", effect_key="3"),
        ),
        1,
    ):
        call()
        assert len(commits) == count


def test_l_05_an_edit_is_decided_on_what_is_stored_when_it_commits(storage):
    one, other = (StoreFileBackend(storage, tenant="acme") for _ in range(2))
    one.write("/a.md", "x")
    other.read("/a.md")
    original = storage.put_if_version
    done = []

    def overtaken(key, *rest):
        if key.endswith("/root") and not done:
            done.append(key)
            one.write("/a.md", "changed meanwhile")
        return original(key, *rest)

    storage.put_if_version = overtaken
    with pytest.raises(EditMatchError):
        other.edit("/a.md", "x", "y")
    assert one.read("/a.md").text == "changed meanwhile"


REPLAY = """
import sys
from wenchang.files.errors import FileToolError
from wenchang.files.store_backend import StoreFileBackend
from wenchang.storage import open_storage

calls = {
    "write": lambda files: files.write("/a.md", "written", effect_key="k-write"),
    "edit": lambda files: files.edit("/b.md", "x", "xx", effect_key="k-edit"),
    "refused": lambda files: files.edit("/b.md", "no such text", "y", effect_key="k-refused"),
    "folder": lambda files: files.delete("/f", effect_key="k-folder"),
    "delete": lambda files: files.delete("/c.md", effect_key="k-delete"),
}
with open_storage(sys.argv[1]) as storage:
    files = StoreFileBackend(storage, tenant="acme")
    for name, call in calls.items():
        try:
            outcome = call(files)
            print(name, type(outcome).__name__, outcome.replayed)
        except FileToolError as error:
            print(name, error.code)
"""


@pytest.mark.parametrize("url", URLS[1:], ids=["file", "sqlite"])
def test_l_06_another_process_gets_the_first_outcomes_and_applies_nothing(url, tmp_path):
    if url.startswith("sqlite"):
        pytest.importorskip("wenchang_sql", reason="the SQL backend is not installed")
    where = url.format(tmp_path)
    with open_storage(where) as storage:
        files = StoreFileBackend(storage, tenant="acme")
        for name in ("b", "c", "f/x"):
            files.write(f"/{name}.md", "x")

    def run():
        done = subprocess.run(
            [sys.executable, "-c", REPLAY, where],
            check=True,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
        )
        return done.stdout.split("\n")

    first = run()
    assert first[:5] == [
        "write FileChange False",
        "edit FileChange False",
        "refused EDIT_MATCH",
        "folder NOT_FOUND",
        "delete FileRemoval False",
    ]
    with open_storage(where) as storage:
        files = StoreFileBackend(storage, tenant="acme")
        # Each call would do something else by now.
        files.write("/a.md", "later")
        files.write("/b.md", "x no such text")
        files.delete("/f/x.md")
        files.write("/f", "x")
        files.write("/c.md", "again")
        held = [files.read(path).text for path in paths(files.glob("**"))]
    assert run() == [line.replace("False", "True") for line in first]
    with open_storage(where) as storage:
        files = StoreFileBackend(storage, tenant="acme")
        assert [files.read(path).text for path in paths(files.glob("**"))] == held


def test_l_06_a_mutation_that_was_killed_after_its_commit_is_not_applied_again(storage):
    class Killed(BaseException):
        pass

    files = StoreFileBackend(storage, tenant="acme")
    files.write("/a.md", "x")
    original = storage.put_if_version

    def killed(key, *rest):
        version = original(key, *rest)
        if key.endswith("/root"):
            raise Killed
        return version

    storage.put_if_version = killed
    with pytest.raises(Killed):
        files.edit("/a.md", "x", "xx", replace_all=True, effect_key="key")
    storage.put_if_version = original
    again = StoreFileBackend(storage, tenant="acme").edit(
        "/a.md", "x", "xx", replace_all=True, effect_key="key"
    )
    assert again.replayed
    assert StoreFileBackend(storage, tenant="acme").read("/a.md").text == "xx"


def test_l_07_a_write_over_a_bound_is_a_tool_error(storage):
    limits = TreeLimits(max_file_bytes=10, max_file_count=2, max_depth=1)
    for files in (
        StoreFileBackends(storage, limits=limits).of("acme"),
        StateFileBackend(limits=limits),
    ):
        files.write("/a", "x" * 10)
        files.write("/d/b", "x")
        for path, text, limit in (
            ("/a", "x" * 11, "maxFileBytes"),
            ("/c", "x", "maxFileCount"),
            ("/d/e/f", "x", "maxDepth"),
        ):
            with pytest.raises(LimitExceededError) as refused:
                files.write(path, text)
            assert refused.value.limit == limit
        assert paths(files.glob("**")) == ["/a", "/d/b"]


def test_l_08_no_listing_looks_at_more_than_max_items(storage):
    bounded = StoreFileBackend(storage, tenant="acme", max_items=3)
    for files in (bounded, StateFileBackend(max_items=3)):
        for name in "abcde":
            files.write(f"/{name}", "x")
        assert files.max_items == 3
        for listing in (files.ls("/"), files.glob("*"), files.ls("/", limit=5)):
            assert paths(listing) == ["/a", "/b", "/c"]
            assert listing.truncated
        assert paths(files.glob("e")) == []
        assert files.glob("e").truncated
        result = files.grep("x")
        assert [match.path for match in result.matches] == ["/a", "/b", "/c"]
        assert result.truncated


def test_l_09_delete_never_reads_what_it_deletes(store, storage):
    store.write("/a.md", "x")
    key = f"{tree_base('acme')}/{store.tree.snapshot().lookup('a.md').key}"
    storage.put(key, b"\xff", {})
    fresh = StoreFileBackend(storage, tenant="acme")
    with pytest.raises(TreeStateError):
        fresh.read("/a.md")
    asked = []
    original = storage.get
    storage.get = lambda key: asked.append(key) or original(key)
    fresh.delete("/a.md")
    assert key not in asked
    for path in ("/a.md", "/nothing"):
        with pytest.raises(NotFoundError):
            fresh.delete(path)
    with pytest.raises(InvalidArgumentError):
        fresh.delete("/")


def test_l_10_an_edit_takes_one_occurrence_or_all(store):
    store.write("/a.md", "one two two")
    store.edit("/a.md", "one", "1")
    for old in ("three", "two"):
        with pytest.raises(EditMatchError):
            store.edit("/a.md", old, "x")
    with pytest.raises(InvalidArgumentError):
        store.edit("/a.md", "", "x")
    store.edit("/a.md", "two", "2", replace_all=True)
    assert store.read("/a.md").text == "1 2 2"


def test_l_11_accept_is_asked_before_the_limit_counts(store):
    for name in "abcd":
        store.write(f"/{name}", "x")
    asked = []

    def accept(path):
        asked.append(path)
        return path > "/b"

    listing = store.glob("*", accept=accept, limit=1)
    assert paths(listing) == ["/c"]
    assert listing.truncated
    assert asked == ["/a", "/b", "/c", "/d"]


def test_l_12_a_composite_fills_its_limit_with_visible_files(store):
    for name in "abc":
        store.write(f"/m/{name}", "hidden x")
    store.write("/z", "x")
    files = CompositeFileBackend(store, {"/m": StateFileBackend({"/q": {"content": "x"}})})
    assert paths(files.glob("**", limit=2)) == ["/m/q", "/z"]
    assert not files.glob("**", limit=2).truncated
    assert [match.path for match in files.grep("x", limit=2).matches] == ["/m/q", "/z"]
    assert paths(files.ls("/")) == ["/m", "/z"]
    for call in (files.read, files.delete):
        with pytest.raises(NotFoundError) as refused:
            call("/m/a")
        assert refused.value.path == "/m/a"
        assert "/m/a" in refused.value.detail
    assert paths(store.ls("/m")) == ["/m/a", "/m/b", "/m/c"]


def test_l_13_ls_gives_what_is_directly_beneath(store):
    for path in ("/a/b/c", "/a/d", "/e"):
        store.write(path, "x")
    assert [(entry.path, entry.kind) for entry in store.ls("/").entries] == [
        ("/a", "folder"),
        ("/e", "file"),
    ]
    assert paths(store.ls("/a", limit=1)) == ["/a/b"]


def test_l_14_read_gives_lines_from_a_zero_based_offset(store):
    store.write("/a", "0\n1\n2\n3")
    assert store.read("/a", 1, 2).text == "1\n2\n"
    assert store.read("/a", 3).text == "3"


def test_l_15_lines_are_matched_in_path_and_line_order_by_a_bounded_matcher(store):
    store.write("/b", "x1\nx2")
    store.write("/a", "y\nx3")
    found = [(match.path, match.line) for match in store.grep(r"x\d").matches]
    assert found == [("/a", 2), ("/b", 1), ("/b", 2)]
    store.write("/c", "a" * 5000 + "!")
    for pattern in ("(a+)+$", "(x(a+)+y)", "(a|a)*$"):
        store.grep(pattern)


def test_l_16_write_creates_or_replaces(store):
    assert store.write("/a", "1").created
    assert not store.write("/a", "2").created
    with pytest.raises(AlreadyExistsError):
        store.write("/a/b", "x")


def test_l_17_glob_is_relative_to_where_it_looks(store):
    for path in ("/n/a.md", "/n/m/a.md"):
        store.write(path, "x")
    assert paths(store.glob("m/*.md", "/n")) == ["/n/m/a.md"]
    assert paths(store.glob("n/*.md", "/n")) == []
    assert paths(store.glob("*.md", "/n/a.md")) == ["/n/a.md"]
    with pytest.raises(NotFoundError):
        store.glob("*", "/none")


def test_l_18_include_without_a_slash_is_for_names(store):
    for path in ("/n/a.md", "/n/m/a.md", "/n/m/b.txt"):
        store.write(path, "x")

    def found(include):
        return [match.path for match in store.grep("x", "/n", include=include).matches]

    assert found("*.md") == ["/n/a.md", "/n/m/a.md"]
    assert found("m/*") == ["/n/m/a.md", "/n/m/b.txt"]
    assert found(None) == ["/n/a.md", "/n/m/a.md", "/n/m/b.txt"]
