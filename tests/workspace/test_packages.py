"""What each distribution says of itself is true and fits the others."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path

import pytest

from devlib import project

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = project.packages()
NAMES = list(PACKAGES)


def table(name: str):
    return project.table(PACKAGES[name].folder / "pyproject.toml")["project"]


@pytest.fixture(scope="module")
def root():
    return project.table(ROOT / "pyproject.toml")["project"]


@pytest.mark.parametrize("name", NAMES)
def test_a_package_has_its_files(name):
    folder = PACKAGES[name].folder
    module = folder / "src" / PACKAGES[name].module

    for path in (
        *(folder / "README.md", folder / "LICENSE", folder / "CHANGELOG.md", folder / "changes"),
        *(module / "__init__.py", module / "py.typed", folder / "tests"),
    ):
        assert path.exists(), path
    assert (folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_the_static_version_is_the_one_in_the_module(name):
    assert importlib.import_module(PACKAGES[name].module).__version__ == table(name)["version"]


@pytest.mark.parametrize("name", NAMES)
def test_every_entry_point_leads_to_something(name):
    groups = {"scripts": table(name).get("scripts", {}), **table(name).get("entry-points", {})}
    for entries in groups.values():
        for target in entries.values():
            module, _, attribute = target.partition(":")
            found = importlib.import_module(module)
            assert not attribute or hasattr(found, attribute), target


@pytest.mark.parametrize("name", NAMES)
def test_a_backend_announced_for_a_scheme_carries_that_name(name):
    for scheme, target in table(name).get("entry-points", {}).get("wenchang.storage", {}).items():
        module, _, attribute = target.partition(":")
        assert getattr(importlib.import_module(module), attribute).name == scheme


def test_core_requires_nothing():
    assert table("wenchang-core")["dependencies"] == []


@pytest.mark.parametrize("name", [*NAMES, "wenchang"])
def test_ranges_between_our_packages_admit_the_present_versions_and_end(name, root):
    data = root if name == "wenchang" else table(name)
    optional = data.get("optional-dependencies", {}).values()
    for requirement in [*data["dependencies"], *(entry for extra in optional for entry in extra)]:
        ours = re.fullmatch(r"(wenchang-[a-z0-9]+)(?:\[[\w,-]+\])?(.*)", requirement)
        if ours is None or ours[1] == name:
            continue
        low, high = re.fullmatch(r">=([\d.]+),<([\d.]+)", ours[2]).groups()
        version = tuple(map(int, table(ours[1])["version"].split(".")))
        assert tuple(map(int, low.split("."))) <= version < tuple(map(int, high.split(".")))


def test_the_root_distribution_forwards_every_extra_of_core(root):
    assert set(root["optional-dependencies"]) == set(
        table("wenchang-core")["optional-dependencies"]
    )
    for extra, (requirement,) in root["optional-dependencies"].items():
        assert requirement.startswith(f"wenchang-core[{extra}]")


def test_the_extra_all_holds_every_other_extra():
    extras = table("wenchang-core")["optional-dependencies"]
    held = re.findall(r"[\w-]+", " ".join(entry.partition("[")[2] for entry in extras["all"]))

    assert set(held) == set(extras) - {"all"}


def test_constraints_are_plain_pins_and_there_is_no_lock_file():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]

    assert [pin for pin in pins if not re.fullmatch(r"[\w.-]+==[\w.!+-]+", pin)] == []
    assert not list(ROOT.glob("*.lock"))


def test_every_group_of_development_dependencies_is_pinned():
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pinned = {
        re.sub(r"[-_.]+", "-", name).lower()
        for name in re.findall(r"^([\w.-]+)==", text, re.MULTILINE)
    }
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
        "dependency-groups"
    ]
    for group in ("build", "test", "check", "docs", "release"):
        for requirement in groups[group]:
            assert re.match(r"[\w-]+", requirement)[0].lower() in pinned, requirement
