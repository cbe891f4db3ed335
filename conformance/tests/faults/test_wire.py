"""The wire protocols byte by byte, and the database proxy in front of a server of a few lines."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from wenchang_conformance.faults import (
    Fault,
    MySQL,
    PostgreSQL,
    Rule,
    Statement,
    StreamProxy,
    UnreadableStreamError,
    is_commit,
    statements,
)

STARTUP = struct.pack("!ii", 17, 196608) + b"user\0me\0\0"
SSL_REQUEST = struct.pack("!ii", 8, 80877103)
READY = b"Z\0\0\0\5I"


def pg(kind: bytes, payload: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(payload) + 4) + payload


def packet(number: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "little") + bytes([number]) + payload


def started() -> PostgreSQL:
    dialect = PostgreSQL()
    dialect.from_client(STARTUP)
    return dialect


class TestStatement:
    @pytest.mark.parametrize(
        ("sql", "verb"),
        [
            (b"commit", "COMMIT"),
            (b"  /* a\n b */ -- c\n COMMIT;", "COMMIT"),
            (b"(SELECT 1)", "SELECT"),
            (b"", ""),
            (b"SET AUTOCOMMIT = 0", "SET"),
        ],
    )
    def test_its_verb_is_its_first_word(self, sql, verb):
        assert Statement(sql=sql, wire=sql).verb == verb

    def test_a_commit_is_recognised_by_its_verb_alone(self):
        assert is_commit(Statement(sql=b"COMMIT WORK", wire=b""))
        assert is_commit(Statement(sql=b"END", wire=b""))
        assert not is_commit(Statement(sql=b"SELECT 'COMMIT'", wire=b""))

    def test_predicates_combine_verbs_and_a_pattern(self):
        matches = statements("INSERT", "UPDATE", pattern=r"INTO\s+t\b")
        assert matches(Statement(sql=b"insert INTO t VALUES (1)", wire=b""))
        assert not matches(Statement(sql=b"insert INTO tt VALUES (1)", wire=b""))
        assert not matches(Statement(sql=b"DELETE INTO t", wire=b""))


class TestPostgreSQL:
    def test_encryption_is_refused_by_the_proxy(self):
        dialect = PostgreSQL()
        (refused,) = dialect.from_client(SSL_REQUEST)
        (startup,) = dialect.from_client(STARTUP)
        assert (refused.reply, startup.reply, startup.wire) == (b"N", None, STARTUP)

    def test_bytes_in_any_pieces_give_the_same_messages(self):
        dialect = PostgreSQL()
        stream = STARTUP + pg(b"p", b"secret\0") + pg(b"Q", b"COMMIT\0")
        pieces = [piece for byte in stream for piece in dialect.from_client(bytes([byte]))]
        assert b"".join(piece.wire for piece in pieces) == stream
        assert [piece.statement and piece.statement.sql for piece in pieces] == [
            None, None, b"COMMIT",
        ]  # fmt: skip
        answers = pg(b"C", b"COMMIT\0") + READY
        told = [piece for byte in answers for piece in dialect.from_server(bytes([byte]))]
        assert [piece.completes for piece in told] == [False, True]

    def test_an_extended_query_is_one_piece_up_to_its_synchronisation(self):
        dialect = started()
        parse = pg(b"P", b"\0INSERT INTO t VALUES ($1)\0\0\0")
        bind = pg(b"B", b"\0\0\0\0\0\1\0\0\0\5a-key\0\0")
        assert dialect.from_client(parse + bind + pg(b"D", b"P\0")) == []
        (piece,) = dialect.from_client(pg(b"E", b"\0\0\0\0\0") + pg(b"S"))
        assert piece.statement is not None
        assert piece.statement.sql == b"INSERT INTO t VALUES ($1)"
        assert b"a-key" in piece.statement.wire
        assert piece.wire == piece.statement.wire

    def test_a_prepared_statement_is_known_by_its_text_ever_after(self):
        dialect = started()
        prepare = pg(b"P", b"s1\0UPDATE t SET v = 1\0\0\0") + pg(b"S")
        (prepared,) = dialect.from_client(prepare)
        execute = pg(b"B", b"\0s1\0\0\0\0\0\0\0") + pg(b"E", b"\0\0\0\0\0") + pg(b"S")
        (first,), (second,) = dialect.from_client(execute), dialect.from_client(execute)
        assert prepared.statement is not None
        assert prepared.statement.sql == b""
        assert first.statement == second.statement
        assert first.statement is not None
        assert first.statement.verb == "UPDATE"

    def test_a_flush_forwards_and_the_synchronisation_behind_it_is_the_statement(self):
        dialect = started()
        run = pg(b"P", b"\0DELETE FROM t\0\0\0") + pg(b"B", b"\0\0\0\0\0\0\0\0")
        (flushed,) = dialect.from_client(run + pg(b"E", b"\0\0\0\0\0") + pg(b"H"))
        (synced,) = dialect.from_client(pg(b"S"))
        assert flushed.statement is None
        assert synced.statement is not None
        assert synced.statement.sql == b"DELETE FROM t"
        assert synced.wire == pg(b"S")

    @pytest.mark.parametrize("data", [b"\x16\x03\x01\x02\x00\x01\x00\x01", b"GET / HTTP/1.1\r\n"])
    def test_another_protocol_is_refused(self, data):
        with pytest.raises(UnreadableStreamError):
            PostgreSQL().from_client(data)

    def test_an_impossible_length_is_refused(self):
        with pytest.raises(UnreadableStreamError):
            started().from_server(b"Z\xff\xff\xff\xff")


class TestMySQL:
    @staticmethod
    def greeting(lower: int, upper: int) -> bytes:
        return packet(
            0,
            b"\x0a5.5.5-10.11\0" + bytes(4) + b"8challen" + b"\0"
            + lower.to_bytes(2, "little") + b"\x2d" + bytes(2) + upper.to_bytes(2, "little")
            + bytes(11),
        )  # fmt: skip

    def greeted(self) -> MySQL:
        dialect = MySQL()
        dialect.from_server(self.greeting(0xFFFF, 0xFFFF))
        return dialect

    def test_the_greeting_offers_neither_encryption_nor_compression(self):
        (told,) = MySQL().from_server(self.greeting(0xFFFF, 0xFFFF))
        assert told.wire == self.greeting(0xFFFF & ~0x0820, 0xFFFF & ~0x0D00)

    def test_an_error_in_place_of_a_greeting_passes(self):
        error = packet(0, b"\xff\x10\x04Too many connections")
        (told,) = MySQL().from_server(error)
        assert told.wire == error

    def test_a_text_query_is_a_statement_and_a_login_packet_is_none(self):
        dialect = self.greeted()
        (login,) = dialect.from_client(packet(1, b"\x03looks like a query"))
        (ping,) = dialect.from_client(packet(0, b"\x0e"))
        (query,) = dialect.from_client(packet(0, b"\x03COMMIT"))
        assert (login.statement, ping.statement) == (None, None)
        assert query.statement is not None
        assert query.statement.sql == b"COMMIT"

    def test_an_answer_ends_with_ok_or_with_an_error(self):
        dialect = self.greeted()
        for end in (b"\0\1\0\2\0\0\0", b"\xff\x10\x04no", b"\0\xfd\1\2\3\xfe12345678\2\0\0\0"):
            dialect.from_client(packet(0, b"\x03UPDATE t SET v = 1"))
            (told,) = dialect.from_server(packet(1, end))
            assert told.completes

    def test_an_answer_with_rows_ends_behind_the_last_row(self):
        dialect = self.greeted()
        dialect.from_client(packet(0, b"\x03SELECT a, b"))
        stream = (
            packet(1, b"\2") + packet(2, b"\3def-a") + packet(3, b"\3def-b")
            + packet(4, b"\xfe\0\0\2\0") + packet(5, b"\1x\1y") + packet(6, b"\0\0")
            + packet(7, b"\xfe\0\0\2\0")
        )  # fmt: skip
        told = [piece for byte in stream for piece in dialect.from_server(bytes([byte]))]
        assert [piece.completes for piece in told] == [False] * 6 + [True]
        assert b"".join(piece.wire for piece in told) == stream

    def test_more_results_are_part_of_the_same_answer(self):
        dialect = self.greeted()
        dialect.from_client(packet(0, b"\x03CALL p()"))
        told = dialect.from_server(packet(1, b"\0\0\0\x08\0\0\0") + packet(2, b"\0\0\0\2\0\0\0"))
        assert [piece.completes for piece in told] == [False, True]

    def test_an_answer_nobody_asked_for_completes_nothing(self):
        (told,) = self.greeted().from_server(packet(2, b"\0\0\0\2\0\0\0"))
        assert not told.completes


class FakePostgreSQL:
    """Accepts every log-in and answers every simple query; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(sock,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, sock: socket.socket) -> None:
        with sock, sock.makefile("rb") as stream:
            stream.read(len(STARTUP))
            sock.sendall(pg(b"R", bytes(4)) + READY)
            while head := stream.read(5):
                self.asked.append(stream.read(struct.unpack("!i", head[1:])[0] - 4).rstrip(b"\0"))
                sock.sendall(pg(b"C", b"DONE\0") + READY)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(10)


