"""Which requirements concern a backend, from what it declares of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wenchang_conformance.hooks import HookUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wenchang_conformance.hooks import StorageHooks
    from wenchang_conformance.profiles import Profile

__all__ = ["Unsupported", "check_applicable", "declined", "is_required_hook"]

_OUTCOMES: Final = "out-"


class Unsupported(HookUnavailable):
    """No requirement of a case concerns this backend, by its own declaration."""


def declined(requirement_id: str, hooks: StorageHooks) -> str | None:
    """Return why a requirement does not concern the backend, or None if it does."""
    if requirement_id in hooks.unsupported:
        return hooks.unsupported[requirement_id]
    if hooks.local and requirement_id.startswith(_OUTCOMES):
        return "does not apply: calls of a local backend cannot lose their answers"
    if not hooks.durable and requirement_id == "durable":
        return "does not apply: the store ends with its process"
    if not hooks.proves_endpoint and requirement_id == "endpoint-proof":
        return "does not apply: the endpoint is the provider's own"
    return None


def check_applicable(ids: Iterable[str], hooks: StorageHooks) -> None:
    """Raise `Unsupported` if none of the requirements concerns the backend."""
    reasons = [declined(requirement_id, hooks) for requirement_id in ids]
    first = reasons[0]
    if first is not None and None not in reasons:
        raise Unsupported(first)


def is_required_hook(hook: str, hooks: StorageHooks, profile: Profile) -> bool:
    """Tell whether the profile requires the hook of a backend that declares itself like this."""
    concerned = {
        "reopen": hooks.durable,
        "spawn": hooks.shared,
        "faults": not hooks.local,
        "backdoor": True,
    }
    return hook in profile.hooks and concerned.get(hook, False)
