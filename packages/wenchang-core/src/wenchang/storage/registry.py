"""Finding a backend by its name, and opening a storage with it.

Backends are entry points of the group `wenchang.storage`; each is a `BackendDescriptor`. Only the
backend that is named gets imported, nothing is remembered between calls, and a plug-in that cannot be
loaded is in nobody's way but its own. Each error says what failed, where the name came from, what is
installed here, and the one command that helps this interpreter.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import shlex
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from wenchang.storage.contract import STORAGE_CONTRACT, Storage
from wenchang.storage.descriptor import ENTRY_POINT_GROUP, BackendDescriptor
from wenchang.storage.errors import (
    BackendBroken,
    BackendConflict,
    BackendIncompatible,
    BackendNotInstalled,
    DiscoveryError,
    UnknownBackend,
)
from wenchang.storage.locations import OptionValue, StorageLocation, nearest

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

__all__ = ["BackendInfo", "BackendState", "find_backend", "list_backends", "open_storage"]

BackendState: TypeAlias = Literal["ok", "broken", "incompatible", "conflict", "not installed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Published:
    """A backend that this project publishes, as far as it is known without being installed."""

    distribution: str
    requirement: str
    """What follows `pip install`."""
    summary: str


_PUBLISHED: Final[Mapping[str, _Published]] = {
    name: _Published(distribution=distribution, requirement=requirement, summary=summary)
    for name, distribution, requirement, summary in (
        # Without these two, only the metadata of the installation can be missing.
        ("memory", "wenchang-core", "--force-reinstall wenchang-core", "this process's memory"),
        ("file", "wenchang-core", "--force-reinstall wenchang-core", "files in a folder"),
        ("sqlite", "wenchang-sql", "wenchang[sql]", "a SQLite database"),
        ("postgresql", "wenchang-sql", "wenchang[postgres]", "PostgreSQL"),
        ("mysql", "wenchang-sql", "wenchang[mysql]", "MySQL"),
        ("mariadb", "wenchang-sql", "wenchang[mysql]", "MariaDB"),
        ("s3", "wenchang-s3", "wenchang[s3]", "Amazon S3 and compatible servers"),
        ("gs", "wenchang-gcs", "wenchang[gcs]", "Google Cloud Storage"),
        ("az", "wenchang-azure", "wenchang[azure]", "Azure Blob Storage"),
    )
}
# What people type instead, where likeness of spelling alone would not tell.
_OTHER_NAMES: Final[Mapping[str, str]] = {
    "aws": "s3",
    "minio": "s3",
    "gcs": "gs",
    "google": "gs",
    "azure": "az",
    "postgres": "postgresql",
    "pg": "postgresql",
    "filesystem": "file",
    "folder": "file",
    "ram": "memory",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendInfo:
    """One line of `list_backends`."""

    name: str
    state: BackendState
    distribution: str
    """The distribution that provides it, or would."""
    version: str
    """The distribution's version; "" where it is not installed or does not say."""
    summary: str
    """What it stores where; for a backend that cannot be used, "" where it could not be asked."""
    problem: str = ""
    """Why it cannot be used and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """An entry point of one installed distribution."""

    name: str
    distribution: str
    version: str
    entry_point: EntryPoint

    @property
    def label(self) -> str:
        """The distribution with its version."""
        return f"{self.distribution} {self.version}".strip()


def open_storage(
    location: StorageLocation | str,
    *,
    options: Mapping[str, OptionValue] | None = None,
    provider: str | None = None,
    source: str = "the call",
) -> Storage:
    """Open the storage at a URL, or at a location parsed before.

    `options` are merged with the parameters of the URL; the same option in both is an error.
    `provider` names the distribution to use where two provide the backend. `source` says in error
    texts where the URL came from. No network call is made.

    Raises `StorageConfigurationError` for a wrong URL or option, one of the five `DiscoveryError`
    classes where the backend cannot be found or loaded, and whatever the backend raises for a
    location that it cannot open.
    """
    if not isinstance(location, StorageLocation):
        location = StorageLocation.parse(location, options=options, source=source)
    elif options is not None:
        msg = "options go with a URL; a StorageLocation has its own"
        raise TypeError(msg)
    candidate = _find(location.scheme, provider, location.source)
    descriptor = _load(candidate, location.source)
    try:
        storage = descriptor.open(location)
    except ImportError as error:
        raise _import_failure(candidate, error, location.source) from error
    if not isinstance(storage, Storage):
        raise _broken(candidate, "it opened something that is no storage", location.source)
    return storage


def find_backend(
    name: str, *, provider: str | None = None, source: str = "the call"
) -> BackendDescriptor:
    """Return the descriptor of the backend called `name` without opening anything.

    Raises one of the five `DiscoveryError` classes.
    """
    return _load(_find(name, provider, source), source)


def list_backends() -> list[BackendInfo]:
    """Return every backend that is installed, usable or not, and those that we publish.

    Ascending by name. Loads each descriptor; never raises because of a plug-in.
    """
    found = _scan()
    lines = [
        _describe(candidate, conflicting=len(candidates) > 1)
        for candidates in found.values()
        for candidate in candidates
    ]
    lines += [
        BackendInfo(
            name=name,
            state="not installed",
            distribution=published.distribution,
            version="",
            summary=published.summary,
            problem=f"To install it: {_pip_install(published.requirement)}",
        )
        for name, published in _PUBLISHED.items()
        if name not in found
    ]
    return sorted(lines, key=lambda line: (line.name, line.distribution))


def _describe(candidate: _Candidate, *, conflicting: bool) -> BackendInfo:
    """Load one candidate for the list and say what came of it."""
    state: BackendState = "conflict" if conflicting else "ok"
    summary, problem = "", ""
    try:
        summary = _load(candidate, "the list of backends").summary
    except BackendNotInstalled as error:
        state, problem = "not installed", str(error)
    except BackendIncompatible as error:
        state, problem = "incompatible", str(error)
    except DiscoveryError as error:
        state, problem = "broken", str(error)
    return BackendInfo(
        name=candidate.name,
        state=state,
        distribution=candidate.distribution,
        version=candidate.version,
        summary=summary,
        problem=problem,
    )


# --- finding -------------------------------------------------------------------------------------


def _scan() -> dict[str, list[_Candidate]]:
    """Return the installed candidates by name. A distribution that cannot be read has none."""
    from importlib import metadata

    # A distribution installed a moment ago must be seen, also by the import that follows. The finder
    # of metadata has a cache of its own, by folder and time, which older Pythons do not clear along.
    importlib.invalidate_caches()
    metadata.MetadataPathFinder().invalidate_caches()
    found: dict[str, list[_Candidate]] = {}
    for distribution in metadata.distributions():
        try:
            entry_points = [
                entry_point
                for entry_point in distribution.entry_points
                if entry_point.group == ENTRY_POINT_GROUP
            ]
        except Exception:  # noqa: BLE001, S112 - damaged metadata hides its own distribution only
            continue
        if not entry_points:
            continue
        name, version = _identity(distribution)
        for entry_point in entry_points:
            others = found.setdefault(entry_point.name, [])
            # Metadata left behind by an older install is the same distribution, and later on the path.
            if all(_normal(other.distribution) != _normal(name) for other in others):
                others.append(
                    _Candidate(
                        name=entry_point.name,
                        distribution=name,
                        version=version,
                        entry_point=entry_point,
                    )
                )
    return found


def _identity(distribution: Distribution) -> tuple[str, str]:
    """Return name and version of a distribution, as far as its metadata can be read."""
    try:
        fields = distribution.metadata
        name, version = fields["Name"], fields["Version"]
    except Exception:  # noqa: BLE001 - a plug-in with damaged metadata can still be named and loaded
        name, version = None, None
    return name or "an unnamed distribution", version or ""


def _normal(distribution: str) -> str:
    """Return a distribution's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _find(name: str, provider: str | None, source: str) -> _Candidate:
    """Return the one installed candidate for `name`."""
    found = _scan()
    candidates = found.get(name, [])
    if not candidates:
        raise _missing(name, found, source)
    if provider is not None:
        chosen = [c for c in candidates if _normal(c.distribution) == _normal(provider)]
        if not chosen:
            providers = ", ".join(candidate.label for candidate in candidates)
            msg = (
                f"No installed distribution '{provider}' provides the storage backend '{name}' "
                f"(named by {source}). Installed here for it: {providers}. "
                f"To see all backends: {_list_command()}"
            )
            raise UnknownBackend(msg)
        return chosen[0]
    if len(candidates) > 1:
        names = [candidate.distribution for candidate in candidates]
        spare = next((other for other in names if not _is_ours(other)), names[-1])
        msg = (
            f"Several distributions provide the storage backend '{name}' (named by {source}). "
            f"Installed here: {', '.join(candidate.label for candidate in candidates)}. "
            f'Choose one with the setting provider = "{names[0]}", or remove the other: '
            f"{_pip('uninstall', spare)}"
        )
        raise BackendConflict(msg)
    return candidates[0]


