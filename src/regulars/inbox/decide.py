"""Record a user's decision about a reply, and treat a possible opt-out as an opt-out if no user decides in time."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from regulars.consent.inbound import Reply, record_inbound_stop
from regulars.consent.numbers import lock_available_consents, lock_consents
from regulars.inbox.find import find_reply
from regulars.inbox.queries import replies
from regulars.kit.db import Tx
from regulars.links.origin_kind import OriginKind
from regulars.texts import text_rows as texts
from regulars.texts.errors import MessagingError
from regulars.texts.facts import publish_suppression
from regulars.texts.model import KEYWORD_MEANINGS, ReplyRow
from regulars.texts.request import PlacedOrder, TextOrder, request_texts
from regulars.texts.settings.store import Texting, load_texting
from regulars.work.queue import Due, RowQueue, Schedule, take_free

_DECIDED_BY_DEADLINE = "nobody in time"


async def decide(
    tx: Tx, organization_id: UUID, reply_id: UUID, *, is_stop: bool, decided_by: str, texting: Texting
) -> None:
    """Record what a user decided about a reply: if it is a STOP, withdraw consent, otherwise allow texts to the number
    again."""
    row = await _lock_reply(tx, organization_id, reply_id)
    if row.decided is not None:
        raise MessagingError(f"This reply was decided before: {row.decided}.")
    await _decide(tx, organization_id, row, is_stop=is_stop, decided_by=decided_by, secret=texting.secret)


async def answer(
    tx: Tx, organization_id: UUID, reply_id: UUID, *, once: UUID, text: str, author_id: UUID | None, texting: Texting
) -> PlacedOrder:
    """Answer a reply with a text, which is checked like every text before it is sent; `once` identifies the answer,
    so that a repeated request sends no second one. `author_id` is the user who answers; None for an operator on the
    command line, whom the audit log names. The reply is decided when the provider accepts the text
    (`outcomes.py`); about a possible opt-out, a user still has to decide."""
    row = await _lock_reply(tx, organization_id, reply_id)
    if row.meaning in KEYWORD_MEANINGS:
        raise MessagingError("STOP, START and HELP are processed automatically; there is nothing to answer.")
    order = TextOrder(
        origin_kind=OriginKind.ANSWER,
        origin_id=row.id,
        step=str(once),
        rendered=text,
        phone_number=row.phone_number,
    )
    [placed] = await request_texts(tx, organization_id, [order], texting=texting)
    if placed.is_new and author_id is not None:
        await texts.set_author(tx, organization_id, placed.id, author_id)
    return placed


class OverdueReplies(RowQueue[ReplyRow]):
    """Possible opt-outs about which no user decided within five business days; they count as opt-outs."""

    name = "replies"
    due = Due(table="replies")
    poll_every_s = 30.0
    schedule = Schedule(waits_s=(60, 600, 3600, 3600, 3600, 3600))

    async def take(self, tx: Tx, organization_id: UUID, *, limit: int) -> Sequence[ReplyRow]:
        async def find_page(after: replies.OverdueReply | None, rows: int) -> Sequence[replies.OverdueReply]:
            return await replies.find_overdue(tx, organization_id, after=after, limit=rows)

        async def lock_page(overdue: Sequence[replies.OverdueReply]) -> Sequence[ReplyRow]:
            # Numbers are locked before replies, in the lock order of all transactions.
            hashes = {reply.number_hash for reply in overdue}
            _, locked_elsewhere = await lock_available_consents(tx, organization_id, hashes)
            available = [reply.id for reply in overdue if reply.number_hash not in locked_elsewhere]
            return await replies.take_overdue(tx, organization_id, available) if available else []

        return await take_free(find_page, lock_page, limit=limit)

    async def act(self, tx: Tx, organization_id: UUID, rows: Sequence[ReplyRow]) -> None:
        texting = await load_texting(tx, organization_id)
        if texting is None:
            return
        for row in rows:
            await _decide(
                tx, organization_id, row, is_stop=True, decided_by=_DECIDED_BY_DEADLINE, secret=texting.secret
            )

    async def postpone(
        self, tx: Tx, organization_id: UUID, row: ReplyRow, *, attempts: int, due_at: datetime | None
    ) -> None:
        del attempts  # retries have no limit
        await tx.execute(
            "UPDATE replies SET due_at = %s WHERE organization_id = %s AND id = %s", (due_at, organization_id, row.id)
        )


async def _lock_reply(tx: Tx, organization_id: UUID, reply_id: UUID) -> ReplyRow:
    """Lock the number before the reply, in the lock order of all transactions."""
    reply = await find_reply(tx, organization_id, reply_id)
    if reply is not None:
        await lock_consents(tx, organization_id, [reply.number_hash])
        locked = await tx.fetch_first(
            ReplyRow,
            "SELECT {columns} FROM replies WHERE organization_id = %s AND id = %s FOR UPDATE",
            (organization_id, reply_id),
        )
        if locked is not None:
            return locked
    raise MessagingError("There is no reply with this id.")


async def _decide(
    tx: Tx, organization_id: UUID, row: ReplyRow, *, is_stop: bool, decided_by: str, secret: bytes
) -> None:
    if is_stop:
        reply = Reply(phone_number=row.phone_number, text=row.body, message_id=f"reply:{row.id}")
        await record_inbound_stop(tx, organization_id, [reply], secret=secret)
        await replies.decide_replies(tx, organization_id, row.number_hash, decided="withdrew", decided_by=decided_by)
    else:
        await replies.decide_reply(tx, organization_id, row.id, decided="not_stop", decided_by=decided_by)
    await replies.end_suppression(tx, organization_id, row.number_hash)
    # Publishes that the suppression has ended.
    await publish_suppression(tx, organization_id, row.number_hash, profile_id=row.profile_id)
