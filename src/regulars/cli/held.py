"""Texts stand still after a restore: what the backup does not know to be sent must not be sent again."""

import asyncio

from regulars.kit.db import Database
from regulars.messaging.hold import hold_everybody


def hold_texts(url: str) -> int:
    """How many organizations were put on hold."""

    async def work() -> int:
        database = Database(url, pool_max=2)
        await database.open()
        try:
            async with database.transaction() as tx:
                # A backup of an older release may not know texts at all.
                if await tx.fetch("SELECT 1 WHERE to_regclass('sms_settings') IS NULL"):
                    return 0
                return await hold_everybody(tx, reason="A backup was restored.")
        finally:
            await database.close()

    return asyncio.run(work())
