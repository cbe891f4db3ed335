"""The sidecar of an object: what is in it, and how hand-made changes show in the version.

A sidecar is JSON: `format`, `min_writer`, `version`, `metadata`, `metadata_digest`, `digest` (SHA-256
of the body), `size`, `mtime_ns`, `inode` (of the body when it was written), `write_id` and `lineage`.
Fields that this version does not know are kept when the object is replaced.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from wenchang.storage.errors import StorageError, StorageRejectedError
from wenchang.storage.keys import UNREADABLE_METADATA, check_metadata
from wenchang.storage.outcomes import LINEAGE_LIMIT, UNKNOWN_ID, Lineage, new_write_id

__all__ = [
    "MAX_SIDECAR_BYTES",
    "Sidecar",
    "UnreadableSidecar",
    "check_writable",
    "decode_sidecar",
    "encode_sidecar",
    "metadata_and_version",
    "new_sidecar",
]

_FORMAT: Final = 1
"""The format that this module writes, and the newest that it may replace."""
MAX_SIDECAR_BYTES: Final = 1 << 20
_KNOWN: Final = frozenset(
    (
        "format",
        "min_writer",
        "version",
        "metadata",
        "metadata_digest",
        "digest",
        "size",
        "mtime_ns",
        "inode",
        "write_id",
        "lineage",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sidecar:
    """A decoded sidecar.

    `digest` and what goes with it are None in a sidecar that holds only a version and metadata; such
    an object keeps its version whatever its body is. `extra` holds the fields not known here.
    """

    min_writer: int = _FORMAT
    version: str
    metadata: Mapping[str, str]
    metadata_digest: str | None = None
    digest: str | None = None
    size: int | None = None
    mtime_ns: int | None = None
    inode: int | None = None
    write_id: str | None = None
    lineage: Lineage = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    def describes(self, found: os.stat_result) -> bool:
        """Tell whether size, time and inode prove that this body is the one that was written."""
        return (
            self.digest is not None
            and found.st_size == self.size
            and found.st_mtime_ns == self.mtime_ns
            and found.st_ino == self.inode
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableSidecar:
    """A sidecar that cannot be decoded; `digest` is that of its bytes."""

    digest: str


def new_sidecar(
    version: str,
    metadata: Mapping[str, str],
    digest: str,
    body: os.stat_result,
    *,
    replaced: Sidecar | None,
    replaced_version: str | None,
) -> Sidecar:
    """Return the sidecar of a new write; `version` is one that the key never had.

    `replaced` is the sidecar of the object that is replaced, whose unknown fields are kept.
    `replaced_version` is its version in a conditional replace, else None: only that has a lineage.
    """
    lineage: Lineage = ()
    if replaced_version is not None:
        write_id = (replaced.write_id if replaced else None) or UNKNOWN_ID
        older = replaced.lineage if replaced and replaced.version == replaced_version else ()
        lineage = ((write_id, replaced_version), *older)[:LINEAGE_LIMIT]
    return Sidecar(
        version=version,
        metadata=dict(metadata),
        metadata_digest=_metadata_digest(metadata),
        digest=digest,
        size=body.st_size,
        mtime_ns=body.st_mtime_ns,
        inode=body.st_ino,
        write_id=new_write_id(),
        lineage=lineage,
        extra=dict(replaced.extra) if replaced else {},
    )


def encode_sidecar(sidecar: Sidecar) -> bytes:
    """Return the bytes of a sidecar of our own format, readable by people too."""
    fields = {
        "format": _FORMAT,
        "min_writer": _FORMAT,
        "version": sidecar.version,
        "metadata": dict(sidecar.metadata),
        "metadata_digest": sidecar.metadata_digest,
        "digest": sidecar.digest,
        "size": sidecar.size,
        "mtime_ns": sidecar.mtime_ns,
        "inode": sidecar.inode,
        "write_id": sidecar.write_id,
        "lineage": [list(pair) for pair in sidecar.lineage],
        **sidecar.extra,
    }
    text = json.dumps(fields, ensure_ascii=False, indent=2) + "\n"
    # Unknown fields are kept as they are, also a lone surrogate that JSON can escape.
    return text.encode("utf-8", "surrogatepass")


def decode_sidecar(raw: bytes) -> Sidecar | UnreadableSidecar:
    """Return what the bytes of a sidecar say; never raises."""
    try:
        return _from_raw(raw)
    except (ValueError, TypeError, KeyError, RecursionError, StorageError):
        return UnreadableSidecar(digest=hashlib.sha256(raw).hexdigest())


def _from_raw(raw: bytes) -> Sidecar:
    """Decode and check; raises one of many errors."""
    if len(raw) > MAX_SIDECAR_BYTES:
        msg = "too long"
        raise ValueError(msg)
    fields = json.loads(raw.decode("utf-8", "surrogatepass"))
    if not isinstance(fields, dict):
        msg = "not an object"
        raise TypeError(msg)
    version = fields["version"]
    if not isinstance(version, str) or not 0 < len(version) <= 256:
        msg = "version"
        raise ValueError(msg)
    version.encode()
    body = [fields.get(name) for name in ("size", "mtime_ns", "inode")]
    if not all(value is None or type(value) is int for value in body):
        msg = "size, mtime_ns or inode"
        raise TypeError(msg)
    size, mtime_ns, inode = body
    min_writer = fields.get("min_writer", _FORMAT)
    if type(min_writer) is not int:
        msg = "min_writer"
        raise TypeError(msg)
    return Sidecar(
        min_writer=min_writer,
        version=version,
        metadata=check_metadata(fields["metadata"]),
        metadata_digest=_text_or_none(fields.get("metadata_digest")),
        digest=_text_or_none(fields.get("digest")),
        size=size,
        mtime_ns=mtime_ns,
        inode=inode,
        write_id=_text_or_none(fields.get("write_id")),
        lineage=_lineage(fields.get("lineage", [])),
        extra={name: value for name, value in fields.items() if name not in _KNOWN},
    )


def _text_or_none(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    msg = "not a text"
    raise TypeError(msg)


def _lineage(value: Any) -> Lineage:
    pairs = [(write_id, version) for write_id, version in value]
    if not all(isinstance(part, str) for pair in pairs for part in pair):
        msg = "lineage"
        raise TypeError(msg)
    return tuple(pairs[:LINEAGE_LIMIT])


def check_writable(sidecar: Sidecar | UnreadableSidecar | None) -> None:
    """Refuse to change an object of a newer format with `StorageRejectedError`."""
    if isinstance(sidecar, Sidecar) and sidecar.min_writer > _FORMAT:
        raise StorageRejectedError(
            "unsupported",
            "the object was written in a newer format; upgrade wenchang-core to change it",
        )


def metadata_and_version(
    key: str, sidecar: Sidecar | UnreadableSidecar | None, digest: str
) -> tuple[dict[str, str], str]:
    """Return the metadata and version of a body with this digest beside this sidecar.

    What was changed by hand since the last write gets a version of its own that depends on nothing
    but the content, so that every reader finds the same one without writing anything.
    """
    if sidecar is None:
        return {}, _derived("hand", key, digest)
    if isinstance(sidecar, UnreadableSidecar):
        return {UNREADABLE_METADATA: "sidecar"}, _derived("unread", key, sidecar.digest, digest)
    metadata = dict(sidecar.metadata)
    metadata_digest = _metadata_digest(metadata)
    if (sidecar.digest in (None, digest)) and sidecar.metadata_digest in (None, metadata_digest):
        return metadata, sidecar.version
    return metadata, _derived("edit", key, sidecar.version, digest, metadata_digest)


def _derived(kind: str, *parts: str) -> str:
    """Return a version made of `parts`, which hold no NUL."""
    text = "\0".join(parts)
    return f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def _metadata_digest(metadata: Mapping[str, str]) -> str:
    """Return the SHA-256 of the entries, whatever their order."""
    entries = json.dumps(sorted(metadata.items()), ensure_ascii=False)
    return hashlib.sha256(entries.encode()).hexdigest()
