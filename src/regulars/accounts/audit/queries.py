"""The statements on `audit_log`: it is added to and read, and nothing else."""

from typing import Any
from uuid import UUID

from psycopg.rows import TupleRow

from regulars.kit.db import Tx


async def insert_act(tx: Tx, organization_id: UUID, **act: Any) -> None:
    await tx.execute(
        "INSERT INTO audit_log (organization_id, id, at, actor_id, actor, address, act, subject, before, after)"
        " VALUES (%(organization_id)s, %(identifier)s, %(now)s, %(actor_id)s, %(actor)s, %(address)s, %(act)s,"
        " %(subject)s, %(before)s, %(after)s)",
        {"organization_id": organization_id, "now": tx.now, **act},
    )


async def list_acts(
    tx: Tx, organization_id: UUID, *, at: UUID | None, act: str, actor: str, limit: int
) -> list[TupleRow]:
    return await tx.fetch(
        "SELECT id, at, actor, address, act, subject, before, after FROM audit_log"
        " WHERE organization_id = %s AND (%s::uuid IS NULL OR id < %s::uuid)"
        " AND (%s = '' OR act = %s) AND (%s = '' OR actor = %s) ORDER BY id DESC LIMIT %s",
        (organization_id, at, at, act, act, actor, actor, limit),
    )


async def list_acts_backward(
    tx: Tx, organization_id: UUID, *, at: UUID | None, act: str, actor: str, limit: int
) -> list[TupleRow]:
    return await tx.fetch(
        "SELECT id, at, actor, address, act, subject, before, after FROM audit_log"
        " WHERE organization_id = %s AND (%s::uuid IS NULL OR id > %s::uuid)"
        " AND (%s = '' OR act = %s) AND (%s = '' OR actor = %s) ORDER BY id LIMIT %s",
        (organization_id, at, at, act, act, actor, actor, limit),
    )


async def count_acts(tx: Tx, organization_id: UUID, *, act: str, actor: str, cap: int) -> int:
    rows = await tx.fetch(
        "SELECT count(*) FROM (SELECT 1 FROM audit_log WHERE organization_id = %s"
        " AND (%s = '' OR act = %s) AND (%s = '' OR actor = %s) LIMIT %s) AS found",
        (organization_id, act, act, actor, actor, cap),
    )
    return int(rows[0][0])


async def list_kinds(tx: Tx, organization_id: UUID) -> list[str]:
    rows = await tx.fetch(
        "SELECT DISTINCT act FROM (SELECT act FROM audit_log WHERE organization_id = %s ORDER BY id DESC LIMIT 10000)"
        " AS latest ORDER BY act LIMIT 200",
        (organization_id,),
    )
    return [str(row[0]) for row in rows]
