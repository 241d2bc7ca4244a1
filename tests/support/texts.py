"""Sends texts in an organization without sending hours, for tests of pages about texts."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import psycopg
from tests.support.drain_queues import drain_queues
from tests.support.gateway import ALWAYS
from tests.support.open_database import in_transaction

from regulars.kit.db import Tx
from regulars.kit.ids import new_uuid
from regulars.links.origin_kind import OriginKind
from regulars.texts.request import TextOrder, request_texts
from regulars.texts.settings.model import SmsSettings
from regulars.texts.settings.store import lock_texting, save_texting


def open_at_any_hour(database_url: str, organization_id: UUID, **changes: Any) -> None:
    """Allows texts at any day and hour, so that a test does not depend on the time."""

    async def act(tx: Tx) -> None:
        texting = await lock_texting(tx, organization_id)
        assert texting is not None
        settings = SmsSettings(**{"brand": "Corvelle", "rules": {"FR": ALWAYS}, **changes})
        await save_texting(tx, organization_id, replace(texting, settings=settings))

    in_transaction(database_url, act)


def send_text(database_url: str, organization_id: UUID, number: str, words: str) -> UUID:
    """Sends a text of a user through the gate and the simulator."""
    order = TextOrder(
        origin_kind=OriginKind.PERSON, origin_id=new_uuid(), step="test", rendered=words, phone_number=number
    )
    return send_order(database_url, organization_id, order)


def send_order(database_url: str, organization_id: UUID, order: TextOrder) -> UUID:

    async def act(tx: Tx) -> UUID:
        texting = await lock_texting(tx, organization_id)
        assert texting is not None
        [ordered] = await request_texts(tx, organization_id, [order], texting=texting)
        return ordered.id

    text_id: UUID = in_transaction(database_url, act)
    drain_queues(database_url, organization_id)
    return text_id


def put_text_on_its_way(connection: psycopg.Connection[Any], organization_id: UUID) -> None:
    """A text to each number, which has passed the gate and whose sender is calling the provider."""
    connection.execute(
        "INSERT INTO texts (organization_id, id, origin_kind, origin_id, step, profile_id, number_hash, phone_number,"
        " body, parts, state, due_at, expires_at, created_at, claimed_at)"
        " SELECT organization_id, gen_random_uuid(), 'person', gen_random_uuid(), '1', profile_id, number_hash,"
        " phone_number, 'x', 1, 'sending', now() + interval '1 hour', now() + interval '1 hour', now(), now()"
        " FROM subscriptions WHERE organization_id = %s",
        (organization_id,),
    )
