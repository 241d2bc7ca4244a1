"""The queue of texts: one gate in the claiming transaction, then the provider, then what came of it.

The numbers of a batch are locked before its texts, as every withdrawal and every erasure locks them; a text whose
number another transaction has locked is left for the next pass. A withdrawal that commits before a claim is seen by it;
one that comes during a claim waits for the claim, and its answer waits until the text has ended (`quiet.py`). So
nothing is sent after a withdrawal was answered.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from regulars.consent.inbound import Reply, record_inbound_stop
from regulars.consent.numbers.gate import NumberConsent, lock_free_consents
from regulars.kit import failpoint
from regulars.kit.clock import monotonic
from regulars.kit.db import Tx
from regulars.messaging import queries
from regulars.messaging.gate import Candidate, Send, Skip, Wait, decide
from regulars.messaging.inbox.find import find_suppressed
from regulars.messaging.keep.retention import forget_ended, lock_texts
from regulars.messaging.model import EXEMPT, OriginKind, Reason, State, TextRow
from regulars.messaging.places import Place, place_of
from regulars.messaging.providers.base import (
    DIAL_WITHIN_S,
    Accepted,
    NotAuthorized,
    NotReached,
    Outcome,
    Outgoing,
    Providers,
    Refused,
    Unclear,
)
from regulars.messaging.providers.simulator import forget_simulated
from regulars.messaging.publish import note_changes
from regulars.messaging.regions import region_of
from regulars.messaging.settings.store import Texting, hold_for_account, share_texting
from regulars.stores.find import find_addresses
from regulars.stores.model import Address
from regulars.work.claims import ClaimQueue
from regulars.work.queue import Due, Schedule, take_free

# Only for texts that have surely not left: no connection was made, or the provider asked to come later.
RETRIES: Final = Schedule(waits_s=(5, 30, 120, 600))
# A provider whose queue is full is asked until the text is too old.
WHILE_BUSY: Final = timedelta(minutes=10)
LOOK_WHILE_HELD: Final = timedelta(minutes=10)
HELD_AT_ONCE: Final = 2_000
_NOWHERE: Final = Place(None, ())
_NEVER_ASKED: Final = NumberConsent(is_subscribed=False, profile_id=None)


@dataclass(frozen=True, slots=True)
class Dropped:
    """It was not dialled in time after its claim: consent is looked at again."""


@dataclass(frozen=True, slots=True)
class Claimed:
    text: TextRow
    outgoing: Outgoing
    texting: Texting
    at: float = field(default_factory=monotonic)


class TextQueue(ClaimQueue[Claimed, Outcome | Dropped]):
    name = "texts"
    due = Due(table="texts")
    # One second to dial, eight for the provider, and the rest to write it down.
    claim_for = timedelta(seconds=15)
    at_once_max = 128

    def __init__(self, providers: Providers) -> None:
        super().__init__()
        self._providers = providers

    async def claim(
        self, tx: Tx, organization_id: UUID, *, limit: int, owner: UUID, until: datetime
    ) -> Sequence[Claimed]:
        texting = await share_texting(tx, organization_id)
        rows, consents = await _take(tx, organization_id, limit=limit)
        await self._end_lapsed(tx, organization_id, [row for row in rows if row.state == State.SENDING])
        queued = [row for row in rows if row.state == State.QUEUED]
        if texting is None or texting.is_held:
            await self._keep_held(tx, organization_id, queued)
            return []
        gate = await _Gate.open(tx, organization_id, queued, texting, consents)
        claims, waits, skips = gate.sort(queued)
        if claims:
            ids = [claim.text.id for claim in claims]
            await queries.claim_texts(tx, organization_id, ids, provider=texting.provider, owner=owner, until=until)
        if waits:
            await queries.postpone_texts(tx, organization_id, waits)
        if len(rows) == limit:
            # Whatever became of these, there may be more that are due.
            tx.touched.add((self.name, organization_id))
        if skips:
            await note_changes(tx, organization_id, await queries.end_texts(tx, organization_id, skips))
        return claims

    async def act(self, organization_id: UUID, claim: Claimed) -> Outcome | Dropped:
        del organization_id  # the claim knows it
        failpoint.hit("text.claimed")
        if monotonic() - claim.at > DIAL_WITHIN_S:
            return Dropped()
        outcome = await self._providers[claim.texting.provider].send(claim.outgoing, claim.texting)
        failpoint.hit("text.sent")
        return outcome

    async def settle(self, tx: Tx, organization_id: UUID, done: Sequence[tuple[Claimed, Outcome | Dropped]]) -> None:
        # The settings first, then the number, then the text: the lock order of all transactions.
        for claim, outcome in done:
            if isinstance(outcome, NotAuthorized):
                await hold_for_account(tx, organization_id, claim.texting, reason=outcome.message)
                break
        stopped = [claim for claim, outcome in done if isinstance(outcome, Refused) and outcome.is_stop]
        if stopped:
            replies = [
                Reply(phone_number=claim.outgoing.phone_number, text="", message_id=f"text:{claim.text.id}")
                for claim in stopped
            ]
            await record_inbound_stop(tx, organization_id, replies, secret=stopped[0].texting.secret)
        await lock_texts(tx, organization_id, [claim.text.id for claim, _ in done])
        ended: list[queries.Ended] = []
        waits: list[queries.Put] = []
        for claim, outcome in done:
            # Which of this process's claims it was: it may have the text again by now, when this is settled once more.
            attempt = claim.text.attempts + 1
            again_at = _again_at(claim.text, outcome, tx.now)
            if again_at is not None:
                waits.append(queries.Put(claim.text.id, again_at, attempt))
            else:
                ended.append(_ended(claim.text.id, outcome)._replace(attempt=attempt))
        if waits:
            await queries.postpone_texts(tx, organization_id, waits, owner=self.owner)
        if ended:
            await _end(tx, organization_id, ended, owner=self.owner)

    async def _keep_held(self, tx: Tx, organization_id: UUID, rows: Sequence[TextRow]) -> None:
        """Nothing leaves while the texts are held; what is too old to be sent after a release ends now."""
        expired = [
            queries.Ended(row.id, State.SKIPPED.value, Reason.EXPIRED.value) for row in rows if tx.now >= row.expires_at
        ]
        if expired:
            await note_changes(tx, organization_id, await queries.end_texts(tx, organization_id, expired))
        later = tx.now + LOOK_WHILE_HELD
        await queries.postpone_all_due(tx, organization_id, until=later, limit=HELD_AT_ONCE)

    async def _end_lapsed(self, tx: Tx, organization_id: UUID, rows: Sequence[TextRow]) -> None:
        """Their sender died between the claim and the outcome: whether they left, nobody knows."""
        if rows:
            ended = [queries.Ended(row.id, State.UNKNOWN.value, "The sender ended before it knew.") for row in rows]
            await _end(tx, organization_id, ended)


async def _take(tx: Tx, organization_id: UUID, *, limit: int) -> tuple[Sequence[TextRow], dict[bytes, NumberConsent]]:
    """The first due texts to numbers that no other transaction has locked; the numbers are locked before the texts."""
    consents: dict[bytes, NumberConsent] = {}

    async def find(after: queries.DueText | None, many: int) -> Sequence[queries.DueText]:
        return await queries.find_due_numbers(tx, organization_id, after=after, limit=many)

    async def lock(found: Sequence[queries.DueText]) -> Sequence[TextRow]:
        hashes = {text.number_hash for text in found if text.number_hash is not None}
        locked, held = await lock_free_consents(tx, organization_id, hashes)
        consents.update(locked)
        free = [text.id for text in found if text.number_hash not in held]
        return await queries.lock_due_texts(tx, organization_id, free) if free else []

    return await take_free(find, lock, limit=limit), consents


class _Gate:
    """The gate over one bite: a text that passes counts against the cap of those behind it."""

    def __init__(self, texting: Texting, consents: dict[bytes, NumberConsent], now: datetime) -> None:
        self._texting = texting
        self._consents = consents
        self._now = now
        self._suppressed: set[bytes] = set()
        self._earlier: dict[bytes, list[datetime]] = {}
        self._addresses: dict[UUID, Address] = {}

    @classmethod
    async def open(
        cls,
        tx: Tx,
        organization_id: UUID,
        rows: Sequence[TextRow],
        texting: Texting,
        consents: dict[bytes, NumberConsent],
    ) -> "_Gate":
        gate = cls(texting, consents, tx.now)
        hashes = {row.number_hash for row in rows if row.number_hash is not None}
        if hashes:
            gate._suppressed = await find_suppressed(tx, organization_id, hashes)
            longest = max((cap.hours for cap in texting.settings.caps), default=0)
            since = tx.now - timedelta(hours=longest)
            gate._earlier = await queries.find_counted_times(tx, organization_id, hashes, since=since)
            stores = {consent.store_id for consent in consents.values() if consent.store_id is not None}
            gate._addresses = await find_addresses(tx, organization_id, stores)
        return gate

    def sort(self, rows: Sequence[TextRow]) -> tuple[list[Claimed], list[queries.Put], list[queries.Ended]]:
        claims: list[Claimed] = []
        waits: list[queries.Put] = []
        skips: list[queries.Ended] = []
        for row in rows:
            decision = self._decide(row)
            if isinstance(decision, Send) and row.phone_number is not None:
                claims.append(self._claimed(row, row.phone_number, decision.until))
            elif isinstance(decision, Wait):
                waits.append(queries.Put(row.id, decision.until))
            else:
                reason = decision.reason if isinstance(decision, Skip) else Reason.NO_CONSENT
                skips.append(queries.Ended(row.id, State.SKIPPED.value, reason.value))
        return claims, waits, skips

    def _decide(self, row: TextRow) -> Send | Wait | Skip:
        number_hash = row.number_hash or b""
        consent = self._consents.get(number_hash, _NEVER_ASKED)
        place = self._place(row.phone_number, consent)
        is_exempt = OriginKind(row.origin_kind) in EXEMPT
        candidate = Candidate(
            is_exempt=is_exempt,
            profile_id=row.profile_id,
            expires_at=row.expires_at,
            place=place,
            is_country_set=self._has_notice(row, place),
            is_subscribed=consent.is_subscribed,
            linked_profile_id=consent.profile_id,
            is_suppressed=number_hash in self._suppressed,
            rule=self._texting.settings.rule_of(place.country or ""),
            earlier=self._earlier.get(number_hash, ()),
        )
        decision = decide(candidate, self._texting.settings.caps, self._now)
        if isinstance(decision, Send) and not is_exempt:
            self._earlier.setdefault(number_hash, []).append(self._now)
        return decision

    def _place(self, phone_number: str | None, consent: NumberConsent) -> Place:
        """Where the number may be; its region is that of the store where consent was given, in the same country."""
        if phone_number is None:
            return _NOWHERE
        place = place_of(phone_number)
        address = None if consent.store_id is None else self._addresses.get(consent.store_id)
        if address is None or address.country_code != place.country:
            return place
        return place._replace(region=region_of(address))

    def _has_notice(self, row: TextRow, place: Place) -> bool:
        """Whether the country has a notice and the text carries it: it may have been set since the text was written."""
        notice = self._texting.notice_of(place.country)
        return notice is not None and notice.words in row.body

    def _claimed(self, row: TextRow, phone_number: str, until: datetime) -> Claimed:
        outgoing = Outgoing(
            organization_id=self._texting.organization_id,
            text_id=row.id,
            phone_number=phone_number,
            body=row.body,
            until=until,
            sent_at=self._now,
            attempt=row.attempts + 1,
        )
        return Claimed(row, outgoing, self._texting)


async def _end(tx: Tx, organization_id: UUID, ended: Sequence[queries.Ended], *, owner: UUID | None = None) -> None:
    """Write what became of texts that were on their way. Whose customer was erased meanwhile is counted, and goes: the
    provider's words may name the number, and the simulator has shown it."""
    changed = await queries.end_texts(tx, organization_id, ended, owner=owner)
    erased = [row.id for row in changed if row.phone_number is None]
    await forget_ended(tx, organization_id, erased)
    await forget_simulated(tx, organization_id, erased)
    told = [row if row.phone_number is not None else row._replace(reason=None) for row in changed]
    await note_changes(tx, organization_id, told)


def _again_at(row: TextRow, outcome: Outcome | Dropped, now: datetime) -> datetime | None:
    """When to try again; None where the text has ended one way or another."""
    if isinstance(outcome, Dropped | NotAuthorized):
        return now
    if not isinstance(outcome, NotReached):
        return None
    again_at = RETRIES.due_at(now, attempts=row.attempts + 1)
    if again_at is None and outcome.is_busy:
        again_at = now + WHILE_BUSY
    if again_at is None or outcome.retry_after is None:
        return again_at
    return max(again_at, now + outcome.retry_after)


def _ended(text_id: UUID, outcome: Outcome | Dropped) -> queries.Ended:
    match outcome:
        case Accepted(provider_id):
            return queries.Ended(text_id, State.SENT.value, None, provider_id)
        case Refused(code, message):
            return queries.Ended(text_id, State.FAILED.value, f"{Reason.REFUSED.value} {code}: {message}"[:300])
        case Unclear(message):
            return queries.Ended(text_id, State.UNKNOWN.value, message)
        case _:
            return queries.Ended(text_id, State.FAILED.value, Reason.NOT_REACHED.value)
