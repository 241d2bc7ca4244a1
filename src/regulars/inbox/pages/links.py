"""Respond to a customer who opens a short link: with a redirect, the opt-out page, or a page that says that there is no
such link.

The URL ends with a code of the organization and of the link. Lookups that arrive while a lookup is running share the
next SQL statement, and results are cached, because a link never changes its destination. A redirect does not wait for a
write: clicks are written afterwards.
"""

import asyncio
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final, NamedTuple
from uuid import UUID

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from regulars.inbox.opt_out import withdraw_by_link
from regulars.kit import log
from regulars.kit.bounded_cache import BoundedCache
from regulars.kit.clock import truncate_to_milliseconds
from regulars.kit.coalesce import Batcher, Overloaded
from regulars.kit.db import CONNECTION_ERRORS, KEY_READS_MAX, Database
from regulars.kit.ids import new_uuid
from regulars.links.clicks import ClickLog
from regulars.links.find import find_destinations, find_organization
from regulars.links.marks import CODE_CHARACTERS, OPT_OUT, PATH, PREFIX_CHARACTERS
from regulars.links.model import AGENT_CHARACTERS_MAX, Click, classify_request
from regulars.texts.in_flight import wait_for_texts_in_flight
from regulars.web.render import render_public

LOOKUPS_PER_STATEMENT_MAX: Final = 256
# How long a customer waits for the database before the page shows the fallback address.
LOOKUP_TIMEOUT_S: Final = 3.0
LINKS_CACHED_MAX: Final = 50_000
ORGANIZATIONS_CACHED_MAX: Final = 10_000
TEMPLATE: Final = "inbox/link.html"
HEADERS: Final = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex"}

_log = log.get(__name__)


class _Destination(NamedTuple):
    organization_id: UUID
    code: str
    url: str


class ShortLinkPages:
    """Handles requests for short links, one object per process; shows `fallback_url` if the database fails."""

    def __init__(self, database: Database, *, fallback_url: str | None) -> None:
        self.clicks = ClickLog(database)
        self._database = database
        self._fallback_url = fallback_url
        # By the prefix of their codes.
        self._organizations = BoundedCache[str, UUID](ORGANIZATIONS_CACHED_MAX)
        # By prefix and code.
        self._cached = BoundedCache[str, _Destination](LINKS_CACHED_MAX)
        # As many tasks flush lookups as there are connections for lookups.
        self._lookups: Batcher[UUID, str, str | None] = Batcher(
            self._look_up, items_max=LOOKUPS_PER_STATEMENT_MAX, flushers=KEY_READS_MAX
        )

    def routes(self) -> list[Route]:
        return [Route(f"{PATH}{{code}}", self._open), Route(f"{PATH}{{code}}", self._withdraw, methods=["POST"])]

    async def _open(self, request: Request) -> Response:
        """Handle GET, and HEAD, which is not counted as a click."""
        try:
            link = await self._find(request.path_params["code"])
        except (Overloaded, TimeoutError, *CONNECTION_ERRORS) as error:
            return self._unavailable(error)
        if link is None:
            return _missing()
        if request.method == "GET":
            self._record_click(request, link)
        if link.url == OPT_OUT:
            return _page("Stop our texts?", "Press the button to get no more texts from us at this number.", form=True)
        return RedirectResponse(link.url, HTTPStatus.FOUND, HEADERS)

    async def _withdraw(self, request: Request) -> Response:
        """Handle the button of the opt-out page. Opening the page alone changes nothing."""
        try:
            link = await self._find(request.path_params["code"])
            if link is None or link.url != OPT_OUT:
                return _missing()
            async with self._database.transaction() as tx:
                number_hash = await withdraw_by_link(tx, link.organization_id, link.code)
            if number_hash is None:
                return _page("This link has expired", "Reply STOP to one of our texts to get no more of them.")
            await wait_for_texts_in_flight(self._database, link.organization_id, [number_hash])
        except (Overloaded, TimeoutError, *CONNECTION_ERRORS) as error:
            return self._unavailable(error)
        return _page("You get no more texts", "We stopped all texts from us to this number.")

    def _record_click(self, request: Request, link: _Destination) -> None:
        click = Click(
            id=new_uuid(),
            code=link.code,
            at=truncate_to_milliseconds(self._database.clock.estimate_now()),
            class_=classify_request(request.headers),
            address=request.client.host if request.client is not None else "",
            agent=request.headers.get("user-agent", "")[:AGENT_CHARACTERS_MAX].replace("\0", ""),
        )
        self.clicks.record(link.organization_id, click)

    async def _find(self, full_code: str) -> _Destination | None:
        full_code = full_code.lower()
        cached = self._cached.find(full_code)
        if cached is not None:
            return cached
        if len(full_code) != PREFIX_CHARACTERS + CODE_CHARACTERS or not full_code.isascii() or not full_code.isalnum():
            return None
        prefix, code = full_code[:PREFIX_CHARACTERS], full_code[PREFIX_CHARACTERS:]
        async with asyncio.timeout(LOOKUP_TIMEOUT_S):
            organization_id = await self._find_organization(prefix)
            url = None if organization_id is None else await self._lookups.submit(organization_id, code)
        if organization_id is None or url is None:
            return None
        return self._cached.add(full_code, _Destination(organization_id, code, url))

    async def _find_organization(self, prefix: str) -> UUID | None:
        organization_id = self._organizations.entries.get(prefix)
        if organization_id is None:
            async with self._database.reading_by_key() as tx:
                organization_id = await find_organization(tx, prefix)
            if organization_id is not None:
                self._organizations.add(prefix, organization_id)
        return organization_id

    async def _look_up(self, organization_id: UUID, codes: Sequence[str]) -> Sequence[str | None]:
        """Look up the destinations of codes; None if there is no such link."""
        async with asyncio.timeout(LOOKUP_TIMEOUT_S), self._database.reading_by_key() as tx:
            urls = await find_destinations(tx, organization_id, set(codes))
        return [urls.get(code) for code in codes]

    def _unavailable(self, error: Exception) -> Response:
        _log.warning("links.database_unavailable", error=type(error).__name__)
        return _page(
            "This link does not work at the moment",
            "Please try it again in a few minutes.",
            status=HTTPStatus.SERVICE_UNAVAILABLE,
            fallback_url=self._fallback_url,
        )


def _missing() -> Response:
    return _page("There is no such link", "It may be mistyped or too old.", status=HTTPStatus.NOT_FOUND)


def _page(
    title: str,
    text: str,
    *,
    status: HTTPStatus = HTTPStatus.OK,
    form: bool = False,
    fallback_url: str | None = None,
) -> Response:
    """A page for the customer; with `form` it has the button that withdraws consent."""
    return render_public(
        TEMPLATE, status=status, headers=HEADERS, title=title, text=text, form=form, fallback_url=fallback_url
    )
