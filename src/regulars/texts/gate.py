"""The check before a text is sent, called the gate: consent, suppression, country, sending hours and frequency caps."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final
from uuid import UUID

from regulars.consent.numbers import NumberConsent, TextNumber, find_consents
from regulars.kit.clock import monotonic
from regulars.kit.db import Tx
from regulars.links.origin_kind import OriginKind
from regulars.stores.find import find_addresses
from regulars.stores.model import Address
from regulars.texts.find import find_suppressed
from regulars.texts.model import (
    ANSWER_WITHIN,
    ANSWERS_OUTSIDE_CAP_MAX,
    EXEMPT_ORIGINS,
    UNCOUNTED_ORIGINS,
    SkipReason,
    TextRow,
    TextState,
)
from regulars.texts.number_location import NumberLocation, locate_number
from regulars.texts.providers.base import OutgoingText
from regulars.texts.public_holidays import region_of
from regulars.texts.queries import claims
from regulars.texts.rates import SenderRates
from regulars.texts.send_hours import next_opening
from regulars.texts.settings.model import ALWAYS_OPEN, Cap, SendHoursRule
from regulars.texts.settings.store import Texting
from regulars.texts.team_numbers import insert_code

_NO_LOCATION: Final = NumberLocation(None, ())
_NO_CONSENT: Final = NumberConsent(is_subscribed=False, profile_id=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateContext:
    """The data by which the gate decides: of a text, and of its phone number at the time of the check."""

    # Whether the text is a response to STOP or HELP, which is always sent.
    is_exempt: bool
    # The customer for whom the text was requested, if there is one.
    profile_id: UUID | None
    expires_at: datetime
    location: NumberLocation
    # Why nothing can be sent to the country of the number; None if texts can be sent.
    country_fault: SkipReason | None
    is_subscribed: bool
    # The customer to whom the number belongs now.
    linked_profile_id: UUID | None
    # Whether a reply from the number may be a STOP, and no user has decided about it.
    is_suppressed: bool
    rule: SendHoursRule
    # The times of earlier texts that count against the frequency caps, as far back as the longest cap.
    earlier: Sequence[datetime]


@dataclass(frozen=True, slots=True)
class SendAllowed:
    """The text may be sent now, but must not arrive after `until`."""

    until: datetime


@dataclass(frozen=True, slots=True)
class SendLater:
    """The text may not be sent before `until`."""

    until: datetime


@dataclass(frozen=True, slots=True)
class Skip:
    """The text is never sent."""

    reason: SkipReason


Decision = SendAllowed | SendLater | Skip


def decide(text: GateContext, caps: Sequence[Cap], now: datetime) -> Decision:
    """Decide whether one text is sent now, later or never, in the transaction that claims it for sending. No I/O."""
    if now >= text.expires_at:
        return Skip(SkipReason.EXPIRED)
    if text.is_exempt:
        return SendAllowed(text.expires_at)
    if not text.is_subscribed:
        return Skip(SkipReason.NO_CONSENT)
    if text.profile_id is not None and text.profile_id != text.linked_profile_id:
        return Skip(SkipReason.NOT_LINKED)
    if text.is_suppressed:
        return Skip(SkipReason.SUPPRESSED)
    country = text.location.country
    if country is None:
        return Skip(SkipReason.NO_COUNTRY)
    if text.country_fault is not None:
        return Skip(text.country_fault)
    if find_caps_end(caps, text.earlier, now) is not None:
        return Skip(SkipReason.CAP)
    opening = next_opening(text.rule, country, text.location.zones, now, region=text.location.region)
    if opening.at is None or opening.closes_at is None or opening.at >= text.expires_at:
        return Skip(SkipReason.HOURS)
    return SendAllowed(min(opening.closes_at, text.expires_at)) if opening.is_open(now) else SendLater(opening.at)


def find_country_fault(texting: Texting, country: str | None, body: str) -> SkipReason | None:
    """Why the text is not sent to a country: the country has no opt-out notice, the text lacks the notice because the
    notice was set later, or the country refuses the sender."""
    notice = texting.opt_out_notice_of(country)
    if notice is None or notice.words not in body:
        return SkipReason.COUNTRY_NOT_SET
    return SkipReason.SENDER_REFUSED if texting.is_sender_refused(country) else None


def find_caps_end(caps: Sequence[Cap], earlier: Sequence[datetime], now: datetime) -> datetime | None:
    """When the caps allow one more text to a number; None if they allow a text now."""
    cap = find_full_cap(caps, earlier, now)
    return None if cap is None else find_cap_end(cap, earlier, now)


def find_full_cap(caps: Sequence[Cap], earlier: Sequence[datetime], now: datetime) -> Cap | None:
    """The cap that allows no text to a number for the longest time from now on; None if all caps allow a text now."""
    full = [cap for cap in caps if find_cap_end(cap, earlier, now) > now]
    return max(full, key=lambda cap: find_cap_end(cap, earlier, now), default=None)


def find_cap_end(cap: Cap, earlier: Sequence[datetime], now: datetime) -> datetime:
    """When the oldest text that fills the cap is older than the hours of the cap; a cap of 0 texts never ends."""
    if cap.texts == 0:
        return now + timedelta(hours=cap.hours)
    newest = sorted(earlier)[-cap.texts :]
    return now if len(newest) < cap.texts else newest[0] + timedelta(hours=cap.hours)


@dataclass(frozen=True, slots=True)
class Forecast:
    """When sending hours and caps allow a text to a number, from a moment on. `opens_at` is that moment if texts are
    allowed then, and None if they are not allowed within 96 hours or the country is unknown. `capped_until` and `cap`,
    the cap that ends last, are None if the caps allow a text at that moment."""

    opens_at: datetime | None
    capped_until: datetime | None
    cap: Cap | None
    # Whether a reply from the number may be a STOP.
    is_suppressed: bool


@dataclass(frozen=True, slots=True)
class ClaimedText:
    """A text that passed the gate and that this worker sends next; `at` is the time of the claim on the monotonic
    clock."""

    text: TextRow
    outgoing: OutgoingText
    texting: Texting
    at: float = field(default_factory=monotonic)


class BatchGate:
    """Applies the gate to a batch of texts; a text that passes counts against the caps of the later texts."""

    def __init__(self, texting: Texting, consents: dict[bytes, NumberConsent], now: datetime) -> None:
        self._texting = texting
        self._consents = consents
        self._now = now
        self._suppressed: set[bytes] = set()
        self._earlier: dict[bytes, list[datetime]] = {}
        self._addresses: dict[UUID, Address] = {}
        self._replies: dict[UUID, claims.AnsweredReply] = {}
        # The ids of the answers that passed outside the frequency caps.
        self.outside_cap: set[UUID] = set()

    @classmethod
    async def open(
        cls,
        tx: Tx,
        organization_id: UUID,
        hashes: Collection[bytes],
        texting: Texting,
        consents: dict[bytes, NumberConsent],
    ) -> "BatchGate":
        """Load the data for the numbers of a batch; `hashes` are the hashes of these numbers."""
        gate = cls(texting, consents, tx.now)
        if hashes:
            gate._suppressed = await find_suppressed(tx, organization_id, hashes)
            longest_cap_hours = max((cap.hours for cap in texting.settings.caps), default=0)
            since = tx.now - timedelta(hours=longest_cap_hours)
            counted = await claims.find_counted_texts(tx, organization_id, hashes, since=since)
            gate._earlier = {number: [text.claimed_at for text in texts] for number, texts in counted.items()}
            stores = {consent.store_id for consent in consents.values() if consent.store_id is not None}
            gate._addresses = await find_addresses(tx, organization_id, stores)
        return gate

    async def load_replies(self, tx: Tx, organization_id: UUID, rows: Sequence[TextRow]) -> None:
        """Load the customers' messages that the texts answer."""
        reply_ids = {row.origin_id for row in rows if row.origin_kind == OriginKind.ANSWER}
        if reply_ids:
            self._replies = await claims.find_answered_replies(tx, organization_id, reply_ids)

    def decide_all(
        self, rows: Sequence[TextRow], rates: SenderRates
    ) -> tuple[list[ClaimedText], list[claims.Postponement], list[claims.EndedText]]:
        """The texts to send now, later, and never; a text whose sender has reached its rate limit is in no list."""
        claimed: list[ClaimedText] = []
        postponed: list[claims.Postponement] = []
        skipped: list[claims.EndedText] = []
        for row in rows:
            decision = self._decide(row)
            if isinstance(decision, SendAllowed) and row.phone_number is not None:
                if not rates.spend(row):
                    continue
                self._count(row)
                claimed.append(self._claim(row, row.phone_number, decision.until))
            elif isinstance(decision, SendLater):
                postponed.append(claims.Postponement(row.id, decision.until))
            else:
                # A text that is allowed but has no phone number is skipped too.
                reason = decision.reason if isinstance(decision, Skip) else SkipReason.NO_CONSENT
                skipped.append(claims.EndedText(row.id, TextState.SKIPPED.value, reason.value))
        return claimed, postponed, skipped

    def forecast(self, number: TextNumber, at: datetime) -> Forecast:
        location = self._locate(number.phone_number, self._consents.get(number.number_hash, _NO_CONSENT))
        settings = self._texting.settings
        earlier = self._earlier.get(number.number_hash, ())
        opens_at = None
        if location.country is not None:
            rule = settings.rule_of(location.country)
            opens_at = next_opening(rule, location.country, location.zones, at, region=location.region).at
        cap = find_full_cap(settings.caps, earlier, at)
        capped_until = None if cap is None else find_cap_end(cap, earlier, at)
        return Forecast(opens_at, capped_until, cap, number.number_hash in self._suppressed)

    def _decide(self, row: TextRow) -> Decision:
        number_hash = row.number_hash or b""
        consent = self._consents.get(number_hash, _NO_CONSENT)
        location = self._locate(row.phone_number, consent)
        is_test = row.origin_kind == OriginKind.TEST
        context = GateContext(
            is_exempt=OriginKind(row.origin_kind) in EXEMPT_ORIGINS,
            profile_id=row.profile_id,
            expires_at=row.expires_at,
            location=location,
            country_fault=find_country_fault(self._texting, location.country, row.body),
            # A test text to a team member needs no opt-in, but is not sent after a withdrawal.
            is_subscribed=consent.is_subscribed or (is_test and number_hash not in self._consents),
            linked_profile_id=consent.profile_id,
            is_suppressed=number_hash in self._suppressed,
            rule=ALWAYS_OPEN if is_test else self._texting.settings.rule_of(location.country or ""),
            earlier=self._earlier.get(number_hash, ()),
        )
        caps = () if is_test or self._is_outside_cap(row) else self._texting.settings.caps
        return decide(context, caps, self._now)

    def _is_outside_cap(self, row: TextRow) -> bool:
        """Whether the text is one of the first answers to a customer's message and was written soon after it, or a user
        sends it past the caps."""
        reply = self._replies.get(row.origin_id) if row.origin_kind == OriginKind.ANSWER else None
        return row.is_outside_cap or (
            reply is not None
            and row.created_at <= reply.received_at + ANSWER_WITHIN
            and reply.answers < ANSWERS_OUTSIDE_CAP_MAX
        )

    def _count(self, row: TextRow) -> None:
        """Count a text that is sent against the caps of later texts, or among the answers to its message."""
        if self._is_outside_cap(row):
            self.outside_cap.add(row.id)
        elif OriginKind(row.origin_kind) not in UNCOUNTED_ORIGINS:
            self._earlier.setdefault(row.number_hash or b"", []).append(self._now)
        reply = self._replies.get(row.origin_id) if row.origin_kind == OriginKind.ANSWER else None
        if reply is not None:
            self._replies[reply.id] = reply._replace(answers=reply.answers + 1)

    def _locate(self, phone_number: str | None, consent: NumberConsent) -> NumberLocation:
        """The location of the number, with the region of the store of its consent if the country is the same."""
        if phone_number is None:
            return _NO_LOCATION
        location = locate_number(phone_number)
        address = None if consent.store_id is None else self._addresses.get(consent.store_id)
        if address is None or address.country_code != location.country:
            return location
        return location._replace(region=region_of(address))

    def _claim(self, row: TextRow, phone_number: str, until: datetime) -> ClaimedText:
        outgoing = OutgoingText(
            organization_id=self._texting.organization_id,
            text_id=row.id,
            phone_number=phone_number,
            body=insert_code(row, self._texting.secret),
            until=until,
            sent_at=self._now,
            attempt=row.attempts + 1,
        )
        return ClaimedText(row, outgoing, self._texting)


async def forecast_texts(
    tx: Tx,
    organization_id: UUID,
    numbers: Collection[TextNumber],
    *,
    texting: Texting,
    starts: Mapping[bytes, datetime] = MappingProxyType({}),
) -> dict[bytes, Forecast]:
    """When each number may get one more text, by its hash: from its time in `starts` on, or else from now on. Nothing
    is locked, so the later decision may differ."""
    hashes = {number.number_hash for number in numbers}
    consents = await find_consents(tx, organization_id, hashes)
    gate = await BatchGate.open(tx, organization_id, hashes, texting, consents)
    return {it.number_hash: gate.forecast(it, starts.get(it.number_hash, tx.now)) for it in numbers}
