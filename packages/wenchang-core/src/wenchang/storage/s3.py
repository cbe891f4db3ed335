"""`S3Storage`: a bucket of Amazon S3 or of a compatible server. It comes with the extra `s3`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wenchang.storage._aliases import lazy_alias

if TYPE_CHECKING:
    from wenchang_s3 import S3Storage

__all__ = ["S3Storage"]

__getattr__ = lazy_alias(__name__, "wenchang_s3", "s3", __all__)
