"""Questions to the analysis process, whose figures may follow later: it counts, or the columns are being built."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from regulars.analytics.period import Period
from regulars.segments.analysis import questions
from regulars.segments.analysis.protocol import STARTING, AnalysisUnavailable, NotReady
from regulars.segments.columns.model import Progress

# A page is rendered after this time, without the missing figures; it requests them again.
AT_ONCE_S: Final = 0.4

T = TypeVar("T")
Used = TypeVar("Used")


@dataclass(frozen=True, slots=True)
class AnalysisResult(Generic[T]):
    """One of the three: figures, the progress of what must be ready first, or the reason why there are none."""

    figures: T | None = None
    progress: Progress | None = None
    unavailable_reason: str | None = None

    @property
    def is_waiting(self) -> bool:
        return self.figures is None

    def map(self, use: Callable[[T], Used]) -> Used | None:
        """Apply `use` to the figures, if there are any."""
        return None if self.figures is None else use(self.figures)

    @property
    def is_soon(self) -> bool:
        """Whether it is being counted right now, so that it is worth asking again soon."""
        return self.progress is not None and self.progress.phase in {"reading", STARTING.phase}


def to_question_period(period: Period) -> questions.Period:
    return questions.Period(period.first, period.last)


async def await_answer(answer: Awaitable[T]) -> AnalysisResult[T]:
    try:
        return AnalysisResult(await answer)
    except NotReady as error:
        return AnalysisResult(progress=error.progress or STARTING)
    except AnalysisUnavailable as error:
        return AnalysisResult(unavailable_reason=str(error))
