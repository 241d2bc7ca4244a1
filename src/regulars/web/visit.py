"""One request for a page: who asks, in which organization, in which role; handlers get nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Protocol
from urllib.parse import quote, urlsplit
from uuid import UUID

from starlette.requests import Request

from regulars.kit.db import Database
from regulars.web.access import Action, Role, may
from regulars.web.errors import NotAllowed
from regulars.web.format import Format


@dataclass(frozen=True, slots=True)
class User:
    """Who is signed in, and with which session."""

    id: UUID
    email: str
    name: str
    locale: str | None
    session_id: UUID
    # When they last gave their password in this session.
    confirmed_at: datetime


@dataclass(frozen=True, slots=True)
class Place:
    """The organization of the address, and what the visitor is there."""

    organization_id: UUID
    slug: str
    name: str
    time_zone: str
    locale: str
    default_country: str | None
    # Signs the cursors of lists; it never reaches a template.
    secret: bytes = field(repr=False)
    role: Role
    # The organization asks this role for a second factor, and the visitor has none.
    lacks_second_factor: bool = False
    # Its customers are made up.
    is_demo: bool = False
    # Until a person dismisses them.
    shows_first_steps: bool = False


class Doorkeeper(Protocol):
    """Knows sessions and memberships; `accounts` has it, `server` hands it in."""

    async def identify(self, token: str) -> User | None:
        """Whose session this is, if it is alive."""
        ...

    async def enter(self, user: User, slug: str) -> Place | None:
        """The organization of this slug, or of one it had before, if the user is a member."""
        ...

    async def confirm(self, user: User, password: str, *, address: str) -> None:
        """Check the password once more and note the time in the session, or raise `NotConfirmed`."""
        ...


@dataclass(frozen=True, kw_only=True)
class Visit:
    """What a handler knows of a request. Open pages have no user; only pages of an organization have a place."""

    request: Request
    request_id: str
    database: Database
    # The decoded path segments of the placeholders, in order.
    references: tuple[str, ...] = ()
    query: Mapping[str, str]
    form: Mapping[str, str] = field(default_factory=dict)
    form_lists: Mapping[str, list[str]] = field(default_factory=dict)
    csrf: str
    is_https: bool
    client_address: str
    visitor: User | None = None
    at: Place | None = None
    now: datetime

    @property
    def user(self) -> User:
        if self.visitor is None:
            raise LookupError("This page is open to everybody, so it has no user.")
        return self.visitor

    @property
    def place(self) -> Place:
        if self.at is None:
            raise LookupError("This page belongs to no organization.")
        return self.at

    @property
    def organization_id(self) -> UUID:
        return self.place.organization_id

    @property
    def is_htmx(self) -> bool:
        return self.request.headers.get("hx-request") == "true"

    @property
    def sees_personal(self) -> bool:
        return self.may(Action.SEE_PERSONAL)

    @cached_property
    def format(self) -> Format:
        """How numbers and times are written for this reader."""
        locale = (self.visitor.locale if self.visitor else None) or (self.at.locale if self.at else "en-GB")
        return Format(locale, self.at.time_zone if self.at else "UTC", now=self.now)

    def may(self, action: Action) -> bool:
        return may(self.place.role, action)

    def require(self, action: Action) -> None:
        """For what depends on more than the address: a route's own permission is checked before its handler runs."""
        if not self.may(action):
            raise NotAllowed(action)

    def url(self, path: str, *segments: str) -> str:
        """An address of this organization; segments are references and are escaped, so `a/b` stays one of them."""
        return f"/o/{self.place.slug}{path}" + "".join("/" + quote(segment, safe="") for segment in segments)


def safe_next(wanted: str | None, *, otherwise: str) -> str:
    """Only a path of our own: browsers read `//evil`, `/\\evil` and `/<tab>/evil` as another site."""
    if not wanted or not wanted.startswith("/") or wanted[1:2] in {"/", "\\"}:
        return otherwise
    if any(character <= " " or character == "\\" for character in wanted):
        return otherwise
    parts = urlsplit(wanted)
    return wanted if not parts.scheme and not parts.netloc else otherwise
