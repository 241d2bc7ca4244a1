"""Texts and replies past their time go, an organization at a time and in bites."""

from datetime import timedelta
from typing import Final
from uuid import UUID

from regulars.kit.db import Database
from regulars.messaging.inbox.forget import forget_old_replies
from regulars.messaging.keep.texts import forget_old_texts
from regulars.messaging.providers.phone import forget_simulated

# 25 months.
KEPT_FOR: Final = timedelta(days=762)
_BITE_ROWS: Final = 1_000


async def sweep_texts(database: Database, organization_id: UUID) -> None:
    gone = _BITE_ROWS
    while gone == _BITE_ROWS:
        async with database.transaction() as tx:
            ids = await forget_old_texts(tx, organization_id, before=tx.now - KEPT_FOR, limit=_BITE_ROWS)
            await forget_simulated(tx, organization_id, ids)
        gone = len(ids)


async def sweep_replies(database: Database, organization_id: UUID) -> None:
    gone = _BITE_ROWS
    while gone == _BITE_ROWS:
        async with database.transaction() as tx:
            gone = await forget_old_replies(tx, organization_id, before=tx.now - KEPT_FOR, limit=_BITE_ROWS)
