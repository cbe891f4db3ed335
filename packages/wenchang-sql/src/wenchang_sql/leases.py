"""A connection on loan from an engine's pool, for one attempt."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Connection, Engine

__all__ = ["Lease"]


class Lease:
    """The driver's connection, with what belongs to it, until it is given back.

    An engine of ours has settled isolation when it connected, so that its pool's connection is all
    there is. Any other engine sets the level for the loan and resets it afterwards.
    """

    __slots__ = ("_connection", "_proxied", "info", "raw")

    def __init__(self, proxied: Any, connection: Connection | None) -> None:
        """Use `take`."""
        self._proxied = proxied
        self._connection = connection
        self.raw: Any = proxied.dbapi_connection
        """The driver's connection."""
        self.info: dict[Any, Any] = proxied.info
        """Lives as long as the driver's connection, over many loans."""

    @classmethod
    def take(cls, engine: Engine, *, ours: bool) -> Lease:
        """Check a connection out, or make one. Raises what connecting raises."""
        if ours:
            return cls(engine.raw_connection(), None)
        connection = engine.connect()
        return cls(connection.connection, connection)

    def invalidate(self) -> None:
        """Close the driver's connection; the pool makes a new one when it needs it. Idempotent."""
        if self._connection is not None:
            self._connection.invalidate()
            self._connection.close()
        elif self._proxied.is_valid:
            self._proxied.invalidate()

    def close(self) -> None:
        """Give the connection back, rolled back. Does nothing after `invalidate`."""
        if self._connection is not None:
            self._connection.close()
        else:
            self._proxied.close()
