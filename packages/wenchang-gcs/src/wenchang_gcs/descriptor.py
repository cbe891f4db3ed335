"""The backend as its entry point announces it. Imports no SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wenchang.storage.contract import STORAGE_CONTRACT
from wenchang.storage.descriptor import BackendDescriptor
from wenchang_gcs.options import GcsOptions

if TYPE_CHECKING:
    from wenchang.storage.contract import Storage
    from wenchang.storage.locations import StorageLocation

__all__ = ["DESCRIPTOR"]


def _open(location: StorageLocation) -> Storage:
    from wenchang_gcs.opening import open_location

    return open_location(location)


DESCRIPTOR: Final = BackendDescriptor(
    name="gs",
    contract=STORAGE_CONTRACT,
    summary="a bucket of Google Cloud Storage, or a prefix in one",
    options=GcsOptions,
    open=_open,
    hooks="wenchang_gcs.hooks:hooks",
)
