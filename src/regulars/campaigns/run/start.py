"""Starts campaigns: gets the audience from the analysis process, compares it with the numbers that a user confirmed,
and stores it. From then on the audience is fixed (frozen)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final
from uuid import UUID

import msgspec

from regulars.campaigns.approval import etag_part, why_approval_needed
from regulars.campaigns.audience import resolve_definition
from regulars.campaigns.confirmed_numbers import Question, RecipientsAndCost, read_cost
from regulars.campaigns.definition import SendAtLocalTime, read_definition
from regulars.campaigns.estimate import estimate_counts
from regulars.campaigns.local_times import FREEZE_BEFORE, find_first_time
from regulars.campaigns.model import PIECE_IDS, WITHOUT_CONSENT, CampaignState, most_of, start_of
from regulars.campaigns.queries import find_campaign
from regulars.campaigns.retention import split_ids
from regulars.campaigns.run import queries
from regulars.campaigns.run.finish import end_campaign
from regulars.campaigns.run.queries import DueCampaign
from regulars.campaigns.totals import Differences, TotalKey
from regulars.columns.client import AnalysisQueue
from regulars.columns.protocol import AnalysisUnavailable, AudienceCounts, ConsentSplit, NotReady, SegmentQuery
from regulars.conditions.documents import DefinitionRefused
from regulars.experiments.arms import NO_ARM
from regulars.experiments.holdout.settings import is_holdout_being_drawn
from regulars.kit import failpoint
from regulars.kit.db import Tx
from regulars.kit.etag import etag_of
from regulars.kit.ids import new_uuid
from regulars.segments.audience import AudienceRefused
from regulars.work.outbox import behind_since
from regulars.work.queue import Due, WaitLimit

MAY_BE_TEXTED: Final = "may_be_texted"
# How many customers' texts are rendered to estimate the cost; more than on a page, where a user waits for the result.
COST_SAMPLE: Final = 2_000
_RETRY: Final = timedelta(seconds=5)
# The columnar copy of the analysis process lags by seconds, and the selection of a global holdout takes minutes. A
# start waits for both, but not longer than `_BEHIND_MAX`, because an event that no listener handles would delay it for
# ever.
_BEHIND_RETRY: Final = timedelta(seconds=0.5)
_BEHIND_MAX: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class StartClaim:
    campaign_id: UUID
    query: SegmentQuery
    # The etag of the campaign and its segments that the query was made of.
    etag: str


@dataclass(frozen=True, slots=True)
class FrozenAudience:
    """The audience as of one snapshot: its counts, and its profile ids of 16 bytes, in one piece per transaction."""

    counts: AudienceCounts
    pieces: list[bytes]


@dataclass(frozen=True, slots=True)
class NotFrozen:
    """The audience could not be fixed; the worker tries again later."""

    reason: str


class StartQueue(AnalysisQueue[StartClaim, FrozenAudience | NotFrozen]):
    name = "campaigns.start"
    claim_for = timedelta(minutes=2)
    due = Due(
        table="campaigns",
        column="freeze_at",
        waits=(
            WaitLimit(at_most=(claim_for,), condition="state = 'preparing'", waits_again=True),
            # A user starts it at once, or its start waits for what the reason says.
            WaitLimit(
                at_most=(_RETRY,), condition="state = 'scheduled' AND (freeze_at <= updated_at OR reason IS NOT NULL)"
            ),
        ),
    )

    async def claim(
        self, tx: Tx, organization_id: UUID, *, limit: int, lowest: int, owner: UUID, until: datetime
    ) -> Sequence[StartClaim]:
        del lowest  # all claims have the same priority
        claimed: list[StartClaim] = []
        oldest_change = await behind_since(tx, organization_id, at_least=timedelta(0))
        is_pending = await is_holdout_being_drawn(tx, organization_id)
        for campaign in await queries.claim_starting(tx, organization_id, limit=limit):
            if tx.now >= campaign.not_after:
                await end_campaign(tx, organization_id, campaign)
                continue
            if not await _is_readable(tx, organization_id, campaign):
                continue
            reason = _why_wait(oldest_change, campaign, tx.now, is_pending=is_pending)
            if reason is not None:
                await queries.retry_freezing(
                    tx, organization_id, campaign.id, freeze_at=tx.now + _BEHIND_RETRY, reason=reason
                )
                continue
            # Before the query is made: a segment that changes in between makes the count one of before the change.
            etag = await _etag_of(tx, organization_id, campaign)
            query = await _resolve(tx, organization_id, campaign)
            if query is not None:
                await queries.begin_freezing(tx, organization_id, campaign.id, owner=owner, until=until)
                claimed.append(StartClaim(campaign.id, query, etag))
        return claimed

    async def act(self, organization_id: UUID, claim: StartClaim) -> FrozenAudience | NotFrozen:
        counts: AudienceCounts | None = None
        profile_ids = bytearray()
        try:
            async for piece in self._analysis.stream_audience(organization_id, claim.query, sample=COST_SAMPLE):
                counts = piece.counts or counts
                if piece.state == MAY_BE_TEXTED:
                    profile_ids += piece.profile_ids
        except NotReady:
            return NotFrozen("The segments are being prepared for the first count.")
        except AnalysisUnavailable as error:
            return NotFrozen(str(error))
        if counts is None:
            return NotFrozen("The analysis process gave no counts.")
        return FrozenAudience(counts, split_ids(bytes(profile_ids), count=PIECE_IDS))

    async def complete(
        self, tx: Tx, organization_id: UUID, done: Sequence[tuple[StartClaim, FrozenAudience | NotFrozen]]
    ) -> None:
        for claim, outcome in sorted(done, key=lambda it: it[0].campaign_id):
            campaign = await queries.lock_freezing(tx, organization_id, claim.campaign_id, owner=self.owner)
            if campaign is None:
                continue
            if isinstance(outcome, NotFrozen):
                await queries.retry_freezing(
                    tx, organization_id, campaign.id, freeze_at=tx.now + _RETRY, reason=outcome.reason
                )
            elif claim.etag != await _etag_of(tx, organization_id, campaign):
                # Else what is approved now would let those of before the change get the text. This process may have
                # claimed the campaign again, after a user paused, changed and resumed it.
                await queries.retry_freezing(
                    tx, organization_id, campaign.id, freeze_at=tx.now, reason="It changed while it was counted."
                )
            else:
                await _store_or_postpone(tx, organization_id, campaign, outcome, counted=claim.etag)


def _why_wait(oldest_change: datetime | None, campaign: DueCampaign, now: datetime, *, is_pending: bool) -> str | None:
    """Why the campaign has to wait; None if it need not. `oldest_change` is the time of the oldest change that is not
    in the columnar copy yet. Without that change, the campaign could text a customer who has just left a segment.
    `is_pending` is true while the customers of the quarter's global holdout are being selected."""
    freeze_at = campaign.starts_at
    if freeze_at is not None and isinstance(read_definition(campaign.definition.encode()).schedule, SendAtLocalTime):
        freeze_at -= FREEZE_BEFORE
    if freeze_at is None or not now - _BEHIND_MAX < freeze_at <= now:
        # Before that time only the time zones are counted.
        return None
    if is_pending:
        return "The global holdout of this quarter is being drawn."
    is_behind = oldest_change is not None and oldest_change <= freeze_at
    return "The last changes of customers are still being counted." if is_behind else None


