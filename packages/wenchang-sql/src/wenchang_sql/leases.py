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
        """Give the connection back, rolled back. Does nothing after `invalidate`.

        Raises nothing where the connection is lost meanwhile: what was done with it has its answer.
        """
        if self._connection is None:
            self._proxied.close()
            return
        record = self._proxied._connection_record  # noqa: SLF001 - no public way to free its place
        try:
            self._connection.close()
        except Exception as error:  # noqa: BLE001 - whatever the driver raises where it resets the level
            # SQLAlchemy then neither closes the connection nor gives its place in the pool back.
            if record is not None:
                record._checkin_failed(error, _fairy_was_created=False)  # noqa: SLF001 - as above
