"""Runs the external services on a thread: a provider of texts and a receiver of webhooks, which record what they get."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from aiohttp import web
from tests.texts.fake_twilio import FakeTwilio, fake_twilio
from tests.webhooks.receiver import Received, Receiver

from regulars.kit import ids

Behaviour = Literal["well", "hangs", "resets", "twice", "refuses"]
ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"
TWICE = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
REFUSAL = b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n"
SENT = b'HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ncontent-length: 14\r\n\r\n{"sid": "SMx"}'
HANGS_S = 5.0


@dataclass(frozen=True)
class Arrival:
    """A text that reached the provider: when, its id (from the callback URL), and whether the provider accepted it."""

    at: float
    organization: str
    text_id: str
    number: str
    body: str
    is_taken: bool


class ExternalServices:
    def __init__(self, provider: FakeTwilio, receiver: Receiver, loop: asyncio.AbstractEventLoop) -> None:
        self._provider = provider
        self._receiver = receiver
        self._loop = loop
        self._provider_behaviour: Behaviour = "well"
        self._arrivals: list[Arrival] = []
        provider.respond = self._take

    @property
    def provider_url(self) -> str:
        return self._provider.url

    @property
    def hooks_url(self) -> str:
        return f"http://127.0.0.1:{self._receiver.port}"

    def arrivals(self, organization: str) -> list[Arrival]:
        return [it for it in list(self._arrivals) if it.organization == organization]

    def received(self, tag: str) -> list[Received]:
        return [it for it in list(self._receiver.received) if it.path == f"/{tag}"]

    def forget(self) -> None:
        self._loop.call_soon_threadsafe(self._receiver.received.clear)
        self._loop.call_soon_threadsafe(self._provider.posts.clear)
        self._loop.call_soon_threadsafe(self._arrivals.clear)

    def set_behaviours(self, *, provider: Behaviour = "well", receiver: Behaviour = "well") -> None:
        self._loop.call_soon_threadsafe(self._set_behaviours, provider, receiver)

    def _set_behaviours(self, provider: Behaviour, receiver: Behaviour) -> None:
        self._provider_behaviour = provider
        self._provider.stalls_s = HANGS_S if provider == "hangs" else 0.0
        self._provider.hangs_up = provider == "resets"
        self._receiver.delay_s = HANGS_S if receiver == "hangs" else 0.0
        self._receiver.misbehave = _reset if receiver == "resets" else None
        self._receiver.answer = {"twice": TWICE * 2, "refuses": REFUSAL}.get(receiver, ANSWER)

    def _take(self, form: dict[str, str]) -> web.Response | None:
        _, _, address = form.get("StatusCallback", "").partition("/sms/twilio/")
        organization, _, text = address.partition("/")
        is_taken = self._provider_behaviour != "refuses"
        self._arrivals.append(
            Arrival(
                time.monotonic(),
                organization,
                text.rpartition("/")[2].partition("?")[0],
                form["To"],
                form["Body"],
                is_taken,
            )
        )
        if self._provider_behaviour == "refuses":
            return web.json_response({"message": "later"}, status=429)
        if self._provider_behaviour == "twice":
            return _Twice()
        return None


class _Twice(web.Response):
    """The response, followed by a second one without a request."""

    def __init__(self) -> None:
        super().__init__(body=SENT[SENT.index(b"{") :] + SENT, status=201, content_type="application/json")
        self.headers["content-length"] = "14"

    async def prepare(self, request: web.BaseRequest) -> Any:
        assert request.transport is not None
        request.transport.write(SENT + SENT)
        request.transport.close()
        raise web.HTTPInternalServerError


async def _reset(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


def organization_name(organization_id: Any) -> str:
    return ids.ORGANIZATION.encode(organization_id)


@contextlib.contextmanager
def external_services() -> Iterator[ExternalServices]:
    ready: list[ExternalServices] = []
    opened, closing = threading.Event(), threading.Event()

    async def live() -> None:
        receiver = Receiver()
        await receiver.open()
        async with fake_twilio() as provider:
            ready.append(ExternalServices(provider, receiver, asyncio.get_running_loop()))
            opened.set()
            while not closing.is_set():  # noqa: ASYNC110  # it is set by another thread
                await asyncio.sleep(0.1)
        await receiver.close()

    thread = threading.Thread(target=lambda: asyncio.run(live()), name="outside", daemon=True)
    thread.start()
    if not opened.wait(20):
        raise RuntimeError("the receiver and the provider did not open")
    try:
        yield ready[0]
    finally:
        closing.set()
        thread.join(10)
