"""A server that stops under load breaks no request: it closes each connection after a response that says so."""

import asyncio
import contextlib
import http.client
import signal
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.cli.test_serve import END_SECONDS_MAX, Serving, serving
from tests.support import raw
from tests.support.tenant import Tenant, new_tenant
from tests.support.waiting import until, wait_until

CLIENTS = 8
RESPONSES_BEFORE = 20
USED_LATELY_S = 1.0
Address = tuple[str, int]


@pytest.fixture(scope="module")
def tenant(api_database_url: str) -> Tenant:
    return new_tenant(api_database_url)


@pytest.fixture
def start(api_database_url: str, tmp_path: Path) -> Iterator[Callable[..., Serving]]:
    """Starts servers without a worker on the shared database, each with a data folder of its own."""
    with contextlib.ExitStack() as stack:

        def start_one(*arguments: str, drain_s: int = 2) -> Serving:
            folder = tmp_path / f"node-{time.monotonic_ns()}" / "data"
            folder.parent.mkdir()
            variables = {
                "DATABASE_URL": api_database_url,
                "REGULARS_DRAIN_S": str(drain_s),
                "REGULARS_RATE_LIMIT_PER_S": "0",
                "REGULARS_SECRET_KEY": "a key for tests, of more than 32 characters",
            }
            return stack.enter_context(serving(folder, "--no-worker", *arguments, **variables))

        yield start_one


def address_of(server: Serving) -> Address:
    parts = urlsplit(server.url)
    return parts.hostname or "", parts.port or 0


def requests_of(tenant: Tenant) -> list[bytes]:
    """A write and a read that take the fast path, and a request that does not."""
    key = (b"x-api-key", tenant.key.encode())
    json_type = (b"Content-Type", b"application/json")
    requests = [
        raw.request_bytes(b"POST", b"/v1/stores", [key, json_type], b'{"external_id":"S1"}'),
        raw.request_bytes(b"GET", b"/v1/stores/S1", [key]),
        raw.request_bytes(b"GET", b"/healthz", []),
    ]
    return [raw.keep_alive(request) for request in requests]


class DirectClient(threading.Thread):
    """Sends one request after another on a connection, and opens a new one when the server has closed it."""

    def __init__(self, address: Address, requests: list[bytes]) -> None:
        super().__init__()
        self._address = address
        self._requests = requests
        self.statuses: list[int] = []
        self.closed_politely = 0
        self.broken: list[str] = []

    def run(self) -> None:
        while not self.broken:
            try:
                connection = socket.create_connection(self._address, timeout=raw.ANSWER_SECONDS_MAX)
            except OSError:
                # The server has ended.
                return
            with connection, connection.makefile("rb") as reader:
                self._use(connection, reader)

    def _use(self, connection: socket.socket, reader) -> None:
        used_at = float("-inf")
        while True:
            try:
                connection.sendall(self._requests[len(self.statuses) % len(self._requests)])
                answer = raw.read_one(reader)
            except (OSError, IndexError, http.client.HTTPException) as error:
                if time.monotonic() - used_at < USED_LATELY_S:
                    self.broken.append(repr(error))
                return
            self.statuses.append(answer.status)
            used_at = time.monotonic()
            if answer.headers["connection"] == "close":
                self.closed_politely += 1
                return


@pytest.mark.parametrize("arguments", [(), ("--workers", "2")])
def test_no_direct_client_gets_a_broken_connection(
    start: Callable[..., Serving], tenant: Tenant, arguments: tuple[str, ...]
) -> None:
    server = start(*arguments)
    wait_until(lambda: server.get("/readyz").status_code == 200, show=server.log)
    clients = [DirectClient(address_of(server), requests_of(tenant)) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    wait_until(lambda: all(len(client.statuses) >= RESPONSES_BEFORE for client in clients), show=server.log)
    before = sum(len(client.statuses) for client in clients)
    assert server.stop() == 0
    for client in clients:
        client.join()
    assert [client.broken for client in clients] == [[]] * CLIENTS
    assert all(client.closed_politely for client in clients)
    # It answered on new connections too.
    assert sum(len(client.statuses) for client in clients) > before + 2 * CLIENTS
    assert {status for client in clients for status in client.statuses} <= {200, 201}


@pytest.mark.parametrize("arguments", [(), ("--workers", "2")])
def test_a_stopping_server_is_not_ready_and_a_second_signal_ends_the_wait(
    start: Callable[..., Serving], arguments: tuple[str, ...]
) -> None:
    server = start(*arguments, drain_s=300)
    wait_until(lambda: server.get("/readyz").status_code == 200, show=server.log)
    with contextlib.ExitStack() as stack:
        for _ in range(8):
            idle = stack.enter_context(socket.create_connection(address_of(server), timeout=raw.ANSWER_SECONDS_MAX))
            idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            assert raw.read_answer(idle).headers["connection"] is None
        server.process.send_signal(signal.SIGTERM)
        # A child process gets the signal from its parent.
        stopping = wait_until(lambda: find_refusal(server), show=server.log)
        assert "stopping" in stopping.text
        # An idle connection is still answered, and closed then.
        idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        assert raw.read_answer(idle).headers["connection"] == "close"
        assert idle.recv(1) == b""
        assert server.process.is_alive()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(END_SECONDS_MAX) == 0


def test_after_the_wait_it_refuses_connections_and_answers_what_has_begun(
    start: Callable[..., Serving], tenant: Tenant
) -> None:
    server = start("--workers", "2", drain_s=300)
    wait_until(lambda: server.get("/readyz").status_code == 200, show=server.log)
    write = requests_of(tenant)[0]
    with socket.create_connection(address_of(server), timeout=raw.ANSWER_SECONDS_MAX) as connection:
        connection.sendall(write[:-1])
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: find_refusal(server), show=server.log)
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: is_refused(address_of(server)), show=server.log)
        connection.sendall(write[-1:])
        response = raw.read_answer(connection)
    assert response.status in {200, 201}
    assert response.headers["connection"] == "close"
    assert server.process.wait(END_SECONDS_MAX) == 0


