"""The SQL on `organizations`, their slugs and their API keys, and the deletion of all rows of an organization."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from psycopg import AsyncConnection, sql
from psycopg.rows import TupleRow, class_row

from regulars.kit.arrays import Blobs, Uuids
from regulars.kit.db import Tx
from regulars.kit.vault import VaultError
from regulars.organizations.model import ApiKey, Organization, Permission, SecretAndCountry
from regulars.organizations.secret import open_secret

Connection = AsyncConnection[TupleRow]


async def insert_organization_if_new(
    connection: Connection, *, identifier: UUID, name: str, secret: bytes | None, sealed: bytes | None, now: datetime
) -> bool:
    cursor = await connection.execute(
        "INSERT INTO organizations (id, name, secret, sealed_secret, created_at) VALUES (%s, %s, %s, %s, %s)"
        " ON CONFLICT (name) DO NOTHING",
        (identifier, name, secret, sealed, now),
    )
    return cursor.rowcount == 1


async def find_organization(connection: Connection, name: str) -> Organization | None:
    async with connection.cursor(row_factory=class_row(Organization)) as cursor:
        await cursor.execute("SELECT id, name, created_at FROM organizations WHERE name = %s", (name,))
        return await cursor.fetchone()


async def find_organization_name(connection: Connection, organization_id: UUID) -> str | None:
    cursor = await connection.execute("SELECT name FROM organizations WHERE id = %s", (organization_id,))
    row = await cursor.fetchone()
    return None if row is None else str(row[0])


async def find_secret_and_country(connection: Connection, organization_id: UUID) -> SecretAndCountry | None:
    cursor = await connection.execute(
        "SELECT secret, sealed_secret, default_country FROM organizations WHERE id = %s", (organization_id,)
    )
    row = await cursor.fetchone()
    return None if row is None else SecretAndCountry(open_secret(organization_id, row[0], row[1]), row[2])


async def is_demo(connection: Connection, organization_id: UUID) -> bool:
    cursor = await connection.execute("SELECT is_demo FROM organizations WHERE id = %s", (organization_id,))
    row = await cursor.fetchone()
    return row is not None and bool(row[0])


async def mark_as_demo(connection: Connection, organization_id: UUID) -> None:
    await connection.execute("UPDATE organizations SET is_demo = true WHERE id = %s", (organization_id,))


async def set_shows_first_steps(connection: Connection, organization_id: UUID, *, is_shown: bool) -> None:
    await connection.execute(
        "UPDATE organizations SET shows_first_steps = %s WHERE id = %s", (is_shown, organization_id)
    )


async def list_organizations(connection: Connection) -> list[Organization]:
    async with connection.cursor(row_factory=class_row(Organization)) as cursor:
        await cursor.execute("SELECT id, name, created_at FROM organizations ORDER BY name")
        return await cursor.fetchall()


async def insert_key(connection: Connection, key: ApiKey, *, key_hash: bytes) -> None:
    await connection.execute(
        "INSERT INTO api_keys (id, organization_id, name, hint, permission, key_hash, created_at)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s)",
        (key.id, key.organization_id, key.name, key.hint, key.permission.value, key_hash, key.created_at),
    )


async def list_keys(connection: Connection, organization_id: UUID) -> list[ApiKey]:
    cursor = await connection.execute(
        "SELECT id, organization_id, name, hint, permission, created_at, last_used_at, revoked_at"
        " FROM api_keys WHERE organization_id = %s ORDER BY id",
        (organization_id,),
    )
    return [_to_key(row) for row in await cursor.fetchall()]


def _to_key(row: TupleRow) -> ApiKey:
    identifier, organization_id, name, hint, permission, created_at, last_used_at, revoked_at = row
    return ApiKey(identifier, organization_id, name, hint, Permission(permission), created_at, last_used_at, revoked_at)


async def revoke_key(
    connection: Connection, key_id: UUID, now: datetime, *, organization_id: UUID | None
) -> ApiKey | None:
    cursor = await connection.execute(
        "UPDATE api_keys SET revoked_at = coalesce(revoked_at, %s)"
        " WHERE id = %s AND organization_id = coalesce(%s::uuid, organization_id)"
        " RETURNING id, organization_id, name, hint, permission, created_at, last_used_at, revoked_at",
        (now, key_id, organization_id),
    )
    row = await cursor.fetchone()
    return None if row is None else _to_key(row)


class LiveKey(NamedTuple):
    """A key that is not revoked, with the settings of its organization that requests need."""

    id: UUID
    organization_id: UUID
    secret: bytes
    country: str | None
    permission: Permission


async def find_live_keys(tx: Tx, key_hashes: Sequence[bytes]) -> dict[bytes, LiveKey | VaultError]:
    """Find the keys that are not revoked, by hash. A secret that cannot be decrypted affects only the keys of its
    organization."""
    rows = await tx.fetch(
        "SELECT wanted.key_hash, k.id, o.id, o.secret, o.sealed_secret, o.default_country, k.permission"
        " FROM unnest(%s::bytea[]) AS wanted (key_hash)"
        " CROSS JOIN LATERAL (SELECT id, organization_id, permission FROM api_keys"
        "   WHERE key_hash = wanted.key_hash AND revoked_at IS NULL LIMIT 1) AS k"
        " CROSS JOIN LATERAL (SELECT id, secret, sealed_secret, default_country FROM organizations"
        "   WHERE id = k.organization_id LIMIT 1) AS o",
        (Blobs(key_hashes),),
    )
    return {row[0]: _to_live_key(row) for row in rows}


def _to_live_key(row: TupleRow) -> LiveKey | VaultError:
    _, identifier, organization_id, plain, sealed, country, permission = row
    try:
        secret = open_secret(organization_id, plain, sealed)
    except VaultError as error:
        return error
    return LiveKey(identifier, organization_id, secret, country, Permission(permission))


async def record_key_use(connection: Connection, key_ids: Sequence[UUID], *, now: datetime, before: datetime) -> None:
    """Record that keys were used, unless their last recorded use is after `before`."""
    await connection.execute(
        "UPDATE api_keys SET last_used_at = %s WHERE id = ANY(%s) AND (last_used_at IS NULL OR last_used_at < %s)",
        (now, list(key_ids), before),
    )


async def find_current_slug(connection: Connection, organization_id: UUID) -> str | None:
    cursor = await connection.execute(
        "SELECT slug FROM organization_slugs WHERE organization_id = %s AND is_current", (organization_id,)
    )
    row = await cursor.fetchone()
    return None if row is None else str(row[0])


async def find_slug_owner(connection: Connection, slug: str) -> UUID | None:
    cursor = await connection.execute("SELECT organization_id FROM organization_slugs WHERE slug = %s", (slug,))
    row = await cursor.fetchone()
    return None if row is None else row[0]


async def insert_slug_if_free(connection: Connection, organization_id: UUID, slug: str, now: datetime) -> None:
    await connection.execute(
        "INSERT INTO organization_slugs (slug, organization_id, is_current, created_at) VALUES (%s, %s, true, %s)"
        " ON CONFLICT DO NOTHING",
        (slug, organization_id, now),
    )


async def retire_slug(connection: Connection, organization_id: UUID) -> None:
    await connection.execute(
        "UPDATE organization_slugs SET is_current = false WHERE organization_id = %s AND is_current",
        (organization_id,),
    )


async def make_slug_current(connection: Connection, organization_id: UUID, slug: str, now: datetime) -> bool:
    """Use a slug, also one that the organization had before; return False if another organization has it."""
    cursor = await connection.execute(
        "INSERT INTO organization_slugs (slug, organization_id, is_current, created_at) VALUES (%s, %s, true, %s)"
        " ON CONFLICT (slug) DO UPDATE SET is_current = true"
        " WHERE organization_slugs.organization_id = excluded.organization_id",
        (slug, organization_id, now),
    )
    return cursor.rowcount == 1


async def find_settings(connection: Connection, organization_id: UUID) -> tuple[str, str, str, str | None, bool] | None:
    cursor = await connection.execute(
        "SELECT name, time_zone, locale, default_country, requires_second_factor FROM organizations WHERE id = %s",
        (organization_id,),
    )
    row = await cursor.fetchone()
    return None if row is None else (row[0], row[1], row[2], row[3], row[4])


async def update_settings(
    connection: Connection,
    organization_id: UUID,
    *,
    name: str,
    time_zone: str,
    locale: str,
    default_country: str | None,
    requires_second_factor: bool,
) -> None:
    await connection.execute(
        "UPDATE organizations SET name = %s, time_zone = %s, locale = %s, default_country = %s,"
        " requires_second_factor = %s WHERE id = %s",
        (name, time_zone, locale, default_country, requires_second_factor, organization_id),
    )


async def revoke_keys(tx: Tx, organization_id: UUID) -> None:
    await tx.execute(
        "UPDATE api_keys SET revoked_at = %s WHERE organization_id = %s AND revoked_at IS NULL",
        (tx.now, organization_id),
    )


async def revoke_restored_keys(tx: Tx, key_ids: Collection[UUID], *, revokes_all: bool) -> None:
    await tx.execute(
        "UPDATE api_keys SET revoked_at = %s WHERE revoked_at IS NULL AND (%s OR id = ANY(%s::uuid[]))",
        (tx.now, revokes_all, Uuids(key_id.bytes for key_id in key_ids)),
    )


async def find_tables_of_organizations(tx: Tx) -> dict[str, set[str]]:
    """Return all tables with a column `organization_id`, each with the tables that its foreign keys refer to."""
    rows = await tx.fetch(
        "SELECT c.relname::text, coalesce(array_agg(t.relname::text) FILTER (WHERE t.oid IS NOT NULL), '{}')"
        " FROM pg_class o JOIN pg_class c ON c.relnamespace = o.relnamespace"
        " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'organization_id' AND NOT a.attisdropped"
        " LEFT JOIN pg_constraint f ON f.conrelid = c.oid AND f.contype = 'f'"
        " LEFT JOIN pg_class t ON t.oid = f.confrelid"
        " WHERE o.oid = to_regclass('organizations') AND c.relkind IN ('r', 'p') AND NOT c.relispartition"
        " GROUP BY c.relname"
    )
    return {table: set(targets) for table, targets in rows}


async def find_ctids(tx: Tx, table: str, organization_id: UUID, *, rows_max: int) -> list[str]:
    """Return the physical addresses (ctid) of the organization's rows in a table."""
    query = sql.SQL("SELECT ctid::text FROM {} WHERE organization_id = %s LIMIT %s").format(sql.Identifier(table))
    return [row[0] for row in await tx.fetch(query, (organization_id, rows_max))]


