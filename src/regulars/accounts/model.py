"""What a user, a membership and a session are, and how long a session lives."""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from regulars.web.access import Role

EMAIL_CHARACTERS_MAX: Final = 254
NAME_CHARACTERS_MAX: Final = 120
TOKEN_BYTES: Final = 32
IDLE: Final = timedelta(hours=12)
IDLE_KEPT: Final = timedelta(days=7)
ABSOLUTE: Final = timedelta(days=30)
# A session's last use is written down at most this often.
SEEN_EVERY: Final = timedelta(minutes=1)
AGENT_CHARACTERS_MAX: Final = 300
# Whom an organization can ask for a second factor.
SECOND_FACTOR_ROLES: Final = frozenset({Role.OWNER, Role.ADMIN})


@dataclass(frozen=True, slots=True)
class Person:
    """A user as the directory knows them."""

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
    """A user's place in one organization."""

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
    id: UUID
    user_id: UUID
    created_at: datetime
    last_seen_at: datetime
    idle: timedelta
    ends_at: datetime
    confirmed_at: datetime
    address: str | None
    agent: str | None

    def is_alive(self, now: datetime) -> bool:
        return now < self.ends_at and now - self.last_seen_at < self.idle


def read_email(text: str) -> str | None:
    """The address in the one way it is kept, or None if it is none."""
    email = text.strip().lower()
    if len(email) > EMAIL_CHARACTERS_MAX or not email.isprintable() or not _is_address(email):
        return None
    return email


def new_token() -> str:
    return secrets.token_urlsafe(TOKEN_BYTES)


def hash_token(token: str) -> bytes:
    """What is kept of a token. It has 256 bits of its own randomness, so a plain hash is enough."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _is_address(email: str) -> bool:
    """By splitting: a pattern with two open ends takes quadratic time."""
    local, _, domain = email.partition("@")
    name, _, top = domain.rpartition(".")
    has_host = domain == "localhost" or bool(name and top)
    return bool(local) and has_host and "@" not in domain and not any(map(str.isspace, email))


class Act(NamedTuple):
    """One line of the audit log."""

    id: UUID
    at: datetime
    actor: str
    address: str | None
    act: str
    subject: str
    before: Any
    after: Any


class ActFilter(NamedTuple):
    """Which lines of the audit log: all, or those of an act, of a person, about a thing, of a time."""

    act: str | None = None
    actor: str | None = None
    subject: str | None = None
    since: datetime | None = None
    until: datetime | None = None
