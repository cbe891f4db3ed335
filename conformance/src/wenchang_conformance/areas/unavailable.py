"""Outages: bounded calls, busy answers, refusals, and what errors say and do not say."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import pytest

from wenchang.errors import BackendUnavailableError
from wenchang.storage import PreconditionFailedError, StorageError, StorageRejectedError
from wenchang_conformance.areas.scene import set_up
from wenchang_conformance.bench import NotRun
from wenchang_conformance.hooks import FaultKind
from wenchang_conformance.racing import race
from wenchang_conformance.requirement import requirement
from wenchang_conformance.trace import shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from wenchang_conformance.areas.scene import Scene
    from wenchang_conformance.bench import Bench

__all__ = ["UnavailableArea"]

_BUSY: Final = (FaultKind.BUSY_CONFLICT, FaultKind.BUSY_RATE, FaultKind.BUSY_SERVER)
_GRACE: Final = 5.0
_PRIVATE_KEY: Final = "private-folder/private-name.md"
_PRIVATE_VALUE: Final = "private-value"
_PRIVATE_BODY: Final = b"private-body"


class UnavailableArea:
    """Cases about services that refuse, hang or are busy."""

    @requirement("out-bounded")
    @pytest.mark.parametrize(
        "fault",
        [
            FaultKind.HANG,
            FaultKind.HANG_APPLIED,
            FaultKind.DRIP,
            FaultKind.REFUSED,
            FaultKind.BARE_ERROR,
        ],
    )
    def test_every_call_ends_within_its_deadline(self, bench: Bench, fault: FaultKind) -> None:
        """Harm every request and wait for each kind of call."""
        scene = set_up(bench, fault)
        calls = _calls(scene)
        scene.inject(fault, times=None, on="any")
        patience = 2 * bench.hooks.deadline + _GRACE
        results = race(
            bench,
            [
                partial(
                    bench.within, patience, call, f"{name} while every request meets {fault.value}"
                )
                for name, call in calls.items()
            ],
        )
        scene.calm()
        for name, result in zip(calls, results, strict=True):
            if result.error is not None:
                raise result.error
            bench.require(
                isinstance(result.value, BackendUnavailableError),
                f"{name} while every request meets {fault.value} must raise "
                f"BackendUnavailableError, but gave {shown(result.value)}",
            )

    @requirement("out-busy")
    @pytest.mark.parametrize("fault", _BUSY)
    def test_a_busy_answer_is_retried(self, bench: Bench, fault: FaultKind) -> None:
        """Answer busy twice, then serve; each call succeeds."""
        scene = set_up(bench, fault)
        for name, call in _calls(scene).items():
            scene.inject(fault, times=2, on="any")
            with scene.counted(name):
                bench.accepted(f"{name}; its first two requests were answered {fault.value}", call)
            scene.calm()

    @requirement("out-busy")
    @pytest.mark.parametrize("fault", _BUSY)
    def test_busy_for_ever_is_an_outage_and_no_conflict(
        self, bench: Bench, fault: FaultKind
    ) -> None:
        """Answer busy to everything; each write says that nothing was applied."""
        scene = set_up(bench, fault)
        calls = {name: call for name, call in _calls(scene).items() if name in _WRITES}
        scene.inject(fault, times=None, on="any")
        results = race(
            bench,
            [partial(bench.settled, name, call) for name, call in calls.items()],
        )
        scene.calm()
        for name, result in zip(calls, results, strict=True):
            if result.error is not None:
                raise result.error
            bench.require(
                result.value is not None and result.value.ending == "not_applied",
                f"{name} while everything is answered {fault.value} must raise "
                f"BackendUnavailableError with outcome='not_applied', but it {result.value}",
            )

    @requirement("out-mapped")
    def test_refused_credentials_are_a_rejection(self, bench: Bench) -> None:
        """Refuse every request for good."""
        scene = set_up(bench, FaultKind.REJECTED)
        calls = _calls(scene)
        scene.inject(FaultKind.REJECTED, times=None, on="any")
        for name, call in calls.items():
            error = bench.refused(
                StorageRejectedError, f"{name}; every request is refused for its credentials", call
            )
            _discreet(bench, error, name)
        scene.calm()
        bench.holds(scene.truth, "k/replace", _PRIVATE_BODY, "every write was refused")

    @requirement("out-mapped")
    @pytest.mark.parametrize(
        "fault", [FaultKind.REFUSED, FaultKind.BARE_ERROR, FaultKind.REQUEST_LOST]
    )
    def test_an_outage_is_our_error_with_its_cause(self, bench: Bench, fault: FaultKind) -> None:
        """Harm every request; each call raises our error, and its text gives nothing away."""
        scene = set_up(bench, fault)
        calls = _calls(scene)
        scene.inject(fault, times=None, on="any")
        results = race(bench, list(calls.values()))
        scene.calm()
        for name, result in zip(calls, results, strict=True):
            error = result.error
            bench.require(
                isinstance(error, BackendUnavailableError),
                f"{name} while every request meets {fault.value} must raise "
                f"BackendUnavailableError, but gave {result}",
            )
            if error is not None:
                bench.require(
                    error.__cause__ is not None,
                    f"{name}: the {type(error).__name__} has no __cause__, the SDK's error is lost",
                )
                _discreet(bench, error, name)

    @requirement("out-mapped")
    def test_no_ordinary_error_gives_anything_away(self, bench: Bench) -> None:
        """Look at the texts of conflicts and refused arguments."""
        storage = bench.open()
        version = storage.put(_PRIVATE_KEY, _PRIVATE_BODY, {"private": _PRIVATE_VALUE})
        storage.put(_PRIVATE_KEY, _PRIVATE_BODY, {"private": _PRIVATE_VALUE})
        bad_key = _PRIVATE_KEY + "/"
        bad_map = {"private": _PRIVATE_VALUE + "\x00"}
        for name, call, arguments in (
            ("a stale replace", storage.put_if_version, (_PRIVATE_KEY, _PRIVATE_BODY, {}, version)),
            (
                "a create over an object",
                storage.put_if_version,
                (_PRIVATE_KEY, _PRIVATE_BODY, {}, None),
            ),
            ("a stale delete", storage.delete_if_version, (_PRIVATE_KEY, version)),
            ("an invalid key", storage.get, (bad_key,)),
            ("an invalid map", storage.put, (_PRIVATE_KEY, _PRIVATE_BODY, bad_map)),
            (
                "an oversized map",
                storage.put,
                (_PRIVATE_KEY, b"", {"private": _PRIVATE_VALUE * 500}),
            ),
            ("an invalid prefix", storage.list_page, (_PRIVATE_KEY + "\x00", None, 1)),
        ):
            error = bench.refused(StorageError, name, call, *arguments)
            _discreet(bench, error, name)

    @requirement("out-mapped")
    def test_each_error_of_the_sdk_becomes_one_of_ours(self, bench: Bench) -> None:
        """Walk the SDK's errors with what the backend makes of each."""
        if bench.hooks.sdk_errors is None:
            raise NotRun("sdk_errors", "the hook 'sdk_errors' is not given")
        for error, ours in bench.hooks.sdk_errors():
            bench.require(
                isinstance(ours, StorageError | BackendUnavailableError),
                f"the SDK's {type(error).__name__} becomes {type(ours).__name__}, which is none of "
                "wenchang's errors",
            )
            bench.require(
                ours.__cause__ is error or isinstance(ours, PreconditionFailedError),
                f"the SDK's {type(error).__name__} becomes {type(ours).__name__} without being its cause",
            )


