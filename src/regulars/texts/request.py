"""Queue texts that a journey run, a campaign or a user (their origin) requests; a step of an origin gets only one text.

Also queue a failed text, or a text with unknown outcome, again if a user requests it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from uuid import UUID

from regulars.consent.chain import hash_number
from regulars.consent.numbers import TextNumber, find_text_numbers
from regulars.kit.db import Tx
from regulars.kit.ids import new_uuid
from regulars.links.codes import LinkedText, discard_links, shorten_links
from regulars.links.marks import has_links, preview_links
from regulars.links.model import LinkOrigin
from regulars.links.origin_kind import OriginKind
from regulars.texts import text_rows as queries
from regulars.texts.errors import MessagingError
from regulars.texts.facts import publish_queue_changes, publish_text_changes
from regulars.texts.model import (
    EXEMPT_EXPIRES_AFTER,
    EXEMPT_ORIGINS,
    EXPIRES_AFTER,
    PRIORITIES,
    SkipReason,
    TextRow,
    TextState,
)
from regulars.texts.number_location import locate_number
from regulars.texts.queries.settings import lock_settings_shared
from regulars.texts.settings.model import OptOutNotice
from regulars.texts.settings.store import Texting
from regulars.texts.sms_encoding import PARTS_MAX, TextSize, measure
from regulars.texts.stops import find_stops
from regulars.texts.template import MissingValue

_RESENDABLE = frozenset({TextState.UNKNOWN.value, TextState.FAILED.value})


@dataclass(frozen=True, slots=True)
class ComposedText:
    """A text with brand and opt-out notice, as it is sent, and its number of SMS parts. `reason` says why it is skipped
    instead of queued; a text without a required value is empty."""

    body: str
    measured: TextSize
    reason: str | None = None

    @property
    def is_too_long(self) -> bool:
        return self.measured.parts > PARTS_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class TextOrder:
    """A request for a text to a profile, to a number, or to a number that must be linked to the profile."""

    origin_kind: OriginKind
    origin_id: UUID
    # Tells the texts of an origin apart: the id of a journey's step, or of a campaign's recipient, for example.
    step: str
    # The text with its variables filled, without brand and opt-out notice; or the field that has no value.
    rendered: str | MissingValue
    profile_id: UUID | None = None
    phone_number: str | None = None
    not_before: datetime | None = None
    # The latest time at which the text may be sent; None means 96 hours after it becomes due, or for responses to STOP
    # and HELP five minutes.
    expires_at: datetime | None = None
    # Why the text is skipped when it is requested; None if the check before sending decides.
    skipped_for: SkipReason | None = None
    # Where clicks on the links of the text are counted: a campaign and its variant, or a journey and its step. A pause
    # of that campaign or journey stops the text. None means the origin and step of the text.
    link_origin: tuple[UUID, str] | None = None
    # Whether the links of the text have personal codes, so that a click can be assigned to the recipient.
    has_personal_links: bool = False


@dataclass(frozen=True, slots=True)
class PlacedOrder:
    """The result of an order: the id of its text. `is_new` is False if this step of this origin was requested before;
    then nothing was queued."""

    id: UUID
    is_new: bool


async def request_texts(
    tx: Tx, organization_id: UUID, orders: Sequence[TextOrder], *, texting: Texting
) -> list[PlacedOrder]:
    """Queue the texts; a text that cannot be sent is stored as skipped, with the reason.

    Consent, sending hours and frequency caps are checked later, before a text is sent.
    """
    profile_ids = {order.profile_id for order in orders if order.profile_id is not None and order.phone_number is None}
    numbers = await find_text_numbers(tx, organization_id, profile_ids) if profile_ids else {}
    ids = [new_uuid() for _ in orders]
    shortened = await _shorten(tx, organization_id, ids, orders, is_demo=texting.is_demo)
    texts = [
        _new_text(
            text_id,
            order,
            shortened.get(text_id, order.rendered),
            _find_number(order, numbers, texting),
            texting=texting,
            now=tx.now,
        )
        for text_id, order in zip(ids, orders, strict=True)
    ]
    inserted = await queries.insert_texts_if_new(tx, organization_id, texts)
    if shortened:
        await discard_links(tx, organization_id, [text.id for text in texts if text.id not in inserted])
    if any(text.id in inserted and text.due_at is not None for text in texts):
        # After the commit, the process wakes a worker for the queue of texts.
        tx.queues_to_wake.add(("texts", organization_id))
    skipped = [text for text in texts if text.id in inserted and text.state == TextState.SKIPPED]
    await publish_text_changes(tx, organization_id, skipped, previous_state=TextState.QUEUED.value)
    return [PlacedOrder(text.id, text.id in inserted) for text in texts]


def _find_number(order: TextOrder, numbers: dict[UUID, TextNumber], texting: Texting) -> TextNumber | None:
    if order.phone_number is not None:
        return TextNumber(order.phone_number, hash_number(texting.secret, order.phone_number))
    return numbers.get(order.profile_id) if order.profile_id is not None else None


async def _shorten(
    tx: Tx, organization_id: UUID, ids: Sequence[UUID], orders: Sequence[TextOrder], *, is_demo: bool
) -> dict[UUID, str]:
    """The texts that contain links, with each link replaced by a short link."""
    linked = [
        LinkedText(
            text_id,
            order.profile_id,
            order.rendered,
            LinkOrigin(order.origin_kind.value, *(order.link_origin or (order.origin_id, order.step))),
            order.has_personal_links,
        )
        for text_id, order in zip(ids, orders, strict=True)
        if isinstance(order.rendered, str) and has_links(order.rendered) and order.skipped_for is None
    ]
    return await shorten_links(tx, organization_id, linked, is_demo=is_demo) if linked else {}


def _new_text(
    text_id: UUID,
    order: TextOrder,
    rendered: str | MissingValue,
    number: TextNumber | None,
    *,
    texting: Texting,
    now: datetime,
) -> TextRow:
    is_exempt = order.origin_kind in EXEMPT_ORIGINS
    composed = compose_for(rendered, number, texting, is_exempt=is_exempt)
    reason = composed.reason if order.skipped_for is None else order.skipped_for.value
    due_at = max(now, order.not_before or now)
    return TextRow(
        id=text_id,
        origin_kind=order.origin_kind.value,
        origin_id=order.origin_id,
        step=order.step,
        profile_id=order.profile_id,
        number_hash=None if number is None else number.number_hash,
        phone_number=None if number is None else number.phone_number,
        body=composed.body,
        parts=composed.measured.parts,
        state=(TextState.QUEUED if reason is None else TextState.SKIPPED).value,
        reason=reason,
        due_at=due_at if reason is None else None,
        expires_at=order.expires_at or due_at + (EXEMPT_EXPIRES_AFTER if is_exempt else EXPIRES_AFTER),
        attempts=0,
        provider=None,
        provider_id=None,
        created_at=now,
        claimed_at=None,
        ended_at=None if reason is None else now,
        priority=PRIORITIES[order.origin_kind].value,
        document_id=order.link_origin[0] if order.link_origin is not None else None,
    )


def compose_for(
    rendered: str | MissingValue, number: TextNumber | None, texting: Texting, *, is_exempt: bool = False
) -> ComposedText:
    """The text as it would be sent to a number."""
    if isinstance(rendered, MissingValue):
        return ComposedText("", measure(""), f"{SkipReason.MISSING_VALUE.value}: {rendered.field}")
    country = None if number is None else locate_number(number.phone_number).country
    notice = None if is_exempt else texting.opt_out_notice_of(country)
    composed = compose(rendered, texting, notice=notice)
    if number is None:
        return replace(composed, reason=SkipReason.NO_CONSENT.value)
    return replace(composed, reason=SkipReason.TOO_LONG.value) if composed.is_too_long else composed


def compose(text: str, texting: Texting, *, notice: OptOutNotice | None) -> ComposedText:
    """Add the brand and the opt-out notice, unless the text contains them already. A link that has no short code yet is
    replaced by an example of the same length."""
    body = preview_links(text, is_demo=texting.is_demo).strip()
    if not _brand_pattern(texting.brand).search(body):
        body = f"{texting.brand}: {body}"
    if notice is not None and notice.words not in body:
        body = f"{body} {notice.words}"
    return ComposedText(body, measure(body))


@lru_cache(maxsize=256)
def _brand_pattern(brand: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(brand)}(?!\w)")


async def resend(tx: Tx, organization_id: UUID, text_id: UUID) -> None:
    """Queue a text again; it is checked again before it is sent, and the customer may get it twice."""
    # With this lock, nothing can be paused or cancelled until this transaction ends. It precedes the text's lock.
    await lock_settings_shared(tx, organization_id)
    row = await queries.lock_text(tx, organization_id, text_id)
    if row is None:
        raise MessagingError("There is no text with this id.")
    if row.state not in _RESENDABLE:
        raise MessagingError(f"This text is {row.state}; only one that is unknown or failed can be sent again.")
    if OriginKind(row.origin_kind) in EXEMPT_ORIGINS:
        raise MessagingError("A response to STOP or HELP is sent within five minutes or not at all.")
    if row.origin_kind == OriginKind.TEST:
        raise MessagingError("A test is not sent again; send a new one.")
    stops = await find_stops(tx, organization_id, [row.document_id or row.origin_id])
    if stops:
        was_stopped = "was cancelled." if any(stops.values()) else "is paused; resume it first."
        raise MessagingError(f"The {row.origin_kind} {was_stopped}")
    expires_at = tx.now + EXPIRES_AFTER
    if row.origin_kind == OriginKind.CAMPAIGN:
        # The time until which the campaign sends still applies.
        expires_at = row.expires_at
        if tx.now >= expires_at:
            raise MessagingError("The time until which the campaign sends has passed.")
    await _queue_again(tx, organization_id, row, expires_at=expires_at)


async def send_past_cap(tx: Tx, organization_id: UUID, text_id: UUID) -> None:
    """Queue an answer again that was skipped for the frequency cap, outside the caps. It is checked for everything else
    before it is sent."""
    row = await queries.lock_text(tx, organization_id, text_id)
    if row is None:
        raise MessagingError("There is no text with this id.")
    if not may_send_past_cap(row):
        raise MessagingError("Only an answer that was not sent because of the frequency cap can be sent anyway.")
    await _queue_again(tx, organization_id, row, expires_at=tx.now + EXPIRES_AFTER, is_outside_cap=True)


def may_send_past_cap(row: TextRow) -> bool:
    is_capped = row.state == TextState.SKIPPED and row.reason == SkipReason.CAP
    return is_capped and row.origin_kind == OriginKind.ANSWER


async def _queue_again(
    tx: Tx, organization_id: UUID, row: TextRow, *, expires_at: datetime, is_outside_cap: bool = False
) -> None:
    await tx.execute(
        """
        UPDATE texts
        SET state = 'queued', reason = NULL, due_at = created_at, expires_at = %s, owner = NULL, claimed_at = NULL,
            ended_at = NULL, is_outside_cap = %s, tries = 0
        WHERE organization_id = %s AND id = %s
        """,
        (expires_at, is_outside_cap, organization_id, row.id),
    )
    requeued = row._replace(state=TextState.QUEUED.value, reason=None)
    await publish_queue_changes(tx, organization_id, [requeued], previous_state=row.state)
    tx.queues_to_wake.add(("texts", organization_id))
