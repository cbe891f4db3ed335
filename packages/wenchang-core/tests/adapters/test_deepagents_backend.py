"""`WenchangBackend` keeps the protocol of deepagents: results, errors that are returned, versions."""

from __future__ import annotations

import asyncio
import inspect
import json

import pytest

pytest.importorskip("deepagents", reason="the extra deepagents is not installed here")

from deepagents.backends import CompositeBackend
from deepagents.backends.protocol import BackendProtocol

from wenchang.adapters._deepagents_desk import MAX_EXCERPT_CHARS
from wenchang.adapters._seen import SeenVersions
from wenchang.adapters.deepagents import TenantBackend, WenchangBackend
from wenchang.files.composite import CompositeFileBackend
from wenchang.files.errors import InvalidArgumentError, NotFoundError
from wenchang.files.limits import TreeLimits
from wenchang.files.state_backend import StateFileBackend
from wenchang.files.store_backend import StoreFileBackend, StoreFileBackends
from wenchang.files.tree import FileTree

CATASTROPHIC = ["(a+)+$", "(x(a+)+y)", "(a|a)*$"]


@pytest.fixture(params=["store", "state", "composite"])
def any_files(request, files):
    if request.param == "store":
        return files
    if request.param == "state":
        return StateFileBackend()
    return CompositeFileBackend(files, {"/drafts": StateFileBackend()})


@pytest.fixture
def backend(any_files):
    return WenchangBackend(any_files, display_prefix="/memories")


@pytest.fixture
def on_store(files):
    return WenchangBackend(files, display_prefix="/memories/")


def same_agent_of(files):
    """Another agent: it has read nothing yet."""
    return WenchangBackend(files, display_prefix="/memories")


class TestTheProtocol:
    def test_every_method_is_there_and_takes_what_the_protocol_says(self):
        methods = [
            name
            for name, member in inspect.getmembers(BackendProtocol, inspect.isfunction)
            if not name.startswith("_")
        ]
        assert len(methods) == 18
        for name in methods:
            given = inspect.signature(getattr(WenchangBackend, name)).parameters
            wanted = inspect.signature(getattr(BackendProtocol, name)).parameters
            assert [(p.name, p.kind, p.default) for p in given.values()] == [
                (p.name, p.kind, p.default) for p in wanted.values()
            ]
            if not name.startswith("a"):
                assert getattr(WenchangBackend, name) is not getattr(BackendProtocol, name)

    def test_the_async_twins_do_the_same(self, on_store):
        async def use():
            assert (await on_store.awrite("/a/b.md", "one\ntwo\n")).path == "/a/b.md"
            assert (await on_store.aedit("/a/b.md", "two", "2")).occurrences == 1
            assert (await on_store.aread("/a/b.md")).file_data["content"] == "one\n2\n"
            assert (await on_store.als("/")).entries == [{"path": "/a/", "is_dir": True}]
            assert [m["path"] for m in (await on_store.aglob("*.md")).matches] == ["/a/b.md"]
            assert [m["line"] for m in (await on_store.agrep("2", max_count=1)).matches] == [2]
            assert (await on_store.aupload_files([("/c.md", b"x")]))[0].error is None
            assert (await on_store.adownload_files(["/c.md"]))[0].content == b"x"
            assert (await on_store.adelete("/a/b.md")).path == "/a/b.md"
            assert (await on_store.aread("/a/b.md")).error

        asyncio.run(use())


