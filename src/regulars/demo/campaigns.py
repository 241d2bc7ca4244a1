"""Campaigns of the demo: one of weeks ago whose result is known, two that have just finished, one that is sending and
a draft, all made by the real campaign code.

The analysis process may not run while the demo is made, so audiences are selected by SQL. So their segments are ones
that a simple statement can select: customers of some countries who may be texted.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, cast
from uuid import UUID

import msgspec

from regulars.campaigns.definition import Definition, Variant
from regulars.campaigns.manage import create_campaign, list_campaigns, load_campaign, schedule
from regulars.campaigns.model import CampaignState
from regulars.campaigns.run.outcomes import update_outcomes
from regulars.campaigns.run.queue import CampaignQueue
from regulars.campaigns.run.start import start_frozen
from regulars.conditions.tree import All, Consent, Country
from regulars.demo import queries
from regulars.demo.chain import COUNTRIES
from regulars.demo.texts import CAMPAIGN_TEXTS
from regulars.kit.db import Database, Tx
from regulars.kit.ids import SEGMENT, ById
from regulars.messaging.links.counts import add_counts
from regulars.messaging.links.model import ClickClass
from regulars.messaging.model import OriginKind
from regulars.messaging.providers.simulator import Simulator
from regulars.messaging.send import TextQueue
from regulars.sales.model import Sale
from regulars.sales.record import record_sales
from regulars.segments.definition import Definition as SegmentDefinition
from regulars.segments.saved.manage import create_segment

# With more customers, sending the texts would take minutes: such a demo gets only the draft.
CUSTOMERS_MAX: Final = 20_000
CHECKS_MAX: Final = 40
CHECK_EVERY_S: Final = 0.3
TEXTS_PER_HOUR: Final = 60
BUYERS_MAX: Final = 60
AFTER_TEXT: Final = timedelta(hours=4)
_PASSES_MAX: Final = 50


class _Plan(NamedTuple):
    name: str
    countries: tuple[str, ...]
    texts: tuple[str, ...]
    holdout_percent: int = 0
    texts_per_hour: int | None = None


# No customer is in two of these campaigns: the frequency cap would skip the second text.
_FINISHED: Final = (
    _Plan("Spring collection, France", ("FR",), ("collection", "preview"), holdout_percent=10),
    _Plan("Private sale, Switzerland and Belgium", ("CH", "BE"), ("sale",)),
)
# Large enough for a result: half of the customers of all countries get a text, and the other half shows what would have
# been bought anyway. It is final 30 days after its window of a week.
_PAST: Final = _Plan("Winter sale, all countries", tuple(COUNTRIES), ("winter",), holdout_percent=50)
PAST: Final = timedelta(days=45)
# The share of customers who buy after the text was sent: by whether they were texted (True) or held out (False).
BOUGHT_AFTER: Final = {True: 0.20, False: 0.12}
CLICKS: Final = {ClickClass.PERSON: 0.11, ClickClass.MACHINE: 0.02}
_SENDING: Final = _Plan("Late opening, Germany", ("DE",), ("evening",), texts_per_hour=TEXTS_PER_HOUR)
_DRAFT: Final = _Plan("Summer sale, United Kingdom", ("GB",), ("sale",), holdout_percent=10)


async def run_campaigns(
    database: Database, organization_id: UUID, tickets: Sequence[Sale], *, customers: int, by: str
) -> None:
    """Create and run the campaigns, unless an earlier attempt has created them; then the worker continues them. Some
    recipients make purchases like those on these tickets."""
    async with database.transaction() as tx:
        if await list_campaigns(tx, organization_id, limit=1):
            return
        await _create(tx, organization_id, _DRAFT, by=by)
        if customers > CUSTOMERS_MAX:
            return
        past = await _start(replace(tx, now=tx.now - PAST), organization_id, _PAST, by=by)
        finished = [await _start(tx, organization_id, plan, by=by) for plan in _FINISHED]
        await _start(tx, organization_id, _SENDING, by=by)
    await _send(cast("Database", _PastClock(database, PAST)), organization_id, [past])
    await _buy_after(database, organization_id, past, tickets)
    await _send(database, organization_id, finished)
    await _buy(database, organization_id, tickets)


class _PastClock:
    """The database with a clock that is behind by a fixed time, so that what is written seems to have happened then."""

    def __init__(self, database: Database, ago: timedelta) -> None:
        self._database = database
        self._ago = ago

    @asynccontextmanager
    async def transaction(self, **options: Any) -> AsyncIterator[Tx]:
        async with self._database.transaction(**options) as tx:
            yield replace(tx, now=tx.now - self._ago)

    @asynccontextmanager
    async def reading(self, **options: Any) -> AsyncIterator[Tx]:
        async with self._database.reading(**options) as tx:
            yield replace(tx, now=tx.now - self._ago)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


async def _buy_after(database: Database, organization_id: UUID, campaign_id: UUID, tickets: Sequence[Sale]) -> None:
    """Record what customers of the past campaign bought, and how often they clicked."""
    # Only tickets in one currency, because attribution computes a result for each currency.
    tickets = [ticket for ticket in tickets if ticket.currency == "EUR"]
    # With today's clock, so that journeys do not treat these tickets as new.
    async with database.transaction() as tx:
        arms = await queries.find_arms(tx, organization_id, campaign_id)
        bought: list[Sale] = []
        for is_texted, profile_ids in arms.items():
            buyers = profile_ids[: int(len(profile_ids) * BOUGHT_AFTER[is_texted])] if tickets else []
            bought += [
                _ticket_of(tickets, len(bought) + number, profile_id, at=tx.now - PAST + AFTER_TEXT, prefix="WINTER")
                for number, profile_id in enumerate(buyers)
            ]
        await record_sales(tx, organization_id, bought, tolerance=timedelta(0))
        clicks = {kind: int(len(arms[True]) * share) for kind, share in CLICKS.items()}
        await add_counts(tx, organization_id, OriginKind.CAMPAIGN, campaign_id, step="1", counts=clicks)


def _ticket_of(tickets: Sequence[Sale], number: int, profile_id: UUID, *, at: datetime, prefix: str) -> Sale:
    return msgspec.structs.replace(
        tickets[number % len(tickets)],
        external_id=f"{prefix}-{number + 1:04d}",
        occurred_at=at,
        profile=ById(profile_id),
    )


async def _buy(database: Database, organization_id: UUID, tickets: Sequence[Sale]) -> None:
    """Record purchases of customers who got a text, so that the pages of attribution have sales to credit."""
    async with database.transaction() as tx:
        buyers = await queries.find_recipients_with_text(
            tx, organization_id, since=tx.now - timedelta(days=1), limit=BUYERS_MAX
        )
        bought = [
            _ticket_of(tickets, number, profile_id, at=tx.now, prefix="AFTER-TEXT")
            for number, profile_id in enumerate(buyers if tickets else ())
        ]
        await record_sales(tx, organization_id, bought, tolerance=timedelta(0))


async def count_texts(database: Database, organization_id: UUID) -> None:
    """Update the outcomes of recipients from their texts; normally the worker does this with the facts about texts."""
    async with database.transaction() as tx:
        recipients = await queries.find_open_recipients(tx, organization_id)
        if recipients:
            await update_outcomes(tx, organization_id, recipients)


async def _create(tx: Tx, organization_id: UUID, plan: _Plan, *, by: str) -> UUID:
    match = All(of=(Consent(state="may_be_texted"), Country(any_of=plan.countries)))
    name = f"May be texted: {', '.join(plan.countries)}"
    segment = await create_segment(tx, organization_id, SegmentDefinition(name=name, match=match), created_by=by)
    share = 100 // len(plan.texts)
    definition = Definition(
        name=plan.name,
        include=(SEGMENT.encode(segment.row.id),),
        variants=tuple(Variant(text=CAMPAIGN_TEXTS[key], share=share) for key in plan.texts),
        holdout_percent=plan.holdout_percent,
        texts_per_hour=plan.texts_per_hour,
    )
    return (await create_campaign(tx, organization_id, definition, created_by=by)).row.id


async def _start(tx: Tx, organization_id: UUID, plan: _Plan, *, by: str) -> UUID:
    """Start the campaign; one without an audience stays a draft."""
    campaign_id = await _create(tx, organization_id, plan, by=by)
    audience = await queries.find_texted_profiles(tx, organization_id, plan.countries)
    if audience:
        await schedule(tx, organization_id, campaign_id, confirmed_recipients=len(audience), by=by, is_now=True)
        await start_frozen(tx, organization_id, campaign_id, audience)
    return campaign_id


async def _send(database: Database, organization_id: UUID, campaign_ids: Sequence[UUID]) -> None:
    """Send until these campaigns have ended. A running worker may take some of the same rows."""
    queues = (CampaignQueue(), TextQueue({"simulator": Simulator(database)}))
    for _ in range(CHECKS_MAX):
        for queue in queues:
            for _ in range(_PASSES_MAX):
                if not await queue.run_pass(database, organization_id):
                    break
            await queue.finish()
        await count_texts(database, organization_id)
        async with database.reading() as tx:
            states = {(await load_campaign(tx, organization_id, campaign_id)).row.state for campaign_id in campaign_ids}
        if states <= {CampaignState.ENDED, CampaignState.DRAFT}:
            return
        await asyncio.sleep(CHECK_EVERY_S)
