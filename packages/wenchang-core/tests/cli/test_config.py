"""The configuration file, its precedence, and what it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from wenchang.config import (
    DEFAULT_PROMPT,
    Config,
    ConfigurationError,
    StorageChoice,
    choose_storage,
    default_grants,
    load_config,
    parse_grant,
    read_config,
)
from wenchang.files.limits import TreeLimits
from wenchang.files.policy import HistoryPolicy
from wenchang.files.settings import FileSettings
from wenchang.identity import ScopeGrant

if TYPE_CHECKING:
    from pathlib import Path

FULL = """
[storage]
url = "memory://"
provider = "wenchang-core"
[storage.options]
region = "eu-west-1"
retries = 3

[scopes]
user = "alice"
team = { entity = "platform", role = "member" }

[policy.write_roles]
team = ["admin", "owner"]

[limits]
max_file_bytes = 2048
index_max_bytes = 4096
list_page_size = 7
max_files_per_entity = 9
scope_priority = ["user", "team"]

[files]
scope = "team"
max_depth = 6
max_file_bytes = 2000
max_total_bytes = 3000
max_file_count = 40
history = 20
max_answer_chars = 50000

[server]
source = "desktop"
product = "Atlas"
tool_prefix = "mem"

[prompt]
purpose = "Remember."
"""


def test_every_key_of_a_full_file_arrives() -> None:
    config = read_config(FULL, name="wenchang.toml")
    assert config.storage is not None
    assert config.storage.url == "memory://"
    assert config.storage.provider == "wenchang-core"
    assert dict(config.storage.options) == {"region": "eu-west-1", "retries": 3}
    assert config.storage.source == "wenchang.toml"
    assert config.grants == {
        "user": ScopeGrant("alice", "owner"),
        "team": ScopeGrant("platform", "member"),
    }
    assert config.write_roles == {"team": frozenset({"admin", "owner"})}
    assert config.limits.max_file_bytes == 2048
    assert config.limits.index_max_bytes == 4096
    assert config.limits.list_page_size == 7
    assert config.limits.max_files_per_entity == 9
    assert config.limits.scope_priority == ("user", "team")
    assert config.files == FileSettings(
        scope="team",
        limits=TreeLimits(
            max_depth=6, max_file_bytes=2000, max_total_bytes=3000, max_file_count=40
        ),
        history=HistoryPolicy(versions=20),
        max_answer_chars=50_000,
    )
    assert (config.source, config.product, config.tool_prefix) == ("desktop", "Atlas", "mem")
    assert config.prompt.purpose == "Remember."
    assert config.prompt.seed_areas == DEFAULT_PROMPT.seed_areas


def test_an_empty_file_is_the_defaults() -> None:
    assert read_config("", name="f") == Config()


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[storage]\nulr = 'x'", 2, "did you mean 'url'"),
        ("[storge]\nurl = 'x'", 1, "did you mean 'storage'"),
        ("[limits]\n# sizes\nmax_file_byte = 3", 3, "did you mean 'max_file_bytes'"),
        ("[scopes.team]\nentity = 'a'\nrol = 'b'", 3, "did you mean 'role'"),
        ("[limits]\nmax_file_bytes = true", 2, "whole number"),
        ("[limits]\nmax_file_bytes = 0", 2, "at least 1"),
        ("[limits]\nscope_priority = 'user'", 2, "list of scope names"),
        ("[files]\nmax_dept = 3", 2, "did you mean 'max_depth'"),
        ("[files]\nmax_depth = 0", 2, "at least 1"),
        ("[files]\nhistory = 3\nmax_depth = 21", 3, "at most 20"),
        ("[files]\nmax_file_bytes = 4194305", 2, "at most 4194304"),
        ("[files]\nmax_file_count = 200001", 2, "at most 200000"),
        ("[files]\nmax_total_bytes = true", 2, "whole number"),
        ("[files]\nhistory = 101", 2, "1 to 100"),
        ("[files]\nhistory = -1", 2, "at least 0"),
        ("[files]\nhistory = true", 2, "whole number"),
        ("[files]\nscope = '@x'", 2, "must not begin with"),
        ("[files]\nscope = 3", 2, "must be text"),
        ("[files]\nscope = ''", 2, "empty"),
        ("[files]\nmax_answer_chars = 15999", 2, "at least 16000"),
        ("files = 3", 1, "must be a table"),
        ("[server]\nsource = ''", 2, "empty"),
        ("[server]\nproduct = 3", 2, "must be text"),
        ("[scopes]\nteam = 3", 2, "ENTITY:ROLE"),
        ("[scopes]\nteam = { role = 'x' }", 2, "needs 'entity'"),
        ("[scopes]\nteam = 'a/b'", 2, "scopes.team"),
        ("[policy.write_roles]\nteam = 'admin'", 2, "list of roles"),
        ("[storage]\nprovider = 'x'", 2, "needs 'url'"),
        ("[storage]\nurl = 'm://'\n[storage.options]\na = [1]", 4, "text, number or boolean"),
    ],
)
def test_a_mistake_is_told_with_file_line_and_rule(text: str, line: int, words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_config(text, name="my.toml")
    assert str(caught.value).startswith(f"my.toml, line {line}: ")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bad_toml_is_told_with_its_place() -> None:
    with pytest.raises(ConfigurationError, match=r"my\.toml: this is not TOML"):
        read_config("[storage\n", name="my.toml")


def test_a_secret_in_the_storage_url_is_not_in_the_repr() -> None:
    choice = StorageChoice(url="postgresql://u:hunter2@h/d", options={"p": "hunter2"}, source="x")
    assert "hunter2" not in repr(choice)


def test_the_flag_beats_the_environment_beats_the_file_beats_the_default() -> None:
    config = read_config("[storage]\nurl = 'file:///f'", name="f")
    environ = {"WENCHANG_STORAGE": "file:///e"}
    assert choose_storage("file:///flag", environ, config).url == "file:///flag"
    assert choose_storage(None, environ, config).url == "file:///e"
    assert choose_storage(None, {}, config).url == "file:///f"
    default = choose_storage(None, {}, Config())
    assert default.url.startswith("sqlite:///")
    assert default.url.endswith("memory.db")


def test_options_of_the_file_do_not_follow_a_url_from_elsewhere() -> None:
    config = read_config("[storage]\nurl = 'a://'\n[storage.options]\nx = 1", name="f")
    assert not choose_storage("b://", {}, config).options


def test_no_history_is_zero_versions_and_the_default() -> None:
    assert read_config("[files]\nhistory = 0", name="f").files.history is None
    assert read_config("[files]\nmax_depth = 3", name="f").files == FileSettings(
        limits=TreeLimits(max_depth=3)
    )


@pytest.mark.parametrize("value", ["", "  "])
def test_an_empty_value_is_an_error_and_not_an_absent_one(value: str) -> None:
    with pytest.raises(ConfigurationError, match="empty"):
        choose_storage(value, {}, Config())
    with pytest.raises(ConfigurationError, match="empty"):
        choose_storage(None, {"WENCHANG_STORAGE": value}, Config())
    with pytest.raises(ConfigurationError, match="empty"):
        load_config(None, {"WENCHANG_CONFIG": value})


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="--config"):
        load_config(tmp_path / "absent.toml", {})
    with pytest.raises(ConfigurationError, match="WENCHANG_CONFIG"):
        load_config(None, {"WENCHANG_CONFIG": str(tmp_path / "absent.toml")})


def test_the_current_folder_is_never_consulted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wenchang.toml").write_text("[server]\nsource = 'here'\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "elsewhere"))
    assert load_config(None, {}).source == "agent"


def test_the_file_in_the_platform_folder_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    from platformdirs import user_config_path

    folder = user_config_path("wenchang", appauthor=False)
    folder.mkdir(parents=True)
    (folder / "wenchang.toml").write_text("[server]\nsource = 'standard'\n", encoding="utf-8")
    assert load_config(None, {}).source == "standard"


def test_a_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="UTF-8"):
        load_config(path, {})


def test_a_grant_reads_name_entity_and_role() -> None:
    assert parse_grant("team=platform:member", where="--scope") == (
        "team",
        ScopeGrant("platform", "member"),
    )
    assert parse_grant("team=platform", where="--scope")[1] == ScopeGrant("platform", "owner")
    assert parse_grant("user=urn:alice:owner", where="--scope")[1] == ScopeGrant(
        "urn:alice", "owner"
    )


@pytest.mark.parametrize("text", ["team", "=x", "team=", "team=a/b", "team=x:", "team=:r"])
def test_a_malformed_grant_is_refused_by_name(text: str) -> None:
    with pytest.raises(ConfigurationError, match="--scope"):
        parse_grant(text, where="--scope")


def test_the_default_grant_is_the_login_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "alice")
    assert default_grants() == {"user": ScopeGrant("alice", "owner")}