class TestReading:
    def test_a_folder_ends_in_a_slash_and_every_path_is_absolute(self, backend):
        backend.write("/b.md", "12345")
        backend.write("/sub/c.md", "x")
        entries = {entry["path"]: entry for entry in backend.ls("/").entries}
        assert entries["/sub/"]["is_dir"] is True
        assert entries["/b.md"]["is_dir"] is False
        assert entries["/b.md"]["size"] == 5
        assert [entry["path"] for entry in backend.ls("/sub/").entries] == ["/sub/c.md"]

    def test_a_store_tells_when_a_file_was_modified(self, on_store):
        on_store.write("/b.md", "12345")
        assert on_store.ls("/").entries[0]["modified_at"].endswith("+00:00")
        assert on_store.read("/b.md").file_data["modified_at"].endswith("+00:00")

    def test_what_is_no_folder_is_told_from_what_is_missing(self, backend):
        backend.write("/b.md", "x")
        assert backend.ls("/b.md").error == "not_a_directory: /memories/b.md is a file."
        error = backend.ls("/no").error
        assert "/memories/no" in error
        assert "not_a_directory" not in error

    @pytest.mark.parametrize(
        ("offset", "limit", "text", "window"),
        [
            (0, 2000, "1\n2\n3", (1, 3, 3, None)),
            (-5, 2, "1\n2\n", (1, 2, 3, 2)),
            (1, 1, "2\n", (2, 2, 3, 2)),
            (2, 9, "3", (3, 3, 3, None)),
        ],
    )
    def test_a_window_of_lines_has_its_fields(self, backend, offset, limit, text, window):
        backend.write("/a.md", "1\n2\n3")
        result = backend.read("/a.md", offset, limit)
        assert result.error is None
        assert result.file_data["content"] == text
        assert result.file_data["encoding"] == "utf-8"
        fields = (result.start_line, result.end_line, result.total_lines, result.next_offset)
        assert fields == window

    @pytest.mark.parametrize("limit", [0, -1])
    def test_no_lines_wanted_is_an_empty_answer_without_fields(self, backend, limit):
        backend.write("/a.md", "1\n")
        result = backend.read("/a.md", 0, limit)
        assert result.file_data["content"] == ""
        assert getattr(result, "no_lines_requested", True)  # not in the first releases of 0.7
        assert (result.start_line, result.total_lines, result.next_offset) == (None, None, None)

    def test_an_empty_file_has_no_window_and_an_offset_past_the_end_is_an_error(self, backend):
        backend.write("/a.md", "")
        assert backend.read("/a.md").file_data["content"] == ""
        assert backend.read("/a.md").start_line is None
        backend.write("/b.md", "1\n")
        assert backend.read("/b.md", 7).error == "Line offset 7 exceeds file length (1 lines)"

    def test_text_is_returned_as_it_is_stored(self, backend):
        text = "\ufeffone\r\ntwo\rthree\n"
        backend.write("/a.md", text)
        assert backend.read("/a.md").file_data["content"] == text

    def test_an_error_names_the_path_as_the_model_knows_it(self, backend):
        assert "/memories/no.md" in backend.read("/no.md").error
        assert "/memories/no.md" in backend.edit("/no.md", "a", "b").error
        assert "/memories/no.md" in backend.delete("/no.md").error


