"""Counts of a segment for a page, and how a draft differs from the saved version."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Final, NamedTuple
from uuid import UUID

from regulars.conditions.labels import Labels
from regulars.conditions.tree import All, Condition, Group, Nothing, Path
from regulars.kit.clock import monotonic
from regulars.kit.db import Tx
from regulars.segments.analysis.client import DEADLINE_S, Analysis
from regulars.segments.analysis.protocol import STARTING, AnalysisUnavailable, NotReady, SegmentCounts, SegmentQuery
from regulars.segments.columns.model import Progress
from regulars.segments.saved.model import Segment
from regulars.segments.saved.resolve import Resolved, query_of, resolve

# A page is rendered after this time, without the missing counts; it requests them again.
AT_ONCE_S: Final = 0.5
_LEAST_S: Final = 0.02


class Patience:
    """The time that all requests of one page may take together."""

    def __init__(self, seconds: float) -> None:
        self._until = monotonic() + seconds

    @property
    def left_s(self) -> float:
        """Never 0: the response to an earlier request may be ready."""
        return max(self._until - monotonic(), _LEAST_S)


@dataclass(frozen=True, slots=True)
class Counted:
    """One of the three: figures, the progress of what must be ready first, or the reason why there are none."""

    figures: SegmentCounts | None = None
    progress: Progress | None = None
    is_without_columns: bool = False
    unavailable_reason: str | None = None
    counts: Mapping[Path, tuple[int, int]] = field(default_factory=dict)

    @property
    def is_soon(self) -> bool:
        """Whether it is being counted right now, or about to be, so that it is worth asking again soon."""
        return self.progress is not None and self.progress.phase in {"reading", STARTING.phase}


async def count(
    analysis: Analysis,
    organization_id: UUID,
    query: SegmentQuery,
    *,
    progress: Progress | None,
    deadline_s: float = DEADLINE_S,
) -> Counted:
    """`progress` is that of the columns, by the table: without any the analysis process need not even run.

    A count that exceeds the deadline continues: a later request gets its progress, and then the figures.
    """
    if progress is None:
        return Counted(is_without_columns=True)
    if progress.state == "building":
        return Counted(progress=progress)
    try:
        figures = await analysis.figures(organization_id, query, deadline_s=deadline_s)
    except NotReady as error:
        return Counted(progress=error.progress, is_without_columns=error.progress is None)
    except AnalysisUnavailable as error:
        return Counted(unavailable_reason=str(error))
    return Counted(figures, counts={one.path: (one.count, one.unreadable) for one in figures.conditions})


@dataclass(frozen=True, slots=True)
class Difference:
    """How many a change would bring in and take out."""

    joining: int
    leaving: int


async def ask_difference(
    tx: Tx, organization_id: UUID, *, draft: Resolved, saved: Segment
) -> tuple[SegmentQuery, SegmentQuery] | None:
    """What to ask about those who would come, and those who would go; None where something is wrong with either."""
    if draft.faults or saved.faults:
        return None
    before, after = saved.definition.match, draft.match
    # Both are sound, and are only put together to be counted: how deep that is does not matter.
    coming = await resolve(tx, organization_id, All(of=(after, Nothing(of=(before,)))))
    going = await resolve(tx, organization_id, All(of=(before, Nothing(of=(after,)))))
    return query_of(coming, is_faulty=False), query_of(going, is_faulty=False)


async def find_difference(
    analysis: Analysis, organization_id: UUID, query: tuple[SegmentQuery, SegmentQuery] | None, patience: Patience
) -> Difference | None:
    """None without a query, or if nothing can be counted now."""
    if query is None:
        return None
    try:
        coming, going = [await analysis.figures(organization_id, one, deadline_s=patience.left_s) for one in query]
    except (NotReady, AnalysisUnavailable):
        return None
    return Difference(coming.total, going.total)


class Change(NamedTuple):
    """A line that came or went, with the group it stands in."""

    is_added: bool
    words: str


def changes(saved: Group, draft: Group, words: Labels) -> list[Change]:
    before, after = list(_lines(saved, words)), list(_lines(draft, words))
    found: list[Change] = []
    for verb, from_, to, since, until in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if verb in {"delete", "replace"}:
            found += [Change(False, line) for line in before[from_:to]]
        if verb in {"insert", "replace"}:
            found += [Change(True, line) for line in after[since:until]]
    return found


def _lines(condition: Condition, words: Labels, inside: str = "") -> Iterator[str]:
    if isinstance(condition, Group):
        here = words.sentence(condition)
        yield f"{inside}{here}"
        for inner in condition.of:
            yield from _lines(inner, words, f"{inside}{here}: ")
    else:
        yield f"{inside}{words.sentence(condition)}"
