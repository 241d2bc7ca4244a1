"""Find and list texts and replies, and read the conversation with a phone number.

The origin of a text is what requested it, such as a campaign or a customer's run of a journey; `step` tells the texts
of an origin apart.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import date
from typing import Final, LiteralString
from uuid import UUID

from regulars.kit.arrays import Blobs
from regulars.kit.columns import fill
from regulars.kit.db import Tx
from regulars.links.origin_kind import OriginKind
from regulars.texts.model import ReplyRow, TextRow

_RESPONSE_KINDS: Final = (OriginKind.STOP, OriginKind.HELP, OriginKind.ANSWER)
_FIND_BY_ID: Final[LiteralString] = """
    SELECT {columns} FROM unnest(%s::uuid[]) AS it (wanted_id)
    CROSS JOIN LATERAL (SELECT * FROM {table} WHERE organization_id = %s AND id = it.wanted_id LIMIT 1) AS t
"""


async def find_text(tx: Tx, organization_id: UUID, text_id: UUID) -> TextRow | None:
    return await tx.fetch_first(
        TextRow, "SELECT {columns} FROM texts WHERE organization_id = %s AND id = %s", (organization_id, text_id)
    )


async def find_texts(tx: Tx, organization_id: UUID, text_ids: Collection[UUID]) -> dict[UUID, TextRow]:
    texts = await tx.fetch_all(TextRow, fill(_FIND_BY_ID, table="texts"), (list(text_ids), organization_id))
    return {text.id: text for text in texts}


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


async def find_replies(tx: Tx, organization_id: UUID, reply_ids: Collection[UUID]) -> dict[UUID, ReplyRow]:
    replies = await tx.fetch_all(ReplyRow, fill(_FIND_BY_ID, table="replies"), (list(reply_ids), organization_id))
    return {reply.id: reply for reply in replies}


async def find_undecided_reply(tx: Tx, organization_id: UUID, number_hash: bytes) -> UUID | None:
    """The newest reply from a number that waits for a user's decision."""
    return await tx.fetch_value(
        """
        SELECT id FROM replies
        WHERE organization_id = %(organization_id)s AND decided IS NULL AND id = ANY (ARRAY(
            SELECT id FROM replies WHERE organization_id = %(organization_id)s AND number_hash = %(number_hash)s
        ))
        ORDER BY received_at DESC
        LIMIT 1
        """,
        {"organization_id": organization_id, "number_hash": number_hash},
    )


async def find_suppressed(tx: Tx, organization_id: UUID, number_hashes: Collection[bytes]) -> set[bytes]:
    """The hashes of numbers that get no text until a user has decided about their reply."""
    hashes = await tx.fetch_column(
        "SELECT number_hash FROM suppressions WHERE organization_id = %s AND number_hash = ANY (%s::bytea[])",
        (organization_id, Blobs(number_hashes)),
    )
    return set(hashes)


async def count_texts_by_state(tx: Tx, organization_id: UUID, day: date) -> dict[str, int]:
    """How many texts reached each state on a day in the organization's time zone."""
    return await tx.fetch_map(
        "SELECT state, texts FROM text_totals WHERE organization_id = %s AND day = %s", (organization_id, day)
    )
