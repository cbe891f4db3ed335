"""What an adapter says when the package that it adapts to is not installed."""

from __future__ import annotations

__all__ = ["missing_package"]


def missing_package(adapter: str, extra: str, error: ImportError) -> ImportError:
    """Return the error to raise instead of `error`; its text is the line that installs the extra."""
    return ImportError(
        f'{adapter} needs the extra "{extra}": pip install "wenchang[{extra}]"',
        name=error.name,
        path=error.path,
    )
