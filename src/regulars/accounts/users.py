"""Create users, change their passwords and second factors, and let the operator at the server manage them."""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from regulars.accounts import queries, second_factor, sessions, team
from regulars.accounts.audit.log import OPERATOR, Actor, record
from regulars.accounts.errors import AccountRefusal
from regulars.accounts.links import Purpose, end_links_of_user, end_password_links, make_link
from regulars.accounts.model import Account, Membership
from regulars.kit.db import Database, Tx
from regulars.kit.ids import new_uuid
from regulars.kit.vault import AnyVault
from regulars.organizations.slugs import ensure_slug
from regulars.web.access import Role


@dataclass(frozen=True, slots=True)
class UserListing:
    """A user, and one of their organizations."""

    account: Account
    organization: str | None
    slug: str | None
    role: str | None


async def create_account(tx: Tx, *, email: str, name: str, password_hash: str | None = None) -> Account:
    """Create a user, or return the one that has this address already."""
    await tx.execute(
        "INSERT INTO users (id, email, name, password_hash, created_at) VALUES (%s, %s, %s, %s, %s)"
        " ON CONFLICT (email) DO NOTHING",
        (new_uuid(), email, name, password_hash, tx.now),
    )
    account = await queries.find_account_by_email(tx, email)
    if account is None:
        raise LookupError(f"The user {email} vanished while being created.")
    return account


async def join(tx: Tx, organization_id: UUID, organization_name: str, user_id: UUID, role: Role) -> None:
    """Make a user a member of an organization, or change their role."""
    await ensure_slug(tx.connection, organization_id, organization_name, now=tx.now)
    await queries.upsert_membership(tx, organization_id, user_id, role)


async def find_memberships(tx: Tx, user_id: UUID) -> list[Membership]:
    return await queries.find_memberships(tx, user_id)


async def find_emails(tx: Tx, user_ids: Collection[UUID]) -> dict[UUID, str]:
    return await queries.find_emails(tx, user_ids)


async def has_users(tx: Tx) -> bool:
    return await queries.has_users(tx)


async def has_users_now(database: Database) -> bool:
    async with database.reading() as tx:
        return await has_users(tx)


async def find_account(tx: Tx, user_id: UUID) -> Account:
    account = await queries.find_account(tx, user_id)
    if account is None:
        raise _no_such_user(user_id)
    return account


async def change_password(tx: Tx, by: Actor, user_id: UUID, *, password_hash: str, session_id: UUID) -> int:
    """Change the password and end all other sessions; return how many ended."""
    account = await find_account(tx, user_id)
    await queries.set_password(tx, user_id, password_hash)
    await end_password_links(tx, account.email)
    ended = await sessions.end_sessions(tx, user_id, except_id=session_id)
    await _record_in_all_organizations(tx, by, account, "password.change")
    return ended


async def enable_second_factor(
    tx: Tx, vault: AnyVault, by: Actor, user_id: UUID, *, secret: str, code: str
) -> list[str]:
    codes = await second_factor.enable(tx, vault, user_id, secret=secret, code=code)
    await _record_in_all_organizations(tx, by, await find_account(tx, user_id), "second_factor.enable")
    return codes


async def renew_recovery_codes(tx: Tx, by: Actor, user_id: UUID) -> list[str]:
    codes = await second_factor.renew_recovery_codes(tx, user_id)
    await _record_in_all_organizations(tx, by, await find_account(tx, user_id), "second_factor.new_recovery_codes")
    return codes


async def disable_second_factor(tx: Tx, by: Actor, user_id: UUID) -> None:
    await second_factor.disable(tx, user_id)
    await _record_in_all_organizations(tx, by, await find_account(tx, user_id), "second_factor.disable")


async def invite_user(tx: Tx, organization_id: UUID, email: str, *, role: Role) -> str:
    """Return the token of an invitation, also for an address that has an account: addresses are not verified, so the
    user must enter the password of that account besides opening the link."""
    await team.refuse_member(tx, organization_id, email)
    token = await make_link(tx, Purpose.INVITATION, email=email, organization_id=organization_id, role=role)
    await record(tx, organization_id, OPERATOR, "member.invite", email, after={"role": role.value})
    return token


async def reset_user(tx: Tx, email: str, *, without_second_factor: bool) -> str:
    """Return the token of a link for a new password; end the user's sessions, and links that others made.

    Without the second factor the password is deleted too: another person who controls the account could otherwise sign
    in and set up a second factor again before the link is used.
    """
    account = await _find_by_email(tx, email)
    if without_second_factor:
        await disable_second_factor(tx, OPERATOR, account.id)
        await queries.set_password(tx, account.id, None)
    # Sessions are ended after the password is changed: a sign-in that checked the old password has committed its
    # session by now, or will be refused.
    await sessions.end_sessions(tx, account.id)
    return await password_link_by_operator(tx, email)


async def password_link_by_operator(tx: Tx, email: str) -> str:
    """Return the token of a link for a new password of any user, whatever their role and organizations."""
    account = await queries.find_account_by_email(tx, email)
    if account is not None:
        await _record_in_all_organizations(tx, OPERATOR, account, "member.password_link")
    return await make_link(tx, Purpose.PASSWORD, email=email)


async def list_users(tx: Tx) -> list[UserListing]:
    """Return every user with each of their organizations: its name, its slug and their role."""
    rows = await tx.fetch(
        "SELECT u.id, u.email, u.name, u.locale, u.created_at, u.disabled_at, u.password_hash IS NOT NULL,"
        " u.totp_enabled_at IS NOT NULL, o.name, s.slug, m.role FROM users u"
        " LEFT JOIN memberships m ON m.user_id = u.id LEFT JOIN organizations o ON o.id = m.organization_id"
        " LEFT JOIN organization_slugs s ON s.organization_id = o.id AND s.is_current ORDER BY u.email, o.name"
    )
    return [UserListing(Account(*row[:8]), *row[8:]) for row in rows]


async def disable_user(tx: Tx, email: str) -> None:
    """End all sessions and links of a user and refuse new ones; the account stays, for the audit log."""
    account = await _find_by_email(tx, email)
    await queries.set_disabled(tx, account.id, tx.now)
    await sessions.end_sessions(tx, account.id)
    await end_links_of_user(tx, user_id=account.id, email=account.email)
    await _record_in_all_organizations(tx, OPERATOR, account, "user.disable")


async def enable_user(tx: Tx, email: str) -> None:
    account = await _find_by_email(tx, email)
    await queries.set_disabled(tx, account.id, None)
    await _record_in_all_organizations(tx, OPERATOR, account, "user.enable")


async def set_role(tx: Tx, organization_id: UUID, email: str, role: Role) -> None:
    account = await _find_by_email(tx, email)
    await team.change_role(tx, organization_id, account.id, role, by=OPERATOR, by_role=None)


async def _find_by_email(tx: Tx, email: str) -> Account:
    account = await queries.find_account_by_email(tx, email)
    if account is None:
        raise _no_such_user(email)
    return account


def _no_such_user(who: UUID | str) -> AccountRefusal:
    return AccountRefusal(f"There is no user {who}; `regulars user list` shows them all.")


async def _record_in_all_organizations(tx: Tx, by: Actor, account: Account, act: str) -> None:
    """Record an act in the audit logs of all organizations of the user: the account belongs to each of them."""
    for membership in await queries.find_memberships(tx, account.id):
        await record(tx, membership.organization_id, by, act, account.email)
