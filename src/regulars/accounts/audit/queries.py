"""The statements on `audit_log` and `audit_heads`: rows are added and read, and addresses are deleted after a time."""

from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from psycopg.sql import SQL

from regulars.accounts.model import Act, ActFilter
from regulars.kit.db import Tx
from regulars.kit.keyset import Keyset, PageRequest, PageRows, narrow


async def insert_act(tx: Tx, organization_id: UUID, **act: Any) -> None:
    await tx.execute(
        "INSERT INTO audit_log (organization_id, id, at, actor_id, actor, address, act, subject, before, after,"
        " sequence, address_salt, actor_salt, subject_salt, commitments, hash)"
        " VALUES (%(organization_id)s, %(identifier)s, %(now)s, %(actor_id)s, %(actor)s, %(address)s, %(act)s,"
        " %(subject)s, %(before)s, %(after)s, %(sequence)s, %(address_salt)s, %(actor_salt)s, %(subject_salt)s,"
        " %(commitments)s, %(hash)s)",
        {"organization_id": organization_id, "now": tx.now, **act},
    )


async def insert_head_if_new(tx: Tx, organization_id: UUID, *, genesis: bytes) -> None:
    await tx.execute(
        "INSERT INTO audit_heads (organization_id, sequence, hash) VALUES (%s, 0, %s)"
        " ON CONFLICT (organization_id) DO NOTHING",
        (organization_id, genesis),
    )


async def lock_head(tx: Tx, organization_id: UUID) -> tuple[int, bytes]:
    rows = await tx.fetch(
        "SELECT sequence, hash FROM audit_heads WHERE organization_id = %s FOR UPDATE", (organization_id,)
    )
    return rows[0][0], bytes(rows[0][1])


async def move_head(tx: Tx, organization_id: UUID, *, sequence: int, hash_: bytes) -> None:
    await tx.execute(
        "UPDATE audit_heads SET sequence = %s, hash = %s WHERE organization_id = %s", (sequence, hash_, organization_id)
    )


async def find_head(tx: Tx, organization_id: UUID) -> tuple[int, bytes] | None:
    rows = await tx.fetch("SELECT sequence, hash FROM audit_heads WHERE organization_id = %s", (organization_id,))
    return (rows[0][0], bytes(rows[0][1])) if rows else None


class ChainedRow(NamedTuple):
    """A row with all that its hash is computed from; `before` and `after` as the texts that are stored."""

    sequence: int
    id: UUID
    at: datetime
    act: str
    actor_id: UUID | None
    actor: str
    address: str | None
    subject: str
    before: str | None
    after: str | None
    address_salt: bytes | None
    actor_salt: bytes | None
    subject_salt: bytes | None
    commitments: bytes
    hash: bytes


async def list_chained_rows(tx: Tx, organization_id: UUID, *, after: int, until: int, limit: int) -> list[ChainedRow]:
    rows = await tx.fetch(
        "SELECT sequence, id, at, act, actor_id, actor, address, subject, before::text, after::text,"
        " address_salt, actor_salt, subject_salt, commitments, hash FROM audit_log"
        " WHERE organization_id = %s AND sequence > %s AND sequence <= %s ORDER BY sequence LIMIT %s",
        (organization_id, after, until, limit),
    )
    return [ChainedRow(*row) for row in rows]


async def count_rows_outside(tx: Tx, organization_id: UUID) -> int:
    rows = await tx.fetch(
        "SELECT count(*) FROM audit_log WHERE organization_id = %s AND sequence IS NULL", (organization_id,)
    )
    return int(rows[0][0])


async def delete_addresses_before(tx: Tx, organization_id: UUID, *, until: datetime, at_most: int) -> int:
    return await tx.execute(
        "UPDATE audit_log SET address = NULL, address_salt = NULL WHERE organization_id = %s AND id IN"
        " (SELECT id FROM audit_log WHERE organization_id = %s AND address_since <= %s LIMIT %s"
        " FOR UPDATE SKIP LOCKED)",
        (organization_id, organization_id, until, at_most),
    )


_NEWEST: Final = Keyset({"id": UUID}, is_descending=True)
_FILTERS: Final = {
    "act": "act = %(act)s",
    "actor": "actor = %(actor)s",
    "subject": "subject = %(subject)s",
    "since": "at >= %(since)s",
    "until": "at < %(until)s",
}


async def list_acts(tx: Tx, organization_id: UUID, page: PageRequest, only: ActFilter) -> PageRows[Act]:
    return await _NEWEST.fetch(
        tx,
        SQL(
            """
            SELECT id, at, actor, address, act, subject, before, after FROM audit_log
            WHERE organization_id = %(organization_id)s {narrowed} {beyond}
            ORDER BY {ordered}
            LIMIT %(limit)s
            """
        ),
        page,
        {"organization_id": organization_id, **only._asdict()},
        make=Act,
        filters=_FILTERS,
    )


async def count_acts(tx: Tx, organization_id: UUID, only: ActFilter, *, cap: int) -> int:
    values = {"organization_id": organization_id, "cap": cap, **only._asdict()}
    statement = SQL(
        "SELECT count(*) FROM (SELECT 1 FROM audit_log WHERE organization_id = %(organization_id)s {} LIMIT %(cap)s)"
        " AS found"
    )
    rows = await tx.fetch(statement.format(narrow(values, _FILTERS)), values)
    return int(rows[0][0])


async def list_kinds(tx: Tx, organization_id: UUID) -> list[str]:
    rows = await tx.fetch(
        "SELECT DISTINCT act FROM (SELECT act FROM audit_log WHERE organization_id = %s ORDER BY id DESC LIMIT 10000)"
        " AS latest ORDER BY act LIMIT 200",
        (organization_id,),
    )
    return [str(row[0]) for row in rows]
