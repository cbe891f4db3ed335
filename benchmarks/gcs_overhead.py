"""What the GCS backend costs over Google's client that sends the same requests, paired in one run.

    python benchmarks/gcs_overhead.py [ENDPOINT_URL] [--rounds N]

Without a URL: the emulator that WENCHANG_TEST_GCS_URL names. For each operation both take turns in short
blocks, so that a slow moment of the machine meets both; the median of the paired ratios counts. The
bare client has the same session, sends the same conditions and stores metadata of the same size.
"""

from __future__ import annotations

import argparse
import os
import secrets
import statistics
import time
from collections.abc import Callable
from typing import Any

from google.cloud import storage as sdk

from wenchang.storage.outcomes import new_write_id
from wenchang_gcs import GcsOptions, GcsStorage
from wenchang_gcs.clients import make_bucket
from wenchang_gcs.heads import HeadCache
from wenchang_gcs.marks import encode_marks

FILES = 500
BODY = b"A line of a note that says something worth keeping.\n" * 12
METADATA = {
    "description": "What the team agreed on the third of May about deployments",
    "aliases": "deploys, release train",
    "last-updated": "2026-05-03T10:11:12+00:00",
}
FIELDS = "items(name,generation,metageneration,metadata),nextPageToken"
CALLS = {"get": 20, "conditional put": 20, "create, delete": 15, "page, known": 3, "page, cold": 3}
# A first listing also checks the metadata of each object, once: some 10 microseconds of processor each,
# which over loopback shows.
LIMITS = dict.fromkeys(CALLS, 1.15) | {"page, cold": 1.4}

Operation = Callable[[], Any]


class Candidates:
    """The same operations in two ways, on one fresh bucket."""

    def __init__(self, url: str) -> None:
        name = f"bench-{secrets.token_hex(6)}"
        self.bucket = make_bucket(name, GcsOptions(endpoint_url=url, anonymous=True, project="p"))
        self.bucket.client.create_bucket(name)
        self.storage = GcsStorage(self.bucket)
        for number in range(FILES):
            self.storage.put_if_version(f"notes/{number:04}.md", BODY, METADATA, None)
        self.key = "notes/0250.md"
        self.version = self.storage.put("ours.md", BODY, METADATA)
        self.theirs = self.put_raw("theirs.md", if_generation_match=0)

    def put_raw(self, name: str, **conditions: int) -> int:
        blob = self.bucket.blob(name)
        lineage = (("0" * 20, "1700000000000001"),)
        blob.metadata = encode_marks(METADATA, new_write_id(), lineage, {})
        blob.upload_from_string(
            BODY,
            content_type="text/markdown; charset=utf-8",
            retry=None,
            timeout=10.0,
            **conditions,
        )
        return int(blob.generation)

    def ours(self) -> dict[str, Operation]:
        def put() -> None:
            self.version = self.storage.put_if_version("ours.md", BODY, METADATA, self.version)

        def create_and_delete() -> None:
            version = self.storage.put_if_version("new.md", BODY, METADATA, None)
            self.storage.delete_if_version("new.md", version)

        def page() -> None:
            assert len(self.storage.list_page("notes/", None, 1000)) == FILES

        def cold_page() -> None:
            # As a handle that has met nothing yet; its connection is open, like the client's.
            self.storage._requests._heads = HeadCache()  # noqa: SLF001 - what is measured is its absence
            page()

        get = lambda: self.storage.get(self.key)  # noqa: E731 - beside its siblings
        return dict(zip(CALLS, (get, put, create_and_delete, page, cold_page), strict=True))

    def bare(self) -> dict[str, Operation]:
        def get() -> tuple[bytes, dict[str, str]]:
            told = self.bucket.blob(self.key)
            told.reload(retry=None, timeout=10.0)
            data: bytes = self.bucket.blob(self.key).download_as_bytes(
                if_generation_match=told.generation, retry=None, timeout=10.0
            )
            return data, dict(told.metadata)

        def put() -> None:
            self.theirs = self.put_raw(
                "theirs.md", if_generation_match=self.theirs, if_metageneration_match=1
            )

        def create_and_delete() -> None:
            generation = self.put_raw("new.md", if_generation_match=0)
            self.bucket.blob("new.md").delete(
                if_generation_match=generation,
                if_metageneration_match=1,
                retry=None,
                timeout=10.0,
            )

        def page() -> None:
            blobs = self.bucket.client.list_blobs(
                self.bucket,
                prefix="notes/",
                page_size=1000,
                fields=FIELDS,
                retry=None,
                timeout=10.0,
            )
            told = [(blob.name, dict(blob.metadata), str(blob.generation)) for blob in blobs]
            assert len(told) == FILES

        return dict(zip(CALLS, (get, put, create_and_delete, page, page), strict=True))

    def close(self) -> None:
        for blob in self.bucket.client.list_blobs(self.bucket):
            blob.delete()
        self.storage.close()


def block(operation: Operation, calls: int) -> float:
    """Return the milliseconds of one call, over a block of calls."""
    began = time.perf_counter()
    for _ in range(calls):
        operation()
    return (time.perf_counter() - began) / calls * 1e3


def compare(url: str, rounds: int) -> bool:
    candidates = Candidates(url)
    ours, bare = candidates.ours(), candidates.bare()
    print(f"google-cloud-storage {sdk.__version__}; milliseconds a call, median of {rounds} blocks")
    print(f"{'':16}{'wenchang':>10}{'client':>10}{'ratio':>8}{'limit':>8}")
    good = True
    for name, calls in CALLS.items():
        ours[name](), bare[name]()
        pairs = []
        for number in range(rounds):
            order = (ours, bare) if number % 2 else (bare, ours)
            spent = {id(one): block(one[name], calls) for one in order}
            pairs.append((spent[id(ours)], spent[id(bare)]))
        ratio = statistics.median(mine / theirs for mine, theirs in pairs)
        mine, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(f"{name:16}{mine:10.2f}{theirs:10.2f}{ratio:8.2f}{LIMITS[name]:8.2f}")
        good = good and ratio <= LIMITS[name]
    candidates.close()
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url", nargs="?", default=os.environ.get("WENCHANG_TEST_GCS_URL"))
    parser.add_argument("--rounds", type=int, default=25)
    arguments = parser.parse_args()
    if not arguments.url:
        parser.error("give the URL of an emulator, or set WENCHANG_TEST_GCS_URL")
    return 0 if compare(arguments.url, arguments.rounds) else 1


if __name__ == "__main__":
    raise SystemExit(main())
