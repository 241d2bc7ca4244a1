"""The SQL of the phone numbers of team members, which get test texts once they are verified."""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from regulars.kit.arrays import Blobs
from regulars.kit.db import Tx


class TeamNumberRow(NamedTuple):
    phone_number: str
    number_hash: bytes
    provider: str
    # The verification code is derived from this id, and valid until `code_until`.
    code_id: UUID
    code_until: datetime
    # How often a code was entered.
    attempts: int
    verified_at: datetime | None


async def upsert_team_number(tx: Tx, organization_id: UUID, user_id: UUID, row: TeamNumberRow) -> None:
    await tx.execute(
        """
        INSERT INTO test_numbers (
            organization_id, user_id, phone_number, number_hash, provider, code_id, code_until, attempts, verified_at
        )
        VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)
        ON CONFLICT (organization_id, user_id) DO UPDATE
        SET phone_number = EXCLUDED.phone_number, number_hash = EXCLUDED.number_hash, provider = EXCLUDED.provider,
            code_id = EXCLUDED.code_id, code_until = EXCLUDED.code_until, attempts = EXCLUDED.attempts,
            verified_at = EXCLUDED.verified_at
        """,
        (organization_id, user_id, *row),
    )


async def find_team_number(tx: Tx, organization_id: UUID, user_id: UUID) -> TeamNumberRow | None:
    return await tx.fetch_first(
        TeamNumberRow,
        "SELECT {columns} FROM test_numbers WHERE organization_id = %s AND user_id = %s",
        (organization_id, user_id),
    )


async def delete_team_numbers(tx: Tx, organization_id: UUID, number_hashes: Collection[bytes]) -> None:
    await tx.execute(
        "DELETE FROM test_numbers WHERE organization_id = %s AND number_hash = ANY (%s::bytea[])",
        (organization_id, Blobs(number_hashes)),
    )


async def count_tests(tx: Tx, organization_id: UUID, *, since: datetime) -> int:
    """Count the texts to team members: test texts and codes."""
    rows = await tx.fetch(
        "SELECT count(*) FROM texts WHERE organization_id = %s AND origin_kind = 'test' AND created_at > %s",
        (organization_id, since),
    )
    return int(rows[0][0])
