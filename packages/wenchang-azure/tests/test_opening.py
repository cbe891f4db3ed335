"""Locations, options and credentials; nothing is sent by any of it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from wenchang.storage import StorageConfigurationError, StorageLocation, find_backend, open_storage
from wenchang_azure import AzureOptions, AzureStorage
from wenchang_azure.descriptor import DESCRIPTOR
from wenchang_azure.opening import client_maker

KEY = "c2VjcmV0LWtleQ=="
STRING = f"DefaultEndpointsProtocol=https;AccountName=account;AccountKey={KEY};EndpointSuffix=core.windows.net"
VARIABLES = ("AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN")


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(sys.modules, "azure.identity", None)


def client_of(options: AzureOptions | None = None, account: str = "account") -> Any:
    return client_maker(account, "container", options or AzureOptions())()


def test_a_location_is_opened_by_its_scheme(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AZURE_STORAGE_KEY", KEY)
    assert find_backend("az") is DESCRIPTOR
    storage = open_storage("az://account/container/some/prefix?deadline=5&concurrency=4")
    assert isinstance(storage, AzureStorage)
    assert storage._root == "some/prefix/"
    assert storage._policy.deadline == 5


@pytest.mark.parametrize(
    "address",
    [
        *("", "account", "account/", "/container", "Account/container", "account/Con"),
        *("account/a--b/k", "account/ab", "account/-ab", "account/co ntainer", "a.b.c/container"),
        "account/$root/x",
    ],
)
def test_init_fail_a_wrong_address_says_what_one_looks_like(
    monkeypatch: pytest.MonkeyPatch, address: str
):
    monkeypatch.setenv("AZURE_STORAGE_KEY", KEY)
    with pytest.raises(StorageConfigurationError, match="az://account/container"):
        open_storage(f"az://{address}")


@pytest.mark.parametrize("prefix", ["a//b", "../x", "a%5Cb", "p" * 124])
def test_init_fail_a_wrong_prefix_is_refused(monkeypatch: pytest.MonkeyPatch, prefix: str):
    monkeypatch.setenv("AZURE_STORAGE_KEY", KEY)
    with pytest.raises(StorageConfigurationError, match="prefix"):
        open_storage(f"az://account/container/{prefix}")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("endpoint", "blob.core.windows.net"),
        ("endpoint", "ftp://host"),
        ("endpoint", "https://host:port"),
        ("endpoint", "https://user:pass@host"),
        ("endpoint", "https://host/account?sig=secret"),
        ("api_version", "latest"),
        ("connection_string_env", STRING),
        ("account_key_env", KEY),
        ("sas_token_env", "?sig=secret"),
        ("deadline", "0"),
        ("attempt_timeout", "-1"),
        ("concurrency", "0"),
        ("concurrency", "1001"),
        ("account_key", KEY),
    ],
)
def test_init_fail_a_wrong_option_is_named_and_its_value_is_not(name: str, value: str):
    location = StorageLocation(scheme="az", address="account/container", options={name: value})
    with pytest.raises(StorageConfigurationError, match=f"'{name}'") as caught:
        open_storage(location)
    assert len(value) < 3 or value not in str(caught.value)


def test_init_fail_without_any_credential_the_ways_to_give_one_are_listed():
    with pytest.raises(StorageConfigurationError) as caught:
        open_storage("az://account/container")
    for name in (*VARIABLES, "azure-identity", "account_key_env"):
        assert name in str(caught.value)


def test_a_key_in_the_environment_is_used_for_the_account_of_the_location(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("MY_KEY", KEY)
    client = client_of(AzureOptions(account_key_env="MY_KEY"))
    assert client.url == "https://account.blob.core.windows.net/container"
    assert client.credential.account_name == "account"
    assert client.credential.account_key == KEY


def test_an_endpoint_takes_the_place_of_the_account_s_usual_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AZURE_STORAGE_KEY", KEY)
    client = client_of(AzureOptions(endpoint="http://127.0.0.1:10000/account"))
    assert client.url == "http://127.0.0.1:10000/account/container"


def test_a_signature_in_the_environment_is_used(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "?sv=2026&sig=secret")
    assert client_of().credential.signature == "sv=2026&sig=secret"


@pytest.mark.parametrize(
    ("text", "url", "has_key"),
    [
        (STRING, "https://account.blob.core.windows.net/container", True),
        (
            f"AccountName=account;AccountKey={KEY};BlobEndpoint=http://127.0.0.1:1/account;",
            "http://127.0.0.1:1/account/container",
            True,
        ),
        (
            "BlobEndpoint=https://account.blob.core.windows.net;SharedAccessSignature=sv=1&sig=secret",
            "https://account.blob.core.windows.net/container",
            False,
        ),
    ],
)
def test_a_connection_string_gives_endpoint_and_credential(
    monkeypatch: pytest.MonkeyPatch, text: str, url: str, has_key: bool
):
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", text)
    monkeypatch.setenv("AZURE_STORAGE_KEY", "not used")
    client = client_of()
    assert client.url.partition("?")[0] == url
    if has_key:
        assert client.credential.account_key == KEY
    else:
        assert client.credential.signature == "sv=1&sig=secret"
    other = client_of(AzureOptions(endpoint="https://private.example"))
    assert other.url.partition("?")[0] == "https://private.example/container"


@pytest.mark.parametrize("text", ["nonsense", "AccountName=account", "=;=", "AccountKey=secret"])
def test_init_fail_a_broken_connection_string_is_not_repeated(
    monkeypatch: pytest.MonkeyPatch, text: str
):
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", text)
    with pytest.raises(
        StorageConfigurationError, match="AZURE_STORAGE_CONNECTION_STRING"
    ) as caught:
        open_storage("az://account/container")
    assert text not in str(caught.value)
    assert caught.value.__cause__ is None


def test_init_fail_a_connection_string_of_another_account_is_refused(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", STRING)
    with pytest.raises(StorageConfigurationError, match="another storage account"):
        open_storage("az://someoneelse/container")


def test_the_identity_of_the_process_is_the_last_resort(monkeypatch: pytest.MonkeyPatch):
    made = []

    class DefaultAzureCredential:
        def __init__(self) -> None:
            made.append(self)

        def get_token(self, *scopes: str, **options: Any) -> None:
            """Never called: nothing is sent."""

    module = type(sys)("azure.identity")
    module.DefaultAzureCredential = DefaultAzureCredential  # type: ignore[attr-defined] # a stand-in
    monkeypatch.setitem(sys.modules, "azure.identity", module)
    make = client_maker("account", "container", AzureOptions())
    assert made == []
    assert make().credential is made[0]
    # Each process has one of its own.
    make()
    assert len(made) == 2


def test_init_offline_neither_importing_nor_listing_backends_loads_the_sdk():
    code = (
        "import sys, wenchang_azure, wenchang.storage as s; s.list_backends(); "
        "print(sorted(m for m in ('azure.core', 'azure.storage.blob', 'requests') if m in sys.modules))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert shown.stdout.strip() == "[]"


def test_the_public_names_are_these():
    import wenchang_azure

    assert sorted(wenchang_azure.__all__) == [
        "AzureOptions",
        "AzureStorage",
        "__version__",
        "open_location",
    ]
    for name in wenchang_azure.__all__:
        assert getattr(wenchang_azure, name) is not None
    with pytest.raises(AttributeError):
        _ = wenchang_azure.nothing


def test_a_wrong_client_is_a_type_error():
    with pytest.raises(TypeError):
        AzureStorage("container")  # type: ignore[arg-type] # what is tested
