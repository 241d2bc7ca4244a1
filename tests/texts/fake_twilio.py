"""A Twilio on loopback: it accepts, refuses, stalls and hangs up as the test sets it, and stores what it got."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

ACCOUNT = "AC00000000000000000000000000000001"
TOKEN = "twilio-token"


class FakeTwilio:
    def __init__(self) -> None:
        self.posts: list[dict[str, str]] = []
        self.inbound: list[dict[str, Any]] = []
        self.asked: list[dict[str, str]] = []
        self.page_messages = 1_000
        self.refuses_to_list = 0
        self.unlisted: set[str] = set()
        self.numbers: list[str] = []
        self.short_codes: list[str] = []
        self.respond: Callable[[dict[str, str]], web.Response | None] = lambda _form: None
        self.stalls_s = 0.0
        self.may_respond = asyncio.Event()
        self.may_respond.set()
        self.hangs_up = False
        self.url = ""

    async def post(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        self.posts.append({**form, "authorization": request.headers.get("authorization", "")})
        response = self.respond(form)
        if self.hangs_up:
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        if self.stalls_s:
            await asyncio.sleep(self.stalls_s)
        await self.may_respond.wait()
        return response or web.json_response({"sid": f"SM{len(self.posts)}", "status": "queued"}, status=201)

    async def get(self, request: web.Request) -> web.Response:
        """The newest first; `inbound` has them so."""
        self.asked.append(dict(request.query))
        if self.refuses_to_list:
            return web.json_response({"message": "no"}, status=self.refuses_to_list)
        to = request.query.get("To")
        if to in self.unlisted:
            return web.json_response({"message": "no"}, status=500)
        listed = [it for it in self.inbound if to is None or it.get("to") == to]
        page = int(request.query.get("Page", "0"))
        size = min(self.page_messages, int(request.query.get("PageSize", "50")))
        shown = listed[page * size : (page + 1) * size]
        more = {**request.query, "Page": str(page + 1), "PageToken": "PASM"}
        following = f"{request.path}?{urlencode(more)}" if len(listed) > (page + 1) * size else None
        return web.json_response({"messages": shown, "next_page_uri": following})

    async def list_senders(self, request: web.Request) -> web.Response:
        kind = request.match_info["kind"]
        if kind == "ShortCodes":
            return web.json_response({"short_codes": [{"short_code": it} for it in self.short_codes], "meta": {}})
        is_second = request.query.get("Page") == "1"
        shown = self.numbers[1:] if is_second else self.numbers[:1]
        following = None if is_second else f"https://messaging.twilio.com{request.path}?Page=1"
        return web.json_response(
            {"phone_numbers": [{"phone_number": it} for it in shown], "meta": {"next_page_url": following}}
        )


@asynccontextmanager
async def fake_twilio() -> AsyncIterator[FakeTwilio]:
    fake = FakeTwilio()
    app = web.Application()
    path = f"/2010-04-01/Accounts/{ACCOUNT}/Messages.json"
    app.router.add_post(path, fake.post)
    app.router.add_get(path, fake.get)
    app.router.add_get("/v1/Services/{service}/{kind}", fake.list_senders)
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
