"""Google Cloud Storage behind the wenchang storage contract.

The Google client is imported when `GcsStorage` or `open_location` is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wenchang_gcs.options import GcsOptions

if TYPE_CHECKING:
    from wenchang_gcs.opening import open_location
    from wenchang_gcs.storage import GcsStorage

__all__ = ["GcsOptions", "GcsStorage", "__version__", "open_location"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import what needs the Google client at its first use."""
    if name == "GcsStorage":
        from wenchang_gcs.storage import GcsStorage

        return GcsStorage
    if name == "open_location":
        from wenchang_gcs.opening import open_location

        return open_location
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
