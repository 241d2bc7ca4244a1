"""A house with a few sample pages, on the real database with real sessions, called in the process."""

from dataclasses import dataclass
from uuid import UUID

import httpx
from starlette.responses import PlainTextResponse, Response
from tests.support.visitor import SignedIn, sign_in

from regulars.accounts.sessions import SessionStore
from regulars.kit.db import Database, Tx
from regulars.kit.public_address import PublicAddress
from regulars.organizations.manage import create_organization
from regulars.profiles.errors import ProfileNotFound
from regulars.web import cookies, csrf, theme
from regulars.web.access import Action, Role
from regulars.web.app import WebApp
from regulars.web.render import redirect, render
from regulars.web.route import Audience, Form, Page
from regulars.web.visit import Visit


async def _home(visit: Visit) -> Response:
    return render(
        visit,
        "web/refusal.html",
        status_code=200,
        title="A sample",
        text="<b>&",
        more="",
        can_retry=False,
        way_back=None,
    )


async def _customer(visit: Visit) -> Response:
    return PlainTextResponse(f"{visit.references[0]} for {visit.user.email} at {visit.organization.slug}")


async def _save(visit: Visit) -> Response:
    return redirect(visit, visit.url("/"), done=f"Saved {visit.form['name']}.")


async def _missing(_visit: Visit) -> Response:
    raise ProfileNotFound("No profile C-1.")


async def _broken(_visit: Visit) -> Response:
    raise RuntimeError("planted")


async def _open(visit: Visit) -> Response:
    return PlainTextResponse(visit.csrf)


async def _waiting(_tx: Tx, _organization_id: UUID) -> dict[str, int]:
    return {"/customers": 3, "/settings/team": 250}


SAMPLES = (
    *theme.PAGES,
    Page(path="/", needs=Action.READ, handle=_home),
    Page(path="/customers", needs=Action.READ, handle=_home),
    Page(path="/customers/{customer}", needs=Action.READ, handle=_customer),
    Page(path="/customers/new", needs=Action.READ, handle=_home),
    Page(path="/settings/team", needs=Action.MANAGE_TEAM, handle=_home),
    Page(path="/missing", needs=Action.READ, handle=_missing),
    Page(path="/broken", needs=Action.READ, handle=_broken),
    Form(path="/save", needs=Action.EDIT_CATALOGS, handle=_save, bytes_max=1000),
    Page(path="/guest", needs=Audience.OPEN, handle=_open),
    Form(path="/guest", needs=Audience.OPEN, handle=_open),
)


@dataclass(frozen=True)
class House:
    http: httpx.AsyncClient
    database: Database
    organization_id: UUID

    async def sign_in(self, role: Role = Role.OWNER) -> SignedIn:
        """From now on the client is this person."""
        who = await sign_in(self.database, self.organization_id, role)
        self.http.cookies.set(cookies.SESSION_HTTP, who.token)
        return who

    async def get(self, path: str, **headers: str) -> httpx.Response:
        return await self.http.get(path, headers=headers)

    async def post(self, path: str, token: str | None, fields: dict[str, str] | None = None, **headers: str):
        data = {**({csrf.FIELD: token} if token is not None else {}), **(fields or {})}
        return await self.http.post(path, data=data, headers=headers)


async def build(database: Database, *, base_url: str = "http://127.0.0.1:8080", public_url: str | None = None) -> House:
    async with database.connection() as connection:
        organization = await create_organization(connection, "Maison Corvelle")
    app = WebApp(
        SAMPLES,
        database=database,
        sessions=SessionStore(database),
        address=PublicAddress(public_url),
        count_waiting=_waiting,
    )
    transport = httpx.ASGITransport(app=app, client=("203.0.113.9", 5000))
    return House(httpx.AsyncClient(transport=transport, base_url=base_url), database, organization.id)
