"""Find and list replies, and read the conversation with a phone number."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, LiteralString
from uuid import UUID

from regulars.consent.chain import hash_number
from regulars.inbox.queries import lists
from regulars.kit.columns import fill
from regulars.kit.db import Tx
from regulars.kit.ids import first_id_at
from regulars.kit.keyset import PageRequest, PageRows, reading_in_index_order
from regulars.links.origin_kind import OriginKind
from regulars.texts.model import (
    ConversationItem,
    LatestMessage,
    MessageFilter,
    MessageListItem,
    ReplyRow,
    ReplyToOrigin,
    TextRow,
)

# How many of the latest texts and replies are read for the list of phones that the simulator shows.
SIMULATED_ROWS_MAX: Final = 200
_LIST_OF_NUMBER: Final[LiteralString] = """
    SELECT {columns} FROM {table} WHERE organization_id = %s AND number_hash = %s ORDER BY {at} DESC LIMIT %s
"""


async def list_texts(
    tx: Tx,
    organization_id: UUID,
    *,
    secret: bytes,
    phone_number: str | None = None,
    profile_id: UUID | None = None,
    state: str | None = None,
    limit: int,
) -> Sequence[TextRow]:
    """Texts, newest first."""
    values = {
        "organization_id": organization_id,
        "number_hash": None if phone_number is None else hash_number(secret, phone_number),
        "profile_id": profile_id,
        "state": state,
    }
    return await lists.list_rows(tx, "texts", TextRow, PageRequest(limit), values)


async def list_replies_to_origin(
    tx: Tx,
    organization_id: UUID,
    origin_kind: OriginKind,
    origin_id: UUID,
    *,
    since: datetime,
    until: datetime,
    limit: int,
) -> tuple[list[ReplyToOrigin], bool]:
    """Replies from `since` to `until` from numbers that this origin had texted before, newest first. At most `limit`
    replies of the organization are scanned; the flag says whether there are more. For each reply, the query reads the
    few texts to its number."""
    rows = await tx.fetch(
        """
        SELECT r.id, r.meaning, r.decided, r.received_at, t.step FROM (
            SELECT id, number_hash, meaning, decided, received_at FROM replies
            WHERE organization_id = %(organization_id)s AND id >= %(since)s AND id < %(until)s
            ORDER BY id DESC
            LIMIT %(limit)s
        ) AS r
        LEFT JOIN LATERAL (
            SELECT step FROM texts
            WHERE organization_id = %(organization_id)s AND number_hash = r.number_hash
              AND origin_kind = %(origin_kind)s AND origin_id = %(origin_id)s AND claimed_at <= r.received_at
            LIMIT 1
        ) AS t ON true
        ORDER BY r.id DESC
        """,
        {
            "organization_id": organization_id,
            "origin_kind": origin_kind.value,
            "origin_id": origin_id,
            "since": first_id_at(since),
            "until": first_id_at(until),
            "limit": limit + 1,
        },
    )
    return [ReplyToOrigin(*row) for row in rows[:limit] if row[-1] is not None], len(rows) > limit


async def find_reply(tx: Tx, organization_id: UUID, reply_id: UUID) -> ReplyRow | None:
    return await tx.fetch_first(
        ReplyRow, "SELECT {columns} FROM replies WHERE organization_id = %s AND id = %s", (organization_id, reply_id)
    )


async def list_replies(
    tx: Tx, organization_id: UUID, *, number_hash: bytes | None = None, undecided_only: bool = False, limit: int
) -> Sequence[ReplyRow]:
    """Replies, newest first; `undecided_only` lists only replies that wait for a user's decision."""
    values = {
        "organization_id": organization_id,
        "number_hash": number_hash,
        "undecided_only": undecided_only or None,
    }
    return await lists.list_rows(tx, "replies", ReplyRow, PageRequest(limit), values)


async def list_undecided_replies(tx: Tx, organization_id: UUID, page: PageRequest) -> PageRows[ReplyRow]:
    """Replies that wait for a user's decision, oldest first."""
    values = {"organization_id": organization_id, "undecided_only": True}
    return await lists.list_rows(tx, "replies", ReplyRow, page, values, order=lists.OLDEST)


async def count_undecided(tx: Tx, organization_id: UUID, *, limit: int) -> int:
    """The number of replies that wait for a user's decision; counting stops at `limit`."""
    return await tx.fetch_count(
        """
        SELECT count(*) FROM (
            SELECT 1 FROM replies WHERE organization_id = %s AND decided IS NULL ORDER BY id LIMIT %s
        ) AS waiting
        """,
        (organization_id, limit),
    )


async def list_messages(
    tx: Tx, organization_id: UUID, filters: MessageFilter, page: PageRequest
) -> PageRows[MessageListItem]:
    """Texts and replies in one list, newest first. Sorting by id is sorting by time, because ids begin with a time."""
    async with reading_in_index_order(tx):
        messages: PageRows[MessageListItem] = PageRows()
        if filters.is_sent:
            messages = await lists.list_items(tx, organization_id, filters, page, is_received=False)
        if filters.is_received:
            messages += await lists.list_items(tx, organization_id, filters, page, is_received=True)
    messages.sort(key=lambda message: message.id, reverse=not page.is_backward)
    del messages[page.limit :]
    return messages


async def read_conversation(tx: Tx, organization_id: UUID, number_hash: bytes, *, limit: int) -> list[ConversationItem]:
    """The latest texts to a number and replies from it, in the order of time."""
    # The index by number has no order; a number has few texts.
    values = (organization_id, number_hash, limit)
    sent = await tx.fetch_all(TextRow, fill(_LIST_OF_NUMBER, table="texts", at="created_at"), values)
    received = await tx.fetch_all(ReplyRow, fill(_LIST_OF_NUMBER, table="replies", at="received_at"), values)
    # A text was claimed when a worker handed it to the provider.
    messages = [ConversationItem(row.claimed_at or row.created_at, text=row) for row in sent]
    messages += [ConversationItem(row.received_at, reply=row) for row in received]
    return sorted(messages, key=lambda message: message.at)[-limit:]


async def list_simulated_phones(tx: Tx, organization_id: UUID, *, limit: int) -> list[LatestMessage]:
    """The numbers with the most recent replies and texts of the simulator, which is the provider that sends nothing;
    each with its latest message."""
    async with reading_in_index_order(tx):
        messages = await lists.list_last_simulated(tx, organization_id, limit=SIMULATED_ROWS_MAX)
        messages += await lists.list_last_replies(tx, organization_id, limit=SIMULATED_ROWS_MAX)
    messages.sort(key=lambda message: message.at, reverse=True)
    phones: dict[bytes, LatestMessage] = {}
    for message in messages:
        phone = phones.setdefault(message.number_hash, message)
        # The confirmation of a STOP names no customer; an older message to the number may name one.
        if not phone.first_name and not phone.last_name:
            phones[message.number_hash] = phone._replace(first_name=message.first_name, last_name=message.last_name)
    return list(phones.values())[:limit]
