"""`AzureStorage`: a container of Azure Blob Storage. It comes with the extra `azure`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wenchang.storage._aliases import lazy_alias

if TYPE_CHECKING:
    from wenchang_azure import AzureStorage

__all__ = ["AzureStorage"]

__getattr__ = lazy_alias(__name__, "wenchang_azure", "azure", __all__)
