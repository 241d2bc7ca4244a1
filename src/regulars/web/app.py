"""The ASGI application that serves all pages. A request passes session, organization, route, role and form checks, in
this order; then the page's handler runs."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final
from urllib.parse import parse_qsl, quote, urlsplit
from uuid import UUID

from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from regulars.kit import log
from regulars.kit.clock import monotonic
from regulars.kit.db import CONNECTION_ERRORS, Database, Tx
from regulars.kit.metrics import PROCESS_METRICS
from regulars.kit.public_address import PublicAddress
from regulars.kit.refusals import Refused, TooLarge
from regulars.web import confirm, cookies, csrf
from regulars.web.access import Action, may
from regulars.web.error_pages import broken_page, refusal_page, unavailable_page
from regulars.web.errors import BadForm, ForeignForm, NotAllowed, PageNotFound
from regulars.web.form import FormRefused
from regulars.web.navigation import Navigation
from regulars.web.render import NAVIGATION_STATE, SECRET_STATE, WAITING_STATE, headers, redirect
from regulars.web.route import FORM_FIELDS_MAX, Audience, Form, Page
from regulars.web.router import PageRouter
from regulars.web.static import ASSETS_PATH, asset_response
from regulars.web.visit import SessionStore, User, Visit, VisitedOrganization, safe_next

FORM_WAIT_S: Final = 12.0
URL_BYTES_MAX: Final = 8 << 10
SIGN_IN_PATH: Final = "/sign-in"
SECOND_FACTOR_PATH: Final = "/account/second-factor"
# An address as users type it.
_HOME_WITHOUT_SLASH: Final = re.compile(r"/o/[^/%]+")
_URLENCODED: Final = "application/x-www-form-urlencoded"

_log = log.get(__name__)

# Counts the items that wait for a user (such as unread replies), by the path of their entry in the navigation.
CountWaiting = Callable[[Tx, UUID], Awaitable[Mapping[str, int]]]


class WebApp:
    """`address` is the public address of the server, which may change."""

    def __init__(
        self,
        pages: Sequence[Page],
        *,
        database: Database,
        sessions: SessionStore,
        address: PublicAddress | None = None,
        count_waiting: CountWaiting | None = None,
    ) -> None:
        self.pages = (*pages, *confirm.pages(sessions))
        self._router = PageRouter(self.pages)
        self._navigation = Navigation(pages)
        self._database = database
        self._sessions = sessions
        self._address = address or PublicAddress()
        self._count_waiting = count_waiting
        self._metrics = {page: PROCESS_METRICS.route(f"{page.method} {page.address}") for page in self.pages}

    def serves(self, raw_path: bytes) -> bool:
        """Whether the path is a page or an asset. All paths below `/o/` are, so that a 404 shows the navigation."""
        return raw_path.startswith((b"/o/", ASSETS_PATH.encode())) or self._router.serves(raw_path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = monotonic()
        request = Request(scope, receive)
        exchange = _Exchange(self._first_visit(request))
        response = await self._respond(exchange)
        await response(scope, receive, send)
        if exchange.page is not None:
            self._metrics[exchange.page].observe(response.status_code, monotonic() - started)

    async def _respond(self, exchange: "_Exchange") -> Response:
        path = exchange.visit.request.url.path
        if path.startswith(ASSETS_PATH) and (asset := asset_response(path)) is not None:
            return asset
        if _HOME_WITHOUT_SLASH.fullmatch(path):
            return _redirect_permanently(exchange.visit, path + "/")
        try:
            return await self._handle(exchange)
        except Refused as refusal:
            return refusal_page(exchange.visit, refusal)
        except CONNECTION_ERRORS as error:
            _log.warning("web.database_unavailable", request_id=exchange.visit.request_id, error=type(error).__name__)
            return unavailable_page(exchange.visit)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception:  # noqa: BLE001  # an unexpected error becomes a 500 page with the navigation
            _log.exception("web.failed", request_id=exchange.visit.request_id)
            return broken_page(exchange.visit)

    def _first_visit(self, request: Request) -> Visit:
        """The visit before session, organization and form are known."""
        setattr(request.state, NAVIGATION_STATE, self._navigation)
        client = request.client
        public_url = self._address.url
        return Visit(
            request=request,
            request_id=request.scope.get("regulars_request_id", ""),
            database=self._database,
            query={},
            csrf="",
            is_https=cookies.is_https(request, public_url),
            client_address=client.host if client is not None else "",
            public_url=public_url,
            now=datetime.now(UTC),
        )

    async def _handle(self, exchange: "_Exchange") -> Response:
        request = exchange.visit.request
        exchange.visit = visit = replace(exchange.visit, query=_read_query(request))
        visit = await self._identify(exchange, visit)
        raw_path: bytes = request.scope["raw_path"]
        if raw_path.startswith(b"/o/") and visit.visitor is not None:
            redirection = await self._enter_organization(
                exchange, visit.visitor, raw_path.split(b"/")[2].decode("latin-1")
            )
            if redirection is not None:
                return redirection
            visit = exchange.visit
        page, references = self._router.find(request.method, raw_path)
        exchange.page = page
        if page.needs is not Audience.OPEN and visit.visitor is None:
            return _redirect_to_sign_in(visit)
        if isinstance(page.needs, Action):
            references = references[1:]
            if not may(visit.organization.role, page.needs):
                raise NotAllowed(page.needs)
        organization = visit.current_organization or await self._find_last_organization(visit, page)
        visit = replace(visit, references=references, current_organization=organization)
        if isinstance(page, Form):
            visit = await self._add_form(visit, page)
        elif visit.current_organization is not None and self._count_waiting is not None and not visit.is_htmx:
            async with self._database.reading() as tx:
                setattr(request.state, WAITING_STATE, await self._count_waiting(tx, visit.organization_id))
        if page.needs_proof:
            visit, password_page = await confirm.confirm(visit, page, self._sessions)
            if password_page is not None:
                return password_page
        response = await _run_handler(page, visit)
        exchange.set_guest_cookie(response)
        _remember_organization(visit, page, response)
        return response

    async def _find_last_organization(self, visit: Visit, page: Page) -> VisitedOrganization | None:
        """The organization whose navigation an account page shows: the one that the user visited last."""
        slug = visit.request.cookies.get(cookies.LAST_ORGANIZATION)
        if page.needs is not Audience.SIGNED_IN or visit.visitor is None or not slug:
            return None
        organization = await self._sessions.find_organization(visit.visitor, slug)
        return None if organization is None or organization.lacks_second_factor else organization

    async def _enter_organization(self, exchange: "_Exchange", user: User, slug: str) -> Response | None:
        """Set the organization of the visit. Returns a redirect if the user must visit another page first."""
        organization = await self._sessions.find_organization(user, slug)
        if organization is None:
            raise PageNotFound
        exchange.visit = visit = replace(exchange.visit, current_organization=organization)
        if organization.slug != slug:
            return _redirect_to_new_slug(visit, slug, organization)
        return _redirect_to_second_factor(visit, organization) if organization.lacks_second_factor else None

    async def _identify(self, exchange: "_Exchange", visit: Visit) -> Visit:
        """Look up the session cookie. A visitor without a session gets a guest cookie, which their form tokens depend
        on."""
        token = visit.request.cookies.get(cookies.session_name(is_https=visit.is_https))
        user: User | None = await self._sessions.identify(token) if token else None
        if user is None or token is None:
            guest_secret = visit.request.cookies.get(cookies.guest_name(is_https=visit.is_https))
            secret = guest_secret or csrf.new_guest_secret()
            exchange.new_guest_secret = None if guest_secret else secret
        else:
            secret = token
        setattr(visit.request.state, SECRET_STATE, secret)
        exchange.visit = replace(visit, visitor=user, csrf=csrf.token_for(secret))
        return exchange.visit

    async def _add_form(self, visit: Visit, page: Form) -> Visit:
        if csrf.is_cross_site(visit.request, public_url=visit.public_url):
            raise ForeignForm
        fields = await _read_form(visit.request, page)
        sent_token = visit.request.headers.get(csrf.HEADER) or fields.pop(csrf.FIELD, [""])[0]
        if not csrf.is_valid(sent_token, visit.csrf):
            raise ForeignForm
        first_values = {name: values[0] for name, values in fields.items()}
        return replace(visit, form=first_values, form_lists=fields)


@dataclass(slots=True)
class _Exchange:
    """A request in progress. `visit` grows with each check, so that an error page shows the user and the organization
    found before the error."""

    visit: Visit
    page: Page | None = None
    new_guest_secret: str | None = None

    def set_guest_cookie(self, response: Response) -> None:
        if self.new_guest_secret is not None:
            secure = self.visit.is_https
            cookies.set_cookie(response, cookies.guest_name(is_https=secure), self.new_guest_secret, is_https=secure)


async def _run_handler(page: Page, visit: Visit) -> Response:
    try:
        return await page.handle(visit)
    except FormRefused as refusal:
        if refusal.form.again is None:
            raise
        return await refusal.form.again(visit, refusal.form)


def _remember_organization(visit: Visit, page: Page, response: Response) -> None:
    last_slug = visit.request.cookies.get(cookies.LAST_ORGANIZATION)
    if isinstance(page.needs, Action) and visit.organization.slug != last_slug:
        cookies.set_cookie(response, cookies.LAST_ORGANIZATION, visit.organization.slug, is_https=visit.is_https)


def _redirect_to_sign_in(visit: Visit) -> Response:
    """Redirect to the sign-in page, and from there back to this page unless it is the target of a form."""
    if visit.is_htmx:
        # htmx would put the sign-in form into a part of the page.
        current_url = urlsplit(visit.request.headers.get("hx-current-url", ""))
        next_path = safe_next(current_url.path + (f"?{current_url.query}" if current_url.query else ""), otherwise="")
        target = f"{SIGN_IN_PATH}?next={quote(next_path, safe='')}" if next_path else SIGN_IN_PATH
        return Response(status_code=200, headers={**headers(visit), "HX-Redirect": target})
    url = visit.request.url
    next_path = url.path + (f"?{url.query}" if url.query else "")
    target = f"{SIGN_IN_PATH}?next={quote(next_path, safe='')}" if visit.request.method == "GET" else SIGN_IN_PATH
    return RedirectResponse(target, 303, headers(visit))


def _redirect_to_second_factor(visit: Visit, organization: VisitedOrganization) -> Response:
    """Redirect to the page that sets up a second factor, because the organization requires one."""
    if visit.is_htmx:
        return Response(status_code=200, headers={**headers(visit), "HX-Redirect": SECOND_FACTOR_PATH})
    done = f"{organization.name} requires a second factor from owners and admins. Turn it on, then come back."
    return redirect(visit, SECOND_FACTOR_PATH, done=done)


def _redirect_to_new_slug(visit: Visit, old: str, organization: VisitedOrganization) -> Response:
    """Redirect to the organization's current slug."""
    raw = visit.request.scope["raw_path"].decode("latin-1")
    return _redirect_permanently(visit, f"/o/{organization.slug}{raw.removeprefix(f'/o/{old}')}")


