"""Create, find and list organizations; create, list and revoke their API keys."""

import secrets
from collections.abc import Collection
from datetime import datetime
from typing import Any
from uuid import UUID

from regulars.kit.arrays import Uuids
from regulars.kit.clock import truncate_to_milliseconds
from regulars.kit.connection import Connection
from regulars.kit.db import Tx
from regulars.kit.ids import new_uuid
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
from regulars.organizations.secret import open_secret
from regulars.organizations.settings import NameTaken
from regulars.organizations.slugs import ensure_slug


async def create_organization(connection: Connection, name: str) -> Organization:
    """Create an organization, or raise `NameTaken`. An existing one is never returned, because the caller becomes a
    member of the organization."""
    organization = Organization(new_uuid(), name, await _now(connection))
    stored = await make_stored_secret(connection, organization.id, secrets.token_bytes(SECRET_BYTES))
    inserted = await connection.change(
        "INSERT INTO organizations (id, name, secret, sealed_secret, created_at) VALUES (%s, %s, %s, %s, %s)"
        " ON CONFLICT (name) DO NOTHING",
        (organization.id, name, stored.plain, stored.sealed, organization.created_at),
    )
    if not inserted:
        raise NameTaken(name)
    await ensure_slug(connection, organization.id, name, now=organization.created_at)
    return organization


async def find_organization(connection: Connection, name: str) -> Organization | None:
    rows = await connection.fetch("SELECT id, name, created_at FROM organizations WHERE name = %s", (name,))
    return Organization(*rows[0]) if rows else None


async def find_organization_name(connection: Connection, organization_id: UUID) -> str | None:
    rows = await connection.fetch("SELECT name FROM organizations WHERE id = %s", (organization_id,))
    return rows[0][0] if rows else None


async def find_secret_and_country(connection: Connection, organization_id: UUID) -> SecretAndCountry:
    rows = await connection.fetch(
        "SELECT secret, sealed_secret, default_country FROM organizations WHERE id = %s", (organization_id,)
    )
    for plain, sealed, country in rows:
        return SecretAndCountry(open_secret(organization_id, plain, sealed), country)
    raise LookupError(f"There is no organization {organization_id}.")


async def is_demo(connection: Connection, organization_id: UUID) -> bool:
    return await connection.fetch("SELECT is_demo FROM organizations WHERE id = %s", (organization_id,)) == [(True,)]


async def mark_as_demo(connection: Connection, organization_id: UUID) -> None:
    """Mark the organization permanently: it has sample customers and never sends a real text."""
    await connection.change("UPDATE organizations SET is_demo = true WHERE id = %s", (organization_id,))


async def dismiss_first_steps(connection: Connection, organization_id: UUID) -> None:
    """Remove the page of first steps from the navigation; the page itself stays."""
    await connection.change("UPDATE organizations SET shows_first_steps = false WHERE id = %s", (organization_id,))


async def list_organizations(connection: Connection) -> list[Organization]:
    rows = await connection.fetch("SELECT id, name, created_at FROM organizations ORDER BY name")
    return [Organization(*row) for row in rows]


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
    await connection.change(
        "INSERT INTO api_keys (id, organization_id, name, hint, permission, key_hash, created_at)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s)",
        (key.id, organization_id, name, key.hint, permission.value, hash_key(secret), key.created_at),
    )
    return key, secret


async def list_keys(connection: Connection, organization_id: UUID) -> list[ApiKey]:
    rows = await connection.fetch(
        "SELECT id, organization_id, name, hint, permission, created_at, last_used_at, revoked_at"
        " FROM api_keys WHERE organization_id = %s ORDER BY id",
        (organization_id,),
    )
    return [_to_key(*row) for row in rows]


async def revoke_key(connection: Connection, key_id: UUID, *, organization_id: UUID | None = None) -> ApiKey | None:
    """Return the revoked key, or None if the key does not exist or belongs to another organization. A key that was
    revoked before keeps its time of revocation."""
    rows = await connection.fetch(
        "UPDATE api_keys SET revoked_at = coalesce(revoked_at, %s)"
        " WHERE id = %s AND organization_id = coalesce(%s::uuid, organization_id)"
        " RETURNING id, organization_id, name, hint, permission, created_at, last_used_at, revoked_at",
        (await _now(connection), key_id, organization_id),
    )
    return _to_key(*rows[0]) if rows else None


def _to_key(identifier: UUID, organization_id: UUID, name: str, hint: str, permission: str, *times: Any) -> ApiKey:
    return ApiKey(identifier, organization_id, name, hint, Permission(permission), *times)


async def revoke_restored_keys(tx: Tx, key_ids: Collection[UUID], *, revokes_all: bool) -> None:
    """Revoke keys that a restored backup made valid again: those that had been revoked, or all."""
    await tx.execute(
        "UPDATE api_keys SET revoked_at = %s WHERE revoked_at IS NULL AND (%s OR id = ANY(%s::uuid[]))",
        (tx.now, revokes_all, Uuids(key_id.bytes for key_id in key_ids)),
    )


async def _now(connection: Connection) -> datetime:
    [(now,)] = await connection.fetch("SELECT now()")
    return truncate_to_milliseconds(now)
