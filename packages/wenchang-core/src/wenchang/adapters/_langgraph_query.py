"""What a LangGraph store is asked for: filters on values, and patterns of namespaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final

from langgraph.store.base import MatchCondition

__all__ = [
    "check_bounds",
    "check_conditions",
    "check_depth",
    "check_filter",
    "common_prefix",
    "fits",
    "matches",
]

_EQUALITY: Final[Mapping[str, Callable[[Any, Any], bool]]] = {"$eq": eq, "$ne": ne}
_ORDER: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "$gt": gt,
    "$gte": ge,
    "$lt": lt,
    "$lte": le,
}


def check_bounds(limit: int, offset: int) -> None:
    """Raise TypeError unless both are whole numbers, ValueError for one below 0."""
    for name, value in (("limit", limit), ("offset", offset)):
        if type(value) is not int:
            msg = f"{name} must be an int, not {type(value).__name__}"
            raise TypeError(msg)
        if value < 0:
            msg = f"{name} must not be negative"
            raise ValueError(msg)


def check_depth(depth: int | None) -> None:
    """Raise TypeError unless it is a whole number or None."""
    if depth is not None and type(depth) is not int:
        msg = f"max_depth must be an int or None, not {type(depth).__name__}"
        raise TypeError(msg)


def check_filter(wanted: object) -> None:
    """Raise ValueError for an operator that there is not, TypeError for a filter that is no mapping.

    ValueError too for one nested too deeply to be looked through.
    """
    if wanted is None:
        return
    if not isinstance(wanted, Mapping):
        msg = f"filter must be a mapping, not {type(wanted).__name__}"
        raise TypeError(msg)
    try:
        _check_operators(list(wanted.values()))
    except RecursionError:
        msg = "filter has too many levels"
        raise ValueError(msg) from None


def _check_operators(wanted: object) -> None:
    if isinstance(wanted, Mapping):
        if _is_operators(wanted):
            for name, value in wanted.items():
                if name not in _EQUALITY and name not in _ORDER:
                    msg = (
                        f"unsupported operator {name}: there are {', '.join([*_EQUALITY, *_ORDER])}"
                    )
                    raise ValueError(msg)
                if name in _ORDER and _number(value) is None:
                    msg = f"operator {name} compares with a number"
                    raise ValueError(msg)
            return
        _check_operators(list(wanted.values()))
    elif isinstance(wanted, list | tuple):
        for inner in wanted:
            _check_operators(inner)


def matches(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Tell whether a value has every field as a filter wants it.

    A field that is missing counts as None. `$gt`, `$gte`, `$lt` and `$lte` compare numbers; what is
    no number does not match.
    """
    return not wanted or all(_compare(value.get(name), want) for name, want in wanted.items())


def _compare(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if _is_operators(wanted):
            return all(_apply(name, value, want) for name, want in wanted.items())
        return isinstance(value, Mapping) and all(
            _compare(value.get(name), want) for name, want in wanted.items()
        )
    if isinstance(wanted, list | tuple):
        return (
            isinstance(value, list | tuple)
            and len(value) == len(wanted)
            and all(map(_compare, value, wanted))
        )
    return bool(value == wanted)


def _is_operators(wanted: Mapping[str, Any]) -> bool:
    return any(isinstance(name, str) and name.startswith("$") for name in wanted)


def _apply(operator: str, value: Any, wanted: Any) -> bool:
    if operator in _EQUALITY:
        return bool(_EQUALITY[operator](value, wanted))
    left, right = _number(value), _number(wanted)
    return left is not None and right is not None and _ORDER[operator](left, right)


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def check_conditions(conditions: Sequence[MatchCondition]) -> None:
    """Raise ValueError for a kind of match that there is not."""
    for condition in conditions:
        if condition.match_type not in ("prefix", "suffix"):
            msg = f"unsupported match type {condition.match_type!r}: there are prefix and suffix"
            raise ValueError(msg)


def fits(namespace: Sequence[str], conditions: Sequence[MatchCondition]) -> bool:
    """Tell whether a namespace begins and ends as every condition says; `*` stands for any label."""
    return all(
        len(namespace) >= len(condition.path)
        and all(
            want in ("*", label)
            for label, want in zip(
                namespace[: len(condition.path)]
                if condition.match_type == "prefix"
                else namespace[len(namespace) - len(condition.path) :],
                condition.path,
                strict=True,
            )
        )
        for condition in conditions
    )


def common_prefix(conditions: Sequence[MatchCondition]) -> tuple[str, ...]:
    """Return the longest run of labels that every namespace which fits begins with."""
    best: tuple[str, ...] = ()
    for condition in conditions:
        if condition.match_type == "prefix":
            path = tuple(condition.path)
            literal = path[: path.index("*")] if "*" in path else path
            best = max(best, literal, key=len)
    return best
