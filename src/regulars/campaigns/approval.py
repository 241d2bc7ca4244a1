"""Approval: a campaign with many recipients or a high cost needs the approval of a second person.

An approval stores what it covers: the revision of the campaign, the versions of its segments, and the most recipients
and the highest cost. It is void once the campaign or one of its segments has changed.
"""

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

import msgspec

from regulars.accounts.audit.log import is_person
from regulars.accounts.team import identify_members
from regulars.campaigns import queries
from regulars.campaigns.approval_rule import find_excess, load_rule, require_amounts
from regulars.campaigns.confirmed_numbers import Cost, RecipientsAndCost, read_cost, read_question, write_cost
from regulars.campaigns.definition import Definition, read_definition
from regulars.campaigns.errors import ApprovalNeeded
from regulars.campaigns.model import CampaignRow, changers_of, most_of
from regulars.conditions.tree import InSegment
from regulars.kit.db import Tx
from regulars.kit.etag import etag_of, require_etag
from regulars.kit.ids import SEGMENT
from regulars.kit.refusals import NotPossible
from regulars.segments.saved.manage import find_changers as find_segment_changers
from regulars.segments.saved.resolve import load_context


class Approval(NamedTuple):
    """A valid approval: who gave it, and the most that it covers."""

    by: str
    most: RecipientsAndCost


async def approve(
    tx: Tx,
    organization_id: UUID,
    campaign_id: UUID,
    *,
    by: str | None,
    recipients: int,
    cost: Cost | None = None,
    etag: str | None = None,
) -> CampaignRow:
    """Approve that the campaign is sent to `recipients` at `cost`, with its margin on top. `by` must not be a person
    who changed it; `etag` identifies what the page showed (`etag_part`)."""
    row, document = await queries.lock_campaign(tx, organization_id, campaign_id)
    if not row.can_be_approved:
        raise NotPossible(f"Only a campaign that has not started can be approved; this one is {row.state}.")
    definition = read_definition(document.encode())
    require_amounts(cost)
    require_etag(await etag_part(tx, organization_id, row, definition), etag)
    refusal = await why_not_approver(tx, organization_id, row, definition, by=by)
    if refusal is not None:
        raise NotPossible(refusal)
    most = most_of(RecipientsAndCost(recipients, cost), definition.margin_percent)
    return await _save_approval(tx, organization_id, row, definition, by=by, most=most)


async def require_approval(
    tx: Tx, organization_id: UUID, row: CampaignRow, definition: Definition, most: RecipientsAndCost, *, by: str | None
) -> None:
    """Raises `ApprovalNeeded` unless the campaign may be sent."""
    why = await why_approval_needed(tx, organization_id, row, definition, most, by=by)
    if why is not None:
        raise ApprovalNeeded(why)


async def why_approval_needed(
    tx: Tx, organization_id: UUID, row: CampaignRow, definition: Definition, most: RecipientsAndCost, *, by: str | None
) -> str | None:
    """Why `most` may not be sent without another approval, as a sentence; None if it may.

    This is the only check of the limits. `most` is what may be sent: at a confirmation the confirmed numbers with the
    margin, at the start the counted numbers. `by` confirmed them, so an approval of theirs does not count.
    """
    rule = await load_rule(tx, organization_id)
    why = find_excess(rule, most)
    if why is None:
        return None
    approval = await find_approval(tx, organization_id, row, definition)
    if approval is None or approval.by == by:
        return why
    return find_excess(rule, most, approval.most)


class Objection(NamedTuple):
    """Why a paused campaign needs an approval before it is resumed, and why this person cannot give it with their
    answer to the campaign's question (None if they can)."""

    why: str
    refusal: str | None


async def find_objection(
    tx: Tx, organization_id: UUID, row: CampaignRow, definition: Definition, most: RecipientsAndCost, *, by: str | None
) -> Objection | None:
    """What prevents `by` from resuming the campaign; None if nothing does."""
    confirmer = row.confirmed_by if row.question is None else by
    why = await why_approval_needed(tx, organization_id, row, definition, most, by=confirmer)
    if why is None:
        return None
    if by == row.confirmed_by:
        return Objection(why, "Another person than the one who confirmed the campaign must answer.")
    question = read_question(row.question)
    if question is not None and question.counted != etag_of(await etag_part(tx, organization_id, row, definition)):
        return Objection(
            why, "The segments changed after the question; another person must review and approve it anew."
        )
    return Objection(why, await why_not_approver(tx, organization_id, row, definition, by=by))


async def approve_by_answer(
    tx: Tx,
    organization_id: UUID,
    row: CampaignRow,
    definition: Definition,
    most: RecipientsAndCost,
    *,
    by: str | None,
    is_shown: bool,
) -> bool:
    """Save the approval of a person who answers a question that they saw (`is_shown`), and return whether the campaign
    needed one. Raises `ApprovalNeeded` if they cannot give it."""
    objection = await find_objection(tx, organization_id, row, definition, most, by=by)
    if objection is None:
        return False
    if objection.refusal is not None or not is_shown:
        raise ApprovalNeeded(objection.why)
    await _save_approval(tx, organization_id, row, definition, by=by, most=most)
    return True


