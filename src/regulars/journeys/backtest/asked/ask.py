"""Asking for a backtest, and reading what it said."""

from uuid import UUID

from regulars.journeys.backtest.asked import queries
from regulars.journeys.backtest.asked.model import AskedRow
from regulars.journeys.definition import Definition, write_definition
from regulars.kit.db import Tx

QUEUE = "journey_backtests"


async def ask_for_backtest(
    tx: Tx,
    organization_id: UUID,
    journey_id: UUID,
    definition: Definition,
    *,
    version: int | None,
    revision: int | None,
    days: int,
    by: str,
) -> None:
    """Of a version, or of the draft at a revision; the worker plays it."""
    text = write_definition(definition).decode()
    asked = AskedRow(journey_id, version, revision, text, days, tx.now, by, 0, None, None, None, 0)
    await queries.upsert_asked(tx, organization_id, asked)
    tx.touched.add((QUEUE, organization_id))


async def find_backtest(tx: Tx, organization_id: UUID, journey_id: UUID) -> AskedRow | None:
    return await queries.find_asked(tx, organization_id, journey_id)
