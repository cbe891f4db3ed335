"""Hooks for the conformance suite: other processes, lost answers, objects of strangers.

Imported by `wenchang check` and by tests only; needs `wenchang-conformance`. Each case gets a prefix of
its own in the location's bucket, which is emptied at its end. Answers can be lost on purpose only
where the endpoint is plain HTTP: a proxy stands in front of it.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

import botocore.exceptions as sdk
from botocore.exceptions import ClientError

from wenchang.errors import BackendUnavailableError
from wenchang.storage import PreconditionFailedError
from wenchang.storage.locations import StorageLocation
from wenchang.storage.outcomes import Ambiguous, Busy, NotSent, Rejected
from wenchang_conformance.faults import matching, s3_error
from wenchang_conformance.hooks import FaultKind, HookUnavailable, Recipe, StorageHooks
from wenchang_conformance.http_faults import HttpFaults
from wenchang_s3.clients import OwnClient, is_amazon
from wenchang_s3.errors import classify
from wenchang_s3.opening import open_location, split_address
from wenchang_s3.options import S3Options
from wenchang_s3.storage import S3Storage

if TYPE_CHECKING:
    from wenchang.storage.contract import Storage
    from wenchang_conformance.faults import Fault
    from wenchang_conformance.hooks import FaultInjector

__all__ = ["S3Backdoor", "hooks", "sdk_errors"]

_DEADLINE: Final = 4.0
_ATTEMPT: Final = 1.0
_CODED: Final[Mapping[FaultKind, Fault]] = {
    FaultKind.BUSY_CONFLICT: s3_error(409, "ConditionalRequestConflict"),
    FaultKind.BUSY_RATE: s3_error(429, "TooManyRequests"),
    FaultKind.BUSY_SERVER: s3_error(503, "SlowDown"),
    FaultKind.REJECTED: s3_error(403, "AccessDenied"),
}


@contextmanager
def hooks(location: StorageLocation, namespace: str) -> Iterator[StorageHooks]:
    """Make the hooks of one fresh, empty prefix below the location's; see `HooksFactory`."""
    bucket, prefix = split_address(location.address)
    mine = replace(location, address="/".join(filter(None, (bucket, quote(prefix), namespace))))
    client = OwnClient(location.options_as(S3Options)).get()
    amazon = is_amazon(client)
    backdoor = S3Backdoor(client, bucket, "/".join(filter(None, (prefix, namespace))) + "/")
    opened: list[S3Storage] = []

    def open_one() -> Storage:
        storage = open_location(mine)
        opened.append(storage)
        return storage

    try:
        yield StorageHooks(
            open=open_one,
            reopen=open_one,
            spawn=Recipe(target="wenchang_s3.opening:open_location", args=(mine,)),
            faults=partial(_faults, mine),
            backdoor=backdoor,
            deadline=_DEADLINE,
            secrets=_secrets(client, bucket),
            proves_endpoint=not amazon,
            wrong_options=_wrong_options(mine),
            import_module="wenchang_s3",
            sdk_modules=("boto3", "botocore"),
            sdk_errors=sdk_errors,
        )
    finally:
        for storage in opened:
            storage.close()
        backdoor.remove_all()
        client.close()


def _with_options(location: StorageLocation, **options: Any) -> StorageLocation:
    return replace(location, options={**location.options, **options})


def _faults(location: StorageLocation) -> FaultInjector:
    """Put a proxy in front of the endpoint."""
    parts = urlsplit(str(location.options.get("endpoint_url", "")))
    if parts.scheme != "http" or parts.hostname is None:
        raise HookUnavailable("faults need an endpoint_url of plain HTTP, to stand in front of")

    def open_at(url: str) -> Storage:
        bounded = _with_options(
            location, endpoint_url=url, deadline=_DEADLINE, attempt_timeout=_ATTEMPT
        )
        return open_location(bounded)

    return HttpFaults(
        (parts.hostname, parts.port or 80),
        open_at=open_at,
        is_write=matching("PUT", "DELETE", "POST"),
        coded=_CODED,
        version_header="etag",
    )


