"""What the S3 backend costs over boto3 that sends the same requests, paired in one run.

    python benchmarks/s3_overhead.py [ENDPOINT_URL] [--rounds N]

Without a URL: the server that WENCHANG_TEST_MINISTACK_URL or WENCHANG_TEST_MOTO_URL names. For each
operation both take turns in short blocks, so that a slow moment of the machine meets both; the median
of the paired ratios counts. boto3 has the same settings, reads the same bytes and checks nothing.
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

import boto3

from wenchang.storage.envelope import USUAL_HEAD_BYTES, encode
from wenchang.storage.outcomes import new_write_id
from wenchang_s3 import S3Storage
from wenchang_s3.clients import OwnClient
from wenchang_s3.options import S3Options

FILES = 500
CONNECTIONS = 32
BODY = b"A line of a note that says something worth keeping.\n" * 12
METADATA = {
    "description": "What the team agreed on the third of May about deployments",
    "aliases": "deploys, release train",
    "last-updated": "2026-05-03T10:11:12+00:00",
}
LIMITS = {"get": 1.15, "conditional put": 1.15, "page, known": 1.15, "page, cold": 1.3}

Operation = Callable[[], Any]


class Candidates:
    """The same operations in two ways, on one fresh bucket."""

    def __init__(self, url: str) -> None:
        self.bucket = f"bench-{secrets.token_hex(6)}"
        options = S3Options(endpoint_url=url, concurrency=CONNECTIONS)
        self.client = OwnClient(options).get()
        self.client.create_bucket(Bucket=self.bucket)
        self.url = url
        self.storage = self.open()
        self.pool = ThreadPoolExecutor(CONNECTIONS)
        for number in range(FILES):
            self.storage.put_if_version(f"notes/{number:04}.md", BODY, METADATA, None)
        self.key = f"notes/{FILES // 2:04}.md"
        self.version = self.storage.put("ours.md", BODY, METADATA)
        self.theirs = self.put_raw()

    def open(self) -> S3Storage:
        return S3Storage(self.bucket, endpoint_url=self.url, concurrency=CONNECTIONS)

    def put_raw(self, **condition: str) -> str:
        data = encode(BODY, METADATA, new_write_id())
        answer = self.client.put_object(Bucket=self.bucket, Key="theirs.md", Body=data, **condition)
        etag: str = answer["ETag"]
        return etag

    def ours(self) -> dict[str, Operation]:
        def put() -> None:
            self.version = self.storage.put_if_version("ours.md", BODY, METADATA, self.version)

        def cold() -> None:
            # As a handle that has met nothing yet; its connections are open, like boto3's.
            self.storage._heads._renew()  # noqa: SLF001 - what is measured is the absence of this
            assert len(self.storage.list_page("notes/", None, 1000)) == FILES

        return {
            "get": lambda: self.storage.get(self.key),
            "conditional put": put,
            "page, known": lambda: self.storage.list_page("notes/", None, 1000),
            "page, cold": cold,
        }

    def bare(self) -> dict[str, Operation]:
        def get() -> bytes:
            answer = self.client.get_object(Bucket=self.bucket, Key=self.key)
            data: bytes = answer["Body"].read()
            return data

        def put() -> None:
            self.theirs = self.put_raw(IfMatch=self.theirs)

        def page() -> list[str]:
            answer = self.client.list_objects_v2(Bucket=self.bucket, Prefix="notes/", MaxKeys=1000)
            return [item["Key"] for item in answer["Contents"]]

        def head(key: str) -> bytes:
            answer = self.client.get_object(
                Bucket=self.bucket, Key=key, Range=f"bytes=0-{USUAL_HEAD_BYTES - 1}"
            )
            data: bytes = answer["Body"].read()
            return data

        def cold() -> None:
            assert len(list(self.pool.map(head, page()))) == FILES

        return {"get": get, "conditional put": put, "page, known": page, "page, cold": cold}

    def close(self) -> None:
        for item in self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket):
            for entry in item.get("Contents", ()):
                self.client.delete_object(Bucket=self.bucket, Key=entry["Key"])
        self.client.delete_bucket(Bucket=self.bucket)
        self.pool.shutdown()
        self.storage.close()
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
    print(f"boto3 {boto3.__version__}; milliseconds a call, median of {rounds} blocks")
    print(f"{'':16}{'wenchang':>10}{'boto3':>10}{'ratio':>8}{'limit':>8}")
    good = True
    calls = {"get": 20, "conditional put": 20, "page, known": 3, "page, cold": 1}
    for name, limit in LIMITS.items():
        ours[name](), bare[name]()
        pairs = []
        for number in range(rounds if name != "page, cold" else max(3, rounds // 5)):
            turn = [block(ours[name], calls[name]), 0.0] if number % 2 else [0.0, 0.0]
            turn[1] = block(bare[name], calls[name])
            turn[0] = turn[0] or block(ours[name], calls[name])
            pairs.append(turn)
        ratio = statistics.median(mine / theirs for mine, theirs in pairs)
        mine, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(f"{name:16}{mine:10.2f}{theirs:10.2f}{ratio:8.2f}{limit:8.2f}")
        good = good and ratio <= limit
    candidates.close()
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    variables = ("WENCHANG_TEST_MINISTACK_URL", "WENCHANG_TEST_MOTO_URL")
    known = next(filter(None, map(os.environ.get, variables)), None)
    parser.add_argument("url", nargs="?", default=known)
    parser.add_argument("--rounds", type=int, default=40)
    arguments = parser.parse_args()
    if arguments.url is None:
        parser.error(f"name an endpoint, or set {variables[0]}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        os.environ.setdefault(name, "bench")
    return 0 if compare(arguments.url, arguments.rounds) else 1


if __name__ == "__main__":
    raise SystemExit(main())
