"""Restart the embedded PostgreSQL when it dies while a server runs, for example by the OOM killer."""

import asyncio
import contextlib
from pathlib import Path
from typing import Final

from regulars.kit import log
from regulars.postgres import embedded

CHECK_INTERVAL_S: Final = 1.0
RETRY_WAITS_S: Final = (1.0, 2.0, 5.0, 10.0, 30.0)

_log = log.get(__name__)


async def keep_alive(data_dir: Path, *, stop: asyncio.Event) -> None:
    """Restart the database whenever it has died, until `stop` is set. While this process is registered as its user, the
    database ends only by a crash."""
    failures = 0
    wait_s = CHECK_INTERVAL_S
    last_pid = await asyncio.to_thread(embedded.postmaster, data_dir)
    while not stop.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), wait_s)
            return
        pid = await _restart_if_dead(data_dir)
        if pid is not None:
            if pid != last_pid:
                _log.warning("database.restarted")
            last_pid, failures, wait_s = pid, 0, CHECK_INTERVAL_S
        else:
            wait_s = RETRY_WAITS_S[min(failures, len(RETRY_WAITS_S) - 1)]
            failures += 1


async def _restart_if_dead(data_dir: Path) -> int | None:
    """Start the database again if it is dead; return the process id of its postmaster, which a child process may have
    started already, or None if the start failed."""
    try:
        pid = await asyncio.to_thread(embedded.postmaster, data_dir)
        if pid is not None:
            return pid
        _log.error("database.gone")
        await asyncio.to_thread(embedded.ensure_running, data_dir)
        return await asyncio.to_thread(embedded.postmaster, data_dir)
    except Exception as error:  # noqa: BLE001  # the watch continues after any error
        _log.error("database.not_restarted", reason=" ".join(str(error).split()))
        return None
