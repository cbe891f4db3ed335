"""The backend as its entry point announces it. Imports no SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wenchang.storage.contract import STORAGE_CONTRACT
from wenchang.storage.descriptor import BackendDescriptor
from wenchang_azure.options import AzureOptions

if TYPE_CHECKING:
    from wenchang.storage.contract import Storage
    from wenchang.storage.locations import StorageLocation

__all__ = ["DESCRIPTOR"]


def _open(location: StorageLocation) -> Storage:
    from wenchang_azure.opening import open_location

    return open_location(location)


DESCRIPTOR: Final = BackendDescriptor(
    name="az",
    contract=STORAGE_CONTRACT,
    summary="a container of Azure Blob Storage, or a prefix in one",
    options=AzureOptions,
    open=_open,
    hooks="wenchang_azure.hooks:hooks",
)
