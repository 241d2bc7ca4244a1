"""A process that drains, and is killed in the middle: after numbers are given, before anything is packed."""

import asyncio
import os
import signal
import sys
from typing import Any
from uuid import UUID

from tests.columns.fed_shop import OUR_LISTENERS

from regulars.columns.feed import runs
from regulars.kit.db import Database
from regulars.work.outbox import OutboxQueue


def die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def main(url: str, organization_id: UUID) -> None:
    runs.pack_sales = runs.pack_customers = die
    database = Database(url, pool_max=2)
    await database.open()
    while await OutboxQueue(OUR_LISTENERS).run_pass(database, organization_id):
        pass


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], UUID(sys.argv[2])))
