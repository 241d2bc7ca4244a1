"""Check a password: the attempt is counted as failed before the check, and uncounted if the password was right."""

import contextlib
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID

from regulars.accounts import queries
from regulars.accounts import sign_in_attempts as attempts
from regulars.accounts.audit.log import Actor, record
from regulars.accounts.errors import AccountRefusal
from regulars.accounts.passwords import Passwords
from regulars.accounts.sign_in_attempts import Attempt
from regulars.kit import log
from regulars.kit.db import CONNECTION_ERRORS, Database, Tx
from regulars.kit.ids import new_uuid
from regulars.web.visit import Visit

NOT_SIGNED_IN = "not signed in"
_log = log.get(__name__)


@dataclass(frozen=True, slots=True)
class PasswordCheck:
    """`matched` is the stored password, or None after a wrong one. `attempt` counts as failed until it is uncounted."""

    attempt: Attempt
    matched: queries.StoredPassword | None


def digest_of(stored: queries.StoredPassword) -> str:
    """Identify the stored hash without revealing it."""
    return hashlib.sha256((stored.password_hash or "").encode()).hexdigest()


async def lock_checked_password(tx: Tx, email: str, digest: str) -> bool:
    """Return whether the checked password is still valid: it may have been changed, or the account disabled.

    The account's row stays locked until the commit, so a later change of the password ends the new session too.
    """
    stored = await queries.lock_password(tx, email)
    return stored is not None and stored.password_hash is not None and digest_of(stored) == digest


async def begin_attempt(database: Database, email: str, address: str) -> Attempt:
    """Count an attempt and commit, before it is checked: of many parallel guesses, only as many are checked as may
    fail."""
    async with database.transaction() as tx:
        return await attempts.count_attempt(tx, email, address)


@contextlib.asynccontextmanager
async def uncounted_on_error(database: Database, attempt: Attempt) -> AsyncIterator[None]:
    """Uncount an attempt that was not checked because of overload or a lost connection; refusals stay counted."""
    try:
        yield
    except AccountRefusal:
        raise
    except Exception:
        with contextlib.suppress(*CONNECTION_ERRORS):
            async with database.transaction() as tx:
                await attempts.uncount(tx, attempt)
        raise


async def check_password(visit: Visit, passwords: Passwords, *, email: str, password: str) -> PasswordCheck:
    """Check a password. No database connection is in use while the hash is computed."""
    database, address = visit.database, visit.client_address
    attempt = await begin_attempt(database, email, address)
    async with uncounted_on_error(database, attempt):
        async with database.reading() as tx:
            stored = await queries.find_password(tx, email)
        is_right = await passwords.matches(stored.password_hash if stored else None, password)
    if is_right:
        return PasswordCheck(attempt, stored)
    await record_failure(database, email, address)
    return PasswordCheck(attempt, None)


async def confirm_password(visit: Visit, passwords: Passwords, password: str) -> bool:
    """Return whether the password of the signed-in user is right. Earlier failures stay counted: they may be guesses of
    codes."""
    check = await check_password(visit, passwords, email=visit.user.email, password=password)
    if check.matched is None:
        return False
    async with visit.database.transaction() as tx:
        await attempts.uncount(tx, check.attempt)
    return True


async def record_sign_in(tx: Tx, user_id: UUID, email: str, address: str) -> None:
    """Record a sign-in in the audit logs of all organizations of the user: the account belongs to each of them."""
    for membership in await queries.find_memberships(tx, user_id):
        await record(tx, membership.organization_id, Actor(user_id, email, address or None), "session.sign_in", email)


async def record_failure(database: Database, email: str, address: str) -> None:
    """Record a failed sign-in, once per account and fifteen minutes; without an account, only the server logs it.

    An unknown email address runs the same statements as an account of one organization, and the row is rolled back: the
    response time must not reveal which email addresses have an account.
    """
    actor = Actor(None, NOT_SIGNED_IN, address or None)
    async with database.transaction() as tx:
        account = await queries.find_account_by_email(tx, email)
        is_first = await attempts.is_first_failure(tx, email)
        memberships = await queries.find_memberships(tx, account.id if account else new_uuid())
        if account is None:
            _log.warning("accounts.sign_in_failed", address=address, is_known=False)
        if not is_first:
            return
        async with tx.connection.transaction(force_rollback=account is None):
            for organization_id in [each.organization_id for each in memberships] if account else [new_uuid()]:
                await record(tx, organization_id, actor, "session.sign_in_failed", email)
