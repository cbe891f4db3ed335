"""Where a storage is: one value made of a URL and of options, whatever they came from.

    scheme://address?name=value&name=value

The scheme names the backend. The address is the backend's own matter and is kept as written. URL
parameters and configured options are the same options; giving one twice is an error. Parameters are
percent-decoded, and a plus sign stays one.

Locations hold passwords and keys. Their repr hides them, and no error repeats a URL or a value.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)
from urllib.parse import unquote

from wenchang.storage.errors import StorageConfigurationError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["OptionValue", "StorageLocation", "nearest"]

OptionValue: TypeAlias = str | int | float | bool

OptionsT = TypeVar("OptionsT", bound="DataclassInstance")

_HIDDEN: Final = "***"
_URL: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>.*)", re.DOTALL)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_BAD_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_OPTION_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_SECRET_NAME: Final = re.compile(
    r"key|secret|token|passw|pwd|passphrase|credential|connection|conn_?str|dsn|auth|sas|sig",
    re.IGNORECASE,
)
_SECRET_ASSIGNMENT: Final = re.compile(
    r"(key|secret|token|password|passwd|pwd|signature|\bsig)\s*=", re.IGNORECASE
)
_TRUE: Final = frozenset({"true", "yes", "on", "1"})
_FALSE: Final = frozenset({"false", "no", "off", "0"})


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StorageLocation:
    """A storage to open: backend, address and options. Frozen; the options are copied."""

    scheme: str
    """The backend's name, in lower case."""
    address: str
    """What stands between `scheme://` and `?`, exactly as written."""
    options: Mapping[str, OptionValue] = field(default_factory=dict, hash=False)
    """URL parameters (always str) and configured options (as configured)."""
    source: str = "the call"
    """Where the location came from, for error texts: `--storage`, `WENCHANG_STORAGE`, a file."""

    def __post_init__(self) -> None:
        """Copy and freeze the options."""
        object.__setattr__(self, "options", types.MappingProxyType(dict(self.options)))

    @classmethod
    def parse(
        cls, url: str, *, options: Mapping[str, OptionValue] | None = None, source: str = "the call"
    ) -> StorageLocation:
        """Return the location that `url` and configured `options` describe together.

        `source` says in error texts where the URL came from. Raises TypeError if `url` is no str,
        `StorageConfigurationError` for anything that is not a URL, a malformed or repeated
        parameter, an option given twice, or an option value that is no str, number or bool.
        """
        if not isinstance(url, str):
            msg = f"a storage URL must be a str, not {type(url).__name__}"
            raise TypeError(msg)
        where = f"the storage URL given by {source}"
        scheme, address, query = _split(url, where)
        merged: dict[str, OptionValue] = dict(
            _parameters(query, where) if query is not None else ()
        )
        for name, value in (options or {}).items():
            if not isinstance(name, str) or not _OPTION_NAME.fullmatch(name):
                msg = "the name of a storage option must be letters, digits, '_' and '-'"
                raise StorageConfigurationError(msg)
            if name in merged:
                msg = f"storage option '{name}' is given twice: in {where} and as an option"
                raise StorageConfigurationError(msg)
            if not isinstance(value, str | int | float | bool):
                msg = f"storage option '{name}' must be text, a number, true or false"
                raise StorageConfigurationError(msg)
            merged[name] = value
        return cls(scheme=scheme, address=address, options=merged, source=source)

    def options_as(self, options_type: type[OptionsT]) -> OptionsT:
        """Return the options as an instance of `options_type`, a dataclass.

        Each value is converted to the type of its field: `str`, `int`, `float`, `bool`,
        `pathlib.Path`, a `Literal` of these, or one of them `| None`. Raises
        `StorageConfigurationError` for an option that is not a field (it lists the fields), for a
        value that does not fit and for a missing option without a default.
        """
        hints = get_type_hints(options_type)
        fields = {item.name: item for item in dataclasses.fields(options_type) if item.init}
        values: dict[str, Any] = {}
        for name, value in self.options.items():
            if name not in fields:
                raise StorageConfigurationError(self._unknown_option(name, fields))
            try:
                values[name] = _convert(value, hints[name])
            except _MisfitError as misfit:
                msg = f"option '{name}' of {self.scheme} storage must be {misfit.wanted}"
                # The cause would repeat the value.
                raise StorageConfigurationError(msg) from None
        missing = [
            name
            for name, item in fields.items()
            if name not in values
            and item.default is dataclasses.MISSING
            and item.default_factory is dataclasses.MISSING
        ]
        if missing:
            msg = f"{self.scheme} storage needs the option '{missing[0]}' (from {self.source})"
            raise StorageConfigurationError(msg)
        return options_type(**values)

    def _unknown_option(self, name: str, known: Iterable[str]) -> str:
        """Say that an option does not exist and which do."""
        names = sorted(known)
        text = f"{self.scheme} storage has no option '{name}' (from {self.source})."
        guess = nearest(name, names)
        if guess is not None:
            text += f" Did you mean '{guess}'?"
        return text + (f" It has: {', '.join(names)}." if names else " It has none.")

    def __repr__(self) -> str:
        """Return a text for logs, with passwords, keys and tokens hidden."""
        options = {name: _shown(name, value) for name, value in self.options.items()}
        return (
            f"StorageLocation(scheme={self.scheme!r}, address={_without_secrets(self.address)!r}, "
            f"options={options!r}, source={self.source!r})"
        )

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by value; the frozen view of the options cannot be."""
        return (_make, (self.scheme, self.address, dict(self.options), self.source))


def _make(
    scheme: str, address: str, options: dict[str, OptionValue], source: str
) -> StorageLocation:
    """Rebuild a pickled location."""
    return StorageLocation(scheme=scheme, address=address, options=options, source=source)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that `name` is probably a misspelling of, or None."""
    folded = {candidate.lower().replace("-", "_"): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower().replace("-", "_"), list(folded), n=1, cutoff=0.6)
    return folded[close[0]] if close else None


