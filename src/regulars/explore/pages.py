"""The public pages: the first page, the API reference, what each refusal means, the documents, and a page for what is
not there."""

import asyncio
import html
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from http import HTTPStatus
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from regulars.explore.documents import names, read_document
from regulars.explore.first_steps import first_steps
from regulars.explore.postman import collection
from regulars.explore.reference import Reference, found
from regulars.explore.reference import read as read_reference
from regulars.explore.render import SECURITY_HEADERS, STATIC_PATH, page, render, static_response
from regulars.http import error_pages, openapi
from regulars.http.address import base_url
from regulars.http.problem import DOCUMENTATION_PATH
from regulars.http.refusals import refusals_of_all
from regulars.http.route import Route as ApiRoute
from regulars.kit.clock import monotonic
from regulars.kit.db import CONNECTION_ERRORS
from regulars.web import cookies
from regulars.webhooks.described import EVENTS

DOCUMENTS_PATH: Final = "/docs"
REFERENCE_PATH: Final = "/docs/api"
POSTMAN_PATH: Final = "/docs/postman.json"
SOUGHT_CHARACTERS_MAX: Final = 100
STATE_WAIT_S: Final = 2.0
# The first page is open to anyone, so its question to the database is asked at most this often.
STATE_AGE_S_MAX: Final = 1.0
# The reference is rendered once for this address, which no machine can have, and then served for any.
ANY_ADDRESS: Final = "http://server.invalid"

Missing = Callable[[], Awaitable[str | None]]
HasUsers = Callable[[], Awaitable[bool]]


def page_routes(
    api_routes: Sequence[ApiRoute], *, missing: Missing, has_users: HasUsers, public_url: str | None
) -> list[BaseRoute]:
    """`missing` says what keeps the server from being ready, or nothing; `has_users`, whether anybody signed up."""
    pages = _Pages(api_routes, missing, has_users, public_url)
    return [
        Route("/", pages.first),
        Route(DOCUMENTS_PATH, _documents),
        Route(REFERENCE_PATH, pages.reference),
        Route(DOCUMENTATION_PATH, pages.errors),
        Route(POSTMAN_PATH, pages.postman),
        Route(DOCUMENTS_PATH + "/{name:path}", _document),
        Route(STATIC_PATH + "/{version}/{name}", _static),
    ]


@dataclass(frozen=True, slots=True)
class _State:
    """Whether the server was ready, and when that was so."""

    missing: str | None
    has_users: bool
    seen_at: datetime
    seen_s: float


class _Pages:
    def __init__(
        self, api_routes: Sequence[ApiRoute], missing: Missing, has_users: HasUsers, public_url: str | None
    ) -> None:
        self._api_routes = api_routes
        self._missing = missing
        self._has_users = has_users
        self._public_url = public_url
        self._state: _State | None = None

    async def first(self, request: Request) -> Response:
        if any(name in request.cookies for name in (cookies.SESSION_HTTPS, cookies.SESSION_HTTP)):
            return RedirectResponse("/organizations", HTTPStatus.SEE_OTHER)
        state = await self._current_state()
        steps = first_steps(self._address(request), today=state.seen_at)
        return page(render("first.html", state=state, steps=steps))

    async def reference(self, request: Request) -> Response:
        sought = " ".join(request.query_params.get("q", "").split())[:SOUGHT_CHARACTERS_MAX]
        shown = self._found_html(sought) if sought else self._reference_html
        return page(shown.replace(ANY_ADDRESS, html.escape(self._address(request))))

    async def postman(self, request: Request) -> Response:
        address = json.dumps(self._address(request))[1:-1]
        headers = {"Content-Disposition": 'attachment; filename="regulars.postman_collection.json"'}
        return Response(
            self._postman_json.replace(ANY_ADDRESS, address),
            media_type="application/json",
            headers={**SECURITY_HEADERS, **headers},
        )

    async def errors(self, _request: Request) -> Response:
        return page(self._errors_html)

    @cached_property
    def _postman_json(self) -> str:
        return json.dumps(collection(openapi.build(self._api_routes, server_url=ANY_ADDRESS)), ensure_ascii=False)

    @cached_property
    def _described(self) -> Reference:
        return read_reference(openapi.build(self._api_routes, server_url=ANY_ADDRESS, events=EVENTS))

    @cached_property
    def _reference_html(self) -> str:
        return render("reference.html", reference=self._described, base=ANY_ADDRESS, sought="")

    def _found_html(self, sought: str) -> str:
        return render("reference.html", reference=found(self._described, sought), base=ANY_ADDRESS, sought=sought)

    @cached_property
    def _errors_html(self) -> str:
        entries = [(error_pages.anchor(error), error) for error in refusals_of_all(self._api_routes)]
        return render("errors.html", introduction=error_pages.INTRODUCTION, entries=entries)

    def _address(self, request: Request) -> str:
        return self._public_url or base_url(request.scope, request.headers.get("host", "").encode("latin-1"))

    async def _current_state(self) -> _State:
        state = self._state
        if state is None or monotonic() - state.seen_s > STATE_AGE_S_MAX:
            try:
                missing = await asyncio.wait_for(self._missing(), STATE_WAIT_S)
                has_users = missing is not None or await asyncio.wait_for(self._has_users(), STATE_WAIT_S)
            except (TimeoutError, *CONNECTION_ERRORS):
                missing, has_users = "The database does not answer.", True
            self._state = state = _State(missing, has_users, datetime.now(UTC), monotonic())
        return state


async def _documents(_request: Request) -> Response:
    """Whoever shortens the address of a document comes to the one that most are looking for."""
    return RedirectResponse(REFERENCE_PATH, HTTPStatus.SEE_OTHER)


# What the side of a document offers, in this order.
_OFFERED: Final = {
    "webhooks": "Webhooks",
    "imports": "Imports",
    "segments": "Segments",
    "conditions": "Conditions",
    "journeys": "Journeys",
    "first-journey": "Your first journey",
    "texting": "Texting",
    "consent-ledger": "Consent ledger",
    "operations": "Operations",
    "configuration": "Configuration",
    "changelog": "Changelog",
}


async def _document(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in names():
        raise HTTPException(HTTPStatus.NOT_FOUND)
    document = read_document(name)
    offered = [(name, title) for name, title in _OFFERED.items() if name in names()]
    return page(render("document.html", document=document, documents=offered))


async def _static(request: Request) -> Response:
    response = static_response(request.path_params["version"], request.path_params["name"])
    if response is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return response


async def _refused(_request: Request, refusal: Exception) -> Response:
    if not isinstance(refusal, HTTPException):
        raise refusal
    if refusal.status_code == HTTPStatus.NOT_FOUND:
        title, text = "There is no page here", "The address may be mistyped, or what it named is gone."
    else:
        title, text = f"{HTTPStatus(refusal.status_code).phrase}", "This page cannot be asked for in this way."
    shown = render("failure.html", status=refusal.status_code, title=title, text=text)
    return page(shown, status=refusal.status_code, headers=refusal.headers)


async def _failed(_request: Request, _error: Exception) -> Response:
    text = "The failure is on our side, and it is in the server's log. Trying again in a moment often helps."
    return page(render("failure.html", status=500, title="This page broke", text=text), status=500)


FAILURES: Final[dict[Any, Any]] = {HTTPException: _refused, Exception: _failed}
