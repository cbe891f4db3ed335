"""Opens a location `gs://bucket/prefix`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from wenchang.storage import StorageConfigurationError
from wenchang_gcs.clients import make_bucket
from wenchang_gcs.options import GcsOptions
from wenchang_gcs.storage import GcsStorage

if TYPE_CHECKING:
    from wenchang.storage.locations import StorageLocation

__all__ = ["open_location", "split_address"]

_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")


def open_location(location: StorageLocation) -> GcsStorage:
    """Open a bucket by its location. Makes no network call.

    Raises `StorageConfigurationError` for a wrong address or option.
    """
    options = location.options_as(GcsOptions)
    bucket, prefix = split_address(location.address)
    return GcsStorage(
        make_bucket(bucket, options),
        prefix=prefix,
        deadline=options.deadline,
        attempt_timeout=options.attempt_timeout,
        concurrency=options.concurrency,
    )


def split_address(address: str) -> tuple[str, str]:
    """Return bucket and prefix of a location's address.

    Raises `StorageConfigurationError` where it is not of the form `bucket` or `bucket/prefix`.
    """
    try:
        bucket, _, prefix = unquote(address, errors="strict").partition("/")
    except UnicodeDecodeError:
        bucket, prefix = "", ""
    if not _BUCKET.fullmatch(bucket):
        msg = "a location of this backend is gs://bucket or gs://bucket/prefix, percent-encoded"
        raise StorageConfigurationError(msg)
    return bucket, prefix.removesuffix("/")