class TestGrep:
    def test_a_pattern_is_literal_as_the_tool_says(self, backend):
        backend.write("/a.md", "a.b\naxb\n(a+)+$ {x} \\d [y] ^|?*\n")
        assert [m["text"] for m in backend.grep("a.b").matches] == ["a.b"]
        for text in ("(a+)+$", "{x}", "\\d", "[y]", "^|?*"):
            assert [m["line"] for m in backend.grep(text).matches] == [3]

    def test_matches_come_in_order_and_stop_at_the_count(self, backend):
        for path in ("/b.md", "/a.md", "/x/c.txt"):
            backend.write(path, "hit\nmiss\nhit\n")
        found = backend.grep("hit")
        assert [(m["path"], m["line"]) for m in found.matches] == [
            ("/a.md", 1),
            ("/a.md", 3),
            ("/b.md", 1),
            ("/b.md", 3),
            ("/x/c.txt", 1),
            ("/x/c.txt", 3),
        ]
        assert not found.truncated
        assert len(backend.grep("hit", max_count=6).matches) == 6
        assert not backend.grep("hit", max_count=6).truncated
        assert len(backend.grep("hit", max_count=5).matches) == 5
        assert backend.grep("hit", max_count=5).truncated
        assert backend.grep("hit", max_count=0).matches == []
        assert {m["path"] for m in backend.grep("hit", "/x").matches} == {"/x/c.txt"}
        assert {m["path"] for m in backend.grep("hit", glob="*.{txt,rst}").matches} == {"/x/c.txt"}

    @pytest.mark.parametrize("pattern", CATASTROPHIC)
    @pytest.mark.parametrize("regex", [False, True])
    def test_a_catastrophic_pattern_is_answered(self, any_files, pattern, regex):
        backend = WenchangBackend(any_files, regex=regex)
        backend.write("/a.md", "a" * 5_000 + "!" + "\nx" + "a" * 5_000 + "\n")
        found = backend.grep(pattern)
        assert found.error is None
        lines = {"(a+)+$": [2], "(x(a+)+y)": [], "(a|a)*$": [1, 2]}[pattern] if regex else []
        assert [m["line"] for m in found.matches] == lines

    @pytest.mark.parametrize("pattern", ["(?=a)b", "(?<!a)b", r"(a)\1"])
    def test_what_re2_does_not_take_is_refused_clearly(self, any_files, pattern):
        error = WenchangBackend(any_files, regex=True).grep(pattern).error
        assert "Argument pattern is invalid" in error
        assert "no look-around and no back-references" in error

    def test_files_that_are_no_text_are_named_where_nothing_was_found(self, storage, on_store):
        on_store.write("/a.md", "hit")
        on_store.write("/b.md", "other")
        spoil(storage, b"other")
        found = same_agent_of(StoreFileBackends(storage).of("acme")).grep("other")
        assert found.error == "Not searched, because they are not text: /memories/b.md"
        assert found.matches is None

    def test_of_many_files_that_are_no_text_some_are_named(self):
        files = StateFileBackend({f"/{number:04}.md": {"content": None} for number in range(1000)})
        error = WenchangBackend(files, display_prefix="/memories").grep("hit").error
        assert error.endswith("/memories/0018.md, /memories/0019.md and 980 more")

    def test_beside_a_file_that_is_no_text_hits_keep_their_place_in_a_composite(
        self, storage, on_store
    ):
        on_store.write("/a.md", "hit")
        on_store.write("/b.md", "other")
        spoil(storage, b"other")
        drafts = StateFileBackend()
        drafts.write("/c.md", "hit")
        memories = same_agent_of(StoreFileBackends(storage).of("acme"))
        mounted = CompositeBackend(default=WenchangBackend(drafts), routes={"/memories/": memories})
        found = mounted.grep("hit")
        assert sorted(m["path"] for m in found.matches) == ["/c.md", "/memories/a.md"]
        assert (found.error, found.truncated) == (None, True)


def spoil(storage, content):
    """Make the object with this content one that is no text."""
    for listed in storage.list_page("@store/", None, 100):
        held = storage.get(listed.key)
        if held.data == content:
            storage.put(listed.key, b"\xff\xfe", held.metadata)


