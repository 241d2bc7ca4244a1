"""Creates the campaigns of the demo: one of weeks ago whose result is known, two that have just finished, one that is
sending, and a draft. The real campaign code sends them.

The analysis process, which normally selects audiences, may not run while the demo is loaded. So SQL selects them, and
the segments are simple: customers of some countries who may be texted.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, cast
from uuid import UUID

import msgspec
from babel import Locale

from regulars.campaigns.definition import Definition, Variant
from regulars.campaigns.manage import create_campaign, list_campaigns, load_campaign, schedule
from regulars.campaigns.model import CampaignState
from regulars.campaigns.run.outcomes import update_outcomes
from regulars.campaigns.run.queue import CampaignQueue
from regulars.campaigns.run.start import start_frozen
from regulars.conditions.tree import All, Consent, Country
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

# With more customers, sending the texts would take minutes, so the demo gets only the draft.
CUSTOMERS_MAX: Final = 20_000
# How often, and in which interval, `_send` checks whether the campaigns have ended.
CHECKS_MAX: Final = 40
CHECK_EVERY_S: Final = 0.3
# How many batches a queue handles before each check.
_PASSES_MAX: Final = 50
TEXTS_PER_HOUR: Final = 60
# How many recipients of today's campaigns buy.
BUYERS_MAX: Final = 60
# How long after the start of the past campaign its recipients buy.
BUYS_AFTER: Final = timedelta(hours=4)


class _CampaignPlan(NamedTuple):
    """A campaign to the customers of some countries; `texts` has the key of each variant in `CAMPAIGN_TEXTS`."""

    name: str
    countries: tuple[str, ...]
    texts: tuple[str, ...]
    holdout_percent: int = 0
    texts_per_hour: int | None = None


# No customer is in two of these campaigns: the frequency cap would skip the second text.
_FINISHED_CAMPAIGNS: Final = (
    _CampaignPlan("Spring collection, France", ("FR",), ("collection", "preview"), holdout_percent=10),
    _CampaignPlan("Private sale, Switzerland and Belgium", ("CH", "BE"), ("sale",)),
)
# Large enough to measure an effect: half of the customers of all countries get a text, and the purchases of the other
# half, which is held out, show what customers buy without it. The result is final 30 days after its window of a week.
_PAST_CAMPAIGN: Final = _CampaignPlan("Winter sale, all countries", tuple(COUNTRIES), ("winter",), holdout_percent=50)
PAST_AGE: Final = timedelta(days=45)
# The share of recipients who buy after the campaign: of those texted (True) and of those held out (False).
BUYER_SHARES: Final = {True: 0.20, False: 0.12}
CLICK_SHARES: Final = {ClickClass.PERSON: 0.11, ClickClass.MACHINE: 0.02}
_SENDING_CAMPAIGN: Final = _CampaignPlan("Late opening, Germany", ("DE",), ("evening",), texts_per_hour=TEXTS_PER_HOUR)
_DRAFT_CAMPAIGN: Final = _CampaignPlan("Summer sale, United Kingdom", ("GB",), ("sale",), holdout_percent=10)


async def run_campaigns(
    database: Database, organization_id: UUID, tickets: Sequence[Sale], *, customers: int, by: str
) -> None:
    """Create and run the campaigns, unless an earlier attempt has created them; then the worker continues them. Copies
    of these tickets become the purchases of some recipients. `by` is stored as the user who created the campaigns."""
    async with database.transaction() as tx:
        if await list_campaigns(tx, organization_id, limit=1):
            return
        await _create(tx, organization_id, _DRAFT_CAMPAIGN, by=by)
        if customers > CUSTOMERS_MAX:
            return
        past_id = await _start(replace(tx, now=tx.now - PAST_AGE), organization_id, _PAST_CAMPAIGN, by=by)
        finished_ids = [await _start(tx, organization_id, plan, by=by) for plan in _FINISHED_CAMPAIGNS]
        await _start(tx, organization_id, _SENDING_CAMPAIGN, by=by)
    await _send(cast("Database", _PastDatabase(database, PAST_AGE)), organization_id, [past_id])
    await _add_old_sales(database, organization_id, past_id, tickets)
    await _send(database, organization_id, finished_ids)
    await _add_new_sales(database, organization_id, tickets)


class _PastDatabase:
    """The database with a clock that is a fixed time behind, so that its transactions write with past times."""

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


async def _add_old_sales(database: Database, organization_id: UUID, campaign_id: UUID, tickets: Sequence[Sale]) -> None:
    """Record the purchases and the clicks of the past campaign's recipients."""
    # Only tickets in one currency, because attribution computes a result for each currency.
    tickets = [ticket for ticket in tickets if ticket.currency == "EUR"]
    # With today's clock, so that journeys do not treat these tickets as new.
    async with database.transaction() as tx:
        # Arm 0 is held out, and arms from 1 are variants of the text; customers in no arm have -1.
        rows = await tx.fetch(
            "SELECT profile_id, arm > 0 FROM campaign_recipients"
            " WHERE organization_id = %s AND campaign_id = %s AND arm >= 0 ORDER BY profile_id",
            (organization_id, campaign_id),
        )
        recipients = {is_texted: [row[0] for row in rows if row[1] is is_texted] for is_texted in (True, False)}
        bought: list[Sale] = []
        bought_at = tx.now - PAST_AGE + BUYS_AFTER
        for is_texted, profile_ids in recipients.items():
            buyers = profile_ids[: int(len(profile_ids) * BUYER_SHARES[is_texted])] if tickets else []
            bought += [
                _copy_ticket(tickets, len(bought) + number, profile_id, at=bought_at, prefix="WINTER")
                for number, profile_id in enumerate(buyers)
            ]
        await record_sales(tx, organization_id, bought, tolerance=timedelta(0))
        clicks = {kind: int(len(recipients[True]) * share) for kind, share in CLICK_SHARES.items()}
        # The step of a campaign's text is the number of its variant.
        await add_counts(tx, organization_id, OriginKind.CAMPAIGN, campaign_id, step="1", counts=clicks)


