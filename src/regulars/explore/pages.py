"""The public pages: the landing page, the API reference, the list of API errors, the documentation, and the page that
reports a failed request."""

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
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from regulars.explore.documents import find_documents, read_document
from regulars.explore.first_steps import first_steps
from regulars.explore.postman import build_collection
from regulars.explore.reference import Reference, read_reference, search_reference
from regulars.http import openapi, refusals
from regulars.http.problem import DOCUMENTATION_PATH
from regulars.http.refusals import refusals_of_all
from regulars.http.route import Route as ApiRoute
from regulars.kit.address import base_url
from regulars.kit.clock import monotonic
from regulars.kit.db import CONNECTION_ERRORS
from regulars.kit.public_address import PublicAddress
from regulars.web import cookies
from regulars.web.render import PUBLIC_HEADERS, public_html, render_public
from regulars.webhooks.event_reference import EVENTS

DOCUMENTS_PATH: Final = "/docs"
REFERENCE_PATH: Final = "/docs/api"
POSTMAN_PATH: Final = "/docs/postman.json"
SEARCH_CHARACTERS_MAX: Final = 100
# How long the landing page waits for the database.
STATE_WAIT_S: Final = 2.0
# The landing page is public, so it queries the database at most once in this time.
STATE_AGE_S_MAX: Final = 1.0
# The reference is rendered once with this reserved address; each response replaces it by the server's own.
DUMMY_URL: Final = "http://server.invalid"

FindProblem = Callable[[], Awaitable[str | None]]
HasUsers = Callable[[], Awaitable[bool]]


def page_routes(
    api_routes: Sequence[ApiRoute], find_problem: FindProblem, *, has_users: HasUsers, address: PublicAddress
) -> list[BaseRoute]:
    """`find_problem` returns why the server is not ready, or None; `has_users` whether the first user has signed up."""
    pages = _Pages(api_routes, find_problem, has_users, address)
    return [
        Route("/", pages.landing),
        Route(DOCUMENTS_PATH, _redirect_to_reference),
        Route(REFERENCE_PATH, pages.reference),
        Route(DOCUMENTATION_PATH, pages.errors),
        Route(POSTMAN_PATH, pages.postman),
        Route(DOCUMENTS_PATH + "/{name:path}", _document),
    ]


@dataclass(frozen=True, slots=True)
class _ServerState:
    """Why the server was not ready (None if it was), and when this was checked."""

    problem: str | None
    has_users: bool
    checked_at: datetime
    checked_s: float


class _Pages:
    def __init__(
        self, api_routes: Sequence[ApiRoute], find_problem: FindProblem, has_users: HasUsers, address: PublicAddress
    ) -> None:
        self._api_routes = api_routes
        self._find_problem = find_problem
        self._has_users = has_users
        self._public_address = address
        self._state: _ServerState | None = None

    async def landing(self, request: Request) -> Response:
        if any(name in request.cookies for name in (cookies.SESSION_HTTPS, cookies.SESSION_HTTP)):
            return RedirectResponse("/organizations", HTTPStatus.SEE_OTHER)
        state = await self._current_state()
        steps = first_steps(self._address(request), today=state.checked_at)
        return render_public("explore/first.html", state=state, steps=steps)

    async def reference(self, request: Request) -> Response:
        search_text = " ".join(request.query_params.get("q", "").split())[:SEARCH_CHARACTERS_MAX]
        page = self._render_reference(search_text) if search_text else self._full_reference_html
        return HTMLResponse(page.replace(DUMMY_URL, html.escape(self._address(request))), headers=PUBLIC_HEADERS)

    async def postman(self, request: Request) -> Response:
        address = json.dumps(self._address(request))[1:-1]
        headers = {"Content-Disposition": 'attachment; filename="regulars.postman_collection.json"'}
        return Response(
            self._postman_json.replace(DUMMY_URL, address),
            media_type="application/json",
            headers={**PUBLIC_HEADERS, **headers},
        )

    async def errors(self, _request: Request) -> Response:
        return HTMLResponse(self._errors_html, headers=PUBLIC_HEADERS)

    @cached_property
    def _postman_json(self) -> str:
        return json.dumps(build_collection(openapi.build(self._api_routes, server_url=DUMMY_URL)), ensure_ascii=False)

    @cached_property
    def _reference_data(self) -> Reference:
        return read_reference(openapi.build(self._api_routes, server_url=DUMMY_URL, events=EVENTS))

    @cached_property
    def _full_reference_html(self) -> str:
        return self._render_reference("")

    def _render_reference(self, search_text: str) -> str:
        reference = search_reference(self._reference_data, search_text) if search_text else self._reference_data
        return public_html("explore/reference.html", reference=reference, base=DUMMY_URL, search_text=search_text)

    @cached_property
    def _errors_html(self) -> str:
        entries = [(refusals.anchor(error), error) for error in refusals_of_all(self._api_routes)]
        return public_html("explore/errors.html", introduction=refusals.INTRODUCTION, entries=entries)

    def _address(self, request: Request) -> str:
        return self._public_address.url or base_url(request.scope, request.headers.get("host", "").encode("latin-1"))

    async def _current_state(self) -> _ServerState:
        state = self._state
        if state is None or monotonic() - state.checked_s > STATE_AGE_S_MAX:
            try:
                problem = await asyncio.wait_for(self._find_problem(), STATE_WAIT_S)
                has_users = problem is not None or await asyncio.wait_for(self._has_users(), STATE_WAIT_S)
            except (TimeoutError, *CONNECTION_ERRORS):
                problem, has_users = "The database does not respond.", True
            self._state = state = _ServerState(problem, has_users, datetime.now(UTC), monotonic())
        return state


async def _redirect_to_reference(_request: Request) -> Response:
    return RedirectResponse(REFERENCE_PATH, HTTPStatus.SEE_OTHER)


# The links in the sidebar of a documentation page, in this order.
_LINKED_DOCUMENTS: Final = {
    "webhooks": "Webhooks",
    "imports": "Imports",
    "segments": "Segments",
    "conditions": "Conditions",
    "journeys": "Journeys",
    "first-journey": "Your first journey",
    "campaigns": "Campaigns",
    "texting": "Texting",
    "analytics": "Analytics",
    "attribution": "Attribution",
    "consent-ledger": "Consent ledger",
    "operations": "Operations",
    "configuration": "Configuration",
    "changelog": "Changelog",
}


async def _document(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in find_documents():
        raise HTTPException(HTTPStatus.NOT_FOUND)
    document = read_document(name)
    linked = [(name, title) for name, title in _LINKED_DOCUMENTS.items() if name in find_documents()]
    return render_public("explore/document.html", document=document, documents=linked)


async def _show_refusal(_request: Request, refusal: Exception) -> Response:
    if not isinstance(refusal, HTTPException):
        raise refusal
    if refusal.status_code == HTTPStatus.NOT_FOUND:
        title, text = "There is no page here", "The address may be mistyped, or the page no longer exists."
    else:
        title, text = f"{HTTPStatus(refusal.status_code).phrase}", "This page does not support the request."
    status = refusal.status_code
    return render_public(
        "explore/failure.html", status=status, headers=refusal.headers, status_code=status, title=title, text=text
    )


async def _show_failure(_request: Request, _error: Exception) -> Response:
    text = "This is a fault of the server. Its log has the details. Try again in a moment."
    return render_public("explore/failure.html", status=500, status_code=500, title="Something went wrong", text=text)


ERROR_HANDLERS: Final[dict[Any, Any]] = {HTTPException: _show_refusal, Exception: _show_failure}
