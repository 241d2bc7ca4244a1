"""Manage the members of an organization: invite and remove them, change roles, make links for new passwords."""

from collections.abc import Collection
from typing import Final
from uuid import UUID

from regulars.accounts import queries, sessions
from regulars.accounts.audit.log import Actor, is_person, record
from regulars.accounts.errors import (
    AccountRefusal,
    LinkUnusable,
    NoSuchMember,
)
from regulars.accounts.links import Link, Purpose, end_link, end_links_of_member, make_link
from regulars.accounts.model import Member
from regulars.kit.db import Tx
from regulars.web.access import Action, Role, may

# 0 is the highest role. A member may reset the password only of members with the same or a lower role.
_RANK = {Role.OWNER: 0, Role.ADMIN: 1, Role.MARKETER: 2, Role.ANALYST: 2, Role.DEVELOPER: 2}

_OWNERS_ONLY: Final = "Only an owner can change an owner or make a member an owner."


async def find_member(tx: Tx, organization_id: UUID, user_id: UUID) -> Member:
    for member in await queries.list_members(tx, organization_id, user_id=user_id):
        return member
    raise NoSuchMember


async def list_members_of_role(tx: Tx, organization_id: UUID, role: Role) -> list[Member]:
    return [member for member in await queries.list_members(tx, organization_id) if member.role is role]


async def identify_members(tx: Tx, organization_id: UUID, signatures: Collection[str]) -> set[str]:
    """The signatures of changes, with the email addresses of members in place of their names, with which older servers
    signed."""
    names = {signature for signature in signatures if not is_person(signature)}
    found = await queries.find_emails_by_name(tx, organization_id, names) if names else []
    return {*signatures} - {name for name, _ in found} | {email for _, email in found}


async def require_editor(tx: Tx, organization_id: UUID, email: str) -> str:
    """The address of a member who may change journeys, campaigns and segments, for a command that acts for them."""
    address = email.strip().lower()
    for member in await queries.list_members(tx, organization_id):
        if member.email == address and member.disabled_at is None:
            if may(member.role, Action.EDIT_JOURNEYS) and may(member.role, Action.EDIT_SEGMENTS):
                return member.email
            raise AccountRefusal(f"{address} needs another role to change journeys, campaigns and segments.")
    raise NoSuchMember


async def refuse_member(tx: Tx, organization_id: UUID, email: str) -> None:
    """Raise if a member has this address: they need no invitation."""
    if any(member.email == email for member in await queries.list_members(tx, organization_id)):
        raise AccountRefusal(f"{email} is a member already; change their role in the list.")


async def invite(tx: Tx, organization_id: UUID, *, email: str, role: Role, by: Actor, by_role: Role) -> str:
    """Return the token of the invitation, which the inviting member passes on."""
    _check_may_assign(by_role, role)
    await refuse_member(tx, organization_id, email)
    token = await make_link(
        tx, Purpose.INVITATION, email=email, organization_id=organization_id, role=role, created_by=by.id
    )
    await record(tx, organization_id, by, "member.invite", email, after={"role": role.value})
    return token


async def withdraw_link(tx: Tx, organization_id: UUID, link_id: UUID, *, by: Actor) -> None:
    ended = await end_link(tx, organization_id, link_id)
    if ended is not None:
        purpose, email = ended
        await record(tx, organization_id, by, "member.link_withdraw", email, before={"link": purpose.value})


async def change_role(
    tx: Tx, organization_id: UUID, user_id: UUID, role: Role, *, by: Actor, by_role: Role | None
) -> Member:
    """Change the role of a member. `by_role` is the role of the member who changes it, None for the operator at the
    server, who may do everything except remove the last owner."""
    member = await _lock_member(tx, organization_id, user_id, by_role)
    if by_role is not None:
        _check_may_assign(by_role, role)
    if member.role is Role.OWNER and role is not Role.OWNER:
        await _check_other_owner(tx, organization_id, user_id)
    await queries.upsert_membership(tx, organization_id, user_id, role)
    if member.role is not role:
        await end_links_of_member(tx, organization_id, user_id=user_id, email=member.email)
        before, after = {"role": member.role.value}, {"role": role.value}
        await record(tx, organization_id, by, "member.role", member.email, before=before, after=after)
    return member


