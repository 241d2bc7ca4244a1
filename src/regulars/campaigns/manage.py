"""Creates, changes, schedules, pauses, resumes, cancels and archives campaigns."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

import msgspec

from regulars.campaigns import queries
from regulars.campaigns.approval import approve_by_answer, approve_fixed_audience, etag_part, require_approval
from regulars.campaigns.approval_rule import require_amounts
from regulars.campaigns.check import CheckContext, attribute_keys, find_faults
from regulars.campaigns.confirmed_numbers import Cost, Question, RecipientsAndCost, read_cost, read_question, write_cost
from regulars.campaigns.definition import Definition, SendNow, read_definition, read_stored_definition, write_definition
from regulars.campaigns.errors import QuestionNotAnswered
from regulars.campaigns.model import (
    ACTIVE,
    EDITABLE,
    KIND,
    STOPPABLE,
    CampaignRow,
    CampaignState,
    add_changer,
    changers_of,
    end_of,
    most_of,
    needed_by,
    start_of,
)
from regulars.campaigns.run.discard import discard_audience
from regulars.campaigns.run.finish import close_waiting_totals, unqueue_texts
from regulars.conditions.campaign_names import find_campaign_names
from regulars.conditions.check import Fault
from regulars.conditions.documents import DefinitionRefused
from regulars.conditions.tree import InSegment
from regulars.kit.db import Tx
from regulars.kit.etag import require_etag
from regulars.kit.ids import CAMPAIGN, SEGMENT, new_uuid
from regulars.kit.refusals import NotFound, NotPossible
from regulars.links.origin_kind import OriginKind
from regulars.segments.saved.resolve import load_context
from regulars.segments.saved.uses import Use, register_uses
from regulars.texts.facts import MessagesChanged
from regulars.texts.settings.store import load_texting
from regulars.texts.stops import has_dialled_texts, lock_claims
from regulars.texts.stops import resume as resume_texts
from regulars.work.outbox import register_interest, withdraw_interest

PATH: Final = "/campaigns"
RESTORED_REASON: Final = "A backup was restored. If you resume, some recipients may get the text twice."
_COPY_CHARACTERS_MAX: Final = 110
# How many campaigns the editor of segment conditions offers.
CHOICES_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class Campaign:
    row: CampaignRow
    definition: Definition
    faults: list[Fault]
    # Whether it can be changed now.
    is_editable: bool
    # Whether parts of the stored definition are not valid, which the definition here lacks.
    is_damaged: bool = False


async def create_campaign(
    tx: Tx, organization_id: UUID, definition: Definition, *, created_by: str | None = None
) -> Campaign:
    """Create a draft, which may have faults."""
    changed_by = add_changer((), created_by)
    row = CampaignRow(new_uuid(), definition.name, tx.now, created_by, tx.now, created_by, changed_by=changed_by)
    await queries.insert_campaign(tx, organization_id, row, definition=write_definition(definition).decode())
    await _register_uses(tx, organization_id, row, definition)
    return await _with_faults(tx, organization_id, row, definition)


async def update_campaign(
    tx: Tx,
    organization_id: UUID,
    campaign_id: UUID,
    definition: Definition,
    *,
    created_by: str | None = None,
    etag: str | None = None,
) -> Campaign:
    """Change a draft, or a campaign that was paused before its first text was dialled, which becomes a draft again and
    loses its audience.

    `etag` identifies the revision that the user edited. A change voids the confirmation and the approval.

    After an automatic pause, texts with the old wording may still be queued, and a worker may be claiming some. So a
    change begins like a stop: with its locks, no claim is under way when the texts are checked and deleted.
    """
    row = await _lock_to_stop(tx, organization_id, campaign_id)
    if not await _may_be_changed(tx, organization_id, row):
        raise NotPossible(
            f"A campaign that is {row.state} cannot be changed; duplicate it, or pause it before its first text."
        )
    require_etag(row.revision, etag)
    row = _changed(row, created_by)._replace(name=definition.name)
    await queries.update_definition(tx, organization_id, row, definition=write_definition(definition).decode())
    if row.state == CampaignState.PAUSED:
        await withdraw_interest(tx, organization_id, MessagesChanged, needed_by=needed_by(row.id))
        await unqueue_texts(tx, organization_id, campaign_id, CampaignState.PAUSED)
        row = await _save(tx, organization_id, _as_draft(row))
    await _register_uses(tx, organization_id, row, definition)
    if row.frozen_at is not None and await discard_audience(tx, organization_id, campaign_id):
        row = row._replace(frozen_at=None, recipients=None)
    return await _with_faults(tx, organization_id, row._replace(updated_at=tx.now), definition)


def _changed(row: CampaignRow, by: str | None) -> CampaignRow:
    """The row with the next revision, which voids an approval."""
    return row._replace(revision=row.revision + 1, updated_by=by, changed_by=add_changer(changers_of(row), by))


async def _may_be_changed(tx: Tx, organization_id: UUID, row: CampaignRow) -> bool:
    """Whether the campaign is a draft, or is paused and the provider was called for none of its texts."""
    if row.state == CampaignState.PAUSED and row.frozen_at is not None:
        return not await has_dialled_texts(tx, organization_id, OriginKind.CAMPAIGN, row.id)
    return row.state in EDITABLE


async def load_campaign(tx: Tx, organization_id: UUID, campaign_id: UUID, *, version: int | None = None) -> Campaign:
    row, document = await queries.find_campaign(tx, organization_id, campaign_id)
    if version is not None and version != row.revision:
        raise NotFound("Only the last revision of a campaign is stored.")
    definition, unreadable = read_stored_definition(document)
    campaign = await _with_faults(tx, organization_id, row, definition)
    return replace(campaign, faults=unreadable + campaign.faults, is_damaged=bool(unreadable))


async def list_campaigns(tx: Tx, organization_id: UUID, *, limit: int) -> list[CampaignRow]:
    return await queries.list_campaigns(tx, organization_id, limit=limit)


async def list_choices(tx: Tx, organization_id: UUID) -> list[tuple[str, str]]:
    """The ids and names of the campaigns that a segment condition may refer to, newest first."""
    names = await find_campaign_names(tx, organization_id, (), newest=CHOICES_MAX)
    return [(CAMPAIGN.encode(campaign_id), name) for campaign_id, name in names]


async def name_campaigns(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> dict[UUID, str]:
    return dict(await find_campaign_names(tx, organization_id, ids)) if ids else {}


async def schedule(
    tx: Tx,
    organization_id: UUID,
    campaign_id: UUID,
    *,
    confirmed_recipients: int,
    confirmed_cost: Cost | None = None,
    by: str | None,
    is_now: bool = False,
    etag: str | None = None,
) -> CampaignRow:
    """Confirm a draft: the campaign starts at its scheduled time, or at once with `is_now`, which changes a draft with
    another schedule. At the start its audience is fixed, and the campaign pauses if its recipients or its cost exceed
    the confirmed numbers by more than the margin."""
    row, document = await queries.lock_campaign(tx, organization_id, campaign_id)
    if row.state != CampaignState.DRAFT:
        raise NotPossible(f"This campaign is {row.state} already.")
    if row.frozen_at is not None:
        raise NotPossible("The recipients of its earlier version are still being removed. Try again in a minute.")
    require_etag(row.revision, etag)
    require_amounts(confirmed_cost)
    definition = read_definition(document.encode())
    if is_now and not isinstance(definition.schedule, SendNow):
        definition = msgspec.structs.replace(definition, schedule=SendNow())
        row = _changed(row, by)
    context = await _load_check_context(tx, organization_id, definition)
    if faults := find_faults(definition, context):
        raise DefinitionRefused(faults, "It cannot be sent: ")
    if is_now and context.texting.is_on_hold:
        raise NotPossible("All texts of the organization are paused; release them before you send a campaign.")
    most = most_of(RecipientsAndCost(confirmed_recipients, confirmed_cost), definition.margin_percent)
    await require_approval(tx, organization_id, row, definition, most, by=by)
    if is_now:
        # The worker reads the schedule from the stored definition.
        await queries.update_definition(tx, organization_id, row, definition=write_definition(definition).decode())
    starts_at = start_of(definition, now=tx.now)
    # Lets workers claim the texts of a campaign that was paused and then changed.
    await resume_texts(tx, organization_id, campaign_id)
    await register_interest(tx, organization_id, MessagesChanged, needed_by=needed_by(row.id))
    return await _save(
        tx,
        organization_id,
        row._replace(
            state=CampaignState.SCHEDULED.value,
            reason=None,
            starts_at=starts_at,
            not_after=end_of(definition, starts_at, context.conditions.zone),
            confirmed_recipients=confirmed_recipients,
            confirmed_cost=write_cost(confirmed_cost),
            confirmed_by=by,
            updated_by=by,
        ),
    )


async def pause(
    tx: Tx, organization_id: UUID, campaign_id: UUID, *, by: str | None, reason: str | None = None
) -> CampaignRow:
    """Pause a campaign. After the commit no worker claims its texts for sending."""
    row = await _lock_to_stop(tx, organization_id, campaign_id)
    if row.state not in ACTIVE:
        raise NotPossible(f"Only a campaign that is scheduled or sending can be paused; this one is {row.state}.")
    await unqueue_texts(tx, organization_id, campaign_id, CampaignState.PAUSED)
    return await _save(
        tx,
        organization_id,
        row._replace(state=CampaignState.PAUSED.value, resumes_to=row.state, reason=reason, updated_by=by),
    )


async def pause_restored(tx: Tx, organization_id: UUID) -> int:
    """Pause all active campaigns after a backup was restored, and return how many. Recipients who got the text since
    the backup would get it again, so a user must decide."""
    active = await tx.fetch_column(
        """
        SELECT id FROM campaigns
        WHERE organization_id = %s AND state IN ('scheduled', 'preparing', 'sending')
        ORDER BY id
        """,
        (organization_id,),
    )
    for campaign_id in active:
        await pause(tx, organization_id, campaign_id, by=None, reason=RESTORED_REASON)
    return len(active)


async def resume(
    tx: Tx,
    organization_id: UUID,
    campaign_id: UUID,
    *,
    by: str | None,
    confirmed_recipients: int | None = None,
    confirmed_cost: Cost | None = None,
    shown: Question | None = None,
    etag: str | None = None,
) -> CampaignRow:
    """Continue a paused campaign. `confirmed_recipients` and `confirmed_cost` replace the confirmed numbers, if the
    campaign exceeded those; they answer its question only if they are its numbers. `shown` is the question that the
    user saw and agrees to. Until the audience is fixed,
    `etag` identifies the campaign and the segments of the page (`etag_part`)."""
    row, document = await queries.lock_campaign(tx, organization_id, campaign_id)
    if row.state != CampaignState.PAUSED or row.resumes_to is None or row.not_after is None:
        raise NotPossible(f"Only a paused campaign can be resumed; this one is {row.state}.")
    if tx.now >= row.not_after:
        raise NotPossible("Its last moment of sending has passed; duplicate it to send it again.")
    if shown is not None:
        confirmed_recipients, confirmed_cost = shown.recipients, shown.cost
    question = read_question(row.question)
    _require_answer(row, question, confirmed_recipients, confirmed_cost, is_shown=shown is not None)
    require_amounts(confirmed_cost)
    recipients = row.confirmed_recipients if confirmed_recipients is None else confirmed_recipients
    cost = read_cost(row.confirmed_cost) if confirmed_cost is None else confirmed_cost
    if question is not None:
        recipients, cost = question.numbers
    confirmed_by = row.confirmed_by if question is None else by
    definition = read_definition(document.encode())
    if row.frozen_at is not None:
        await approve_fixed_audience(tx, organization_id, row, definition, by=by)
    else:
        require_etag(await etag_part(tx, organization_id, row, definition), etag)
        most = most_of(RecipientsAndCost(recipients or 0, cost), definition.margin_percent)
        if await approve_by_answer(tx, organization_id, row, definition, most, by=by, is_shown=shown is not None):
            # An approval counts only beside the confirmation of another person.
            confirmed_by = row.confirmed_by
    # Lets workers claim the texts of this campaign again.
    await resume_texts(tx, organization_id, campaign_id)
    resumed = row._replace(state=row.resumes_to, resumes_to=None, reason=None, updated_by=by)
    confirmed = resumed._replace(confirmed_recipients=recipients, confirmed_cost=write_cost(cost))
    return await _save(tx, organization_id, confirmed._replace(confirmed_by=confirmed_by))


def _require_answer(
    row: CampaignRow, question: Question | None, recipients: int | None, cost: Cost | None, *, is_shown: bool
) -> None:
    """Raise if the campaign asks a question that the user did not answer with its numbers, or asks none of those that
    the user saw."""
    is_of_question = question is not None and (recipients, cost or {}) == (question.recipients, question.cost)
    if is_shown and not is_of_question:
        raise QuestionNotAnswered("The numbers changed after you opened the page; nothing was confirmed.", question)
    if question is not None and not is_of_question:
        raise QuestionNotAnswered(f"{row.reason or 'It asks to confirm new numbers.'}", question)


async def cancel(tx: Tx, organization_id: UUID, campaign_id: UUID, *, by: str | None) -> CampaignRow:
    """Cancel a campaign for good. After the commit no worker claims its texts for sending."""
    row = await _lock_to_stop(tx, organization_id, campaign_id)
    if row.state not in STOPPABLE:
        raise NotPossible(f"Only a campaign that is scheduled, sending or paused can be cancelled; it is {row.state}.")
    cancelled = row._replace(
        state=CampaignState.CANCELLED.value, resumes_to=None, reason=None, ended_at=tx.now, updated_by=by
    )
    await register_uses(tx, organization_id, [], kind=KIND, used_by_id=campaign_id)
    await unqueue_texts(tx, organization_id, campaign_id, CampaignState.CANCELLED)
    await close_waiting_totals(tx, organization_id, campaign_id, CampaignState.CANCELLED)
    return await _save(tx, organization_id, cancelled)


async def archive(tx: Tx, organization_id: UUID, campaign_id: UUID, *, by: str | None) -> CampaignRow:
    """Archive a campaign: lists omit it, and its results remain."""
    row, _ = await queries.lock_campaign(tx, organization_id, campaign_id)
    if row.state in STOPPABLE:
        raise NotPossible(f"A campaign that is {row.state} cannot be archived; cancel it first.")
    await register_uses(tx, organization_id, [], kind=KIND, used_by_id=campaign_id)
    return await _save(tx, organization_id, row._replace(is_archived=True, updated_by=by))


async def duplicate(tx: Tx, organization_id: UUID, campaign_id: UUID, *, by: str | None) -> Campaign:
    """Copy a campaign to a new draft, without its start and end times."""
    campaign = await load_campaign(tx, organization_id, campaign_id)
    if campaign.is_damaged:
        raise NotPossible("A part of this campaign cannot be read. Repair it before you copy it.")
    definition = campaign.definition
    name = f"{definition.name[:_COPY_CHARACTERS_MAX]} (copy)"
    copied = msgspec.structs.replace(definition, name=name, schedule=SendNow(), not_after=None)
    return await create_campaign(tx, organization_id, copied, created_by=by)


async def check_definition(tx: Tx, organization_id: UUID, definition: Definition) -> list[Fault]:
    """Find the faults of a definition, given the current segments, attributes and settings."""
    return find_faults(definition, await _load_check_context(tx, organization_id, definition))


async def describe_uses(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> dict[UUID, Use]:
    """Describe campaigns that use a segment, for a person who changes or deletes the segment."""
    effect = "It takes the members of the version that is saved when it starts."
    return {
        row.id: Use(row.name, f"{PATH}/{CAMPAIGN.encode(row.id)}", KIND, row.state, effect)
        for row in await queries.find_campaigns(tx, organization_id, ids)
    }


async def _lock_to_stop(tx: Tx, organization_id: UUID, campaign_id: UUID) -> CampaignRow:
    await lock_claims(tx, organization_id)
    row, _ = await queries.lock_campaign(tx, organization_id, campaign_id)
    return row


async def _save(tx: Tx, organization_id: UUID, row: CampaignRow) -> CampaignRow:
    await queries.update_state(tx, organization_id, row)
    tx.queues_to_wake.update({("campaigns.start", organization_id), ("campaigns", organization_id)})
    return row._replace(question=None, updated_at=tx.now)


def _as_draft(row: CampaignRow) -> CampaignRow:
    """The row as a draft, without the confirmation, which does not apply to a changed definition."""
    draft = row._replace(state=CampaignState.DRAFT.value, resumes_to=None, reason=None, starts_at=None, not_after=None)
    return draft._replace(confirmed_recipients=None, confirmed_cost=None, confirmed_by=None)


async def _with_faults(tx: Tx, organization_id: UUID, row: CampaignRow, definition: Definition) -> Campaign:
    faults = await check_definition(tx, organization_id, definition)
    return Campaign(row, definition, faults, await _may_be_changed(tx, organization_id, row))


async def _load_check_context(tx: Tx, organization_id: UUID, definition: Definition) -> CheckContext:
    segments = [InSegment(id=segment_id) for segment_id in (*definition.include, *definition.exclude)]
    texting = await load_texting(tx, organization_id)
    if texting is None:
        raise NotFound("There is no organization with this id.")
    return CheckContext(
        conditions=await load_context(tx, organization_id, segments, attributes=attribute_keys(definition)),
        texting=texting,
        campaigns={
            row.id
            for row in await queries.find_campaigns(
                tx, organization_id, CAMPAIGN.decode_all(definition.exclude_received)
            )
        },
        now=tx.now,
    )


async def _register_uses(tx: Tx, organization_id: UUID, row: CampaignRow, definition: Definition) -> None:
    """Register the segments as used, so that they cannot be deleted until the campaign has ended."""
    ids = SEGMENT.decode_all({*definition.include, *definition.exclude})
    await register_uses(tx, organization_id, ids, kind=KIND, used_by_id=row.id)
