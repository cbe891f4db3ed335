"""Locations: a URL and options make one value, secrets stay hidden, mistakes are named."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wenchang.storage import StorageConfigurationError, StorageLocation
from wenchang.storage.locations import nearest

SECRET = "hunter2"


@dataclass(frozen=True, kw_only=True)
class Options:
    region: str | None = None
    pool_size: int = 4
    timeout: float = 30.0
    create: bool = False
    addressing: Literal["path", "virtual"] = "path"
    level: Literal[1, 2] = 1
    certificate: Path | None = None
    old_style: Optional[int] = None  # noqa: UP045 - both spellings of an optional field are read
    built: list[str] = field(default_factory=list, init=False)


@dataclass(frozen=True, kw_only=True)
class Demanding:
    account: str
    port: int = 1


class TestParsing:
    @pytest.mark.parametrize(
        ("url", "scheme", "address"),
        [
            ("memory://", "memory", ""),
            ("file:///srv/My Folder#1", "file", "/srv/My Folder#1"),
            ("S3://Bucket/Prefix", "s3", "Bucket/Prefix"),
            ("postgresql://u:p%40@h:5432/db", "postgresql", "u:p%40@h:5432/db"),
            ("acme+v2.x-y://a", "acme+v2.x-y", "a"),
        ],
    )
    def test_a_url_is_split_and_its_address_kept_as_written(self, url, scheme, address):
        location = StorageLocation.parse(url)
        assert (location.scheme, location.address) == (scheme, address)
        assert location.options == {}

    def test_parameters_are_percent_decoded_and_a_plus_sign_stays_one(self):
        location = StorageLocation.parse("az://c?sas=a+b%2Fc==&note=%E6%96%87&empty=")
        assert location.options == {"sas": "a+b/c==", "note": "文", "empty": ""}

    def test_parameters_and_configured_options_are_merged(self):
        location = StorageLocation.parse(
            "s3://b?region=x", options={"pool_size": 3, "create": True}, source="wenchang.toml"
        )
        assert location.options == {"region": "x", "pool_size": 3, "create": True}
        assert location.source == "wenchang.toml"

    @pytest.mark.parametrize(
        ("url", "options"),
        [
            ("s3://b?region=hunter2&region=hunter2", None),
            ("s3://b?region=hunter2", {"region": "hunter2"}),
        ],
    )
    def test_an_option_given_twice_is_refused(self, url, options):
        with pytest.raises(StorageConfigurationError, match=r"'region'.* twice") as caught:
            StorageLocation.parse(url, options=options)
        assert SECRET not in str(caught.value)

    @pytest.mark.parametrize(
        "url",
        [
            "",
            "  ",
            "hunter2",
            "hunter2:/x",
            "://hunter2",
            "1s://hunter2",
            " s3://hunter2",
            "s3://hunter2\n",
            "s3://hunter2?",
            "s3://b?hunter2",
            "s3://b?=hunter2",
            "s3://b?a=1&&b=hunter2",
            "s3://b?note=%zzhunter2",
            "s3://b?note=hunter2%ff",
            "postgresql://u:p?hunter2=word@h/db",
        ],
    )
    def test_a_malformed_url_is_refused_with_its_source_and_without_being_repeated(self, url):
        with pytest.raises(StorageConfigurationError) as caught:
            StorageLocation.parse(url, source="WENCHANG_STORAGE")
        assert "WENCHANG_STORAGE" in str(caught.value)
        assert SECRET not in str(caught.value)
        assert caught.value.__cause__ is None

    @pytest.mark.parametrize("options", [{"a b": "x"}, {"region": ["hunter2"]}, {"region": None}])
    def test_a_configured_option_of_another_kind_is_refused(self, options):
        with pytest.raises(StorageConfigurationError) as caught:
            StorageLocation.parse("s3://b", options=options)
        assert SECRET not in str(caught.value)

    @pytest.mark.parametrize("url", [None, b"s3://b", 1])
    def test_arg_types_a_url_that_is_no_text_is_a_type_error(self, url):
        with pytest.raises(TypeError):
            StorageLocation.parse(url)

    def test_a_location_is_frozen_copied_hashable_and_can_be_pickled(self):
        given_options = {"region": "x"}
        location = StorageLocation.parse("s3://b", options=given_options)
        given_options["region"] = "y"
        assert location.options == {"region": "x"}
        with pytest.raises(TypeError):
            location.options["region"] = "z"
        with pytest.raises(AttributeError):
            location.scheme = "gs"
        twin = pickle.loads(pickle.dumps(location))
        assert twin == location
        assert hash(twin) == hash(location)

    @given(st.text(max_size=80))
    def test_any_text_is_parsed_or_refused_and_never_repeated(self, text):
        shown = ""
        try:
            location = StorageLocation.parse(text)
            assert f"://{location.address}" in text
        except StorageConfigurationError as error:
            shown = str(error)
        assert len(text) < 12 or text not in shown


class TestSecrets:
    @pytest.mark.parametrize(
        "url",
        [
            "postgresql://user:hunter2@host/db",
            "postgresql://user:hunter2@x/hunter2@host/db",
            "postgresql://user:http://hunter2@host/db",
            "s3://b?secret_access_key=hunter2",
            "s3://b?SessionToken=hunter2",
            "s3://b?endpoint_url=http://u:hunter2@h",
            "az://c?connection_string=AccountName=a;AccountKey=hunter2",
            "az://c?conn=AccountName=a;AccountKey=hunter2",
            "az://AccountName=a;AccountKey=hunter2;EndpointSuffix=x",
            "az://c?sas=hunter2",
            "mysql://h/db?password=hunter2",
            "mysql://h/db?pwd=hunter2",
            "gs://b?credentials=hunter2",
        ],
    )
    def test_a_secret_is_in_no_repr(self, url):
        location = StorageLocation.parse(url)
        assert SECRET not in repr(location)
        assert SECRET not in str(location)
        assert SECRET not in f"{[location]}"

    def test_what_is_no_secret_is_shown(self):
        shown = repr(StorageLocation.parse("postgresql://user:hunter2@host/db?region=eu&n=4"))
        for part in ("postgresql", "user:***@host/db", "'region': 'eu'", "the call"):
            assert part in shown


class TestOptions:
    def test_options_are_converted_to_the_types_of_the_fields(self):
        location = StorageLocation.parse(
            "s3://b?region=eu&pool_size=8&timeout=2.5&create=Yes&addressing=virtual&level=2"
            "&certificate=/x.pem&old_style=-3"
        )
        assert location.options_as(Options) == Options(
            region="eu",
            pool_size=8,
            timeout=2.5,
            create=True,
            addressing="virtual",
            level=2,
            certificate=Path("/x.pem"),
            old_style=-3,
        )

    def test_configured_values_keep_their_types(self):
        location = StorageLocation.parse(
            "s3://b", options={"pool_size": 8, "timeout": 2, "create": False, "level": 2}
        )
        assert location.options_as(Options) == Options(pool_size=8, timeout=2.0, level=2)

    def test_defaults_stand_where_nothing_is_given(self):
        assert StorageLocation.parse("s3://b").options_as(Options) == Options()

    @pytest.mark.parametrize(
        ("option", "value", "wanted"),
        [
            ("pool_size", "x-hunter2", "a whole number"),
            ("pool_size", "1.5", "a whole number"),
            ("pool_size", "", "a whole number"),
            ("pool_size", True, "a whole number"),
            ("pool_size", 2.5, "a whole number"),
            ("pool_size", "9" * 5000, "a whole number"),
            ("timeout", "soon-hunter2", "a number"),
            ("timeout", "nan", "a number"),
            ("timeout", "inf", "a number"),
            ("timeout", True, "a number"),
            ("create", "hunter2", "true or false"),
            ("create", 1, "true or false"),
            ("addressing", "hunter2", "one of: path, virtual"),
            ("level", "3", "one of: 1, 2"),
            ("level", True, "one of: 1, 2"),
            ("region", 5, "text"),
            ("certificate", "", "a path"),
        ],
    )
    def test_a_value_of_the_wrong_kind_is_refused_with_what_would_be_right(
        self, option, value, wanted
    ):
        location = StorageLocation.parse("s3://b", options={option: value})
        with pytest.raises(StorageConfigurationError) as caught:
            location.options_as(Options)
        assert f"'{option}'" in str(caught.value)
        assert str(caught.value).endswith(f"must be {wanted}")
        assert SECRET not in str(caught.value)

    def test_init_fail_an_unknown_option_lists_the_known_ones_and_the_nearest(self):
        location = StorageLocation.parse("s3://b?pool-siez=hunter2", source="--storage")
        with pytest.raises(StorageConfigurationError) as caught:
            location.options_as(Options)
        text = str(caught.value)
        assert "Did you mean 'pool_size'?" in text
        assert (
            "addressing, certificate, create, level, old_style, pool_size, region, timeout" in text
        )
        assert "--storage" in text
        assert "built" not in text
        assert SECRET not in text

    def test_init_fail_a_missing_option_is_named(self):
        with pytest.raises(StorageConfigurationError, match="needs the option 'account'"):
            StorageLocation.parse("az://c").options_as(Demanding)

    def test_a_field_of_an_unsupported_type_is_a_mistake_of_the_backend(self):
        @dataclass
        class Odd:
            items: dict = field(default_factory=dict)

        with pytest.raises(TypeError):
            StorageLocation.parse("s3://b?items=1").options_as(Odd)


def test_the_nearest_name_ignores_case_and_dashes_and_may_be_none():
    assert nearest("Pool-Size", ["pool_size", "region"]) == "pool_size"
    assert nearest("xyz", ["pool_size", "region"]) is None
