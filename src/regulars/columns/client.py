"""The client of the analysis process, which counts segments and answers analytics questions; a request that exceeds its
deadline raises an error."""

import asyncio
import contextlib
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path as FilePath
from typing import Any, Final, TypeVar, cast
from uuid import UUID

import msgspec

from regulars.columns.protocol import (
    STARTING,
    AnalysisRequest,
    AnalysisResponse,
    AnalysisUnavailable,
    AudienceCounts,
    AudiencePiece,
    CursorExpired,
    MemberCursor,
    Members,
    NotReady,
    Order,
    SegmentCounts,
    SegmentQuery,
    Want,
    check_owner,
    read_message,
    socket_path,
    write_message,
)
from regulars.columns.questions import AnswerType, QuestionOf
from regulars.conditions.tree import Path
from regulars.kit import log
from regulars.kit.clock import monotonic
from regulars.kit.process import Lifeline
from regulars.kit.settings import Settings
from regulars.sales.model import Currency
from regulars.work.claims import Claim, ClaimQueue, Outcome

DEADLINE_S: Final = 8.0
# Longer, because the first piece of an audience may have to wait until the columnar data is loaded.
STREAM_DEADLINE_S: Final = 30.0
# Added to the deadline, for the transport of the request and of the response; also the timeout of `is_listening`.
_TRANSPORT_S: Final = 1.0
_START_TIMEOUT_S: Final = 30.0
_EXIT_TIMEOUT_S: Final = 10.0
_RETRY_INTERVAL_S: Final = 0.1

Result = TypeVar("Result")

_log = log.get(__name__)

_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(AnalysisResponse)


