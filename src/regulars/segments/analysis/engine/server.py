"""The analysis process: it answers questions on a socket of this machine, and tidies up columns beside it."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import uvloop

from regulars.kit import log
from regulars.kit.db import Database
from regulars.kit.process import on_stop_signals, when_ended
from regulars.kit.settings import Settings
from regulars.segments.analysis.engine.compaction import tidy
from regulars.segments.analysis.engine.engine import ANSWERS_AT_ONCE, Engine
from regulars.segments.analysis.protocol import Answer, Question, make_folder, read_message, write_message
from regulars.segments.columns.model import Progress
from regulars.work.due import find_due_organizations
from regulars.work.queue import Due

# One for each answer, one to tidy up and one to look what is to be forgotten.
POOL_MAX: Final = ANSWERS_AT_ONCE + 2
STATEMENT_TIMEOUT_MS: Final = 60_000
TIDY_EVERY_S: Final = 2.0
FORGET_EVERY_S: Final = 60.0
# Who sends no question, or reads no answer, is not waited for.
READ_S_MAX: Final = 10.0
DEADLINE_S_MAX: Final = 60.0
# What came too late for whoever asked waits so long for them to ask again.
ANSWER_KEPT_S: Final = 5.0
TO_TIDY: Final = Due(table="segment_columns", column="tidy_at")

_log = log.get(__name__)
_question = msgspec.msgpack.Decoder(Question)
_encode = msgspec.msgpack.Encoder().encode


def run(settings: Settings, url: str, *, path: Path, lifeline: int | None = None) -> None:
    """Answer until SIGTERM or SIGINT, or until the lifeline ends."""
    with listening(path) as bound, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(settings, url, bound, lifeline=lifeline))


@contextlib.contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    """A socket that only this user can dial, in a folder of this user; a stale socket is removed."""
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
        when_ended(lifeline, stop.set)
    database = Database(url, pool_max=POOL_MAX, statement_timeout_ms=STATEMENT_TIMEOUT_MS)
    await database.open()
    engine = Engine(database, bytes_max=settings.analysis_memory_mb << 20)
    server = await asyncio.start_unix_server(Desk(engine).serve, sock=bound)
    _log.info("analysis.started")
    tasks = [asyncio.create_task(_tidy_forever(database)), asyncio.create_task(_forget_forever(engine))]
    try:
        await stop.wait()
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(database.close(), settings.shutdown_grace_s)
    _log.info("analysis.stopped")


class Desk:
    """Takes questions. One that takes longer than its deadline goes on, and is answered when it is asked again."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._open: dict[bytes, asyncio.Task[Answer]] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(READ_S_MAX):
                message = await read_message(reader)
            answer = await self._answer(message)
            async with asyncio.timeout(READ_S_MAX):
                await write_message(writer, _encode(answer))
        except (OSError, EOFError, TimeoutError):
            # Whoever asked is gone.
            pass
        finally:
            writer.close()

    async def _answer(self, message: bytes) -> Answer:
        try:
            question = _question.decode(message)
        except msgspec.MsgspecError:
            return Answer(fault="The question cannot be read; is the analysis process of another release?")
        # How long somebody waits is no part of what is asked: whoever asks again waits for the same answer.
        asked = _encode(msgspec.structs.replace(question, deadline_s=0.0))
        task = self._open.get(asked)
        if task is None:
            task = self._open[asked] = asyncio.create_task(self._engine.answer(question))
        try:
            answer = await asyncio.wait_for(asyncio.shield(task), min(question.deadline_s, DEADLINE_S_MAX))
            self._drop(asked, task)
            return answer
        except TimeoutError:
            task.add_done_callback(lambda _: self._drop_later(asked, task))
            reading = self._engine.cache.reading_of(question.organization_id)
            return Answer(is_ready=False, progress=Progress("building", "reading", reading.done, reading.total))
        except Exception as error:  # noqa: BLE001  # whoever asked hears that it failed, and the log has why
            self._drop(asked, task)
            _log.error("analysis.failed", organization_id=str(question.organization_id), exc_info=error)
            return Answer(fault="The question could not be answered; the log of the analysis process says why.")

    def _drop(self, asked: bytes, task: asyncio.Task[Answer]) -> None:
        if self._open.get(asked) is task:
            del self._open[asked]

    def _drop_later(self, asked: bytes, task: asyncio.Task[Answer]) -> None:
        asyncio.get_running_loop().call_later(ANSWER_KEPT_S, self._drop, asked, task)


async def _tidy_forever(database: Database) -> None:
    while True:
        try:
            async with database.transaction() as tx:
                due = await find_due_organizations(tx, TO_TIDY, after=None)
            for organization_id in due:
                await tidy(database, organization_id)
        except Exception as error:  # noqa: BLE001  # whatever is wrong now, the next look must come
            _log.warning("analysis.tidy_failed", exc_info=error)
        await asyncio.sleep(TIDY_EVERY_S)


async def _forget_forever(engine: Engine) -> None:
    while True:
        await asyncio.sleep(FORGET_EVERY_S)
        try:
            await engine.forget_purged()
        except Exception as error:  # noqa: BLE001  # the next look must come
            _log.warning("analysis.forget_failed", error=type(error).__name__)
