"""Counts a segment for a page, and finds how a draft of a segment differs from its saved version."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from uuid import UUID

from regulars.columns.client import DEADLINE_S, Analysis
from regulars.columns.model import BuildProgress
from regulars.columns.protocol import STARTING, AnalysisUnavailable, NotReady, SegmentCounts, SegmentQuery
from regulars.conditions.labels import Labels
from regulars.conditions.tree import All, Condition, Group, Nothing, Path
from regulars.kit.clock import monotonic
from regulars.kit.db import Tx
from regulars.kit.text import diff_lines
from regulars.segments.saved.model import Segment
from regulars.segments.saved.resolve import ResolvedSegment, query_of, resolve

# After this time a page is rendered without the missing counts, and the browser requests them again.
PAGE_WAIT_S: Final = 0.5
_TIMEOUT_S_MIN: Final = 0.02


class TimeBudget:
    """The time that all requests of one page to the analysis process may take together."""

    def __init__(self, seconds: float) -> None:
        self._until = monotonic() + seconds

    @property
    def left_s(self) -> float:
        """The remaining time; never 0, since an earlier request may have left a response that is ready."""
        return max(self._until - monotonic(), _TIMEOUT_S_MIN)

    @property
    def is_spent(self) -> bool:
        return monotonic() >= self._until


@dataclass(frozen=True, slots=True)
class CountResult:
    """One of four: the counts (`figures`); the progress of the build of the columnar data, a copy of the customers;
    `is_without_columns`, if no build was started; or the reason why the analysis process cannot answer. `counts` has
    for each condition the number of matching customers, and of customers with a value that cannot be parsed."""

    figures: SegmentCounts | None = None
    progress: BuildProgress | None = None
    is_without_columns: bool = False
    unavailable_reason: str | None = None
    counts: Mapping[Path, tuple[int, int]] = field(default_factory=dict)

    @property
    def is_nearly_ready(self) -> bool:
        """Whether the analysis process is counting or starting, so that the browser should ask again soon."""
        return self.progress is not None and self.progress.phase in {"reading", STARTING.phase}


async def count(
    analysis: Analysis,
    organization_id: UUID,
    query: SegmentQuery,
    *,
    progress: BuildProgress | None,
    deadline_s: float = DEADLINE_S,
) -> CountResult:
    """Count the members. `progress` is the stored progress of the columnar data; if it is None, no request is sent,
    since the analysis process may not run.

    A count that exceeds the deadline continues; later requests get its progress, and then the counts.
    """
    if progress is None:
        return CountResult(is_without_columns=True)
    if progress.state == "building":
        return CountResult(progress=progress)
    try:
        figures = await analysis.count_segment(organization_id, query, deadline_s=deadline_s)
    except NotReady as error:
        return CountResult(progress=error.progress, is_without_columns=error.progress is None)
    except AnalysisUnavailable as error:
        return CountResult(unavailable_reason=str(error))
    return CountResult(
        figures,
        counts={condition.path: (condition.count, condition.unreadable) for condition in figures.conditions},
    )


@dataclass(frozen=True, slots=True)
class MembershipDifference:
    """How many customers a change would add to the segment and remove from it."""

    joining: int
    leaving: int


async def build_difference_queries(
    tx: Tx, organization_id: UUID, *, draft: ResolvedSegment, saved: Segment
) -> tuple[SegmentQuery, SegmentQuery] | None:
    """Build the queries for customers who would join and who would leave the segment; None if either definition has a
    fault."""
    if draft.faults or saved.faults:
        return None
    # Both are valid, and are combined only to be counted, so the combined depth may exceed the limit.
    joining, leaving = [
        await resolve(tx, organization_id, match) for match in differ(saved.definition.match, draft.match)
    ]
    return query_of(joining, is_faulty=False), query_of(leaving, is_faulty=False)


def differ(before: Group, after: Group) -> tuple[Group, Group]:
    """The conditions of customers who match only the later conditions, and of those who match only the earlier."""
    return All(of=(after, Nothing(of=(before,)))), All(of=(before, Nothing(of=(after,))))


async def find_difference(
    analysis: Analysis,
    organization_id: UUID,
    queries: tuple[SegmentQuery, SegmentQuery] | None,
    time_budget: TimeBudget,
) -> MembershipDifference | None:
    """Count both queries; None without queries, or if the analysis process cannot count now."""
    if queries is None:
        return None
    try:
        joining, leaving = [
            await analysis.count_segment(organization_id, query, deadline_s=time_budget.left_s) for query in queries
        ]
    except (NotReady, AnalysisUnavailable):
        return None
    return MembershipDifference(joining.total, leaving.total)


class ConditionChange(NamedTuple):
    """A condition that was added or removed, with the groups that contain it."""

    is_added: bool
    sentence: str


def find_changes(saved: Group, draft: Group, labels: Labels) -> list[ConditionChange]:
    """Find the conditions that the draft removes from the saved version, and those that it adds."""
    lines = diff_lines(list(_lines(saved, labels)), list(_lines(draft, labels)))
    return [ConditionChange(sign == "+", line) for sign, line in lines if sign]


def _lines(condition: Condition, labels: Labels, prefix: str = "") -> Iterator[str]:
    if isinstance(condition, Group):
        sentence = labels.sentence(condition)
        yield f"{prefix}{sentence}"
        for inner in condition.of:
            yield from _lines(inner, labels, f"{prefix}{sentence}: ")
    else:
        yield f"{prefix}{labels.sentence(condition)}"
