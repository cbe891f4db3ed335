"""What an agent sees of each error: one case for each kind, on both surfaces."""

from __future__ import annotations

import copy
import logging
import pickle

import pytest
from jsonschema import Draft202012Validator

from wenchang.errors import (
    BackendUnavailableError,
    ErrorCategory,
    FileQuotaExceededError,
    IdentityUnavailableError,
    InvalidArgumentError,
    MetadataFormatError,
    NotFoundError,
    OversizeWriteError,
    PermanentError,
    RecoverableError,
    ReplaceFactMatchError,
    ResolverFailureError,
    RestrictedScopeError,
    TransientError,
    VersionConflictError,
    WenchangError,
)
from wenchang.identity import (
    Identity,
    ResolutionFailure,
    ResolutionUnavailable,
    SandboxResolver,
    ScopeGrant,
)
from wenchang.schemas import error_schema
from wenchang.scope import check_write
from wenchang.storage import StorageError
from wenchang.tools import render_error, render_result
from wenchang.tools._rendering import ERROR_NAMES

PATH = "user/zq-sentinel-u-17/prefs/tea.md"
WHERE = {"scope": "user", "area": "prefs", "name": "tea"}
TEA = {"scope": "user", "area": "prefs", "name": "tea"}
NEW = {"content": "x\n", "description": "d", "aliases": ["a"], "expected_version": None}
EVERY_ERROR = [
    VersionConflictError(PATH, "text", "v1", description="d", aliases=("a",)),
    VersionConflictError(PATH, "text", "v1"),
    OversizeWriteError(PATH, 20_000, 16_384),
    FileQuotaExceededError(PATH, 500),
    ReplaceFactMatchError(PATH, "text", "v1", 0),
    ReplaceFactMatchError(PATH, "text", "v1", 3),
    InvalidArgumentError("cursor", "it is not valid"),
    NotFoundError(PATH, "file_absent"),
    NotFoundError("nowhere", "invalid_path"),
    RestrictedScopeError(PATH, "user", "system_read_only"),
    RestrictedScopeError(PATH, "user", "not_granted"),
    RestrictedScopeError(PATH, "user", "role_required", frozenset({"owner", "admin"})),
    ResolverFailureError("no such token"),
    IdentityUnavailableError("the directory is down"),
    BackendUnavailableError("timeout", "it took too long", outcome="unknown"),
    BackendUnavailableError("unavailable", outcome="not_applied"),
    BackendUnavailableError("unavailable"),
    MetadataFormatError("aliases", "it is not a JSON array of strings"),
    UnicodeDecodeError("utf-8", b"abc\xff", 3, 4, "invalid start byte"),
    StorageError("a key of the storage"),
    KeyError(PATH),
    RuntimeError(f"secret {PATH}"),
]

IDS = [f"{number}-{type(error).__name__}" for number, error in enumerate(EVERY_ERROR)]
OURS = [error for error in EVERY_ERROR if isinstance(error, WenchangError)]


class FailingClient:
    """A client whose every operation raises."""

    def __init__(self, error):
        self.error = error

    def _fail(self, *_args, **_kwargs):
        raise self.error

    read_file = write_file = append_line = replace_fact = _fail
    delete_file = list_prefix = get_memory_index = _fail


@pytest.fixture
def failing(world):
    """Return the payload that each surface shows for an error of the client, after comparing them."""

    def call(error, make_direct):
        world.client = FailingClient(error)
        direct = make_direct(world).call("read_file", **TEA)
        with world.connect() as connected:
            over_mcp = connected.call("read_file", **TEA)
        assert direct.payload == over_mcp.payload
        assert direct.is_error
        assert over_mcp.is_error
        return direct.payload

    return call


def extras(payload):
    return {
        key: value
        for key, value in payload.items()
        if key not in {"error", "category", "message", "scope", "area", "name"}
    }


@pytest.mark.parametrize("error", EVERY_ERROR, ids=IDS)
def test_mem_064_a_payload_is_the_class_the_category_the_message_and_few_extras(error):
    payload = render_error(error)

    Draft202012Validator(error_schema()).validate(payload)
    assert list(payload)[:3] == ["error", "category", "message"]
    assert "zq-sentinel" not in str(payload)
    assert None not in payload.values()


@pytest.mark.parametrize("error", OURS, ids=IDS[: len(OURS)])
def test_mem_064_the_message_is_the_detail_with_the_guidance_of_the_category(error):
    payload = render_error(error)

    assert payload["message"].endswith(error.message)
    assert error.message == f"{error.detail} {type(error).guidance}"
    assert payload["error"] == type(error).__name__


def test_mem_064_rendering_survives_copies_and_pickles():
    for error in EVERY_ERROR:
        for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):
            assert render_error(again) == render_error(error)


def test_mem_065_the_category_is_one_of_four():
    assert {render_error(error)["category"] for error in EVERY_ERROR} == set(ErrorCategory)
    assert {render_error(error)["error"] for error in EVERY_ERROR} <= set(ERROR_NAMES)


