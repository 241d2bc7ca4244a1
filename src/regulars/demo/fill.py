"""Fills an organization with the demo: stores, customers and tickets; journeys and campaigns with texts and replies;
and a webhook endpoint.

The real code of journeys and texts makes the runs and texts, and a running worker may handle some of them. Journeys go
live before the tickets are loaded, because a sale starts only journeys that were live when it was recorded.
"""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Final
from uuid import UUID

import msgspec

from regulars.catalog.entries import register_attributes
from regulars.consent.figures import request_recount
from regulars.demo.campaigns import add_draft, count_texts, run_campaigns
from regulars.demo.chain import COUNTRIES, SHOPS
from regulars.demo.endpoint import add_endpoint
from regulars.demo.load import DemoPlan, Progress, load_demo, mark_organization
from regulars.demo.past_campaign import run_past_campaign
from regulars.demo.texts import BIG_TICKET, LANGUAGE_KEY, NOTICES, PRICES, REPLIES, translate_journey
from regulars.demo.traffic import log_requests, record_conflicts, report_deliveries
from regulars.inbox.find import list_texts
from regulars.inbox.receive import IncomingMessage, receive_reply
from regulars.journeys.manage import activate, create_journey, list_journeys
from regulars.journeys.runs.enter import enter_by_sales
from regulars.journeys.runs.queue import RunQueue
from regulars.kit.db import Database
from regulars.kit.vault import AnyVault, Vault
from regulars.sales.facts import SalesRecorded
from regulars.segments.saved.manage import create_segment, list_segments
from regulars.segments.suggestions import suggest_segments
from regulars.texts.number_location import locate_number
from regulars.texts.providers.simulator import Simulator
from regulars.texts.send import TextQueue
from regulars.texts.settings.model import OpenHours, SendHoursRule
from regulars.texts.settings.store import load_texting, lock_texting, save_texting
from regulars.work.queue import Queue

# The user name to whom the pages attribute what the demo creates.
CREATED_BY: Final = "demo data"
BRAND: Final = "Maison Corvelle"
# The address on certificates of consent.
POSTAL_ADDRESS: Final = "1 rue des Essais, 69002 Lyon"
# Journeys start for at most this many tickets of the last days.
TICKETS_AGE_MAX: Final = timedelta(days=7)
TICKETS_MAX: Final = 200
# How often, and in which interval, `_run_queues` checks whether work is due, and how many batches a queue handles
# before each check.
CHECKS_MAX: Final = 60
CHECK_EVERY_S: Final = 0.5
PASSES_MAX: Final = 200
# How many texts get a reply.
REPLIES_MAX: Final = 5
JOURNEYS_MAX: Final = 100
LIVE_TEMPLATES: Final = ("welcome", "win-back")
DRAFT_TEMPLATE: Final = "after-return"
# With more customers, sending the texts of campaigns would take minutes, so the demo gets only the draft.
CAMPAIGN_CUSTOMERS_MAX: Final = 20_000
# Sending hours around the clock: the simulator reaches no real phone, and a demo at night should show texts too.
ALWAYS: Final = SendHoursRule(days=(OpenHours(0, 24 * 60),) * 7, on_holidays=True)


async def fill_with_demo(
    database: Database,
    organization_id: UUID,
    plan: DemoPlan,
    *,
    secret: bytes,
    vault: AnyVault | None,
    progress: Progress,
) -> None:
    """Load everything. The vault encrypts the secret of the webhook endpoint; without a vault there is no endpoint."""
    await mark_organization(database, organization_id)
    has_demo_journeys = await create_journeys(database, organization_id)
    last_tickets = await load_demo(database, organization_id, plan, secret=secret, progress=progress)
    await log_requests(database, organization_id, plan.seed)
    await record_conflicts(database, organization_id, last_tickets)
    if isinstance(vault, Vault):
        await add_endpoint(database, organization_id, last_tickets, vault=vault)
    if has_demo_journeys:
        await create_segments(database, organization_id)
        await add_draft(database, organization_id, by=CREATED_BY)
        has_campaigns = plan.customers <= CAMPAIGN_CUSTOMERS_MAX
        if has_campaigns:
            await run_past_campaign(database, organization_id, last_tickets, by=CREATED_BY)
        await run_automations(database, organization_id)
        if has_campaigns:
            await run_campaigns(database, organization_id, last_tickets, by=CREATED_BY)
        await _reply_to_texts(database, organization_id)
        await report_deliveries(database, organization_id)
        await count_texts(database, organization_id)
    async with database.transaction() as tx:
        # A page may have requested a count of consents during the load, which is incomplete.
        await request_recount(tx, organization_id)


