"""A worker that is told to stop leaves nothing behind, whatever it was doing."""

import asyncio

import pytest

from regulars.kit.db import Database
from regulars.work.loop import run_worker

GRACE_S = 5.0


# The driver leaves a dial that was cancelled to the collector, which says so.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("after_s", [0, 0.01, 0.03, 0.1, 0.3])
def test_a_stop_while_the_worker_is_starting_leaves_no_task_behind(database_url, after_s):
    async def run() -> list[str]:
        database, stop = Database(database_url), asyncio.Event()
        await database.open()
        asyncio.get_running_loop().call_later(after_s, stop.set)
        await run_worker(database, [], stop=stop, grace_s=GRACE_S)
        await database.close()
        return [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]

    assert asyncio.run(run()) == []
