"""Drives texts in an organization of its own: the queue is given turns by hand."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from tests.support import desk as support
from tests.support.desk import NUMBER, ORIGIN

from regulars.consent.check import CheckItem, check_consents
from regulars.consent.model import Reason
from regulars.consent.opt_in import Consent, opt_in
from regulars.inbox.find import list_texts
from regulars.inbox.receive import IncomingMessage, ReceivedReply, receive_reply
from regulars.kit.db import Tx
from regulars.kit.ids import new_uuid
from regulars.links.origin_kind import OriginKind
from regulars.texts.find import find_suppressed
from regulars.texts.request import TextOrder, request_texts

MAKE_DUE = "UPDATE texts SET due_at = now() - interval '1 second' WHERE organization_id = %s AND due_at IS NOT NULL"


class Desk(support.Desk):
    def subscribe(self, *numbers: str) -> None:
        async def act(tx: Tx) -> None:
            given = [
                Consent(phone_number=number, source="OTHER", consented_at=tx.now, origin=ORIGIN)
                for number in numbers or [NUMBER]
            ]
            await opt_in(tx, self.organization_id, given, secret=self.secret)

        self.do(act)

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

    def reply(self, body: str, *, number: str = NUMBER, provider_id: str | None = None, **more: Any) -> ReceivedReply:
        texting = self.texting
        incoming = IncomingMessage(
            provider="simulator", provider_id=provider_id or str(new_uuid()), phone_number=number, body=body, **more
        )
        return self.do(lambda tx: receive_reply(tx, self.organization_id, incoming, texting=texting))

    def texts(self, number: str | None = None) -> list[tuple[str, str | None]]:
        """State and reason of the texts, the oldest first."""
        rows = self.do(
            lambda tx: list_texts(tx, self.organization_id, secret=self.secret, phone_number=number, limit=1000)
        )
        return [(row.state, row.reason) for row in reversed(rows)]

    def is_subscribed(self, number: str = NUMBER) -> bool:
        rows = self.sql("SELECT status FROM subscriptions WHERE organization_id = %s AND phone_number = %s", number)
        return rows == [("SUBSCRIBED",)]

    def may_text(self, number: str = NUMBER) -> tuple[bool, str]:
        """What `POST /v1/subscriptions/check` would say."""
        items = [CheckItem(phone_number=number)]
        [verdict] = self.do(
            lambda tx: check_consents(
                tx, self.organization_id, items, secret=self.secret, find_suppressed=find_suppressed
            )
        )
        return verdict.reason is Reason.SUBSCRIBED, verdict.reason.value
