"""The SQL of the simulator's phones."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from regulars.kit.arrays import Texts, Timestamps, Uuids
from regulars.kit.db import Tx


class SimulatedRow(NamedTuple):
    id: UUID
    text_id: UUID
    phone_number: str
    body: str
    sent_at: datetime


async def insert_simulated(tx: Tx, organization_id: UUID, sent: Sequence[SimulatedRow]) -> None:
    await tx.execute(
        """
        INSERT INTO simulated_texts (organization_id, id, text_id, phone_number, body, sent_at)
        SELECT %s, it.id, it.text_id, it.phone_number, it.body, it.sent_at
        FROM unnest(%s::uuid[], %s::uuid[], %s::text[], %s::text[], %s::timestamptz[])
             AS it (id, text_id, phone_number, body, sent_at)
        """,
        (
            organization_id,
            Uuids(it.id.bytes for it in sent),
            Uuids(it.text_id.bytes for it in sent),
            Texts(it.phone_number for it in sent),
            Texts(it.body for it in sent),
            Timestamps(it.sent_at for it in sent),
        ),
    )


async def delete_simulated(tx: Tx, organization_id: UUID, text_ids: list[UUID]) -> None:
    await tx.execute(
        "DELETE FROM simulated_texts WHERE organization_id = %s AND text_id = ANY (%s::uuid[])",
        (organization_id, text_ids),
    )