def test_mem_065_an_unknown_failure_shows_a_generic_text_only(make_direct, failing, caplog):
    payload = failing(RuntimeError("password hunter2"), make_direct)

    assert payload["error"] == "InternalError"
    assert payload["category"] == "internal"
    assert "hunter2" not in str(payload)
    assert "RuntimeError" not in str(payload)


def test_mem_065_an_internal_failure_is_logged_with_its_traceback(world, caplog):
    world.client = FailingClient(RuntimeError("why"))

    with world.connect() as connected:
        connected.call("read_file", **TEA)

    records = [record for record in caplog.records if record.name == "wenchang.mcp"]
    assert [record.levelno for record in records] == [logging.ERROR]
    assert records[0].exc_info[0] is RuntimeError
    assert "tea" not in records[0].getMessage()


def test_mem_065_an_expected_failure_is_not_logged(world, caplog):
    with world.connect() as connected:
        connected.call("read_file", **TEA)

    assert [record for record in caplog.records if record.name.startswith("wenchang")] == []


def test_mem_066_where_the_location_parses_it_is_shown_without_the_entity():
    payload = render_error(NotFoundError(PATH, "file_absent"))

    assert {key: payload[key] for key in WHERE} == WHERE
    assert "scope user, area prefs, name tea" in payload["message"]


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("user/zq-sentinel/", {"scope": "user"}),
        ("user/zq-sentinel/prefs/", {"scope": "user", "area": "prefs"}),
        ("user/", {"scope": "user"}),
        ("user/zq-sentinel/prefs/tea.txt", {}),
        ("zq-sentinel", {}),
        ("a/zq-sentinel//", {}),
        ("", {}),
        ("/", {}),
        (None, {}),
        ("a/b/c/d/e/", {}),
    ],
)
def test_mem_066_a_prefix_shows_scope_and_area_and_anything_else_nothing(path, shown):
    payload = render_error(NotFoundError(path, "invalid_path"))

    assert {key: payload[key] for key in WHERE if key in payload} == shown
    assert "zq-sentinel" not in str(payload)


def test_mem_067_version_conflict(world, make_direct, surface):
    version = world.seed("user", "prefs", "tea", "now\n", description="D", aliases=("x", "y"))

    payload = surface.call("write_file", **TEA, **(NEW | {"expected_version": "old"})).payload

    assert (payload["error"], payload["category"]) == ("VersionConflictError", "recoverable")
    assert list(extras(payload)) == ["content", "version", "description", "aliases"]
    assert extras(payload) == {
        "content": "now\n",
        "version": version,
        "description": "D",
        "aliases": ["x", "y"],
    }
    again = surface.call("write_file", **TEA, **(NEW | {"expected_version": payload["version"]}))
    assert not again.is_error


def test_mem_068_oversize_write(make, make_direct):
    world = make(max_file_bytes=64)
    for surface in (make_direct(world),):
        payload = surface.call("write_file", **TEA, **(NEW | {"content": "é" * 33})).payload

    assert (payload["error"], payload["category"]) == ("OversizeWriteError", "recoverable")
    assert extras(payload) == {"size": 66, "limit": 64}
    assert {key: payload[key] for key in WHERE} == WHERE


def test_mem_069_file_quota_exceeded(make, make_direct):
    world = make(max_files_per_entity=1)
    world.seed("user", "prefs", "coffee")

    payload = make_direct(world).call("write_file", **TEA, **NEW).payload

    assert (payload["error"], payload["category"]) == ("FileQuotaExceededError", "recoverable")
    assert extras(payload) == {"limit": 1}


def test_mem_070_replace_fact_match(world, surface):
    version = world.seed("user", "prefs", "tea", "a a")

    payload = surface.call(
        "replace_fact", **TEA, old_string="a", new_string="b", expected_version=version
    ).payload

    assert (payload["error"], payload["category"]) == ("ReplaceFactMatchError", "recoverable")
    assert extras(payload) == {"content": "a a", "version": version, "match_count": 2}


def test_mem_071_invalid_argument_has_no_location(surface):
    payload = surface.call("read_file", scope="user", area="Bad", name="tea").payload

    assert list(payload) == ["error", "category", "message", "argument"]
    assert payload["category"] == "recoverable"


@pytest.mark.parametrize("reason", ["file_absent", "invalid_path"])
def test_mem_072_not_found(failing, make_direct, reason):
    payload = failing(NotFoundError(PATH, reason), make_direct)

    assert (payload["error"], payload["category"]) == ("NotFoundError", "recoverable")
    assert extras(payload) == {"reason": reason}


def test_mem_073_restricted_scope(world, surface):
    system = surface.call("write_file", scope="user", area="system", name="a", **NEW).payload
    role = surface.call("write_file", scope="office", area="a", name="a", **NEW).payload

    assert (system["error"], system["category"]) == ("RestrictedScopeError", "permanent")
    assert extras(system) == {"reason": "system_read_only"}
    assert extras(role) == {"reason": "role_required", "required_roles": ["admin", "owner"]}
    assert system["scope"] == "user"
    assert role["scope"] == "office"


