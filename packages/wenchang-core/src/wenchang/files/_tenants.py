"""Where the files of a tenant lie in a storage: no two tenants or namespaces ever meet."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from wenchang.files.errors import NoTenantError

__all__ = ["STORE_PREFIX", "place_of", "tree_base"]

STORE_PREFIX: Final = "@store"
"""What the keys of all these files begin with. No scope begins with `@`, so no memory lies there."""
_MAX_SEGMENT_BYTES: Final = 60
_END: Final = "="
"""Ends the place of a tree. No encoded segment is this, so no tree ever lies within another."""


def tree_base(tenant: str | None, namespace: Sequence[str] = ()) -> str:
    """Return the key prefix of a tenant's tree; `NoTenantError` where there is no tenant.

    Segments are percent-encoded, those of more than 60 encoded bytes replaced by a hash, so that
    different ones never meet. ValueError for an empty segment of the namespace, TypeError for a
    namespace that is one text.
    """
    return "/".join([STORE_PREFIX, place_of(tenant, namespace), _END])


def place_of(tenant: str | None, namespace: Sequence[str]) -> str:
    """Return tenant and namespace as they stand in keys and locks; raises as `tree_base` does."""
    if isinstance(namespace, str):
        msg = "namespace must be a sequence of segments, not one str"
        raise TypeError(msg)
    if tenant is None or tenant == "":
        raise NoTenantError
    return "/".join(map(_encoded, (tenant, *namespace)))


def _encoded(segment: str) -> str:
    if not isinstance(segment, str) or not segment:
        msg = "a tenant and each segment of a namespace must be a str that is not empty"
        raise ValueError(msg)
    try:
        encoded = quote(segment, safe="").replace(".", "%2E")
    except UnicodeEncodeError:
        msg = "a tenant or a segment of a namespace holds an unpaired surrogate"
        raise ValueError(msg) from None
    if len(encoded) <= _MAX_SEGMENT_BYTES:
        return encoded
    # "%s" is no percent-encoding, so nothing encoded looks like this.
    return "%sha256-" + hashlib.sha256(segment.encode()).hexdigest()[:48]
