"""`StorageConformance`: the contract as tests of your storage.

    class TestMyStorage(StorageConformance):
        @pytest.fixture
        def make_storage(self, tmp_path):
            return lambda: MyStorage(tmp_path)

`make_storage` returns a function that opens one more handle onto one fresh, empty namespace. To let
the suite prove more (restarts, other processes, lost answers, foreign objects) override the fixture
`hooks` instead and return a `StorageHooks`; see `wenchang_conformance.hooks`.

The cases are the contract: a subclass may add tests but not change these. Known deviations are
declared in `conformance-gaps.toml`, where they stay visible.
"""

from __future__ import annotations

from functools import cache
from inspect import getattr_static
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from wenchang_conformance.applicability import check_applicable
from wenchang_conformance.areas.concurrency import ConcurrencyArea
from wenchang_conformance.areas.conditional import ConditionalArea
from wenchang_conformance.areas.delete import DeleteArea
from wenchang_conformance.areas.get_put import GetPutArea
from wenchang_conformance.areas.handles import HandlesArea
from wenchang_conformance.areas.keys import KeysArea
from wenchang_conformance.areas.lifecycle import LifecycleArea
from wenchang_conformance.areas.limits import LimitsArea
from wenchang_conformance.areas.listing import ListingArea
from wenchang_conformance.areas.listing_moving import MovingListingArea
from wenchang_conformance.areas.metadata import MetadataArea
from wenchang_conformance.areas.outcomes import OutcomesArea
from wenchang_conformance.areas.stateful import StatefulArea
from wenchang_conformance.areas.unavailable import UnavailableArea
from wenchang_conformance.areas.versions import VersionsArea
from wenchang_conformance.bench import Bench
from wenchang_conformance.hooks import StorageHooks
from wenchang_conformance.profiles import DEFAULT_PROFILE, PROFILES, Profile
from wenchang_conformance.requirement import MARKER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from wenchang.storage import Storage

__all__ = ["StorageConformance", "cases_by_requirement"]


class StorageConformance(
    KeysArea,
    MetadataArea,
    VersionsArea,
    GetPutArea,
    ConditionalArea,
    DeleteArea,
    ListingArea,
    MovingListingArea,
    LimitsArea,
    StatefulArea,
    OutcomesArea,
    UnavailableArea,
    ConcurrencyArea,
    HandlesArea,
    LifecycleArea,
):
    """Every requirement of the storage contract, as tests. Subclass it with a `Test` prefix.

    Raises TypeError when the subclass is defined if it overrides one of these tests.
    """

    profile: ClassVar[str | None] = None
    """The profile of this class; None takes `--wenchang-profile`."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse overridden tests; make plain methods named as hooks into fixtures."""
        super().__init_subclass__(**options)
        for name in dir(StorageConformance):
            sealed = name.startswith("test_") or name in {"bench", "wenchang_profile"}
            if sealed and getattr_static(cls, name) is not getattr_static(StorageConformance, name):
                msg = (
                    f"{cls.__name__} overrides {name}: the tests of StorageConformance are the "
                    "contract. Declare a known deviation in conformance-gaps.toml instead."
                )
                raise TypeError(msg)
        for name in ("make_storage", "hooks"):
            own = cls.__dict__.get(name)
            if callable(own) and not hasattr(own, "_fixture_function"):
                setattr(cls, name, pytest.fixture(own))

    @pytest.fixture
    def make_storage(self) -> Callable[[], Storage]:
        """Return a function that opens one more handle onto one fresh, empty namespace."""
        pytest.fail(
            f"{type(self).__name__} gives no storage: override the fixture make_storage (or hooks)"
        )

    @pytest.fixture
    def hooks(self, make_storage: Callable[[], Storage]) -> StorageHooks:
        """Return the hooks of one fresh namespace; without an override there are handles only."""
        return StorageHooks(open=make_storage)

    @pytest.fixture
    def wenchang_profile(self, request: pytest.FixtureRequest) -> Profile:
        """Return the profile of this run."""
        name = self.profile or request.config.getoption("wenchang_profile", None) or DEFAULT_PROFILE
        return PROFILES[name]

    @pytest.fixture
    def bench(
        self, request: pytest.FixtureRequest, hooks: StorageHooks, wenchang_profile: Profile
    ) -> Iterator[Bench]:
        """Return what a case works on."""
        bench = Bench(hooks, wenchang_profile)
        request.node.wenchang_bench = bench
        mark = request.node.get_closest_marker(MARKER)
        if mark is not None:
            check_applicable(mark.args, hooks)
        with bench.watched():
            yield bench
            bench.close()


@cache
def cases_by_requirement() -> Mapping[str, frozenset[str]]:
    """Return the names of the cases of each requirement."""
    cases: dict[str, set[str]] = {}
    for name in dir(StorageConformance):
        for mark in getattr(getattr(StorageConformance, name), "pytestmark", ()):
            if mark.name == MARKER:
                for requirement_id in mark.args:
                    cases.setdefault(requirement_id, set()).add(name)
    return {requirement_id: frozenset(names) for requirement_id, names in cases.items()}
