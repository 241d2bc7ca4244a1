"""Lists of messages, and what was said between us and a number."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.keyset import PageRequest, PageRows, walk_in_order
from regulars.messaging.browse import queries
from regulars.messaging.browse.model import MessageLine, NumberLine, Wanted
from regulars.messaging.find import Line
from regulars.messaging.inbox.model import ReplyRow
from regulars.messaging.model import OriginKind, TextRow

# So many of the last texts and replies are looked at for the numbers that were heard of last.
LOOKED_AT_MAX: Final = 200
_ANSWERS: Final = (OriginKind.STOP.value, OriginKind.HELP.value, OriginKind.ANSWER.value)


async def list_messages(tx: Tx, organization_id: UUID, wanted: Wanted, page: PageRequest) -> PageRows[MessageLine]:
    """Texts and replies in one list, the newest first: ids of both are in the order of time."""
    await walk_in_order(tx)
    found: list[MessageLine] = []
    if wanted.is_sent:
        found += await queries.list_texts(tx, organization_id, wanted, page)
    if wanted.is_received:
        found += await queries.list_replies(tx, organization_id, wanted, page)
    found.sort(key=lambda line: line.id, reverse=not page.is_backward)
    return PageRows(found[: page.limit])


async def read_conversation(tx: Tx, organization_id: UUID, number_hash: bytes, *, limit: int) -> list[Line]:
    """What was said between us and a number, the oldest of the latest lines first."""
    sent = await queries.list_texts_of_number(tx, organization_id, number_hash, limit=limit)
    received = await queries.list_replies_of_number(tx, organization_id, number_hash, limit=limit)
    lines = [Line(row.claimed_at or row.created_at, text=row) for row in sent]
    lines += [Line(row.received_at, reply=row) for row in received]
    return sorted(lines, key=lambda line: line.at)[-limit:]


async def list_answers(tx: Tx, organization_id: UUID, reply_id: UUID) -> Sequence[TextRow]:
    """What was sent because of a reply."""
    return await queries.list_texts_of_origin(tx, organization_id, _ANSWERS, reply_id)


async def list_phones(tx: Tx, organization_id: UUID, *, limit: int) -> list[NumberLine]:
    """The numbers that the simulator heard of last, each with its last line."""
    await walk_in_order(tx)
    lines = await queries.list_last_simulated(tx, organization_id, limit=LOOKED_AT_MAX)
    lines += await queries.list_last_replies(tx, organization_id, limit=LOOKED_AT_MAX)
    lines.sort(key=lambda line: line.at, reverse=True)
    phones: dict[bytes, NumberLine] = {}
    for line in lines:
        phone = phones.setdefault(line.number_hash, line)
        # The answer to a STOP belongs to the number, and names no customer; an older line may.
        if not phone.first_name and not phone.last_name:
            phones[line.number_hash] = phone._replace(first_name=line.first_name, last_name=line.last_name)
    return list(phones.values())[:limit]


async def count_undecided(tx: Tx, organization_id: UUID, *, most: int) -> int:
    """How many replies wait for a person, counted up to a bound."""
    return await queries.count_undecided(tx, organization_id, most=most)


async def list_texts_of_person(
    tx: Tx, organization_id: UUID, *, profile_id: UUID, number_hashes: Sequence[bytes], after: UUID, limit: int
) -> Sequence[TextRow]:
    """What was sent to the person or to one of their numbers, the oldest first."""
    return await queries.list_texts_of_person(
        tx, organization_id, profile_id=profile_id, number_hashes=number_hashes, after=after, limit=limit
    )


async def list_replies_of_person(
    tx: Tx, organization_id: UUID, *, profile_id: UUID, number_hashes: Sequence[bytes], after: UUID, limit: int
) -> Sequence[ReplyRow]:
    """What came from the person or from one of their numbers, the oldest first."""
    return await queries.list_replies_of_person(
        tx, organization_id, profile_id=profile_id, number_hashes=number_hashes, after=after, limit=limit
    )
