"""The queue of deliveries: claim in turns that are fair to all endpoints, send outside any transaction, complete."""

import asyncio
import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from regulars.kit import failpoint
from regulars.kit.clock import monotonic
from regulars.kit.db import Database, Tx
from regulars.kit.ids import WEBHOOK_MESSAGE
from regulars.kit.vault import AnyVault
from regulars.webhooks.delivery import queries
from regulars.webhooks.delivery.queries import FailedAttempt, Servable, Settled
from regulars.webhooks.delivery.schedule import (
    AT_ONCE_MAX,
    PROBE_EVERY,
    Health,
    Outcome,
    after_attempt,
    claims_max,
    is_given_up,
    next_attempt,
)
from regulars.webhooks.delivery.send import SOCKETS_MAX, TIMEOUT_S, Envelope, Sender
from regulars.webhooks.delivery.watch import Watch
from regulars.webhooks.interests import withdraw_interests
from regulars.webhooks.model import ENDPOINTS_MAX
from regulars.webhooks.queries import update_endpoint_state
from regulars.webhooks.secrets import open_secret
from regulars.work.claims import CLAIM_FOR, COMPLETE_S, ClaimQueue
from regulars.work.queue import Due, Queue

# A delivery that has not begun by then could outlive its claim: it is given back instead.
BEGINS_WITHIN_S: Final = CLAIM_FOR.total_seconds() - COMPLETE_S - TIMEOUT_S - 1
# The time of a success is renewed this often while nothing else changes.
SUCCESS_NOTED_EVERY: Final = timedelta(minutes=1)


class Claimed(NamedTuple):
    """A delivery to be made; without an envelope its content was erased meanwhile."""

    id: UUID
    endpoint_id: UUID
    attempts: int
    until: datetime
    envelope: Envelope | None
    claimed_at: float


class DeliveryQueue(ClaimQueue[Claimed, Outcome | None]):
    """An outcome of None is an attempt that was not made, and does not count."""

    name = "webhooks.deliveries"
    due = Due(table="webhook_deliveries")
    batch_rows = 128
    at_once_max = SOCKETS_MAX

    def __init__(self, sender: Sender, vault: AnyVault, watch: Watch) -> None:
        super().__init__()
        self._sender = sender
        self._vault = vault
        self._watch = watch
        self._slots: dict[UUID, _Slots] = {}

    async def claim(
        self, tx: Tx, organization_id: UUID, *, limit: int, owner: UUID, until: datetime
    ) -> Sequence[Claimed]:
        endpoints = await queries.lock_servable_endpoints(tx, organization_id, owner=owner, limit=ENDPOINTS_MAX)
        self._watch.saw_waiting(organization_id, [tx.now - one.first_due_at for one in endpoints])
        by_id = {one.id: one for one in endpoints}
        rooms: list[tuple[UUID, int]] = []
        for endpoint in endpoints:
            # One worker at a time serves an endpoint, so that no more are under way than may be.
            room = 0 if endpoint.elsewhere else claims_max(endpoint.health, now=tx.now) - endpoint.claimed
            room = min(room, limit - sum(taken for _, taken in rooms))
            if room > 0:
                rooms.append((endpoint.id, room))
        if not rooms:
            return []
        due = await queries.take_due_deliveries(tx, organization_id, rooms)
        await queries.claim_deliveries(tx, organization_id, [one.id for one in due], owner=owner, until=until)
        probed = [one.endpoint_id for one in due if by_id[one.endpoint_id].health.probe_at is not None]
        if probed:
            await queries.postpone_probes(tx, organization_id, probed, probe_at=tx.now + PROBE_EVERY)
        bodies = await queries.find_bodies(tx, organization_id, [one.message_id for one in due])
        secrets = {one.id: self._secrets(one, now=tx.now) for one in endpoints}
        claimed_at = monotonic()
        return [
            Claimed(
                one.id,
                one.endpoint_id,
                one.attempts,
                until,
                Envelope(
                    by_id[one.endpoint_id].url,
                    WEBHOOK_MESSAGE.encode(one.message_id),
                    bodies[one.message_id].encode(),
                    secrets[one.endpoint_id],
                    tx.now,
                    claimed_at,
                )
                if one.message_id in bodies
                else None,
                claimed_at,
            )
            for one in due
        ]

    async def act(self, organization_id: UUID, claim: Claimed) -> Outcome | None:  # noqa: ARG002  # the queue's interface
        if claim.envelope is None:
            return None
        slots = self._slots.setdefault(claim.endpoint_id, _Slots())
        slots.users += 1
        try:
            async with slots.free:
                is_late = monotonic() - claim.claimed_at > BEGINS_WITHIN_S
                failpoint.hit("delivery.claimed")
                outcome = None if is_late else await self._sender.send(claim.envelope)
                failpoint.hit("delivery.answered")
                return outcome
        finally:
            slots.users -= 1
            if not slots.users:
                self._slots.pop(claim.endpoint_id, None)

    async def complete(self, tx: Tx, organization_id: UUID, done: Sequence[tuple[Claimed, Outcome | None]]) -> None:
        health = await queries.lock_health(tx, organization_id, sorted({claim.endpoint_id for claim, _ in done}))
        settled = [_settled(claim, outcome, now=tx.now) for claim, outcome in done]
        written = await queries.settle_deliveries(tx, organization_id, settled, owner=self.owner)
        failed = [
            FailedAttempt(
                claim.id, claim.attempts + 1, outcome.duration_ms, outcome.status, outcome.error, outcome.answer
            )
            for claim, outcome in done
            if claim.id in written and outcome is not None and outcome.error is not None
        ]
        if failed:
            await queries.insert_attempts(tx, organization_id, failed)
        for endpoint_id, before in health.items():
            outcomes = [it for claim, it in done if claim.endpoint_id == endpoint_id and it is not None]
            await self._note_health(tx, organization_id, endpoint_id, before, outcomes)
        self._watch.count(outcome for _, outcome in done)

    async def finish(self) -> None:
        await super().finish()
        await self._sender.close()

    async def _note_health(
        self, tx: Tx, organization_id: UUID, endpoint_id: UUID, before: Health, outcomes: Sequence[Outcome]
    ) -> None:
        health = before
        for outcome in outcomes:
            health = after_attempt(health, outcome, now=tx.now)
        gone = any(outcome.is_gone for outcome in outcomes)
        if gone or is_given_up(health, now=tx.now):
            by = "receiver" if gone else "failures"
            await update_endpoint_state(tx, organization_id, endpoint_id, state="disabled", disabled_by=by)
            await withdraw_interests(tx, organization_id, endpoint_id)
        elif _is_worth_noting(before, health):
            await queries.update_health(tx, organization_id, endpoint_id, health)
        self._watch.note_endpoint(endpoint_id, is_failing=health.failures > 0)

    def _secrets(self, endpoint: Servable, *, now: datetime) -> list[bytes]:
        secrets = [open_secret(self._vault, endpoint.id, endpoint.secret)]
        if (
            endpoint.old_secret is not None
            and endpoint.old_secret_until is not None
            and now < endpoint.old_secret_until
        ):
            secrets.append(open_secret(self._vault, endpoint.id, endpoint.old_secret))
        return secrets