class Analysis:
    """A client of the analysis process; it opens a connection for each request."""

    def __init__(self, settings: Settings, *, path: FilePath | None = None) -> None:
        self._path = path or socket_path(settings)

    async def count_segment(
        self, organization_id: UUID, query: SegmentQuery, *, deadline_s: float = DEADLINE_S
    ) -> SegmentCounts:
        """Count the members, and for each condition the customers for whom it is true."""
        response = await self._send(organization_id, query, "figures", deadline_s=deadline_s)
        return _require(response.figures, "figures")

    async def members(
        self,
        organization_id: UUID,
        query: SegmentQuery,
        *,
        after: MemberCursor | None = None,
        limit: int = 50,
        order: Order | None = None,
        currency: Currency = "EUR",
        unreadable: Path | None = None,
        deadline_s: float = DEADLINE_S,
    ) -> Members:
        """List a page of members, largest first by `order`, or in a fixed order without it; `next` of one page is
        `after` of the following page. With `unreadable`, list customers with a value that the condition at this path
        cannot parse; they need not be members."""
        response = await self._send(
            organization_id,
            query,
            "members" if unreadable is None else "unreadable",
            path=unreadable or (),
            after=after,
            limit=limit,
            order=order,
            currency=currency,
            deadline_s=deadline_s,
        )
        return _require(response.members, "members")

    async def sample(
        self,
        organization_id: UUID,
        query: SegmentQuery,
        *,
        seed: int = 0,
        limit: int = 5,
        deadline_s: float = DEADLINE_S,
    ) -> Members:
        """Random members; another seed gives other members."""
        response = await self._send(organization_id, query, "sample", seed=seed, limit=limit, deadline_s=deadline_s)
        return _require(response.members, "members")

    async def count_audience(
        self,
        organization_id: UUID,
        query: SegmentQuery,
        *,
        with_spend: bool = False,
        sample: int = 0,
        seed: int = 0,
        deadline_s: float = DEADLINE_S,
    ) -> AudienceCounts:
        """Count the audience, and choose `sample` random customers who may be texted; another seed gives other
        customers."""
        response = await self._send(
            organization_id, query, "audience", with_spend=with_spend, limit=sample, seed=seed, deadline_s=deadline_s
        )
        return _require(response.audience, "audience")

    async def answer(
        self,
        organization_id: UUID,
        query: SegmentQuery,
        question: QuestionOf[AnswerType],
        *,
        deadline_s: float = DEADLINE_S,
    ) -> AnswerType:
        """Request the answer to an analytics question about the members of the query, or about all tickets."""
        response = await self._send(organization_id, query, "answer", question=question, deadline_s=deadline_s)
        return cast("AnswerType", _require(response.answer, "answer"))

    async def stream_audience(
        self,
        organization_id: UUID,
        query: SegmentQuery,
        *,
        sample: int = 0,
        deadline_s: float = STREAM_DEADLINE_S,
    ) -> AsyncIterator[AudiencePiece]:
        """Yield the ids of all customers of an audience from one snapshot, in pieces; the deadline applies to each
        piece. The counts in the first piece contain `sample` random customers who may be texted.

        A caller that gets an error must discard all pieces and start again. A caller that needs more than a minute for
        one piece is disconnected.
        """
        request = AnalysisRequest(
            organization_id=organization_id,
            query=query,
            # The protocol's name for a copy of all ids.
            want="freeze",
            limit=sample,
            deadline_s=deadline_s,
        )
        reader, writer = await _await_within(deadline_s, self._connect_when_started(deadline_s))
        with contextlib.closing(writer):
            await _await_within(deadline_s, write_message(writer, _encode(request)))
            while True:
                piece = _require((await _await_within(deadline_s, _read_response(reader))).piece, "audience")
                yield piece
                if piece.is_last:
                    return

    async def _send(
        self, organization_id: UUID, query: SegmentQuery, want: Want, *, deadline_s: float, **fields: Any
    ) -> AnalysisResponse:
        """Send a request; `fields` are further fields of `AnalysisRequest`."""
        request = AnalysisRequest(
            organization_id=organization_id, query=query, want=want, deadline_s=deadline_s, **fields
        )
        return await _await_within(deadline_s, self._exchange(request))

    async def _exchange(self, request: AnalysisRequest) -> AnalysisResponse:
        reader, writer = await self._connect_when_started(request.deadline_s)
        with contextlib.closing(writer):
            await write_message(writer, _encode(request))
            return await _read_response(reader)

    async def _connect_when_started(self, deadline_s: float) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect, once the socket exists: `regulars serve` starts the analysis process when the first segment is
        created, and restarts it if it ends."""
        until = monotonic() + deadline_s
        while True:
            try:
                return await self._connect()
            except (FileNotFoundError, ConnectionRefusedError):
                if monotonic() > until:
                    raise NotReady(STARTING) from None
                await asyncio.sleep(_RETRY_INTERVAL_S)

    async def is_listening(self) -> bool:
        """Whether the analysis process accepts connections."""
        try:
            _, writer = await asyncio.wait_for(self._connect(), _TRANSPORT_S)
        except (OSError, TimeoutError):
            return False
        writer.close()
        return True

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        check_owner(self._path.parent)
        return await asyncio.open_unix_connection(str(self._path))


async def _await_within(deadline_s: float, result: Awaitable[Result]) -> Result:
    """Wait for the result of an exchange; raise `AnalysisUnavailable` if it fails or exceeds the deadline."""
    try:
        async with asyncio.timeout(deadline_s + _TRANSPORT_S):
            return await result
    except TimeoutError:
        raise AnalysisUnavailable("The analysis process did not answer in time.") from None
    except (OSError, EOFError, msgspec.MsgspecError) as error:
        _log.warning("analysis.away", exc_info=error)
        raise AnalysisUnavailable("The analysis process did not answer; its log says why.") from error


async def _read_response(reader: asyncio.StreamReader) -> AnalysisResponse:
    response = _decoder.decode(await read_message(reader))
    if response.fault is not None:
        raise AnalysisUnavailable(response.fault)
    if not response.is_ready:
        raise NotReady(response.progress)
    if response.is_renumbered:
        raise CursorExpired
    return response


def _require(result: Result | None, noun: str) -> Result:
    if result is None:
        raise AnalysisUnavailable(f"The analysis process gave no {noun}.")
    return result


@contextlib.asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[Analysis]:
    """For commands: a client of the analysis process of `regulars serve` or, if that does not run, of a process that
    runs only during this context. It ends when the lifeline, a pipe from this process, is closed."""
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
            yield await _wait_until_listening(Analysis(settings, path=path), child)
        finally:
            lifeline.close()
            await _wait_for_exit(child)


async def _wait_until_listening(analysis: Analysis, child: asyncio.subprocess.Process) -> Analysis:
    until = monotonic() + _START_TIMEOUT_S
    while not await analysis.is_listening():
        if child.returncode is not None or monotonic() > until:
            raise AnalysisUnavailable("The analysis process did not start.")
        await asyncio.sleep(_RETRY_INTERVAL_S)
    return analysis


async def _wait_for_exit(child: asyncio.subprocess.Process) -> None:
    try:
        await asyncio.wait_for(child.wait(), _EXIT_TIMEOUT_S)
    except TimeoutError:
        child.kill()
        await child.wait()


class AnalysisQueue(ClaimQueue[Claim, Outcome]):
    """A queue that calls the analysis process for few rows at a time, because each call may take long."""

    batch_rows = 2
    at_once_max = 2

    def __init__(self, analysis: Analysis) -> None:
        super().__init__()
        self._analysis = analysis
