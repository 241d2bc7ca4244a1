"""Drive texts in an organization of its own: the queue is given turns by hand."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from regulars.consent.check import CheckItem, check_consents
from regulars.consent.ledger import EventOrigin
from regulars.consent.model import Reason
from regulars.consent.opt_in import Consent, opt_in
from regulars.consent.opt_out import Withdrawal, opt_out
from regulars.kit.db import Database, Tx
from regulars.kit.ids import new_uuid
from regulars.messaging.find import find_suppressed, list_texts
from regulars.messaging.inbox.receive import IncomingMessage, ReceivedReply, receive_reply
from regulars.messaging.model import OriginKind
from regulars.messaging.providers.base import Accepted, Outcome, OutgoingText
from regulars.messaging.request import TextOrder, request_texts
from regulars.messaging.send import TextQueue
from regulars.messaging.settings.model import OpenHours, SendHoursRule, SmsSettings
from regulars.messaging.settings.store import Texting, load_texting, save_texting
from regulars.organizations.manage import create_organization

T = TypeVar("T")

NUMBER = "+33612345678"
ALWAYS = SendHoursRule(days=(OpenHours(0, 24 * 60),) * 7, on_holidays=True)
OPEN = dict.fromkeys(("FR", "CH", "DE", "US"), ALWAYS)
ORIGIN = EventOrigin(request_id="req-1")


class Gateway:
    """A provider in the test's hands: it notes what it gets and answers what it was told to."""

    def __init__(self) -> None:
        self.sent: list[OutgoingText] = []
        self.answer: Callable[[OutgoingText], Awaitable[Outcome]] | None = None

    async def send(self, text: OutgoingText, texting: Texting) -> Outcome:
        self.sent.append(text)
        if self.answer is not None:
            return await self.answer(text)
        return Accepted(f"sid-{text.text_id}")


class Desk:
    def __init__(self, runner: asyncio.Runner, database: Database) -> None:
        self.runner = runner
        self.database = database
        self.gateway = Gateway()
        self.queue = TextQueue({"simulator": self.gateway})
        self.organization_id = runner.run(self._found())
        self.settings(SmsSettings(brand="Shop", rules=OPEN))

    async def _found(self) -> UUID:
        async with self.database.connection() as connection:
            return (await create_organization(connection, f"Shop {new_uuid()}")).id

    def do(self, act: Callable[[Tx], Awaitable[T]], *, now: datetime | None = None) -> T:
        async def transact() -> T:
            async with self.database.transaction() as tx:
                return await act(tx if now is None else replace(tx, now=now))

        return self.runner.run(transact())

    @property
    def texting(self) -> Texting:
        found = self.do(lambda tx: load_texting(tx, self.organization_id))
        assert found is not None
        return found

    def settings(self, settings: SmsSettings) -> None:
        texting = replace(self.texting, settings=settings)
        self.do(lambda tx: save_texting(tx, self.organization_id, texting))

    def subscribe(self, *numbers: str) -> None:
        texting = self.texting

        async def act(tx: Tx) -> None:
            given = [
                Consent(phone_number=number, source="OTHER", consented_at=tx.now, origin=ORIGIN)
                for number in numbers or [NUMBER]
            ]
            await opt_in(tx, self.organization_id, given, secret=texting.secret)

        self.do(act)

    def withdraw(self, number: str = NUMBER) -> None:
        secret = self.texting.secret
        given = Withdrawal(phone_number=number, origin=ORIGIN)
        self.do(lambda tx: opt_out(tx, self.organization_id, [given], secret=secret))

    def order(self, words: str = "Hello", *, number: str = NUMBER, now: datetime | None = None, **more: Any) -> UUID:
        texting = self.texting
        given: dict[str, Any] = {"origin_kind": OriginKind.PERSON, "origin_id": new_uuid(), "step": "1", **more}
        order = TextOrder(rendered=words, phone_number=number, **given)
        [ordered] = self.do(lambda tx: request_texts(tx, self.organization_id, [order], texting=texting), now=now)
        return ordered.id

    def order_all(self, kind: OriginKind, numbers: Sequence[str], *, origin_id: UUID | None = None) -> UUID:
        """A text of one origin to each of the numbers."""
        texting, origin_id = self.texting, origin_id or new_uuid()
        orders = [
            TextOrder(
                origin_kind=kind, origin_id=origin_id, step=str(new_uuid()), rendered="Hello", phone_number=number
            )
            for number in numbers
        ]
        self.do(lambda tx: request_texts(tx, self.organization_id, orders, texting=texting))
        return origin_id

    def turn(self) -> None:
        """One turn of the queue, and whatever it talked about written down."""

        async def turn() -> None:
            while await self.queue.run_pass(self.database, self.organization_id):
                await self.queue.finish()
            await self.queue.finish()

        self.runner.run(turn())

    def reply(self, body: str, *, number: str = NUMBER, provider_id: str | None = None, **more: Any) -> ReceivedReply:
        texting = self.texting
        incoming = IncomingMessage(
            provider="simulator", provider_id=provider_id or str(new_uuid()), phone_number=number, body=body, **more
        )
        return self.do(lambda tx: receive_reply(tx, self.organization_id, incoming, texting=texting))

    def texts(self, number: str | None = None) -> list[tuple[str, str | None]]:
        """State and reason of the texts, the oldest first."""
        secret = self.texting.secret
        rows = self.do(lambda tx: list_texts(tx, self.organization_id, secret=secret, phone_number=number, limit=1000))
        return [(row.state, row.reason) for row in reversed(rows)]

    def sql(self, query: Any, *parameters: Any) -> list[Any]:
        """A statement that names the organization as its first parameter."""
        return self.do(lambda tx: tx.fetch(query, (self.organization_id, *parameters)))

    def alter(self, query: Any, *parameters: Any) -> int:
        return self.do(lambda tx: tx.execute(query, (self.organization_id, *parameters)))

    def is_subscribed(self, number: str = NUMBER) -> bool:
        rows = self.sql("SELECT status FROM subscriptions WHERE organization_id = %s AND phone_number = %s", number)
        return rows == [("SUBSCRIBED",)]

    def may_text(self, number: str = NUMBER) -> tuple[bool, str]:
        """What `POST /v1/subscriptions/check` would say."""
        secret = self.texting.secret
        items = [CheckItem(phone_number=number)]
        [verdict] = self.do(
            lambda tx: check_consents(tx, self.organization_id, items, secret=secret, find_suppressed=find_suppressed)
        )
        return verdict.reason is Reason.SUBSCRIBED, verdict.reason.value