_WRITES: Final = frozenset({"put", "create", "replace", "delete"})


def _calls(scene: Scene) -> dict[str, Callable[[], object]]:
    """Prepare the objects and return one call of each kind by name."""
    storage = scene.storage
    metadata = {"private": _PRIVATE_VALUE}
    replaced = scene.truth.put("k/replace", _PRIVATE_BODY, metadata)
    deleted = scene.truth.put("k/delete", _PRIVATE_BODY, metadata)
    scene.truth.put(_PRIVATE_KEY, _PRIVATE_BODY, metadata)
    return {
        "get": lambda: storage.get(_PRIVATE_KEY),
        "list_page": lambda: storage.list_page("private-folder/", None, 10),
        "put": lambda: storage.put(_PRIVATE_KEY, _PRIVATE_BODY, metadata),
        "create": lambda: storage.put_if_version(
            "private-folder/new", _PRIVATE_BODY, metadata, None
        ),
        "replace": lambda: storage.put_if_version("k/replace", _PRIVATE_BODY, metadata, replaced),
        "delete": lambda: storage.delete_if_version("k/delete", deleted),
    }


def _discreet(bench: Bench, error: BaseException, what: str) -> None:
    """Require that text and repr of an error hold nothing private."""
    __tracebackhide__ = True
    text = f"{error} {error!r}"
    private = (_PRIVATE_KEY, "private-name", "private-folder", _PRIVATE_VALUE, "private-body")
    for secret in (*private, *bench.hooks.secrets):
        found = secret and secret in text
        label = repr(secret) if secret in private else "a secret that the hooks name"
        bench.require(
            not found,
            f"{what}: the text or repr of {type(error).__name__} holds {label}; errors hold no key, "
            "metadata, address or credential",
        )
