"""The default SMS provider: it sends nothing, and stores texts for the page that shows simulated phones."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

from regulars.kit.db import CONNECTION_ERRORS, Database
from regulars.kit.ids import new_uuid
from regulars.messaging.providers.base import Accepted, NotReached, Outcome, OutgoingText, Refused, Unclear
from regulars.messaging.queries import texts
from regulars.messaging.settings.model import Simulation
from regulars.messaging.settings.store import Texting

# The id of a text modulo this number decides its outcome.
_BUCKETS = 10_000


class Simulator:
    """Accepts, refuses, delays or loses texts as configured; the outcome depends on the id of the text."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[tuple[OutgoingText, asyncio.Future[Outcome]]] = []
        self._writer: asyncio.Task[None] | None = None

    async def send(self, text: OutgoingText, texting: Texting) -> Outcome:
        simulation = texting.settings.simulation
        if simulation.delay_ms:
            await asyncio.sleep(simulation.delay_ms / 1000)
        failure = _choose_failure(simulation, text.text_id)
        if failure is not None:
            return failure
        # Texts that arrive during a commit are written together, in the next transaction.
        written: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append((text, written))
        if self._writer is None:
            self._writer = asyncio.create_task(self._write_all())
        return await written

    async def _write_all(self) -> None:
        try:
            while batch := self._waiting:
                self._waiting = []
                by_organization: dict[UUID, list[tuple[OutgoingText, asyncio.Future[Outcome]]]] = {}
                for text, written in batch:
                    by_organization.setdefault(text.organization_id, []).append((text, written))
                for organization_id, texts_and_futures in by_organization.items():
                    await self._write(organization_id, texts_and_futures)
        finally:
            self._writer = None

    async def _write(
        self, organization_id: UUID, batch: Sequence[tuple[OutgoingText, "asyncio.Future[Outcome]"]]
    ) -> None:
        error: Exception | None = None
        try:
            async with self._database.transaction() as tx:
                sent = [
                    texts.SimulatedRow(new_uuid(), text.text_id, text.phone_number, text.body, tx.now)
                    for text, _ in batch
                ]
                await texts.insert_simulated(tx, organization_id, sent)
        except Exception as caught:  # noqa: BLE001  # the waiting caller raises it, and the writer continues
            error = caught
        for text, written in batch:
            if written.done():
                # The caller was cancelled or timed out.
                continue
            if error is None:
                written.set_result(Accepted(f"sim_{text.text_id.hex}"))
            elif isinstance(error, CONNECTION_ERRORS):
                written.set_result(NotReached("The database of the simulator could not be reached."))
            else:
                written.set_exception(error)


def _choose_failure(simulation: Simulation, text_id: UUID) -> Outcome | None:
    position = text_id.int % _BUCKETS / _BUCKETS
    if position < simulation.fails:
        return Refused("SIMULATED", "The simulator was told to fail.")
    return Unclear("The simulator was told to lose it.") if position < simulation.fails + simulation.loses else None
