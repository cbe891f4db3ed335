"""What the Azure backend costs over Microsoft's client that sends the same requests, paired in one run.

    python benchmarks/azure_overhead.py [ACCOUNT_URL] [--rounds N]

Without a URL: the emulator that WENCHANG_TEST_AZURITE_URL names. For each operation both take turns in
short blocks, so that a slow moment of the machine meets both; the median of the paired ratios counts.
The bare client has the same pool, sends the same conditions and stores metadata of the same size.
"""

from __future__ import annotations

import argparse
import os
import secrets
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import azure.storage.blob as sdk
from azure.core import MatchConditions

from wenchang.storage.locations import StorageLocation
from wenchang.storage.outcomes import new_write_id
from wenchang_azure import AzureOptions
from wenchang_azure.marks import METADATA_NAME, encode_marks
from wenchang_azure.opening import client_maker, open_location

FILES = 500
LIMIT = 1.15
ACCOUNT = "devstoreaccount1"
KEY_VARIABLE = "WENCHANG_BENCH_AZURITE_KEY"
# The emulator's own key, published with it.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
BODY = b"A line of a note that says something worth keeping.\n" * 12
METADATA = {
    "description": "What the team agreed on the third of May about deployments",
    "aliases": "deploys, release train",
    "last-updated": "2026-05-03T10:11:12+00:00",
}
CALLS = {"get": 20, "conditional put": 20, "create, delete": 10, "page": 1}

Operation = Callable[[], Any]


class Candidates:
    """The same operations in two ways, on one fresh container."""

    def __init__(self, url: str) -> None:
        os.environ.setdefault(KEY_VARIABLE, KEY)
        name = f"bench-{secrets.token_hex(6)}"
        options = AzureOptions(endpoint=url, account_key_env=KEY_VARIABLE)
        self.client = client_maker(ACCOUNT, name, options)()
        self.client.create_container()
        self.storage = open_location(
            StorageLocation(
                scheme="az",
                address=f"{ACCOUNT}/{name}",
                options={"endpoint": url, "account_key_env": KEY_VARIABLE},
            )
        )
        with ThreadPoolExecutor(8) as pool:
            keys = [f"notes/{number:04}.md" for number in range(FILES)]
            list(pool.map(lambda key: self.storage.put_if_version(key, BODY, METADATA, None), keys))
        self.key = "notes/0250.md"
        self.version = self.storage.put("ours.md", BODY, METADATA)
        self.theirs = self.put_raw("theirs.md", match_condition=MatchConditions.IfMissing)

    def put_raw(self, name: str, **conditions: Any) -> str:
        lineage = (("0" * 20, "0x8DC5D1A2B3C4D5E"),)
        value = encode_marks(BODY, METADATA, new_write_id(), lineage)
        answer = self.client.get_blob_client(name).upload_blob(
            BODY, metadata={METADATA_NAME: value}, overwrite=True, **conditions
        )
        etag: str = answer["etag"]
        return etag

    def ours(self) -> dict[str, Operation]:
        def put() -> None:
            self.version = self.storage.put_if_version("ours.md", BODY, METADATA, self.version)

        def create_and_delete() -> None:
            version = self.storage.put_if_version("short.md", BODY, METADATA, None)
            self.storage.delete_if_version("short.md", version)

        return {
            "get": lambda: self.storage.get(self.key),
            "conditional put": put,
            "create, delete": create_and_delete,
            "page": lambda: self.storage.list_page("notes/", None, 1000),
        }

    def bare(self) -> dict[str, Operation]:
        unmodified = MatchConditions.IfNotModified

        def put() -> None:
            self.theirs = self.put_raw("theirs.md", etag=self.theirs, match_condition=unmodified)

        def create_and_delete() -> None:
            etag = self.put_raw("brief.md", match_condition=MatchConditions.IfMissing)
            blob = self.client.get_blob_client("brief.md")
            blob.delete_blob(etag=etag, match_condition=unmodified)

        def page() -> list[str]:
            found = self.client.list_blobs(name_starts_with="notes/", include=["metadata"])
            return [blob.name for blob in found]

        return {
            "get": lambda: self.client.get_blob_client(self.key).download_blob().readall(),
            "conditional put": put,
            "create, delete": create_and_delete,
            "page": page,
        }

    def close(self) -> None:
        self.storage.close()
        self.client.delete_container()
        self.client.close()


def block(operation: Operation, calls: int) -> float:
    """Return the milliseconds of one call, over a block of calls."""
    began = time.perf_counter()
    for _ in range(calls):
        operation()
    return (time.perf_counter() - began) / calls * 1e3


def compare(url: str, rounds: int) -> bool:
    candidates = Candidates(url)
    ours, bare = candidates.ours(), candidates.bare()
    print(f"azure-storage-blob {sdk.__version__}; milliseconds a call, median of {rounds} blocks")
    print(f"{'':16}{'wenchang':>10}{'bare':>10}{'ratio':>8}{'limit':>8}")
    good = True
    for name, calls in CALLS.items():
        ours[name](), bare[name]()
        pairs = []
        for number in range(rounds):
            mine = block(ours[name], calls) if number % 2 else 0.0
            theirs = block(bare[name], calls)
            pairs.append((mine or block(ours[name], calls), theirs))
        ratio = statistics.median(mine / theirs for mine, theirs in pairs)
        mine, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(f"{name:16}{mine:10.2f}{theirs:10.2f}{ratio:8.2f}{LIMIT:8.2f}")
        good = good and ratio <= LIMIT
    candidates.close()
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("url", nargs="?", default=os.environ.get("WENCHANG_TEST_AZURITE_URL"))
    parser.add_argument("--rounds", type=int, default=30)
    arguments = parser.parse_args()
    if not arguments.url:
        parser.error(
            "give an account's URL, or start the emulator with: python3 dev.py servers azurite"
        )
    return 0 if compare(arguments.url, arguments.rounds) else 1


if __name__ == "__main__":
    raise SystemExit(main())