class TestWriting:
    def test_a_file_that_was_not_read_is_not_replaced(self, backend, any_files):
        any_files.write("/a.md", "theirs\n")
        error = backend.write("/a.md", "mine\n").error
        assert error.startswith("/memories/a.md is now at version ")
        assert any_files.read("/a.md").version in error
        assert "nothing was written" in error
        assert error.endswith("Its current text:\ntheirs\n")
        assert any_files.read("/a.md").text == "theirs\n"

    def test_a_refused_writer_goes_on_from_the_text_that_it_was_shown(self, backend, any_files):
        any_files.write("/a.md", "theirs\n")
        assert backend.write("/a.md", "mine\n").error
        assert backend.write("/a.md", "theirs\nmine\n").path == "/a.md"
        assert any_files.read("/a.md").text == "theirs\nmine\n"

    def test_a_file_that_was_read_is_replaced_only_in_that_version(self, backend, any_files):
        any_files.write("/a.md", "one\n")
        backend.read("/a.md")
        any_files.write("/a.md", "two\n")
        error = backend.write("/a.md", "mine\n").error
        assert "which you have not seen" in error
        assert error.endswith("two\n")
        assert backend.write("/a.md", "merged\n").error is None
        assert backend.write("/a.md", "again\n").error is None
        assert any_files.read("/a.md").text == "again\n"

    def test_a_file_that_became_a_folder_since_it_was_read_is_told_as_one(self, backend, any_files):
        any_files.write("/a", "one\n")
        version = any_files.read("/a").version
        backend.read("/a")
        any_files.delete("/a")
        any_files.write("/a/b.md", "theirs\n")
        assert "/memories/a was deleted since you read it" in backend.write("/a", "mine\n").error
        assert "There is a folder at /memories/a" in backend.write("/a", "mine\n").error
        for change in (
            lambda: any_files.write("/a", "x", version=version),
            lambda: any_files.edit("/a", "x", "y", version=version),
        ):
            with pytest.raises(NotFoundError, match="/a is a folder, not a file"):
                change()

    def test_what_the_file_holds_already_is_written_whoever_wrote_it(self, backend, any_files):
        any_files.write("/a.md", "same\n")
        assert backend.write("/a.md", "same\n").path == "/a.md"

    def test_an_edit_of_what_was_read_leaves_it_known(self, backend, any_files):
        any_files.write("/a.md", "one\n")
        backend.read("/a.md")
        assert backend.edit("/a.md", "one", "two").occurrences == 1
        assert backend.write("/a.md", "three\n").error is None

    def test_an_edit_of_what_another_changed_leaves_it_unknown(self, backend, any_files):
        any_files.write("/a.md", "one\n")
        backend.read("/a.md")
        any_files.edit("/a.md", "one\n", "one\ntheirs\n")
        assert backend.edit("/a.md", "one", "two").error is None
        assert "theirs" in backend.write("/a.md", "three\n").error
        assert any_files.read("/a.md").text == "two\ntheirs\n"

    def test_parts_of_two_versions_are_not_one_that_was_seen(self, backend, any_files):
        any_files.write("/a.md", "1\n2\n3\n4\n")
        backend.read("/a.md", 0, 2)
        any_files.write("/a.md", "changed\n2\n3\n4\n")
        backend.read("/a.md", 2, 2)
        assert "changed" in backend.write("/a.md", "1\n2\n").error

    def test_a_file_deleted_meanwhile_is_created_by_the_second_try(self, backend, any_files):
        any_files.write("/a.md", "one\n")
        backend.read("/a.md")
        any_files.delete("/a.md")
        assert "was deleted since you read it" in backend.write("/a.md", "mine\n").error
        assert backend.write("/a.md", "mine\n").error is None

    def test_a_long_text_is_shown_in_part_and_has_to_be_read(self, backend, any_files):
        any_files.write("/a.md", "x" * 50_000)
        error = backend.write("/a.md", "mine").error
        assert len(error) < MAX_EXCERPT_CHARS + 1_000
        assert "6,000 of 50,000 characters" in error
        assert backend.write("/a.md", "mine").error
        backend.read("/a.md")
        assert backend.write("/a.md", "mine").error is None

    def test_overwrite_replaces_what_was_not_read_and_still_not_what_changed(self, any_files):
        backend = WenchangBackend(any_files, overwrite=True)
        any_files.write("/a.md", "one\n")
        assert backend.write("/a.md", "two\n").error is None
        any_files.write("/a.md", "theirs\n")
        assert "theirs" in backend.write("/a.md", "three\n").error

    def test_a_folder_and_a_path_through_a_file_are_refused(self, backend):
        backend.write("/x/a.md", "a")
        assert "There is a folder at /memories/x already" in backend.write("/x", "b").error
        assert "/memories/x/a.md is a file" in backend.write("/x/a.md/b", "b").error

    def test_a_limit_is_told(self, storage):
        tree = FileTree(storage, "@store/acme/=", limits=TreeLimits(max_file_bytes=10))
        backend = WenchangBackend(StoreFileBackend(storage, tenant="acme", tree=tree))
        assert "maxFileBytes to 11; at most 10" in backend.write("/a.md", "x" * 11).error

    def test_versions_are_remembered_up_to_a_bound(self):
        seen = SeenVersions(3)
        for number in range(10):
            seen.saw("agent", f"/{number}", "v1")
        assert len(seen) == 3
        assert seen.get("agent", "/9") == "v1"
        assert seen.get("agent", "/0") is None


class TestEditing:
    def test_one_occurrence_or_all(self, backend, any_files):
        any_files.write("/a.md", "a b a\r\n")
        error = backend.edit("/a.md", "a", "c").error
        assert "found 2 times in /memories/a.md" in error
        assert "replace_all" in error
        assert backend.edit("/a.md", "a", "c", replace_all=True).occurrences == 2
        assert any_files.read("/a.md").text == "c b c\r\n"

    def test_a_text_that_is_not_there_is_answered_with_what_is(self, backend, any_files):
        any_files.write("/a.md", "theirs\n")
        error = backend.edit("/a.md", "mine", "x").error
        assert "old_string was not found in /memories/a.md" in error
        assert error.endswith("Its current text:\ntheirs\n")

    def test_an_empty_text_is_refused(self, backend, any_files):
        any_files.write("/a.md", "x")
        assert "Argument old_string is invalid" in backend.edit("/a.md", "", "x").error


