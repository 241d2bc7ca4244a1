"""Figures of a segment for a page: counted now, or why they cannot be."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from regulars.conditions.tree import All, Nothing, Path
from regulars.kit.clock import monotonic
from regulars.kit.db import Tx
from regulars.segments.analysis.ask import DEADLINE_S, Analysis
from regulars.segments.analysis.model import STARTING, AnalysisAway, Asked, Figures, NotReady
from regulars.segments.columns.model import Progress
from regulars.segments.kept.asked import asked_of
from regulars.segments.kept.model import Segment
from regulars.segments.kept.resolve import Resolved, resolve

# A page comes at once, with what is known by then; what is missing follows when it asks again.
AT_ONCE_S: Final = 0.5
_LEAST_S: Final = 0.02


class Patience:
    """What all questions of one page may take together."""

    def __init__(self, seconds: float) -> None:
        self._until = monotonic() + seconds

    @property
    def left_s(self) -> float:
        """Never nothing: what was asked before may be answered at once."""
        return max(self._until - monotonic(), _LEAST_S)


@dataclass(frozen=True, slots=True)
class Counted:
    """One of the three: figures, the progress of what must be ready first, or the reason why there are none."""

    figures: Figures | None = None
    progress: Progress | None = None
    is_without_columns: bool = False
    away: str | None = None
    counts: Mapping[Path, tuple[int, int]] = field(default_factory=dict)

    @property
    def is_soon(self) -> bool:
        """Whether it is being counted right now, or about to be, so that it is worth asking again soon."""
        return self.progress is not None and self.progress.phase in {"reading", STARTING.phase}


async def count(
    analysis: Analysis,
    organization_id: UUID,
    asked: Asked,
    *,
    progress: Progress | None,
    deadline_s: float = DEADLINE_S,
) -> Counted:
    """`progress` is that of the columns, by the table: without any the analysis process need not even run.

    What takes longer than the deadline goes on: who asks again is told how far it is, and then gets the figures.
    """
    if progress is None:
        return Counted(is_without_columns=True)
    if progress.state == "building":
        return Counted(progress=progress)
    try:
        figures = await analysis.figures(organization_id, asked, deadline_s=deadline_s)
    except NotReady as error:
        return Counted(progress=error.progress, is_without_columns=error.progress is None)
    except AnalysisAway as error:
        return Counted(away=str(error))
    return Counted(figures, counts={one.path: (one.count, one.unreadable) for one in figures.conditions})


@dataclass(frozen=True, slots=True)
class Difference:
    """How many a change would bring in and take out."""

    joining: int
    leaving: int


async def ask_difference(
    tx: Tx, organization_id: UUID, *, draft: Resolved, saved: Segment
) -> tuple[Asked, Asked] | None:
    """What to ask about those who would come, and those who would go; None where something is wrong with either."""
    if draft.faults or saved.faults:
        return None
    before, after = saved.definition.match, draft.match
    # Both are sound, and are only put together to be counted: how deep that is does not matter.
    coming = await resolve(tx, organization_id, All(of=(after, Nothing(of=(before,)))))
    going = await resolve(tx, organization_id, All(of=(before, Nothing(of=(after,)))))
    return asked_of(coming, is_faulty=False), asked_of(going, is_faulty=False)


async def find_difference(
    analysis: Analysis, organization_id: UUID, asked: tuple[Asked, Asked] | None, patience: Patience
) -> Difference | None:
    """None where nothing is asked, or nothing can be counted now."""
    if asked is None:
        return None
    try:
        coming, going = [await analysis.figures(organization_id, one, deadline_s=patience.left_s) for one in asked]
    except (NotReady, AnalysisAway):
        return None
    return Difference(coming.total, going.total)
