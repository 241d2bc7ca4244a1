"""The data of users, memberships and sessions, and how long a session lasts."""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from regulars.web.access import Role
from regulars.work.personal import PersonalData

EMAIL_CHARACTERS_MAX: Final = 254
NAME_CHARACTERS_MAX: Final = 120
TOKEN_BYTES: Final = 32
# A session ends after this time without use, which is longer if the user chose to stay signed in, and at a fixed age.
IDLE_MAX: Final = timedelta(hours=12)
IDLE_MAX_REMEMBERED: Final = timedelta(days=7)
SESSION_AGE_MAX: Final = timedelta(days=30)
# The last use of a session is stored at most this often.
LAST_SEEN_WRITTEN_EVERY: Final = timedelta(minutes=1)
AGENT_CHARACTERS_MAX: Final = 300
# The roles that an organization can require to have a second factor.
SECOND_FACTOR_ROLES: Final = frozenset({Role.OWNER, Role.ADMIN})


@dataclass(frozen=True, slots=True)
class Account:
    """The stored account of a user."""

    id: UUID
    email: str
    name: str
    locale: str | None
    created_at: datetime
    disabled_at: datetime | None
    has_password: bool
    has_second_factor: bool


@dataclass(frozen=True, slots=True)
class Member:
    """A user as a member of one organization."""

    user_id: UUID
    email: str
    name: str
    role: Role
    joined_at: datetime
    disabled_at: datetime | None
    has_second_factor: bool
    last_seen_at: datetime | None


@dataclass(frozen=True, slots=True)
class Membership:
    """An organization that a user may enter."""

    organization_id: UUID
    slug: str
    name: str
    role: Role


@dataclass(frozen=True, slots=True)
class Session:
    """A user's sign-in in one browser; `password_confirmed_at` is when they last entered their password in it."""

    id: UUID
    user_id: UUID
    created_at: datetime
    last_seen_at: datetime
    idle: timedelta
    ends_at: datetime
    password_confirmed_at: datetime
    address: str | None
    agent: str | None

    def is_alive(self, now: datetime) -> bool:
        return now < self.ends_at and now - self.last_seen_at < self.idle


def read_email(text: str) -> str | None:
    """Return the address in its stored form, or None if it is not an address."""
    email = text.strip().lower()
    if len(email) > EMAIL_CHARACTERS_MAX or not email.isprintable() or not _is_address(email):
        return None
    return email


def new_token() -> str:
    return secrets.token_urlsafe(TOKEN_BYTES)


def hash_token(token: str) -> bytes:
    """Return the stored form of a token. It has 256 random bits, so a hash without salt is enough."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _is_address(email: str) -> bool:
    """Split the text instead of matching it: a regular expression with two open ends would take quadratic time."""
    local, _, domain = email.partition("@")
    name, _, top = domain.rpartition(".")
    has_host = domain == "localhost" or bool(name and top)
    return bool(local) and has_host and "@" not in domain and not any(map(str.isspace, email))


class Act(NamedTuple):
    """One row of the audit log."""

    id: UUID
    at: datetime
    actor: str
    address: str | None
    act: str
    subject: str
    before: Any
    after: Any


class ActFilter(NamedTuple):
    """Selects rows of the audit log by act, actor, subject and time; None selects all."""

    act: str | None = None
    actor: str | None = None
    subject: str | None = None
    since: datetime | None = None
    until: datetime | None = None


_STAFF: Final = "about the retailer's staff, who are not customers"

# Why the tables of this module have no personal data of customers.
PERSONAL_DATA: Final = PersonalData(
    not_personal={
        "users": _STAFF,
        "memberships": _STAFF,
        "sessions": _STAFF,
        "sign_in_links": _STAFF,
        "sign_in_failures": _STAFF,
        "sign_in_places": _STAFF,
        "recovery_codes": _STAFF,
        "audit_heads": "hashes of acts of staff",
        "audit_log": "acts of staff; names customers by canonical id, which identifies no person after an erasure",
    }
)
