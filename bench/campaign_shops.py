"""Creates the organizations, consenting customers and campaigns that `campaign_run.py` sends."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

from regulars.accounts import sessions, users
from regulars.campaigns import manage
from regulars.campaigns.definition import read_definition
from regulars.campaigns.model import CampaignRow
from regulars.columns import lifecycle
from regulars.consent.ledger import EventOrigin
from regulars.consent.opt_in import Consent, opt_in
from regulars.kit.db import Database, Tx
from regulars.kit.ids import SEGMENT, ByExternalId
from regulars.organizations.manage import create_organization
from regulars.profiles.model import ProfileUpsert
from regulars.profiles.write import upsert_profiles
from regulars.segments.definition import read_definition as read_segment
from regulars.segments.saved.manage import create_segment
from regulars.texts.settings.model import OpenHours, SendHoursRule, SmsSettings
from regulars.texts.settings.store import load_texting, save_texting
from regulars.web.access import Role

T = TypeVar("T")
CHUNK = 500
BUILT_S_MAX = 180.0
REACHABLE = {"name": "Everybody", "match": {"type": "all", "of": [{"type": "consent", "state": "may_be_texted"}]}}
TEXT = '{{ profile.first_name | default("Hello") }}, the new collection is here. Come and see it first.'
ALWAYS = SendHoursRule(days=(OpenHours(0, 24 * 60),) * 7, on_holidays=True)


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Database]:
    database = Database(url, pool_max=4, statement_timeout_ms=600_000)
    await database.open()
    try:
        yield database
    finally:
        await database.close()


def act(url: str, use_case: Callable[[Tx], Awaitable[T]]) -> T:
    """One transaction."""

    async def run() -> T:
        async with opened(url) as database, database.transaction() as tx:
            return await use_case(tx)

    return asyncio.run(run())


def open_shop(url: str, name: str, *, customers: int, first_number: int = 0) -> tuple[UUID, str]:
    """Creates an organization without sending hours and caps; returns its id and that of a segment of all customers."""

    async def run() -> tuple[UUID, str]:
        async with opened(url) as database:
            async with database.connection() as connection:
                organization_id = (await create_organization(connection, name)).id
            async with database.transaction() as tx:
                found = await load_texting(tx, organization_id)
                assert found is not None
                texting = replace(found, settings=SmsSettings(brand="Shop", rules={"FR": ALWAYS}, caps=()))
                await save_texting(tx, organization_id, texting)
            for start in range(0, customers, CHUNK):
                numbers = range(start, min(start + CHUNK, customers))
                async with database.transaction() as tx:
                    await _join(tx, organization_id, numbers, first_number, secret=texting.secret)
            async with database.transaction() as tx:
                segment = await create_segment(tx, organization_id, read_segment(json.dumps(REACHABLE).encode()))
            return organization_id, SEGMENT.encode(segment.row.id)

    return asyncio.run(run())


async def _join(tx: Tx, organization_id: UUID, numbers: Sequence[int], first_number: int, *, secret: bytes) -> None:
    people = [ProfileUpsert(external_id=f"C{number}", first_name="Claire") for number in numbers]
    await upsert_profiles(tx, organization_id, people)
    consents = [
        Consent(
            phone_number=f"+336{first_number + number:08d}",
            source="OTHER",
            consented_at=tx.now,
            origin=EventOrigin(),
            profile=ByExternalId(f"C{number}"),
        )
        for number in numbers
    ]
    await opt_in(tx, organization_id, consents, secret=secret)


def wait_until_built(url: str, organization_ids: Sequence[UUID]) -> None:
    """Waits until the worker has built the columns of all segments."""

    async def are_ready(tx: Tx) -> bool:
        found = [await lifecycle.find_build_progress(tx, organization_id) for organization_id in organization_ids]
        return all(it is not None and it.state == "ready" for it in found)

    until = time.monotonic() + BUILT_S_MAX
    while not act(url, are_ready):
        if time.monotonic() > until:
            raise TimeoutError("the columns of the segments were not built in time")
        time.sleep(0.5)


def draft(url: str, organization_id: UUID, segment: str) -> UUID:
    given = {"name": "Sale", "include": [segment], "variants": [{"text": TEXT}]}
    definition = read_definition(json.dumps(given).encode())

    async def create(tx: Tx) -> UUID:
        return (await manage.create_campaign(tx, organization_id, definition, created_by="ann")).row.id

    return act(url, create)


def send(url: str, organization_id: UUID, campaign_id: UUID, *, recipients: int) -> CampaignRow:
    return act(
        url,
        lambda tx: manage.schedule(
            tx, organization_id, campaign_id, confirmed_recipients=recipients, by="ann", is_now=True
        ),
    )


def send_all(url: str, campaigns: Sequence[tuple[UUID, UUID]], *, recipients: int) -> None:
    """Starts all campaigns, given by organization, at once."""

    async def press(database: Database, organization_id: UUID, campaign_id: UUID) -> None:
        async with database.transaction() as tx:
            await manage.schedule(
                tx, organization_id, campaign_id, confirmed_recipients=recipients, by="ann", is_now=True
            )

    async def run() -> None:
        async with opened(url) as database:
            await asyncio.gather(*(press(database, *it) for it in campaigns))

    asyncio.run(run())


def create_owner(url: str, organization_id: UUID, name: str) -> tuple[str, str]:
    """Creates an owner with a session; returns the slug of the organization and the session token."""

    async def work(tx: Tx) -> tuple[str, str]:
        person = await users.create_account(tx, email="owner@campaigns.example", name="Owner")
        await users.join(tx, organization_id, name, person.id, Role.OWNER)
        token = await sessions.start_session(tx, person.id, is_remembered=True, address="127.0.0.1", agent="bench")
        [membership] = await users.find_memberships(tx, person.id)
        return membership.slug, token

    return act(url, work)
