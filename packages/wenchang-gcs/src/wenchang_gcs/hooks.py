"""Hooks for the conformance suite: other processes, lost answers, objects of strangers.

Imported by `wenchang check` and by tests only; needs `wenchang-conformance`. Each case gets a prefix of
its own in the location's bucket, which must exist, and which is emptied at the end of the case.
Answers can be lost on purpose only where the endpoint is plain HTTP: a proxy stands in front of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

import requests
import urllib3
from google.api_core import exceptions as api
from google.auth import exceptions as auth
from google.cloud.storage import exceptions as media

from wenchang.errors import BackendUnavailableError
from wenchang.storage import PreconditionFailedError
from wenchang.storage.locations import StorageLocation
from wenchang.storage.outcomes import Ambiguous, Busy, NotSent, Rejected
from wenchang_conformance.faults import gcs_error, matching
from wenchang_conformance.hooks import FaultKind, HookUnavailable, Recipe, StorageHooks
from wenchang_conformance.http_faults import HttpFaults
from wenchang_gcs.clients import make_bucket
from wenchang_gcs.errors import classify
from wenchang_gcs.opening import open_location, split_address
from wenchang_gcs.options import GcsOptions

if TYPE_CHECKING:
    from google.cloud.storage import Blob, Bucket

    from wenchang.storage.contract import Storage
    from wenchang_conformance.faults import Fault
    from wenchang_conformance.hooks import FaultInjector

__all__ = ["GcsBackdoor", "answer_error", "every_sdk_error", "hooks", "sdk_errors"]

_DEADLINE: Final = 3.0
_ATTEMPT: Final = 1.0
# The service sends its code for "busy" under 429 or 403. That the code and not the status decides is
# asked with the others.
_CODED: Final[Mapping[FaultKind, Fault]] = {
    FaultKind.BUSY_CONFLICT: gcs_error(409, "rateLimitExceeded"),
    FaultKind.BUSY_RATE: gcs_error(429, "rateLimitExceeded"),
    FaultKind.BUSY_SERVER: gcs_error(503, "rateLimitExceeded"),
    FaultKind.REJECTED: gcs_error(403, "forbidden"),
}


@contextmanager
def hooks(location: StorageLocation, namespace: str) -> Iterator[StorageHooks]:
    """Make the hooks of one fresh, empty prefix below the location's; see `HooksFactory`."""
    bucket, prefix = split_address(location.address)
    root = "/".join(filter(None, (prefix, namespace)))
    mine = replace(location, address=f"{bucket}/{quote(root)}")
    backdoor = GcsBackdoor(make_bucket(bucket, location.options_as(GcsOptions)), root + "/")
    opened: list[Any] = []

    def open_one() -> Storage:
        storage = open_location(mine)
        opened.append(storage)
        return storage

    try:
        yield StorageHooks(
            open=open_one,
            reopen=open_one,
            spawn=Recipe(target="wenchang_gcs.opening:open_location", args=(mine,)),
            faults=partial(_faults, mine, opened),
            backdoor=backdoor,
            deadline=_DEADLINE,
            secrets=_secrets(location, bucket),
            wrong_options=_wrong_options(mine),
            import_module="wenchang_gcs",
            sdk_modules=("google.auth", "google.cloud.storage", "requests", "urllib3"),
            sdk_errors=sdk_errors,
        )
    finally:
        for one in opened:
            one.close()
        backdoor.remove_all()
        backdoor.bucket.client.close()


def _with_options(location: StorageLocation, **options: Any) -> StorageLocation:
    return replace(location, options={**location.options, **options})


def _faults(location: StorageLocation, opened: list[Any]) -> FaultInjector:
    """Put a proxy in front of the endpoint."""
    parts = urlsplit(str(location.options.get("endpoint_url", "")))
    if parts.scheme != "http" or parts.hostname is None:
        msg = "faults need an option endpoint_url of plain HTTP, to stand in front of"
        raise HookUnavailable(msg)

    def open_at(url: str) -> Storage:
        storage = open_location(
            _with_options(location, endpoint_url=url, deadline=_DEADLINE, attempt_timeout=_ATTEMPT)
        )
        opened.append(storage)
        return storage

    return HttpFaults(
        (parts.hostname, parts.port or 80),
        open_at=open_at,
        is_write=matching("POST", "DELETE"),
        coded=_CODED,
    )


def _secrets(location: StorageLocation, bucket: str) -> tuple[str, ...]:
    """Return what no text may hold: bucket and host."""
    host = urlsplit(str(location.options.get("endpoint_url", ""))).netloc
    return tuple(filter(None, (bucket, host)))


