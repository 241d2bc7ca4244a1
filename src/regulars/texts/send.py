"""The queue that sends texts: claim the due texts that pass the gate (`gate.py`), call the provider, store the outcome.

A claim locks the phone numbers of a batch before its texts, like every withdrawal and every erasure; a text whose
number is locked by another transaction is left for the next pass. A claim sees each withdrawal that committed before
it. A withdrawal during a claim waits for the claim, and its response waits until the text is no longer in flight
(`in_flight.py`). So nothing is sent after a withdrawal was confirmed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from regulars.consent.inbound import Reply, record_inbound_stop
from regulars.consent.numbers import NumberConsent, lock_available_consents
from regulars.kit import failpoint
from regulars.kit.clock import monotonic
from regulars.kit.db import Tx
from regulars.links.origin_kind import OriginKind
from regulars.texts import text_rows as texts
from regulars.texts.gate import BatchGate, ClaimedText
from regulars.texts.model import Priority, SkipReason, TextRow, TextState
from regulars.texts.outcomes import end_texts
from regulars.texts.providers.base import (
    DIAL_WITHIN_S,
    Accepted,
    NotAuthorized,
    NotReached,
    Outcome,
    Providers,
    Refused,
    Unclear,
)
from regulars.texts.queries import claims
from regulars.texts.queries.settings import lock_settings_shared
from regulars.texts.rates import SenderRates
from regulars.texts.settings.store import hold_for_account, load_texting_shared
from regulars.texts.stops import SET_ASIDE_MAX, end_stopped_texts, set_aside
from regulars.work.claims import ClaimQueue
from regulars.work.queue import PAGE_ITEMS_MAX, Due, Schedule, WaitLimit, take_free

# Retries are only for texts that were not sent: no connection was made, or the provider was busy.
RETRIES: Final = Schedule(waits_s=(5, 30, 120, 600))
# How long to wait after the last retry if the provider is busy; the text is retried until it expires.
BUSY_RETRY_AFTER: Final = timedelta(minutes=10)
# The longest wait for which a provider can ask.
RETRY_AFTER_MAX: Final = timedelta(hours=1)
# A claim that was not dialled, because the worker was busy, is no try; the text is claimed again until it expires.
CLAIM_AGAIN_AFTER: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class NotDialled:
    """The worker did not start to send the text within a second of the claim, so the text must be checked again."""


class TextQueue(ClaimQueue[ClaimedText, Outcome | NotDialled]):
    name = "texts"
    # One second to connect, eight for the provider, and six to store the outcome.
    claim_for = timedelta(seconds=15)
    due = Due(
        table="texts",
        waits=(
            WaitLimit(at_most=(claim_for,), condition="state = 'sending'", waits_again=True),
            WaitLimit(
                at_most=(timedelta(0),),
                condition="state = 'queued' AND due_at <= created_at AND created_at > %(now)s",
            ),
            # It is tried again. A text that waits for the opening hour has no provider.
            WaitLimit(at_most=(RETRY_AFTER_MAX,), condition="state = 'queued' AND provider IS NOT NULL"),
        ),
    )
    at_once_max = 128
    # Slots for higher priorities: texts of campaigns use at most 80 slots, so they cannot fill all if the provider is
    # slow.
    reserved_slots = (16, 32)

    def __init__(self, providers: Providers) -> None:
        super().__init__()
        self._providers = providers

    async def claim(
        self, tx: Tx, organization_id: UUID, *, limit: int, lowest: int, owner: UUID, until: datetime
    ) -> Sequence[ClaimedText]:
        texting = await load_texting_shared(tx, organization_id)
        if texting is None:
            return []
        rates = await SenderRates.open(tx, organization_id, texting)
        if (affordable := rates.affordable) is not None:
            limit, lowest = (min(limit, affordable), lowest) if affordable else (limit, Priority.REPLY)
        rows, consents, stopped = await _lock_due_texts(
            tx, organization_id, limit=limit, lowest=lowest, rates=rates, is_on_hold=texting.is_on_hold
        )
        if stopped:
            await set_aside(tx, organization_id, stopped, is_on_hold=texting.is_on_hold)
        await self._end_lapsed(tx, organization_id, [row for row in rows if row.state == TextState.SENDING])
        queued = [row for row in rows if row.state == TextState.QUEUED]
        hashes = {row.number_hash for row in queued if row.number_hash is not None}
        gate = await BatchGate.open(tx, organization_id, hashes, texting, consents)
        await gate.load_replies(tx, organization_id, queued)
        claimed, postponed, skipped = gate.decide_all(queued, rates)
        await rates.save(tx, organization_id)
        if rates.wait_s is not None:
            self.wake_after_s[organization_id] = rates.wait_s
        if claimed:
            await claims.claim_texts(
                tx,
                organization_id,
                [claim.text.id for claim in claimed],
                outside_cap=gate.outside_cap,
                provider=texting.provider,
                owner=owner,
                until=until,
            )
        if postponed:
            await claims.postpone_texts(tx, organization_id, postponed)
        if len(rows) == limit or len(stopped) == SET_ASIDE_MAX:
            # More texts may be due: wake this queue again after the commit.
            tx.queues_to_wake.add((self.name, organization_id))
        await end_texts(tx, organization_id, skipped, previous_state=TextState.QUEUED.value)
        return claimed

    def priority_of(self, claim: ClaimedText) -> int:
        return claim.text.priority

    async def act(self, organization_id: UUID, claim: ClaimedText) -> Outcome | NotDialled:
        del organization_id  # it is in the claim
        failpoint.hit("text.claimed")
        if monotonic() - claim.at > DIAL_WITHIN_S:
            return NotDialled()
        outcome = await self._providers[claim.texting.provider].send(claim.outgoing, claim.texting)
        failpoint.hit("text.sent")
        return outcome

    async def complete(
        self, tx: Tx, organization_id: UUID, done: Sequence[tuple[ClaimedText, Outcome | NotDialled]]
    ) -> None:
        retries = {claim.text.id: _retry_at(claim.text, outcome, tx.now) for claim, outcome in done}
        retried = [claim.text for claim, _ in done if retries[claim.text.id] is not None]
        # The settings are locked first, then the number, then the text: the lock order of all transactions.
        await self._hold_if_refused(tx, organization_id, done)
        if any(text.origin_kind == OriginKind.CAMPAIGN for text in retried):
            # With this lock, a campaign is stopped either before this transaction, which then sees the stop, or after
            # it, when the stop finds the text in the queue.
            await lock_settings_shared(tx, organization_id)
        await self._withdraw_numbers(tx, organization_id, done)
        locked = await texts.lock_texts(tx, organization_id, [claim.text.id for claim, _ in done])
        ended_ids = await end_stopped_texts(tx, organization_id, retried, previous=TextState.SENDING, owner=self.owner)
        # The clock of the database was set forward, so that the claims seemed to have expired.
        unknown = {(text_id, attempt) for text_id, state, attempt in locked if state == TextState.UNKNOWN}
        ended: list[claims.EndedText] = []
        late: list[claims.EndedText] = []
        postponed: list[claims.Postponement] = []
        for claim, outcome in done:
            # Identifies this claim: if this transaction is retried, the text may have been claimed again meanwhile.
            attempt = claim.text.attempts + 1
            tries = int(not isinstance(outcome, NotDialled))
            retry_at = retries[claim.text.id]
            final = _ended_text(claim.text.id, outcome)._replace(attempt=attempt, tries=tries)
            if (final.id, attempt) in unknown:
                # A text that was not sent fails, because one that was unknown is never sent again by itself.
                late += [] if isinstance(outcome, Unclear) else [final]
            elif retry_at is None:
                ended.append(final)
            elif claim.text.id not in ended_ids:
                postponed.append(claims.Postponement(claim.text.id, retry_at, attempt, tries))
        if postponed:
            await claims.postpone_texts(tx, organization_id, postponed, owner=self.owner)
        await end_texts(tx, organization_id, ended, previous_state=TextState.SENDING.value, owner=self.owner)
        await end_texts(tx, organization_id, late, previous_state=TextState.UNKNOWN.value)

    async def _hold_if_refused(
        self, tx: Tx, organization_id: UUID, done: Sequence[tuple[ClaimedText, Outcome | NotDialled]]
    ) -> None:
        """Hold all texts of the organization if the provider refused its account."""
        for claim, outcome in done:
            if isinstance(outcome, NotAuthorized):
                await hold_for_account(tx, organization_id, claim.texting, reason=outcome.message)
                break

    async def _withdraw_numbers(
        self, tx: Tx, organization_id: UUID, done: Sequence[tuple[ClaimedText, Outcome | NotDialled]]
    ) -> None:
        """Withdraw the consent of numbers that have opted out at the provider."""
        stopped = [claim for claim, outcome in done if isinstance(outcome, Refused) and outcome.is_stop]
        if stopped:
            replies = [
                Reply(phone_number=claim.outgoing.phone_number, text="", message_id=f"text:{claim.text.id}")
                for claim in stopped
            ]
            await record_inbound_stop(tx, organization_id, replies, secret=stopped[0].texting.secret)

    async def _end_lapsed(self, tx: Tx, organization_id: UUID, rows: Sequence[TextRow]) -> None:
        """End texts whose worker died between the claim and the outcome; it is unknown whether they were sent."""
        ended = [
            claims.EndedText(row.id, TextState.UNKNOWN.value, "The worker ended before the outcome was known.")
            for row in rows
        ]
        await end_texts(tx, organization_id, ended, previous_state=TextState.SENDING.value)


async def _lock_due_texts(
    tx: Tx, organization_id: UUID, *, limit: int, lowest: int, rates: SenderRates, is_on_hold: bool
) -> tuple[Sequence[TextRow], dict[bytes, NumberConsent], Sequence[claims.DueText]]:
    """Lock and return the first due texts to numbers that no other transaction has locked, of priorities up to
    `lowest`, with the consents of their numbers; the numbers are locked before the texts. Texts whose sender has
    reached its rate limit are left out, and the search stops after a few thousand of them. It continues behind stopped
    texts, and returns the first of these too."""
    consents: dict[bytes, NumberConsent] = {}
    stopped: list[claims.DueText] = []
    over_rate = 0

    async def find(after: claims.DueText | None, count: int) -> Sequence[claims.DueText]:
        if over_rate >= PAGE_ITEMS_MAX:
            return []
        skips_stopped = len(stopped) == SET_ASIDE_MAX
        return await claims.find_due_texts(
            tx,
            organization_id,
            lowest=lowest,
            after=after,
            limit=count,
            is_on_hold=is_on_hold,
            skips_stopped=skips_stopped,
        )

    async def lock(due: Sequence[claims.DueText]) -> Sequence[TextRow]:
        nonlocal over_rate
        stopped.extend([text for text in due if text.is_stopped][: SET_ASIDE_MAX - len(stopped)])
        going = [text for text in due if not text.is_stopped]
        allowed = [text for text in going if rates.allows(text.phone_number, text.priority)]
        over_rate += len(going) - len(allowed)
        hashes = {text.number_hash for text in allowed if text.number_hash is not None}
        locked, locked_elsewhere = await lock_available_consents(tx, organization_id, hashes)
        consents.update(locked)
        available = [text.id for text in allowed if text.number_hash not in locked_elsewhere]
        return await claims.lock_due_texts(tx, organization_id, available) if available else []

    return await take_free(find, lock, limit=limit), consents, stopped


def _retry_at(row: TextRow, outcome: Outcome | NotDialled, now: datetime) -> datetime | None:
    """When to send the text again; None if the outcome is final."""
    if isinstance(outcome, NotDialled):
        return now + CLAIM_AGAIN_AFTER
    if isinstance(outcome, NotAuthorized):
        return now
    if not isinstance(outcome, NotReached):
        return None
    retry_at = RETRIES.due_at(now, attempts=row.tries + 1)
    if retry_at is None and outcome.is_busy:
        retry_at = now + BUSY_RETRY_AFTER
    if retry_at is None or outcome.retry_after is None:
        return retry_at
    return max(retry_at, now + min(outcome.retry_after, RETRY_AFTER_MAX))


def _ended_text(text_id: UUID, outcome: Outcome | NotDialled) -> claims.EndedText:
    match outcome:
        case Accepted(provider_id):
            return claims.EndedText(text_id, TextState.SENT.value, None, provider_id)
        case Refused(code, message):
            return claims.EndedText(
                text_id, TextState.FAILED.value, f"{SkipReason.REFUSED.value} {code}: {message}"[:300]
            )
        case Unclear(message):
            return claims.EndedText(text_id, TextState.UNKNOWN.value, message)
        case _:
            return claims.EndedText(text_id, TextState.FAILED.value, SkipReason.NOT_REACHED.value)
