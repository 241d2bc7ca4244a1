"""A connection pooler in transaction or session mode, like pgbouncer."""

import contextlib
import itertools
import os
import socket
import struct
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg

REPORTED = (
    "server_version",
    "server_encoding",
    "client_encoding",
    "DateStyle",
    "IntervalStyle",
    "TimeZone",
    "integer_datetimes",
    "standard_conforming_strings",
)
NO_ENCRYPTION = {80877103, 80877104}
CANCEL = 80877102


class Pooler:
    """Completes the handshake itself, and borrows a server connection at the first statement."""

    def __init__(self, url: str, *, by_transaction: bool) -> None:
        self._url, self._by_transaction = url, by_transaction
        self._free: list[socket.socket] = []
        self._opened: list[psycopg.Connection | socket.socket] = []
        self._lock = threading.Lock()
        # A pooler invents process ids.
        self._numbers = itertools.count(1_000_000)
        self._reported = self._dial()
        self.listening = socket.create_server(("127.0.0.1", 0))

    def run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _address = self.listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def close(self) -> None:
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        for connection in self._opened:
            connection.close()

    def _dial(self) -> dict[str, str]:
        """The driver authenticates; then the pooler uses its socket directly."""
        connection = psycopg.connect(self._url, autocommit=True)
        spoken_to = socket.socket(fileno=os.dup(connection.fileno()))
        spoken_to.setblocking(True)
        with self._lock:
            self._opened += [spoken_to, connection]
            self._free.append(spoken_to)
        return {name: connection.info.parameter_status(name) or "" for name in REPORTED}

    def _borrow(self) -> socket.socket:
        if not self._free:
            self._dial()
        with self._lock:
            return self._free.pop()

    def _serve(self, client: socket.socket) -> None:
        server: socket.socket | None = None
        with contextlib.suppress(OSError, EOFError), client:
            if not self._greet(client):
                return
            while True:
                kind, message = _read(client)
                if kind == b"X":
                    break
                server = server or self._borrow()
                server.sendall(message)
                if kind in b"QS" and self._answer(client, server) == b"I" and self._by_transaction:
                    self._free.append(server)
                    server = None
        # The pooler may be closing.
        with contextlib.suppress(OSError, EOFError):
            if server is not None:
                # Resets the session before the next client gets it.
                server.sendall(_message(b"Q", b"DISCARD ALL\0"))
                while _read(server)[0] != b"Z":
                    pass
                self._free.append(server)

    def _greet(self, client: socket.socket) -> bool:
        while True:
            (length,) = struct.unpack("!i", _exactly(client, 4))
            (code,) = struct.unpack("!i", _exactly(client, length - 4)[:4])
            if code not in NO_ENCRYPTION:
                break
            client.sendall(b"N")
        if code == CANCEL:
            return False
        reported = [_message(b"S", f"{name}\0{value}\0".encode()) for name, value in self._reported.items()]
        key = _message(b"K", struct.pack("!ii", next(self._numbers), 7))
        client.sendall(b"".join([_message(b"R", struct.pack("!i", 0)), *reported, key, _message(b"Z", b"I")]))
        return True

    @staticmethod
    def _answer(client: socket.socket, server: socket.socket) -> bytes:
        """Forwards the server's messages until it is ready; returns its transaction state."""
        while True:
            kind, message = _read(server)
            client.sendall(message)
            if kind == b"Z":
                return message[-1:]


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def _read(peer: socket.socket) -> tuple[bytes, bytes]:
    head = _exactly(peer, 5)
    (length,) = struct.unpack("!i", head[1:])
    return head[:1], head + _exactly(peer, length - 4)


def _exactly(peer: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        part = peer.recv(count - len(found))
        if not part:
            raise EOFError
        found += part
    return found


@contextlib.contextmanager
def pooled(url: str, *, by_transaction: bool) -> Iterator[str]:
    """Runs a pooler in front of the database; yields its URL."""
    pooler = Pooler(url, by_transaction=by_transaction)
    thread = threading.Thread(target=pooler.run, daemon=True)
    thread.start()
    parts = urlsplit(url)
    try:
        port = pooler.listening.getsockname()[1]
        yield f"postgresql://{parts.username}@127.0.0.1:{port}{parts.path}"
    finally:
        pooler.close()
        thread.join()