def _wrong_options(location: StorageLocation) -> Mapping[str, Callable[[], object]]:
    """Return ways to open the backend wrongly, by the option that is wrong."""
    wrong: Mapping[str, Any] = {
        "endpoint_url": "nowhere",
        "deadline": -1,
        "attempt_timeout": 0,
        "concurrency": 0,
        "no_such_option": 1,
    }
    ways: dict[str, Callable[[], object]] = {
        name: partial(open_location, _with_options(location, **{name: value}))
        for name, value in wrong.items()
    }
    ways["prefix"] = partial(
        open_location, replace(location, address=location.address + "/" + "p" * 200)
    )
    return ways


@dataclass(frozen=True, slots=True)
class GcsBackdoor:
    """The bucket as its console sees it."""

    bucket: Bucket
    root: str

    def put_raw(self, key: str, body: bytes) -> None:
        """Upload an object as a stranger would."""
        self._blob(key).upload_from_string(body, content_type="text/plain")

    def patch(self, key: str, metadata: Mapping[str, str]) -> None:
        """Edit an object's metadata in place."""
        blob = self._blob(key)
        blob.reload()
        blob.metadata = {**(blob.metadata or {}), **metadata}
        blob.patch()

    def corrupt(self, key: str) -> None:
        """Damage the write id."""
        self.patch(key, {"wenchang-id": "damaged"})

    def put_future(self, key: str, body: bytes) -> None:
        """Store an object of a later format, which only later releases may write."""
        blob = self._blob(key)
        blob.metadata = {
            "wenchang-id": "0123456789abcdef0123",
            "wenchang-format": "99",
            "wenchang-min-writer": "99",
            "wenchang-later": "something",
        }
        blob.upload_from_string(body, content_type="text/plain")

    def list_raw(self) -> Sequence[str]:
        """Return the names of everything below the prefix."""
        blobs = self.bucket.client.list_blobs(self.bucket, prefix=self.root)
        return [blob.name[len(self.root) :] for blob in blobs]

    def remove_all(self) -> None:
        """Empty the prefix."""
        for key in self.list_raw():
            with suppress(api.NotFound):
                self._blob(key).delete()

    def _blob(self, key: str) -> Blob:
        return self.bucket.blob(self.root + key)


# --- the SDK's errors ----------------------------------------------------------------------------


def sdk_errors() -> Iterable[tuple[BaseException, BaseException]]:
    """Yield one error of each kind of the SDK, and what a call raises for it in the end."""
    for error in every_sdk_error():
        attempt = classify(error)
        if isinstance(attempt, Rejected):
            yield error, attempt.error
        elif isinstance(attempt, Ambiguous | Busy | NotSent):
            ours = BackendUnavailableError("unavailable")
            ours.__cause__ = attempt.error
            yield error, ours
        else:
            yield error, PreconditionFailedError("key")


def every_sdk_error() -> Iterator[Exception]:
    """Yield an instance of each exception class of the client and of what it sends with."""
    for module in (api, auth, media, requests.exceptions, urllib3.exceptions):
        for _, kind in sorted(inspect.getmembers(module, inspect.isclass)):
            if issubclass(kind, Exception) and not issubclass(kind, Warning):
                yield _instance(kind)
    reasons = ("", "conditionNotMet", "notFound", "rateLimitExceeded", "retentionPolicyNotMet")
    statuses = (304, 400, 401, 403, 404, 405, 408, 409, 412, 413, 416, 429, 500, 501, 502, 503, 504)
    for reason in reasons:
        for status in statuses:
            yield answer_error(status, reason)


def _instance(kind: type[Exception]) -> Exception:
    """Make an error of any class, whatever its constructor wants."""
    if issubclass(kind, media.InvalidResponse | media.DataCorruption):
        return kind(requests.Response(), "a secret text")
    error = kind.__new__(kind)
    with suppress(TypeError):
        error.__init__("a secret text")  # type: ignore[misc] # once, right after __new__
        return error
    Exception.__init__(error, "a secret text")
    return error


def answer_error(
    status: int, reason: str, message: str = "a secret text", **headers: str
) -> api.GoogleAPICallError:
    """Return what the client raises for the service's answer to a request that is no media."""
    response = requests.Response()
    response.status_code = status
    response.headers.update({name.replace("_", "-"): value for name, value in headers.items()})
    response.request = requests.Request("GET", "http://example.test/secret").prepare()
    if reason:
        told = f'{{"error": {{"message": "{message}", "errors": [{{"reason": "{reason}"}}]}}}}'
        response._content = told.encode()  # noqa: SLF001 - a response is not made otherwise
    error: api.GoogleAPICallError = api.from_http_response(response)  # type: ignore[no-untyped-call] # the SDK has no types
    return error
