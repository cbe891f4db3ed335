"""`Desk`: what one call of deepagents works with, and the texts that it answers a model with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from wenchang.adapters._deepagents_run import Call
from wenchang.adapters._folders import EVERY_LINE
from wenchang.adapters._refusals import refusal_text
from wenchang.adapters._seen import SeenVersions
from wenchang.errors import WenchangError
from wenchang.files.backend import FileBackend, ReadWindow, relocated
from wenchang.files.errors import EditMatchError, FileToolError, TreeStateError

__all__ = ["MAX_EXCERPT_CHARS", "AnsweredError", "Desk"]

MAX_EXCERPT_CHARS: Final = 6_000
"""How much of a file's current text an error shows."""


class AnsweredError(Exception):
    """A refusal whose text for the model is complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """The files of a run, what its agent has seen of them, and the call. `prefix` is for texts only."""

    files: FileBackend
    owner: str
    call: Call
    seen: SeenVersions
    prefix: str
    names: Mapping[str, str]

    @property
    def agent(self) -> str:
        """Who has seen what: agents of two tenants are never the same."""
        return f"{self.owner}\n{self.call.agent}"

    def saw(self, window: ReadWindow) -> None:
        """Remember the version of what was shown."""
        self.seen.saw(self.agent, window.path, window.version, from_start=window.offset == 0)

    def look(self, path: str) -> ReadWindow | None:
        """Return what is in a file now, or None where that cannot be told."""
        try:
            return self.files.read(path, 0, EVERY_LINE)
        except (FileToolError, TreeStateError):
            return None

    def is_file(self, path: str) -> bool:
        """Tell whether there is a file, whatever it holds."""
        try:
            self.files.read(path, 0, 1)
        except FileToolError:
            return False
        except TreeStateError:
            return True
        return True

    def is_folder(self, path: str) -> bool:
        """Tell whether there is a folder."""
        try:
            self.files.ls(path, limit=1)
        except FileToolError:
            return False
        return True

    # --- texts -----------------------------------------------------------------------------------

    def shown(self, path: str) -> str:
        """Return a path as the model knows it."""
        inner = path if path.startswith("/") else "/" + path
        return (self.prefix + inner).removesuffix("/") or "/"

    def text(self, error: WenchangError) -> str:
        """Return the text of an error."""
        return refusal_text(relocated(error, self.prefix), self.names)

    def conflict(
        self, path: str, done: str, current: ReadWindow | None = None, *, repeated: bool = False
    ) -> str:
        """Return the text of a change that was not `done`: what is stored now, and how to go on.

        `repeated`: the call was carried out before, and what it came to is not known any more.
        """
        current = current or self.look(path)
        known = current is not None and current.version
        version = f"at version {known}" if known else "another version"
        how = (
            "Read it again, and if it is still to go, repeat the call."
            if done == "deleted"
            else "Merge your change into its current text and repeat write_file with the whole of it, "
            "or change only your part with edit_file."
        )
        what = (
            ". This call was carried out before and is not made again: what it did may be in the file, "
            "or others may have replaced it since."
            if repeated
            else f", which you have not seen, so nothing was {done}."
        )
        return f"{self.shown(path)} is now {version}{what} {how}{self._excerpt(current)}"

    def gone(self, path: str) -> str:
        """Return the text of a write of a file that was deleted since the agent read it."""
        return (
            f"{self.shown(path)} was deleted since you read it, and nothing was written. If it is "
            "still wanted, repeat the call: it creates the file anew."
        )

    def no_match(self, path: str, error: EditMatchError) -> str:
        """Return the text of an edit whose old text is not there exactly once."""
        shown = self.shown(path)
        if error.count:
            return (
                f"old_string was found {error.count} times in {shown}, and nothing was changed. Quote "
                "more of its surroundings, or set replace_all to replace every one."
            )
        return (
            f"old_string was not found in {shown}, and nothing was changed. Quote the text exactly as "
            f"it stands there, without line numbers.{self._excerpt(self.look(path))}"
        )

    def _excerpt(self, current: ReadWindow | None) -> str:
        """Return the current text as the end of an error; where all of it is shown it counts as read."""
        if current is None:
            return ""
        if len(current.text) <= MAX_EXCERPT_CHARS:
            self.saw(current)
            return f" Its current text:\n{current.text}"
        return (
            f" Its current text begins as follows ({MAX_EXCERPT_CHARS:,} of {len(current.text):,} "
            f"characters); read the file with read_file first:\n{current.text[:MAX_EXCERPT_CHARS]}"
        )
