"""Reading, writing and deleting whole files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wenchang.errors import OversizeWriteError
from wenchang.transport import TransportClient
from wenchang_conformance.transport.harness import HarnessFixtures

if TYPE_CHECKING:
    from wenchang_conformance.transport.harness import Harness

__all__ = ["FileCases"]


class FileCases(HarnessFixtures):
    """Baseline, round trips, atomicity and tokens."""

    # --- baseline ---

    def test_the_client_satisfies_the_protocol(self, fixtures: Harness) -> None:
        """Look for the seven operations."""
        if not isinstance(fixtures.client, TransportClient):
            fixtures.fail("client", "lacks one of the seven operations of TransportClient")

    def test_a_written_file_reads_back(self, harness: Harness) -> None:
        """Write a file and read it."""
        path = harness.path("a")
        written = harness.write(path, "text\n", description="d", aliases=("x", "y"))
        read = harness.read(path)
        harness.same("read_file", "content", read.content, "text\n")
        harness.same("read_file", "metadata", read.metadata, written.metadata)
        harness.same("write_file", "sources", written.metadata.sources, frozenset({harness.source}))

    def test_a_returned_token_is_accepted(self, harness: Harness) -> None:
        """Replace a file with the token of its creation."""
        path = harness.path("a")
        created = harness.write(path, "1")
        harness.write(path, "2", created.version)
        harness.same("read_file", "content", harness.read(path).content, "2")

    def test_an_absent_file_is_not_found(self, harness: Harness) -> None:
        """Read a file that was never written."""
        harness.absent(harness.path("never"), "read_file")

    def test_an_oversize_write_is_refused(self, harness: Harness) -> None:
        """Write one byte too many, counted in UTF-8, then exactly the limit."""
        path = harness.path("a")
        text = "\u00e9" * (harness.max_file_bytes // 2) + "xx"
        size = len(text.encode())
        error = harness.refused(OversizeWriteError, "write_file", harness.write, path, text)
        harness.same("write_file", "size", error.size, size)
        harness.same("write_file", "limit", error.limit, harness.max_file_bytes)
        harness.absent(path, "after an oversize write")
        harness.write(path, "x" * harness.max_file_bytes)

    # --- round trips ---

    def test_unicode_round_trips(self, harness: Harness) -> None:
        """Write text of many scripts into content, description and aliases."""
        path = harness.path("\u8a18\u61b6")
        content = "Pr\u00fcfung \u8a18\u61b6 \N{TOP HAT} e\u0301\n"
        aliases = ("\u8a18", "e\u0301", "\u00e9")
        written = harness.write(path, content, description="\N{TOP HAT} \u05e9", aliases=aliases)
        read = harness.read(path)
        harness.same("read_file", "content", read.content, content)
        harness.same("read_file", "description", read.metadata.description, "\N{TOP HAT} \u05e9")
        harness.same("read_file", "aliases", read.metadata.aliases, written.metadata.aliases)
        harness.same("read_file", "aliases", read.metadata.aliases, aliases)

    def test_text_that_resembles_facts_round_trips(self, harness: Harness) -> None:
        """Write lines that are nearly facts."""
        content = "- [Stated] x\n-[stated] y\n- [system]\n # no fact\n\n"
        path = harness.path("a")
        harness.write(path, content)
        harness.same("read_file", "content", harness.read(path).content, content)

    def test_a_missing_last_line_break_stays_missing(self, harness: Harness) -> None:
        """Write a text that does not end with a line break."""
        path = harness.path("a")
        harness.write(path, "no line break")
        harness.same("read_file", "content", harness.read(path).content, "no line break")

    def test_an_empty_file_round_trips(self, harness: Harness) -> None:
        """Write no text at all."""
        path = harness.path("a")
        harness.write(path, "")
        harness.same("read_file", "content", harness.read(path).content, "")

    def test_no_aliases_and_many_sources_round_trip(self, harness: Harness) -> None:
        """Write sources of several writers and no alias."""
        path = harness.path("a")
        given = frozenset({"import", "meeting", "\u4f1a\u8bae"})
        harness.write(path, "x", sources=given)
        read = harness.read(path)
        harness.same("read_file", "aliases", read.metadata.aliases, ())
        harness.same("read_file", "sources", read.metadata.sources, given | {harness.source})

    def test_a_replace_adds_to_the_sources(self, harness: Harness) -> None:
        """Replace a file under another source; none is lost."""
        path = harness.path("a")
        created = harness.write(path, "1", sources=frozenset({"first"}))
        replaced = harness.write(path, "2", created.version, sources=frozenset({"second"}))
        wanted = frozenset({"first", "second", harness.source})
        harness.same("write_file", "sources", replaced.metadata.sources, wanted)
        harness.same("read_file", "sources", harness.read(path).metadata.sources, wanted)

    # --- atomicity ---

    def test_a_failed_replace_leaves_content_and_metadata_as_they_were(
        self, harness: Harness
    ) -> None:
        """Fail a replace for its size, and compare both."""
        path = harness.path("a")
        created = harness.write(path, "before", description="before", aliases=("b",))
        harness.refused(
            OversizeWriteError,
            "write_file",
            harness.write,
            path,
            "x" * (harness.max_file_bytes + 1),
            created.version,
            description="after",
        )
        read = harness.read(path)
        harness.same("read_file", "content", read.content, "before")
        harness.same("read_file", "metadata", read.metadata, created.metadata)

    def test_a_delete_removes_content_and_metadata(self, harness: Harness) -> None:
        """Delete a file and create it again: nothing of the old one is left."""
        path = harness.path("a")
        created = harness.write(
            path, "x", description="d", aliases=("b",), sources=frozenset({"s"})
        )
        harness.client.delete_file(path, created.version)
        harness.absent(path, "after delete_file")
        harness.same("list_prefix", "entries", harness.page(harness.prefix()).entries, ())
        again = harness.write(path, "y")
        harness.same("write_file", "sources", again.metadata.sources, frozenset({harness.source}))
        harness.same("write_file", "description", again.metadata.description, "")

    def test_an_append_updates_content_and_time_together(self, harness: Harness) -> None:
        """Append and compare what was returned with what is read."""
        path = harness.path("a")
        created = harness.write(path, "x\n")
        appended = harness.append(path, "- [stated] y", created.version)
        read = harness.read(path)
        harness.same("read_file", "content", read.content, "x\n- [stated] y\n")
        harness.same("read_file", "metadata", read.metadata, appended.metadata)

    # --- tokens ---

    def test_the_token_of_each_operation_is_accepted(self, harness: Harness) -> None:
        """Hand back the tokens of write, append, replace, read and list, one after the other."""
        path = harness.path("a")
        token = harness.write(path, "one\n").version
        token = harness.append(path, "- [stated] two", token).version
        token = harness.replace(path, "two", "three", token).version
        token = harness.write(path, "four\n", token).version
        token = harness.append(path, "- [stated] five", harness.read(path).version).version
        (entry,) = harness.page(harness.prefix()).entries
        token = harness.replace(path, "five", "six", entry.version).version
        harness.client.delete_file(path, token)
        harness.absent(path, "after delete_file")

    def test_the_token_of_an_index_entry_is_accepted(self, harness: Harness) -> None:
        """Hand back the token that the index shows."""
        path = harness.path("a")
        harness.write(path, "x")
        tokens = {entry.path: entry.version for entry in harness.index().entries}
        if path not in tokens:
            harness.fail("get_memory_index", "does not show a file that was just written")
        harness.write(path, "y", tokens[path])
