"""A quick receiver of webhooks: answers 204 and notes when each external_id came. Prints its port, then what it noted.

Started as a process of its own; it writes `external_id moment` for every delivery when its input ends.
"""

import asyncio
import re
import sys
import time

import uvloop

ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_EXTERNAL_ID = re.compile(rb'"external_id":"([^"]+)"')


class Receiver(asyncio.Protocol):
    came: list[tuple[bytes, float]] = []  # noqa: RUF012  # shared by all connections on purpose

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            length = _LENGTH.search(self.buffer, 0, end)
            size = end + 4 + (int(length[1]) if length else 0)
            if len(self.buffer) < size:
                return
            body, self.buffer = self.buffer[end + 4 : size], self.buffer[size:]
            found = _EXTERNAL_ID.search(body)
            self.came.append((found[1] if found else b"-", time.time()))
            self.transport.write(ANSWER)  # type: ignore[attr-defined]  # a stream protocol gets a stream transport


async def main() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Receiver, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    sys.stdout.write("".join(f"{name.decode()} {moment}\n" for name, moment in Receiver.came))


if __name__ == "__main__":
    uvloop.run(main())
