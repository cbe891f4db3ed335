"""Configuration of a local server: one TOML file, environment variables and command-line flags.

Which storage is used is decided by the first of: the flag `--storage`, `WENCHANG_STORAGE`, the file,
the default. Which file is read is decided by the first of: the flag `--config`, `WENCHANG_CONFIG`,
`wenchang.toml` in the platform's configuration folder. The current folder is never consulted, so
that the same command means the same memory wherever it is typed. An empty value is an error, not
an absent one.

    [storage]
    url = "s3://bucket/prefix"
    [storage.options]
    region = "eu-west-1"
    [scopes]
    user = "alice:owner"
    team = { entity = "platform", role = "member" }
    [policy.write_roles]
    team = ["admin", "owner"]
    [limits]
    max_file_bytes = 16384
    [files]
    max_depth = 6
    history = 20
    [server]
    source = "desktop"
    [prompt]
    purpose = "…"
"""

from __future__ import annotations

import difflib
import getpass
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from wenchang.files.policy import HistoryPolicy
from wenchang.files.settings import FileSettings
from wenchang.identity import ScopeGrant

__all__ = [
    "CONFIG_FILE_NAME",
    "CONFIG_VARIABLE",
    "DEFAULT_PROMPT",
    "DEFAULT_ROLE",
    "DEFAULT_SCOPE",
    "STORAGE_VARIABLE",
    "Config",
    "ConfigurationError",
    "Limits",
    "PromptText",
    "StorageChoice",
    "choose_storage",
    "default_grants",
    "default_storage_url",
    "load_config",
    "parse_grant",
    "read_config",
]

CONFIG_FILE_NAME: Final = "wenchang.toml"
CONFIG_VARIABLE: Final = "WENCHANG_CONFIG"
STORAGE_VARIABLE: Final = "WENCHANG_STORAGE"
DEFAULT_SCOPE: Final = "user"
DEFAULT_ROLE: Final = "owner"

Scalar = str | int | float | bool


class ConfigurationError(ValueError):
    """The configuration is wrong. The text is one line, names the place and says what is right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptText:
    """The four texts that an adopter gives to the memory prompt."""

    purpose: str
    scope_guidance: str
    seed_areas: str
    systems_of_record: str | None = None


DEFAULT_PROMPT: Final = PromptText(
    purpose=(
        "You have a durable memory that you share with other agents of the same user. Use it to "
        "keep what a later session should know and to find what earlier ones learned."
    ),
    scope_guidance=(
        "Each scope that get_memory_index shows is a memory of its own. The scope `user` is "
        "private to the user; any other scope is shared with the people it is named after."
    ),
    seed_areas=(
        "Start with the areas `preferences` (how the user likes things done), `projects` (one "
        "file for each piece of work) and `people` (who is who). Add areas as subjects appear."
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The size options of `MemoryStore`; None leaves the store's own default."""

    max_file_bytes: int | None = None
    index_max_bytes: int | None = None
    list_page_size: int | None = None
    max_files_per_entity: int | None = None
    scope_priority: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageChoice:
    """Which storage was chosen, with which options, and where the choice was made."""

    url: str = field(repr=False)
    options: Mapping[str, Scalar] = field(default_factory=dict, repr=False)
    provider: str | None = None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The content of one configuration file; every part has a default."""

    storage: StorageChoice | None = None
    grants: Mapping[str, ScopeGrant] = field(default_factory=dict)
    write_roles: Mapping[str, frozenset[str]] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    files: FileSettings = field(default_factory=FileSettings)
    prompt: PromptText = DEFAULT_PROMPT
    source: str = "agent"
    product: str | None = None
    tool_prefix: str | None = None


def parse_grant(text: str, *, where: str) -> tuple[str, ScopeGrant]:
    """Read `NAME=ENTITY[:ROLE]`; the role is what follows the last colon, `owner` by default.

    Raises `ConfigurationError` that names `where`.
    """
    name, separator, rest = text.partition("=")
    if not separator or not name or not rest:
        msg = f"{where}: write NAME=ENTITY or NAME=ENTITY:ROLE"
        raise ConfigurationError(msg)
    return name, _grant(rest, where=where)


def _grant(text: str, *, where: str) -> ScopeGrant:
    """Read `ENTITY[:ROLE]`."""
    entity, separator, role = text.rpartition(":")
    if not separator:
        entity, role = text, DEFAULT_ROLE
    return _make_grant(entity, role, where=where)


def _make_grant(entity: str, role: str, *, where: str) -> ScopeGrant:
    try:
        return ScopeGrant(entity, role)
    except (TypeError, ValueError) as error:
        msg = f"{where}: {error}"
        raise ConfigurationError(msg) from error


def default_grants() -> dict[str, ScopeGrant]:
    """Return the grant of a local server that was told none: scope `user` for the login name."""
    try:
        login = getpass.getuser()
    except (KeyError, OSError) as error:
        msg = "the login name is not known here: name the memory with --scope user=ENTITY"
        raise ConfigurationError(msg) from error
    return {DEFAULT_SCOPE: _make_grant(login, DEFAULT_ROLE, where="login name")}


def default_storage_url() -> str:
    """Return the URL of the SQLite file in the platform's data folder (which is not made here)."""
    from platformdirs import user_data_path

    return f"sqlite:///{user_data_path('wenchang', appauthor=False) / 'memory.db'}"


