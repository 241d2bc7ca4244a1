"""The default provider: it reaches nobody, and keeps what it "sent" for the page that looks like a phone."""

import asyncio
from uuid import UUID

from regulars.kit.db import CONNECTION_ERRORS, Database
from regulars.kit.ids import new_uuid
from regulars.messaging.providers import queries
from regulars.messaging.providers.base import Accepted, NotReached, Outcome, Outgoing, Refused, Unclear
from regulars.messaging.settings.model import Simulation
from regulars.messaging.settings.store import Texting

_SHARES = 10_000


class Simulator:
    """Sends, fails, delays or loses as it was told, by the id of the text: the same text always meets the same fate."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def send(self, text: Outgoing, texting: Texting) -> Outcome:
        told = texting.settings.simulation
        if told.delay_ms:
            await asyncio.sleep(told.delay_ms / 1000)
        fate = _fate(told, text.text_id)
        if fate is not None:
            return fate
        try:
            async with self._database.transaction() as tx:
                sent = queries.SimulatedRow(new_uuid(), text.text_id, text.phone_number, text.body, tx.now)
                await queries.insert_simulated(tx, text.organization_id, sent)
        except CONNECTION_ERRORS:
            return NotReached("The database of the simulator could not be reached.")
        return Accepted(f"sim_{text.text_id.hex}")


def _fate(told: Simulation, text_id: UUID) -> Outcome | None:
    drawn = text_id.int % _SHARES / _SHARES
    if drawn < told.fails:
        return Refused("SIMULATED", "The simulator was told to fail.")
    return Unclear("The simulator was told to lose it.") if drawn < told.fails + told.loses else None
