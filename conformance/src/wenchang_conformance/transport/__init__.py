"""`TransportConformance`: a client of the seven operations, tried against what the store does.

    class TestMyClient(TransportConformance):
        @pytest.fixture
        def client(self) -> TransportClient: ...      # fresh and empty for each test

Give the fixtures `client`, `source`, `scope_map` (at least two writable scopes), `max_file_bytes` (at least 64),
`index_max_bytes` (at least 1024), `scope_priority` and `list_page_size`; and, for the case of the file cap,
`max_files_per_entity`. Within a test the client's writes must stamp strictly rising times.
"""

from __future__ import annotations

from wenchang_conformance.transport.changes import ChangeCases
from wenchang_conformance.transport.errors import ErrorCases
from wenchang_conformance.transport.files import FileCases
from wenchang_conformance.transport.listings import ListingCases

__all__ = ["TransportConformance"]


class TransportConformance(FileCases, ChangeCases, ListingCases, ErrorCases):
    """Every operation over the client behaves as on the store itself."""