def _redirect_permanently(visit: Visit, path: str) -> Response:
    """Redirect to another path with the same query. Status 308 preserves the method, so a form that was open can still
    be sent."""
    query = visit.request.url.query
    return RedirectResponse(path + (f"?{query}" if query else ""), 308, headers(visit))


def _read_query(request: Request) -> dict[str, str]:
    """The query parameters; if a name occurs several times, its first value."""
    if len(request.scope["raw_path"]) + len(request.scope["query_string"]) > URL_BYTES_MAX:
        raise BadForm(f"An address may have at most {URL_BYTES_MAX} bytes. Choose fewer filters, such as fewer stores.")
    query: dict[str, str] = {}
    for name, value in _parse_pairs(request.scope["query_string"]):
        query.setdefault(name, value)
    return query


async def _read_form(request: Request, page: Form) -> dict[str, list[str]]:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != _URLENCODED:
        raise BadForm("It must come as an ordinary form.")
    body = b""
    try:
        async with asyncio.timeout(FORM_WAIT_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > page.bytes_max:
                    raise TooLarge(f"It may have at most {page.bytes_max} bytes.")
    except TimeoutError:
        raise BadForm("It did not arrive in time; send it again.") from None
    fields: dict[str, list[str]] = {}
    for name, value in _parse_pairs(body, fields_max=page.fields_max):
        fields.setdefault(name, []).append(value)
    return fields


def _parse_pairs(encoded: bytes, *, fields_max: int = FORM_FIELDS_MAX) -> list[tuple[str, str]]:
    if not encoded:
        return []
    try:
        pairs = parse_qsl(encoded.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=fields_max)
    except ValueError:
        raise BadForm("Its characters cannot be read; open the page again and repeat the step.") from None
    if any("\x00" in text for pair in pairs for text in pair):
        raise BadForm("It contains a character that is not allowed (U+0000).")
    return pairs