def _secrets(client: Any, bucket: str) -> tuple[str, ...]:
    """Return what no text may hold: bucket, host and secret key."""
    credentials = client._request_signer._credentials  # noqa: SLF001 - the SDK gives them away nowhere else
    secret = "" if credentials is None else credentials.get_frozen_credentials().secret_key
    host = urlsplit(client.meta.endpoint_url).netloc
    return tuple(filter(None, (bucket, host, secret)))


def _wrong_options(location: StorageLocation) -> Mapping[str, Callable[[], object]]:
    wrong: Mapping[str, Any] = {
        "region": "no region",
        "endpoint_url": "not-a-url",
        "profile": "no-such-profile-anywhere",
        "addressing_style": "sideways",
        "deadline": -1,
        "attempt_timeout": 0,
        "concurrency": 0,
        "no_such_option": 1,
    }
    opened: dict[str, Callable[[], object]] = {
        name: partial(open_location, _with_options(location, **{name: value}))
        for name, value in wrong.items()
    }
    too_long = location.address + "/" + "p" * 200
    opened["prefix"] = partial(open_location, replace(location, address=too_long))
    return opened


@dataclass(frozen=True, slots=True)
class S3Backdoor:
    """The bucket as its console sees it."""

    client: Any
    bucket: str
    root: str

    def put_raw(self, key: str, body: bytes) -> None:
        """Upload an object as a stranger would."""
        self.client.put_object(Bucket=self.bucket, Key=self.root + key, Body=body)

    def get_raw(self, key: str) -> bytes:
        """Return all bytes of an object."""
        answer = self.client.get_object(Bucket=self.bucket, Key=self.root + key)
        with answer["Body"] as stream:
            data: bytes = stream.read()
        return data

    def corrupt(self, key: str) -> None:
        """Damage the JSON of an object's block."""
        self.put_raw(key, self.get_raw(key).replace(b'"min_writer":1', b'"min_writer":', 1))

    def put_future(self, key: str, body: bytes) -> None:
        """Store an object of a later format, which only later releases may write."""
        fields = {
            "format": 99,
            "min_writer": 99,
            "id": "0123456789abcdef0123",
            "lineage": [],
            "metadata": {},
            "sha256": "0" * 64,
            "later": {"field": 1},
        }
        head = json.dumps(fields, separators=(",", ":"))
        self.put_raw(key, b"---\nwenchang: " + head.encode() + b"\n---\n" + body)

    def list_raw(self) -> Sequence[str]:
        """Return the names of everything below the prefix, probes included."""
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=self.root
        )
        return [
            item["Key"][len(self.root) :] for page in pages for item in page.get("Contents", ())
        ]

    def remove_all(self) -> None:
        """Empty the prefix."""
        for key in self.list_raw():
            self.client.delete_object(Bucket=self.bucket, Key=self.root + key)


def sdk_errors() -> Iterable[tuple[BaseException, BaseException]]:
    """Yield one error of each kind of the SDK, and what a call raises for it in the end."""
    for error in every_sdk_error():
        attempt = classify(error, "version")
        if isinstance(attempt, Rejected):
            yield error, attempt.error
        elif isinstance(attempt, Ambiguous | Busy | NotSent):
            ours = BackendUnavailableError("unavailable")
            ours.__cause__ = attempt.error
            yield error, ours
        else:
            yield error, PreconditionFailedError("key")


def every_sdk_error() -> Iterator[Exception]:
    """Yield an instance of each exception class of the SDK, and each kind of answer of the service."""
    for _, kind in sorted(inspect.getmembers(sdk, inspect.isclass)):
        if issubclass(kind, sdk.BotoCoreError):
            error = kind.__new__(kind)
            Exception.__init__(error, "a secret text")
            yield error
    codes = (
        "AccessDenied",
        "NoSuchBucket",
        "NoSuchKey",
        "PreconditionFailed",
        "SlowDown",
        "Odd",
        "",
    )
    statuses = (200, 301, 307, 400, 401, 403, 404, 405, 408, 409, 412, 413, 416, 429, 500, 501, 503)
    for code in codes:
        for status in statuses:
            yield answer_error(status, code)


def answer_error(status: int, code: str, **headers: str) -> ClientError:
    """Return what the SDK raises for an answer."""
    response: Any = {
        "Error": {"Code": code or str(status), "Message": "a secret text"},
        "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": headers},
    }
    return ClientError(response, "PutObject")
