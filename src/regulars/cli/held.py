"""Texts stand still after a restore: what the backup does not know to be sent must not be sent again."""

from regulars.cli import database
from regulars.kit.db import Tx
from regulars.messaging.hold import hold_everybody


def hold_texts(url: str) -> int:
    """How many organizations were put on hold."""

    async def work(tx: Tx) -> int:
        # A backup of an older release may not know texts at all.
        if await tx.fetch("SELECT 1 WHERE to_regclass('sms_settings') IS NULL"):
            return 0
        return await hold_everybody(tx, reason="A backup was restored.")

    return database.transact(url, work)