def _missing(name: str, found: Collection[str], source: str) -> DiscoveryError:
    """Return the error for a name that no installed distribution provides."""
    installed = ", ".join(sorted(found)) or "none"
    published = _PUBLISHED.get(name)
    if published is not None:
        return BackendNotInstalled(
            f"The storage backend '{name}' (named by {source}) is not installed: the distribution "
            f"{published.distribution} provides it. Installed here: {installed}. "
            f"To install it: {_pip_install(published.requirement)}"
        )
    shown = name if len(name) <= 40 else f"{name[:40]}…"
    text = f"There is no storage backend '{shown}' (named by {source})."
    guess = _OTHER_NAMES.get(name) or nearest(name, {*found, *_PUBLISHED})
    if guess is not None:
        text += f" Did you mean '{guess}'?"
    text += f" Installed here: {installed}."
    if guess is not None and guess in _PUBLISHED and guess not in found:
        return UnknownBackend(
            f"{text} To install it: {_pip_install(_PUBLISHED[guess].requirement)}"
        )
    return UnknownBackend(f"{text} To see all backends: {_list_command()}")


# --- loading -------------------------------------------------------------------------------------


def _load(candidate: _Candidate, source: str) -> BackendDescriptor:
    """Import the candidate's descriptor and check that it can be used."""
    try:
        loaded: object = candidate.entry_point.load()
    except KeyboardInterrupt:
        raise
    except ImportError as error:
        raise _import_failure(candidate, error, source) from error
    except BaseException as error:
        # A plug-in that exits or raises anything at all must not take its host along.
        raise _broken(candidate, f"{type(error).__name__} while it was loaded", source) from error
    if not isinstance(loaded, BackendDescriptor):
        problem = f"the entry point holds a {type(loaded).__name__}, not a BackendDescriptor"
        raise _broken(candidate, problem, source)
    if loaded.name != candidate.name:
        raise _broken(candidate, f"it describes itself as '{loaded.name}'", source)
    theirs, ours = (int(c.partition(".")[0]) for c in (loaded.contract, STORAGE_CONTRACT))
    if theirs != ours:
        outdated = candidate.distribution if theirs < ours else "wenchang-core"
        msg = (
            f"The storage backend '{candidate.name}' (named by {source}) keeps version "
            f"{loaded.contract} of the storage contract, and this is version {STORAGE_CONTRACT}. "
            f"Installed here: {candidate.label}. To upgrade: {_pip_install('--upgrade', outdated)}"
        )
        raise BackendIncompatible(msg)
    return loaded


