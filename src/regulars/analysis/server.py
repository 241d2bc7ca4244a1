"""The analysis process: answers requests on a local socket, and compacts the columnar copy of customers and sales in
the background."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import uvloop

from regulars.analysis.engine import REQUESTS_AT_ONCE, Engine
from regulars.columns.engine.audience import AudienceCopy
from regulars.columns.engine.compaction import compact
from regulars.columns.model import BuildProgress
from regulars.columns.protocol import AnalysisRequest, AnalysisResponse, make_folder, read_message, write_message
from regulars.kit import log
from regulars.kit.db import CONNECTION_ERRORS, Database
from regulars.kit.process import on_parent_exit, on_stop_signals
from regulars.kit.settings import Settings
from regulars.work.due import find_due_organizations
from regulars.work.queue import Due

# Database connections: one per open request, one for compaction and one for the check of purged columns.
POOL_MAX: Final = REQUESTS_AT_ONCE + 2
STATEMENT_TIMEOUT_MS: Final = 60_000
# A transaction waits while columns are decoded: 20 s for a property with 5 million values, longer on a busy machine.
IDLE_IN_TRANSACTION_MS: Final = 600_000
COMPACT_EVERY_S: Final = 2.0
DROP_PURGED_EVERY_S: Final = 60.0
# A client that sends no request or reads no response for this time is disconnected. For pieces of an audience the time
# is longer, because the client stores each piece before it reads the next.
READ_S_MAX: Final = 10.0
PIECE_S_MAX: Final = 60.0
# A limit because the ids of an audience stay in memory until the client has read them.
AUDIENCE_COPIES_MAX: Final = 4
DEADLINE_S_MAX: Final = 60.0
# A response that missed its deadline is retained this long for a repeated request.
RESPONSE_RETAINED_S: Final = 5.0
# The column with the time of the next compaction.
COMPACTION_DUE: Final = Due(table="segment_columns", column="tidy_at")

_log = log.get(__name__)
BAD_REQUEST: Final = AnalysisResponse(fault="The question cannot be read; is the analysis process of another release?")
_request_decoder = msgspec.msgpack.Decoder(AnalysisRequest)
_encode = msgspec.msgpack.Encoder().encode


def run(settings: Settings, url: str, *, path: Path, lifeline: int | None = None) -> None:
    """Serve until SIGTERM or SIGINT, or until the lifeline, a pipe from the parent process, is closed."""
    with listening(path) as bound, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(settings, url, bound, lifeline=lifeline))


@contextlib.contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    """Open a socket in a private folder, to which only this user can connect; remove a stale socket first."""
    make_folder(path.parent)
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as bound:
        before = os.umask(0o177)
        try:
            bound.bind(str(path))
        finally:
            os.umask(before)
        try:
            yield bound
        finally:
            path.unlink(missing_ok=True)


async def _run(settings: Settings, url: str, bound: socket.socket, *, lifeline: int | None) -> None:
    stop = asyncio.Event()
    on_stop_signals(stop.set)
    if lifeline is not None:
        on_parent_exit(lifeline, stop.set)
    database = Database(
        url,
        pool_max=POOL_MAX,
        statement_timeout_ms=STATEMENT_TIMEOUT_MS,
        idle_in_transaction_ms=IDLE_IN_TRANSACTION_MS,
    )
    await database.open()
    engine = Engine(database, bytes_max=settings.analysis_memory_mb << 20)
    server = await asyncio.start_unix_server(ConnectionHandler(engine).serve, sock=bound)
    _log.info("analysis.started")
    tasks = [asyncio.create_task(_compact_forever(database)), asyncio.create_task(_drop_purged_forever(engine))]
    try:
        await stop.wait()
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(database.close(), settings.shutdown_grace_s)
    _log.info("analysis.stopped")


class ConnectionHandler:
    """Handles connections. A request that misses its deadline continues; the same request, sent again, gets its
    response."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        # The requests that are being answered, or whose response is retained.
        self._open: dict[bytes, asyncio.Task[AnalysisResponse | AudienceCopy]] = {}
        self._audience_copies = asyncio.Semaphore(AUDIENCE_COPIES_MAX)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(READ_S_MAX):
                message = await read_message(reader)
            request = _read_request(message)
            if request is None:
                await write_message(writer, _encode(BAD_REQUEST))
            elif request.want == "freeze":
                # The response has the ids of an audience.
                async with self._audience_copies:
                    await _write(writer, await self._respond(request))
            else:
                await _write(writer, await self._respond(request))
        except (OSError, EOFError, TimeoutError):
            # The client disconnected.
            pass
        finally:
            writer.close()

    async def _respond(self, request: AnalysisRequest) -> AnalysisResponse | AudienceCopy:
        # The deadline is not part of the key, so a repeated request waits for the same response.
        key = _encode(msgspec.structs.replace(request, deadline_s=0.0))
        task = self._open.get(key)
        if task is None:
            task = self._open[key] = asyncio.create_task(self._engine.respond(request))
        try:
            response = await asyncio.wait_for(asyncio.shield(task), min(request.deadline_s, DEADLINE_S_MAX))
            self._drop(key, task)
            return response
        except TimeoutError:
            task.add_done_callback(lambda _: self._drop_later(key, task))
            progress = self._engine.cache.progress_of(request.organization_id)
            return AnalysisResponse(
                is_ready=False, progress=BuildProgress("building", "reading", progress.done, progress.total)
            )
        except Exception as error:  # noqa: BLE001  # the client gets a fault, and the log has the reason
            self._drop(key, task)
            _log.error("analysis.failed", organization_id=str(request.organization_id), exc_info=error)
            return AnalysisResponse(
                fault="The question could not be answered; the log of the analysis process says why."
            )

    def _drop(self, key: bytes, task: asyncio.Task[AnalysisResponse | AudienceCopy]) -> None:
        if self._open.get(key) is task:
            del self._open[key]

    def _drop_later(self, key: bytes, task: asyncio.Task[AnalysisResponse | AudienceCopy]) -> None:
        asyncio.get_running_loop().call_later(RESPONSE_RETAINED_S, self._drop, key, task)


def _read_request(message: bytes) -> AnalysisRequest | None:
    try:
        return _request_decoder.decode(message)
    except msgspec.MsgspecError:
        return None


async def _write(writer: asyncio.StreamWriter, response: AnalysisResponse | AudienceCopy) -> None:
    if isinstance(response, AnalysisResponse):
        async with asyncio.timeout(READ_S_MAX):
            await write_message(writer, _encode(response))
        return
    for piece in response.pieces():
        async with asyncio.timeout(PIECE_S_MAX):
            await write_message(writer, _encode(AnalysisResponse(piece=piece)))


async def _compact_forever(database: Database) -> None:
    while True:
        try:
            async with database.transaction() as tx:
                due = await find_due_organizations(tx, COMPACTION_DUE, after=None)
            for organization_id in due:
                await compact(database, organization_id)
        except CONNECTION_ERRORS as error:
            _log.warning("analysis.tidy_failed", error=type(error).__name__)
        except Exception as error:  # noqa: BLE001  # the loop must continue after any failure
            _log.warning("analysis.tidy_failed", exc_info=error)
        await asyncio.sleep(COMPACT_EVERY_S)


async def _drop_purged_forever(engine: Engine) -> None:
    while True:
        await asyncio.sleep(DROP_PURGED_EVERY_S)
        try:
            await engine.drop_purged()
        except Exception as error:  # noqa: BLE001  # the loop must continue
            _log.warning("analysis.forget_failed", error=type(error).__name__)
