"""Every member, page by page: what leaves as a file is whole, or breaks off where everybody sees it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final
from uuid import UUID

from regulars.kit.clock import monotonic
from regulars.segments.analysis.ask import DEADLINE_S, Analysis
from regulars.segments.analysis.model import AnalysisAway, Asked, Members, NotReady

# A process that ended is there again within seconds.
PATIENCE_S: Final = 30.0
ASK_AGAIN_S: Final = 0.2


async def follow(
    analysis: Analysis,
    organization_id: UUID,
    asked: Asked,
    page: Members,
    *,
    limit: int,
    deadline_s: float = DEADLINE_S,
    patience_s: float = PATIENCE_S,
) -> AsyncIterator[Members]:
    """This page and all that follow it; one that cannot be had now is asked for again for some time."""
    yield page
    until = monotonic() + patience_s
    while page.next is not None:
        try:
            page = await analysis.members(organization_id, asked, after=page.next, limit=limit, deadline_s=deadline_s)
        except (NotReady, AnalysisAway):
            if monotonic() > until:
                raise
            await asyncio.sleep(ASK_AGAIN_S)
        else:
            yield page
            until = monotonic() + patience_s
