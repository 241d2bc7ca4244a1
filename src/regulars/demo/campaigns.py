"""Campaigns of the demo: two that are finished, one that is sending and a draft, each through the engine itself.

The analysis process may not run while the demo is made, so the audiences are read from the rows. They are of segments
that a statement can read: customers of some countries who may be texted.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from regulars.campaigns.definition import Definition, Variant
from regulars.campaigns.manage import create_campaign, list_campaigns, load_campaign, schedule
from regulars.campaigns.model import CampaignState
from regulars.campaigns.run.outcomes import count_outcomes_of_texts
from regulars.campaigns.run.queue import CampaignQueue
from regulars.campaigns.run.start import start_frozen
from regulars.conditions.tree import All, Consent, Country
from regulars.demo import queries
from regulars.demo.texts import CAMPAIGN_TEXTS
from regulars.kit.db import Database, Tx
from regulars.kit.ids import SEGMENT, ById
from regulars.messaging.providers.simulator import Simulator
from regulars.messaging.send import TextQueue
from regulars.sales.model import Sale
from regulars.sales.record import record_sales
from regulars.segments.definition import Definition as SegmentDefinition
from regulars.segments.saved.manage import create_segment

# The texts of a larger demo would take minutes: it gets the draft alone.
CUSTOMERS_MAX: Final = 20_000
CHECKS_MAX: Final = 40
CHECK_EVERY_S: Final = 0.3
TEXTS_PER_HOUR: Final = 60
BUYERS_MAX: Final = 60
_PASSES_MAX: Final = 50


class _Plan(NamedTuple):
    name: str
    countries: tuple[str, ...]
    texts: tuple[str, ...]
    holdout_percent: int = 0
    texts_per_hour: int | None = None


# No customer is in two of them: the frequency cap would skip the second.
_FINISHED: Final = (
    _Plan("Spring collection, France", ("FR",), ("collection", "preview"), holdout_percent=10),
    _Plan("Private sale, Switzerland and Belgium", ("CH", "BE"), ("sale",)),
)
_SENDING: Final = _Plan("Late opening, Germany", ("DE",), ("evening",), texts_per_hour=TEXTS_PER_HOUR)
_DRAFT: Final = _Plan("Summer sale, United Kingdom", ("GB",), ("sale",), holdout_percent=10)


async def run_campaigns(
    database: Database, organization_id: UUID, tickets: Sequence[Sale], *, customers: int, by: str
) -> None:
    """Once: a retry finds those of its first attempt, and the worker goes on with them. Some recipients buy what is on
    these tickets."""
    async with database.transaction() as tx:
        if await list_campaigns(tx, organization_id, limit=1):
            return
        await _create(tx, organization_id, _DRAFT, by=by)
        if customers > CUSTOMERS_MAX:
            return
        finished = [await _start(tx, organization_id, plan, by=by) for plan in _FINISHED]
        await _start(tx, organization_id, _SENDING, by=by)
    await _send(database, organization_id, finished)
    await _buy(database, organization_id, tickets)


async def _buy(database: Database, organization_id: UUID, tickets: Sequence[Sale]) -> None:
    """Customers who got a text buy, so that the pages of attribution have something to credit."""
    async with database.transaction() as tx:
        buyers = await queries.find_recipients_with_text(tx, organization_id, limit=BUYERS_MAX)
        bought = [
            msgspec.structs.replace(
                tickets[number % len(tickets)],
                external_id=f"AFTER-TEXT-{number + 1:03d}",
                occurred_at=tx.now,
                profile=ById(profile_id),
            )
            for number, profile_id in enumerate(buyers if tickets else ())
        ]
        await record_sales(tx, organization_id, bought, tolerance=timedelta(0))


async def count_texts(database: Database, organization_id: UUID) -> None:
    """What became of the texts since; the worker does the same with the facts about them."""
    async with database.transaction() as tx:
        recipients = await queries.find_open_recipients(tx, organization_id)
        if recipients:
            await count_outcomes_of_texts(tx, organization_id, recipients)


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
    """A campaign without an audience stays a draft."""
    campaign_id = await _create(tx, organization_id, plan, by=by)
    audience = await queries.find_texted_profiles(tx, organization_id, plan.countries)
    if audience:
        await schedule(tx, organization_id, campaign_id, confirmed_recipients=len(audience), by=by, is_now=True)
        await start_frozen(tx, organization_id, campaign_id, audience)
    return campaign_id


async def _send(database: Database, organization_id: UUID, campaign_ids: Sequence[UUID]) -> None:
    """Until these have ended. A running worker may take some of the same rows."""
    queues = (CampaignQueue(), TextQueue({"simulator": Simulator(database)}))
    for _ in range(CHECKS_MAX):
        for queue in queues:
            for _ in range(_PASSES_MAX):
                if not await queue.run_pass(database, organization_id):
                    break
            await queue.finish()
        await count_texts(database, organization_id)
        async with database.reading() as tx:
            states = {(await load_campaign(tx, organization_id, it)).row.state for it in campaign_ids}
        if states <= {CampaignState.ENDED, CampaignState.DRAFT}:
            return
        await asyncio.sleep(CHECK_EVERY_S)
