"""A Twilio on loopback: it accepts, refuses, stalls and hangs up as it is told, and keeps what it got."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

ACCOUNT = "AC00000000000000000000000000000001"
TOKEN = "twilio-token"


class FakeTwilio:
    def __init__(self) -> None:
        self.posts: list[dict[str, str]] = []
        self.inbound: list[dict[str, Any]] = []
        self.respond: Callable[[dict[str, str]], web.Response | None] = lambda _form: None
        self.stalls_s = 0.0
        self.hangs_up = False
        self.url = ""

    async def post(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        self.posts.append({**form, "authorization": request.headers.get("authorization", "")})
        told = self.respond(form)
        if self.hangs_up:
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        if self.stalls_s:
            await asyncio.sleep(self.stalls_s)
        return told or web.json_response({"sid": f"SM{len(self.posts)}", "status": "queued"}, status=201)

    async def get(self, request: web.Request) -> web.Response:
        if request.query.get("Page") == "1":
            return web.json_response({"messages": self.inbound[1:], "next_page_uri": None})
        following = f"{request.path}?Page=1" if len(self.inbound) > 1 else None
        return web.json_response({"messages": self.inbound[:1], "next_page_uri": following})


@asynccontextmanager
async def fake_twilio() -> AsyncIterator[FakeTwilio]:
    fake = FakeTwilio()
    app = web.Application()
    path = f"/2010-04-01/Accounts/{ACCOUNT}/Messages.json"
    app.router.add_post(path, fake.post)
    app.router.add_get(path, fake.get)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server = site._server
    assert server is not None
    fake.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield fake
    finally:
        await runner.cleanup()
