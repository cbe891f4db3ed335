"""Test suites for what you build on wenchang; they come with the extra `testing`.

`ResolverConformance` tries an identity resolver, `TransportConformance` a transport client,
`StorageConformance` a storage backend, `FileBackendConformance` a file backend for harnesses. Subclass one with a `Test` prefix and give its fixtures.
"""

from __future__ import annotations

import sys

try:
    from wenchang_conformance.file_backend import FileBackendConformance
    from wenchang_conformance.resolver import ResolverConformance
    from wenchang_conformance.suite import StorageConformance
    from wenchang_conformance.transport import TransportConformance
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in {"wenchang_conformance", "pytest", "hypothesis"}:
        raise
    msg = (
        "wenchang.testing needs the extra 'testing'; install it with: "
        f'{sys.executable} -m pip install "wenchang-core[testing]"'
    )
    raise ImportError(msg) from error

__all__ = [
    "FileBackendConformance",
    "ResolverConformance",
    "StorageConformance",
    "TransportConformance",
]