def choose_storage(flag: str | None, environ: Mapping[str, str], config: Config) -> StorageChoice:
    """Apply the precedence of flag, environment, file and default.

    Options and provider of the file go with the file's URL only.
    """
    if flag is not None:
        return StorageChoice(url=_not_empty(flag, "--storage"), source="--storage")
    if STORAGE_VARIABLE in environ:
        url = _not_empty(environ[STORAGE_VARIABLE], STORAGE_VARIABLE)
        return StorageChoice(url=url, source=STORAGE_VARIABLE)
    if config.storage is not None:
        return config.storage
    return StorageChoice(url=default_storage_url(), source="the default")


def load_config(flag: Path | None, environ: Mapping[str, str]) -> Config:
    """Find and read the configuration file; without one, return the defaults.

    A file that was named must exist; the one in the platform's folder need not.
    """
    if flag is not None:
        _not_empty(str(flag) if flag.name else "", "--config")
        return _read_file(flag, named_by="--config")
    if CONFIG_VARIABLE in environ:
        return _read_file(
            Path(_not_empty(environ[CONFIG_VARIABLE], CONFIG_VARIABLE)), named_by=CONFIG_VARIABLE
        )
    from platformdirs import user_config_path

    standard = user_config_path("wenchang", appauthor=False) / CONFIG_FILE_NAME
    return _read_file(standard, named_by="the default") if standard.is_file() else Config()


def _not_empty(value: str, name: str) -> str:
    if not value.strip():
        msg = f"{name} is empty: leave it out or give a value"
        raise ConfigurationError(msg)
    return value


def _read_file(path: Path, *, named_by: str) -> Config:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        msg = f"{path}: the file is not UTF-8"
        raise ConfigurationError(msg) from error
    except OSError as error:
        msg = f"{path} (named by {named_by}): {error.strerror or 'cannot be read'}"
        raise ConfigurationError(msg) from error
    return read_config(text, name=str(path))


