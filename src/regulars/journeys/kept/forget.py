"""Runs that go: a person's, with the person; everybody's, 13 months after they ended. The totals stay."""

from collections import Counter
from collections.abc import Collection
from datetime import timedelta
from typing import Final
from uuid import UUID

from regulars.journeys.kept import queries
from regulars.journeys.runs.note import add_up
from regulars.kit.db import Database, Tx

KEPT_FOR: Final = timedelta(days=396)
_BITE_ROWS: Final = 1_000


async def erase_runs(tx: Tx, organization_id: UUID, profile_ids: Collection[UUID]) -> None:
    gone = await queries.delete_runs_of(tx, organization_id, profile_ids)
    # Those who were on their way have left, or a step would show them as waiting for ever.
    left = Counter((run.journey_id, run.version, run.step or "", "ended") for run in gone if run.state != "ended")
    await add_up(tx, organization_id, left)


async def sweep_runs(database: Database, organization_id: UUID) -> None:
    gone = _BITE_ROWS
    while gone == _BITE_ROWS:
        async with database.transaction() as tx:
            gone = await queries.delete_old_runs(tx, organization_id, before=tx.now - KEPT_FOR, limit=_BITE_ROWS)
