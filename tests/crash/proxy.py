"""A road to PostgreSQL that can be blocked: stand still in both directions, or end when a COMMIT has passed.

A process of its own. It prints its port, and reads commands from its input, one a line: `freeze`, `thaw`, and
`cut NUMBER` (that many of the next commits lose their connection, every second one before the database answered).
"""

import asyncio
import contextlib
import sys
from typing import Final

COMMIT: Final = b"COMMIT\x00"
RECORDING: Final = b"INSERT INTO sales_events"
SYNC: Final = b"S\x00\x00\x00\x04"
CHUNK: Final = 1 << 16


class Road:
    def __init__(self, target: str) -> None:
        self.target = target
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.to_cut = 0

    async def travel(self, near: asyncio.StreamReader, nearer: asyncio.StreamWriter) -> None:
        try:
            await self.is_open.wait()
            far, farther = await asyncio.open_unix_connection(self.target, limit=CHUNK)
        except OSError:
            nearer.close()
            return
        trip = Trip(self, nearer, farther)
        try:
            await asyncio.gather(trip.out(near), trip.back(far))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            trip.end()

    def obey(self, line: str) -> None:
        match line.split():
            case ["freeze"]:
                self.is_open.clear()
            case ["thaw"]:
                self.is_open.set()
                self.to_cut = 0
            case ["cut", number]:
                self.to_cut = int(number)


class Trip:
    """One connection."""

    def __init__(self, road: Road, nearer: asyncio.StreamWriter, farther: asyncio.StreamWriter) -> None:
        self._road = road
        self._nearer = nearer
        self._farther = farther
        self._records = False
        self._ends_with_answer = False

    async def out(self, near: asyncio.StreamReader) -> None:
        while data := await near.read(CHUNK):
            await self._road.is_open.wait()
            self._records = self._records or RECORDING in data
            is_commit = COMMIT in data or (self._records and data.endswith(SYNC) and data.startswith(b"B"))
            is_cut = is_commit and self._road.to_cut > 0
            if is_cut:
                self._road.to_cut -= 1
                self._ends_with_answer = self._road.to_cut % 2 == 0
            self._farther.write(data)
            await self._farther.drain()
            if is_cut and not self._ends_with_answer:
                self.end()
                return
        self.end()

    async def back(self, far: asyncio.StreamReader) -> None:
        while data := await far.read(CHUNK):
            await self._road.is_open.wait()
            if self._ends_with_answer:
                # The commit has happened, and the client never learns of it.
                break
            self._nearer.write(data)
            await self._nearer.drain()
        self.end()

    def end(self) -> None:
        for side in (self._nearer, self._farther):
            with contextlib.suppress(OSError, RuntimeError):
                side.close()


async def main() -> None:
    road = Road(sys.argv[1])
    server = await asyncio.start_server(road.travel, "127.0.0.1", 0, limit=CHUNK, backlog=256)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        road.obey(line.decode())


if __name__ == "__main__":
    asyncio.run(main())
