"""The demo's automations: journeys with customers in them, texts on simulated phones, replies, and an endpoint.

Everything goes through the engine itself. Journeys are live before the tickets are loaded, because a fact brings
somebody in by the version that was live when it was recorded.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Final
from uuid import UUID

import msgspec

from regulars.demo import queries
from regulars.demo.chain import SHOPS
from regulars.journeys.definition import (
    Branch,
    Definition,
    Exit,
    OfAmount,
    Reentry,
    SendText,
    SetAttribute,
    Subscribed,
    WaitForPurchase,
)
from regulars.journeys.manage import activate, create_journey, list_journeys
from regulars.journeys.runs.enter import enter_by_sales
from regulars.journeys.runs.queue import RunQueue
from regulars.journeys.starts import find_start
from regulars.kit.db import Database
from regulars.kit.guard import Guard
from regulars.kit.vault import AnyVault, Vault
from regulars.messaging.find import list_texts
from regulars.messaging.hours import Rule, Window
from regulars.messaging.inbox.receive import Incoming, receive
from regulars.messaging.providers.simulator import Simulator
from regulars.messaging.send import TextQueue
from regulars.messaging.settings.store import load_texting, lock_texting, save_texting
from regulars.sales.facts import SalesRecorded
from regulars.webhooks.manage import create_endpoint, list_endpoints
from regulars.work.queue import Queue

BY: Final = "the demo"
BRAND: Final = "Maison Corvelle"
RECENT: Final = timedelta(days=7)
TICKETS_MAX: Final = 200
TURNS_MAX: Final = 200
JOURNEYS_MAX: Final = 100
LIVE: Final = ("welcome", "win-back")
DRAFT: Final = "after-return"
ENDPOINT: Final = "https://hooks.maison-corvelle.example/regulars"
# Nobody is reached, so the demo texts at any hour: whoever looks at night sees something too.
ALWAYS: Final = Rule(days=(Window(0, 24 * 60),) * 7, on_holidays=True)
REPLIES: Final = (
    "Merci beaucoup !",
    "STOP",
    "Vous ouvrez aussi le dimanche ?",
    "Arrêtez de m'écrire s'il vous plaît",
    "Super, à bientôt",
)
BIG_TICKET: Final = Definition(
    name="Thank you after a big ticket",
    trigger="purchase",
    filter=OfAmount(at_least_cents=8_000),
    reentry=Reentry(policy="after_days", days=365),
    steps=(
        Branch(
            condition=Subscribed(),
            then=(
                SendText(
                    text='Merci {{ profile.first_name | default("à vous") }} pour votre visite à {{ store.name }}.'
                    " Un conseil d'entretien ? Répondez à ce message."
                ),
                WaitForPurchase(days=45, then=(SetAttribute(key="came_back", value="true"),), otherwise=(Exit(),)),
            ),
            otherwise=(SetAttribute(key="ask_consent_at_till", value="true"),),
        ),
    ),
)


async def begin_journeys(database: Database, organization_id: UUID) -> bool:
    """Before the tickets. False: the organization has journeys of its own, and is left as it is."""
    async with database.transaction() as tx:
        known = await list_journeys(tx, organization_id, limit=JOURNEYS_MAX)
        if known:
            # A load that broke off is begun anew, and finds its own.
            return any(row.name == BIG_TICKET.name for row in known)
        texting = await lock_texting(tx, organization_id)
        if texting is not None:
            settings = msgspec.structs.replace(
                texting.settings, brand=BRAND, rules={shop.country: ALWAYS for shop in SHOPS}
            )
            await save_texting(tx, organization_id, replace(texting, settings=settings))
        for definition in (BIG_TICKET, *(find_start(key) for key in LIVE)):
            if definition is not None:
                made = await create_journey(tx, organization_id, definition, created_by=BY)
                await activate(tx, organization_id, made.row.id)
        draft = find_start(DRAFT)
        if draft is not None:
            await create_journey(tx, organization_id, draft, created_by=BY)
    return True


async def go_on(database: Database, organization_id: UUID, *, vault: AnyVault | None) -> None:
    """After the tickets: those of the last days bring customers in, texts arrive, and some are answered."""
    async with database.transaction() as tx:
        recent = await queries.find_recent_sales(tx, organization_id, since=tx.now - RECENT, limit=TICKETS_MAX)
        await enter_by_sales(tx, organization_id, [SalesRecorded(recent)])
    await _work(database, organization_id)
    if isinstance(vault, Vault):
        await _add_endpoint(database, organization_id, vault)
    await _reply(database, organization_id)
    await _work(database, organization_id)


async def _work(database: Database, organization_id: UUID) -> None:
    """Turns, as the worker gives them; what is not done here it will do."""
    queues: tuple[Queue, ...] = (RunQueue(), TextQueue({"simulator": Simulator(database)}))
    for queue in queues:
        for _ in range(TURNS_MAX):
            if not await queue.take_turn(database, organization_id):
                break
            await queue.finish()
        await queue.finish()


async def _reply(database: Database, organization_id: UUID) -> None:
    async with database.transaction() as tx:
        texting = await load_texting(tx, organization_id)
        if texting is None:
            return
        sent = await list_texts(tx, organization_id, secret=texting.secret, state="sent", limit=len(REPLIES))
    for text, body in zip(sent, REPLIES, strict=False):
        if text.phone_number is None:
            continue
        incoming = Incoming(
            provider="simulator", provider_id=f"demo_{text.id.hex}", phone_number=text.phone_number, body=body
        )
        async with database.transaction() as tx:
            await receive(tx, organization_id, incoming, texting=texting)


async def _add_endpoint(database: Database, organization_id: UUID, vault: Vault) -> None:
    """Nobody listens there: its deliveries fail, and the pages show what that looks like."""
    async with database.transaction() as tx:
        if not await list_endpoints(tx, organization_id):
            await create_endpoint(
                tx,
                organization_id,
                url=ENDPOINT,
                description="The demo's own; nobody listens there",
                guard=Guard(),
                vault=vault,
            )
