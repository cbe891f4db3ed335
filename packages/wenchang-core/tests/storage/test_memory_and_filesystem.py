"""The storage contract on the two backends of the core, side by side."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wenchang.storage import (
    InvalidStorageKeyError,
    InvalidStorageMetadataError,
    MetadataTooLargeError,
    ObjectTooLargeError,
    PreconditionFailedError,
    Storage,
    VersionLister,
)
from wenchang.storage.filesystem import FilesystemStorage
from wenchang.storage.memory import InMemoryStorage


@contextmanager
def memory_store() -> Iterator[Storage]:
    yield InMemoryStorage()


@contextmanager
def file_store() -> Iterator[Storage]:
    folder = tempfile.mkdtemp(prefix="wenchang-test-")
    try:
        yield FilesystemStorage(Path(folder))
    finally:
        shutil.rmtree(folder)


STORES = {"memory": memory_store, "file": file_store}


@pytest.fixture(params=STORES)
def store(request) -> Iterator[Storage]:
    with STORES[request.param]() as opened:
        yield opened


@pytest.fixture(params=STORES)
def make_store(request) -> Callable[[], object]:
    return STORES[request.param]


def listed(store: Storage, prefix: str = "", page: int = 3) -> list[str]:
    keys: list[str] = []
    while True:
        entries = store.list_page(prefix, keys[-1] if keys else None, page)
        keys += [entry.key for entry in entries]
        if len(entries) < page:
            return keys


HOSTILE_KEYS = [
    *("a", "A", "a ", " a", "a+b", "a b", "%2F", "a%2Fb", "a/b", "a-b", "a.b", "a0", "ab", "a!"),
    *("é", "e\u0301", "É", "記憶", "😀", "\ue000", "\uffeb", "e/🎩", "e/💥", "ß", "ss", "ſ", "ﬁ"),
    *("a%obj", "a%meta", "a%redo", "a/%obj", "%", "%%", "_", "*", "[", "a_b", "~", "-", ".x", "a."),
    *(
        ".lock",
        ".lock/x",
        "...",
        "..a",
        "a/...",
        "con",
        "nul.txt",
        "a:b",
        'a"b',
        "a|b",
        "a<b>",
        "a?",
    ),
    *("a/b/c.md", "a/b/c.md/d", "a/b.md", "x" * 200, "x" * 200 + "/y", "/".join("d" * 100)),
]


def test_every_hostile_key_is_an_object_of_its_own(store):
    """key-exact, key-range (B60, B61)."""
    versions = {
        key: store.put_if_version(key, key.encode(), {"k": key}, None) for key in HOSTILE_KEYS
    }
    assert len(set(versions.values())) == len(HOSTILE_KEYS)
    for key in HOSTILE_KEYS:
        found = store.get(key)
        assert found is not None
        assert (found.data, found.metadata, found.version) == (
            key.encode(),
            {"k": key},
            versions[key],
        )
    assert listed(store) == sorted(HOSTILE_KEYS)


def test_mem_090_a_folder_and_its_neighbours_interleave_in_key_order(store):
    """list-order (B44)."""
    keys = ["a/b", "a-b", "a.b", "a0", "a", "a/b/c", "a/b-c", "a!", "a/", "ab"]
    for key in keys:
        if key != "a/":
            store.put(key, b"", {})
    assert listed(store, page=1) == sorted(set(keys) - {"a/"})


@pytest.mark.parametrize(
    "key",
    [
        *("", "/a", "a/", "a//b", ".", "..", "a/../b", "a/./b", "a\\b", "a\nb", "a\0b", "\x85"),
        *("\ud800", "\ufdd0", "\uffff", "\U0001fffe", "k/" * 200 + "k", "é" * 451, "k" * 901),
    ],
)
def test_a_key_that_the_contract_refuses_is_refused_by_every_method(store, key):
    """key-refused (B65, B66, B67)."""
    for call in (
        lambda: store.get(key),
        lambda: store.put(key, b"", {}),
        lambda: store.put_if_version(key, b"", {}, None),
        lambda: store.delete_if_version(key, "v"),
    ):
        with pytest.raises(InvalidStorageKeyError) as caught:
            call()
        assert len(key) < 4 or key not in str(caught.value)
    assert store.list_page("", None, 1) == []


def test_bad_metadata_bodies_and_types_are_refused_and_change_nothing(store):
    """meta-refused, meta-limit, data-exact, arg-types."""
    for error, data, metadata in (
        (InvalidStorageMetadataError, b"", {"Bad": "x"}),
        (InvalidStorageMetadataError, b"", {"wenchang-x": "x"}),
        (InvalidStorageMetadataError, b"", {"a": "\x00"}),
        (InvalidStorageMetadataError, b"", {f"n{i}": "" for i in range(65)}),
        (MetadataTooLargeError, b"", {"a": "x" * 5000}),
        (ObjectTooLargeError, b"x" * (4 * 1024 * 1024 + 1), {}),
        (TypeError, "text", {}),
        (TypeError, b"", {"a": 1}),
        (TypeError, b"", None),
    ):
        with pytest.raises(error):
            store.put("k", data, metadata)
        with pytest.raises(error):
            store.put_if_version("k", data, metadata, None)
    with pytest.raises(TypeError):
        store.get(b"k")
    with pytest.raises(TypeError):
        store.put_if_version("k", b"", {}, 7)
    with pytest.raises(TypeError):
        store.delete_if_version("k", None)
    for limit in (0, -1, 1.5, True, "1"):
        with pytest.raises(ValueError):
            store.list_page("", None, limit)
    assert store.list_page("", None, 10) == []


def test_the_largest_body_and_metadata_come_back_equal(store):
    """data-exact, meta-exact, meta-limit (B71, B76)."""
    data = bytes(range(256)) * (4 * 1024 * 1024 // 256)
    metadata = {
        "spaces": "  a  b  ",
        "lines": "line1\nline2\r\n\t",
        "empty": "",
        "emoji": "😀記憶" * 100,
    }
    used = sum(len(name) + len(value.encode()) for name, value in metadata.items())
    metadata["rest"] = "x" * (5000 - used - len("rest"))
    version = store.put("k", data, metadata)
    found = store.get("k")
    assert (found.data, found.metadata, found.version) == (data, metadata, version)
    assert store.list_page("", None, 1)[0].metadata == metadata


def test_maps_belong_to_their_owners(store):
    """copy-in."""
    metadata = {"a": "1"}
    store.put("k", b"", metadata)
    metadata["a"] = "2"
    store.get("k").metadata["a"] = "3"
    store.list_page("", None, 1)[0].metadata["a"] = "4"
    assert store.get("k").metadata == {"a": "1"}


def test_metadata_is_replaced_and_not_merged(store):
    """put-replace (B78)."""
    store.put("k", b"1", {"a": "1"})
    store.put("k", b"2", {})
    assert store.get("k").metadata == {}


def test_no_version_ever_comes_back(store):
    """version-fresh (B26, B29)."""
    seen = [store.put("k", b"same", {"a": "1"})]
    for _ in range(3):
        seen.append(store.put("k", b"same", {"a": "1"}))
        seen.append(store.put_if_version("k", b"same", {"a": "1"}, seen[-1]))
        store.delete_if_version("k", seen[-1])
        seen.append(store.put_if_version("k", b"same", {"a": "1"}, None))
    assert len(set(seen)) == len(seen)
    assert all(isinstance(version, str) and 0 < len(version) <= 256 for version in seen)
    for stale in seen[:-1]:
        with pytest.raises(PreconditionFailedError):
            store.put_if_version("k", b"x", {}, stale)
        with pytest.raises(PreconditionFailedError):
            store.delete_if_version("k", stale)
    assert store.get("k").version == seen[-1]


@pytest.mark.parametrize("foreign", ["", "0", "007", "v\n", "x" * 1_000_000, "\0", "\ud800", "é"])
def test_a_foreign_version_is_a_mismatch(store, foreign):
    """version-foreign, cas-replace, delete-match."""
    other = store.put("other", b"", {})
    version = store.put("k", b"1", {})
    for wrong in (foreign, other, version + "\n", version.upper() + " "):
        for key in ("k", "absent"):
            with pytest.raises(PreconditionFailedError) as caught:
                store.put_if_version(key, b"2", {}, wrong)
            assert caught.value.key == key
            assert key not in str(caught.value).split()
            with pytest.raises(PreconditionFailedError):
                store.delete_if_version(key, wrong)
    with pytest.raises(PreconditionFailedError):
        store.put_if_version("k", b"2", {}, None)
    assert (store.get("k").data, store.get("k").version) == (b"1", version)
    assert store.get("absent") is None


def test_b25_a_stale_version_of_the_same_size_is_always_refused(store):
    """cas-replace."""
    for _ in range(500):
        first = store.put("k", b"A", {})
        store.put_if_version("k", b"B", {}, first)
        with pytest.raises(PreconditionFailedError):
            store.put_if_version("k", b"P", {}, first)
        assert store.get("k").data == b"B"


def test_a_page_is_strictly_after_its_start_whether_that_exists_or_not(store):
    """list-start, list-limit, list-prefix (B48, B56)."""
    for key in ("a", "a/x", "a/y", "b%c", "b_c", "bxc", "c"):
        store.put(key, b"", {})
    assert [e.key for e in store.list_page("", "a/x", 10)] == ["a/y", "b%c", "b_c", "bxc", "c"]
    assert [e.key for e in store.list_page("", "a/xx", 2)] == ["a/y", "b%c"]
    assert [e.key for e in store.list_page("b_", None, 10)] == ["b_c"]
    assert [e.key for e in store.list_page("b%", None, 10)] == ["b%c"]
    assert [e.key for e in store.list_page("a/", None, 10)] == ["a/x", "a/y"]
    assert [e.key for e in store.list_page("a", "A", 10**9)] == ["a", "a/x", "a/y"]
    assert store.list_page("a", "b", 10) == []
    assert store.list_page("", "\U0010ffff", 10) == []
    assert store.list_page("a//", None, 10) == []
    assert store.list_page("../", None, 10) == []


def test_versions_are_listed_as_the_objects_are(store):
    for key in ("a", "b", "c/d"):
        store.put(key, b"", {})
    assert isinstance(store, VersionLister)
    page = store.list_page("", "a", 5)
    assert store.list_versions("", "a", 5) == [(entry.key, entry.version) for entry in page]
    with pytest.raises(ValueError):
        store.list_versions("", None, 0)


def test_a_closed_store_keeps_its_objects(store):
    with store as opened:
        opened.put("k", b"1", {})
    store.close()
    assert store.get("k").data == b"1"


segments = st.text(
    st.one_of(
        st.sampled_from("aAbB/-.0 %_+!~"),
        st.characters(exclude_categories=("Cc", "Cs", "Cn"), exclude_characters="\\"),
    ),
    max_size=12,
)


def to_key(text: str) -> str:
    """Make any text a key, or "" where nothing is left of it."""
    kept = (part for part in text.split("/") if part not in ("", ".", ".."))
    return "/".join(part for part in kept if part)


keys = segments.map(to_key).filter(bool)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    wanted=st.lists(keys, max_size=25, unique=True),
    gone=st.sets(st.integers(0, 24)),
    prefix=segments,
    start=st.none() | segments,
    page=st.integers(1, 7),
)
def test_mem_pages_equal_those_of_a_sorted_dict(make_store, wanted, gone, prefix, start, page):
    """list-order, list-start, list-prefix, list-stable."""
    with make_store() as store:
        model: dict[str, str] = {key: store.put(key, b"", {"k": key}) for key in wanted}
        for at, key in enumerate(wanted):
            if at in gone:
                store.delete_if_version(key, model.pop(key))
        for narrowed, after in ((prefix, start), (prefix[:1], start), ("", start), (prefix, None)):
            expected = [
                (key, model[key])
                for key in sorted(model)
                if key.startswith(narrowed) and (after is None or key > after)
            ]
            found: list[tuple[str, str]] = []
            while True:
                entries = store.list_page(narrowed, found[-1][0] if found else after, page)
                assert all(entry.metadata == {"k": entry.key} for entry in entries)
                found += [(entry.key, entry.version) for entry in entries]
                if len(entries) < page:
                    break
            assert found == expected
