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
    """Watch the database until `stop` is set. The server counts as a user of it, so it ends earlier only by a crash."""
    failures = 0
    stopped = asyncio.create_task(stop.wait())
    wait = CHECK_INTERVAL_S
    known = await asyncio.to_thread(embedded.postmaster, data_dir)
    try:
        while not stop.is_set():
            await asyncio.wait({stopped}, timeout=wait)
            if stop.is_set():
                return
            running = await _revived(data_dir)
            if running is not None:
                if running != known:
                    _log.warning("database.restarted")
                known, failures, wait = running, 0, CHECK_INTERVAL_S
            else:
                wait = RETRY_WAITS_S[min(failures, len(RETRY_WAITS_S) - 1)]
                failures += 1
    finally:
        stopped.cancel()


async def _revived(data_dir: Path) -> int | None:
    """The number of its postmaster, which a child of ours may have started before we noticed; None if there is none."""
    try:
        running = await asyncio.to_thread(embedded.postmaster, data_dir)
        if running is not None:
            return running
        _log.error("database.gone")
        await asyncio.to_thread(embedded.ensure_running, data_dir)
        return await asyncio.to_thread(embedded.postmaster, data_dir)
    except Exception as error:  # noqa: BLE001  # whatever it is, the watch goes on
        _log.error("database.not_restarted", reason=" ".join(str(error).split()))
        return None