def _import_failure(candidate: _Candidate, error: ImportError, source: str) -> DiscoveryError:
    """Tell a package that is not installed from a plug-in that is broken."""
    missing = (error.name or "").partition(".")[0]
    own = candidate.entry_point.module.partition(".")[0]
    if not isinstance(error, ModuleNotFoundError) or missing in {"", own, "wenchang"}:
        return _broken(candidate, f"{type(error).__name__} while it was loaded", source)
    published = _PUBLISHED.get(candidate.name)
    if published is not None and _is_ours(candidate.distribution):
        requirement = published.requirement
    else:
        requirement = candidate.distribution
    return BackendNotInstalled(
        f"The storage backend '{candidate.name}' (named by {source}) needs the Python package "
        f"'{missing}', which is not installed. Installed here: {candidate.label}. "
        f"To install it: {_pip_install(requirement)}"
    )


def _broken(candidate: _Candidate, problem: str, source: str) -> BackendBroken:
    """Return the error for a plug-in that cannot be used as it is."""
    return BackendBroken(
        f"The storage backend '{candidate.name}' (named by {source}) is broken: {problem}. "
        f"Installed here: {candidate.label}, entry point '{candidate.entry_point.value}'. "
        f"To install it again: {_pip_install('--force-reinstall', candidate.distribution)}"
    )


# --- commands ------------------------------------------------------------------------------------


def _is_ours(distribution: str) -> bool:
    return _normal(distribution) in {item.distribution for item in _PUBLISHED.values()}


def _python() -> str:
    """Return this interpreter as a shell takes it."""
    return shlex.quote(sys.executable or "python3")


def _pip_install(*arguments: str) -> str:
    return _pip("install", *arguments)


def _pip(verb: str, *arguments: str) -> str:
    """Return the command that runs pip for this interpreter, or uv where there is no pip."""
    words = [f'"{word}"' if "[" in word else word for word in arguments]
    if importlib.util.find_spec("pip") is None:
        return " ".join(["uv", "pip", verb, "--python", _python(), *words])
    return " ".join([_python(), "-m", "pip", verb, *words])


def _list_command() -> str:
    return f"{_python()} -m wenchang.storage"