async def _is_readable(tx: Tx, organization_id: UUID, campaign: DueCampaign) -> bool:
    """Whether the stored definition can be read. One that cannot is paused with the reason, because other campaigns of
    the organization start in the same pass."""
    try:
        read_definition(campaign.definition.encode())
    except DefinitionRefused as error:
        await _pause(tx, organization_id, campaign, f"A part of this campaign cannot be read. {error}")
        return False
    return True


async def _etag_of(tx: Tx, organization_id: UUID, campaign: DueCampaign) -> str:
    """The etag of the campaign and its segments as they are now."""
    row, document = await find_campaign(tx, organization_id, campaign.id)
    return etag_of(await etag_part(tx, organization_id, row, read_definition(document.encode())))


async def _resolve(tx: Tx, organization_id: UUID, campaign: DueCampaign) -> SegmentQuery | None:
    """The query of the audience. If a segment has a fault, pause the campaign with the reason and return None."""
    try:
        return await resolve_definition(tx, organization_id, read_definition(campaign.definition.encode()))
    except AudienceRefused as error:
        await _pause(tx, organization_id, campaign, str(error))
        return None


async def _store_or_postpone(
    tx: Tx, organization_id: UUID, campaign: DueCampaign, audience: FrozenAudience, *, counted: str
) -> None:
    """Store the audience, or postpone that if the first time zone that matters is reached later. The zones are counted
    when the campaign is scheduled, when the day begins anywhere, and at the time that this count gives."""
    definition = read_definition(campaign.definition.encode())
    first_at = await find_first_time(tx, organization_id, definition, audience.counts.sample, audience.pieces)
    if first_at is not None and first_at - FREEZE_BEFORE > tx.now:
        counted_at = [it - FREEZE_BEFORE for it in (start_of(definition, now=tx.now), first_at)]
        freeze_at = min(it for it in counted_at if it > tx.now)
        await queries.postpone_freezing(tx, organization_id, campaign.id, starts_at=first_at, freeze_at=freeze_at)
    else:
        await _store(
            tx, organization_id, campaign._replace(starts_at=first_at or campaign.starts_at), audience, counted=counted
        )


