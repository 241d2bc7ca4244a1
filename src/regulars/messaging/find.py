"""Find and list texts and replies, and read the conversation with a phone number.

The origin of a text is what requested it, such as a campaign or a customer's run of a journey; `step` tells the texts
of an origin apart.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import date, datetime
from typing import Final, LiteralString
from uuid import UUID

from regulars.consent.chain import hash_number
from regulars.kit.arrays import Blobs
from regulars.kit.columns import fill
from regulars.kit.db import Tx
from regulars.kit.ids import first_id_at
from regulars.kit.keyset import PageRequest, PageRows, reading_in_index_order
from regulars.links.origin_kind import OriginKind
from regulars.messaging.model import (
    ConversationItem,
    LatestMessage,
    MessageFilter,
    MessageListItem,
    ReplyRow,
    ReplyToOrigin,
    TextRow,
)
from regulars.messaging.queries import lists

# How many of the latest texts and replies are read for the list of phones that the simulator shows.
SIMULATED_ROWS_MAX: Final = 200
_RESPONSE_KINDS: Final = (OriginKind.STOP, OriginKind.HELP, OriginKind.ANSWER)
_FIND_BY_ID: Final[LiteralString] = """
    SELECT {columns} FROM unnest(%s::uuid[]) AS it (wanted_id)
    CROSS JOIN LATERAL (SELECT * FROM {table} WHERE organization_id = %s AND id = it.wanted_id LIMIT 1) AS t
"""
_LIST_OF_NUMBER: Final[LiteralString] = """
    SELECT {columns} FROM {table} WHERE organization_id = %s AND number_hash = %s ORDER BY {at} DESC LIMIT %s