async def remove_member(tx: Tx, organization_id: UUID, user_id: UUID, *, by: Actor, by_role: Role | None) -> Member:
    member = await _lock_member(tx, organization_id, user_id, by_role)
    if member.role is Role.OWNER:
        await _check_other_owner(tx, organization_id, user_id)
    await tx.execute("DELETE FROM memberships WHERE organization_id = %s AND user_id = %s", (organization_id, user_id))
    await end_links_of_member(tx, organization_id, user_id=user_id, email=member.email)
    await record(tx, organization_id, by, "member.remove", member.email, before={"role": member.role.value})
    return member


async def password_link(tx: Tx, organization_id: UUID, user_id: UUID, *, by: Actor, by_role: Role) -> str:
    """Return the token of a link for a new password of a member. Refused if the member has a higher role, or belongs to
    another organization too: an admin must not enter that organization as this member."""
    member = await find_member(tx, organization_id, user_id)
    await _check_may_reset(tx, member, by_role)
    token = await make_link(tx, Purpose.PASSWORD, email=member.email, organization_id=organization_id, created_by=by.id)
    await record(tx, organization_id, by, "member.password_link", member.email)
    return token


async def check_maker(tx: Tx, link: Link, user_id: UUID | None) -> None:
    """Refuse a link if the member who made it may no longer make it; `user_id` is the account that it is for.

    The operator's links have no maker. Password links of older releases have a maker but no organization, so that they
    cannot be checked, and are refused.
    """
    if link.maker_id is None:
        return
    if link.organization_id is None:
        raise LinkUnusable
    try:
        maker = await find_member(tx, link.organization_id, link.maker_id)
        if maker.disabled_at is not None or not may(maker.role, Action.MANAGE_TEAM):
            raise AccountRefusal(_OWNERS_ONLY)
        if link.role is not None:
            _check_may_assign(maker.role, link.role)
        if link.purpose is Purpose.PASSWORD:
            if user_id is None:
                raise NoSuchMember
            await _check_may_reset(tx, await find_member(tx, link.organization_id, user_id), maker.role)
    except AccountRefusal:
        raise LinkUnusable from None


async def _check_may_reset(tx: Tx, member: Member, by_role: Role) -> None:
    if _RANK[member.role] < _RANK[by_role]:
        raise AccountRefusal(_OWNERS_ONLY)
    if len(await queries.find_memberships(tx, member.user_id)) > 1:
        raise AccountRefusal(
            "This user is a member of other organizations too, so the link must be created on the server:"
            f" `regulars user link {member.email}`."
        )


async def sign_out_member(tx: Tx, organization_id: UUID, user_id: UUID, *, by: Actor, by_role: Role) -> Member:
    member = await _lock_member(tx, organization_id, user_id, by_role)
    count = await sessions.end_sessions(tx, user_id)
    await record(tx, organization_id, by, "member.sign_out", member.email, after={"sessions": count})
    return member


def _check_may_assign(by_role: Role, role: Role) -> None:
    if role is Role.OWNER and not may(by_role, Action.MANAGE_OWNERS):
        raise AccountRefusal(_OWNERS_ONLY)


async def _lock_member(tx: Tx, organization_id: UUID, user_id: UUID, by_role: Role | None) -> Member:
    """Load a member and lock all owners: of two owners who demote each other at the same time, one stays an owner."""
    await tx.fetch(
        "SELECT 1 FROM memberships WHERE organization_id = %s AND role = 'owner' ORDER BY user_id FOR UPDATE",
        (organization_id,),
    )
    member = await find_member(tx, organization_id, user_id)
    if by_role is not None and member.role is Role.OWNER and not may(by_role, Action.MANAGE_OWNERS):
        raise AccountRefusal(_OWNERS_ONLY)
    return member


async def _check_other_owner(tx: Tx, organization_id: UUID, user_id: UUID) -> None:
    """Raise unless the organization has another owner, who is not disabled."""
    others = await tx.fetch(
        "SELECT 1 FROM memberships m JOIN users u ON u.id = m.user_id WHERE m.organization_id = %s"
        " AND m.role = 'owner' AND m.user_id <> %s AND u.disabled_at IS NULL LIMIT 1",
        (organization_id, user_id),
    )
    if not others:
        raise AccountRefusal("An organization needs at least one owner: make another member an owner first.")
