"""From a location `az://account/container/prefix` to a storage, with credentials from outside of it."""

from __future__ import annotations

import importlib
import os
import re
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.storage.blob import ContainerClient

from wenchang.storage import StorageConfigurationError
from wenchang.storage.keys import check_namespace
from wenchang_azure.clients import Clients, make_client
from wenchang_azure.options import AzureOptions
from wenchang_azure.storage import AzureStorage

if TYPE_CHECKING:
    from collections.abc import Callable

    from wenchang.storage.locations import StorageLocation
    from wenchang_azure.clients import Credential

__all__ = ["client_maker", "open_location"]

_ACCOUNT: Final = re.compile(r"[a-z0-9]{3,24}")
_CONTAINER: Final = re.compile(r"(?!.*--)[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
_ADDRESS: Final = (
    "a location in Azure Blob Storage is az://account/container or az://account/container/prefix"
)


def open_location(location: StorageLocation) -> AzureStorage:
    """Return a storage on `location`; sends nothing.

    Raises `StorageConfigurationError` for a wrong address or option, and where no credential is set
    and `azure-identity` is not installed.
    """
    options = location.options_as(AzureOptions)
    account, container, prefix = _parts(location.address)
    check_namespace(prefix)
    return AzureStorage.from_clients_of_ours(
        Clients(client_maker(account, container, options)),
        prefix=prefix,
        policy=options.policy,
        concurrency=options.concurrency,
        api_version=options.api_version,
    )


def client_maker(account: str, container: str, options: AzureOptions) -> partial[ContainerClient]:
    """Return a function that makes a client of a container; credentials are read now, once."""
    url, credential = _access(account, container, options)
    return partial(
        make_client,
        url,
        container,
        credential=credential,
        api_version=options.api_version,
        concurrency=options.concurrency,
    )


def _parts(address: str) -> tuple[str, str, str]:
    """Split an address into account, container and prefix."""
    account, _, rest = unquote(address).partition("/")
    container, _, prefix = rest.partition("/")
    if not _ACCOUNT.fullmatch(account) or not _CONTAINER.fullmatch(container):
        raise StorageConfigurationError(_ADDRESS)
    return account, container, prefix.removesuffix("/")


def _access(
    account: str, container: str, options: AzureOptions
) -> tuple[str, Callable[[], Credential]]:
    """Return the service's URL and the credential: the first of the variables that is set."""
    url = options.endpoint or f"https://{account}.blob.core.windows.net"
    if text := os.environ.get(options.connection_string_env):
        return _of_connection_string(text, account, container, options)
    if key := os.environ.get(options.account_key_env):
        return url, lambda: AzureNamedKeyCredential(account, key)
    if token := os.environ.get(options.sas_token_env):
        return url, lambda: AzureSasCredential(token.removeprefix("?"))
    return url, _identity(options)


def _of_connection_string(
    text: str, account: str, container: str, options: AzureOptions
) -> tuple[str, Callable[[], Credential]]:
    """Read a connection string with the SDK, which knows its many forms."""
    variable = options.connection_string_env
    try:
        client = ContainerClient.from_connection_string(text, container)
    except (ValueError, KeyError):
        msg = (
            f"the variable '{variable}' (option 'connection_string_env') holds no connection string"
        )
        # The cause would repeat the text.
        raise StorageConfigurationError(msg) from None
    named = client.account_name
    if named is not None and named != account:
        msg = (
            f"the connection string in '{variable}' is of another storage account than the location; "
            "name its account in the location, or unset the variable"
        )
        raise StorageConfigurationError(msg)
    keys: dict[str, str] = {}
    for part in text.split(";"):
        name, _, value = part.partition("=")
        keys[name.upper()] = value
    credential: Credential
    if "ACCOUNTKEY" in keys:
        credential = AzureNamedKeyCredential(account, keys["ACCOUNTKEY"])
    elif "SHAREDACCESSSIGNATURE" in keys:
        credential = AzureSasCredential(keys["SHAREDACCESSSIGNATURE"].removeprefix("?"))
    else:
        msg = f"the connection string in '{variable}' holds neither AccountKey nor SharedAccessSignature"
        raise StorageConfigurationError(msg)
    if options.endpoint is not None:
        return options.endpoint, lambda: credential
    parts = urlsplit(client.url)
    path = parts.path.removesuffix(f"/{container}")
    return f"{parts.scheme}://{parts.netloc}{path}", lambda: credential


def _identity(options: AzureOptions) -> Callable[[], Credential]:
    """Return what makes the identity of this process, or say how to give a credential."""
    try:
        identity = importlib.import_module("azure.identity")
    except ImportError:
        msg = (
            f"no credential for Azure: set {options.connection_string_env}, {options.account_key_env} or "
            f"{options.sas_token_env} (options 'connection_string_env', 'account_key_env', "
            "'sas_token_env'), or install azure-identity: pip install 'wenchang-azure[identity]'"
        )
        raise StorageConfigurationError(msg) from None
    default: Callable[[], Credential] = identity.DefaultAzureCredential
    return default