class TestDeleting:
    def test_a_file_in_the_version_that_was_read(self, backend, any_files):
        any_files.write("/a.md", "one\n")
        backend.read("/a.md")
        any_files.write("/a.md", "two\n")
        error = backend.delete("/a.md").error
        assert "nothing was deleted" in error
        assert error.endswith("two\n")
        assert backend.delete("/a.md").path == "/a.md"
        assert "/memories/a.md" in backend.delete("/a.md").error

    def test_what_another_puts_in_the_place_of_a_file_that_was_read_stays(self, files):
        class Recreated(CompositeFileBackend):
            """A colleague deletes the file before the call, and makes it anew after its refusal."""

            def delete(self, path, *, version=None, effect_key=None):
                super().delete(path)
                try:
                    return super().delete(path, version=version, effect_key=effect_key)
                finally:
                    super().write(path, "theirs\n")

        meddled = Recreated(files, {})
        backend = WenchangBackend(meddled, display_prefix="/memories")
        meddled.write("/a.md", "one\n")
        backend.read("/a.md")
        assert "/memories/a.md" in backend.delete("/a.md").error
        assert meddled.read("/a.md").text == "theirs\n"

    def test_a_file_that_was_never_read(self, backend, any_files):
        any_files.write("/a.md", "one\n")
        assert backend.delete("/a.md").path == "/a.md"

    def test_a_folder_goes_with_all_in_it(self, backend, any_files):
        for path in ("/x/a.md", "/x/y/b.md", "/z.md"):
            any_files.write(path, "x")
        assert backend.delete("/x").path == "/x"
        assert [entry.path for entry in any_files.glob("**").entries] == ["/z.md"]

    def test_the_root_stays(self, backend, any_files):
        any_files.write("/a.md", "x")
        assert "below the root" in backend.delete("/").error
        assert any_files.read("/a.md").text == "x"

    def test_a_corrupt_file_can_be_deleted(self, storage, on_store):
        on_store.write("/b.md", "other")
        spoil(storage, b"other")
        fresh = same_agent_of(StoreFileBackends(storage).of("acme"))
        assert fresh.read("/b.md").error.startswith("/memories/b.md: What is stored of this file")
        assert fresh.delete("/b.md").path == "/b.md"


class TestWholeFiles:
    def test_they_come_back_as_they_went(self, backend):
        data = "\ufeffä\r\n".encode()
        assert [r.error for r in backend.upload_files([("/a.md", data), ("/x/b.md", b"")])] == [
            None
        ] * 2
        down = backend.download_files(["/x/b.md", "/a.md"])
        assert [(r.path, r.content, r.error) for r in down] == [
            ("/x/b.md", b"", None),
            ("/a.md", data, None),
        ]

    def test_what_fails_is_told_in_the_words_of_the_protocol(self, backend):
        backend.upload_files([("/x/a.md", b"x")])
        down = backend.download_files(["/no.md", "/x", "/../a", "/x/a.md"])
        assert [r.error for r in down] == ["file_not_found", "is_directory", "invalid_path", None]
        up = backend.upload_files([("/x", b""), ("/a//b", b""), ("/x/a.md/b", b"")])
        assert [r.error for r in up] == ["is_directory", "invalid_path", "invalid_path"]

    def test_what_is_no_text_is_refused(self, backend):
        (result,) = backend.upload_files([("/a.png", b"\x89PNG\xff")])
        assert result.error == "/memories/a.png was not written: files here are UTF-8 text."

    def test_a_file_that_was_downloaded_counts_as_read(self, backend, any_files):
        any_files.write("/a.md", "one")
        assert backend.upload_files([("/a.md", b"two")])[0].error
        backend.download_files(["/a.md"])
        assert backend.upload_files([("/a.md", b"two")])[0].error is None


