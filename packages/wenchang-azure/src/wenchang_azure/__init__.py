"""Azure Blob Storage behind the wenchang storage contract.

The SDK is imported when `AzureStorage` or `open_location` is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wenchang_azure.options import AzureOptions

if TYPE_CHECKING:
    from wenchang_azure.opening import open_location
    from wenchang_azure.storage import AzureStorage

__all__ = ["AzureOptions", "AzureStorage", "__version__", "open_location"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import what needs the SDK at its first use."""
    if name == "AzureStorage":
        from wenchang_azure.storage import AzureStorage

        return AzureStorage
    if name == "open_location":
        from wenchang_azure.opening import open_location

        return open_location
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
