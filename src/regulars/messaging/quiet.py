"""Waiting until nothing is on its way to whoever has withdrawn.

A withdrawal commits first. From then on no claim can pass the gate; but a text that was claimed before may still be on
its way to the provider. The answer to the withdrawal waits for that, so that after it nothing is sent any more.

It waits for the numbers of the withdrawal, and for no claim that has lapsed: a sender stops talking before its claim
ends, so what a dead one left behind is not on its way. It never waits for longer than the answer may take. A text is
dialled within a second of its claim, so whatever is on its way by then left before the answer.
"""

import asyncio
from collections.abc import Collection
from typing import Final
from uuid import UUID

from regulars.kit import log
from regulars.kit.clock import monotonic
from regulars.kit.db import CONNECTION_ERRORS, Database
from regulars.messaging import queries

# Of the nine seconds an answer may take, what is left for the answer itself.
ANSWER_S: Final = 0.5
QUIET_WITHIN_S: Final = 9.0 - ANSWER_S
_LOOK_EVERY_S: Final = 0.05

_log = log.get(__name__)


async def wait_until_quiet(
    database: Database,
    organization_id: UUID,
    number_hashes: Collection[bytes] | None = None,
    *,
    within_s: float = QUIET_WITHIN_S,
) -> bool:
    """Whether it is quiet: no text is being sent to one of the numbers while it has no consent. Without numbers, as
    for an answer that is replayed, it asks for all numbers of the organization.

    The withdrawal is committed and the answer says so: a server that stops meanwhile ends the wait, not the answer.
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
                if not await queries.is_any_on_its_way_to_the_withdrawn(tx, organization_id, number_hashes):
                    return True
        except CONNECTION_ERRORS as error:
            _log.warning("texts.quiet_unknown", organization_id=str(organization_id), error=type(error).__name__)
        if monotonic() >= until:
            _log.warning("texts.not_quiet", organization_id=str(organization_id))
            return False
        await asyncio.sleep(_LOOK_EVERY_S)
