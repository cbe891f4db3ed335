"""From a location to a storage: `s3://bucket/prefix?region=…`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING
from urllib.parse import unquote

from wenchang.storage import StorageConfigurationError
from wenchang_s3.options import S3Options
from wenchang_s3.storage import S3Storage

if TYPE_CHECKING:
    from wenchang.storage.locations import StorageLocation

__all__ = ["open_location", "split_address"]


def open_location(location: StorageLocation) -> S3Storage:
    """Open a location; nothing is sent. Raises `StorageConfigurationError` for a wrong one."""
    bucket, prefix = split_address(location.address)
    options = location.options_as(S3Options)
    return S3Storage(bucket, prefix=prefix, **asdict(options))


def split_address(address: str) -> tuple[str, str]:
    """Return bucket and prefix of `bucket/prefix`, percent-decoded; one slash at the end is ignored."""
    bucket, _, prefix = address.partition("/")
    if not bucket or "@" in bucket:
        raise StorageConfigurationError(
            "an S3 URL looks like s3://bucket/prefix; credentials come from the AWS configuration and "
            "never stand in it"
        )
    try:
        decoded = unquote(prefix.removesuffix("/"), errors="strict")
    except UnicodeDecodeError:
        raise StorageConfigurationError(
            "the prefix in an S3 URL must be percent-encoded UTF-8; write '%' as %25"
        ) from None
    return unquote(bucket), decoded
