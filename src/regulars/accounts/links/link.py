"""One-time links: an invitation, a new password, the first owner. No mail is sent; the maker passes the link on.

A link of a member carries the organization and its maker: `welcome` checks both again when the link is used. A link of
the operator has no maker, and a password link of the operator no organization.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

from regulars.accounts.errors import LinkUnusable
from regulars.accounts.links import queries
from regulars.accounts.model import hash_token, new_token
from regulars.kit.db import Tx
from regulars.kit.ids import new_uuid
from regulars.web.access import Role

LINK_LIFE: Final = timedelta(hours=48)
FIRST_OWNER_LIFE: Final = timedelta(hours=24)
# So long after its time a link is still known; then it goes when the next one is made.
STALE_AFTER: Final = timedelta(days=30)
LINK_PATH: Final = "/link"


class Purpose(StrEnum):
    INVITATION = "invitation"
    PASSWORD = "password"  # noqa: S105  # what the link is for
    FIRST_OWNER = "first_owner"


@dataclass(frozen=True, slots=True)
class Link:
    id: UUID
    purpose: Purpose
    email: str | None
    organization_id: UUID | None
    organization_name: str | None
    role: Role | None
    # Both None where the operator made it, or the server at its start.
    maker_id: UUID | None
    maker: str | None
    created_at: datetime
    expires_at: datetime


async def make_link(
    tx: Tx,
    purpose: Purpose,
    *,
    email: str | None = None,
    organization_id: UUID | None = None,
    role: Role | None = None,
    created_by: UUID | None = None,
) -> str:
    """The secret of the link, this once. A newer link for the same person and purpose ends the older one."""
    await queries.delete_stale_links(tx, before=tx.now - STALE_AFTER)
    if purpose is Purpose.PASSWORD and email is not None:
        await queries.expire_password_links(tx, email)
    else:
        await queries.expire_links(tx, purpose.value, email=email, organization_id=organization_id)
    token = new_token()
    life = FIRST_OWNER_LIFE if purpose is Purpose.FIRST_OWNER else LINK_LIFE
    await queries.insert_link(
        tx,
        token_hash=hash_token(token),
        identifier=new_uuid(),
        purpose=purpose.value,
        email=email,
        organization_id=organization_id,
        role=role.value if role else None,
        created_by=created_by,
        expires_at=tx.now + life,
    )
    return token


async def look_at(tx: Tx, token: str) -> Link:
    """What a link is for, without using it: mail scanners and previews open links too."""
    return _link(await queries.find_link(tx, hash_token(token)))


async def use(tx: Tx, token: str) -> Link:
    """Take the link: of two who try at once, one gets it, and a transaction that fails gives it back."""
    if not await queries.mark_used(tx, hash_token(token)):
        raise LinkUnusable
    return _link(await queries.find_used_link(tx, hash_token(token)))


async def list_links(tx: Tx, organization_id: UUID) -> list[Link]:
    """Those that are open and were made in this organization, or for it by the operator."""
    return [_link(row) for row in await queries.list_open_links(tx, organization_id)]


async def withdraw(tx: Tx, organization_id: UUID, link_id: UUID) -> tuple[Purpose, str] | None:
    """What it was for and whose address it had, or None if it is gone."""
    found = await queries.withdraw_link(tx, organization_id, link_id)
    return (Purpose(found[0]), found[1]) if found else None


async def end_password_links(tx: Tx, email: str) -> None:
    """The password changed: no older link may change it again."""
    await queries.expire_password_links(tx, email)


async def end_password_links_of_organizations(tx: Tx, email: str) -> None:
    """The account belongs to another organization too from now on; only the operator's links stay."""
    await queries.expire_password_links_of_organizations(tx, email)


async def end_links_of_member(tx: Tx, organization_id: UUID, *, user_id: UUID, email: str) -> None:
    """Their role changed or they left: what they made here, and what was made here for them."""
    await queries.expire_links_of_member(tx, organization_id, user_id=user_id, email=email)


async def end_links_of_user(tx: Tx, *, user_id: UUID, email: str) -> None:
    """They were disabled: what they made and what was made for them, everywhere."""
    await queries.expire_links_of_user(tx, user_id=user_id, email=email)


async def end_all_links(tx: Tx) -> None:
    """End the links of all users: a restored backup brings back links that were used or withdrawn since."""
    await queries.expire_all_links(tx)


def _link(row: queries.LinkRow | None) -> Link:
    if row is None:
        raise LinkUnusable
    return Link(
        id=row.id,
        purpose=Purpose(row.purpose),
        email=row.email,
        organization_id=row.organization_id,
        organization_name=row.organization_name,
        role=Role(row.role) if row.role else None,
        maker_id=row.maker_id,
        maker=row.maker,
        created_at=row.created_at,
        expires_at=row.expires_at,
    )
