"""First outcomes of changes, as backends without a tree keep them under effect keys.

A record is a small JSON value: a digest of operation and arguments, and what the call came to. Text
of files is never in it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, TypeAlias

from wenchang.files._calls import MAX_EFFECT_KEY_CHARS
from wenchang.files._receipts import Receipt, hash_key, is_recorded, make_receipt, replay
from wenchang.files.backend import FileChange, FileRemoval
from wenchang.files.errors import EffectKeyReusedError, FileToolError, InvalidArgumentError
from wenchang.files.texts import check_text

__all__ = ["Effect", "EffectOutcome", "is_recorded"]

EffectOutcome: TypeAlias = FileChange | FileRemoval


class Effect:
    """One call with an effect key: what it is, and how its outcome is recorded and repeated."""

    def __init__(
        self, effect_key: str, operation: str, path: str, arguments: Sequence[Any]
    ) -> None:
        """Check the key. `path` is canonical; of texts among the arguments only a hash is kept."""
        if not isinstance(effect_key, str) or not 1 <= len(effect_key) <= MAX_EFFECT_KEY_CHARS:
            raise InvalidArgumentError(
                "effect_key", f"it has 1 to {MAX_EFFECT_KEY_CHARS} characters"
            )
        check_text(effect_key, "effect_key")
        self.key = hash_key(effect_key)
        self._digest = self.hash(json.dumps([operation, path, *arguments]))
        self._path = path

    @staticmethod
    def hash(text: str) -> str:
        """Return what stands for a text: one among the arguments of a call, or all of them together."""
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def record(self, outcome: EffectOutcome | FileToolError) -> list[Any]:
        """Return what is kept of an outcome."""
        if isinstance(outcome, FileChange):
            kept: list[Any] = [
                "changed",
                outcome.version,
                outcome.created,
                outcome.changed,
                outcome.replacements,
            ]
        elif isinstance(outcome, FileRemoval):
            kept = ["deleted"]
        else:
            kept = list(make_receipt("", "", 0, "/" + self._path, outcome).outcome)
        return [self._digest, *kept]

    def repeat(self, record: Sequence[Any]) -> EffectOutcome:
        """Return the recorded outcome or raise the recorded refusal.

        Raises `EffectKeyReusedError` where the record is of another call.
        """
        digest, kind, *values = record
        if digest != self._digest:
            raise EffectKeyReusedError
        path = "/" + self._path
        if kind == "changed":
            version, created, changed, replacements = values
            return FileChange(
                path=path,
                version=version,
                created=created,
                changed=changed,
                replacements=replacements,
                replayed=True,
            )
        if kind == "deleted":
            return FileRemoval(path=path, replayed=True)
        replay(Receipt("", digest, 0, [kind, *values]), path, "")
        msg = "a recorded refusal was not raised"
        raise TypeError(msg)
