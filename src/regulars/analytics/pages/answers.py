"""Waits for the analysis process, which counts customers and sales, and returns its answer or the reason for none.

There is no answer yet while the process counts, or while its columnar copy of customers and sales is being built.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from regulars.analytics.period import Period
from regulars.columns import questions
from regulars.columns.model import BuildProgress
from regulars.columns.protocol import STARTING, AnalysisUnavailable, NotReady

# After this time a page is rendered without the missing numbers, and the browser requests them again.
PAGE_WAIT_S: Final = 0.4

Figures = TypeVar("Figures")
Mapped = TypeVar("Mapped")


@dataclass(frozen=True, slots=True)
class AnalysisResult(Generic[Figures]):
    """One of three: the `figures` that the process counted, the progress of the count or build that must finish first,
    or the reason why the process cannot answer."""

    figures: Figures | None = None
    progress: BuildProgress | None = None
    unavailable_reason: str | None = None

    @property
    def is_waiting(self) -> bool:
        return self.figures is None

    def map(self, convert: Callable[[Figures], Mapped]) -> Mapped | None:
        """Convert the figures, if there are any."""
        return None if self.figures is None else convert(self.figures)

    @property
    def is_nearly_ready(self) -> bool:
        """Whether the process is counting now, so that the browser should request the page again soon."""
        return self.progress is not None and self.progress.phase in {"reading", STARTING.phase}


def to_question_period(period: Period) -> questions.Period:
    return questions.Period(period.first, period.last)


async def await_answer(answer: Awaitable[Figures]) -> AnalysisResult[Figures]:
    try:
        return AnalysisResult(await answer)
    except NotReady as error:
        return AnalysisResult(progress=error.progress or STARTING)
    except AnalysisUnavailable as error:
        return AnalysisResult(unavailable_reason=str(error))
