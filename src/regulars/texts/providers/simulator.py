"""The default SMS provider: it sends nothing, and stores texts for the page that shows simulated phones."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

from regulars.kit.coalesce import Batcher
from regulars.kit.db import CONNECTION_ERRORS, Database, Tx
from regulars.kit.ids import new_uuid
from regulars.texts import text_rows as texts
from regulars.texts.providers.base import Accepted, NotReached, Outcome, OutgoingText, Refused, Unclear
from regulars.texts.settings.model import Simulation
from regulars.texts.settings.store import Texting

TEXTS_PER_WRITE_MAX = 1_000
# The id of a text modulo this number decides its outcome.
_BUCKETS = 10_000


class Simulator:
    """Accepts, refuses, delays or loses texts as configured; the outcome depends on the id of the text."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # Texts that arrive during a commit are written together, in the next transaction.
        self._writes: Batcher[UUID, OutgoingText, Outcome] = Batcher(
            self._write, items_max=TEXTS_PER_WRITE_MAX, flushers=1
        )

    async def send(self, text: OutgoingText, texting: Texting) -> Outcome:
        simulation = texting.settings.simulation
        if simulation.delay_ms:
            await asyncio.sleep(simulation.delay_ms / 1000)
        failure = _choose_failure(simulation, text.text_id)
        return failure or await self._writes.submit(text.organization_id, text)

    async def _write(self, organization_id: UUID, batch: Sequence[OutgoingText]) -> Sequence[Outcome]:
        try:
            async with self._database.transaction() as tx:
                return await accept_texts(tx, organization_id, batch)
        except CONNECTION_ERRORS:
            return [NotReached("The database of the simulator could not be reached.")] * len(batch)


async def accept_texts(tx: Tx, organization_id: UUID, batch: Sequence[OutgoingText]) -> list[Outcome]:
    """Store texts for the page that shows simulated phones."""
    sent = [(new_uuid(), text.text_id, text.phone_number, text.body) for text in batch]
    await texts.insert_simulated(tx, organization_id, sent)
    return [Accepted(f"sim_{text.text_id.hex}") for text in batch]


def _choose_failure(simulation: Simulation, text_id: UUID) -> Outcome | None:
    position = text_id.int % _BUCKETS / _BUCKETS
    if position < simulation.fails:
        return Refused("SIMULATED", "The simulator was told to fail.")
    return Unclear("The simulator was told to lose it.") if position < simulation.fails + simulation.loses else None
