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
from wenchang_conformance.broken.member import Member, in_memory
from wenchang_conformance.broken.plain import PlainStorage, State
from wenchang_conformance.hooks import StorageHooks
from wenchang_conformance.simulated import Link, SimulatedStorage, simulated_hooks

__all__ = ["MEMBERS", "RIGHT"]


def _member(storage: type[PlainStorage], breaks: str, *also: str) -> Member:
    return Member(
        name=storage.__name__, breaks=breaks, also=frozenset(also), hooks=in_memory(storage)
    )


def _remote(client: type[SimulatedStorage], breaks: str, *also: str) -> Member:
    def open_client(link: Link, policy: RetryPolicy) -> Storage:
        return client(link, policy)

    return Member(
        name=client.__name__,
        breaks=breaks,
        also=frozenset(also),
        hooks=lambda: simulated_hooks(open_client),
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
        in_memory(PlainStorage)(), import_module="wenchang_conformance", sdk_modules=("importlib",)
    )


def _made(name: str, breaks: str, hooks: Callable[[], StorageHooks], *also: str) -> Member:
    return Member(name=name, breaks=breaks, also=frozenset(also), hooks=hooks)


def _members() -> Iterator[Member]:
    yield _member(keys.CaseFolded, "key-exact")
    yield _member(keys.NfcFolded, "key-exact")
    yield _member(keys.SpacesTrimmed, "key-exact")
    yield _member(keys.PlusDecoded, "key-exact")
    yield _member(keys.EncodedOnce, "key-exact")
    yield _member(keys.SlashesCollapsed, "key-refused")
    yield _member(keys.TakesAnyKey, "key-refused")
    yield _member(keys.CharactersCounted, "key-refused")
    yield _member(keys.RefusesLongKeys, "key-range")
    yield _member(metadata.StripsValues, "meta-exact")
    yield _member(metadata.LowerCasesValues, "meta-exact")
    yield _member(metadata.EmptyValueDropped, "meta-exact")
    yield _member(metadata.NewlineReplaced, "meta-exact")
    yield _member(metadata.HeadersDecoded, "meta-exact")
    yield _member(metadata.LeaksItsMarks, "meta-exact")
    yield _member(metadata.MergesMetadata, "meta-exact")
    yield _member(metadata.TakesAnyMetadata, "meta-refused")
    yield _member(metadata.SmallMetadata, "meta-limit")
    yield _member(metadata.AliasesTheCallersMap, "copy-in")
    yield _member(metadata.AliasesTheStoredMap, "copy-in")
    yield _member(metadata.BodyStripped, "data-exact")
    yield _member(metadata.BodyDecoded, "data-exact")
    yield _member(metadata.EmptyBodyIsAbsent, "data-exact")
    yield _member(metadata.MetadataOfAnotherWrite, "get-atomic")
    yield _member(writing.TruncatesBodies, "data-exact")
    yield _member(writing.SmallBodies, "data-exact")
    yield _member(versions.IntegerVersion, "version-opaque")
    yield _member(versions.LongVersion, "version-opaque")
    yield _member(versions.QuotedInListings, "version-same")
    yield _member(versions.PutReportsAnother, "version-same")
    yield _member(versions.BodyHashVersion, "version-fresh")
    yield _member(versions.ContentHashVersion, "version-fresh")
    yield _member(versions.SizeVersion, "version-fresh")
    yield _member(versions.RestartsAfterDelete, "version-fresh")
    yield _member(versions.UnchangedKeepsVersion, "version-fresh")
    yield _member(versions.KeysShareVersions, "version-foreign")
    yield _member(versions.EmptyMeansCreate, "version-foreign")
    yield _member(versions.ZeroMeansCreate, "version-foreign")
    yield _member(versions.StripsExpected, "version-foreign")
    yield _member(versions.ParsesVersions, "version-foreign")
    yield _member(writing.AbsentIsAnError, "get-absent")
    yield _member(writing.DropsDeletedObjectLate, "get-absent")
    yield _member(writing.PutRefusesToReplace, "put-replace")
    yield _member(writing.CreateReplaces, "cas-create")
    yield _member(writing.ReplaceCreates, "cas-replace")
    yield _member(writing.WeakReplace, "cas-replace")
    yield _member(writing.ChangesAndRefuses, "cas-replace")
    yield _member(writing.ThrottledConflict, "cas-replace")
    yield _member(writing.DeleteIgnoresVersion, "delete-match")
    yield _member(writing.DeleteOfAbsentIsFine, "delete-match")
    yield _member(writing.KeyInTheError, "out-mapped")
    yield _member(writing.CheckThenCreate, "race-create")
    yield _member(writing.CheckThenReplace, "race-cas")
    yield _member(writing.CheckThenDelete, "race-delete")
    yield _member(listing.LikePrefix, "list-prefix")
    yield _member(listing.PatternPrefix, "list-prefix")
    yield _member(listing.CaseInsensitivePrefix, "list-prefix")
    yield _member(listing.SegmentPrefix, "list-prefix")
    yield _member(listing.PathPrefix, "list-prefix")
    yield _member(listing.ReverseOrder, "list-order")
    yield _member(listing.DirectoryOrder, "list-order")
    yield _member(listing.Utf16Order, "list-order")
    yield _member(listing.LinguisticOrder, "list-order")
    yield _member(listing.InclusiveStart, "list-start")
    yield _member(listing.StartMustExist, "list-start")
    yield _member(listing.PageBorderLoss, "list-start")
    yield _member(listing.FullPageEnds, "list-limit")
    yield _member(listing.ShortPages, "list-limit")
    yield _member(listing.EmptyPageEnds, "list-limit")
    yield _member(listing.PageOverflow, "list-limit")
    yield _member(listing.AllInOnePage, "list-limit")
    yield _member(lifecycle.ListLimited, "list-limit")
    yield _member(listing.NoMetadataInListings, "list-meta")
    yield _member(listing.BodiesInListings, "list-meta")
    yield _member(listing.ListsStagingFiles, "list-clean")
    yield _member(listing.StaleListing, "two-handles")
    yield _member(lifecycle.HandlesApart, "two-handles")
    yield _member(lifecycle.ReadsOwnCache, "two-handles")
    yield _member(lifecycle.TornReads, "get-atomic")
    yield _member(lifecycle.LostUpdates, "race-linear")
    yield _member(lifecycle.OneThreadOnly, "threads")
    yield _member(lifecycle.SlowFirstUse, "threads")
    yield _member(lifecycle.ForkBroken, "fork")
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
    yield _remote(outcomes.NeverProves, "endpoint-proof")
    yield _remote(outcomes.ForgetsFormat, "format-guard")
    yield _remote(outcomes.HidesDamage, "obj-foreign")


MEMBERS: Final[tuple[Member, ...]] = tuple(_members())
"""All members."""

RIGHT: Final[tuple[Member, ...]] = (
    Member(name="PlainStorage", breaks="", hooks=in_memory(PlainStorage)),
    Member(name="SimulatedStorage", breaks="", hooks=simulated_hooks),
)
"""The two right storages that the members are made from: nothing may fail on them."""
