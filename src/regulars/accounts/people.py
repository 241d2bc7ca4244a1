"""Create people and give them a place in an organization."""

from uuid import UUID

from regulars.accounts import queries
from regulars.accounts.model import Membership, Person
from regulars.kit.db import Tx
from regulars.kit.ids import new_uuid
from regulars.organizations.slugs import ensure_slug
from regulars.web.access import Role


async def create_person(tx: Tx, *, email: str, name: str, password_hash: str | None = None) -> Person:
    """Creating somebody again gives the same person: the address decides."""
    await queries.insert_user_if_new(tx, identifier=new_uuid(), email=email, name=name, password_hash=password_hash)
    person = await queries.find_person_by_email(tx, email)
    if person is None:
        raise LookupError(f"The user {email} vanished while being created.")
    return person


async def join(tx: Tx, organization_id: UUID, organization_name: str, user_id: UUID, role: Role) -> None:
    """Make somebody a member, or give a member another role."""
    await ensure_slug(tx.connection, organization_id, organization_name, now=tx.now)
    await queries.upsert_membership(tx, organization_id, user_id, role)


async def find_memberships(tx: Tx, user_id: UUID) -> list[Membership]:
    return await queries.find_memberships(tx, user_id)


async def has_users(tx: Tx) -> bool:
    return await queries.has_users(tx)
