"""An organization with endpoints, things that happen in it, and the worker's turns, one at a time."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from tests.support.database_fixtures import SECRET
from tests.support.drain_queues import drain

from regulars.consent.ledger import EventOrigin
from regulars.consent.opt_in import Consent, opt_in
from regulars.consent.opt_out import Withdrawal, opt_out
from regulars.kit.db import Database
from regulars.kit.ids import ByExternalId
from regulars.kit.metrics import Metrics
from regulars.kit.ssrf import AddressPolicy
from regulars.kit.vault import Vault
from regulars.privacy.erase import erase_profiles
from regulars.profiles.model import Phone, ProfileUpsert
from regulars.profiles.write import upsert_profiles
from regulars.webhooks import find, manage
from regulars.webhooks.delivery.metrics import DeliveryMetrics
from regulars.webhooks.delivery.queue import DeliveryQueue
from regulars.webhooks.delivery.send import Sender
from regulars.worker import LISTENERS

NUMBER = "+33612345678"
CONSENTED_AT = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
LOOPBACK = AddressPolicy(["127.0.0.0/8"])


class Shop:
    def __init__(self, database: Database, organization_id: UUID) -> None:
        self.database = database
        self.organization_id = organization_id
        self.vault = Vault("a key of the tests that is long enough")
        self.metrics = Metrics()
        self.queue = self.new_queue()

    def new_queue(self, policy: AddressPolicy = LOOPBACK) -> DeliveryQueue:
        """As another worker would have it."""
        return DeliveryQueue(Sender(policy), self.vault, DeliveryMetrics(self.metrics))

    async def create(self, url: str, *types: str) -> manage.EndpointWithSecret:
        async with self.database.transaction() as tx:
            chosen = types or ("profile.*", "subscription.*")
            return await manage.create_endpoint(
                tx, self.organization_id, url=url, event_types=chosen, policy=LOOPBACK, vault=self.vault
            )

    async def do(self, act: Any, *arguments: Any, **options: Any) -> Any:
        """A use case of this organization in a transaction of its own."""
        async with self.database.transaction() as tx:
            return await act(tx, self.organization_id, *arguments, **options)

    async def upsert(self, external_id: str, **fields: Any) -> None:
        if "phone_number" in fields:
            fields["phone"] = Phone(fields.pop("phone_number"), reachable=True)
        await self.do(upsert_profiles, [ProfileUpsert(external_id=external_id, **fields)])

    async def consent(self, profile: str | None = None, **options: Any) -> None:
        async with self.database.transaction() as tx:
            given = Consent(
                phone_number=NUMBER,
                source=options.get("source", "WEBSITE"),
                consented_at=CONSENTED_AT,
                origin=EventOrigin(),
                profile=None if profile is None else ByExternalId(profile),
            )
            await opt_in(tx, self.organization_id, [given], secret=SECRET)

    async def withdraw(self) -> None:
        await self.do(opt_out, [Withdrawal(phone_number=NUMBER, origin=EventOrigin())], secret=SECRET)

    async def erase(self, external_id: str) -> None:
        await self.do(erase_profiles, [ByExternalId(external_id)], secret=SECRET)

    async def run_listeners(self) -> None:
        """Let the listeners make messages of the facts."""
        await drain(self.database, self.organization_id, LISTENERS)

    async def send(self, queue: DeliveryQueue | None = None) -> None:
        """Turns until nothing more can be sent now, each followed by its outcomes."""
        queue = queue or self.queue
        for _ in range(200):
            await queue.run_pass(self.database, self.organization_id)
            if not queue._acting:
                return
            while queue._acting or queue._completing:
                await asyncio.gather(*queue._acting, *queue._completing.values())

    async def deliver(self) -> None:
        await self.run_listeners()
        await self.send()

    async def deliver_to(self, url: str, **fields: Any) -> manage.EndpointWithSecret:
        """A first event, for a new endpoint."""
        created = await self.create(url)
        await self.upsert("a", **fields)
        await self.deliver()
        return created

    async def claim(self, queue: DeliveryQueue) -> list[Any]:
        """What a worker claims that does nothing else."""
        async with self.database.transaction() as tx:
            until = tx.now + queue.claim_for
            return await queue.claim(tx, self.organization_id, limit=10, lowest=0, owner=queue.owner, until=until)

    async def deliveries(self, **filters: Any) -> list[Any]:
        return await self.do(find.list_newest_deliveries, **filters)

    async def endpoint(self, created: manage.EndpointWithSecret) -> Any:
        return await self.do(manage.lock_endpoint, created.endpoint.id)

    async def later(self, **by: Any) -> None:
        """Let time pass for what waits: everything stored happened that much earlier."""
        async with self.database.transaction() as tx:
            interval = timedelta(**by)
            for table, columns in (
                ("webhook_deliveries", ("due_at", "created_at", "attempted_at")),
                ("webhook_endpoints", ("failing_since", "last_success_at", "probe_at", "old_secret_until")),
                ("webhook_messages", ("created_at",)),
            ):
                # A cluster takes no statement that subtracts from a column of a time zone: that depends on the session.
                changes = ", ".join(
                    f"{column} = ({column} AT TIME ZONE 'UTC' - %(by)s) AT TIME ZONE 'UTC'" for column in columns
                )
                await tx.execute(f"UPDATE {table} SET {changes}", {"by": interval})  # type: ignore[arg-type]  # noqa: S608  # names above


@pytest.fixture
async def shop(database: Database, organization_id: UUID) -> AsyncIterator[Shop]:
    opened = Shop(database, organization_id)
    yield opened
    await opened.queue.finish()
