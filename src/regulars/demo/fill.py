"""Fill an organization with the demo: the chain, its customers, and journeys with texts, replies and an endpoint.

Everything is made by the real code of journeys and texts. Journeys go live before the tickets are loaded, because a
sale starts a run of the version that was live when the sale was recorded.
"""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Final
from uuid import UUID

import msgspec

from regulars.catalog.entries import register_attributes
from regulars.demo import queries
from regulars.demo.campaigns import count_texts, run_campaigns
from regulars.demo.chain import COUNTRIES, SHOPS
from regulars.demo.load import DemoPlan, Progress, load_demo, mark_organization
from regulars.demo.texts import BIG_TICKET, LANGUAGE_KEY, NOTICES, PRICES, REPLIES, translated
from regulars.demo.traffic import log_requests, record_conflicts, report_deliveries
from regulars.journeys.manage import activate, create_journey, list_journeys
from regulars.journeys.runs.enter import enter_by_sales
from regulars.journeys.runs.queue import RunQueue
from regulars.kit.db import Database
from regulars.kit.ssrf import AddressPolicy
from regulars.kit.vault import AnyVault, Vault
from regulars.messaging.find import list_texts
from regulars.messaging.inbox.receive import IncomingMessage, receive
from regulars.messaging.providers.simulator import Simulator
from regulars.messaging.send import TextQueue
from regulars.messaging.settings.model import OpenHours, SendHoursRule
from regulars.messaging.settings.store import load_texting, lock_texting, save_texting
from regulars.sales.facts import SalesRecorded
from regulars.segments.saved.manage import create_segment, list_segments
from regulars.segments.suggestions import suggest_segments
from regulars.webhooks.manage import create_endpoint, list_endpoints
from regulars.work.queue import Queue

BY: Final = "the demo"
BRAND: Final = "Maison Corvelle"
RECENT: Final = timedelta(days=7)
TICKETS_MAX: Final = 200
PASSES_MAX: Final = 200
CHECKS_MAX: Final = 60
CHECK_EVERY_S: Final = 0.5
REPLIED_MAX: Final = 5
JOURNEYS_MAX: Final = 100
LIVE: Final = ("welcome", "win-back")
DRAFT: Final = "after-return"
ENDPOINT: Final = "https://hooks.maison-corvelle.example/regulars"
# The simulator reaches no real phone, so the demo texts at any hour, and shows texts at night too.
ALWAYS: Final = SendHoursRule(days=(OpenHours(0, 24 * 60),) * 7, on_holidays=True)


async def fill(
    database: Database,
    organization_id: UUID,
    plan: DemoPlan,
    *,
    secret: bytes,
    vault: AnyVault | None,
    progress: Progress,
) -> None:
    """Without a vault no endpoint is created, because its secret could not be sealed."""
    await mark_organization(database, organization_id)
    is_demo_data = await create_journeys(database, organization_id)
    last = await load_demo(database, organization_id, plan, secret=secret, progress=progress)
    await log_requests(database, organization_id, plan.seed)
    await record_conflicts(database, organization_id, last)
    if is_demo_data:
        await create_segments(database, organization_id)
        await run_automations(database, organization_id, vault=vault)
        await run_campaigns(database, organization_id, last, customers=plan.customers, by=BY)
        await _reply(database, organization_id)
        await report_deliveries(database, organization_id)
        await count_texts(database, organization_id)


async def create_journeys(database: Database, organization_id: UUID) -> bool:
    """Called before the tickets are loaded. Returns False if the organization has other journeys; then it gets none of
    the demo."""
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
                rules={shop.country: ALWAYS for shop in SHOPS},
                notices=NOTICES,
                prices=PRICES,
            )
            await save_texting(tx, organization_id, replace(texting, settings=settings))
        # Journeys compare this attribute, so it must exist before the first customer has it.
        await register_attributes(tx, organization_id, {LANGUAGE_KEY: "fr"})
        for definition in (BIG_TICKET, *map(translated, LIVE)):
            created = await create_journey(tx, organization_id, definition, created_by=BY)
            await activate(tx, organization_id, created.row.id)
        await create_journey(tx, organization_id, translated(DRAFT), created_by=BY)
    return True


async def create_segments(database: Database, organization_id: UUID) -> None:
    """The segment templates, unless the organization has segments."""
    async with database.transaction() as tx:
        if not await list_segments(tx, organization_id):
            for start in suggest_segments(store=SHOPS[0].external_id):
                await create_segment(tx, organization_id, start.definition, created_by=BY)


async def run_automations(database: Database, organization_id: UUID, *, vault: AnyVault | None) -> None:
    """Called after the tickets are loaded: recent sales start runs, texts are sent, and some get replies."""
    async with database.transaction() as tx:
        recent = await queries.find_recent_sales(tx, organization_id, since=tx.now - RECENT, limit=TICKETS_MAX)
        await enter_by_sales(tx, organization_id, [SalesRecorded(recent)])
    await _run_queues(database, organization_id)
    if isinstance(vault, Vault):
        await _add_endpoint(database, organization_id, vault)
    await _reply(database, organization_id)
    await _run_queues(database, organization_id)
    await report_deliveries(database, organization_id)


async def _run_queues(database: Database, organization_id: UUID) -> None:
    """Run the queues as the worker does. A running worker may take some of the same rows, so wait until none is due."""
    queues: tuple[Queue, ...] = (RunQueue(), TextQueue({"simulator": Simulator(database)}))
    for _ in range(CHECKS_MAX):
        for queue in queues:
            for _ in range(PASSES_MAX):
                if not await queue.run_pass(database, organization_id):
                    break
                await queue.finish()
            await queue.finish()
        async with database.reading() as tx:
            if not await queries.has_due_runs_or_texts(tx, organization_id):
                return
        await asyncio.sleep(CHECK_EVERY_S)


async def _reply(database: Database, organization_id: UUID) -> None:
    async with database.transaction() as tx:
        texting = await load_texting(tx, organization_id)
        if texting is None:
            return
        sent = await list_texts(tx, organization_id, secret=texting.secret, state="sent", limit=REPLIED_MAX)
    for number, text in enumerate(sent):
        if text.phone_number is None:
            continue
        body = REPLIES[language_of(text.phone_number)][number]
        incoming = IncomingMessage(
            provider="simulator", provider_id=f"demo_{text.id.hex}", phone_number=text.phone_number, body=body
        )
        async with database.transaction() as tx:
            await receive(tx, organization_id, incoming, texting=texting)


def language_of(phone_number: str) -> str:
    """The language of the country with the prefix of the number."""
    return next(country.language for country in COUNTRIES.values() if phone_number.startswith(country.phone_prefix))


async def _add_endpoint(database: Database, organization_id: UUID, vault: Vault) -> None:
    """Add an endpoint at which no server listens: its deliveries fail, so that the pages show failures."""
    async with database.transaction() as tx:
        if not await list_endpoints(tx, organization_id):
            await create_endpoint(
                tx,
                organization_id,
                url=ENDPOINT,
                description="Sample endpoint; no server listens there",
                policy=AddressPolicy(),
                vault=vault,
            )
