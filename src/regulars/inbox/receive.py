"""Receive customers' replies to texts: STOP, START and HELP take effect at once, others wait for a user's decision."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final
from uuid import UUID

from regulars.consent.chain import hash_number
from regulars.consent.inbound import Reply, lock_profiles_for_start, record_inbound_start, record_inbound_stop
from regulars.consent.numbers import NumberConsent, lock_consents, was_withdrawn_by_text
from regulars.consent.opt_in import OptInReferences
from regulars.consent.stop_words import Meaning, classify_reply
from regulars.inbox.deduplication import MessageKey, find_received
from regulars.inbox.queries import replies
from regulars.kit.db import Tx
from regulars.kit.ids import new_uuid
from regulars.links.origin_kind import OriginKind
from regulars.texts.facts import publish_reply, publish_suppression
from regulars.texts.model import ReplyRow
from regulars.texts.number_location import locate_number
from regulars.texts.public_holidays import holidays_of
from regulars.texts.request import TextOrder, request_texts
from regulars.texts.settings.store import Texting

BODY_CHARACTERS_MAX: Final = 2_000
BUSINESS_DAYS_TO_DECIDE: Final = 5
RESPOND_AGAIN_AFTER: Final = timedelta(hours=24)
_FRIDAY: Final = 4

# The language of our response by the country of the number.
_LANGUAGES: Final = {
    "FR": "fr", "BE": "fr", "LU": "fr", "MC": "fr", "GP": "fr", "MQ": "fr", "RE": "fr", "GF": "fr",
    "DE": "de", "AT": "de", "CH": "de", "LI": "de",
    "IT": "it", "SM": "it", "ES": "es", "MX": "es", "AR": "es", "CO": "es", "CL": "es",
    "PT": "pt", "BR": "pt", "NL": "nl",
}  # fmt: skip
_STOP_CONFIRMATIONS: Final = {
    "en": "You will get no more texts from us.",
    "fr": "Vous ne recevrez plus de SMS de notre part.",
    "de": "Sie erhalten keine weiteren SMS von uns.",
    "it": "Non riceverai altri SMS da parte nostra.",
    "es": "No recibirá más SMS de nuestra parte.",
    "pt": "Não receberá mais SMS da nossa parte.",
    "nl": "U ontvangt geen sms meer van ons.",
}
_HELP_RESPONSES: Final = {
    "en": "To get no more texts, reply STOP.",
    "fr": "Pour ne plus recevoir de SMS, répondez STOP.",
    "de": "Antworten Sie STOP, um keine SMS mehr zu erhalten.",
    "it": "Per non ricevere altri SMS rispondi STOP.",
    "es": "Para no recibir más SMS responda STOP.",
    "pt": "Para não receber mais SMS responda STOP.",
    "nl": "Antwoord STOP om geen sms meer te ontvangen.",
}
_CONTACT_LABELS: Final = {
    "en": "Questions: ", "fr": "Contact : ", "de": "Fragen: ", "it": "Contatto: ", "es": "Contacto: ",
    "pt": "Contacto: ", "nl": "Contact: ",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingMessage:
    """A message that a provider delivers."""

    provider: str
    provider_id: str
    phone_number: str
    body: str
    # The provider's own classification, which takes precedence over our keywords.
    meaning: Meaning | None = None
    # Whether the provider itself has responded to the message, so that we do not.
    provider_responded: bool = False
    # When the message was sent; only known for messages from the provider's list.
    sent_at: datetime | None = None
    # Whether the message arrived too late to get a response; then a START does not subscribe either.
    is_late: bool = False

    @property
    def key(self) -> MessageKey:
        return self.provider, self.provider_id


@dataclass(frozen=True, slots=True)
class ReceivedReply:
    id: UUID
    meaning: Meaning
    # False if the message is a duplicate, which changes nothing.
    is_new: bool
    # What a keyword decided, such as `withdrew`; None if a user decides.
    decision: str | None = None


async def receive_reply(tx: Tx, organization_id: UUID, incoming: IncomingMessage, *, texting: Texting) -> ReceivedReply:
    """Store a reply and do what it asks for, such as the withdrawal by a STOP, in the caller's transaction; a duplicate
    changes nothing."""
    received = await receive_all(tx, organization_id, [incoming], texting=texting)
    return (
        received[0]
        if received
        else ReceivedReply(new_uuid(), _ParsedMessage.of(incoming, texting.secret).meaning, is_new=False)
    )


async def receive_all(
    tx: Tx, organization_id: UUID, incoming: Sequence[IncomingMessage], *, texting: Texting
) -> list[ReceivedReply]:
    """Receive several messages in their order. Duplicates are dropped before any row is locked. Profiles are locked
    first, then all numbers, then other rows: the lock order of sending, withdrawals and erasures too."""
    received = await find_received(tx, organization_id, [message.key for message in incoming], secret=texting.secret)
    parsed = [_ParsedMessage.of(message, texting.secret) for message in incoming if message.key not in received]
    if not parsed:
        return []
    starting = [message.incoming.phone_number for message in parsed if message.meaning is Meaning.START]
    references = await lock_profiles_for_start(tx, organization_id, starting)
    await lock_consents(tx, organization_id, {message.number_hash for message in parsed})
    return [await _receive(tx, organization_id, message, texting=texting, references=references) for message in parsed]


@dataclass(frozen=True, slots=True)
class _ParsedMessage:
    incoming: IncomingMessage
    number_hash: bytes
    body: str
    meaning: Meaning

    @classmethod
    def of(cls, incoming: IncomingMessage, secret: bytes) -> "_ParsedMessage":
        body = incoming.body.replace("\0", "")[:BODY_CHARACTERS_MAX]
        return cls(incoming, hash_number(secret, incoming.phone_number), body, incoming.meaning or classify_reply(body))


async def _receive(
    tx: Tx, organization_id: UUID, parsed: _ParsedMessage, *, texting: Texting, references: OptInReferences
) -> ReceivedReply:
    incoming, number_hash, meaning = parsed.incoming, parsed.number_hash, parsed.meaning
    # The consent is read again for each message, since the message before it may be from the same number.
    consent = (await lock_consents(tx, organization_id, [number_hash])).get(number_hash)
    if consent is not None and consent.erased_at is not None and _is_ignored_after_erasure(parsed, consent.erased_at):
        return ReceivedReply(new_uuid(), meaning, is_new=False)
    decision = _keyword_decision(meaning)
    if meaning is Meaning.START and (
        incoming.is_late or not await was_withdrawn_by_text(tx, organization_id, number_hash)
    ):
        decision = "ignored"
    row = ReplyRow(
        id=new_uuid(),
        provider=incoming.provider,
        provider_id=incoming.provider_id,
        number_hash=number_hash,
        phone_number=incoming.phone_number,
        profile_id=consent.profile_id if consent is not None else None,
        body=parsed.body,
        meaning=meaning.value,
        decided=decision,
        decided_by=None if decision is None else "keyword",
        decided_at=None if decision is None else tx.now,
        due_at=decision_deadline(incoming.phone_number, tx.now) if meaning is Meaning.PERHAPS_STOP else None,
        received_at=tx.now,
    )
    if not await replies.insert_reply_if_new(tx, organization_id, row):
        return ReceivedReply(row.id, meaning, is_new=False)
    await publish_reply(tx, organization_id, row)
    if row.meaning == Meaning.START.value and decision == "revived":
        await record_inbound_start(tx, organization_id, [_as_reply(row)], secret=texting.secret, references=references)
    needs_response = not (incoming.provider_responded or incoming.is_late)
    await _apply_reply(tx, organization_id, row, consent, texting=texting, needs_response=needs_response)
    return ReceivedReply(row.id, meaning, is_new=True, decision=decision)


def _is_ignored_after_erasure(parsed: _ParsedMessage, erased_at: datetime) -> bool:
    """Whether a message from a number whose person was erased is dropped.

    A message from before the erasure was erased with the person. A keyword changes nothing and gets no response, since
    an erased number is never texted. Any other message from after the erasure is stored: the person contacts the
    retailer again.
    """
    sent_at = parsed.incoming.sent_at
    return _keyword_decision(parsed.meaning) is not None or (sent_at is not None and sent_at <= erased_at)


def decision_deadline(phone_number: str, now: datetime) -> datetime:
    """The deadline for a user's decision: five business days later, by the calendar of the number's country."""
    country = locate_number(phone_number).country
    deadline, days_left = now, BUSINESS_DAYS_TO_DECIDE
    while days_left:
        deadline += timedelta(days=1)
        days_left -= _is_business_day(deadline.date(), country)
    return deadline


def _is_business_day(day: date, country: str | None) -> bool:
    return day.weekday() <= _FRIDAY and (country is None or day not in holidays_of(country, day.year))


def _keyword_decision(meaning: Meaning) -> str | None:
    """The stored decision about a reply that is a keyword; None if a user decides."""
    match meaning:
        case Meaning.STOP:
            return "withdrew"
        case Meaning.START:
            return "revived"
        case Meaning.HELP:
            return "answered"
        case _:
            return None


def _as_reply(row: ReplyRow) -> Reply:
    return Reply(phone_number=row.phone_number, text=row.body, message_id=f"reply:{row.id}")


async def _apply_reply(
    tx: Tx,
    organization_id: UUID,
    row: ReplyRow,
    consent: NumberConsent | None,
    *,
    texting: Texting,
    needs_response: bool,
) -> None:
    """Withdraw consent (STOP), respond (STOP and HELP), or suppress the number until a user decides (possible STOP)."""
    country = locate_number(row.phone_number).country
    if row.meaning == Meaning.STOP.value:
        await record_inbound_stop(tx, organization_id, [_as_reply(row)], secret=texting.secret)
        await replies.decide_replies(tx, organization_id, row.number_hash, decided="withdrew", decided_by="keyword")
        await replies.end_suppression(tx, organization_id, row.number_hash)
        if needs_response:
            await respond_once(tx, organization_id, row, OriginKind.STOP, stop_confirmation(country), texting=texting)
    elif row.meaning == Meaning.HELP.value:
        body = help_response(country, contact=texting.settings.help_contact)
        if needs_response:
            await respond_once(tx, organization_id, row, OriginKind.HELP, body, texting=texting)
    elif row.meaning == Meaning.PERHAPS_STOP.value:
        # No texts are sent to the number until a user has decided about the reply.
        await tx.execute(
            """
            INSERT INTO suppressions (organization_id, number_hash, reply_id, since) VALUES (%s, %s, %s, %s)
            ON CONFLICT (organization_id, number_hash) DO UPDATE SET reply_id = EXCLUDED.reply_id
            """,
            (organization_id, row.number_hash, row.id, tx.now),
        )
        profile_id = consent.profile_id if consent is not None else None
        await publish_suppression(tx, organization_id, row.number_hash, profile_id=profile_id)


async def respond_once(
    tx: Tx, organization_id: UUID, row: ReplyRow, kind: OriginKind, body: str, *, texting: Texting
) -> None:
    """Send the confirmation of a STOP, or the response to HELP, but only one to a number in 24 hours."""
    has_responded = await tx.fetch_value(
        """
        SELECT EXISTS (
            SELECT 1 FROM texts
            WHERE organization_id = %s AND number_hash = %s AND created_at > %s AND origin_kind = %s
        )
        """,
        (organization_id, row.number_hash, tx.now - RESPOND_AGAIN_AFTER, kind.value),
    )
    if has_responded:
        return
    order = TextOrder(origin_kind=kind, origin_id=row.id, step=kind.value, rendered=body, phone_number=row.phone_number)
    await request_texts(tx, organization_id, [order], texting=texting)


def stop_confirmation(country: str | None) -> str:
    return _STOP_CONFIRMATIONS[_LANGUAGES.get(country or "", "en")]


def help_response(country: str | None, *, contact: str | None) -> str:
    language = _LANGUAGES.get(country or "", "en")
    response = _HELP_RESPONSES[language]
    return f"{response} {_CONTACT_LABELS[language]}{contact}" if contact else response
