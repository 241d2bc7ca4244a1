"""Wait until no text is in flight to a number that has withdrawn.

A withdrawal commits first. From then on no text to the number passes the gate; but a text that was claimed before may
still be on its way to the provider. The response to the withdrawal waits for that, so that nothing is sent after it.

It waits for the numbers of the withdrawal only, and not for a claim that has lapsed: a sender stops before its claim
ends, so the text of a dead sender is not in flight. It never waits longer than the response may take. The worker
connects within a second of the claim, so a text that is still in flight by then left before the response.
"""

import asyncio
from collections.abc import Collection
from typing import Final
from uuid import UUID

from regulars.kit import log
from regulars.kit.clock import monotonic
from regulars.kit.db import CONNECTION_ERRORS, Database
from regulars.messaging.queries import texts

# Of the nine seconds that a response may take, this part is left for the response itself.
RESPONSE_S: Final = 0.5
WAIT_S_MAX: Final = 9.0 - RESPONSE_S
_CHECK_EVERY_S: Final = 0.05

_log = log.get(__name__)


async def wait_for_texts_in_flight(
    database: Database,
    organization_id: UUID,
    number_hashes: Collection[bytes] | None = None,
    *,
    within_s: float = WAIT_S_MAX,
) -> bool:
    """False where a text is still being sent to one of the numbers without consent when the time is over. Without
    numbers, as for a replayed response, it waits for all numbers of the organization.

    The withdrawal is committed and the response says so: a server that stops ends the wait, not the response.
    """
    try:
        return await _wait(database, organization_id, number_hashes, until=monotonic() + within_s)
    except asyncio.CancelledError:
        _log.warning("texts.quiet_unknown", organization_id=str(organization_id), error="Stopping")
        return False


async def _wait(
    database: Database, organization_id: UUID, number_hashes: Collection[bytes] | None, *, until: float
) -> bool:
    while True:
        try:
            async with database.reading() as tx:
                if not await texts.is_any_in_flight_to_withdrawn(tx, organization_id, number_hashes):
                    return True
        except CONNECTION_ERRORS as error:
            _log.warning("texts.quiet_unknown", organization_id=str(organization_id), error=type(error).__name__)
        if monotonic() >= until:
            _log.warning("texts.not_quiet", organization_id=str(organization_id))
            return False
        await asyncio.sleep(_CHECK_EVERY_S)