class _Slots:
    """The places of one endpoint, in the order of asking, and how many use them or wait for one."""

    def __init__(self) -> None:
        self.free = asyncio.Semaphore(AT_ONCE_MAX)
        self.users = 0


class ProbeQueue(Queue):
    """Endpoints that keep failing and whose next probe is due: their organization gets a turn at its deliveries."""

    name = "webhooks.probes"
    due = Due(table="webhook_endpoints", column="probe_at")
    passes_at_once = 1

    def __init__(self, deliveries: DeliveryQueue) -> None:
        self._deliveries = deliveries

    async def run_pass(self, database: Database, organization_id: UUID) -> bool:
        await self._deliveries.run_pass(database, organization_id)
        return False


def _is_worth_noting(before: Health, after: Health) -> bool:
    """Whether more has changed than the time of the last success, or that by a while."""
    if after._replace(last_success_at=None) != before._replace(last_success_at=None):
        return True
    if after.last_success_at is None or before.last_success_at is None:
        return after.last_success_at != before.last_success_at
    return after.last_success_at - before.last_success_at >= SUCCESS_NOTED_EVERY


def _settled(claim: Claimed, outcome: Outcome | None, *, now: datetime) -> Settled:
    if claim.envelope is None:
        return Settled(claim.id, claim.until, "cancelled", claim.attempts, None, None, None)
    if outcome is None:
        return Settled(claim.id, claim.until, "pending", claim.attempts, now, None, None)
    attempts = claim.attempts + 1
    if outcome.error is None:
        return Settled(claim.id, claim.until, "delivered", attempts, None, outcome.duration_ms, outcome.status)
    chance = random.random()  # noqa: S311  # spreads retries over time and protects nothing
    due_at = next_attempt(now, attempts=attempts, retry_after=outcome.retry_after, chance=chance)
    state = "failed" if due_at is None else "pending"
    return Settled(claim.id, claim.until, state, attempts, due_at, outcome.duration_ms, outcome.status)
