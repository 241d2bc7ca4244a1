"""Asks before a segment is saved that live journeys or scheduled campaigns use: how many customers the new version adds
to each of them and removes. The form of the question carries the draft's etag and the numbers. If another draft or
other numbers are confirmed than those that were shown, the question is asked again."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple
from uuid import UUID

import msgspec
from starlette.responses import Response

from regulars.columns.client import DEADLINE_S, Analysis
from regulars.columns.protocol import AnalysisUnavailable, NotReady, SegmentQuery
from regulars.conditions.check import ConditionContext, blocking_faults
from regulars.conditions.documents import DefinitionRefused
from regulars.conditions.tree import Any, Condition, Group, InSegment, order_referenced_segments
from regulars.kit.db import Tx
from regulars.kit.etag import etag_of
from regulars.segments.definition import Definition
from regulars.segments.pages.figures import MembershipDifference, TimeBudget, differ, find_difference
from regulars.segments.saved.manage import find_faults_of_draft
from regulars.segments.saved.model import Segment
from regulars.segments.saved.resolve import ResolvedSegment, add_faults, load_context, query_of, resolve
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


class NewVersion(NamedTuple):
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
    """`rerouted` are the customers in a journey for whom its next branch would decide otherwise. Numbers that cannot be
    counted now are None."""

    user: ActiveUser
    difference: MembershipDifference | None
    rerouted: int | None

    @property
    def numbers(self) -> tuple[int | None, ...]:
        difference = self.difference
        known = (None, None) if difference is None else (difference.joining, difference.leaving)
        return (*known, self.rerouted)


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
            new = NewVersion(segment.id, _NO_CUSTOMER if is_faulty else definition.match, segment_ids)
            changes = await _find_changes(tx, visit.organization_id, new, shown)
        time_budget = TimeBudget(DEADLINE_S)
        counted = [
            CountedChange(user=change.user, difference=None, rerouted=None)
            if time_budget.is_spent
            else await self._count(visit.organization_id, change, time_budget)
            for change in changes
        ]
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
        rerouted = await self._count_among(organization_id, change, time_budget)
        return CountedChange(user=change.user, difference=difference, rerouted=rerouted)

    async def _count_among(self, organization_id: UUID, change: _Change, time_budget: TimeBudget) -> int | None:
        """How many customers before a branch would join or leave; None if that cannot be counted now."""
        if not change.user.at_branch:
            return None if change.user.at_branch is None else 0
        wanted, found = {customer.bytes for customer in change.user.at_branch}, 0
        try:
            async with asyncio.timeout(time_budget.left_s):
                for query in change.queries:
                    async for piece in self._analysis.stream_audience(organization_id, query):
                        ids = piece.profile_ids
                        found += sum(ids[at : at + _ID_BYTES] in wanted for at in range(0, len(ids), _ID_BYTES))
        except (NotReady, AnalysisUnavailable, TimeoutError):
            return None
        return found


async def _find_changes(tx: Tx, organization_id: UUID, new: NewVersion, users: Sequence[ActiveUser]) -> list[_Change]:
    context = await load_context(tx, organization_id, [new.match, *(user.match for user in users)])
    context = with_new_version(context, new)
    changes = []
    for user in users:
        joining, leaving = differ(user.match, _rename(user.match, new.segment_ids))
        changes.append(_Change(user, (_build_query(tx, joining, context), _build_query(tx, leaving, context))))
    return changes


def with_new_version(context: ConditionContext, new: NewVersion) -> ConditionContext:
    """Add the segment as it will be, and the segments that refer to it, under ids of their own: the query has each
    segment once, however many references lead to it."""
    saved = {segment_id: context.segments[segment_id] for segment_id in new.segment_ids & context.segments.keys()}
    renamed = {
        _new_id(segment_id): segment._replace(match=new.match, damage=())
        if segment_id == new.id
        else segment._replace(match=_rename(segment.match, new.segment_ids))
        for segment_id, segment in saved.items()
    }
    return add_faults(replace(context, segments={**context.segments, **renamed}))


def _rename(group: Group, segment_ids: Collection[str]) -> Group:
    """Let the conditions refer to the new versions of these segments."""
    renamed: list[Condition] = []
    for condition in group.of:
        if isinstance(condition, Group):
            renamed.append(_rename(condition, segment_ids))
        elif isinstance(condition, InSegment) and condition.id in segment_ids:
            renamed.append(msgspec.structs.replace(condition, id=_new_id(condition.id)))
        else:
            renamed.append(condition)
    return msgspec.structs.replace(group, of=tuple(renamed))


def _new_id(segment_id: str) -> str:
    return f"{segment_id}:new"


def _build_query(tx: Tx, match: Group, context: ConditionContext) -> SegmentQuery:
    used = order_referenced_segments(match, {key: segment.match for key, segment in context.segments.items()})
    own = replace(context, segments={segment_id: context.segments[segment_id] for segment_id in used})
    return query_of(ResolvedSegment(match=match, context=own, now=tx.now, faults=()))


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