def most_of_fixed(row: CampaignRow, definition: Definition) -> RecipientsAndCost:
    """The most that is sent to a fixed audience. Its recipients are counted once all of them are stored."""
    most = most_of(
        RecipientsAndCost(row.confirmed_recipients or 0, read_cost(row.confirmed_cost)), definition.margin_percent
    )
    return most if row.recipients is None else most._replace(recipients=row.recipients)


async def find_objection_to_fixed(
    tx: Tx, organization_id: UUID, row: CampaignRow, definition: Definition, *, by: str | None
) -> Objection | None:
    """Why a campaign with a fixed audience needs an approval before it is resumed, because a limit may be newer than
    its start. A segment that changed since changes nothing for its recipients."""
    approval = _stored_approval(row)
    covered = None if approval is None or approval.by == row.confirmed_by else approval.most
    why = find_excess(await load_rule(tx, organization_id), most_of_fixed(row, definition), covered)
    if why is None:
        return None
    if by == row.confirmed_by:
        return Objection(why, "Another person than the one who confirmed the campaign must resume it.")
    return Objection(why, await why_not_approver(tx, organization_id, row, definition, by=by))


async def approve_fixed_audience(
    tx: Tx, organization_id: UUID, row: CampaignRow, definition: Definition, *, by: str | None
) -> None:
    """Save the approval of a person who resumes a campaign with a fixed audience, if it needs one. Raises
    `ApprovalNeeded` if they cannot give it."""
    objection = await find_objection_to_fixed(tx, organization_id, row, definition, by=by)
    if objection is None:
        return
    if objection.refusal is not None:
        raise ApprovalNeeded(f"{objection.why} {objection.refusal}")
    await _save_approval(tx, organization_id, row, definition, by=by, most=most_of_fixed(row, definition))


async def find_approval(tx: Tx, organization_id: UUID, row: CampaignRow, definition: Definition) -> Approval | None:
    """The approval of the campaign; None without one, or if the campaign or a segment has changed since."""
    approval = _stored_approval(row)
    if approval is None:
        return None
    return approval if _approved_versions(row) == await _find_versions(tx, organization_id, definition) else None


def _approved_versions(row: CampaignRow) -> dict[str, int]:
    """The versions of the segments that the last approval covers, also if the campaign has changed since."""
    return msgspec.json.decode(row.approved_segments or "{}", type=dict[str, int])


def _stored_approval(row: CampaignRow) -> Approval | None:
    """The approval of this revision of the campaign, also if a segment has changed since."""
    if row.approved_by is None or row.approved_revision != row.revision or row.approved_recipients is None:
        return None
    return Approval(row.approved_by, RecipientsAndCost(row.approved_recipients, read_cost(row.approved_cost)))


async def why_not_approver(
    tx: Tx, organization_id: UUID, row: CampaignRow, definition: Definition, *, by: str | None
) -> str | None:
    """Why this person cannot approve the campaign, as a sentence; None if they can."""
    if by is None or not is_person(by):
        return "Only a member of the organization can approve a campaign."
    if by in await find_changers(tx, organization_id, row, definition):
        return "Another person than those who changed the campaign or its segments must approve it."
    return None


async def find_changers(tx: Tx, organization_id: UUID, row: CampaignRow, definition: Definition) -> set[str]:
    """Who changed the campaign, or its segments since the last approval; a segment that this did not cover, since the
    campaign was created. Who wrote the campaign chose its segments as they were then."""
    approved = _approved_versions(row)
    known = {
        identifier: approved.get(SEGMENT.encode(identifier))
        for identifier in SEGMENT.decode_all(await _find_versions(tx, organization_id, definition))
    }
    segment_changers = await find_segment_changers(tx, organization_id, known, since=row.created_at)
    return await identify_members(tx, organization_id, {*changers_of(row), *segment_changers})


async def _save_approval(
    tx: Tx, organization_id: UUID, row: CampaignRow, definition: Definition, *, by: str | None, most: RecipientsAndCost
) -> CampaignRow:
    versions = await _find_versions(tx, organization_id, definition)
    row = row._replace(
        approved_revision=row.revision,
        approved_by=by,
        approved_at=tx.now,
        approved_recipients=most.recipients,
        approved_cost=write_cost(most.cost),
        approved_segments=msgspec.json.encode(versions).decode(),
    )
    await queries.update_approval(tx, organization_id, row)
    return row


async def etag_part(tx: Tx, organization_id: UUID, row: CampaignRow, definition: Definition) -> object:
    """What an approval depends on: the revision of the campaign and the versions of its segments."""
    return row.revision, sorted((await _find_versions(tx, organization_id, definition)).items())


async def _find_versions(tx: Tx, organization_id: UUID, definition: Definition) -> Mapping[str, int]:
    """The versions of the segments of a campaign, and of the segments to which these refer."""
    named = [InSegment(id=segment_id) for segment_id in (*definition.include, *definition.exclude)]
    context = await load_context(tx, organization_id, named)
    return {segment_id: segment.version for segment_id, segment in context.segments.items()}