class TestBadArguments:
    @pytest.mark.parametrize(
        "path",
        [
            "",
            "/",
            "/../x",
            "/a/../x",
            "/a//b",
            "/a\\b",
            "/\0",
            "/\ud800",
            "/" + "x" * 10_000,
            None,
            5,
        ],
    )
    def test_a_path_that_is_none_is_an_error_and_nothing_more(self, backend, path):
        errors = [
            backend.read(path).error,
            backend.write(path, "x").error,
            backend.edit(path, "a", "b").error,
            backend.delete(path).error,
        ]
        for error in errors:
            assert error
            assert len(error) < 1_000
            json.dumps(error, ensure_ascii=False).encode()
        assert backend.glob("**").matches == []

    @pytest.mark.parametrize("text", ["\ud800", "a\0b"])
    def test_text_that_no_file_holds_is_named_as_the_tool_names_it(self, backend, text):
        backend.write("/a.md", "one")
        assert "Argument content is invalid" in backend.write("/b.md", text).error
        assert "Argument old_string is invalid" in backend.edit("/a.md", text, "x").error
        assert "Argument new_string is invalid" in backend.edit("/a.md", "one", text).error
        assert backend.grep(text).error or backend.grep(text).matches == []

    @pytest.mark.parametrize("path", ["/../x", "/\ud800", "/a//b"])
    def test_a_folder_that_is_none_is_an_error(self, backend, path):
        for result in (backend.ls(path), backend.glob("*", path), backend.grep("x", path)):
            assert "Argument path is invalid" in result.error

    @pytest.mark.parametrize(
        "pattern", ["../*.md", "a/../b", "", "x" * 201, "[", "[z-a]", "{a,b" * 60]
    )
    def test_a_pattern_that_is_none_is_an_error(self, backend, pattern):
        assert "Argument pattern is invalid" in backend.glob(pattern).error
        assert "Argument glob is invalid" in backend.grep("x", glob=pattern).error

    def test_an_empty_search_and_a_huge_one_are_errors(self, backend):
        for text in ("", "x" * 1_001):
            assert "Argument pattern is invalid" in backend.grep(text).error

    def test_a_prefix_that_is_no_path_is_refused_when_it_is_made(self, files):
        with pytest.raises(InvalidArgumentError):
            WenchangBackend(files, display_prefix="/../x")


@pytest.mark.parametrize("unforeseen", [False, True])
def test_no_error_tells_of_the_storage(broken, on_broken, unforeseen):
    backend = WenchangBackend(on_broken)
    backend.write("/a.md", "x")
    broken.fail(unforeseen=unforeseen)
    results = [
        backend.ls("/"),
        backend.read("/a.md"),
        backend.glob("*"),
        backend.grep("x"),
        backend.write("/b.md", "x"),
        backend.edit("/a.md", "x", "y"),
        backend.delete("/a.md"),
        *backend.upload_files([("/c.md", b"x")]),
        *backend.download_files(["/a.md"]),
    ]
    for result in results:
        for secret in ("AKIASECRET", "internal", "/srv", "@store", "acme", "http"):
            assert secret not in result.error
        assert ("unforeseen" if unforeseen else "The storage") in result.error


def test_outside_of_a_run_no_tenant_is_served(stores):
    backend = TenantBackend(stores, lambda runtime: "acme")
    assert "no tenant" in backend.ls("/").error
    assert "no tenant" in backend.write("/a.md", "x").error
    assert "no tenant" in backend.download_files(["/a.md"])[0].error
    assert stores.of("acme").ls("/").entries == ()


def test_it_is_mounted_in_the_composite_of_deepagents(files):
    backend = CompositeBackend(
        default=WenchangBackend(StateFileBackend()),
        routes={"/memories/": WenchangBackend(files, display_prefix="/memories")},
    )
    assert backend.write("/memories/a/b.md", "hit\n").path == "/memories/a/b.md"
    assert backend.write("/draft.md", "hit\n").path == "/draft.md"
    assert files.read("/a/b.md").text == "hit\n"
    assert [entry["path"] for entry in backend.ls("/memories").entries] == ["/memories/a/"]
    assert [entry["path"] for entry in backend.ls("/").entries] == ["/draft.md", "/memories/"]
    assert [m["path"] for m in backend.glob("/memories/**/*.md").matches] == ["/memories/a/b.md"]
    assert [m["path"] for m in backend.glob("*.md").matches] == ["/draft.md", "/memories/a/b.md"]
    assert {m["path"] for m in backend.grep("hit").matches} == {"/draft.md", "/memories/a/b.md"}
    assert "/memories/no.md" in backend.read("/memories/no.md").error
    assert backend.download_files(["/memories/a/b.md"])[0].content == b"hit\n"
    assert "below the root" in backend.delete("/memories").error
    assert backend.delete("/memories/a").path == "/memories/a"