def is_refused(address: Address) -> bool:
    try:
        socket.create_connection(address).close()
    except ConnectionRefusedError:
        return True
    return False


def find_refusal(server: Serving):
    answer = server.get("/readyz")
    return answer if answer.status_code == 503 and answer.headers.get("connection") == "close" else None


def test_without_an_open_connection_it_ends_at_once(start: Callable[..., Serving]) -> None:
    # The test waits for less than the server would.
    assert start(drain_s=300).stop() == 0


class Backend:
    """A server behind the proxy, with the idle connections to it."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.is_ready = False
        self.idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def watch(self) -> None:
        while True:
            try:
                answer = await self._exchange(await asyncio.open_connection(*self.address), READY)
                self.is_ready = answer.startswith(b"HTTP/1.1 200 ")
            except (OSError, asyncio.IncompleteReadError):
                self.is_ready = False
            if not self.is_ready:
                while self.idle:
                    await close(self.idle.pop()[1])
            await asyncio.sleep(0.05)

    async def forward(self, request: bytes) -> bytes:
        return await self._exchange(
            self.idle.pop() if self.idle else await asyncio.open_connection(*self.address), request
        )

    async def _exchange(self, streams: tuple[asyncio.StreamReader, asyncio.StreamWriter], request: bytes) -> bytes:
        streams[1].write(request)
        answer = await read_message(streams[0])
        if b"connection: close" in answer.lower() or not self.is_ready:
            await close(streams[1])
        else:
            self.idle.append(streams)
        return answer


READY = b"GET /readyz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


async def read_message(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    lengths = [line.partition(b":")[2] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return head + await reader.readexactly(int(lengths[0]) if lengths else 0)


@contextlib.asynccontextmanager
async def proxy_for(backends: list[Backend]):
    """The address of a proxy that sends each request to the next server that is ready, on a kept connection."""
    number = 0
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal number
        writers.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                request = await read_message(reader)
                number += 1
                ready = [backend for backend in backends if backend.is_ready]
                try:
                    answer = await ready[number % len(ready)].forward(request)
                except (OSError, asyncio.IncompleteReadError, ZeroDivisionError) as error:
                    text = repr(error).encode()
                    answer = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: %d\r\n\r\n%b" % (len(text), text)
                writer.write(answer)

    watching = [asyncio.create_task(backend.watch()) for backend in backends]
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()
    finally:
        server.close()
        for task in watching:
            task.cancel()
        await asyncio.wait(watching)
        for writer in [*writers, *[writer for backend in backends for _, writer in backend.idle]]:
            await close(writer)


async def close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


async def ask_until(is_over: Callable[[], bool], address: Address, requests: list[bytes], answers: list[bytes]) -> None:
    reader, writer = await asyncio.open_connection(*address)
    while not is_over():
        writer.write(requests[len(answers) % len(requests)])
        answers.append(await read_message(reader))
    await close(writer)


def test_behind_a_proxy_with_a_second_server_no_request_fails(start: Callable[..., Serving], tenant: Tenant) -> None:
    first, second = start(drain_s=60), start(drain_s=60)
    answers: list[bytes] = []

    async def stop_under_load() -> None:
        backends = [Backend(address_of(server)) for server in (first, second)]
        async with proxy_for(backends) as address:
            await until(lambda: all(backend.is_ready for backend in backends))
            is_over = asyncio.Event()
            asking: list[Awaitable[None]] = [
                asyncio.create_task(ask_until(is_over.is_set, address, requests_of(tenant), answers))
                for _ in range(CLIENTS)
            ]
            await until(lambda: len(answers) > CLIENTS * RESPONSES_BEFORE)
            first.process.send_signal(signal.SIGTERM)
            await until(lambda: not first.process.is_alive())
            answered = len(answers)
            await until(lambda: len(answers) > answered + CLIENTS * RESPONSES_BEFORE)
            is_over.set()
            await asyncio.gather(*asking)

    asyncio.run(stop_under_load())
    assert first.process.wait(END_SECONDS_MAX) == 0
    failed = [answer for answer in answers if not answer.startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 201 "))]
    assert failed == []
