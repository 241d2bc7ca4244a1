"""Asks before a segment is saved that live journeys or scheduled campaigns use: how many customers the new version adds
to each of them and removes. The form of the question carries the draft's etag and the numbers. If another draft or
other numbers are confirmed than those that were shown, the question is asked again."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from uuid import UUID

import msgspec
from starlette.responses import Response

from regulars.conditions.check import blocking_faults
from regulars.conditions.tree import Any, Condition, Group, InSegment, Nothing
from regulars.kit.db import Tx
from regulars.kit.etag import etag_of
from regulars.segments.analysis.client import DEADLINE_S, Analysis
from regulars.segments.analysis.protocol import AnalysisUnavailable, NotReady, SegmentQuery
from regulars.segments.definition import Definition, DefinitionRefused
from regulars.segments.pages.figures import MembershipDifference, TimeBudget, build_difference, find_difference
from regulars.segments.saved.manage import find_faults_of_draft
from regulars.segments.saved.model import Segment
from regulars.segments.saved.resolve import load_context, resolve
from regulars.segments.saved.uses import PATH, ActiveUser, FindActiveUsers, find_active_users
from regulars.web.csrf import FIELD as TOKEN_FIELD
from regulars.web.form import FormState
from regulars.web.render import render
from regulars.web.visit import Visit

# The field with what the user confirmed: the etag of the draft and the numbers, as the question showed them.
CONFIRMED_FIELD: Final = "confirmed"
# The question is asked again if a number differs by more than this share of the number that was shown.
TOLERANCE_PERCENT: Final = 5
# The numbers of further journeys and campaigns are not counted.
USERS_SHOWN_MAX: Final = 20
_PERCENT: Final = 100
_DIGITS_MAX: Final = 12
_ID_BYTES: Final = 16
# Matches no customer.
_NO_CUSTOMER: Final = Any(of=())


class _NewVersion(NamedTuple):
    """The next conditions of a segment; `segment_ids` has its id and those of the segments that refer to it."""

    id: str
    match: Group
    segment_ids: frozenset[str]


class _Change(NamedTuple):
    """What the new version changes for one user of the segment, still to be counted."""

    user: ActiveUser
    queries: tuple[SegmentQuery, SegmentQuery]


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedChange:
    """`lost` are the customers in a journey who leave before the journey's next branch checks the segment. Numbers that
    cannot be counted now are None."""

    user: ActiveUser
    difference: MembershipDifference | None
    lost: int | None

    @property
    def numbers(self) -> tuple[int | None, ...]:
        difference = self.difference
        return (None, None, self.lost) if difference is None else (difference.joining, difference.leaving, self.lost)


class SaveQuestion:
    def __init__(self, analysis: Analysis, find_users: Mapping[str, FindActiveUsers]) -> None:
        self._analysis = analysis
        self._find_users = find_users

    async def ask(self, visit: Visit, segment: Segment, definition: Definition) -> Response | None:
        """The question; None if nothing live uses the segment, or the user confirmed this draft with these numbers."""
        async with visit.database.reading() as tx:
            faults = await find_faults_of_draft(tx, visit.organization_id, definition, segment_id=segment.row.id)
            if blocking := blocking_faults(faults):
                raise DefinitionRefused(blocking)
            users, segment_ids = await find_active_users(tx, visit.organization_id, segment.row.id, self._find_users)
            if not users:
                return None
            shown = users[:USERS_SHOWN_MAX]
            # A definition with a fault matches no customer.
            is_faulty = bool((await resolve(tx, visit.organization_id, definition.match)).faults)
            new = _NewVersion(segment.id, _NO_CUSTOMER if is_faulty else definition.match, segment_ids)
            changes = await _find_changes(tx, visit.organization_id, new, shown)
        time_budget = TimeBudget(DEADLINE_S)
        counted = [await self._count(visit.organization_id, change, time_budget) for change in changes]
        etag = etag_of((definition, segment.row.version, [user.use.path for user in users]))
        numbers = [number for change in counted for number in change.numbers]
        if is_confirmed(visit.form.get(CONFIRMED_FIELD, ""), etag, numbers):
            return None
        own = {TOKEN_FIELD, CONFIRMED_FIELD}
        fields = [(name, value) for name, values in visit.form_lists.items() for value in values if name not in own]
        return render(
            visit,
            "segments/save_question.html",
            form=FormState(),
            segment=segment,
            here=visit.url(PATH, segment.id),
            changes=counted,
            more=len(users) - len(counted),
            fields=fields,
            confirmed_field=CONFIRMED_FIELD,
            confirmation=write_confirmation(etag, numbers),
            was_asked=CONFIRMED_FIELD in visit.form,
        )

    async def _count(self, organization_id: UUID, change: _Change, time_budget: TimeBudget) -> CountedChange:
        difference = await find_difference(self._analysis, organization_id, change.queries, time_budget)
        at_branch = change.user.at_branch
        lost = None if at_branch is None else 0
        if at_branch:
            lost = await self._count_among(organization_id, change.queries[1], at_branch, time_budget)
        return CountedChange(user=change.user, difference=difference, lost=lost)

    async def _count_among(
        self, organization_id: UUID, query: SegmentQuery, customers: Collection[UUID], time_budget: TimeBudget
    ) -> int | None:
        """How many of these customers the query matches; None if that cannot be counted now."""
        wanted, found = {customer.bytes for customer in customers}, 0
        try:
            async with asyncio.timeout(time_budget.left_s):
                async for piece in self._analysis.stream_audience(organization_id, query):
                    ids = piece.profile_ids
                    found += sum(ids[at : at + _ID_BYTES] in wanted for at in range(0, len(ids), _ID_BYTES))
        except (NotReady, AnalysisUnavailable, TimeoutError):
            return None
        return found


async def _find_changes(tx: Tx, organization_id: UUID, new: _NewVersion, users: Sequence[ActiveUser]) -> list[_Change]:
    context = await load_context(tx, organization_id, [user.match for user in users])
    current = {key: found.match for key, found in context.segments.items() if key in new.segment_ids}
    changes = []
    for user in users:
        after = with_new_version(user.match, new.id, new.match, current)
        queries = await build_difference(tx, organization_id, before=user.match, after=Any(of=(after,)))
        changes.append(_Change(user, queries))
    return changes


def with_new_version(condition: Condition, segment_id: str, match: Group, current: Mapping[str, Group]) -> Condition:
    """The condition as it will read when the segment has a new version: each reference to the segment becomes the
    conditions of that version. `current` has the conditions of the segments that refer to it, which are put in the same
    way in the place of references to them."""
    if isinstance(condition, Group):
        inner = tuple(with_new_version(each, segment_id, match, current) for each in condition.of)
        return msgspec.structs.replace(condition, of=inner)
    if not isinstance(condition, InSegment) or condition.id not in current:
        return condition
    saved = current[condition.id]
    members = match if condition.id == segment_id else with_new_version(saved, segment_id, match, current)
    return members if condition.is_ else Nothing(of=(members,))


def write_confirmation(etag: str, numbers: Collection[int | None]) -> str:
    return " ".join([etag, *map(str, numbers)])


def is_confirmed(confirmation: str, etag: str, numbers: Collection[int | None]) -> bool:
    """Whether the user confirmed this draft with about these numbers."""
    shown_etag, *shown = confirmation.split(" ")
    if shown_etag != etag or len(shown) != len(numbers):
        return False
    return all(_is_near(text, number) for text, number in zip(shown, numbers, strict=True))


def _is_near(shown: str, number: int | None) -> bool:
    if number is None or not shown.isdecimal() or len(shown) > _DIGITS_MAX:
        return shown == str(number)
    return abs(number - int(shown)) * _PERCENT <= int(shown) * TOLERANCE_PERCENT