async def delete_by_ctids(tx: Tx, table: str, organization_id: UUID, ctids: Sequence[str]) -> int:
    """Delete rows by their addresses; the next scan finds rows that have moved since. Other kinds of scans are turned
    off, so that the planner uses the addresses."""
    await tx.execute(
        "SELECT set_config(name, 'off', true) FROM unnest("
        " ARRAY['enable_seqscan', 'enable_indexscan', 'enable_indexonlyscan', 'enable_bitmapscan']) AS name"
    )
    query = sql.SQL("DELETE FROM {} WHERE organization_id = %s AND ctid = ANY(%s::text[]::tid[])")
    return await tx.execute(query.format(sql.Identifier(table)), (organization_id, list(ctids)))


async def delete_organization(tx: Tx, organization_id: UUID) -> None:
    """Delete the organization with its keys and slugs, which refer to it."""
    await tx.execute("DELETE FROM api_keys WHERE organization_id = %s", (organization_id,))
    await tx.execute("DELETE FROM organization_slugs WHERE organization_id = %s", (organization_id,))
    await tx.execute("DELETE FROM organizations WHERE id = %s", (organization_id,))


async def list_sealed_secrets(tx: Tx) -> list[tuple[UUID, bytes]]:
    rows = await tx.fetch("SELECT id, sealed_secret FROM organizations WHERE sealed_secret IS NOT NULL FOR UPDATE")
    return [(row[0], bytes(row[1])) for row in rows]


async def replace_sealed_secret(tx: Tx, organization_id: UUID, sealed: bytes) -> None:
    await tx.execute("UPDATE organizations SET sealed_secret = %s WHERE id = %s", (sealed, organization_id))
