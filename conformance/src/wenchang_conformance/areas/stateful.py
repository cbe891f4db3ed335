"""A Hypothesis state machine: two handles against a dict."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from wenchang.storage import PreconditionFailedError
from wenchang_conformance.exploring import Exploration, drawing
from wenchang_conformance.requirement import requirement
from wenchang_conformance.samples import bodies, metadata_maps

if TYPE_CHECKING:
    from collections.abc import Callable

    from wenchang_conformance.bench import Bench
    from wenchang_conformance.trace import TracedStorage

__all__ = ["StatefulArea"]

_RuleT = TypeVar("_RuleT", bound="Callable[..., None]")

_KEYS = st.sampled_from(("a", "a/b", "a/b/c", "ab", "b", "b/1", "b/2", "b/3"))
_PREFIXES = st.sampled_from(("", "a", "a/", "b/", "c"))
_HANDLES = st.integers(0, 1)


class StatefulArea:
    """One case: any sequence of calls behaves as it would on a dict."""

    @requirement(
        "get-absent",
        "put-replace",
        "cas-create",
        "cas-replace",
        "delete-match",
        "version-same",
        "version-fresh",
        "list-prefix",
        "list-limit",
        "meta-exact",
    )
    def test_any_sequence_of_calls_behaves_as_on_a_dict(self, bench: Bench) -> None:
        """Draw sequences of calls over two handles and compare each answer with a model."""
        handles = bench.open_two()
        exploration = Exploration(bench.trace)

        class Machine(_Machine):
            def __init__(self) -> None:
                super().__init__(bench, exploration, handles)

        wanted = drawing(bench.sizes.machine_examples, steps=bench.sizes.machine_steps)
        exploration.run(lambda: run_state_machine_as_test(Machine, settings=wanted))


def _remembered(method: _RuleT) -> _RuleT:
    """Let the exploration of a machine remember how a rule fails."""

    @wraps(method)
    def carry_out(machine: _Machine, **drawn: Any) -> None:
        with machine.exploration.step():
            method(machine, **drawn)

    return cast("_RuleT", carry_out)


class _Machine(RuleBasedStateMachine):
    """The model: a dict of key to body, metadata and version, and every version each key had."""

    def __init__(
        self,
        bench: Bench,
        exploration: Exploration,
        handles: tuple[TracedStorage, TracedStorage],
    ) -> None:
        super().__init__()
        self.exploration = exploration
        self.bench = bench
        self.handles = handles
        self.model: dict[str, tuple[bytes, dict[str, str], str]] = {}
        self.history: dict[str, list[str]] = {}

    @initialize()
    def begin_empty(self) -> None:
        """Remove what the last sequence left."""
        self.exploration.begin()
        with self.exploration.step():
            for entry in self.handles[0].list_page("", None, 100):
                self.handles[0].delete_if_version(entry.key, entry.version)

    @rule(handle=_HANDLES, key=_KEYS, data=bodies(), metadata=metadata_maps())
    @_remembered
    def put(self, handle: int, key: str, data: bytes, metadata: dict[str, str]) -> None:
        """Put whatever is there."""
        with self.bench.about("put-replace"):
            version = self.bench.accepted("put", self.handles[handle].put, key, data, metadata)
        self._wrote(key, data, metadata, version)

    @rule(handle=_HANDLES, key=_KEYS, data=bodies(), metadata=metadata_maps())
    @_remembered
    def create(self, handle: int, key: str, data: bytes, metadata: dict[str, str]) -> None:
        """Create."""
        with self.bench.about("cas-create"):
            version = self._conditional(
                handle, key, data, metadata, None, allowed=key not in self.model
            )
        if version is not None:
            self._wrote(key, data, metadata, version)

    @rule(
        handle=_HANDLES, key=_KEYS, data=bodies(), metadata=metadata_maps(), pick=st.integers(0, 3)
    )
    @_remembered
    def replace(
        self, handle: int, key: str, data: bytes, metadata: dict[str, str], pick: int
    ) -> None:
        """Replace at the current version, or at one that this key had before."""
        expected = self._version(key, pick)
        if expected is None:
            return
        current = self.model.get(key)
        allowed = current is not None and current[2] == expected
        with self.bench.about("cas-replace"):
            version = self._conditional(handle, key, data, metadata, expected, allowed=allowed)
        if version is not None:
            self._wrote(key, data, metadata, version)

    @rule(handle=_HANDLES, key=_KEYS, pick=st.integers(0, 3))
    @_remembered
    def delete(self, handle: int, key: str, pick: int) -> None:
        """Delete at the current version, or at one that this key had before."""
        expected = self._version(key, pick)
        if expected is None:
            return
        current = self.model.get(key)
        call = self.handles[handle].delete_if_version
        with self.bench.about("delete-match"):
            if current is not None and current[2] == expected:
                self.bench.accepted("delete at the current version", call, key, expected)
                del self.model[key]
            else:
                self.bench.conflict("delete at a version that is not current", call, key, expected)

    @rule(handle=_HANDLES, key=_KEYS)
    @_remembered
    def get(self, handle: int, key: str) -> None:
        """Read."""
        found = self.handles[handle].get(key)
        expected = self.model.get(key)
        with self.bench.about("get-absent" if expected is None else "put-replace"):
            self.bench.equal(
                None if found is None else found.data,
                None if expected is None else expected[0],
                f"the body of {key!r} against the model",
            )
        if found is not None and expected is not None:
            with self.bench.about("meta-exact"):
                self.bench.equal(dict(found.metadata), expected[1], f"the metadata of {key!r}")
            with self.bench.about("version-same"):
                self.bench.equal(found.version, expected[2], f"the version of {key!r}")

    @rule(handle=_HANDLES, prefix=_PREFIXES, limit=st.integers(1, 10))
    @_remembered
    def list(self, handle: int, prefix: str, limit: int) -> None:
        """List one page from the beginning."""
        page = self.handles[handle].list_page(prefix, None, limit)
        matching = {key for key in self.model if key.startswith(prefix)}
        with self.bench.about("list-prefix"):
            extra = {entry.key for entry in page} - matching
            self.bench.equal(extra, set(), f"listed with prefix {prefix!r} and not in the model")
        with self.bench.about("list-limit"):
            self.bench.equal(
                len(page),
                min(limit, len(matching)),
                f"entries for prefix {prefix!r}, limit {limit}",
            )
        with self.bench.about("version-same"):
            for entry in page:
                self.bench.equal(
                    entry.version,
                    self.model[entry.key][2],
                    f"the version of {entry.key!r} in a listing",
                )

    def _conditional(
        self,
        handle: int,
        key: str,
        data: bytes,
        metadata: dict[str, str],
        expected: str | None,
        *,
        allowed: bool,
    ) -> str | None:
        """Make a conditional write; return its version if the model allows it."""
        call = self.handles[handle].put_if_version
        if allowed:
            return self.bench.accepted(
                "a conditional write that the model allows", call, key, data, metadata, expected
            )
        self.bench.refused(
            PreconditionFailedError,
            "a conditional write that the model does not allow",
            call,
            key,
            data,
            metadata,
            expected,
        )
        return None

    def _wrote(self, key: str, data: bytes, metadata: dict[str, str], version: str) -> None:
        """Take a write into the model."""
        with self.bench.about("version-fresh"):
            self.bench.require(
                version not in self.history.get(key, ()),
                f"a write of {key!r} returned the version {version!r}, which this key had before",
            )
        self.history.setdefault(key, []).append(version)
        self.model[key] = (data, metadata, version)

    def _version(self, key: str, pick: int) -> str | None:
        """Return the current version for 0 and 1, an older one otherwise, None if there is none."""
        versions = self.history.get(key)
        if not versions:
            return None
        return versions[-1] if pick < 2 else versions[(pick * 7) % len(versions)]
