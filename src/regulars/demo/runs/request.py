"""Ask for the demo, and see how far it is."""

from typing import Final
from uuid import UUID

from regulars.demo.runs import queries
from regulars.demo.runs.queries import Run
from regulars.kit.db import Tx

QUEUE: Final = "demo.run"
TICKETS: Final = 20_000


async def ask_for_demo(tx: Tx, organization_id: UUID, *, tickets: int = TICKETS) -> bool:
    """Whether it was not asked for before."""
    is_new = await queries.insert_run_if_new(tx, organization_id, tickets=tickets)
    if is_new:
        tx.touched.add((QUEUE, organization_id))
    return is_new


async def find_run(tx: Tx, organization_id: UUID) -> Run | None:
    return await queries.find_run(tx, organization_id)
