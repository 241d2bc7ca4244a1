"""Poll Twilio's list of inbound messages, because Twilio gives up on a callback after some seconds and no STOP may be
lost.

The list is read for each of our sender numbers, newest message first, back to the stored time `read_until`: all earlier
messages were read before. A pass reads a limited number of pages; if it does not reach `read_until`, the next pass
continues at the following page.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import aiohttp
import msgspec

from regulars.consent.errors import InvalidPhoneNumber
from regulars.consent.phone import read_consent_number
from regulars.inbox.deduplication import find_received
from regulars.inbox.receive import IncomingMessage, receive_all
from regulars.kit import log
from regulars.kit.clock import monotonic
from regulars.kit.db import CONNECTION_ERRORS, Database, Tx
from regulars.kit.http_client import describe_network_error
from regulars.kit.vault import VaultError
from regulars.texts.model import EXEMPT_EXPIRES_AFTER
from regulars.texts.providers.twilio import InboundMessage, Twilio
from regulars.texts.settings.model import InboundProgress, SenderProgress
from regulars.texts.settings.store import POLL_EVERY, Texting, load_texting, save_inbound_progress
from regulars.work.claims import ClaimQueue
from regulars.work.queue import Due, WaitLimit

# How far back the first pass of a sender reads.
READ_BACK: Final = timedelta(hours=24)
# How far back a pass reads at most, after a long downtime.
READ_BACK_MAX: Final = timedelta(days=7)
# A message may appear in the list some time after it was sent, and the provider's clock differs from ours.
OVERLAP: Final = timedelta(hours=1)
SENDER_PAGES_MAX: Final = 10
PASS_PAGES_MAX: Final = 100
# A longer pass would lose its claim, and its progress would not be stored.
PASS_S_MAX: Final = 90.0
# When the next pass starts after a pass that did not reach `read_until`.
CONTINUE_AFTER: Final = timedelta(seconds=5)
# The messages per transaction. A transaction locks the numbers of all its messages, and with few messages an opt-out of
# one of these numbers waits at most half a second.
BATCH_MESSAGES_MAX: Final = 20

# After these errors the next pass reads the list again.
_READ_ERRORS: Final = (*CONNECTION_ERRORS, aiohttp.ClientError, msgspec.MsgspecError, TimeoutError, VaultError)

_log = log.get(__name__)


@dataclass(frozen=True, slots=True)
class InboundPoll:
    # The text settings of the organization, with the progress of earlier passes.
    texting: Texting
    polled_at: datetime


class InboundPolls(ClaimQueue[InboundPoll, InboundProgress]):
    """Polls for each organization that has a Twilio account, every five minutes."""

    name = "inbound"
    due = Due(table="sms_settings", waits=(WaitLimit(at_most=(POLL_EVERY,), waits_again=True),))
    poll_every_s = 15.0
    at_once_max = 8
    claim_for = timedelta(minutes=2)

    def __init__(self, twilio: Twilio, database: Database) -> None:
        super().__init__()
        self._twilio = twilio
        self._database = database

    async def claim(
        self, tx: Tx, organization_id: UUID, *, limit: int, lowest: int, owner: UUID, until: datetime
    ) -> Sequence[InboundPoll]:
        del limit, lowest, owner  # an organization has only one poll
        due = await tx.fetch(
            "SELECT 1 FROM sms_settings WHERE organization_id = %s AND due_at <= %s FOR UPDATE SKIP LOCKED",
            (organization_id, tx.now),
        )
        if not due:
            return []
        texting = await load_texting(tx, organization_id)
        # If this worker dies, another worker polls when the claim expires.
        await tx.execute("UPDATE sms_settings SET due_at = %s WHERE organization_id = %s", (until, organization_id))
        return [] if texting is None else [InboundPoll(texting, tx.now)]

    async def act(self, organization_id: UUID, claim: InboundPoll) -> InboundProgress:
        progress = _stored_progress(claim.texting)
        try:
            senders = await self._twilio.list_senders(claim.texting)
        except _READ_ERRORS as error:
            return _log_error(organization_id, claim, progress, _describe_error(error), error)
        progress, errors = await self._read_senders(organization_id, claim, progress, senders)
        if errors:
            return _log_error(organization_id, claim, progress, *errors[0])
        if progress.is_behind:
            _log.warning(
                "texts.replies_behind", organization_id=str(organization_id), heard_until=str(progress.read_until)
            )
        return msgspec.structs.replace(progress, failing_since=None)

    async def complete(
        self, tx: Tx, organization_id: UUID, done: Sequence[tuple[InboundPoll, InboundProgress]]
    ) -> None:
        for _, progress in done:
            continues = progress.is_behind and progress.error is None
            await save_inbound_progress(
                tx, organization_id, progress, due_at=tx.now + (CONTINUE_AFTER if continues else POLL_EVERY)
            )

    async def _read_senders(
        self, organization_id: UUID, claim: InboundPoll, progress: InboundProgress, senders: Sequence[str]
    ) -> tuple[InboundProgress, list[tuple[str, Exception]]]:
        """Return the new progress, and the errors of senders that could not be read; their `read_until` stays.

        The senders that were read longest ago come first, and senders that failed come last, because a pass may end
        before it has read all senders.
        """
        first = SenderProgress(claim.polled_at - READ_BACK)
        by_sender = {sender: progress.senders.get(sender) or first for sender in senders}
        errors: list[tuple[str, Exception]] = []
        pages_left, until = PASS_PAGES_MAX, monotonic() + PASS_S_MAX
        for sender in sorted(senders, key=lambda sender: (by_sender[sender].has_failed, by_sender[sender].read_until)):
            left_s = until - monotonic()
            if pages_left <= 0 or left_s <= 0:
                break
            reader = _SenderReader(sender, by_sender[sender], claim.polled_at)
            try:
                async with asyncio.timeout(left_s):
                    await reader.read(self._twilio, claim.texting)
                    await self._receive(organization_id, claim, reader.messages)
            except _READ_ERRORS as error:
                errors.append((f"{sender}: {_describe_error(error)}", error))
                by_sender[sender] = _failed_progress(by_sender[sender], error)
            else:
                by_sender[sender] = reader.progress
            pages_left -= reader.pages
        return InboundProgress(progress.account_sid, by_sender, failing_since=progress.failing_since), errors

    async def _receive(self, organization_id: UUID, claim: InboundPoll, messages: Sequence[InboundMessage]) -> None:
        """Drop duplicates without a lock, and receive the new messages in small transactions, oldest first."""
        texting = claim.texting
        in_order = sorted(messages, key=lambda message: message.sent_at or claim.polled_at)
        incoming = [message for listed in in_order if (message := _to_incoming(listed, claim.polled_at)) is not None]
        async with self._database.reading() as tx:
            received = await find_received(
                tx, organization_id, [message.key for message in incoming], secret=texting.secret
            )
        unread = [message for message in incoming if message.key not in received]
        for start in range(0, len(unread), BATCH_MESSAGES_MAX):
            async with self._database.transaction() as tx:
                await receive_all(tx, organization_id, unread[start : start + BATCH_MESSAGES_MAX], texting=texting)


class _SenderReader:
    """Reads the messages to one sender in one pass."""

    def __init__(self, sender: str, progress: SenderProgress, polled_at: datetime) -> None:
        self.messages: list[InboundMessage] = []
        self.progress = progress
        # The number of pages that were requested.
        self.pages = 0
        self._sender = sender
        self._polled_at = polled_at

    async def read(self, twilio: Twilio, texting: Texting) -> None:
        """Read pages until `read_until` or the limit of pages is reached."""
        since = max(self.progress.read_until - OVERLAP, self._polled_at - READ_BACK_MAX)
        until = self.progress.next_until or self._polled_at
        next_page = self.progress.next_page
        while self.pages < SENDER_PAGES_MAX:
            self.pages += 1
            page = await twilio.read_inbound(texting, sender=self._sender, since=since, page=next_page)
            self.messages += [message for message in page.messages if (message.sent_at or since) >= since]
            next_page = page.next_page
            if next_page is None or page.is_before(since):
                self.progress = SenderProgress(until)
                return
        self.progress = SenderProgress(self.progress.read_until, next_page, until)


def _stored_progress(texting: Texting) -> InboundProgress:
    """The stored progress; empty if it is that of another Twilio account."""
    account, stored = texting.settings.twilio, texting.inbound_progress
    account_sid = "" if account is None else account.account_sid
    return stored if stored.account_sid == account_sid else InboundProgress(account_sid)


def _failed_progress(progress: SenderProgress, error: Exception) -> SenderProgress:
    if isinstance(error, aiohttp.ClientResponseError):
        # The URL of `next_page` may have expired, so the next pass starts with the first page.
        return SenderProgress(progress.read_until, has_failed=True)
    return msgspec.structs.replace(progress, has_failed=True)


def _describe_error(error: Exception) -> str:
    """A sentence for users; the log has the error itself."""
    if isinstance(error, VaultError):
        return str(error)
    if isinstance(error, msgspec.MsgspecError):
        return "Its response could not be read."
    if isinstance(error, CONNECTION_ERRORS):
        return "The database could not be reached."
    if isinstance(error, aiohttp.ClientResponseError):
        return f"The response was HTTP {error.status}."
    return describe_network_error(error)


def _log_error(
    organization_id: UUID, claim: InboundPoll, progress: InboundProgress, reason: str, error: Exception
) -> InboundProgress:
    """Log the error, and return the progress with its reason, which the pages show."""
    reason = reason[:200]
    _log.warning("texts.replies_not_read", organization_id=str(organization_id), reason=reason, error=repr(error)[:200])
    return msgspec.structs.replace(progress, error=reason, failing_since=progress.failing_since or claim.polled_at)


def _to_incoming(inbound: InboundMessage, now: datetime) -> IncomingMessage | None:
    try:
        number = read_consent_number(inbound.phone_number)
    except InvalidPhoneNumber:
        return None
    return IncomingMessage(
        provider="twilio",
        provider_id=inbound.provider_id,
        phone_number=number,
        body=inbound.body,
        sent_at=inbound.sent_at,
        is_late=inbound.sent_at is not None and now - inbound.sent_at > EXEMPT_EXPIRES_AFTER,
    )