ANSWER = pg(b"C", b"DONE\0") + READY


class TestStreamProxy:
    @pytest.fixture
    def server(self) -> Iterator[FakePostgreSQL]:
        server = FakePostgreSQL()
        yield server
        server.close()

    @pytest.fixture
    def proxy(self, server) -> Iterator[StreamProxy]:
        with StreamProxy(("127.0.0.1", server.port), dialect=PostgreSQL) as proxy:
            yield proxy

    @pytest.fixture
    def client(self, proxy) -> Iterator[socket.socket]:
        with socket.create_connection(proxy.address, 10) as sock:
            sock.sendall(SSL_REQUEST)
            assert sock.recv(1) == b"N"
            sock.sendall(STARTUP)
            assert self.read(sock, 15) == pg(b"R", bytes(4)) + READY
            yield sock

    @staticmethod
    def read(sock: socket.socket, size: int) -> bytes:
        data = b""
        while len(data) < size and (more := sock.recv(size - len(data))):
            data += more
        return data

    def test_pipelined_statements_are_each_answered_and_logged(self, client, server, proxy):
        client.sendall(pg(b"Q", b"BEGIN\0") + pg(b"Q", b"INSERT\0") + pg(b"Q", b"COMMIT\0"))
        assert self.read(client, 3 * len(ANSWER)) == 3 * ANSWER
        assert server.asked == [b"BEGIN", b"INSERT", b"COMMIT"]
        assert [each.applied for each in proxy.log.entries()] == [1, 1, 1]

    def test_answers_before_the_struck_statement_still_arrive(self, client, server, proxy):
        proxy.script(Rule(match=is_commit, fault=Fault.drop_answer(reset=False)))
        client.sendall(pg(b"Q", b"BEGIN\0") + pg(b"Q", b"INSERT\0") + pg(b"Q", b"COMMIT\0"))
        assert self.read(client, 1000) == 2 * ANSWER
        assert server.asked == [b"BEGIN", b"INSERT", b"COMMIT"]

    def test_a_dropped_statement_never_reaches_the_server(self, client, server, proxy):
        proxy.script(Rule(match=is_commit, fault=Fault.drop_request()))
        client.sendall(pg(b"Q", b"COMMIT\0"))
        with pytest.raises(ConnectionResetError):
            client.recv(1)
        assert server.asked == []

    def test_a_late_statement_reaches_the_server_when_released(self, client, server, proxy):
        proxy.script(Rule(match=is_commit, fault=Fault.deliver_late(reset=False)))
        client.sendall(pg(b"Q", b"COMMIT\0"))
        assert client.recv(1) == b""
        assert server.asked == []
        assert proxy.release() == 1
        assert server.asked == [b"COMMIT"]

    def test_a_hang_ends_with_the_client(self, client, server, proxy):
        proxy.script(Rule(match=is_commit, fault=Fault.hang(applied=True)))
        client.sendall(pg(b"Q", b"COMMIT\0"))
        proxy.log.wait_for(lambda log: len(log) == 1 and log[0].applied == 1)
        client.shutdown(socket.SHUT_RDWR)
        proxy.log.wait_for(lambda log: log[0].ended is not None)
        assert server.asked == [b"COMMIT"]

    def test_an_encrypted_client_is_cut_off_and_the_reason_is_raised_at_the_end(self, server):
        def leave_the_block() -> None:
            with (
                StreamProxy(("127.0.0.1", server.port), dialect=PostgreSQL) as proxy,
                socket.create_connection(proxy.address, 10) as sock,
            ):
                sock.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01")
                with pytest.raises(ConnectionResetError):
                    sock.recv(1)

        with pytest.raises(UnreadableStreamError, match="TLS"):
            leave_the_block()
