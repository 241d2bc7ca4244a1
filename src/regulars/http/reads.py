"""How a read runs: on a borrowed connection, in time, and never without an answer."""

from collections.abc import Callable

from regulars.http.in_flight import REQUEST_S
from regulars.http.problem import problem_answer
from regulars.http.route import Answer, Read, Request
from regulars.kit import log
from regulars.kit.clock import monotonic
from regulars.kit.db import CONNECTION_ERRORS, Database
from regulars.kit.errors import ApiError, InternalError, Unavailable
from regulars.kit.writable import trouble

_log = log.get(__name__)


class Reads:
    """One per process."""

    def __init__(self, database: Database, *, trouble: Callable[[BaseException], str] = trouble) -> None:
        self.database = database
        self._trouble = trouble

    async def answer(self, route: Read, request: Request) -> Answer:
        """The answer of the route, or to whatever it raised."""
        try:
            async with self.database.reading(until=monotonic() + REQUEST_S) as tx:
                return await route.handle(tx, request)
        except Exception as error:  # noqa: BLE001  # the envelope holds for our own mistakes too
            return answer_to(error, request.request_id, trouble=self._trouble)


def answer_to(error: Exception, request_id: str, *, trouble: Callable[[BaseException], str]) -> Answer:
    """The envelope for a refusal, for a database that is away, and for our own mistakes."""
    if isinstance(error, ApiError):
        return problem_answer(error, request_id)
    if isinstance(error, CONNECTION_ERRORS):
        _log.warning("api.database_unavailable", request_id=request_id, error=type(error).__name__)
        return problem_answer(Unavailable(trouble(error)), request_id)
    _log.error("api.failed", request_id=request_id, exc_info=error)
    return problem_answer(InternalError("Something broke on our side."), request_id)
