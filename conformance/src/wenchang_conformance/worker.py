"""The other process of `wenchang_conformance.processes`: one handle, driven over standard input."""

from __future__ import annotations

import importlib
import os
import pickle
import sys
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from wenchang.storage import Storage
    from wenchang_conformance.hooks import Recipe

__all__ = ["main", "open_recipe"]


def open_recipe(recipe: Recipe) -> Storage:
    """Open the handle that `recipe` describes."""
    module_name, _, function_name = recipe.target.partition(":")
    function: Any = importlib.import_module(module_name)
    for part in function_name.split("."):
        function = getattr(function, part)
    storage: Storage = function(*recipe.args)
    return storage


def main() -> None:
    """Open the handle, then answer each message until the standard input ends."""
    # What libraries print must not get between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    try:
        storage = open_recipe(pickle.load(requests))  # noqa: S301 - from our own parent
    except Exception as error:  # noqa: BLE001 - the parent raises it
        _answer(answers, "error", error)
        return
    _answer(answers, "ok", os.getpid())
    while True:
        try:
            task, arguments = pickle.load(requests)  # noqa: S301 - from our own parent
        except EOFError:
            break
        try:
            if isinstance(task, str):
                value = getattr(storage, task)(*arguments)
            else:
                value = task(storage, *arguments)
        except Exception as error:  # noqa: BLE001 - the parent raises it
            _answer(answers, "error", error)
        else:
            _answer(answers, "ok", value)
    close = getattr(storage, "close", None)
    if close is not None:
        close()


def _answer(answers: BinaryIO, kind: str, value: object) -> None:
    """Send one answer; an error that cannot be pickled is sent as its text."""
    try:
        packed = pickle.dumps((kind, value))
        pickle.loads(packed)  # noqa: S301 - our own bytes; some errors pickle but do not unpickle
    except Exception:  # noqa: BLE001 - pickling runs foreign code
        packed = pickle.dumps((kind, RuntimeError(f"{type(value).__name__}: {value}")))
    answers.write(packed)
    answers.flush()


if __name__ == "__main__":
    main()