def read_config(text: str, *, name: str) -> Config:
    """Read the text of a configuration file; `name` stands for the file in error texts.

    Raises `ConfigurationError` for bad TOML, an unknown key (with its line and the nearest known
    key), a wrong type or an invalid value.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        msg = f"{name}: this is not TOML: {error}"
        raise ConfigurationError(msg) from error
    return _Reader(text, name).config(document)


_TABLE = re.compile(r"\s*\[+\s*([^\]]+?)\s*\]+\s*(?:#.*)?")
_KEY = re.compile(r"\s*([A-Za-z0-9_.\-\"']+)\s*=")


class _Reader:
    """Reads one document; keeps its text to tell the line of a key."""

    def __init__(self, text: str, name: str) -> None:
        self._lines = text.splitlines()
        self._name = name

    def config(self, document: Mapping[str, object]) -> Config:
        known = ("storage", "scopes", "policy", "limits", "files", "server", "prompt")
        self._refuse_unknown((), document, known)
        server = self._table(document, "server")
        self._refuse_unknown(("server",), server, ("source", "product", "tool_prefix"))
        policy = self._table(document, "policy")
        self._refuse_unknown(("policy",), policy, ("write_roles",))
        return Config(
            storage=self._storage(self._table(document, "storage")),
            grants=self._grants(self._table(document, "scopes")),
            write_roles=self._write_roles(self._table(policy, "write_roles", "policy")),
            limits=self._limits(self._table(document, "limits")),
            files=self._files(self._table(document, "files")),
            prompt=self._prompt(self._table(document, "prompt")),
            source=self._text(server, "server", "source") or "agent",
            product=self._text(server, "server", "product"),
            tool_prefix=self._text(server, "server", "tool_prefix"),
        )

    def _storage(self, table: Mapping[str, object]) -> StorageChoice | None:
        self._refuse_unknown(("storage",), table, ("url", "provider", "options"))
        options = self._table(table, "options", "storage")
        for key, value in options.items():
            if not isinstance(value, str | int | float | bool):
                raise self._error(("storage", "options", key), "must be text, number or boolean")
        url = self._text(table, "storage", "url")
        if url is None:
            if table:
                raise self._error(("storage", next(iter(table))), "needs 'url' beside it")
            return None
        return StorageChoice(
            url=url,
            options={k: v for k, v in options.items() if isinstance(v, str | int | float | bool)},
            provider=self._text(table, "storage", "provider"),
            source=self._name,
        )

    def _grants(self, table: Mapping[str, object]) -> dict[str, ScopeGrant]:
        grants: dict[str, ScopeGrant] = {}
        for scope, value in table.items():
            where = self._where(("scopes", scope))
            if isinstance(value, str):
                grants[scope] = _grant(value, where=where)
            elif isinstance(value, Mapping):
                self._refuse_unknown(("scopes", scope), value, ("entity", "role"))
                entity = self._text(value, f"scopes.{scope}", "entity")
                role = self._text(value, f"scopes.{scope}", "role") or DEFAULT_ROLE
                if entity is None:
                    raise self._error(("scopes", scope), "needs 'entity'")
                grants[scope] = _make_grant(entity, role, where=where)
            else:
                raise self._error(
                    ("scopes", scope), 'must be "ENTITY:ROLE" or { entity = "…", role = "…" }'
                )
        return grants

    def _write_roles(self, table: Mapping[str, object]) -> dict[str, frozenset[str]]:
        roles: dict[str, frozenset[str]] = {}
        for scope, value in table.items():
            if (
                not isinstance(value, list)
                or not value
                or not all(isinstance(role, str) and role for role in value)
            ):
                raise self._error(("policy", "write_roles", scope), "must be a list of roles")
            roles[scope] = frozenset(value)
        return roles

    def _limits(self, table: Mapping[str, object]) -> Limits:
        sizes = ("max_file_bytes", "index_max_bytes", "list_page_size", "max_files_per_entity")
        self._refuse_unknown(("limits",), table, (*sizes, "scope_priority"))
        values = {
            key: self._whole(table, ("limits", key), least=1) for key in sizes if key in table
        }
        priority = table.get("scope_priority", [])
        if not isinstance(priority, list) or not all(isinstance(s, str) for s in priority):
            raise self._error(("limits", "scope_priority"), "must be a list of scope names")
        return Limits(**values, scope_priority=tuple(priority))

    def _files(self, table: Mapping[str, object]) -> FileSettings:
        sizes = ("max_depth", "max_file_bytes", "max_total_bytes", "max_file_count")
        self._refuse_unknown(("files",), table, ("scope", *sizes, "history", "max_answer_chars"))
        settings = FileSettings()
        # One at a time, so that a value out of range is told with its own line.
        for key in table:
            path = ("files", key)
            try:
                if key == "scope":
                    scope = self._text(table, "files", key) or settings.scope
                    settings = replace(settings, scope=scope)
                elif key == "history":
                    versions = self._whole(table, path, least=0)
                    history = HistoryPolicy(versions=versions) if versions else None
                    settings = replace(settings, history=history)
                elif key == "max_answer_chars":
                    chars = self._whole(table, path, least=1)
                    settings = replace(settings, max_answer_chars=chars)
                else:
                    limit: Mapping[str, int] = {key: self._whole(table, path, least=1)}
                    settings = replace(settings, limits=replace(settings.limits, **limit))
            except ConfigurationError:
                raise
            except ValueError as error:
                raise self._error(path, f"cannot be used: {error}") from error
        return settings

    def _prompt(self, table: Mapping[str, object]) -> PromptText:
        keys = ("purpose", "scope_guidance", "seed_areas", "systems_of_record")
        self._refuse_unknown(("prompt",), table, keys)
        return PromptText(
            purpose=self._text(table, "prompt", "purpose") or DEFAULT_PROMPT.purpose,
            scope_guidance=self._text(table, "prompt", "scope_guidance")
            or DEFAULT_PROMPT.scope_guidance,
            seed_areas=self._text(table, "prompt", "seed_areas") or DEFAULT_PROMPT.seed_areas,
            systems_of_record=self._text(table, "prompt", "systems_of_record"),
        )

    def _table(
        self, parent: Mapping[str, object], key: str, above: str | None = None
    ) -> Mapping[str, object]:
        value = parent.get(key, {})
        if not isinstance(value, Mapping):
            raise self._error((above, key) if above else (key,), "must be a table")
        return value

    def _text(self, table: Mapping[str, object], above: str, key: str) -> str | None:
        if key not in table:
            return None
        value = table[key]
        path = (*above.split("."), key)
        if not isinstance(value, str):
            raise self._error(path, "must be text")
        if not value.strip():
            raise self._error(path, "is empty: leave it out or give a value")
        return value

    def _whole(self, table: Mapping[str, object], path: tuple[str, ...], *, least: int) -> int:
        value = table[path[-1]]
        if type(value) is not int or value < least:
            raise self._error(path, f"must be a whole number of at least {least}")
        return value

    def _refuse_unknown(
        self, above: tuple[str, ...], table: Mapping[str, object], known: tuple[str, ...]
    ) -> None:
        for key in table:
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1, cutoff=0.0)
                raise self._error((*above, key), f"is unknown; did you mean '{near[0]}'?")

    def _where(self, path: tuple[str, ...]) -> str:
        line = self._line_of(path)
        place = f"{self._name}, line {line}" if line else self._name
        return f"{place}: '{'.'.join(path)}'"

    def _error(self, path: tuple[str, ...], problem: str) -> ConfigurationError:
        return ConfigurationError(f"{self._where(path)} {problem}")

    def _line_of(self, path: tuple[str, ...]) -> int | None:
        """Find the line on which a key or its table is written, or None (an inline table, say)."""
        table: tuple[str, ...] = ()
        for number, line in enumerate(self._lines, start=1):
            if header := _TABLE.fullmatch(line):
                table = _split_key(header[1])
                if table == path:
                    return number
            elif (key := _KEY.match(line)) and (*table, *_split_key(key[1])) == path:
                return number
        return None


def _split_key(text: str) -> tuple[str, ...]:
    """Split a dotted TOML key; quotes around a part come off."""
    return tuple(part.strip().strip("\"'") for part in text.split("."))
