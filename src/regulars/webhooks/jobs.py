"""Listeners: functions that the worker calls for facts about profiles, consents, sales and texts. They create webhook
events for the endpoints."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import msgspec

from regulars.consent.facts import SubscriptionsChanged
from regulars.consent.numbers import find_subscription_ids
from regulars.kit.clock import format_timestamp
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE, REPLY, TEXT, ById
from regulars.links.origin_kind import OriginKind
from regulars.profiles.facts import ProfilesChanged
from regulars.profiles.find import find_profiles
from regulars.profiles.model import ProfileRef
from regulars.sales.encode import encode_sale
from regulars.sales.facts import SalesRecorded
from regulars.sales.listing import find_sales
from regulars.texts.facts import MessagesChanged
from regulars.texts.find import find_replies, find_texts
from regulars.texts.model import ReplyRow, TextRow
from regulars.webhooks.events import WebhookEvent, post_events
from regulars.webhooks.interests import HAS_ENDPOINT_FOR_MESSAGES, HAS_ENDPOINT_FOR_SALES
from regulars.webhooks.model import MESSAGE_EVENTS
from regulars.work.facts import needed_if

# Only texts of these origins produce events; texts of automations, and automatic replies to keywords, do not.
_REPORTED_ORIGINS: Final = frozenset({OriginKind.PERSON, OriginKind.ANSWER, OriginKind.CAMPAIGN})


async def post_profile_events(tx: Tx, organization_id: UUID, facts: Sequence[ProfilesChanged]) -> None:
    events = [
        WebhookEvent(
            f"profile.{change.change}",
            fact.at,
            bytes(change.shown),
            profile_id=change.id,
            of_erasure=change.change == "deleted",
        )
        for fact in facts
        for change in fact.changes
    ]
    await post_events(tx, organization_id, events)


async def post_subscription_events(tx: Tx, organization_id: UUID, facts: Sequence[SubscriptionsChanged]) -> None:
    events = [
        WebhookEvent(
            f"subscription.{change.outcome}",
            fact.at,
            b'{"subscription":%s,"outcome":"%s"}' % (bytes(change.shown), change.outcome.encode()),
            profile_id=change.profile_id,
            subscription_id=change.id,
            of_erasure=change.by_erasure,
        )
        for fact in facts
        for change in fact.changes
    ]
    await post_events(tx, organization_id, events)


@needed_if(HAS_ENDPOINT_FOR_SALES)
async def post_sales_events(tx: Tx, organization_id: UUID, facts: Sequence[SalesRecorded]) -> None:
    """Create an event for each new sale; the worker calls this only if an endpoint receives events about sales."""
    sales = await find_sales(tx, organization_id, [ById(sale) for fact in facts for sale in fact.sales])
    events = [
        WebhookEvent(
            "sales_event.recorded",
            sale.created_at,
            encode_sale(sale),
            profile_id=None if sale.profile is None else sale.profile.id,
        )
        for sale in sales.values()
    ]
    await post_events(tx, organization_id, events)


@needed_if(HAS_ENDPOINT_FOR_MESSAGES)
async def post_message_events(tx: Tx, organization_id: UUID, facts: Sequence[MessagesChanged]) -> None:
    """Create an event for each changed text and each reply; the worker calls this only if an endpoint receives events
    about texts."""
    changed = [fact for fact in facts if fact.kind == "text" and f"message.{fact.state}" in MESSAGE_EVENTS]
    reported = [fact for fact in changed if fact.origin_kind in _REPORTED_ORIGINS]
    received = [fact for fact in facts if fact.kind == "reply"]
    texts = await find_texts(tx, organization_id, {fact.text_id for fact in reported if fact.text_id is not None})
    replies = await find_replies(tx, organization_id, {fact.text_id for fact in received if fact.text_id is not None})
    rows: list[TextRow | ReplyRow] = [*texts.values(), *replies.values()]
    found_profiles = await find_profiles(tx, organization_id, {ById(row.profile_id) for row in rows if row.profile_id})
    profiles = {profile.id: profile for profile in found_profiles.values()}
    subscriptions = await find_subscription_ids(
        tx, organization_id, {row.number_hash for row in rows if row.number_hash}
    )
    events: list[WebhookEvent] = []
    for fact in [*reported, *received]:
        row = texts.get(fact.text_id) if fact.kind == "text" else replies.get(fact.text_id)  # type: ignore[arg-type]  # no row has the id None
        subscription_id = None if row is None or row.number_hash is None else subscriptions.get(row.number_hash)
        # An erasure finds an event by its customer or by the subscription of its number. An event with neither is not
        # sent.
        if row is not None and (row.profile_id is not None or subscription_id is not None):
            name = "received" if isinstance(row, ReplyRow) else fact.state
            data = msgspec.json.encode({"message": _message_as_data(row, fact, profiles)})
            events.append(
                WebhookEvent(
                    f"message.{name}",
                    fact.at or tx.now,
                    data,
                    profile_id=row.profile_id,
                    subscription_id=subscription_id,
                )
            )
    await post_events(tx, organization_id, events)


def _message_as_data(
    row: TextRow | ReplyRow, fact: MessagesChanged, profiles: Mapping[UUID, ProfileRef]
) -> dict[str, Any]:
    """Return the message with the state that it had when the fact was recorded."""
    profile = None if row.profile_id is None else profiles.get(row.profile_id)
    is_reply = isinstance(row, ReplyRow)
    return {
        "id": (REPLY if is_reply else TEXT).encode(row.id),
        "direction": "inbound" if is_reply else "outbound",
        "profile": None if profile is None else {"id": PROFILE.encode(profile.id), "external_id": profile.external_id},
        "phone_number": row.phone_number,
        "text": row.body,
        "state": None if is_reply else fact.state,
        "reason": None if is_reply else fact.reason,
        "created_at": format_timestamp(row.received_at if isinstance(row, ReplyRow) else row.created_at),
    }
