"""Erase and export the personal data of texts, replies, clicks and the global holdout, and list its columns."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from operator import attrgetter
from typing import Any, Final
from uuid import UUID

import msgspec

from regulars.consent.find import list_by_profile
from regulars.consent.numbers import find_number_hashes
from regulars.experiments.holdout.groups import delete_customers_of, list_quarters_of
from regulars.inbox.queries.lists import list_replies_of_person, list_texts_of_person
from regulars.inbox.retention import erase_messages
from regulars.kit.clock import format_timestamp
from regulars.kit.db import Database, Tx
from regulars.kit.ids import REPLY, TEXT
from regulars.links.find import list_clicks_of_person
from regulars.links.model import ClickOfPerson
from regulars.texts.model import ReplyRow, TextRow
from regulars.work.personal import DataSubject, ErasedPeople, PersonalData, export_rows, join_pages

_STAFF: Final = "about the retailer's staff, who are not customers"


async def _erase(tx: Tx, organization_id: UUID, people: ErasedPeople) -> None:
    await delete_customers_of(tx, organization_id, people.profile_ids)
    await erase_messages(tx, organization_id, profile_ids=people.profile_ids, number_hashes=people.number_hashes)


def export_texts(database: Database, person: DataSubject) -> AsyncIterator[bytes]:
    return _export_of_person(database, person, list_texts_of_person, _describe_text)


def export_holdouts(database: Database, person: DataSubject) -> AsyncIterator[bytes]:
    return join_pages(_list_holdouts(database, person))


async def _list_holdouts(database: Database, person: DataSubject) -> AsyncIterator[list[bytes]]:
    async with database.reading() as tx:
        quarters = await list_quarters_of(tx, person.organization_id, person.profile_id)
    yield [msgspec.json.encode({"quarter": quarter, "held_out": held_out}) for quarter, held_out in quarters]


def export_replies(database: Database, person: DataSubject) -> AsyncIterator[bytes]:
    return _export_of_person(database, person, list_replies_of_person, _describe_reply)


def export_clicks(database: Database, person: DataSubject) -> AsyncIterator[bytes]:
    return _export_of_person(database, person, list_clicks_of_person, _describe_click)


async def _export_of_person(
    database: Database,
    person: DataSubject,
    list_rows: Callable[..., Awaitable[Sequence[Any]]],
    describe: Callable[[Any], dict[str, Any]],
) -> AsyncIterator[bytes]:
    hashes = await _find_number_hashes(database, person)

    def list_page(tx: Tx, after: UUID, limit: int) -> Awaitable[Sequence[Any]]:
        ids = {"profile_id": person.profile_id, "number_hashes": hashes}
        return list_rows(tx, person.organization_id, **ids, after=after, limit=limit)

    async for chunk in export_rows(database, list_page, describe, position=attrgetter("id")):
        yield chunk


async def _find_number_hashes(database: Database, person: DataSubject) -> list[bytes]:
    async with database.reading() as tx:
        subscriptions = await list_by_profile(tx, person.organization_id, person.profile_id, secret=person.secret)
        return await find_number_hashes(tx, person.organization_id, [subscription.id for subscription in subscriptions])


def _describe_text(row: TextRow) -> dict[str, Any]:
    return {
        "id": TEXT.encode(row.id),
        "phone_number": row.phone_number,
        "text": row.body,
        "origin": row.origin_kind,
        "state": row.state,
        "reason": row.reason,
        "provider": row.provider,
        "created_at": format_timestamp(row.created_at),
        "ended_at": None if row.ended_at is None else format_timestamp(row.ended_at),
    }


def _describe_reply(row: ReplyRow) -> dict[str, Any]:
    return {
        "id": REPLY.encode(row.id),
        "phone_number": row.phone_number,
        "text": row.body,
        "meaning": row.meaning,
        "decided": row.decided,
        "received_at": format_timestamp(row.received_at),
    }


def _describe_click(row: ClickOfPerson) -> dict[str, Any]:
    return {"url": row.url, "minute": format_timestamp(row.minute), "class": row.class_}


PERSONAL_DATA: Final = PersonalData(
    columns=(
        "replies.profile_id",
        "replies.number_hash",
        "replies.phone_number",
        "replies.body",
        "replies.provider_id",
        "suppressions.number_hash",
    ),
    not_personal={
        "erased_replies": "keyed hashes of a provider's ids, so that a reply is not received again after an erasure",
        "replies.provider": "the name of a provider",
        "replies.decided": "one of the decisions about a reply",
        "replies.decided_by": _STAFF,
    },
    erase=_erase,
    exports={
        "texts": export_texts,
        "replies": export_replies,
        "clicks": export_clicks,
        "global_holdouts": export_holdouts,
    },
)
