"""A signed-in user: requests pages with the session cookie and the CSRF token of a browser."""

import contextlib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from uuid import UUID

import httpx
import pytest
from tests.support.client import new_http
from tests.support.open_database import OpenDatabase, open_database
from tests.support.server import Server
from tests.support.tenant import Tenant

from regulars.accounts import sessions, users
from regulars.kit.db import Database
from regulars.web import cookies, csrf
from regulars.web.access import Role

VisitorFactory = Callable[[Role], "Visitor"]


@dataclass(frozen=True)
class SignedIn:
    """A user, the slug of their organization and the session token."""

    user_id: UUID
    email: str
    slug: str
    token: str


@dataclass(frozen=True)
class Visitor:
    """A browser with a session in one organization. Paths are relative to it: `/customers`; absolute ones begin with `//`."""

    http: httpx.Client
    base_url: str
    who: SignedIn

    def url(self, path: str) -> str:
        below = path[1:] if path.startswith("//") else f"/o/{self.who.slug}{path}"
        return f"{self.base_url}{below}"

    def get(self, path: str, **query: str) -> httpx.Response:
        return self.http.get(self.url(path), params=query or None, headers=self._headers())

    def post(self, path: str, **fields: str) -> httpx.Response:
        """Sends a form; returns the redirect or the error response itself."""
        data = {csrf.FIELD: csrf.token_for(self.who.token), **fields}
        return self.http.post(self.url(path), data=data, headers=self._headers())

    def _headers(self) -> dict[str, str]:
        return {"Cookie": f"{cookies.SESSION_HTTP}={self.who.token}"}


async def sign_in(database: Database, organization_id: UUID, role: Role) -> SignedIn:
    """Creates a user of this role with a session, with the use cases of the application."""
    async with database.transaction() as tx:
        email = f"{role.value}-{uuid.uuid4().hex[:8]}@shop.example"
        person = await users.create_account(tx, email=email, name=f"Some {role.value}")
        await users.join(tx, organization_id, "Shop", person.id, role)
        token = await sessions.start_session(tx, person.id, is_remembered=False, address="127.0.0.1", agent="a test")
        found = await users.find_memberships(tx, person.id)
    return SignedIn(person.id, email, next(one.slug for one in found if one.organization_id == organization_id), token)


def sign_in_now(database_url: str, organization_id: UUID, role: Role) -> SignedIn:
    with open_database(database_url) as database:
        return database.run(partial(sign_in, organization_id=organization_id, role=role))


@pytest.fixture
def visitor_as(server: Server, api_database: OpenDatabase, tenant: Tenant) -> Iterator[VisitorFactory]:
    """Creates signed-in users of the test's organization: `visitor_as(Role.ANALYST).get("/customers")`."""
    with contextlib.ExitStack() as stack:

        def become(role: Role) -> Visitor:
            who = api_database.run(partial(sign_in, organization_id=tenant.organization_id, role=role))
            return Visitor(stack.enter_context(new_http()), server.url, who)

        yield become


@pytest.fixture
def owner(visitor_as: VisitorFactory) -> Visitor:
    return visitor_as(Role.OWNER)


@pytest.fixture
def marketer(visitor_as: VisitorFactory) -> Visitor:
    return visitor_as(Role.MARKETER)


@pytest.fixture
def analyst(visitor_as: VisitorFactory) -> Visitor:
    return visitor_as(Role.ANALYST)
