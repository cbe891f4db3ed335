"""The Blob service that the tests run on: Azurite, where it was started."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from azure.storage.blob import ContainerClient

from wenchang.storage.locations import StorageLocation
from wenchang_azure import AzureOptions
from wenchang_azure.opening import client_maker

VARIABLE = "WENCHANG_TEST_AZURITE_URL"
ACCOUNT = "devstoreaccount1"
# The emulator's own key, the same on every machine and published with it.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
KEY_VARIABLE = "WENCHANG_TEST_AZURITE_KEY"

os.environ[KEY_VARIABLE] = KEY


@pytest.fixture(scope="session")
def azurite() -> str:
    """The URL of the account at the emulator."""
    url = os.environ.get(VARIABLE)
    if not url:
        pytest.skip(f"not run: no Azurite ({VARIABLE} is not set)")
    return url


@pytest.fixture(scope="session")
def container(azurite: str) -> Iterator[ContainerClient]:
    """A container of this run's own."""
    name = f"test-{secrets.token_hex(8)}"
    options = AzureOptions(endpoint=azurite, account_key_env=KEY_VARIABLE)
    client = client_maker(ACCOUNT, name, options)()
    with client:
        client.create_container()
        yield client
        client.delete_container()


@pytest.fixture
def location(azurite: str, container: ContainerClient) -> StorageLocation:
    """A location in the emulator that no other test uses."""
    return StorageLocation(
        scheme="az",
        address=f"{ACCOUNT}/{container.container_name}/{secrets.token_hex(4)}",
        options={"endpoint": azurite, "account_key_env": KEY_VARIABLE},
    )


@pytest.fixture
def race() -> Callable[..., list[Any]]:
    """Run functions in threads that start together; return what each returned or raised."""

    def run(functions: Sequence[Callable[[], Any]], seconds: float = 60.0) -> list[Any]:
        barrier = threading.Barrier(len(functions))
        results: list[Any] = [None] * len(functions)

        def racer(number: int) -> None:
            try:
                barrier.wait(seconds)
                results[number] = functions[number]()
            except Exception as error:
                results[number] = error

        threads = [
            threading.Thread(target=racer, args=(number,), daemon=True)
            for number in range(len(functions))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(seconds)
            assert not thread.is_alive(), "a racer did not end"
        return results

    return run
