"""A `Visit` is one request for a page, with its user, organization, role and form: the only argument of a handler."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Protocol
from urllib.parse import quote, urlsplit
from uuid import UUID

from starlette.requests import Request

from regulars.kit.address import base_url
from regulars.kit.db import Database
from regulars.kit.ids import IdKind
from regulars.web.access import Action, Role, may
from regulars.web.errors import NO_PAGE, NotAllowed, PageNotFound
from regulars.web.format import Format


@dataclass(frozen=True, slots=True)
class User:
    """The user who is signed in, and the session."""

    id: UUID
    email: str
    name: str
    locale: str | None
    session_id: UUID
    # When the user last entered the password in this session.
    password_confirmed_at: datetime


@dataclass(frozen=True, slots=True)
class VisitedOrganization:
    """The organization in the address of the page, and the role of the visitor in it."""

    organization_id: UUID
    slug: str
    name: str
    time_zone: str
    locale: str
    default_country: str | None
    # The key that signs the cursors of lists. Templates never get it.
    secret: bytes = field(repr=False)
    role: Role
    # The organization requires a second factor from this role, and the visitor has none.
    lacks_second_factor: bool = False
    # Whether the organization has only sample data.
    is_demo: bool = False
    # Whether the navigation shows "First steps"; false after a user has dismissed them.
    shows_first_steps: bool = False


class SessionStore(Protocol):
    """Looks up sessions and memberships. `accounts` implements it; `server` passes it in."""

    async def identify(self, token: str) -> User | None:
        """The user of a session that has not expired."""
        ...

    async def find_organization(self, user: User, slug: str) -> VisitedOrganization | None:
        """The organization with this slug, now or earlier, if the user is a member."""
        ...

    async def confirm(self, visit: "Visit", password: str) -> None:
        """Check the password of the user and record the time in the session, or raise `NotConfirmed`."""
        ...


@dataclass(frozen=True, kw_only=True)
class Visit:
    """The request of a handler. Public pages have no user; only pages below `/o/<slug>` have an organization."""

    request: Request
    request_id: str
    database: Database
    # The decoded path segments of the placeholders, in order.
    references: tuple[str, ...] = ()
    query: Mapping[str, str]
    # The first value of each form field, and all values of each.
    form: Mapping[str, str] = field(default_factory=dict)
    form_lists: Mapping[str, list[str]] = field(default_factory=dict)
    csrf: str
    is_https: bool
    client_address: str
    # The address of the server that the operator has set, if any.
    public_url: str | None = None
    visitor: User | None = None
    current_organization: VisitedOrganization | None = None
    now: datetime

    @property
    def user(self) -> User:
        if self.visitor is None:
            raise LookupError("This page is public, so it has no user.")
        return self.visitor

    @property
    def organization(self) -> VisitedOrganization:
        if self.current_organization is None:
            raise LookupError("This page belongs to no organization.")
        return self.current_organization

    @property
    def organization_id(self) -> UUID:
        return self.organization.organization_id

    def read_id(self, kind: IdKind, not_found: str = NO_PAGE) -> UUID:
        """The id in the address of the page; an invalid one shows the error page with this text."""
        identifier = kind.decode(self.references[0])
        if identifier is None:
            raise PageNotFound(not_found)
        return identifier

    @property
    def is_htmx(self) -> bool:
        return self.request.headers.get("hx-request") == "true"

    @property
    def sees_personal(self) -> bool:
        return self.may(Action.SEE_PERSONAL)

    @cached_property
    def format(self) -> Format:
        """The locale of the user and the time zone of the organization."""
        organization = self.current_organization
        locale = (self.visitor.locale if self.visitor else None) or (organization.locale if organization else "en-GB")
        return Format(locale, organization.time_zone if organization else "UTC", now=self.now)

    @property
    def server_url(self) -> str:
        """The base of links to this server: the public address if it is set, else the one that the browser uses."""
        host = self.request.headers.get("host", "").encode("latin-1")
        return self.public_url or base_url(self.request.scope, host)

    def may(self, action: Action) -> bool:
        return may(self.organization.role, action)

    def require(self, action: Action) -> None:
        """Check a permission beyond the one of the route, which is checked before the handler runs."""
        if not self.may(action):
            raise NotAllowed(action)

    def url(self, path: str, *segments: str) -> str:
        """A path below the organization. Segments are escaped: `a/b` stays one segment."""
        return f"/o/{self.organization.slug}{path}" + "".join("/" + quote(segment, safe="") for segment in segments)


def safe_next(target: str | None, *, otherwise: str) -> str:
    """The target of a redirect if it is a path of this server, else `otherwise`: browsers read `//evil`, `/\\evil` and
    `/<tab>/evil` as another site."""
    if not target or not target.startswith("/") or target[1:2] in {"/", "\\"}:
        return otherwise
    if any(character <= " " or character == "\\" for character in target):
        return otherwise
    parts = urlsplit(target)
    return target if not parts.scheme and not parts.netloc else otherwise
