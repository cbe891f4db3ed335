"""`@requirement(...)`: which sentences of the contract a case proves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import pytest

from wenchang_conformance.manifest import requirements

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MARKER", "requirement"]

MARKER: Final = "wenchang_requirement"
"""The name of the pytest mark. Long, so that it meets no mark of another project."""

CaseT = TypeVar("CaseT", bound="Callable[..., object]")


def requirement(*ids: str) -> Callable[[CaseT], CaseT]:
    """Mark a test as a case of the requirements `ids`.

    Raises ValueError, when the module is imported, for an id that is not in the manifest.
    """
    unknown = [name for name in ids if name not in requirements()]
    if unknown or not ids:
        msg = f"no such requirement in the manifest: {', '.join(unknown) or '(none given)'}"
        raise ValueError(msg)

    def mark(case: CaseT) -> CaseT:
        marked: CaseT = getattr(pytest.mark, MARKER)(*ids)(case)
        return marked

    return mark
