"""The SQL on `organizations`, their slugs and their API keys, and the deletion of all rows of an organization."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from psycopg import sql
from psycopg.rows import TupleRow

from regulars.kit.arrays import Blobs
from regulars.kit.connection import Connection
from regulars.kit.db import Tx
from regulars.kit.vault import VaultError
from regulars.organizations.model import Permission
from regulars.organizations.secret import open_secret


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
    await connection.change(
        "UPDATE api_keys SET last_used_at = %s WHERE id = ANY(%s) AND (last_used_at IS NULL OR last_used_at < %s)",
        (now, list(key_ids), before),
    )


async def find_current_slug(connection: Connection, organization_id: UUID) -> str | None:
    rows = await connection.fetch(
        "SELECT slug FROM organization_slugs WHERE organization_id = %s AND is_current", (organization_id,)
    )
    return rows[0][0] if rows else None


async def find_slug_owner(connection: Connection, slug: str) -> UUID | None:
    rows = await connection.fetch("SELECT organization_id FROM organization_slugs WHERE slug = %s", (slug,))
    return rows[0][0] if rows else None


async def insert_slug_if_free(connection: Connection, organization_id: UUID, slug: str, now: datetime) -> None:
    await connection.change(
        "INSERT INTO organization_slugs (slug, organization_id, is_current, created_at) VALUES (%s, %s, true, %s)"
        " ON CONFLICT DO NOTHING",
        (slug, organization_id, now),
    )


async def retire_slug(connection: Connection, organization_id: UUID) -> None:
    await connection.change(
        "UPDATE organization_slugs SET is_current = false WHERE organization_id = %s AND is_current",
        (organization_id,),
    )


async def make_slug_current(connection: Connection, organization_id: UUID, slug: str, now: datetime) -> bool:
    """Use a slug, also one that the organization had before; return False if another organization has it."""
    changed = await connection.change(
        "INSERT INTO organization_slugs (slug, organization_id, is_current, created_at) VALUES (%s, %s, true, %s)"
        " ON CONFLICT (slug) DO UPDATE SET is_current = true"
        " WHERE organization_slugs.organization_id = excluded.organization_id",
        (slug, organization_id, now),
    )
    return changed == 1


async def revoke_keys(tx: Tx, organization_id: UUID) -> None:
    await tx.execute(
        "UPDATE api_keys SET revoked_at = %s WHERE organization_id = %s AND revoked_at IS NULL",
        (tx.now, organization_id),
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
    return await tx.fetch_column(query, (organization_id, rows_max))


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
