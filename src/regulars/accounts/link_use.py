"""Use a one-time link: accept an invitation to an organization, set a new password, or become the first owner."""

from dataclasses import replace
from uuid import UUID

from regulars.accounts import queries, sessions
from regulars.accounts.audit.log import COMMAND_LINE, Actor, lock_chain_end, record
from regulars.accounts.errors import LinkUnusable
from regulars.accounts.links import (
    Link,
    Purpose,
    end_password_links,
    end_password_links_of_organizations,
    find_link,
    make_link,
    use_link,
)
from regulars.accounts.model import Account
from regulars.accounts.team import check_maker
from regulars.accounts.users import create_account, join
from regulars.kit.db import Tx
from regulars.organizations.manage import create_organization
from regulars.organizations.settings import change_settings, find_settings, refuse_foreign_zone
from regulars.web.access import Role


async def accept_as_new(tx: Tx, token: str, *, name: str, password_hash: str, address: str) -> tuple[Account, Link]:
    """Accept an invitation as a new user, who chooses a password."""
    link = await _use_if_allowed(tx, token, Purpose.INVITATION)
    account = await create_account(tx, email=link.email or "", name=name)
    if account.has_password or account.disabled_at is not None or await queries.find_memberships(tx, account.id):
        # The account exists already: its password or the operator's link gives access, and this link does not.
        raise LinkUnusable
    await queries.set_name_and_locale(tx, account.id, name=name, locale=account.locale)
    await queries.set_password(tx, account.id, password_hash)
    await _join(tx, link, account, address)
    return account, link


async def accept_as_existing(tx: Tx, token: str, user_id: UUID, *, password_hash: str | None, address: str) -> Link:
    """Accept an invitation with an existing account. `password_hash` is the hash that the password was checked against:
    if it has changed since, another person may have set it."""
    link = await _use_if_allowed(tx, token, Purpose.INVITATION)
    account = await queries.find_account(tx, user_id)
    if account is None or account.email != link.email:
        raise LinkUnusable
    stored = await queries.find_password(tx, account.email)
    if stored is None or stored.password_hash is None or stored.password_hash != password_hash:
        raise LinkUnusable
    await _join(tx, link, account, address)
    return link


async def set_password_by_link(tx: Tx, token: str, *, password_hash: str, address: str) -> Account:
    """Set the password and end all sessions, also those of a person who had the old one. A second factor stays."""
    link = await _use_if_allowed(tx, token, Purpose.PASSWORD)
    account = await queries.find_account_by_email(tx, link.email or "")
    if account is None or account.disabled_at is not None:
        raise LinkUnusable
    await queries.set_password(tx, account.id, password_hash)
    await end_password_links(tx, account.email)
    await sessions.end_sessions(tx, account.id)
    actor = Actor(account.id, account.email, address)
    for membership in await queries.find_memberships(tx, account.id):
        await record(tx, membership.organization_id, actor, "password.by_link", account.email, after=_made_by(link))
    return account


async def make_first_owner_link(tx: Tx) -> str | None:
    """Make a link for the first owner while there are no users; each start of the server ends the previous link."""
    if await queries.has_users(tx):
        return None
    return await make_link(tx, Purpose.FIRST_OWNER)


async def awaits_first_owner(tx: Tx, token: str) -> bool:
    """Whether the link can still be used: it has not expired, no newer one was made, and there is no user."""
    try:
        await find_link(tx, token)
    except LinkUnusable:
        return False
    return not await queries.has_users(tx)


async def create_first_owner(
    tx: Tx,
    token: str,
    *,
    organization_name: str,
    country: str | None = None,
    time_zone: str | None = None,
    email: str,
    name: str,
    password_hash: str,
    address: str,
) -> tuple[Account, str]:
    """Create the first owner and their organization; return the owner and the slug."""
    await _use_if_allowed(tx, token, Purpose.FIRST_OWNER)
    if await queries.has_users(tx):
        raise LinkUnusable
    account = await create_account(tx, email=email, name=name, password_hash=password_hash)
    organization = await create_organization(tx.connection, organization_name)
    before = await find_settings(tx.connection, organization.id)
    settings = replace(before, default_country=country, time_zone=time_zone or before.time_zone)
    refuse_foreign_zone(before, settings)
    await change_settings(tx, organization.id, settings)
    await join(tx, organization.id, organization.name, account.id, Role.OWNER)
    actor = Actor(account.id, account.email, address)
    await record(tx, organization.id, actor, "organization.create", organization.name)
    await record(tx, organization.id, actor, "member.join", email, after={"role": Role.OWNER.value})
    [membership] = await queries.find_memberships(tx, account.id)
    return account, membership.slug


async def inspect_link(tx: Tx, token: str) -> tuple[Link, Account | None]:
    """Return a link without using it, and the user with its address, if there is one."""
    link = await find_link(tx, token)
    account = await queries.find_account_by_email(tx, link.email) if link.email else None
    await check_maker(tx, link, account.id if account else None)
    return link, account


async def _use_if_allowed(tx: Tx, token: str, purpose: Purpose) -> Link:
    """Use the link, if the member who made it could still make it.

    The account's row is locked before the link: joining another organization does the same, so of a reset by an admin
    and a join at the same moment the second one sees the changes of the first, and there is no deadlock.
    """
    email = (await find_link(tx, token)).email
    stored = await queries.lock_password(tx, email) if email else None
    link = await use_link(tx, token)
    if link.purpose is not purpose:
        raise LinkUnusable
    await check_maker(tx, link, stored.user_id if stored else None)
    return link


def _made_by(link: Link) -> dict[str, str]:
    return {"link_made_by": link.maker or COMMAND_LINE}


async def _join(tx: Tx, link: Link, account: Account, address: str) -> None:
    if link.organization_id is None or link.role is None or link.organization_name is None:
        raise LinkUnusable
    if any(each.organization_id == link.organization_id for each in await queries.find_memberships(tx, account.id)):
        # An old invitation must not change the current role of a member.
        raise LinkUnusable
    await join(tx, link.organization_id, link.organization_name, account.id, link.role)
    await end_password_links_of_organizations(tx, account.email)
    # A sign-in that follows records in the audit logs of all organizations, so they are locked in the same order.
    for membership in await queries.find_memberships(tx, account.id):
        await lock_chain_end(tx, membership.organization_id)
    actor = Actor(account.id, account.email, address)
    after = {"role": link.role.value, **_made_by(link)}
    await record(tx, link.organization_id, actor, "member.join", account.email, after=after)
