"""A TLS relay for PostgreSQL's programs: the bundled ones are built without TLS, and some servers require it.

A program connects without TLS to a socket in a folder that only this account may enter, and the relay forwards its
bytes over TLS. Host, port and certificate checks are those that the Python driver used for the same address.
"""

import asyncio
import contextlib
import ssl
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import psycopg

from regulars.postgres.errors import ProgramsError

SOCKET_NAME: Final = ".s.PGSQL.5432"
# The SSLRequest message of PostgreSQL's protocol; a server that supports TLS replies with the letter S.
TLS_REQUEST: Final = bytes((0, 0, 0, 8, 4, 210, 22, 47))
TLS_SUPPORTED: Final = b"S"
CHUNK_BYTES: Final = 1 << 16
# The authentication request of the server, and the method with channel binding, which a program behind the relay cannot
# use because it does not connect with TLS itself.
AUTHENTICATION: Final = b"R"
SASL: Final = bytes((0, 0, 0, 10))
WITH_CHANNEL_BINDING: Final = b"SCRAM-SHA-256-PLUS\0"
CONNECT_S_MAX: Final = 15
END_S_MAX: Final = 5

Options = dict[str, str]


@contextlib.contextmanager
def opened(connection: psycopg.Connection[Any]) -> Iterator[Path]:
    """Yield the folder of a socket that forwards to the server of this connection over TLS."""
    options = effective_options(connection)
    if options.get("channel_binding") == "require":
        raise ProgramsError(
            "PostgreSQL's programs are carried over TLS by a relay and cannot keep channel_binding=require;"
            " leave it out of the address for this command."
        )
    with tempfile.TemporaryDirectory(prefix="regulars-relay-") as folder:
        relay = Relay(Path(folder) / SOCKET_NAME, options, make_tls_context(options))
        with relay.running():
            yield Path(folder)


def effective_options(connection: psycopg.Connection[Any]) -> Options:
    """Return all options of the connection, whether they came from the address, the environment or a file."""
    options = {option.keyword.decode(): option.val.decode() for option in connection.pgconn.info if option.val}
    # If the address has several hosts, use the one that the driver connected to.
    connected = {"host": connection.info.host, "hostaddr": connection.info.hostaddr, "port": str(connection.info.port)}
    return options | connected


def make_tls_context(options: Options) -> ssl.SSLContext:
    """Return a TLS context that follows the rules of PostgreSQL's `sslmode`."""
    mode, root_file = options.get("sslmode", "prefer"), options.get("sslrootcert", "")
    default_file = Path.home() / ".postgresql" / "root.crt"
    if not root_file and default_file.is_file():
        root_file = str(default_file)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # With certificates to check against, `require` checks them too.
    verifies = mode in {"verify-ca", "verify-full"} or (mode == "require" and bool(root_file))
    context.check_hostname = mode == "verify-full" or root_file == "system"
    context.verify_mode = ssl.CERT_REQUIRED if verifies or root_file == "system" else ssl.CERT_NONE
    if root_file == "system":
        context.load_default_certs()
    elif root_file and verifies:
        context.load_verify_locations(root_file)
    certificate = options.get("sslcert") or str(default_file.with_name("postgresql.crt"))
    if Path(certificate).is_file():
        key = options.get("sslkey") or str(default_file.with_name("postgresql.key"))
        context.load_cert_chain(certificate, key, options.get("sslpassword"))
    return context


class Relay:
    """Forwards connections in a thread with its own event loop, because the caller blocks while a program runs."""

    def __init__(self, path: Path, options: Options, context: ssl.SSLContext) -> None:
        self._path = path
        self._options = options
        self._context = context
        self._listening = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._forwarding: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._run, name="relay", daemon=True)
        thread.start()
        try:
            if not self._listening.wait(CONNECT_S_MAX):
                raise ProgramsError("The relay to the database could not be set up.")
            yield
        finally:
            self._loop.call_soon_threadsafe(self._stop.set)
            thread.join(2 * END_S_MAX)
        if self._failure is not None:
            raise ProgramsError(
                f"The database could not be reached over TLS: {' '.join(str(self._failure).split())}."
            ) from self._failure

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        async with await asyncio.start_unix_server(self._on_connection, self._path):
            self._listening.set()
            await self._stop.wait()
        if self._forwarding:
            await asyncio.wait(self._forwarding, timeout=END_S_MAX)

    def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._forward(reader, writer))
        self._forwarding.add(task)
        task.add_done_callback(self._forwarding.discard)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(CONNECT_S_MAX):
                server_reader, server_writer = await self._dial()
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            self._failure = error
            await _close(writer)
            return
        to_server = asyncio.create_task(_forward_bytes(reader, server_writer))
        to_program = asyncio.create_task(_forward_responses(server_reader, writer))
        # When one direction ends, both end: PostgreSQL's protocol has no half-closed connections.
        await asyncio.wait({to_server, to_program}, return_when=asyncio.FIRST_COMPLETED)
        if to_server.done() and not to_program.done():
            await asyncio.wait({to_program}, timeout=END_S_MAX)
        to_server.cancel()
        to_program.cancel()
        await _close(server_writer)
        await _close(writer)

    async def _dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host = self._options["host"]
        reader, writer = await asyncio.open_connection(
            self._options["hostaddr"] or host, int(self._options["port"]), limit=CHUNK_BYTES
        )
        try:
            writer.write(TLS_REQUEST)
            if await reader.readexactly(len(TLS_SUPPORTED)) != TLS_SUPPORTED:
                raise ConnectionError("the server no longer offers it")
            await writer.start_tls(self._context, server_hostname=host)
        except BaseException:
            await _close(writer)
            raise
        return reader, writer


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(END_S_MAX):
            await writer.wait_closed()


async def _forward_responses(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Forward the server's messages. The offer of channel binding is removed from the first message, because only a TLS
    client can use it."""
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        kind = await reader.readexactly(1)
        length = await reader.readexactly(4)
        body = await reader.readexactly(int.from_bytes(length) - 4)
        if kind == AUTHENTICATION and body.startswith(SASL):
            body = body.replace(WITH_CHANNEL_BINDING, b"")
        writer.write(kind + (len(body) + 4).to_bytes(4) + body)
    await _forward_bytes(reader, writer)


async def _forward_bytes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
