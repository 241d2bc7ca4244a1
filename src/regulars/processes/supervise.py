"""Start child processes, restart those that end, and stop all of them with their parent."""

import asyncio
import dataclasses
import sys
from collections.abc import Sequence
from typing import Final

from regulars.kit import log
from regulars.kit.process import Stop

RESTART_WAITS_S: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
# A child that ran this long was healthy, so the waits before a restart begin with the shortest again.
HEALTHY_AFTER_S: Final = 60.0
# A hurried child gets a signal this often until it ends.
REPEAT_SIGNAL_S: Final = 1.0
# A child is killed this long after its own grace period has ended.
KILL_MARGIN_S: Final = 1.0

_log = log.get(__name__)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Child:
    """A `regulars` command to run. It inherits the file descriptors, one of which closes when the parent exits."""

    name: str
    arguments: Sequence[str]
    descriptors: Sequence[int]


async def supervise(child: Child, *, stop: Stop, grace_s: float) -> None:
    """Keep one child running until a stop is requested; then send it a stop signal, and others when the stop is
    hurried, and kill it after the grace period."""
    failures = 0
    stopped = asyncio.create_task(stop.requested.wait())
    loop = asyncio.get_running_loop()
    try:
        while not stop.requested.is_set():
            started = loop.time()
            exit_code = await _run(child, stopped, stop=stop, grace_s=grace_s)
            if stop.requested.is_set():
                return
            failures = 0 if loop.time() - started > HEALTHY_AFTER_S else failures
            wait = RESTART_WAITS_S[min(failures, len(RESTART_WAITS_S) - 1)]
            failures += 1
            _log.error("child.ended", child=child.name, exit_code=exit_code, restart_in_s=wait)
            await asyncio.wait({stopped}, timeout=wait)
    finally:
        stopped.cancel()


async def _run(child: Child, stopped: "asyncio.Task[bool]", *, stop: Stop, grace_s: float) -> int | None:
    """Run the child until it ends or `stopped` is done; returns None if it could not even be started, for lack of
    memory or processes."""
    try:
        process = await _start(child)
    except OSError as error:
        _log.error("child.not_started", child=child.name, reason=str(error))
        return None
    ended = asyncio.create_task(process.wait())
    await asyncio.wait({ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
    if not ended.done():
        await _terminate(process, ended, stop=stop, grace_s=grace_s)
    return process.returncode


async def _start(child: Child) -> asyncio.subprocess.Process:
    # In a new session, so that Ctrl+C in the terminal reaches only the parent, which then stops its children in order.
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "regulars.cli",
        *child.arguments,
        pass_fds=tuple(child.descriptors),
        stdin=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )


async def _terminate(
    process: asyncio.subprocess.Process, ended: "asyncio.Task[int]", *, stop: Stop, grace_s: float
) -> None:
    process.terminate()
    hurried = asyncio.create_task(stop.hurried.wait())
    try:
        async with asyncio.timeout(grace_s + KILL_MARGIN_S):
            await asyncio.wait({ended, hurried}, return_when=asyncio.FIRST_COMPLETED)
            while process.returncode is None:
                # Two signals at once count as one, so a single second one might be lost.
                process.terminate()
                await asyncio.wait({ended}, timeout=REPEAT_SIGNAL_S)
    except TimeoutError:
        process.kill()
        await ended
    finally:
        hurried.cancel()
