"""The zoo: every member, with the requirement that it breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from wenchang.storage import Storage
from wenchang.storage.outcomes import RetryPolicy
from wenchang_conformance.broken import (
    keys,
    lifecycle,
    listing,
    metadata,
    outcomes,
    versions,
    writing,
)
from wenchang_conformance.broken.member import CALM, RACING, REMOTE, Member, in_memory
from wenchang_conformance.broken.plain import PlainStorage, State
from wenchang_conformance.broken.racing import RACERS
from wenchang_conformance.hooks import StorageHooks
from wenchang_conformance.simulated import Link, SimulatedStorage, simulated_hooks

__all__ = ["MEMBERS", "RIGHT"]


def _member(storage: type[PlainStorage], breaks: str, *also: str) -> Member:
    return Member(
        name=storage.__name__, breaks=breaks, also=frozenset(also), hooks=in_memory(storage)
    )


def _reader(storage: type[PlainStorage], breaks: str, *also: str) -> Member:
    return replace(_member(storage, breaks, *also), areas=frozenset({"get_put"}))


def _not_local() -> StorageHooks:
    """Return hooks of a store whose calls could lose answers, though none is made to."""
    return replace(in_memory(writing.KeyInTheError)(), local=False)


def _remote(client: type[SimulatedStorage], breaks: str, *also: str) -> Member:
    def open_client(link: Link, policy: RetryPolicy) -> Storage:
        return client(link, policy)

    return Member(
        name=client.__name__,
        breaks=breaks,
        also=frozenset(also),
        hooks=lambda: simulated_hooks(open_client),
        areas=REMOTE,
    )


def _lost_on_reopen() -> StorageHooks:
    """Return hooks whose store forgets everything when it is opened again."""
    state = State()
    return StorageHooks(
        open=lambda: PlainStorage(state),
        reopen=lambda: PlainStorage(State()),
        durable=True,
        shared=False,
        local=True,
    )


def _loses_last_write() -> StorageHooks:
    """Return hooks whose store forgets the newest write when it is opened again."""
    state = State()

    def reopen() -> Storage:
        kept = State(objects=dict(state.objects))
        if kept.objects:
            kept.objects.popitem()
        return PlainStorage(kept)

    return StorageHooks(
        open=lambda: PlainStorage(state), reopen=reopen, durable=True, shared=False, local=True
    )


def _takes_wrong_options() -> StorageHooks:
    """Return hooks whose backend opens with an option that it does not know."""
    return replace(in_memory(PlainStorage)(), wrong_options={"no_such_option": PlainStorage})


def _imports_its_sdk() -> StorageHooks:
    """Return hooks of a package that imports its SDK at once."""
    return replace(
        in_memory(PlainStorage)(), import_module="wenchang_conformance", sdk_modules=("os",)
    )


def _made(name: str, breaks: str, hooks: Callable[[], StorageHooks], *also: str) -> Member:
    return Member(name=name, breaks=breaks, also=frozenset(also), hooks=hooks, areas=RACING)


def _members() -> Iterator[Member]:
    yield _member(keys.CaseFolded, "key-exact", "list-prefix", "list-start")
    yield _member(keys.NfcFolded, "key-exact", "list-prefix", "list-start")
    yield _member(keys.SpacesTrimmed, "key-exact")
    yield _member(keys.PlusDecoded, "key-exact", "list-start")
    yield _member(keys.EncodedOnce, "key-exact", "list-start")
    yield _member(keys.SlashesCollapsed, "key-refused")
    yield _member(keys.TakesAnyKey, "key-refused")
    yield _member(keys.CharactersCounted, "key-refused")
    yield _member(keys.RefusesLongKeys, "key-range")
    yield _member(metadata.StripsValues, "meta-exact", "list-meta", "meta-limit")
    yield _member(metadata.LowerCasesValues, "meta-exact", "list-meta")
    yield _member(metadata.EmptyValueDropped, "meta-exact", "list-meta")
    yield _member(metadata.NewlineReplaced, "meta-exact", "meta-limit")
    yield _member(metadata.HeadersDecoded, "meta-exact")
    yield _member(
        metadata.LeaksItsMarks,
        "meta-exact",
        "arg-types",
        "cas-replace",
        "copy-in",
        "list-meta",
        "meta-limit",
    )
    yield _member(metadata.MergesMetadata, "meta-exact", "list-meta", "meta-limit")
    yield _member(metadata.TakesAnyMetadata, "meta-refused", "meta-limit")
    yield _member(metadata.SmallMetadata, "meta-limit")
    yield _member(metadata.AliasesTheCallersMap, "copy-in")
    yield _member(metadata.AliasesTheStoredMap, "copy-in")
    yield _member(metadata.BodyStripped, "data-exact")
    yield _member(metadata.BodyDecoded, "data-exact")
    yield _member(
        metadata.EmptyBodyIsAbsent, "data-exact", "cas-create", "list-limit", "meta-exact"
    )
    yield _reader(metadata.MetadataOfAnotherWrite, "get-atomic")
    yield _member(writing.TruncatesBodies, "data-exact", "get-atomic")
    yield _member(writing.SmallBodies, "data-exact")
    yield _member(
        versions.IntegerVersion,
        "version-opaque",
        "arg-types",
        "cas-create",
        "cas-replace",
        "copy-in",
        "data-exact",
        "delete-match",
        "get-absent",
        "get-atomic",
        "key-exact",
        "key-range",
        "list-limit",
        "list-meta",
        "meta-exact",
        "put-replace",
        "version-foreign",
        "version-fresh",
        "version-same",
    )
    yield _member(versions.LongVersion, "version-opaque")
    yield _member(versions.QuotedInListings, "version-same")
    yield _member(
        versions.PutReportsAnother,
        "version-same",
        "cas-create",
        "cas-replace",
        "copy-in",
        "data-exact",
        "delete-match",
        "get-absent",
        "key-range",
        "list-limit",
        "list-meta",
        "meta-exact",
        "put-replace",
        "version-fresh",
        "version-opaque",
    )
    yield _member(versions.BodyHashVersion, "version-fresh", "version-foreign")
    yield _member(versions.ContentHashVersion, "version-fresh", "version-foreign")
    yield _member(
        versions.SizeVersion,
        "version-fresh",
        "cas-replace",
        "delete-match",
        "get-atomic",
        "version-foreign",
    )
    yield _member(versions.RestartsAfterDelete, "version-fresh", "delete-match", "version-foreign")
    yield _member(versions.UnchangedKeepsVersion, "version-fresh")
    yield _member(versions.KeysShareVersions, "version-foreign")
    yield _member(versions.EmptyMeansCreate, "version-foreign")
    yield _member(versions.ZeroMeansCreate, "version-foreign")
    yield _member(versions.StripsExpected, "version-foreign")
    yield _member(versions.ParsesVersions, "version-foreign")
    yield _member(
        writing.AbsentIsAnError,
        "get-absent",
        "cas-replace",
        "delete-match",
        "get-atomic",
        "key-exact",
        "meta-refused",
        "version-foreign",
    )
    yield _member(
        writing.DropsDeletedObjectLate, "get-absent", "cas-replace", "delete-match", "key-exact"
    )
    yield _member(
        writing.PutRefusesToReplace,
        "put-replace",
        "cas-create",
        "cas-replace",
        "data-exact",
        "delete-match",
        "get-atomic",
        "list-meta",
        "meta-exact",
        "meta-limit",
        "version-fresh",
    )
    yield _member(writing.CreateReplaces, "cas-create", "data-exact")
    yield _member(writing.ReplaceCreates, "cas-replace", "version-foreign")
    yield _member(writing.WeakReplace, "cas-replace", "version-foreign", "version-fresh")
    yield _member(writing.ChangesAndRefuses, "cas-replace", "cas-create", "version-foreign")
    yield _member(
        writing.ThrottledConflict,
        "cas-replace",
        "cas-create",
        "data-exact",
        "delete-match",
        "version-foreign",
        "version-fresh",
    )
    yield _member(writing.DeleteIgnoresVersion, "delete-match", "version-foreign", "version-fresh")
    yield _member(writing.DeleteOfAbsentIsFine, "delete-match", "version-foreign")
    yield replace(_member(writing.KeyInTheError, "out-mapped"), hooks=_not_local, areas=REMOTE)
    yield _member(listing.LikePrefix, "list-prefix")
    yield _member(listing.PatternPrefix, "list-prefix")
    yield _member(listing.CaseInsensitivePrefix, "list-prefix", "list-start")
    yield _member(listing.SegmentPrefix, "list-prefix", "list-start")
    yield _member(
        listing.PathPrefix,
        "list-prefix",
        "copy-in",
        "data-exact",
        "key-range",
        "list-start",
        "version-opaque",
        "version-same",
    )
    yield _member(listing.ReverseOrder, "list-order", "list-limit", "list-start")
    yield _member(listing.DirectoryOrder, "list-order", "list-start")
    yield _member(listing.Utf16Order, "list-order", "list-start")
    yield _member(listing.LinguisticOrder, "list-order", "list-start")
    yield _member(listing.InclusiveStart, "list-start", "list-limit")
    yield _member(listing.StartMustExist, "list-start")
    yield _member(listing.PageBorderLoss, "list-start", "key-refused", "list-limit")
    yield _member(listing.FullPageEnds, "list-limit")
    yield _member(listing.ShortPages, "list-limit", "key-exact", "list-prefix", "list-start")
    yield _member(listing.EmptyPageEnds, "list-limit", "key-refused")
    yield _member(listing.PageOverflow, "list-limit")
    yield _member(listing.AllInOnePage, "list-limit")
    yield _member(lifecycle.ListLimited, "list-limit", "key-refused")
    yield _member(listing.NoMetadataInListings, "list-meta")
    yield _member(
        listing.BodiesInListings,
        "list-meta",
        "copy-in",
        "data-exact",
        "delete-match",
        "key-exact",
        "key-range",
        "list-limit",
        "list-order",
        "list-prefix",
        "list-start",
        "version-same",
    )
    yield _reader(lifecycle.TornReads, "get-atomic")
    yield from RACERS
    yield _made("LostOnReopen", "durable", _lost_on_reopen)
    yield _made("LosesTheLastWrite", "durable", _loses_last_write)
    yield _made("TakesWrongOptions", "init-fail", _takes_wrong_options)
    yield _made("ImportsItsSdk", "init-offline", _imports_its_sdk)
    yield _remote(outcomes.FalseConflictAfterLoss, "out-definite")
    yield _remote(outcomes.UnknownIsConflict, "out-definite")
    yield _remote(outcomes.LostIsNotApplied, "out-landed")
    yield _remote(outcomes.FalseSuccessAfterRefusal, "out-landed")
    yield _remote(outcomes.ForgetsLineage, "out-landed")
    yield _remote(outcomes.ResendsCreates, "out-unknown")
    yield _remote(outcomes.ResendsPuts, "out-unknown")
    yield _remote(outcomes.ResendsWithoutReading, "out-delete")
    yield _remote(outcomes.LateDeleteIsConflict, "out-delete")
    yield _remote(outcomes.BusyIsConflict, "out-busy")
    yield _remote(outcomes.BusyIsExists, "out-busy")
    yield _remote(outcomes.BelievesTornAnswers, "out-token")
    yield _remote(outcomes.HangsForever, "out-bounded")
    yield _remote(outcomes.UnreadRefusals, "out-definite")
    yield _remote(outcomes.RejectionRetried, "out-mapped")
    yield _remote(outcomes.UnmappedErrors, "out-mapped")
    yield _remote(outcomes.LeaksCredentials, "out-mapped")
    yield _remote(outcomes.KeyInTheText, "out-mapped")
    for client, breaks in (
        (outcomes.NeverProves, "endpoint-proof"),
        (outcomes.ForgetsFormat, "format-guard"),
        (outcomes.HidesDamage, "obj-foreign"),
    ):
        yield replace(_remote(client, breaks), areas=frozenset({"lifecycle"}))


MEMBERS: Final[tuple[Member, ...]] = tuple(_members())
"""All members."""

RIGHT: Final[tuple[Member, ...]] = (
    Member(name="PlainStorage", breaks="", hooks=in_memory(PlainStorage), areas=CALM | RACING),
    Member(name="SimulatedStorage", breaks="", hooks=simulated_hooks, areas=REMOTE),
)
"""The two right storages that the members are made from: nothing may fail on them."""
