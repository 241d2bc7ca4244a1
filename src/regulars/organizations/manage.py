"""Create, find and list organizations; create, list and revoke their API keys."""

import secrets
from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from regulars.kit.clock import truncate_to_milliseconds
from regulars.kit.db import Tx
from regulars.kit.ids import new_uuid
from regulars.organizations import queries
from regulars.organizations.model import (
    HINT_CHARACTERS,
    SECRET_BYTES,
    ApiKey,
    Organization,
    Permission,
    SecretAndCountry,
    hash_key,
    new_key,
)
from regulars.organizations.sealing import make_stored_secret
from regulars.organizations.settings import NameTaken
from regulars.organizations.slugs import ensure_slug

Connection = AsyncConnection[TupleRow]


async def create_organization(connection: Connection, name: str) -> Organization:
    """Create an organization, or raise `NameTaken`. An existing one is never returned, because the caller becomes a
    member of the organization."""
    organization = Organization(new_uuid(), name, await _now(connection))
    stored = await make_stored_secret(connection, organization.id, secrets.token_bytes(SECRET_BYTES))
    is_new = await queries.insert_organization_if_new(
        connection,
        identifier=organization.id,
        name=name,
        secret=stored.plain,
        sealed=stored.sealed,
        now=organization.created_at,
    )
    if not is_new:
        raise NameTaken(name)
    await ensure_slug(connection, organization.id, name, now=organization.created_at)
    return organization


async def find_organization(connection: Connection, name: str) -> Organization | None:
    return await queries.find_organization(connection, name)


async def find_organization_name(connection: Connection, organization_id: UUID) -> str | None:
    return await queries.find_organization_name(connection, organization_id)


async def find_secret_and_country(connection: Connection, organization_id: UUID) -> SecretAndCountry:
    secret_and_country = await queries.find_secret_and_country(connection, organization_id)
    if secret_and_country is None:
        raise LookupError(f"There is no organization {organization_id}.")
    return secret_and_country


async def is_demo(connection: Connection, organization_id: UUID) -> bool:
    return await queries.is_demo(connection, organization_id)


async def mark_as_demo(connection: Connection, organization_id: UUID) -> None:
    """Mark the organization permanently: it has sample customers and never sends a real text."""
    await queries.mark_as_demo(connection, organization_id)


async def dismiss_first_steps(connection: Connection, organization_id: UUID) -> None:
    """Remove the page of first steps from the navigation; the page itself stays."""
    await queries.set_shows_first_steps(connection, organization_id, is_shown=False)


async def list_organizations(connection: Connection) -> list[Organization]:
    return await queries.list_organizations(connection)


async def create_key(
    connection: Connection, organization_id: UUID, name: str, *, permission: Permission = Permission.FULL
) -> tuple[ApiKey, str]:
    """Create a key; return it with its secret text, of which the database stores only the hash."""
    secret = new_key()
    key = ApiKey(
        id=new_uuid(),
        organization_id=organization_id,
        name=name,
        hint=secret[-HINT_CHARACTERS:],
        permission=permission,
        created_at=await _now(connection),
        last_used_at=None,
        revoked_at=None,
    )
    await queries.insert_key(connection, key, key_hash=hash_key(secret))
    return key, secret


async def list_keys(connection: Connection, organization_id: UUID) -> list[ApiKey]:
    return await queries.list_keys(connection, organization_id)


async def revoke_key(connection: Connection, key_id: UUID, *, organization_id: UUID | None = None) -> ApiKey | None:
    """Return the revoked key, or None if the key does not exist or belongs to another organization. A key that was
    revoked before keeps its time of revocation."""
    return await queries.revoke_key(connection, key_id, await _now(connection), organization_id=organization_id)


async def revoke_restored_keys(tx: Tx, key_ids: Collection[UUID], *, revokes_all: bool) -> None:
    """Revoke keys that a restored backup made valid again: those that had been revoked, or all."""
    await queries.revoke_restored_keys(tx, key_ids, revokes_all=revokes_all)


async def _now(connection: Connection) -> datetime:
    row = await (await connection.execute("SELECT now()")).fetchone()
    if row is None:
        raise LookupError("The database did not tell the time.")
    now: datetime = row[0]
    return truncate_to_milliseconds(now)