def _copy_ticket(tickets: Sequence[Sale], number: int, profile_id: UUID, *, at: datetime, prefix: str) -> Sale:
    return msgspec.structs.replace(
        tickets[number % len(tickets)],
        external_id=f"{prefix}-{number + 1:04d}",
        occurred_at=at,
        profile=ById(profile_id),
    )


async def _add_new_sales(database: Database, organization_id: UUID, tickets: Sequence[Sale]) -> None:
    """Record purchases of customers who got a text, so that the attribution pages have credited sales."""
    async with database.transaction() as tx:
        buyers = await tx.fetch_column(
            "SELECT DISTINCT profile_id FROM campaign_recipients"
            " WHERE organization_id = %s AND outcome IN ('sent', 'delivered') AND created_at > %s"
            " ORDER BY profile_id LIMIT %s",
            (organization_id, tx.now - timedelta(days=1), BUYERS_MAX),
        )
        bought = [
            _copy_ticket(tickets, number, profile_id, at=tx.now, prefix="AFTER-TEXT")
            for number, profile_id in enumerate(buyers if tickets else ())
        ]
        await record_sales(tx, organization_id, bought, tolerance=timedelta(0))


async def count_texts(database: Database, organization_id: UUID) -> None:
    """Update the outcomes of recipients from the states of their texts; normally the worker does this."""
    async with database.transaction() as tx:
        rows = await tx.fetch(
            "SELECT campaign_id, profile_id FROM campaign_recipients"
            " WHERE organization_id = %s AND outcome IN ('queued', 'sent') ORDER BY campaign_id, profile_id",
            (organization_id,),
        )
        if rows:
            await update_outcomes(tx, organization_id, [(row[0], row[1]) for row in rows])


async def _create(tx: Tx, organization_id: UUID, plan: _CampaignPlan, *, by: str) -> UUID:
    match = All(of=(Consent(state="may_be_texted"), Country(any_of=plan.countries)))
    territories = Locale("en").territories
    name = f"May be texted: {', '.join(str(territories[code]) for code in plan.countries)}"
    segment = await create_segment(tx, organization_id, SegmentDefinition(name=name, match=match), created_by=by)
    share_percent = 100 // len(plan.texts)
    definition = Definition(
        name=plan.name,
        include=(SEGMENT.encode(segment.row.id),),
        variants=tuple(Variant(text=CAMPAIGN_TEXTS[key], share=share_percent) for key in plan.texts),
        holdout_percent=plan.holdout_percent,
        texts_per_hour=plan.texts_per_hour,
    )
    return (await create_campaign(tx, organization_id, definition, created_by=by)).row.id


async def _start(tx: Tx, organization_id: UUID, plan: _CampaignPlan, *, by: str) -> UUID:
    """Start the campaign; one without an audience stays a draft."""
    campaign_id = await _create(tx, organization_id, plan, by=by)
    audience = await tx.fetch_column(
        "SELECT id FROM profiles WHERE organization_id = %(organization_id)s"
        " AND attributes ->> 'country' = ANY (%(countries)s::text[]) AND EXISTS ("
        "SELECT FROM subscriptions s WHERE s.organization_id = %(organization_id)s AND s.profile_id = profiles.id"
        " AND s.status = 'SUBSCRIBED') ORDER BY id",
        {"organization_id": organization_id, "countries": list(plan.countries)},
    )
    if audience:
        await schedule(tx, organization_id, campaign_id, confirmed_recipients=len(audience), by=by, is_now=True)
        # Store the audience as the recipients.
        await start_frozen(tx, organization_id, campaign_id, audience)
    return campaign_id


async def _send(database: Database, organization_id: UUID, campaign_ids: Sequence[UUID]) -> None:
    """Run the queues of campaigns and texts until these campaigns have ended. A running worker may send some of the
    texts."""
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
