"""The members of a segment as a page and as a CSV file, and a page of counts for users who may not edit segments."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple
from uuid import UUID

from starlette.responses import Response

from regulars.accounts.audit.exports import export_csv
from regulars.columns import lifecycle
from regulars.columns.client import Analysis
from regulars.columns.protocol import AnalysisUnavailable, CursorExpired, Members, NotReady, SegmentQuery, parse_cursor
from regulars.columns.ranked_source import PAGE_RETRIES_S, ByRank
from regulars.conditions.forms.draft import path_of
from regulars.conditions.labels import STATES
from regulars.conditions.tree import ConsentState, OfAttribute, Path, SalesCondition, walk
from regulars.kit.db import Tx
from regulars.lists.sources import read_all_rows
from regulars.profiles.file_columns import PROFILE_COLUMNS, ListedProfile
from regulars.segments.pages.builder import find_segment
from regulars.segments.pages.figures import PAGE_WAIT_S, count
from regulars.segments.pages.member_rows import MemberRow, find_members, load_member_rows
from regulars.segments.saved.model import Segment
from regulars.segments.saved.resolve import query_of, resolve
from regulars.segments.saved.sizes import list_sizes
from regulars.segments.saved.uses import PATH, DescribeUses, list_uses
from regulars.web.access import Action
from regulars.web.errors import PageNotFound
from regulars.web.render import render
from regulars.web.visit import Visit

PAGE_MEMBERS: Final = 50
# How many members the CSV file requests at once.
CSV_MEMBERS: Final = 500

CSV_CONSENT: Final[Mapping[ConsentState, str]] = {
    "may_be_texted": "SUBSCRIBED",
    "withdrawn": "UNSUBSCRIBED",
    "never_asked": "NEVER_ASKED",
    "do_not_contact": "DO_NOT_CONTACT",
}


class UnreadableCondition(NamedTuple):
    """A condition that cannot parse some values of its attribute or product property (`key`). `place` is its path as
    text, as in the URL."""

    path: Path
    place: str
    key: str
    is_of_products: bool


class MemberPages:
    def __init__(self, analysis: Analysis, describe_uses: Mapping[str, DescribeUses]) -> None:
        self._analysis = analysis
        self._describe_uses = describe_uses

    async def summary(self, visit: Visit) -> Response:
        """The page for users who may not edit segments: counts, and where the segment is used."""
        segment, query = await self._load_query(visit)
        async with visit.database.reading() as tx:
            progress = await lifecycle.find_build_progress(tx, visit.organization_id)
        counted = await count(self._analysis, visit.organization_id, query, progress=progress, deadline_s=PAGE_WAIT_S)
        async with visit.database.reading() as tx:
            sizes = await list_sizes(tx, visit.organization_id, segment.row.id)
            uses = await list_uses(tx, visit.organization_id, [segment.row.id], self._describe_uses)
        return render(
            visit,
            "segments/summary.html",
            segment=segment,
            counted=counted,
            sizes=sizes,
            uses=uses[segment.row.id],
            states=STATES,
            base=visit.url(PATH, segment.id),
        )

    async def show(self, visit: Visit) -> Response:
        """The page of the members, or of the customers with a value that one of the conditions cannot parse."""
        segment, query = await self._load_query(visit)
        unreadable = _read_unreadable(visit, segment)
        cursor = parse_cursor(visit.query.get("after", ""))
        page: Members | None = None
        unavailable_reason: str | None = None
        path = None if unreadable is None else unreadable.path
        try:
            page = await self._analysis.members(
                visit.organization_id, query, after=cursor, limit=PAGE_MEMBERS, unreadable=path
            )
        except (NotReady, AnalysisUnavailable, CursorExpired) as error:
            unavailable_reason = str(error)
        people: list[MemberRow] = []
        if page is not None:
            async with visit.database.reading() as tx:
                people = await load_member_rows(tx, visit, page.profile_ids)
        page_values: dict[str, Any] = {"people": people, "found": page, "unreadable": unreadable}
        return _render_members(visit, segment, unavailable_reason, is_first=cursor is None, **page_values)

    async def export(self, visit: Visit) -> Response:
        segment, query = await self._load_query(visit)

        async def load(tx: Tx, ids: Sequence[UUID]) -> list[ListedProfile]:
            members = await find_members(tx, visit.organization_id, ids)
            return [ListedProfile(profile, profile.phone_number, CSV_CONSENT[state]) for profile, state in members]

        request = partial(self._analysis.members, visit.organization_id, query)
        source = ByRank(request=request, load=load, retries_s=PAGE_RETRIES_S)
        try:
            first = await source.page(visit.database.reading, limit=CSV_MEMBERS)
        except (NotReady, AnalysisUnavailable) as error:
            no_page: dict[str, Any] = {"people": [], "found": None, "unreadable": None}
            return _render_members(visit, segment, str(error), status=503, is_first=True, **no_page)
        rows = read_all_rows(source, visit.database.reading, limit=CSV_MEMBERS, first=first)
        cells = (PROFILE_COLUMNS.cells(it, sees_personal=visit.sees_personal) async for it in rows)
        header, audit_details = PROFILE_COLUMNS.header(), {"version": segment.row.version}
        return export_csv(
            visit, "segment.export", f"{segment.id}.csv", header, cells, subject=segment.id, after=audit_details
        )

    async def _load_query(self, visit: Visit) -> tuple[Segment, SegmentQuery]:
        async with visit.database.reading() as tx:
            segment = await find_segment(tx, visit)
            match, damage = segment.definition.match, segment.damage
            return segment, query_of(await resolve(tx, visit.organization_id, match, damage=damage))


def _render_members(
    visit: Visit, segment: Segment, unavailable_reason: str | None, *, status: int = 200, **values: Any
) -> Response:
    base = visit.url(PATH, segment.id)
    values |= {"segment": segment, "unavailable_reason": unavailable_reason, "base": base}
    return render(visit, "segments/members.html", status=status, **values)


def _read_unreadable(visit: Visit, segment: Segment) -> UnreadableCondition | None:
    """Read which condition the URL names; only users who may edit segments may do so."""
    place = visit.query.get("unreadable")
    if place is None:
        return None
    visit.require(Action.EDIT_SEGMENTS)
    path = path_of(place)
    condition = None if path is None else dict(walk(segment.definition.match)).get(path)
    if path is None or condition is None:
        raise PageNotFound("The segment has no such condition; it may have been changed.")
    if isinstance(condition, OfAttribute):
        return UnreadableCondition(path, place, condition.key, is_of_products=False)
    if isinstance(condition, SalesCondition) and condition.property is not None:
        return UnreadableCondition(path, place, condition.property.key, is_of_products=True)
    raise PageNotFound("The condition reads no value of a declared type.")