async def create_journeys(database: Database, organization_id: UUID) -> bool:
    """Create the journeys, before the tickets are loaded. Return False if the organization has other journeys; then it
    gets none of the demo's."""
    async with database.transaction() as tx:
        existing = await list_journeys(tx, organization_id, limit=JOURNEYS_MAX)
        if existing:
            # A retry finds the journeys of its first attempt and does not create them again.
            return any(row.name == BIG_TICKET.name for row in existing)
        texting = await lock_texting(tx, organization_id)
        if texting is not None:
            settings = msgspec.structs.replace(
                texting.settings,
                brand=BRAND,
                postal_address=POSTAL_ADDRESS,
                rules={shop.country: ALWAYS for shop in SHOPS},
                notices=NOTICES,
                prices=PRICES,
            )
            await save_texting(tx, organization_id, replace(texting, settings=settings))
        # Journeys compare this attribute, so it must exist before the first customer has it.
        await register_attributes(tx, organization_id, {LANGUAGE_KEY: "fr"})
        for definition in (BIG_TICKET, *map(translate_journey, LIVE_TEMPLATES)):
            created = await create_journey(tx, organization_id, definition, created_by=CREATED_BY)
            await activate(tx, organization_id, created.row.id)
        await create_journey(tx, organization_id, translate_journey(DRAFT_TEMPLATE), created_by=CREATED_BY)
    return True


async def create_segments(database: Database, organization_id: UUID) -> None:
    """Create each suggested segment, unless the organization has segments."""
    async with database.transaction() as tx:
        if not await list_segments(tx, organization_id):
            for suggestion in suggest_segments(store=SHOPS[0].external_id):
                await create_segment(tx, organization_id, suggestion.definition, created_by=CREATED_BY)


async def run_automations(database: Database, organization_id: UUID) -> None:
    """Start journeys for recent sales, after the tickets are loaded; send their texts, and reply to some."""
    async with database.transaction() as tx:
        sale_ids = await tx.fetch_column(
            "SELECT id FROM sales_events WHERE organization_id = %s AND occurred_at >= %s AND profile_id IS NOT NULL"
            " ORDER BY occurred_at DESC, id DESC LIMIT %s",
            (organization_id, tx.now - TICKETS_AGE_MAX, TICKETS_MAX),
        )
        await enter_by_sales(tx, organization_id, [SalesRecorded(sale_ids)])
    await _run_queues(database, organization_id)
    await _reply_to_texts(database, organization_id)
    await _run_queues(database, organization_id)
    await report_deliveries(database, organization_id)


async def _run_queues(database: Database, organization_id: UUID) -> None:
    """Run the queues of journeys and texts as the worker does, until nothing is due: a running worker may process some
    of the same rows."""
    queues: tuple[Queue, ...] = (RunQueue(), TextQueue({"simulator": Simulator(database)}))
    for _ in range(CHECKS_MAX):
        for queue in queues:
            for _ in range(PASSES_MAX):
                if not await queue.run_pass(database, organization_id):
                    break
                await queue.finish()
            await queue.finish()
        async with database.reading() as tx:
            has_due_rows = await tx.fetch_value(
                "SELECT EXISTS (SELECT FROM journey_runs WHERE organization_id = %(organization_id)s"
                "   AND due_at <= %(now)s)"
                " OR EXISTS (SELECT FROM texts WHERE organization_id = %(organization_id)s AND due_at <= %(now)s)"
                " OR EXISTS (SELECT FROM texts WHERE organization_id = %(organization_id)s AND state = 'sending')",
                {"organization_id": organization_id, "now": tx.now},
            )
        if not has_due_rows:
            return
        await asyncio.sleep(CHECK_EVERY_S)


async def _reply_to_texts(database: Database, organization_id: UUID) -> None:
    async with database.transaction() as tx:
        texting = await load_texting(tx, organization_id)
        if texting is None:
            return
        sent = await list_texts(tx, organization_id, secret=texting.secret, state="sent", limit=REPLIES_MAX)
    for number, text in enumerate(sent):
        if text.phone_number is None:
            continue
        body = REPLIES[language_of(text.phone_number)][number]
        incoming = IncomingMessage(
            provider="simulator", provider_id=f"demo_{text.id.hex}", phone_number=text.phone_number, body=body
        )
        async with database.transaction() as tx:
            await receive_reply(tx, organization_id, incoming, texting=texting)


def language_of(phone_number: str) -> str:
    """The language of the country of a demo customer's number."""
    return COUNTRIES[locate_number(phone_number).country or ""].language