"""


async def find_text(tx: Tx, organization_id: UUID, text_id: UUID) -> TextRow | None:
    return await tx.fetch_first(
        TextRow, "SELECT {columns} FROM texts WHERE organization_id = %s AND id = %s", (organization_id, text_id)
    )


async def find_texts(tx: Tx, organization_id: UUID, text_ids: Collection[UUID]) -> dict[UUID, TextRow]:
    texts = await tx.fetch_all(TextRow, fill(_FIND_BY_ID, table="texts"), (list(text_ids), organization_id))
    return {text.id: text for text in texts}


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


async def list_texts_of_origin(
    tx: Tx, organization_id: UUID, origin_kind: OriginKind, origin_id: UUID
) -> Sequence[TextRow]:
    """The texts that one origin requested."""
    return await _list_texts_of_origins(tx, organization_id, [origin_kind], origin_id)


async def find_texts_of_steps(
    tx: Tx, organization_id: UUID, origin_kind: OriginKind, steps: Collection[tuple[UUID, str]]
) -> dict[tuple[UUID, str], TextRow]:
    """The texts of steps, by origin and step; a step without a text is absent."""
    if not steps:
        return {}
    texts = await tx.fetch_all(
        TextRow,
        """
        SELECT {columns} FROM unnest(%(origin_ids)s::uuid[], %(steps)s::text[]) AS it (wanted_origin_id, wanted_step)
        CROSS JOIN LATERAL (
            SELECT * FROM texts
            WHERE organization_id = %(organization_id)s AND origin_kind = %(origin_kind)s
              AND origin_id = it.wanted_origin_id AND step = it.wanted_step
            LIMIT 1
        ) AS t
        """,
        {
            "organization_id": organization_id,
            "origin_kind": origin_kind.value,
            "origin_ids": [origin_id for origin_id, _ in steps],
            "steps": [step for _, step in steps],
        },
    )
    return {(text.origin_id, text.step): text for text in texts}


async def find_texted_numbers(
    tx: Tx, organization_id: UUID, origin_kind: OriginKind, origin_id: UUID, number_hashes: Collection[bytes]
) -> dict[bytes, str]:
    """The numbers for which this origin already requested a text, with the step of that text. The query reads the few
    texts of each number, since the index by origin does not contain numbers."""
    return await tx.fetch_map(
        """
        SELECT it.number_hash, t.step FROM unnest(%(number_hashes)s::bytea[]) AS it (number_hash)
        CROSS JOIN LATERAL (
            SELECT step FROM texts
            WHERE organization_id = %(organization_id)s AND number_hash = it.number_hash
              AND origin_kind = %(origin_kind)s AND origin_id = %(origin_id)s
            LIMIT 1
        ) AS t
        """,
        {
            "organization_id": organization_id,
            "origin_kind": origin_kind.value,
            "origin_id": origin_id,
            "number_hashes": list(number_hashes),
        },
    )


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


async def list_responses(tx: Tx, organization_id: UUID, reply_id: UUID) -> Sequence[TextRow]:
    """The texts that were sent because of a reply."""
    return await _list_texts_of_origins(tx, organization_id, _RESPONSE_KINDS, reply_id)


async def _list_texts_of_origins(
    tx: Tx, organization_id: UUID, origin_kinds: Iterable[OriginKind], origin_id: UUID
) -> list[TextRow]:
    """All texts that one origin requested, with one index lookup for each kind."""
    return await tx.fetch_all(
        TextRow,
        """
        SELECT {columns} FROM unnest(%(kinds)s::text[]) AS it (kind)
        CROSS JOIN LATERAL (
            SELECT * FROM texts
            WHERE organization_id = %(organization_id)s AND origin_kind = it.kind AND origin_id = %(origin_id)s
        ) AS t
        ORDER BY t.id
        """,
        {"organization_id": organization_id, "kinds": [kind.value for kind in origin_kinds], "origin_id": origin_id},
    )


async def find_last_answers(tx: Tx, organization_id: UUID, reply_ids: Collection[UUID]) -> dict[UUID, TextRow]:
    """The latest answer of a user to each of the replies; a reply without an answer is absent."""
    answers = await tx.fetch_all(
        TextRow,
        """
        SELECT {columns} FROM unnest(%(reply_ids)s::uuid[]) AS it (reply_id)
        CROSS JOIN LATERAL (
            SELECT * FROM texts
            WHERE organization_id = %(organization_id)s AND origin_kind = 'answer' AND origin_id = it.reply_id
            ORDER BY id DESC
            LIMIT 1
        ) AS t
        """,
        {"organization_id": organization_id, "reply_ids": list(reply_ids)},
    )
    return {answer.origin_id: answer for answer in answers}


async def find_reply(tx: Tx, organization_id: UUID, reply_id: UUID) -> ReplyRow | None:
    return await tx.fetch_first(
        ReplyRow, "SELECT {columns} FROM replies WHERE organization_id = %s AND id = %s", (organization_id, reply_id)
    )


async def find_replies(tx: Tx, organization_id: UUID, reply_ids: Collection[UUID]) -> dict[UUID, ReplyRow]:
    replies = await tx.fetch_all(ReplyRow, fill(_FIND_BY_ID, table="replies"), (list(reply_ids), organization_id))
    return {reply.id: reply for reply in replies}


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


async def find_suppressed(tx: Tx, organization_id: UUID, number_hashes: Collection[bytes]) -> set[bytes]:
    """The hashes of numbers that get no text until a user has decided about their reply."""
    hashes = await tx.fetch_column(
        "SELECT number_hash FROM suppressions WHERE organization_id = %s AND number_hash = ANY (%s::bytea[])",
        (organization_id, Blobs(number_hashes)),
    )
    return set(hashes)


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


async def count_texts_by_state(tx: Tx, organization_id: UUID, day: date) -> dict[str, int]:
    """How many texts reached each state on a day in the organization's time zone."""
    return await tx.fetch_map(
        "SELECT state, texts FROM text_totals WHERE organization_id = %s AND day = %s", (organization_id, day)
    )
