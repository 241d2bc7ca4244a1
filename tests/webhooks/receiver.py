"""A receiver on loopback that answers, or misbehaves, as a test asks."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
import pytest
from standardwebhooks import Webhook
from tests.support.waiting import until

Misbehave = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Received:
    def __init__(self, headers: dict[str, str], body: bytes, path: str) -> None:
        self.headers = headers
        self.body = body
        self.path = path

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def event(self) -> dict[str, Any]:
        return msgspec.json.decode(self.body)

    def verify(self, secret: str) -> Any:
        return Webhook(secret).verify(self.body, self.headers)


class Receiver:
    """By default it answers 204; `answer` is the status line and headers of another answer."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.answer = b"HTTP/1.1 204 No Content\r\n\r\n"
        self.misbehave: Misbehave | None = None
        self.at_once = self.most_at_once = self.connections = 0
        self.delay_s = 0.0
        self._server: asyncio.Server | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def wait_for(self, count: int) -> None:
        await until(lambda: len(self.received) >= count)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                path = head.split(" ", 2)[1]
                lines = [line.split(": ", 1) for line in head.split("\r\n")[1:] if line]
                headers = {name.lower(): value for name, value in lines}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                self.received.append(Received(headers, body, path))
                self.at_once += 1
                self.most_at_once = max(self.most_at_once, self.at_once)
                try:
                    if self.misbehave is not None:
                        await self.misbehave(reader, writer)
                        return
                    if self.delay_s and not await _stays(reader, self.delay_s):
                        return
                finally:
                    self.at_once -= 1
                writer.write(self.answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


async def _stays(reader: asyncio.StreamReader, seconds: float) -> bool:
    """Whether the caller is still there after this long."""
    try:
        await asyncio.wait_for(reader.read(1), seconds)
    except TimeoutError:
        return True
    return False


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    opened = Receiver()
    await opened.open()
    yield opened
    await opened.close()


@contextlib.asynccontextmanager
async def another_receiver() -> AsyncIterator[Receiver]:
    opened = Receiver()
    await opened.open()
    try:
        yield opened
    finally:
        await opened.close()
