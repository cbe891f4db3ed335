"""How much of the contract a run proves, and how hard it tries: the profiles and their sizes.

`quick` takes seconds and `ci` belongs into every build; both need only what a URL gives. `deep`
needs the hooks `faults` and `backdoor` too and goes on for minutes. A larger profile requires all
that a smaller one does. Ids outside a profile still run where their hooks are there.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from wenchang_conformance.manifest import requirements

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DEFAULT_PROFILE", "PROFILES", "Profile", "Sizes"]

DEFAULT_PROFILE: Final = "ci"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The sizes of the sized cases. Seconds bound a case from above; rounds end it earlier."""

    race_seconds: float
    race_rounds: int
    threads: int
    many_threads: int
    processes: int
    counter_increments: int
    fault_scripts: int
    fault_seconds: float
    fault_rounds: int
    listing_objects: int
    examples: int
    machine_examples: int
    machine_steps: int
    kills: int
    case_seconds: float
    """A case that takes longer is taken for one whose backend hangs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One profile: the hooks and ids that it requires, and its sizes."""

    name: str
    hooks: frozenset[str]
    """Hooks without which the run is *incomplete*. `reopen` and `spawn` are asked only of a store
    that is durable or shared, `faults` only of one that can lose answers."""
    sizes: Sizes

    @property
    def ids(self) -> frozenset[str]:
        """The requirement ids that must have been tested."""
        rank = _LADDER.index(self.name)
        return frozenset(
            item.id for item in requirements().values() if _LADDER.index(item.profile) <= rank
        )


_LADDER: Final = ("quick", "ci", "deep")
_FROM_A_URL: Final = frozenset({"reopen", "spawn"})

#                        quick    ci  deep
_TABLE: Final[Mapping[str, tuple[float, float, float]]] = MappingProxyType(
    {
        "race_seconds": (0.3, 3, 20),
        "race_rounds": (20, 100, 500),
        "threads": (8, 8, 16),
        "many_threads": (24, 48, 64),
        "processes": (2, 3, 4),
        "counter_increments": (5, 25, 25),
        "fault_scripts": (10, 100, 2000),
        "fault_seconds": (5, 20, 3600),
        "fault_rounds": (2, 4, 8),
        "listing_objects": (60, 250, 1000),
        "examples": (20, 60, 300),
        "machine_examples": (8, 25, 100),
        "machine_steps": (20, 30, 50),
        "kills": (2, 20, 100),
        "case_seconds": (60, 150, 4500),
    }
)


_SECONDS: Final = ("race_seconds", "fault_seconds", "case_seconds")


def _sizes(column: int) -> Sizes:
    """Return one column of the table."""
    row = {name: values[column] for name, values in _TABLE.items()}
    race, fault, case = (row.pop(name) for name in _SECONDS)
    counts = {name: int(value) for name, value in row.items()}
    return Sizes(race_seconds=race, fault_seconds=fault, case_seconds=case, **counts)


PROFILES: Final[Mapping[str, Profile]] = MappingProxyType(
    {
        "quick": Profile(name="quick", hooks=_FROM_A_URL, sizes=_sizes(0)),
        "ci": Profile(name="ci", hooks=_FROM_A_URL, sizes=_sizes(1)),
        "deep": Profile(name="deep", hooks=_FROM_A_URL | {"faults", "backdoor"}, sizes=_sizes(2)),
    }
)
