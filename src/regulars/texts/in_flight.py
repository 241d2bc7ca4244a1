"""Wait until no text is in flight to a phone number whose consent was withdrawn.

After a withdrawal has committed, no worker starts to send a text to the number. But a text that a worker claimed before
may still be on its way to the provider. The response to the withdrawal waits for this text, so that nothing is sent
after the response.

A text whose claim has expired is not waited for: a worker stops sending before its claim expires, so the text of a dead
worker is not in flight. The wait ends when the response must be sent. The worker connects to the provider within a
second of the claim, so a text that is still in flight at that time was sent before the response.
"""

import asyncio
from collections.abc import Collection
from typing import Final
from uuid import UUID

from regulars.kit import log
from regulars.kit.clock import monotonic
from regulars.kit.db import CONNECTION_ERRORS, Database
from regulars.texts import text_rows as texts

# A response may take nine seconds, of which this many are reserved for sending it.
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
    """Wait for texts to numbers without consent; False if a text is still in flight when the time is over. Without
    `number_hashes`, as for a stored response that is sent again, wait for all numbers of the organization.

    The withdrawal is committed, so if the server stops, only the wait is cancelled, and the response is still sent.
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
