"""How a read runs: on a borrowed connection, in time, and never without an answer.

Look-ups of one kind and organization share a statement: those that arrive while one is on its way to the database are
the next one. A read joins only a statement that is not sent yet, so it sees whatever was committed before it came.
"""

import asyncio
from collections.abc import Callable, Sequence
from uuid import UUID

import msgspec

from regulars.http.in_flight import REQUEST_S, too_late
from regulars.http.problem import RequestContext, problem_answer
from regulars.http.route import Answer, LookUp, Read, Request
from regulars.kit import log
from regulars.kit.clock import monotonic
from regulars.kit.coalesce import Coalescer, Overloaded
from regulars.kit.db import CONNECTION_ERRORS, LOOKING_UP_MAX, Database
from regulars.kit.errors import ApiError, InternalError, Unavailable
from regulars.kit.writable import trouble

LOOKED_UP_TOGETHER_MAX = 128

_log = log.get(__name__)


class _Asked(msgspec.Struct, frozen=True, gc=False):
    """A look-up that waits for its statement. `reply` is called once."""

    route: LookUp
    request: Request
    reply: Callable[[Answer], None]
    arrived_at: float


class Reads:
    """One per process."""

    def __init__(self, database: Database, *, trouble: Callable[[BaseException], str] = trouble) -> None:
        self.database = database
        self._trouble = trouble
        self._looking_up: Coalescer[tuple[UUID, str], _Asked] = Coalescer(
            self._look_up_together, items_max=lambda _: LOOKED_UP_TOGETHER_MAX, flushers=LOOKING_UP_MAX
        )

    async def answer(self, route: Read | LookUp, request: Request, *, within_s: float = REQUEST_S) -> Answer:
        """The answer of the route, or to whatever it raised."""
        try:
            if isinstance(route, LookUp):
                async with asyncio.timeout(within_s):
                    return await self._wait_for(route, request)
            async with self.database.reading(until=monotonic() + within_s) as tx:
                return await route.handle(tx, request)
        except Exception as error:  # noqa: BLE001  # the envelope holds for our own mistakes too
            return self._refused(error, request)

    def can_look_up(self, route: LookUp, request: Request) -> bool:
        """Whether `look_up` may be called in this very moment."""
        return self._looking_up.has_room((request.caller.organization_id, route.operation_id), size=1)

    def look_up(self, route: LookUp, request: Request, reply: Callable[[Answer], None]) -> None:
        """Answer later, through `reply`, without a task for it."""
        asked = _Asked(route, request, reply, monotonic())
        self._looking_up.put((request.caller.organization_id, route.operation_id), asked, size=1)

    async def _wait_for(self, route: LookUp, request: Request) -> Answer:
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def reply(answer: Answer) -> None:
            if not answered.done():
                answered.set_result(answer)

        try:
            self.look_up(route, request, reply)
        except Overloaded:
            refusal = Unavailable("Too much is waiting to be read; try again.")
            return problem_answer(refusal, request)
        return await answered

    async def _look_up_together(self, key: tuple[UUID, str], batch: list[_Asked]) -> None:
        """All have their answer when the time of the oldest is over, and those behind it are not held up longer."""
        try:
            async with asyncio.timeout(batch[0].arrived_at + REQUEST_S - monotonic()):
                answers = await self._find(key[0], batch)
        except Exception as error:  # noqa: BLE001  # whatever happened, every waiting caller gets an answer
            answers = [self._refused(error, asked.request) for asked in batch]
        # Soon, not now: the next statement is then on its way before the callers are told.
        asyncio.get_running_loop().call_soon(_tell, batch, answers)

    async def _find(self, organization_id: UUID, batch: Sequence[_Asked]) -> list[Answer]:
        try:
            async with self.database.looking_up() as tx:
                found = await batch[0].route.find(tx, organization_id, [asked.request for asked in batch])
        except Exception as error:
            if isinstance(error, CONNECTION_ERRORS) or len(batch) == 1:
                raise
            # One's fault must not become its neighbours'.
            alone = [await self._find_alone(organization_id, asked) for asked in batch]
            _log.warning("reads.looked_up_alone", operation=batch[0].route.operation_id, error=type(error).__name__)
            return alone
        return [
            answer if isinstance(answer, Answer) else problem_answer(answer, asked.request)
            for asked, answer in zip(batch, found, strict=True)
        ]

    async def _find_alone(self, organization_id: UUID, asked: _Asked) -> Answer:
        try:
            [answer] = await self._find(organization_id, [asked])
        except Exception as error:  # noqa: BLE001  # as above
            return self._refused(error, asked.request)
        return answer

    def _refused(self, error: Exception, request: Request) -> Answer:
        if isinstance(error, TimeoutError):
            return problem_answer(too_late(), request)
        return answer_to(error, request, trouble=self._trouble)


def _tell(batch: Sequence[_Asked], answers: Sequence[Answer]) -> None:
    for asked, answer in zip(batch, answers, strict=True):
        try:
            asked.reply(answer)
        except Exception:  # noqa: BLE001  # the other callers are to be told too
            _log.exception("reads.caller_not_told", request_id=asked.request.request_id)


def answer_to(error: Exception, request: RequestContext, *, trouble: Callable[[BaseException], str]) -> Answer:
    """The envelope for a refusal, for a database that is away, and for our own mistakes."""
    if isinstance(error, ApiError):
        return problem_answer(error, request)
    if isinstance(error, CONNECTION_ERRORS):
        _log.warning("api.database_unavailable", request_id=request.request_id, error=type(error).__name__)
        return problem_answer(Unavailable(trouble(error)), request)
    _log.error("api.failed", request_id=request.request_id, exc_info=error)
    return problem_answer(InternalError("Something broke on our side."), request)
