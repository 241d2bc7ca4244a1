"""The page with the list of segments: the last counted size of each, and the journeys and campaigns that use it."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from starlette.responses import Response

from regulars.columns import lifecycle
from regulars.columns.client import Analysis
from regulars.conditions.tree import All, InSegment
from regulars.kit.clock import monotonic
from regulars.kit.ids import SEGMENT
from regulars.segments.pages.figures import count
from regulars.segments.saved import manage
from regulars.segments.saved.model import SegmentRow, SizeRow
from regulars.segments.saved.resolve import load_context, query_of, resolve
from regulars.segments.saved.sizes import find_last_sizes, store_size
from regulars.segments.saved.uses import PATH, DescribeUses, Use, list_uses
from regulars.segments.suggestions import find_suggestions
from regulars.web.access import Action
from regulars.web.render import redirect, render
from regulars.web.visit import Visit

# How long one request counts segments; the next request counts the remaining segments.
COUNTING_S_MAX: Final = 6.0


class SegmentListRow(NamedTuple):
    """A segment with its last counted size; `public_id` is the API's id, with a prefix."""

    segment: SegmentRow
    size: SizeRow | None
    uses: list[Use]
    fault: str | None

    @property
    def public_id(self) -> str:
        return SEGMENT.encode(self.segment.id)


class Listing:
    def __init__(self, analysis: Analysis, describe_uses: Mapping[str, DescribeUses]) -> None:
        self._analysis = analysis
        self._describe_uses = describe_uses

    async def show(self, visit: Visit) -> Response:
        async with visit.database.reading() as tx:
            segments = await manage.list_segments(tx, visit.organization_id)
            ids = [row.id for row in segments]
            sizes = await find_last_sizes(tx, visit.organization_id, ids)
            uses = await list_uses(tx, visit.organization_id, ids, self._describe_uses)
            # A condition that refers to all segments, to find the faults of each.
            all_segments = All(of=tuple(InSegment(id=SEGMENT.encode(segment_id)) for segment_id in ids))
            referenced = (await load_context(tx, visit.organization_id, [all_segments])).segments
            progress = await lifecycle.find_build_progress(tx, visit.organization_id)
            suggestions = await find_suggestions(tx, visit.organization_id) if visit.may(Action.EDIT_SEGMENTS) else ()
        rows = []
        for row in segments:
            segment = referenced.get(SEGMENT.encode(row.id))
            fault = segment.faults[0].message if segment is not None and segment.faults else None
            rows.append(SegmentListRow(row, sizes.get(row.id), list(uses[row.id]), fault))
        return render(
            visit, "segments/list.html", rows=rows, starts=suggestions, progress=progress, path=visit.url(PATH)
        )

    async def count_all(self, visit: Visit) -> Response:
        """Count the segments until the time is over, those with the oldest count first."""
        async with visit.database.reading() as tx:
            segments = await manage.list_segments(tx, visit.organization_id)
            sizes = await find_last_sizes(tx, visit.organization_id, [row.id for row in segments])
        segments.sort(key=lambda row: sizes[row.id].counted_at.timestamp() if row.id in sizes else 0.0)
        until, counted = monotonic() + COUNTING_S_MAX, 0
        for row in segments:
            if monotonic() > until or not await self._count(visit, row):
                break
            counted += 1
        message = f"{visit.format.number(counted)} of {visit.format.number(len(segments))} segments were counted."
        return redirect(visit, visit.url(PATH), done=message)

    async def _count(self, visit: Visit, row: SegmentRow) -> bool:
        """Count a segment and store its size; False if the analysis process cannot count now."""
        async with visit.database.reading() as tx:
            segment = await manage.load_segment(tx, visit.organization_id, row.id)
            resolved = await resolve(tx, visit.organization_id, segment.definition.match, damage=segment.damage)
            progress = await lifecycle.find_build_progress(tx, visit.organization_id)
        counted = await count(self._analysis, visit.organization_id, query_of(resolved), progress=progress)
        if counted.figures is None:
            return False
        async with visit.database.transaction() as tx:
            await store_size(tx, visit.organization_id, row.id, counted.figures, version=segment.row.version)
        return True
