"""Every error survives pickling and copying, and shows no key, path, value or URL."""

from __future__ import annotations

import copy
import pickle

import pytest

from wenchang import errors
from wenchang.storage import StoredObject
from wenchang.storage import errors as storage_errors
from wenchang.storage.errors import UNREAD

SECRET = "user/ent-4711/notes.md"  # stands for anything that must not be shown

EXAMPLES = [
    errors.BackendUnavailableError("timeout", "no answer", outcome="unknown"),
    errors.FileQuotaExceededError(SECRET, 100),
    errors.IdentityUnavailableError("try later"),
    errors.InvalidArgumentError("path", "must not be empty"),
    errors.MetadataFormatError("aliases", "not JSON"),
    errors.NotFoundError(SECRET, "file_absent"),
    errors.OversizeWriteError(SECRET, 2, 1),
    errors.ReplaceFactMatchError(SECRET, SECRET, "v1", 2),
    errors.ResolverFailureError("no such user"),
    errors.RestrictedScopeError(SECRET, "team", "role_required", frozenset({"owner"})),
    errors.VersionConflictError(SECRET, SECRET, "v1", description=SECRET, aliases=(SECRET,)),
    storage_errors.BackendBroken("it is broken"),
    storage_errors.BackendConflict("two of them"),
    storage_errors.BackendIncompatible("too old"),
    storage_errors.BackendNotInstalled("not here"),
    storage_errors.InvalidStorageKeyError("too long"),
    storage_errors.InvalidStorageMetadataError(SECRET, "a rule"),
    storage_errors.MetadataTooLargeError(2, 1),
    storage_errors.ObjectTooLargeError(2, 1),
    storage_errors.PreconditionFailedError(
        SECRET, current=StoredObject(SECRET.encode(), {"a": SECRET}, "v1")
    ),
    storage_errors.StorageConfigurationError("no such option"),
    storage_errors.StorageRejectedError("full", "the disk is full"),
    storage_errors.UnknownBackend("none"),
]
ids = [type(error).__name__ for error in EXAMPLES]
ABSTRACT = {
    errors.WenchangError,
    errors.RecoverableError,
    errors.PermanentError,
    errors.TransientError,
    storage_errors.StorageError,
    storage_errors.DiscoveryError,
}


def descendants(base):
    for child in base.__subclasses__():
        yield child
        yield from descendants(child)


def test_every_error_class_of_the_tree_is_among_the_examples():
    classes = {
        found
        for base in (errors.WenchangError, storage_errors.StorageError)
        for found in (base, *descendants(base))
        if found.__module__ in {errors.__name__, storage_errors.__name__}
    }
    assert classes | {errors.MetadataFormatError} == ABSTRACT | {type(e) for e in EXAMPLES}


@pytest.mark.parametrize("error", EXAMPLES, ids=ids)
@pytest.mark.parametrize(
    "again",
    [copy.copy, copy.deepcopy, *(lambda e, p=p: pickle.loads(pickle.dumps(e, p)) for p in (2, 5))],
    ids=["copy", "deepcopy", "pickle2", "pickle5"],
)
def test_an_error_comes_back_equal_from_copy_and_pickle(error, again):
    twin = again(error)
    assert type(twin) is type(error)
    assert str(twin) == str(error)
    assert twin.args == error.args
    assert vars(twin) == vars(error)


@pytest.mark.parametrize("error", EXAMPLES, ids=ids)
def test_no_text_or_repr_of_an_error_shows_a_key_path_or_value(error):
    assert SECRET not in str(error)
    assert SECRET not in repr(error)
    assert str(error)


def test_the_mark_of_an_unread_object_is_the_same_after_pickling():
    error = pickle.loads(pickle.dumps(storage_errors.PreconditionFailedError(SECRET)))
    assert error.current is UNREAD


def test_an_error_for_agents_ends_with_what_to_do():
    for error in EXAMPLES:
        if isinstance(error, errors.WenchangError):
            assert str(error) == f"{error.detail} {error.guidance}"
