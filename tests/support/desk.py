"""Drives use cases in an organization of its own: its customers, consents and text settings, and queues pass by pass."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from tests.support.gateway import OPEN, Gateway

from regulars.consent.ledger import EventOrigin
from regulars.consent.opt_in import Consent, opt_in
from regulars.consent.opt_out import Withdrawal, opt_out
from regulars.journeys.runs.lifecycle import release_runs
from regulars.kit.db import Database, Tx
from regulars.kit.ids import ByExternalId, new_uuid
from regulars.organizations.manage import create_organization, find_secret_and_country
from regulars.profiles.model import Phone, ProfileUpsert, read_phone
from regulars.profiles.write import upsert_profiles
from regulars.texts.send import TextQueue
from regulars.texts.settings.model import SmsSettings
from regulars.texts.settings.store import Texting, load_texting, save_texting
from regulars.texts.stops import ResumeQueue
from regulars.work.queue import Queue

T = TypeVar("T")

NUMBER = "+33612345678"
ORIGIN = EventOrigin(request_id="req-1")


class Desk:
    """Rooms add what they need. Texts may leave at any hour, to `gateway`."""

    def __init__(self, runner: asyncio.Runner, database: Database) -> None:
        self.runner = runner
        self.database = database
        self.gateway = Gateway()
        self.texts_queue = TextQueue({"simulator": self.gateway})
        self.resumed = ResumeQueue(release_runs)
        self.organization_id, self.secret = runner.run(self._create())
        self.settings(SmsSettings(brand="Shop", rules=OPEN))

    async def _create(self) -> tuple[UUID, bytes]:
        async with self.database.connection() as connection:
            organization = await create_organization(connection, f"Shop {new_uuid()}")
            return organization.id, (await find_secret_and_country(connection, organization.id)).secret

    def neighbour(self, **options: Any) -> "Desk":
        """Another organization on the same database."""
        return type(self)(self.runner, self.database, **options)

    def do(self, act: Callable[[Tx], Awaitable[T]], *, now: datetime | None = None) -> T:
        """Runs a use case in a transaction, which counts as of `now`."""

        async def transact() -> T:
            async with self.database.transaction() as tx:
                return await act(tx if now is None else replace(tx, now=now))

        return self.runner.run(transact())

    def now(self) -> datetime:
        """By the database's clock."""

        async def act(tx: Tx) -> datetime:
            return tx.now

        return self.do(act)

    def sql(self, query: Any, *parameters: Any) -> list[Any]:
        """The rows of a query that names the organization as its first parameter."""
        return self.do(lambda tx: tx.fetch(query, (self.organization_id, *parameters)))

    def alter(self, query: Any, *parameters: Any) -> int:
        """Changes rows in the same way; returns how many."""
        return self.do(lambda tx: tx.execute(query, (self.organization_id, *parameters)))

    def turn(self, queue: Queue | None = None) -> None:
        """Passes of one queue, that of texts if none is named, until nothing is due, with what they do outside transactions.
        Before, what was resumed becomes due."""
        self.runner.run(self._turn(self.resumed, queue or self.texts_queue))

    async def _turn(self, *queues: Queue) -> None:
        for queue in queues:
            while await queue.run_pass(self.database, self.organization_id):
                await queue.finish()
            await queue.finish()

    @property
    def texting(self) -> Texting:
        found = self.do(lambda tx: load_texting(tx, self.organization_id))
        assert found is not None
        return found

    def settings(self, settings: SmsSettings) -> None:
        texting = replace(self.texting, settings=settings)
        self.do(lambda tx: save_texting(tx, self.organization_id, texting))

    def store(self, external_id: str, *, name: str | None = None) -> UUID:
        identifier = new_uuid()
        self.alter(
            "INSERT INTO stores (organization_id, id, external_id, name, created_at, updated_at)"
            " VALUES (%s, %s, %s, %s, now(), now())",
            identifier, external_id, name or external_id,
        )  # fmt: skip
        return identifier

    def customer(
        self, name: str = "C1", *, phone: str | None = None, first_name: str | None = None, **attributes: Any
    ) -> UUID:
        given: dict[str, Any] = {"attributes": attributes}
        if phone is not None:
            given["phone"] = read_phone(phone, default_country="FR")
        if first_name is not None:
            given["first_name"] = first_name
        upsert = ProfileUpsert(external_id=name, **given)
        [upserted] = self.do(lambda tx: upsert_profiles(tx, self.organization_id, [upsert]))
        return upserted.profile.id

    def customers(self, count: int, *, first: int = 0, **attributes: str) -> dict[str, UUID]:
        """Customers who may be texted, each with a number; their ids by name."""
        numbers = {f"C{number}": f"+336123{number:05d}" for number in range(first, first + count)}
        upserts = [
            ProfileUpsert(
                external_id=name,
                phone=Phone(number, reachable=True),
                first_name=f"Zoé{name[1:]}",
                attributes=attributes,
            )
            for name, number in numbers.items()
        ]

        async def act(tx: Tx) -> dict[str, UUID]:
            upserted = await upsert_profiles(tx, self.organization_id, upserts)
            given = [
                Consent(
                    phone_number=number, source="OTHER", consented_at=tx.now, origin=ORIGIN, profile=ByExternalId(name)
                )
                for name, number in numbers.items()
            ]
            await opt_in(tx, self.organization_id, given, secret=self.secret)
            return {name: one.profile.id for name, one in zip(numbers, upserted, strict=True)}

        return self.do(act)

    def moment(self, now: datetime, ago: timedelta) -> datetime:
        return now - ago

    def opt_in(
        self,
        name: str | None = "C1",
        number: str = NUMBER,
        *,
        source: str = "OTHER",
        store: str | None = None,
        ago: timedelta = timedelta(0),
        now: datetime | None = None,
    ) -> None:
        async def act(tx: Tx) -> None:
            given = Consent(
                phone_number=number,
                source=source,
                consented_at=self.moment(tx.now, ago),
                origin=ORIGIN,
                profile=None if name is None else ByExternalId(name),
                store=None if store is None else ByExternalId(store),
            )
            await opt_in(tx, self.organization_id, [given], secret=self.secret)

        self.do(act, now=now)

    def opt_out(self, number: str = NUMBER, *, now: datetime | None = None) -> None:
        given = Withdrawal(phone_number=number, origin=ORIGIN)
        self.do(lambda tx: opt_out(tx, self.organization_id, [given], secret=self.secret), now=now)
