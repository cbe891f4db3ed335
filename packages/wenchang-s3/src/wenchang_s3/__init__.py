"""Amazon S3 and S3-compatible servers behind the wenchang storage contract.

boto3 is imported when `S3Storage` or `open_location` is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wenchang_s3.options import S3Options

if TYPE_CHECKING:
    from wenchang_s3.opening import open_location
    from wenchang_s3.proof import EndpointProof
    from wenchang_s3.storage import S3Storage

__all__ = ["EndpointProof", "S3Options", "S3Storage", "__version__", "open_location"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import what needs boto3 at its first use."""
    if name == "S3Storage":
        from wenchang_s3.storage import S3Storage

        return S3Storage
    if name == "EndpointProof":
        from wenchang_s3.proof import EndpointProof

        return EndpointProof
    if name == "open_location":
        from wenchang_s3.opening import open_location

        return open_location
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
