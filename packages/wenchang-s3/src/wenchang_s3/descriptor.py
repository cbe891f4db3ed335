"""The backend of this package, as its entry point announces it. Imports no SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wenchang.storage.contract import STORAGE_CONTRACT
from wenchang.storage.descriptor import BackendDescriptor
from wenchang_s3.options import S3Options

if TYPE_CHECKING:
    from wenchang.storage.contract import Storage
    from wenchang.storage.locations import StorageLocation

__all__ = ["S3"]


def _open(location: StorageLocation) -> Storage:
    """Open a location of the scheme `s3`."""
    from wenchang_s3.opening import open_location

    return open_location(location)


S3: Final = BackendDescriptor(
    name="s3",
    contract=STORAGE_CONTRACT,
    summary="a bucket of Amazon S3 or of a compatible server",
    options=S3Options,
    open=_open,
    hooks="wenchang_s3.hooks:hooks",
)
