"""Waiting until nothing is on its way to whoever has withdrawn.

A withdrawal commits first. From then on no claim can pass the gate; but a text that was claimed before may still be on
its way to the provider. The answer to the withdrawal waits for that, so that after it nothing is sent any more.
"""

import asyncio
from typing import Final
from uuid import UUID

from regulars.kit import log
from regulars.kit.clock import monotonic
from regulars.kit.db import CONNECTION_ERRORS, Database
from regulars.messaging import queries

QUIET_WITHIN_S: Final = 10.0
_LOOK_EVERY_S: Final = 0.05

_log = log.get(__name__)


async def wait_until_quiet(database: Database, organization_id: UUID, *, within_s: float = QUIET_WITHIN_S) -> bool:
    """Whether it is quiet: no text of the organization is being sent to a number without consent.

    It asks for all such numbers, not for those of one request: whoever withdraws at the same time waits for the same
    handful of texts, and the answer needs to know nothing about the request. A sender ends within nine seconds.
    """
    until = monotonic() + within_s
    while True:
        try:
            async with database.reading() as tx:
                if not await queries.is_any_on_its_way_to_the_withdrawn(tx, organization_id):
                    return True
        except CONNECTION_ERRORS as error:
            _log.warning("texts.quiet_unknown", organization_id=str(organization_id), error=type(error).__name__)
        if monotonic() >= until:
            _log.warning("texts.not_quiet", organization_id=str(organization_id))
            return False
        await asyncio.sleep(_LOOK_EVERY_S)
