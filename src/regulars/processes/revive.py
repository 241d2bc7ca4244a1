"""Restarts the embedded PostgreSQL when it dies while a server runs, for example by the OOM killer."""

import asyncio
from pathlib import Path
from typing import Final

from regulars.kit import log
from regulars.postgres import embedded

CHECK_INTERVAL_S: Final = 1.0
RETRY_WAITS_S: Final = (1.0, 2.0, 5.0, 10.0, 30.0)

_log = log.get(__name__)


async def keep_alive(data_dir: Path, *, stop: asyncio.Event) -> None:
    """Watch the database until `stop` is set. The server is registered as a user of the database, so before that it
    ends only by a crash."""
    failures = 0
    stopped = asyncio.create_task(stop.wait())
    wait = CHECK_INTERVAL_S
    known_pid = await asyncio.to_thread(embedded.postmaster, data_dir)
    try:
        while not stop.is_set():
            await asyncio.wait({stopped}, timeout=wait)
            if stop.is_set():
                return
            pid = await _restart_if_dead(data_dir)
            if pid is not None:
                if pid != known_pid:
                    _log.warning("database.restarted")
                known_pid, failures, wait = pid, 0, CHECK_INTERVAL_S
            else:
                wait = RETRY_WAITS_S[min(failures, len(RETRY_WAITS_S) - 1)]
                failures += 1
    finally:
        stopped.cancel()


async def _restart_if_dead(data_dir: Path) -> int | None:
    """Start the database again if it is dead; returns the process id of its postmaster, which one of our child
    processes may have started already, or None if the start failed."""
    try:
        running = await asyncio.to_thread(embedded.postmaster, data_dir)
        if running is not None:
            return running
        _log.error("database.gone")
        await asyncio.to_thread(embedded.ensure_running, data_dir)
        return await asyncio.to_thread(embedded.postmaster, data_dir)
    except Exception as error:  # noqa: BLE001  # the watch continues after any error
        _log.error("database.not_restarted", reason=" ".join(str(error).split()))
        return None
