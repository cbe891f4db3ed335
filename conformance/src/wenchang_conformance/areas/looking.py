"""Looking at an object: its state as a value, and its metadata entry by entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wenchang_conformance.bench import Bench
    from wenchang_conformance.trace import TracedStorage

__all__ = ["metadata_is", "state_of"]


def state_of(storage: TracedStorage, key: str) -> tuple[bytes, dict[str, str], str] | None:
    """Return body, metadata and version of a key, to compare before and after."""
    found = storage.get(key)
    return None if found is None else (found.data, dict(found.metadata), found.version)


def metadata_is(
    bench: Bench, storage: TracedStorage, key: str, expected: Mapping[str, str], what: str
) -> None:
    """Require that the object's metadata is `expected`, entry by entry."""
    __tracebackhide__ = True
    found = storage.get(key)
    bench.require(found is not None, f"{what}; get then found no object")
    got = {} if found is None else dict(found.metadata)
    for name in expected:
        bench.require(name in got, f"{what}; the entry {name!a} is missing in what get returned")
        bench.equal(got[name], expected[name], f"{what}; the value of {name!a} from get")
    extra = sorted(set(got) - set(expected))
    bench.require(not extra, f"{what}; get returned entries that were not put: {extra!a}")
