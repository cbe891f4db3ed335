"""What a case did, step by step: handles that write down each call and its answer.

A failure is reported with these steps, so that it can be repeated by hand.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from wenchang.storage import ListedObject, StoredObject

if TYPE_CHECKING:
    from wenchang.storage import Storage

__all__ = ["Trace", "TracedStorage", "shown"]

_KEPT_STEPS: Final = 40
_SHOWN_TEXT: Final = 72
_SHOWN_ENTRIES: Final = 6


def shown(value: object) -> str:
    """Return a short, unambiguous text for a value of a call or an answer."""
    if isinstance(value, str | bytes):
        if len(value) <= _SHOWN_TEXT:
            return (
                ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
            )
        unit = "bytes" if isinstance(value, bytes) else "characters"
        return f"{value[:40]!r}… ({len(value)} {unit})"
    if isinstance(value, StoredObject):
        return f"(data={shown(value.data)}, metadata={shown(value.metadata)}, version={shown(value.version)})"
    if isinstance(value, ListedObject):
        return f"{shown(value.key)} at {shown(value.version)}"
    if isinstance(value, Mapping):
        inside = ", ".join(
            f"{shown(name)}: {shown(text)}" for name, text in list(value.items())[:_SHOWN_ENTRIES]
        )
        return (
            "{" + inside + (f", … {len(value)} in all" if len(value) > _SHOWN_ENTRIES else "") + "}"
        )
    if isinstance(value, Sequence):
        inside = ", ".join(shown(item) for item in value[:_SHOWN_ENTRIES])
        return (
            "[" + inside + (f", … {len(value)} in all" if len(value) > _SHOWN_ENTRIES else "") + "]"
        )
    if isinstance(value, BaseException):
        outcome = getattr(value, "outcome", None)
        tail = f" (outcome={outcome!r})" if outcome is not None else ""
        return f"{type(value).__name__}: {value}{tail}"
    return repr(value)


class Trace:
    """The last steps of a case, from all of its handles and threads."""

    def __init__(self) -> None:
        """Begin empty."""
        self._steps: deque[str] = deque(maxlen=_KEPT_STEPS)
        self._count = 0
        self._before = ""
        self._lock = threading.Lock()

    def add(self, step: str) -> None:
        """Append a step."""
        with self._lock:
            self._count += 1
            self._steps.append(f"{self._count:3}. {step}")

    def clear(self) -> None:
        """Forget all steps: what comes does not depend on them."""
        self.replace("")

    def replace(self, text: str) -> None:
        """Take a text of steps for those of this case."""
        with self._lock:
            self._count = 0
            self._steps.clear()
            self._before = text

    def text(self) -> str:
        """Return the steps, one a line."""
        with self._lock:
            left_out = self._count - len(self._steps)
            head = [f"     … {left_out} earlier steps"] if left_out else []
            return "\n".join([*([self._before] if self._before else []), *head, *self._steps])


class TracedStorage:
    """A handle that writes down its calls. Arguments go through untouched, wrong ones too."""

    def __init__(self, inner: Storage, name: str, trace: Trace) -> None:
        """Wrap `inner`, which the steps call `name`."""
        self.inner = inner
        self._name = name
        self._trace = trace

    def get(self, key: Any) -> StoredObject | None:
        """Call `Storage.get`."""
        found: StoredObject | None = self._call("get", key)
        return found

    def put(self, key: Any, data: Any, metadata: Any) -> str:
        """Call `Storage.put`."""
        version: str = self._call("put", key, data, metadata)
        return version

    def put_if_version(self, key: Any, data: Any, metadata: Any, expected: Any) -> str:
        """Call `Storage.put_if_version`."""
        version: str = self._call("put_if_version", key, data, metadata, expected)
        return version

    def delete_if_version(self, key: Any, expected: Any) -> None:
        """Call `Storage.delete_if_version`."""
        self._call("delete_if_version", key, expected)

    def list_page(self, prefix: Any, start_after: Any, limit: Any) -> Sequence[ListedObject]:
        """Call `Storage.list_page`."""
        page: Sequence[ListedObject] = self._call("list_page", prefix, start_after, limit)
        return page

    def close(self) -> None:
        """Close the handle, if it can be closed."""
        close = getattr(self.inner, "close", None)
        if close is not None:
            self._trace.add(f"{self._name}.close()")
            close()

    def _call(self, method: str, *arguments: Any) -> Any:
        call = f"{self._name}.{method}({', '.join(shown(argument) for argument in arguments)})"
        try:
            answer = getattr(self.inner, method)(*arguments)
        except BaseException as error:
            self._trace.add(f"{call} raised {shown(error)}")
            raise
        self._trace.add(f"{call} -> {shown(answer)}")
        return answer
