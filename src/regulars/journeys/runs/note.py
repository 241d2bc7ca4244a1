"""Counting what happens at the steps of journeys."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from regulars.journeys.runs.model import NewRun, RunRow
from regulars.journeys.trace import keep as trace
from regulars.kit.db import Tx

REFUSED: Final = "refused"


async def count(tx: Tx, organization_id: UUID, events: Sequence[tuple[RunRow, str, str]]) -> None:
    """Run, step and event of each."""
    await add_up(
        tx, organization_id, Counter((run.journey_id, run.version, step, event) for run, step, event in events)
    )


async def add_up(tx: Tx, organization_id: UUID, times: Mapping[tuple[UUID, int, str, str], int]) -> None:
    """By journey, version, step and event."""
    if times:
        await trace.add_totals(tx, organization_id, [(*key, number) for key, number in times.items()])


async def count_refused(tx: Tx, organization_id: UUID, journey_id: UUID, versions: Sequence[int]) -> None:
    """Facts that brought no customer in, because the entry conditions did not hold; by the version that was live."""
    await add_up(tx, organization_id, Counter((journey_id, version, "", REFUSED) for version in versions))


async def count_entries(tx: Tx, organization_id: UUID, runs: Sequence[NewRun]) -> None:
    times = Counter((run.journey_id, run.version) for run in runs)
    await trace.add_totals(
        tx, organization_id, [(journey, version, "", "entered", number) for (journey, version), number in times.items()]
    )
