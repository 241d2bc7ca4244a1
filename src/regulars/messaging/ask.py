"""Asking the provider for what came in: it gives up on a callback after some seconds, and a STOP must be heard."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from regulars.consent.errors import InvalidPhoneNumber
from regulars.consent.phone import read_consent_number
from regulars.kit.db import Tx
from regulars.messaging.inbox.receive import Incoming, receive_all
from regulars.messaging.model import EXEMPT_EXPIRES_AFTER
from regulars.messaging.providers.twilio import Inbound, Twilio
from regulars.messaging.settings.store import ASK_EVERY, Texting, load_texting, set_next_ask, take_due_settings
from regulars.work.claims import ClaimQueue
from regulars.work.queue import Due

# A look goes back this far: longer than the service is ever down without anybody noticing.
LOOK_BACK: Final = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Asked:
    texting: Texting
    since: datetime


class InboundQuestions(ClaimQueue[Asked, Sequence[Inbound]]):
    """One row for each organization with an account; it is due every five minutes."""

    name = "inbound"
    due = Due(table="sms_settings")
    look_every_s = 15.0
    at_once_max = 8

    def __init__(self, twilio: Twilio) -> None:
        super().__init__()
        self._twilio = twilio

    async def claim(
        self, tx: Tx, organization_id: UUID, *, limit: int, owner: UUID, until: datetime
    ) -> Sequence[Asked]:
        del limit, owner
        if not await take_due_settings(tx, organization_id):
            return []
        texting = await load_texting(tx, organization_id)
        # If this worker dies, another asks at the deadline of the claim.
        await set_next_ask(tx, organization_id, due_at=until)
        return [] if texting is None else [Asked(texting, tx.now - LOOK_BACK)]

    async def act(self, organization_id: UUID, claim: Asked) -> Sequence[Inbound]:
        del organization_id
        return await self._twilio.list_inbound(claim.texting, since=claim.since)

    async def settle(self, tx: Tx, organization_id: UUID, done: Sequence[tuple[Asked, Sequence[Inbound]]]) -> None:
        for asked, found in done:
            # The oldest message first.
            in_order = sorted(found, key=lambda it: it.sent_at or tx.now)
            heard = [it for inbound in in_order if (it := _incoming(inbound, tx.now)) is not None]
            await receive_all(tx, organization_id, heard, texting=asked.texting)
        await set_next_ask(tx, organization_id, due_at=tx.now + ASK_EVERY)


def _incoming(inbound: Inbound, now: datetime) -> Incoming | None:
    try:
        number = read_consent_number(inbound.phone_number)
    except InvalidPhoneNumber:
        return None
    return Incoming(
        provider="twilio",
        provider_id=inbound.provider_id,
        phone_number=number,
        body=inbound.body,
        is_late=inbound.sent_at is not None and now - inbound.sent_at > EXEMPT_EXPIRES_AFTER,
    )
