"""Hooks for the conformance suite: other processes, lost answers, blobs of strangers.

Imported by `wenchang check` and by tests only; needs `wenchang-conformance`. Each case works under a
prefix of its own in the location's container, and removes what it left there.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from azure.core import exceptions
from azure.core.exceptions import AzureError, HttpResponseError

from wenchang.errors import BackendUnavailableError
from wenchang.storage import PreconditionFailedError
from wenchang.storage.outcomes import Refused, Rejected, new_write_id
from wenchang_azure.errors import attempt_of
from wenchang_azure.marks import FORMAT, METADATA_NAME, decode_marks, encode_marks
from wenchang_azure.names import encode_name
from wenchang_azure.opening import client_maker, open_location
from wenchang_azure.options import AzureOptions
from wenchang_conformance.faults import azure_error, matching
from wenchang_conformance.hooks import FaultKind, Recipe, StorageHooks
from wenchang_conformance.http_faults import HttpFaults

if TYPE_CHECKING:
    from azure.storage.blob import ContainerClient

    from wenchang.storage.contract import Storage
    from wenchang.storage.locations import StorageLocation
    from wenchang_conformance.hooks import FaultInjector

__all__ = ["ContainerBackdoor", "hooks", "http_faults", "sdk_errors"]

_DEADLINE: Final = 4.5
_ATTEMPT: Final = 1.5
_REMOVERS: Final = 8


@contextmanager
def hooks(location: StorageLocation, namespace: str) -> Iterator[StorageHooks]:
    """Make the hooks of one fresh prefix below the location; see `HooksFactory`."""
    mine = replace(location, address=f"{location.address.removesuffix('/')}/{namespace}")
    opened: list[Any] = []

    def keep(one: Any) -> Any:
        opened.append(one)
        return one

    options = location.options_as(AzureOptions)
    account, _, rest = unquote(location.address).partition("/")
    container, _, _ = rest.partition("/")
    client = client_maker(account, container, options)()
    backdoor = ContainerBackdoor(client=client, root=_root(mine))
    insecure = options.endpoint is not None and options.endpoint.startswith("http://")
    try:
        yield StorageHooks(
            open=lambda: keep(open_location(mine)),
            reopen=lambda: keep(open_location(mine)),
            spawn=Recipe(target="wenchang_azure.opening:open_location", args=(mine,)),
            # The proxy speaks no TLS, so only an emulator can be put behind it.
            faults=(lambda: keep(http_faults(mine))) if insecure else None,
            backdoor=backdoor,
            deadline=_DEADLINE,
            secrets=_secrets(account, container, options),
            wrong_options=_wrong_options(mine),
            import_module="wenchang_azure",
            sdk_modules=("azure", "requests"),
            sdk_errors=sdk_errors,
        )
    finally:
        for one in opened:
            one.close()
        backdoor.remove()
        client.close()


def http_faults(
    location: StorageLocation, *, deadline: float = _DEADLINE, attempt_timeout: float = _ATTEMPT
) -> FaultInjector:
    """Return a fault injector in front of the location's endpoint, which is one without TLS."""
    parts = urlsplit(str(location.options["endpoint"]))
    bounded = {"deadline": deadline, "attempt_timeout": attempt_timeout}

    def open_at(url: str) -> Storage:
        return open_location(_with_options(location, endpoint=url + parts.path, **bounded))

    return HttpFaults(
        (parts.hostname or "", parts.port or 80),
        open_at=open_at,
        is_write=matching("PUT", "DELETE"),
        coded={
            FaultKind.BUSY_CONFLICT: azure_error(409, "PendingCopyOperation"),
            FaultKind.BUSY_RATE: azure_error(429, "TooManyRequests"),
            FaultKind.BUSY_SERVER: azure_error(503, "ServerBusy"),
            FaultKind.REJECTED: azure_error(403, "AuthorizationFailure"),
        },
        version_header="etag",
    )


