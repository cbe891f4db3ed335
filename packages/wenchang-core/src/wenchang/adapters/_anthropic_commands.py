"""`Commands`: the six commands of the memory tool on a file backend, and clearing all.

Each returns the fixed text of its success or raises `ToolError` with the fixed text of its failure.
Nothing else is raised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from anthropic.tools import ToolError

from wenchang.adapters import _folders
from wenchang.adapters._anthropic_views import (
    MAX_LINES,
    directory_view,
    is_hidden,
    numbered,
    split_lines,
)
from wenchang.adapters._refusals import refusal_text, unforeseen_text
from wenchang.errors import WenchangError
from wenchang.files.backend import FileBackend, ReadWindow, absolute, relocated, to_folder
from wenchang.files.errors import (
    AlreadyExistsError,
    NotFoundError,
    VersionConflictError,
)
from wenchang.files.texts import check_text

__all__ = ["ROOT", "Commands"]

ROOT: Final = "/memories"
_CONTEXT_LINES: Final = 2
_ECHOED_CHARS: Final = 400
_SHOWN_PLACES: Final = 100
_NAMES: Final = {
    "content": "file_text",
    "source": "old_path",
    "from": "old_path",
    "target": "new_path",
    "to": "new_path",
}
"""What the tool calls our arguments."""


class Commands:
    """The commands, on the files of one tenant. The root of the backend is `/memories`."""

    def __init__(self, files: FileBackend) -> None:
        """Keep the files; sends nothing."""
        self._files = files

    def view(self, path: object, view_range: object) -> str:
        """Show a file with line numbers, or what is in a folder two levels deep."""

        def call() -> str:
            inner = _inner(path)
            shown = _shown(inner)
            window = None if inner == "/" else self._find(inner)
            if window is None:
                return self._view_folder(inner, shown)
            if window.total_lines > MAX_LINES:
                raise ToolError(f"File {shown} exceeds maximum line limit of 999,999 lines.")
            lines = split_lines(window.text)
            first, last = _range(view_range, len(lines))
            header = f"Here's the content of {shown} with line numbers:"
            return "\n".join(filter(None, (header, numbered(lines[first - 1 : last], first))))

        return _answered(call)

    def create(self, path: object, file_text: object) -> str:
        """Make a new file; never replaces one."""

        def call() -> str:
            inner, text = _file(path), _text(file_text, "file_text")
            shown = _shown(inner)
            try:
                self._files.write(inner, text, create_only=True)
            except AlreadyExistsError as error:
                if error.path != inner:
                    raise
                if error.kind == "folder":
                    raise ToolError(f"The path {shown} is not a file.") from error
                raise ToolError(f"Error: File {shown} already exists") from error
            return f"File created successfully at: {shown}"

        return _answered(call)

    def str_replace(self, path: object, old_str: object, new_str: object) -> str:
        """Replace the one occurrence of a text, decided on the version that is replaced."""

        def call() -> str:
            inner = _file(path)
            old, new = _text(old_str, "old_str"), _text(new_str, "new_str")
            shown = _shown(inner)
            if not old:
                raise ToolError("Argument old_str is invalid: it must not be empty.")

            def decide(text: str) -> tuple[str, str]:
                places = _places(text, old)
                if not places:
                    raise ToolError(
                        f"No replacement was performed, old_str `{old}` did not appear verbatim "
                        f"in {shown}."
                    )
                if len(places) > 1:
                    raise ToolError(
                        f"No replacement was performed. Multiple occurrences of old_str `{old}` in "
                        f"lines: {_line_numbers(text, places)}. Please ensure it is unique"
                    )
                changed = text[: places[0]] + new + text[places[0] + len(old) :]
                return changed, (
                    "The memory file has been edited. Here is the snippet showing the change "
                    f"(with line numbers):\n{_snippet(changed, places[0], len(new))}"
                )

            return self._change(inner, decide)

        return _answered(call)

    def insert(self, path: object, insert_line: object, insert_text: object) -> str:
        """Put text after a line, 0 being the top, decided on the version that is replaced."""

        def call() -> str:
            inner, added = _file(path), _text(insert_text, "insert_text")
            shown = _shown(inner)

            def decide(text: str) -> tuple[str, str]:
                lines = _kept_lines(text)
                if type(insert_line) is not int or not 0 <= insert_line <= len(lines):
                    raise ToolError(
                        f"Error: Invalid `insert_line` parameter: {_echo(insert_line)}. It should be "
                        f"within the range of lines of the file: [0, {len(lines)}]"
                    )
                before = _ended("".join(lines[:insert_line])) if insert_line else ""
                changed = before + _ended(added) + "".join(lines[insert_line:])
                return changed, f"The file {shown} has been edited."

            return self._change(inner, decide)

        return _answered(call)

    def delete(self, path: object) -> str:
        """Delete a file, or a folder with all in it."""

        def call() -> str:
            inner = _inner(path)
            shown = _shown(inner)
            if inner == "/":
                raise ToolError(f"Cannot delete the {ROOT} directory itself")
            try:
                self._delete(inner)
            except NotFoundError as error:
                raise ToolError(f"Error: The path {shown} does not exist") from error
            return f"Successfully deleted {shown}"

        return _answered(call)

    def rename(self, old_path: object, new_path: object) -> str:
        """Rename a file, or a folder with all in it; never replaces anything."""

        def call() -> str:
            source, target = _inner(old_path, "old_path"), _inner(new_path, "new_path")
            if source == "/":
                raise ToolError(f"Cannot rename the {ROOT} directory itself")
            if target == "/":
                raise ToolError(f"Error: The destination {ROOT} already exists")
            try:
                _folders.move(self._files, source, target)
            except NotFoundError as error:
                raise ToolError(f"Error: The path {_shown(source)} does not exist") from error
            except AlreadyExistsError as error:
                if error.path != target:
                    raise
                raise ToolError(
                    f"Error: The destination {_shown(target)} already exists"
                ) from error
            return f"Successfully renamed {_shown(source)} to {_shown(target)}"

        return _answered(call)

    def clear(self) -> str:
        """Delete every file."""

        def call() -> str:
            _folders.clear(self._files)
            return "All memory cleared"

        return _answered(call)

    def _view_folder(self, inner: str, shown: str) -> str:
        try:
            listing = self._files.glob(
                "**", inner, accept=lambda found: not is_hidden(found, inner)
            )
        except NotFoundError as error:
            raise _missing(shown) from error
        return directory_view(shown, inner, listing)

    def _find(self, inner: str) -> ReadWindow | None:
        try:
            return self._files.read(inner, 0, _folders.EVERY_LINE)
        except NotFoundError:
            return None

    def _delete(self, inner: str) -> None:
        try:
            self._files.delete(inner)
        except NotFoundError:
            # A folder, or nothing: then this raises the same.
            _folders.remove(self._files, inner)

    def _change(self, inner: str, decide: Callable[[str], tuple[str, str]]) -> str:
        """Write what `decide` makes of the text, at the version that it saw, until that holds.

        Whoever writes in between is never overwritten: the change is decided again on what they left.
        """
        deadline = _folders.PATIENCE.deadline()
        attempt = 0
        while True:
            window = self._find(inner)
            if window is None:
                raise self._no_file(inner)
            changed, answer = decide(window.text)
            try:
                self._files.write(inner, changed, version=window.version)
            except (NotFoundError, VersionConflictError):
                if _folders.PATIENCE.is_over(deadline):
                    raise ToolError(
                        f"Many writers are at work on {_shown(inner)}, and nothing was changed. "
                        "Repeat the call."
                    ) from None
                _folders.PATIENCE.pause(attempt, deadline)
                attempt += 1
            else:
                return answer

    def _no_file(self, inner: str) -> ToolError:
        try:
            self._files.ls(inner, limit=1)
        except NotFoundError:
            return _missing(_shown(inner))
        return ToolError(f"The path {_shown(inner)} is not a file.")


def _answered(call: Callable[[], str]) -> str:
    """Carry out a command; what it raises becomes a `ToolError` whose text a model may read."""
    try:
        return call()
    except ToolError:
        raise
    except WenchangError as error:
        raise ToolError(refusal_text(relocated(error, ROOT), _NAMES)) from error
    except Exception as error:
        raise ToolError(unforeseen_text(error)) from error


def _inner(path: object, name: str = "path") -> str:
    """Return a path of the tool as one of the backend: `/memories` is its root."""
    text = _text(path, name)
    if text != ROOT and not text.startswith(ROOT + "/"):
        raise ToolError(f"Path must start with {ROOT}, got: {_echo(text)}")
    return absolute(to_folder(text.removeprefix(ROOT), argument=name))


def _file(path: object) -> str:
    inner = _inner(path)
    if inner == "/":
        raise ToolError(f"The path {ROOT} is not a file.")
    return inner


def _shown(inner: str) -> str:
    return (ROOT + inner).removesuffix("/")


def _missing(shown: str) -> ToolError:
    return ToolError(f"The path {shown} does not exist. Please provide a valid path.")


def _text(value: object, name: str) -> str:
    """Return an argument that must be text; models leave some out, or send other things."""
    if not isinstance(value, str):
        raise ToolError(f"Argument {name} is invalid: it is required, and must be text.")
    check_text(value, name)
    return value


def _echo(value: object) -> str:
    """Return a bad argument for an error text, bounded."""
    text = value if isinstance(value, str) else repr(value)
    # An unpaired surrogate could not be sent.
    text = text[: _ECHOED_CHARS + 1].encode(errors="backslashreplace").decode()
    return text if len(text) <= _ECHOED_CHARS else text[:_ECHOED_CHARS] + "…"


def _range(view_range: object, total: int) -> tuple[int, int]:
    """Return the first and the last line to show; -1 at the end stands for the last line."""
    if view_range is None or view_range == []:
        return 1, total
    if isinstance(view_range, list) and len(view_range) == 2:
        first, last = view_range
        if type(first) is int and type(last) is int:
            first = max(first, 1)
            last = total if last == -1 else min(last, total)
            if first <= last or (first == 1 and total == 0):
                return first, last
    raise ToolError(
        f"Invalid `view_range` parameter: {_echo(view_range)}. It should be two line numbers within "
        f"[1, {total}], the second not below the first, or -1 for the end of the file."
    )


def _kept_lines(text: str) -> list[str]:
    r"""Return the lines with their `\n`."""
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _ended(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"


def _places(text: str, old: str) -> list[int]:
    """Return where a text is, overlapping places too, and at most one more than are shown."""
    places: list[int] = []
    at = text.find(old)
    while at >= 0 and len(places) <= _SHOWN_PLACES:
        places.append(at)
        at = text.find(old, at + 1)
    return places


def _line_numbers(text: str, places: list[int]) -> str:
    numbers: list[str] = []
    line, counted = 1, 0
    for at in places[:_SHOWN_PLACES]:
        line += text.count("\n", counted, at)
        counted = at
        numbers.append(str(line))
    return ", ".join([*numbers, "…"] if len(places) > _SHOWN_PLACES else numbers)


def _snippet(text: str, at: int, length: int) -> str:
    """Return the lines that hold what was put in, and two on either side."""
    lines = split_lines(text)
    first = text.count("\n", 0, at) + 1
    last = text.count("\n", 0, at + length) + 1
    start = max(first - _CONTEXT_LINES, 1)
    return numbered(lines[start - 1 : last + _CONTEXT_LINES], start)
