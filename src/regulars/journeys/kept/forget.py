"""Runs that go: a person's, with the person; everybody's, 13 months after they ended. The totals stay."""

from collections import Counter
from collections.abc import Collection
from datetime import timedelta
from typing import Final
from uuid import UUID

from regulars.journeys.kept import queries
from regulars.journeys.runs.note import add_up
from regulars.kit.db import Database, Tx
from regulars.segments.erased_values import find_erased, quote, without_values
from regulars.work.personal import ErasedPeople

KEPT_FOR: Final = timedelta(days=396)
_BITE_ROWS: Final = 1_000


async def erase_runs(tx: Tx, organization_id: UUID, profile_ids: Collection[UUID]) -> None:
    gone = await queries.delete_runs_of(tx, organization_id, profile_ids)
    # Those who were on their way have left, or a step would show them as waiting for ever.
    left = Counter((run.journey_id, run.version, run.step or "", "ended") for run in gone if run.state != "ended")
    await add_up(tx, organization_id, left)


async def erase_values(tx: Tx, organization_id: UUID, people: ErasedPeople) -> None:
    """Take the people out of conditions that name them, in versions and drafts."""
    quoted = quote(people)
    versions = await queries.list_versions_with(tx, organization_id, quoted)
    drafts = await queries.list_drafts_with(tx, organization_id, quoted)
    definitions = [*(definition for _, _, definition in versions), *(definition for _, definition in drafts)]
    erased = await find_erased(tx, organization_id, people, definitions)
    if not erased:
        return
    for journey_id, version, definition in versions:
        changed = without_values(definition, erased)
        await queries.rewrite_version(tx, organization_id, journey_id, version=version, definition=changed)
    for journey_id, definition in drafts:
        changed = without_values(definition, erased)
        await queries.rewrite_draft(tx, organization_id, journey_id, definition=changed)
    await queries.delete_backtests_with(tx, organization_id, quoted)


async def sweep_runs(database: Database, organization_id: UUID) -> None:
    gone = _BITE_ROWS
    while gone == _BITE_ROWS:
        async with database.transaction() as tx:
            gone = await queries.delete_old_runs(tx, organization_id, before=tx.now - KEPT_FOR, limit=_BITE_ROWS)