async def _store(
    tx: Tx, organization_id: UUID, campaign: DueCampaign, audience: FrozenAudience, *, counted: str | None = None
) -> None:
    """Store the whole audience in one transaction, or pause the campaign if it exceeds the confirmed numbers. `counted`
    is the etag of what was counted."""
    definition = read_definition(campaign.definition.encode())
    if not audience.counts.split.may_be_texted:
        await _pause(tx, organization_id, campaign, "No customer of these segments may be texted.")
        return
    estimate = await estimate_counts(tx, organization_id, definition, audience.counts)
    cost = estimate.size.cost
    question = Question(estimate.recipients, dict(cost.amounts), counted, is_cost_known=cost.is_complete)
    why = why_confirm_again(question, campaign, margin_percent=definition.margin_percent)
    if why is None:
        row, _ = await find_campaign(tx, organization_id, campaign.id)
        why = await why_approval_needed(tx, organization_id, row, definition, question.numbers, by=row.confirmed_by)
    if why is not None:
        await _pause(tx, organization_id, campaign, why, question)
        return
    await queries.store_audience(
        tx,
        organization_id,
        campaign.id,
        audience.pieces,
        frozen_at=audience.counts.as_of,
        starts_at=campaign.starts_at,
    )
    differences = Differences()
    split = audience.counts.split
    for reason, customers in (
        ("withdrawn", split.withdrawn),
        ("never_asked", split.never_asked),
        ("do_not_contact", split.do_not_contact),
    ):
        differences.add(TotalKey(campaign.id, NO_ARM, WITHOUT_CONSENT, reason), customers)
    await differences.write(tx, organization_id)
    tx.queues_to_wake.add(("campaigns", organization_id))
    failpoint.hit("campaign.frozen", tx.connection.drop_connection)


async def start_frozen(tx: Tx, organization_id: UUID, campaign_id: UUID, profile_ids: Sequence[UUID]) -> None:
    """For the demo, which may run without the analysis process: start a campaign that was scheduled in this
    transaction, with an audience that the caller provides. All customers of the audience may be texted."""
    owner = new_uuid()
    await queries.begin_freezing(tx, organization_id, campaign_id, owner=owner, until=tx.now)
    campaign = await queries.lock_freezing(tx, organization_id, campaign_id, owner=owner)
    if campaign is not None:
        counts = AudienceCounts(
            total=len(profile_ids),
            split=ConsentSplit(may_be_texted=len(profile_ids)),
            countries=(),
            spend=(),
            as_of=tx.now,
        )
        pieces = split_ids(b"".join(it.bytes for it in sorted(profile_ids)), count=PIECE_IDS)
        await _store(tx, organization_id, campaign, FrozenAudience(counts, pieces))


def why_confirm_again(question: Question, campaign: DueCampaign, *, margin_percent: int) -> str | None:
    """Why a user has to confirm again, if recipients or cost exceed the confirmed numbers. None if the campaign may
    start. The cost is compared only if a cost was confirmed."""
    confirmed = campaign.confirmed_recipients or 0
    confirmed_cost = read_cost(campaign.confirmed_cost)
    most = most_of(RecipientsAndCost(confirmed, confirmed_cost), margin_percent)
    if question.recipients > most.recipients:
        counted = f"{question.recipients:,}"
        return f"The audience has {counted} recipients and {confirmed:,} were confirmed. Confirm {counted}?"
    for currency, amount in question.cost.items():
        if confirmed_cost is None or most.cost is None:
            break
        expected = confirmed_cost.get(currency, Decimal(0))
        if amount > most.cost.get(currency, Decimal(0)):
            cost = f"{amount:,.2f} {currency}"
            return f"The texts cost about {cost} and {expected:,.2f} {currency} were confirmed. Confirm {cost}?"
    return None


async def _pause(
    tx: Tx, organization_id: UUID, campaign: DueCampaign, reason: str, question: Question | None = None
) -> None:
    """Pause a campaign before its audience is fixed; when it is resumed, the audience is computed again."""
    await queries.pause_with_reason(
        tx,
        organization_id,
        campaign,
        resumes_to=CampaignState.SCHEDULED.value,
        reason=reason,
        question=None if question is None else msgspec.json.encode(question).decode(),
    )
