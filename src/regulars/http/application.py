"""The ASGI application of the server: it passes each request to the JSON API, the web pages or the health probes."""

from typing import Final, Protocol

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from regulars.http.exchange import has_one_host, with_request_id
from regulars.http.fast_protocol import fast_protocol
from regulars.http.fast_requests import FastRequests
from regulars.http.json_api import JsonApi
from regulars.http.limited_protocol import LimitedProtocol

API_PREFIX: Final = b"/v"
API_V1: Final = b"/v1/"


class Pages(Protocol):
    """The pages of the web application."""

    def serves(self, raw_path: bytes) -> bool: ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


class Application:
    """Routes requests by path to the JSON API and the pages; all others, and ASGI's lifespan, go to `service`."""

    def __init__(self, api: JsonApi, web: Pages, service: ASGIApp, fast_requests: FastRequests | None) -> None:
        """`service` is a Starlette application with the health probes. `fast_requests` handles common API requests
        without ASGI; None if that is switched off."""
        self._fast_requests = fast_requests
        self._api = api
        self._web = web
        self._service = service

    def http_protocol(self) -> type[HttpToolsProtocol]:
        """Return the protocol class for uvicorn's `http` option."""
        return LimitedProtocol if self._fast_requests is None else fast_protocol(self._fast_requests)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # The API refuses a request that does not have exactly one Host header.
        if scope["type"] == "http" and (_is_api(scope["raw_path"]) or not has_one_host(scope)):
            await self._api(scope, receive, send)
            return
        app = self._web if scope["type"] == "http" and self._web.serves(scope["raw_path"]) else self._service
        await app(scope, receive, with_request_id(scope, send))


def _is_api(raw_path: bytes) -> bool:
    """Whether the path starts with `/v<n>`: unknown versions get the API's error format too."""
    if raw_path.startswith(API_V1):
        return True
    return raw_path.startswith(API_PREFIX) and raw_path[2:].split(b"/", 1)[0].isdigit()
