"""Runs the suite against one member and tells which requirements failed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from unittest import mock

import pytest
from hypothesis import Phase, settings

from wenchang_conformance import suite
from wenchang_conformance.broken.member import REMOTE, Member
from wenchang_conformance.hooks import StorageHooks
from wenchang_conformance.profiles import PROFILES, Profile, Sizes
from wenchang_conformance.requirement import MARKER

__all__ = ["failed_requirements"]

_NO_SHRINKING: Final = "wenchang-zoo"
# The smallest sizes that still catch every member: a zoo is visited at every build.
_SIZES: Final = Sizes(
    race_seconds=0.2,
    race_rounds=8,
    threads=4,
    many_threads=8,
    processes=2,
    counter_increments=4,
    fault_scripts=6,
    fault_rounds=2,
    listing_objects=30,
    examples=8,
    machine_examples=4,
    machine_steps=12,
    kills=1,
    fault_seconds=0.5,
    case_seconds=20,
)


def failed_requirements(member: Member) -> dict[str, str]:
    """Return the ids that fail on a member in its areas, each with the text of its first failure."""
    with _without_shrinking():
        return _failed(member)


@contextmanager
def _without_shrinking() -> Iterator[None]:
    """Let a failing case end at once: nobody reads the smallest example of a member."""
    before = settings.get_current_profile_name()
    settings.register_profile(_NO_SHRINKING, phases=(Phase.explicit, Phase.generate))
    settings.load_profile(_NO_SHRINKING)
    try:
        yield
    finally:
        settings.load_profile(before)


def _failed(member: Member) -> dict[str, str]:
    quick = PROFILES["quick"]
    small = Profile(name=quick.name, hooks=quick.hooks, sizes=_SIZES)
    run = _Run(member)
    with (
        TemporaryDirectory() as root,
        mock.patch.object(suite, "PROFILES", {"quick": small}),
        mock.patch.dict(os.environ, {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}),
    ):
        none = Path(root) / "none.toml"
        none.write_text("", encoding="utf-8")
        pytest.main(
            [
                str(resources.files("wenchang_conformance").joinpath("url_cases.py")),
                f"--rootdir={root}",
                f"--config-file={os.devnull}",
                "--import-mode=importlib",
                "-pno:cacheprovider",
                "-pwenchang_conformance.plugin",
                "--wenchang-profile=quick",
                f"--wenchang-gaps={none}",
            ],
            plugins=[run],
        )
    (subject,) = run.collector.subjects
    return {
        one.requirement.id: one.reason
        for one in subject.requirements
        if one.status in ("failed", "error")
    }


class _Run:
    """The part of the run that pytest calls: hooks for the cases, and silence."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self.collector: Any = None

    @pytest.fixture
    def located_hooks(self) -> StorageHooks:
        """Make the hooks of a fresh namespace."""
        return self._member.hooks()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the cases of the member's areas; of slow areas those of its own requirement."""
        items[:] = [item for item in items if self._is_shown(item)]

    def _is_shown(self, item: pytest.Item) -> bool:
        mark = item.get_closest_marker(MARKER)
        breaks = self._member.breaks
        if _area(item) not in self._member.areas or mark is None:
            return False
        return _area(item) not in REMOTE or not breaks or breaks in mark.args

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: Any) -> None:
        """Take the place of pytest's own reporter."""
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        config.pluginmanager.unregister(reporter)
        config.wenchang_subject = "member"
        self.collector = config.pluginmanager.get_plugin("wenchang-conformance-collector")


def _area(item: pytest.Item) -> str:
    """Return the module of the suite that defines a case."""
    function: Any = getattr(item, "function", None)
    return str(function.__module__).rpartition(".")[2]
