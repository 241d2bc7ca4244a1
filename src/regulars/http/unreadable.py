"""Answer requests that cannot be read as HTTP, and log how many there were.

Anyone can send such requests, without an API key. So they cost one log line per error code and minute, not one each.
"""

import asyncio
from collections import Counter
from typing import Final

import msgspec
from uvicorn._types import ASGI3Application, ASGIReceiveCallable, ASGISendCallable, Scope

from regulars.http.problem import problem_response
from regulars.http.responses import response_headers
from regulars.kit import log
from regulars.kit.errors import ApiError
from regulars.kit.ids import new_request_id

LOG_EVERY_S: Final = 60.0

_log = log.get(__name__)


class _UnreadRequest(msgspec.Struct, frozen=True):
    """A request whose head was not read, so that the address that the caller used is unknown."""

    request_id: str
    base_url: str = ""


def refusing_application(error: ApiError) -> ASGI3Application:
    """Return an ASGI application that answers with this error, whatever the request is."""

    async def refuse(_scope: Scope, _receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        request = _UnreadRequest(new_request_id())
        response = problem_response(error, request)
        headers = response_headers(response, request.request_id)
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": response.body})

    return refuse


class UnreadableLog:
    """Logs the first request of a code at once, and then how many came within each minute that had any."""

    def __init__(self) -> None:
        # A code is a key while its minute runs.
        self._counts: Counter[str] = Counter()

    def record(self, code: str) -> None:
        if code in self._counts:
            self._counts[code] += 1
        else:
            self._start_minute(code, count=1)

    def _start_minute(self, code: str, *, count: int) -> None:
        _log.warning("http.unreadable", code=code, count=count)
        self._counts[code] = 0
        asyncio.get_running_loop().call_later(LOG_EVERY_S, self._end_minute, code)

    def _end_minute(self, code: str) -> None:
        count = self._counts.pop(code)
        if count:
            self._start_minute(code, count=count)


UNREADABLE_LOG: Final = UnreadableLog()
