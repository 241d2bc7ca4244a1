"""The client of the analysis process; each request is answered within its deadline."""

import asyncio
import contextlib
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path as FilePath
from typing import Final, Literal
from uuid import UUID

import msgspec

from regulars.conditions.tree import Path
from regulars.kit import log
from regulars.kit.clock import monotonic
from regulars.kit.process import Lifeline
from regulars.kit.settings import Settings
from regulars.sales.model import Currency
from regulars.segments.analysis.protocol import (
    STARTING,
    AnalysisAway,
    Answer,
    Asked,
    Figures,
    Members,
    NotReady,
    Order,
    Place,
    Question,
    Renumbered,
    check_owner,
    read_message,
    socket_path,
    write_message,
)

DEADLINE_S: Final = 8.0
# The process answers before its deadline; this is for the way.
_WAY_S: Final = 1.0
_START_S: Final = 30.0
_END_S: Final = 10.0
_ASK_AGAIN_S: Final = 0.1

_log = log.get(__name__)

_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(Answer)


class Analysis:
    """One per process, and cheap: it dials for each question."""

    def __init__(self, settings: Settings, *, path: FilePath | None = None) -> None:
        self._path = path or socket_path(settings)

    async def figures(self, organization_id: UUID, asked: Asked, *, deadline_s: float = DEADLINE_S) -> Figures:
        answer = await self._ask(organization_id, asked, "figures", deadline_s=deadline_s)
        if answer.figures is None:
            raise AnalysisAway("The analysis process gave no figures.")
        return answer.figures

    async def members(
        self,
        organization_id: UUID,
        asked: Asked,
        *,
        after: Place | None = None,
        limit: int = 50,
        order: Order | None = None,
        currency: Currency = "EUR",
        deadline_s: float = DEADLINE_S,
    ) -> Members:
        """A page of members, by their numbers or sorted; `next` of the page before is `after` of the next."""
        answer = await self._ask(
            organization_id,
            asked,
            "members",
            after=after,
            limit=limit,
            order=order,
            currency=currency,
            deadline_s=deadline_s,
        )
        return _members(answer)

    async def sample(
        self, organization_id: UUID, asked: Asked, *, seed: int = 0, limit: int = 5, deadline_s: float = DEADLINE_S
    ) -> Members:
        """Some members by chance; another seed gives others."""
        answer = await self._ask(organization_id, asked, "sample", seed=seed, limit=limit, deadline_s=deadline_s)
        return _members(answer)

    async def unreadable(
        self,
        organization_id: UUID,
        asked: Asked,
        path: Path,
        *,
        after: Place | None = None,
        limit: int = 50,
        deadline_s: float = DEADLINE_S,
    ) -> Members:
        """A page of those who have a value that the condition at this place cannot read; they need not be members."""
        answer = await self._ask(
            organization_id, asked, "unreadable", path=path, after=after, limit=limit, deadline_s=deadline_s
        )
        return _members(answer)

    async def _ask(
        self,
        organization_id: UUID,
        asked: Asked,
        want: Literal["figures", "members", "sample", "unreadable"],
        *,
        deadline_s: float,
        path: Path = (),
        order: Order | None = None,
        currency: Currency = "EUR",
        after: Place | None = None,
        limit: int = 0,
        seed: int = 0,
    ) -> Answer:
        question = Question(
            organization_id=organization_id,
            asked=asked,
            want=want,
            path=path,
            order=order,
            currency=currency,
            after=after,
            limit=limit,
            seed=seed,
            deadline_s=deadline_s,
        )
        try:
            async with asyncio.timeout(deadline_s + _WAY_S):
                answer = await self._exchange(_encode(question), deadline_s)
        except TimeoutError:
            raise AnalysisAway("The analysis process did not answer in time.") from None
        except (OSError, EOFError, msgspec.MsgspecError) as error:
            _log.warning("analysis.away", exc_info=error)
            raise AnalysisAway("The analysis process did not answer; its log says why.") from error
        if answer.fault is not None:
            raise AnalysisAway(answer.fault)
        if not answer.is_ready:
            raise NotReady(answer.progress)
        if answer.is_renumbered:
            raise Renumbered
        return answer

    async def _exchange(self, message: bytes, deadline_s: float) -> Answer:
        reader, writer = await self._connect_when_started(monotonic() + deadline_s)
        try:
            await write_message(writer, message)
            return _decoder.decode(await read_message(reader))
        finally:
            writer.close()

    async def _connect_when_started(self, until: float) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """`regulars serve` starts the process with the first segment, and again if it ends: until then no socket
        listens."""
        while True:
            try:
                return await self._connect()
            except (FileNotFoundError, ConnectionRefusedError):
                if monotonic() > until:
                    raise NotReady(STARTING) from None
                await asyncio.sleep(_ASK_AGAIN_S)

    async def is_listening(self) -> bool:
        """Whether anybody listens."""
        try:
            _, writer = await asyncio.wait_for(self._connect(), _WAY_S)
        except (OSError, TimeoutError):
            return False
        writer.close()
        return True

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        check_owner(self._path.parent)
        return await asyncio.open_unix_connection(str(self._path))


def _members(answer: Answer) -> Members:
    if answer.members is None:
        raise AnalysisAway("The analysis process gave no members.")
    return answer.members


@contextlib.asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[Analysis]:
    """For a command: the process that `regulars serve` has, or one that is started for as long as this lasts."""
    served = Analysis(settings)
    if await served.is_listening():
        yield served
        return
    with tempfile.TemporaryDirectory(prefix="regulars-") as folder:
        path = FilePath(folder) / "analysis.sock"
        lifeline = Lifeline()
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "regulars.cli",
            "analysis",
            "--lifeline",
            str(lifeline.reading),
            "--socket",
            str(path),
            pass_fds=(lifeline.reading,),
            stdin=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield await _started(Analysis(settings, path=path), child)
        finally:
            lifeline.close()
            await _ended(child)


async def _started(analysis: Analysis, child: asyncio.subprocess.Process) -> Analysis:
    until = monotonic() + _START_S
    while not await analysis.is_listening():
        if child.returncode is not None or monotonic() > until:
            raise AnalysisAway("The analysis process did not start.")
        await asyncio.sleep(_ASK_AGAIN_S)
    return analysis


async def _ended(child: asyncio.subprocess.Process) -> None:
    try:
        await asyncio.wait_for(child.wait(), _END_S)
    except TimeoutError:
        child.kill()
        await child.wait()


# A process that ended is there again within seconds.
PATIENCE_S: Final = 30.0
ASK_AGAIN_S: Final = 0.2


async def follow(
    analysis: Analysis,
    organization_id: UUID,
    asked: Asked,
    page: Members,
    *,
    limit: int,
    deadline_s: float = DEADLINE_S,
    patience_s: float = PATIENCE_S,
) -> AsyncIterator[Members]:
    """This page and all that follow it; one that cannot be had now is asked for again for some time."""
    yield page
    until = monotonic() + patience_s
    while page.next is not None:
        try:
            page = await analysis.members(organization_id, asked, after=page.next, limit=limit, deadline_s=deadline_s)
        except (NotReady, AnalysisAway):
            if monotonic() > until:
                raise
            await asyncio.sleep(ASK_AGAIN_S)
        else:
            yield page
            until = monotonic() + patience_s
