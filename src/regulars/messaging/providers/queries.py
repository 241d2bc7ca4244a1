"""The SQL of the simulator's phones."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from regulars.kit.arrays import Ids, Texts, Timestamps
from regulars.kit.columns import Columns
from regulars.kit.db import Tx


class SimulatedRow(NamedTuple):
    id: UUID
    text_id: UUID
    phone_number: str
    body: str
    sent_at: datetime


_SIMULATED: Final = Columns(id=Ids, text_id=Ids, phone_number=Texts, body=Texts, sent_at=Timestamps)
_INSERT_SIMULATED: Final = _SIMULATED.write(
    "INSERT INTO simulated_texts (organization_id, {columns}) SELECT %(organization_id)s, it.* FROM {rows}"
)


async def insert_simulated(tx: Tx, organization_id: UUID, sent: Sequence[SimulatedRow]) -> None:
    await tx.execute(_INSERT_SIMULATED, {"organization_id": organization_id, **_SIMULATED.of(sent)})


async def delete_simulated(tx: Tx, organization_id: UUID, text_ids: list[UUID]) -> None:
    await tx.execute(
        "DELETE FROM simulated_texts WHERE organization_id = %s AND text_id = ANY (%s::uuid[])",
        (organization_id, text_ids),
    )