def test_mem_074_resolver_failure(world, surface):
    world.resolver = type("R", (), {"resolve": lambda *_: ResolutionFailure("unknown token")})()
    with world.connect() as connected:
        caller = connected if surface.name == "mcp" else surface
        payload = caller.call("read_file", **TEA).payload

    assert (payload["error"], payload["category"]) == ("ResolverFailureError", "permanent")
    assert list(payload) == ["error", "category", "message"]
    assert "unknown token" in payload["message"]


def test_mem_074_a_resolver_that_cannot_say_is_a_passing_condition(world, surface):
    world.resolver = type("R", (), {"resolve": lambda *_: ResolutionUnavailable("later")})()
    with world.connect() as connected:
        caller = connected if surface.name == "mcp" else surface
        payload = caller.call("read_file", **TEA).payload

    assert (payload["error"], payload["category"]) == ("IdentityUnavailableError", "transient")


@pytest.mark.parametrize("reason", ["timeout", "unavailable"])
def test_mem_075_backend_unavailable(failing, make_direct, reason):
    payload = failing(BackendUnavailableError(reason), make_direct)

    assert (payload["error"], payload["category"]) == ("BackendUnavailableError", "transient")
    assert extras(payload) == {"reason": reason}


def test_mem_076_invalid_argument_takes_a_name_and_a_detail():
    for wrong, error in ((5, TypeError), (None, TypeError), ("", ValueError)):
        with pytest.raises(error):
            InvalidArgumentError(wrong, "x")
    texts = {
        ("scope", "it is wrong"): "Argument scope is invalid: it is wrong.",
        ("scope", "it is wrong."): "Argument scope is invalid: it is wrong.",
        ("scope", "why?"): "Argument scope is invalid: why?",
        ("scope", "no!"): "Argument scope is invalid: no!",
        ("scope", "  "): "Argument scope is invalid.",
    }
    for (argument, detail), text in texts.items():
        payload = render_error(InvalidArgumentError(argument, detail))
        assert payload["message"] == f"{text} {RecoverableError.guidance}"


def test_mem_077_the_tools_name_only_their_own_parameters(direct):
    named = {
        direct.call("read_file", scope="x", area="a", name="b").payload["argument"],
        direct.call("read_file", scope="user", area="A", name="b").payload["argument"],
        direct.call("read_file", scope="user", area="a", name="").payload["argument"],
        direct.call("list_prefix", scope="user", cursor="x").payload["argument"],
    }
    assert named == {"scope", "area", "name", "cursor"}


def test_mem_078_not_granted_comes_from_the_core_check_only(world, surface):
    identity = Identity({"user": ScopeGrant("someone-else", "owner")})
    with pytest.raises(RestrictedScopeError) as caught:
        check_write(PATH, identity, world.policy)
    assert render_error(caught.value)["reason"] == "not_granted"
    assert "required_roles" not in render_error(caught.value)

    world.resolver = SandboxResolver(identity)
    payload = surface.call("write_file", scope="project", area="a", name="b", **NEW).payload
    assert payload["error"] == "InvalidArgumentError"


def test_mem_078_required_roles_go_with_role_required_only():
    with pytest.raises(ValueError):
        RestrictedScopeError(PATH, "user", "not_granted", frozenset({"a"}))
    with pytest.raises(ValueError):
        RestrictedScopeError(PATH, "user", "role_required")


def test_mem_079_an_unknown_outcome_is_shown_and_says_to_read_first(failing, make_direct):
    payload = failing(BackendUnavailableError("timeout", outcome="unknown"), make_direct)

    assert extras(payload) == {"reason": "timeout", "outcome": "unknown"}
    assert "read the file before repeating" in payload["message"]


def test_mem_079_repeating_a_guarded_call_never_doubles_a_change(world, surface):
    """The change landed although the first answer said that nobody knows."""
    version = world.seed("user", "prefs", "tea", "- [stated] One.\n")
    line = {"line": "- [stated] Two.", "expected_version": version}
    surface.call("append_line", **TEA, **line)

    repeated = surface.call("append_line", **TEA, **line).payload

    assert repeated["error"] == "VersionConflictError"
    assert repeated["content"].count("Two.") == 1


@pytest.mark.parametrize("base", [RecoverableError, PermanentError, TransientError])
def test_an_adopters_own_error_is_shown_under_its_category(base):
    class OwnError(base):
        secret = "x"

    payload = render_error(OwnError("Something of ours."))

    assert payload["error"] == base.__name__
    assert payload["category"] == base.category
    assert payload["message"].startswith("Something of ours.")


def test_an_adopters_subclass_is_shown_as_the_class_it_refines():
    class SlowError(BackendUnavailableError):
        pass

    assert render_error(SlowError("timeout"))["error"] == "BackendUnavailableError"


def test_rendering_never_raises(caplog):
    class BrokenError(RecoverableError):
        @property
        def message(self):
            raise RuntimeError("no message")

    class NoCategoryError(WenchangError):
        pass

    assert render_error(BrokenError("x"))["category"] == "internal"
    assert render_error(NoCategoryError("x"))["category"] == "internal"


def test_rendering_a_result_refuses_other_values():
    with pytest.raises(TypeError):
        render_result("text")
