"""The limits: what is just permitted works, and what is just above is refused unsent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wenchang.storage import MetadataTooLargeError, ObjectTooLargeError
from wenchang.storage.keys import MAX_BODY_BYTES, MAX_METADATA_BYTES
from wenchang_conformance.areas.looking import metadata_is
from wenchang_conformance.requirement import requirement
from wenchang_conformance.samples import dense_text, full_metadata

if TYPE_CHECKING:
    from wenchang_conformance.bench import Bench

__all__ = ["LimitsArea"]


class LimitsArea:
    """Cases about sizes."""

    @requirement("key-range")
    def test_the_longest_keys_work(self, bench: Bench) -> None:
        """Fill the bytes and the segments up to the limit."""
        storage = bench.open()
        for what, key in _longest_keys(bench):
            size = f"{what}: {len(key.encode())} bytes, {key.count('/') + 1} segments"
            step = f"a valid key was put ({size})"
            version = bench.accepted(step, storage.put, key, what.encode(), {})
            bench.holds(storage, key, what.encode(), step)
            listed = [entry.key for entry in storage.list_page(key, None, 2)]
            bench.equal(listed, [key], f"{step}, then listed with the key as the prefix")
            storage.delete_if_version(key, version)

    @requirement("meta-limit")
    def test_metadata_of_the_full_size_works(self, bench: Bench) -> None:
        """Store exactly 5,000 bytes, in one value and in many, and list them."""
        storage = bench.open()
        many = {f"n{number:02}": dense_text(97, seed=number) for number in range(50)}
        ascii_only = {"a": "!" * (MAX_METADATA_BYTES - 1)}
        for what, metadata in (
            ("one value of text that does not compress", full_metadata()),
            ("50 values of text that does not compress", many),
            ("one value of ASCII", ascii_only),
            ("one value of emoji", {"e": "\N{TOP HAT}" * ((MAX_METADATA_BYTES - 1) // 4)}),
            ("one value of line breaks", {"e": "\n" * (MAX_METADATA_BYTES - 1)}),
        ):
            step = f"put with metadata of {MAX_METADATA_BYTES} bytes: {what}"
            bench.accepted(step, storage.put, "full", b"x", metadata)
            metadata_is(bench, storage, "full", metadata, step)

    @requirement("meta-limit")
    def test_metadata_above_the_limit_is_refused(self, bench: Bench) -> None:
        """Give one byte too many, counted in bytes and not in characters."""
        storage = bench.open()
        version = storage.put("a", b"before", {})
        for what, metadata in (
            ("ASCII", {"a": "x" * MAX_METADATA_BYTES}),
            ("text of 3 bytes a character", {"ab": "\u4e2d" * (MAX_METADATA_BYTES // 3) + "y"}),
        ):
            size = sum(len(name.encode()) + len(value.encode()) for name, value in metadata.items())
            for call, arguments in (
                (storage.put, ("a", b"after", metadata)),
                (storage.put_if_version, ("a", b"after", metadata, version)),
            ):
                step = f"{call.__name__} was called with metadata of {size} bytes ({what})"
                error = bench.refused(MetadataTooLargeError, step, call, *arguments)
                bench.equal(
                    (error.size, error.limit), (size, MAX_METADATA_BYTES), f"{step}: size, limit"
                )
        bench.holds(storage, "a", b"before", "after refused maps only")

    @requirement("data-exact")
    def test_the_largest_body_comes_back_equal_and_a_larger_one_is_refused(
        self, bench: Bench
    ) -> None:
        """Store 4 MiB of bytes that do not compress, then one byte more."""
        storage = bench.open()
        block = bytes((number * 197 + number // 251) % 256 for number in range(65_536))
        largest = block * (MAX_BODY_BYTES // len(block))
        version = bench.accepted("put with a body of 4 MiB", storage.put, "big", largest, {})
        found = storage.get("big")
        bench.require(
            found is not None and found.data == largest,
            "a body of 4 MiB was put; get returned "
            + ("nothing" if found is None else f"{len(found.data)} bytes that differ from it"),
        )
        over = largest + b"x"
        for call, arguments in (
            (storage.put, ("big", over, {})),
            (storage.put_if_version, ("big", over, {}, version)),
            (storage.put_if_version, ("new", over, {}, None)),
        ):
            step = f"{call.__name__} was called with a body of 4 MiB and one byte"
            error = bench.refused(ObjectTooLargeError, step, call, *arguments)
            bench.equal(
                (error.size, error.limit), (len(over), MAX_BODY_BYTES), f"{step}: size, limit"
            )


def _longest_keys(bench: Bench) -> list[tuple[str, str]]:
    """Return keys at the limits that the hooks leave."""
    room, segments = bench.hooks.key_bytes, bench.hooks.key_segments
    widest = min(room, bench.hooks.segment_bytes or room)
    # Where segments are limited, their encoding may grow a byte to three.
    wide = widest if bench.hooks.segment_bytes is None else widest // 3
    chosen = [
        ("ASCII", _filled("k", room, wide)),
        ("characters of 3 bytes", _filled("\u4e2d", room, wide)),
        ("characters of 4 bytes", _filled("\N{TOP HAT}", room, wide)),
        ("characters of 2 bytes", _filled("\u00e9", room, wide)),
        ("the most segments", "/".join(["s"] * segments)),
    ]
    if bench.hooks.segment_bytes is None:
        chosen.append(("one segment", "k" * room))
        chosen.append(("a segment of 300 characters", "x/" + "s" * 300))
    return chosen


def _filled(character: str, room: int, widest: int) -> str:
    """Return a key of exactly `room` bytes made of `character`, in segments of `widest` bytes."""
    width = max(1, widest // len(character.encode()))
    key = ""
    while len(key.encode()) < room:
        left = room - len(key.encode()) - (1 if key else 0)
        count = min(width, left // len(character.encode()))
        if count == 0:
            # What is left is smaller than a character: fill with ASCII, in the last segment.
            return key + "k" * (room - len(key.encode()))
        key += ("/" if key else "") + character * count
    return key