def sdk_errors() -> Iterator[tuple[BaseException, BaseException]]:
    """Yield one error of each class of the SDK, and what a call makes of it."""
    for error in _every_error():
        answer = attempt_of(error)
        if isinstance(answer, Rejected):
            yield error, answer.error
        elif isinstance(answer, Refused):
            yield error, PreconditionFailedError("key")
        else:
            ours = BackendUnavailableError("unavailable")
            ours.__cause__ = answer.error
            yield error, ours


def _every_error() -> Iterator[Exception]:
    """Make one error of each class that the SDK defines."""
    for name in sorted(exceptions.__all__):
        one = getattr(exceptions, name)
        if not (isinstance(one, type) and issubclass(one, Exception)):
            continue
        try:
            yield one("text of the SDK")
        except (TypeError, AttributeError):
            # The few that want a response to speak of are judged as their base class is.
            error = one.__new__(one)
            error.args = ("text of the SDK",)
            error.__dict__.update(status_code=None, response=None)
            yield error


@dataclass(frozen=True, slots=True)
class ContainerBackdoor:
    """The container as its console shows it."""

    client: ContainerClient
    root: str

    def put_raw(self, key: str, body: bytes) -> None:
        """Upload a blob without any metadata."""
        self.client.upload_blob(self._name(key), body, overwrite=True)

    def corrupt(self, key: str) -> None:
        """Set the packed value to what is no Base64, without a new body."""
        blob = self.client.get_blob_client(self._name(key))
        blob.set_blob_metadata({METADATA_NAME: "?" * 20})

    def put_future(self, key: str, body: bytes) -> None:
        """Upload a blob that says that only a later release may replace it."""
        self.client.upload_blob(
            self._name(key), body, overwrite=True, metadata={METADATA_NAME: future_value(body)}
        )

    def list_raw(self) -> Sequence[str]:
        """Return the names of all blobs below the prefix, without it."""
        names = self.client.list_blobs(name_starts_with=self.root)
        return [blob.name.removeprefix(self.root) for blob in names]

    def remove(self) -> None:
        """Delete every blob below the prefix; a blob of a late request may be gone again."""

        def delete(name: str) -> None:
            with contextlib.suppress(HttpResponseError):
                self.client.delete_blob(name)

        with (
            contextlib.suppress(AzureError),
            ThreadPoolExecutor(_REMOVERS) as pool,
        ):
            list(pool.map(delete, self.client.list_blob_names(name_starts_with=self.root)))

    def _name(self, key: str) -> str:
        return self.root + encode_name(key)


def future_value(body: bytes, *, extra: bytes = b"", min_writer: int = FORMAT + 1) -> str:
    """Return the packed value of a later format."""
    value = encode_marks(body, {"n": "1"}, new_write_id(), extra=extra)
    packed = base64.b64decode(value)
    later = base64.b64encode(bytes((FORMAT + 1, min_writer)) + packed[2:]).decode("ascii")
    if decode_marks(later).min_writer != min_writer:
        raise AssertionError
    return later


def _root(location: StorageLocation) -> str:
    _, _, rest = unquote(location.address).partition("/")
    _, _, prefix = rest.partition("/")
    return f"{encode_name(prefix)}/"


def _with_options(location: StorageLocation, **options: Any) -> StorageLocation:
    return replace(location, options={**location.options, **options})


def _secrets(account: str, container: str, options: AzureOptions) -> tuple[str, ...]:
    endpoint = () if options.endpoint is None else (urlsplit(options.endpoint).netloc,)
    return (f"{account}/{container}", f"/{container}", *endpoint)


def _wrong_options(location: StorageLocation) -> Mapping[str, Callable[[], object]]:
    wrong: Mapping[str, Any] = {
        "endpoint": "no url",
        "api_version": "yesterday",
        "connection_string_env": "AccountKey=abc==",
        "account_key_env": "not a name",
        "sas_token_env": "",
        "deadline": -1,
        "attempt_timeout": 0,
        "concurrency": 0,
        "no_such_option": 1,
    }
    return {
        name: partial(open_location, _with_options(location, **{name: value}))
        for name, value in wrong.items()
    }
