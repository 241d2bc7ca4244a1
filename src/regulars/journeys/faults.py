"""Live journeys whose conditions cannot be judged: no customer enters them, or runs wait at a branch."""

from collections.abc import Sequence
from uuid import UUID

from regulars.journeys.check import find_unjudgeable
from regulars.journeys.model import JourneyRow
from regulars.journeys.runs.definitions import load_definitions
from regulars.journeys.sight.look import load_known
from regulars.kit.db import Tx


async def find_unjudgeable_journeys(
    tx: Tx, organization_id: UUID, rows: Sequence[JourneyRow]
) -> dict[UUID, dict[str, str]]:
    """Of those that are live: what cannot be judged now, and why, by place. With as few statements as for one."""
    live = {row.id: row.live_version for row in rows if row.live_version is not None}
    definitions = await load_definitions(tx, organization_id, set(live.items()))
    known = await load_known(tx, organization_id, set(definitions.values()))
    found = {journey_id: find_unjudgeable(definition, known) for (journey_id, _), definition in definitions.items()}
    return {journey_id: unjudgeable for journey_id, unjudgeable in found.items() if unjudgeable}
