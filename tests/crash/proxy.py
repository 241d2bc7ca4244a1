"""A proxy to PostgreSQL that can freeze, or cut a connection at a COMMIT.

It runs as a process, prints its port, and reads commands from its input, one per line: `freeze`, `thaw`, and
`cut NUMBER` (so many of the next commits lose their connection, every second one before the database responded).
"""

import asyncio
import contextlib
import sys
from typing import Final

COMMIT: Final = b"COMMIT\x00"
RECORDING: Final = b"INSERT INTO sales_events"
SYNC: Final = b"S\x00\x00\x00\x04"
CHUNK: Final = 1 << 16


class Proxy:
    def __init__(self, target: str) -> None:
        self.target = target
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.commits_to_cut = 0

    async def on_connect(self, client_reader: asyncio.StreamReader, client_writer: asyncio.StreamWriter) -> None:
        try:
            await self.is_open.wait()
            server_reader, server_writer = await asyncio.open_unix_connection(self.target, limit=CHUNK)
        except OSError:
            client_writer.close()
            return
        connection = ProxiedConnection(self, client_writer, server_writer)
        try:
            await asyncio.gather(connection.upstream(client_reader), connection.downstream(server_reader))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            connection.end()

    def on_command(self, line: str) -> None:
        match line.split():
            case ["freeze"]:
                self.is_open.clear()
            case ["thaw"]:
                self.is_open.set()
                self.commits_to_cut = 0
            case ["cut", number]:
                self.commits_to_cut = int(number)


class ProxiedConnection:
    def __init__(self, proxy: Proxy, client_writer: asyncio.StreamWriter, server_writer: asyncio.StreamWriter) -> None:
        self._proxy = proxy
        self._client_writer = client_writer
        self._server_writer = server_writer
        self._is_recording = False
        self._drops_response = False

    async def upstream(self, client_reader: asyncio.StreamReader) -> None:
        while data := await client_reader.read(CHUNK):
            await self._proxy.is_open.wait()
            self._is_recording = self._is_recording or RECORDING in data
            is_commit = COMMIT in data or (self._is_recording and data.endswith(SYNC) and data.startswith(b"B"))
            is_cut = is_commit and self._proxy.commits_to_cut > 0
            if is_cut:
                self._proxy.commits_to_cut -= 1
                self._drops_response = self._proxy.commits_to_cut % 2 == 0
            self._server_writer.write(data)
            await self._server_writer.drain()
            if is_cut and not self._drops_response:
                self.end()
                return
        self.end()

    async def downstream(self, server_reader: asyncio.StreamReader) -> None:
        while data := await server_reader.read(CHUNK):
            await self._proxy.is_open.wait()
            if self._drops_response:
                # The database has committed, but the client gets no response.
                break
            self._client_writer.write(data)
            await self._client_writer.drain()
        self.end()

    def end(self) -> None:
        for side in (self._client_writer, self._server_writer):
            with contextlib.suppress(OSError, RuntimeError):
                side.close()


async def main() -> None:
    proxy = Proxy(sys.argv[1])
    server = await asyncio.start_server(proxy.on_connect, "127.0.0.1", 0, limit=CHUNK, backlog=256)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        proxy.on_command(line.decode())


if __name__ == "__main__":
    asyncio.run(main())
