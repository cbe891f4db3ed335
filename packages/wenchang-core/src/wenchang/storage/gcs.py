"""`GcsStorage`: a bucket of Google Cloud Storage. It comes with the extra `gcs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wenchang.storage._aliases import lazy_alias

if TYPE_CHECKING:
    from wenchang_gcs import GcsStorage

__all__ = ["GcsStorage"]

__getattr__ = lazy_alias(__name__, "wenchang_gcs", "gcs", __all__)
