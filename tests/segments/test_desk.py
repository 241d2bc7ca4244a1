"""The request handler of the analysis process: a caller that did not wait long enough gets it on retry."""

import asyncio
import datetime as dt
from uuid import uuid4

from regulars.analysis import server
from regulars.analysis.server import ConnectionHandler
from regulars.columns.engine.cache import ColumnCache
from regulars.columns.protocol import AnalysisRequest, AnalysisResponse, Members, SegmentQuery
from regulars.conditions.tree import All

NO_MEMBERS = AnalysisResponse(members=Members(profile_ids=(), next=None, as_of=dt.datetime(2026, 1, 1, tzinfo=dt.UTC)))
# More than enough turns of the loop for whatever is due at once.
TURNS_MAX = 1_000


class Slow:
    """Answers once `may_answer` is set."""

    def __init__(self) -> None:
        self.cache = ColumnCache(0)
        self.may_answer = asyncio.Event()
        self.times = 0

    async def respond(self, request: AnalysisRequest) -> AnalysisResponse:
        self.times += 1
        await self.may_answer.wait()
        return NO_MEMBERS


def request(deadline_s: float) -> AnalysisRequest:
    query = SegmentQuery(match=All(), zone="UTC", today=dt.date(2026, 1, 1))
    return AnalysisRequest(organization_id=ORGANIZATION, query=query, want="sample", deadline_s=deadline_s)


ORGANIZATION = uuid4()


def test_what_came_too_late_is_there_when_it_is_asked_for_again():
    async def ask() -> None:
        engine = Slow()
        handler = ConnectionHandler(engine)
        early = await handler._respond(request(0.01))
        assert not early.is_ready
        # Another patience is the same question.
        assert not (await handler._respond(request(0.02))).is_ready
        engine.may_answer.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert await handler._respond(request(0.0)) == NO_MEMBERS
        assert engine.times == 1
        # It was given out: the next question is a new one.
        assert await handler._respond(request(60)) == NO_MEMBERS
        assert engine.times == 2

    asyncio.run(ask())


def test_an_answer_that_is_not_requested_again_is_released(monkeypatch):
    monkeypatch.setattr(server, "RESPONSE_RETAINED_S", 0.0)

    async def ask() -> None:
        engine = Slow()
        handler = ConnectionHandler(engine)
        await handler._respond(request(0.01))
        engine.may_answer.set()
        for _ in range(TURNS_MAX):
            await asyncio.sleep(0)
        assert not handler._open

    asyncio.run(ask())
