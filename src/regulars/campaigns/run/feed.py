"""Queues the texts of a campaign (feeding): only a few at a time and as late as possible, so that a campaign can be
stopped quickly.

One transaction locks the campaign, takes tokens of its rate limit, takes due recipients in random order, renders their
texts with current values, queues the texts and updates the recipients. So a crash neither loses nor repeats a text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from regulars.campaigns.definition import Definition, SendAtLocalTime, read_definition
from regulars.campaigns.model import STEP_WAIT_MAX, RecipientOutcome
from regulars.campaigns.rendering import load_values
from regulars.campaigns.run import queries, recipient_queries
from regulars.campaigns.run.finish import end_campaign
from regulars.campaigns.run.outcomes import QUEUED_MAX, save_outcomes, update_outcomes
from regulars.campaigns.run.queries import DueCampaign
from regulars.campaigns.run.recipient_queries import Recipient
from regulars.consent.numbers import TextNumber, find_text_numbers
from regulars.kit import failpoint
from regulars.kit.db import Tx
from regulars.links.origin_kind import OriginKind
from regulars.texts.find import find_texted_numbers
from regulars.texts.gate import Forecast, forecast_texts
from regulars.texts.number_location import locate_number
from regulars.texts.request import TextOrder, request_texts
from regulars.texts.settings.store import Texting, load_texting
from regulars.texts.template import render_text

FED_AT_ONCE_MAX: Final = 256
SAME_NUMBER: Final = "same_number"
# The local time of the recipient's zone had passed when the audience was fixed, and the hours are closed.
LOCAL_TIME_PASSED: Final = "local_time_passed"
# How long to wait while texts are on hold, while the queue is full, and at least for the next token of the rate limit.
_HELD_RETRY: Final = timedelta(seconds=30)
_FULL_RETRY: Final = timedelta(seconds=1)
_TOKEN_RETRY_MIN: Final = timedelta(seconds=1)
# How long to wait if a number has no sending hours in the next days.
_CLOSED_RETRY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Rate:
    """A token bucket with one token for each text. The bucket and the queue together contain at most the texts of one
    minute, but at least one text. So no hour sends more than the texts of 61 minutes, even after the queue was blocked
    or no worker ran."""

    per_second: float
    tokens: float

    @classmethod
    def at(cls, campaign: DueCampaign, texts_per_hour: int, now: datetime) -> "Rate":
        per_second = texts_per_hour / 3_600
        if campaign.tokens_at is None:
            return cls(per_second, 1.0)
        elapsed_s = max(0.0, (now - campaign.tokens_at).total_seconds())
        # The texts that were queued at `tokens_at` may have been sent only now, so they still use capacity.
        filled = cls(per_second, campaign.tokens + per_second * elapsed_s)
        return replace(filled, tokens=min(max(0.0, filled.capacity - campaign.tokens_queued), filled.tokens))

    @property
    def capacity(self) -> float:
        return max(1.0, 60 * self.per_second)

    def next_at(self, now: datetime, tokens: float) -> datetime:
        return now + max(_TOKEN_RETRY_MIN, timedelta(seconds=(1 - tokens) / self.per_second))


async def feed(tx: Tx, organization_id: UUID, campaign: DueCampaign) -> None:
    """Queue the next texts of a campaign in the state `sending`, which the caller has locked."""
    if tx.now >= campaign.not_after:
        await end_campaign(tx, organization_id, campaign)
        return
    texting = await load_texting(tx, organization_id)
    if texting is None or texting.is_on_hold:
        # Texts that are queued during a hold would all be sent at once when the hold is released.
        await _set_due(tx, organization_id, campaign, tx.now + _HELD_RETRY)
        return
    definition = read_definition(campaign.definition.encode())
    rate = None if definition.texts_per_hour is None else Rate.at(campaign, definition.texts_per_hour, tx.now)
    queued = await queries.count_queued(tx, organization_id, campaign.id)
    queued_max = QUEUED_MAX if rate is None else min(QUEUED_MAX, int(rate.capacity))
    limit = min(FED_AT_ONCE_MAX, queued_max - queued, FED_AT_ONCE_MAX if rate is None else int(rate.tokens))
    # The campaign has started, whatever the clock of the database says by now.
    until = tx.now
    if campaign.starts_at is not None and not isinstance(definition.schedule, SendAtLocalTime):
        until = max(tx.now, campaign.starts_at)
    taken = (
        await recipient_queries.take_recipients(tx, organization_id, campaign.id, until=until, limit=limit)
        if limit > 0
        else []
    )
    added = await _Batch(tx, organization_id, campaign, definition, texting).queue_texts(taken) if taken else 0
    if rate is not None:
        rate = replace(rate, tokens=rate.tokens - added)
        await queries.set_tokens(tx, organization_id, campaign.id, rate.tokens, queued=queued + added, at=tx.now)
    if limit > 0 and not taken:
        await _wait_or_end(tx, organization_id, campaign, queued)
        return
    due_at = tx.now
    if queued + added >= queued_max:
        due_at = tx.now + _FULL_RETRY
    elif rate is not None and rate.tokens < 1:
        due_at = rate.next_at(tx.now, rate.tokens)
    await _set_due(tx, organization_id, campaign, due_at)


async def _wait_or_end(tx: Tx, organization_id: UUID, campaign: DueCampaign, queued: int) -> None:
    """No recipient is due: wait until the next recipient is, or end the campaign if no recipient waits."""
    next_at = await recipient_queries.find_next_send_at(tx, organization_id, campaign.id)
    if next_at is None and not queued:
        await end_campaign(tx, organization_id, campaign)
    else:
        await _set_due(tx, organization_id, campaign, max(next_at or tx.now, tx.now + _FULL_RETRY))


async def _set_due(tx: Tx, organization_id: UUID, campaign: DueCampaign, due_at: datetime) -> None:
    """Set the time of the next step. It is never far ahead, so that a time further ahead shows a fault."""
    latest = min(campaign.not_after, tx.now + STEP_WAIT_MAX)
    await queries.set_due(tx, organization_id, campaign.id, min(due_at, latest))


@dataclass(frozen=True, slots=True)
class _Batch:
    """The recipients of one campaign whose texts are queued in one transaction."""

    tx: Tx
    organization_id: UUID
    campaign: DueCampaign
    definition: Definition
    texting: Texting

    async def queue_texts(self, recipients: Sequence[Recipient]) -> int:
        """Queue texts of recipients who may get one now; postpone or skip the others. Returns how many were queued."""
        now = self.tx.now
        numbers = await find_text_numbers(self.tx, self.organization_id, {it.profile_id for it in recipients})
        hashes = {number.number_hash for number in numbers.values()}
        texted = await find_texted_numbers(self.tx, self.organization_id, OriginKind.CAMPAIGN, self.campaign.id, hashes)
        forecasts = await forecast_texts(self.tx, self.organization_id, numbers.values(), texting=self.texting)
        changed: list[Recipient] = []
        for it in recipients:
            number = numbers.get(it.profile_id)
            opens_at = self._opens_at(number, None if number is None else forecasts.get(number.number_hash))
            if number is not None and texted.setdefault(number.number_hash, str(it.profile_id)) != str(it.profile_id):
                changed.append(it._replace(outcome=RecipientOutcome.SKIPPED.value, reason=SAME_NUMBER, fed_at=now))
            elif opens_at > now and self._is_too_late(it, number, forecasts):
                passed = RecipientOutcome.SKIPPED.value
                changed.append(it._replace(outcome=passed, reason=LOCAL_TIME_PASSED, fed_at=now))
            elif opens_at > now:
                changed.append(it._replace(open_at=opens_at))
            else:
                changed.append(it._replace(outcome=RecipientOutcome.QUEUED.value, fed_at=now))
        await save_outcomes(self.tx, self.organization_id, zip(recipients, changed, strict=True))
        queued = [it for it in changed if it.outcome == RecipientOutcome.QUEUED]
        if queued:
            await self._request_texts(queued)
        failpoint.hit("campaign.fed", self.tx.connection.drop_connection)
        return len(queued)

    def _is_too_late(
        self, recipient: Recipient, number: TextNumber | None, forecasts: Mapping[bytes, Forecast]
    ) -> bool:
        """Whether the recipient is in a time zone whose local time had passed when the first texts left, and is closed
        by now."""
        starts_at = self.campaign.starts_at
        if starts_at is None or recipient.open_at >= starts_at or number is None or not self._is_local:
            return False
        opens_at = forecasts[number.number_hash].opens_at
        return opens_at is None or opens_at > self.tx.now

    @property
    def _is_local(self) -> bool:
        return isinstance(self.definition.schedule, SendAtLocalTime)

    def _opens_at(self, number: TextNumber | None, forecast: Forecast | None) -> datetime:
        """When the text of the recipient may be queued. Without a number or country that is now: the checks before
        sending then skip the text and store the reason."""
        now = self.tx.now
        if number is None or forecast is None or locate_number(number.phone_number).country is None:
            return now
        if self.definition.cap == "wait" and forecast.capped_until is not None:
            return forecast.capped_until
        return now + _CLOSED_RETRY if forecast.opens_at is None else forecast.opens_at

    async def _request_texts(self, recipients: Sequence[Recipient]) -> None:
        ids = [it.profile_id for it in recipients]
        brand, variants = self.texting.brand, self.definition.variants
        # If a profile is missing, it was erased together with its recipient.
        people = await load_values(self.tx, self.organization_id, self.definition, ids, brand=brand)
        orders = [
            TextOrder(
                origin_kind=OriginKind.CAMPAIGN,
                origin_id=self.campaign.id,
                step=str(it.profile_id),
                rendered=render_text(
                    variants[it.arm - 1].text, people[it.profile_id].values if it.profile_id in people else {}
                ),
                profile_id=it.profile_id,
                expires_at=self.campaign.not_after,
                link_origin=(self.campaign.id, str(it.arm)),
                has_personal_links=self.definition.personal_links,
            )
            for it in recipients
        ]
        requested = await request_texts(self.tx, self.organization_id, orders, texting=self.texting)
        # No event will be recorded for a text that exists already, so its outcome is read now.
        existing = [
            (self.campaign.id, it.profile_id) for it, text in zip(recipients, requested, strict=True) if not text.is_new
        ]
        if existing:
            await update_outcomes(self.tx, self.organization_id, existing)
