"""The storage contract, and what a backend and its users need to build on it.

A third-party backend imports nothing but this package: the protocol and its values, the checks of
keys and metadata, the errors, the envelope codec for stores without metadata of their own, and the
settling of lost answers.
"""

from __future__ import annotations

from wenchang.errors import BackendUnavailableError
from wenchang.storage.contract import (
    STORAGE_CONTRACT,
    ListedObject,
    Storage,
    StoredObject,
    VersionLister,
)
from wenchang.storage.descriptor import BackendDescriptor
from wenchang.storage.errors import (
    UNREAD,
    BackendBroken,
    BackendConflict,
    BackendIncompatible,
    BackendNotInstalled,
    DiscoveryError,
    InvalidStorageKeyError,
    InvalidStorageMetadataError,
    MetadataTooLargeError,
    ObjectTooLargeError,
    PreconditionFailedError,
    StorageConfigurationError,
    StorageError,
    StorageRejectedError,
    UnknownBackend,
)
from wenchang.storage.locations import StorageLocation
from wenchang.storage.registry import BackendInfo, find_backend, list_backends, open_storage

__all__ = [
    "STORAGE_CONTRACT",
    "UNREAD",
    "BackendBroken",
    "BackendConflict",
    "BackendDescriptor",
    "BackendIncompatible",
    "BackendInfo",
    "BackendNotInstalled",
    "BackendUnavailableError",
    "DiscoveryError",
    "InvalidStorageKeyError",
    "InvalidStorageMetadataError",
    "ListedObject",
    "MetadataTooLargeError",
    "ObjectTooLargeError",
    "PreconditionFailedError",
    "Storage",
    "StorageConfigurationError",
    "StorageError",
    "StorageLocation",
    "StorageRejectedError",
    "StoredObject",
    "UnknownBackend",
    "VersionLister",
    "find_backend",
    "list_backends",
    "open_storage",
]