# --- parsing -------------------------------------------------------------------------------------


def _split(url: str, where: str) -> tuple[str, str, str | None]:
    """Split a URL into scheme, address and query (None without a question mark)."""
    if not url.strip():
        msg = f"{where} is empty; it looks like file:///some/folder or s3://bucket/prefix"
        raise StorageConfigurationError(msg)
    if _CONTROL.search(url) or url != url.strip():
        msg = f"{where} must not hold control characters or begin or end with a space"
        raise StorageConfigurationError(msg)
    match = _URL.fullmatch(url)
    if match is None:
        msg = f"{where} is not a URL; it looks like file:///some/folder or s3://bucket/prefix"
        raise StorageConfigurationError(msg)
    address, mark, query = match["rest"].partition("?")
    authority = address.partition("/")[0]
    if "@" in query and "@" not in address and re.search(r":(?![0-9]*$)", authority):
        # Otherwise a part of the password would be taken for the name of an option, and be shown.
        msg = f"{where} has a '?' before its '@'; in a user or password write it as %3F"
        raise StorageConfigurationError(msg)
    return match["scheme"].lower(), address, query if mark else None


def _parameters(query: str, where: str) -> dict[str, str]:
    """Return the parameters of a query."""
    parameters: dict[str, str] = {}
    for part in query.split("&"):
        name, equals, value = part.partition("=")
        if not equals or not _OPTION_NAME.fullmatch(name):
            msg = f"{where} must end in ?name=value&name=value, with '&' in a value written as %26"
            raise StorageConfigurationError(msg)
        if name in parameters:
            msg = f"{where} gives the option '{name}' twice"
            raise StorageConfigurationError(msg)
        decoded = _percent_decoded(value)
        if decoded is None:
            msg = f"the option '{name}' in {where} is not percent-encoded UTF-8; write '%' as %25"
            raise StorageConfigurationError(msg)
        parameters[name] = decoded
    return parameters


def _percent_decoded(text: str) -> str | None:
    """Decode percent-encoded UTF-8, or return None where `text` is none."""
    if _BAD_PERCENT.search(text):
        return None
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return None


# --- conversion ----------------------------------------------------------------------------------


class _MisfitError(ValueError):
    """A value does not fit its field; `wanted` says what would."""

    def __init__(self, wanted: str) -> None:
        super().__init__(wanted)
        self.wanted = wanted


def _convert(value: OptionValue, wanted: Any) -> object:
    """Convert an option's value to the type of its field."""
    origin = get_origin(wanted)
    if origin in {Union, types.UnionType}:
        members = [member for member in get_args(wanted) if member is not type(None)]
        if len(members) == 1:
            return _convert(value, members[0])
    elif origin is Literal:
        return _convert_choice(value, get_args(wanted))
    elif wanted in _CONVERTERS:
        return _CONVERTERS[wanted](value)
    msg = f"an option cannot be of type {wanted}"
    raise TypeError(msg)


def _convert_choice(value: OptionValue, choices: tuple[object, ...]) -> object:
    """Return the choice that `value` spells."""
    for choice in choices:
        if isinstance(choice, bool | int | float | str):
            try:
                converted = _CONVERTERS[type(choice)](value)
            except _MisfitError:
                continue
            if converted == choice:
                return choice
    raise _MisfitError("one of: " + ", ".join(str(choice) for choice in choices))


def _to_text(value: OptionValue) -> str:
    if not isinstance(value, str):
        raise _MisfitError("text")
    return value


def _to_int(value: OptionValue) -> int:
    if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]{1,18}", value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise _MisfitError("a whole number")


def _to_float(value: OptionValue) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise _MisfitError("a number")
    return number


def _to_bool(value: OptionValue) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _TRUE | _FALSE:
        return value.lower() in _TRUE
    raise _MisfitError("true or false")


def _to_path(value: OptionValue) -> Path:
    if not isinstance(value, str) or not value:
        raise _MisfitError("a path")
    return Path(value)


_CONVERTERS: Final[Mapping[object, Any]] = {
    str: _to_text,
    int: _to_int,
    float: _to_float,
    bool: _to_bool,
    Path: _to_path,
}


# --- hiding --------------------------------------------------------------------------------------


def _shown(name: str, value: OptionValue) -> OptionValue:
    """Return an option's value as a log may show it."""
    if _SECRET_NAME.search(name):
        return _HIDDEN
    return _without_secrets(value) if isinstance(value, str) else value


def _without_secrets(text: str) -> str:
    """Return `text` with the password of a user part, or a whole connection string, hidden."""
    if _SECRET_ASSIGNMENT.search(text):
        return _HIDDEN
    match = _URL.fullmatch(text)
    prefix, rest = (f"{match['scheme']}://", match["rest"]) if match else ("", text)
    # Up to the last "@": an unescaped one in a password must not end the hiding early.
    user, at, host = rest.rpartition("@")
    if at and ":" in user:
        user = f"{user.partition(':')[0]}:{_HIDDEN}"
    return f"{prefix}{user}{at}{host}"
