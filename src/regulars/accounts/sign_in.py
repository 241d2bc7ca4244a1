"""Checking a password or a code: the attempt is counted first, and given back when it was right."""

from dataclasses import dataclass
from uuid import UUID

from regulars.accounts import queries
from regulars.accounts.audit.log import Actor, record
from regulars.accounts.passwords import Passwords
from regulars.accounts.throttle import attempts
from regulars.accounts.throttle.attempts import Attempt
from regulars.kit import log
from regulars.kit.db import Database, Tx

NOT_SIGNED_IN = "not signed in"
_log = log.get(__name__)


@dataclass(frozen=True, slots=True)
class PasswordCheck:
    """`stored` is what the password matched, or None if it was wrong. `attempt` counts as failed until it is closed."""

    attempt: Attempt
    stored: queries.StoredPassword | None


async def begin_attempt(database: Database, email: str, address: str) -> Attempt:
    """Committed before anything is checked: of many guesses at once, only as many are checked as may fail."""
    async with database.transaction() as tx:
        return await attempts.count_attempt(tx, email, address)


async def check_password(
    database: Database, passwords: Passwords, *, email: str, password: str, address: str
) -> PasswordCheck:
    """Whose password it is. No connection is held while the hash is computed."""
    attempt = await begin_attempt(database, email, address)
    async with database.reading() as tx:
        found = await queries.find_password(tx, email)
    if await passwords.matches(found.password_hash if found else None, password):
        return PasswordCheck(attempt, found)
    await record_failure(database, email, address)
    return PasswordCheck(attempt, None)


async def confirm_password(
    database: Database, passwords: Passwords, *, email: str, password: str, address: str
) -> bool:
    """Whether somebody who is signed in knows their password."""
    check = await check_password(database, passwords, email=email, password=password, address=address)
    if check.stored is None:
        return False
    async with database.transaction() as tx:
        await attempts.succeed(tx, check.attempt)
    return True


async def record_sign_in(tx: Tx, user_id: UUID, email: str, address: str) -> None:
    """An account belongs to each of its organizations, so each of their logs has it."""
    for place in await queries.find_memberships(tx, user_id):
        await record(tx, place.organization_id, Actor(user_id, email, address or None), "session.sign_in", email)


async def record_failure(database: Database, email: str, address: str) -> None:
    """One row for an account and fifteen minutes; an address that nobody has is only in the server's log."""
    async with database.transaction() as tx:
        person = await queries.find_person_by_email(tx, email)
        if person is None:
            _log.warning("accounts.sign_in_failed", address=address, is_known=False)
            return
        if await attempts.is_first_failure(tx, email):
            actor = Actor(None, NOT_SIGNED_IN, address or None)
            for place in await queries.find_memberships(tx, person.id):
                await record(tx, place.organization_id, actor, "session.sign_in_failed", email)
