"""The worker's queue of deliveries: it claims due deliveries fairly across endpoints, sends them outside any
transaction, and writes their outcomes."""

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
from regulars.webhooks.delivery.metrics import DeliveryMetrics
from regulars.webhooks.delivery.schedule import (
    CONNECTIONS_PER_ENDPOINT_MAX,
    PROBE_EVERY,
    AttemptOutcome,
    Health,
    after_attempt,
    claims_max,
    is_to_be_disabled,
    next_attempt,
)
from regulars.webhooks.delivery.send import SOCKETS_MAX, TIMEOUT_S, OutgoingMessage, Sender
from regulars.webhooks.interests import withdraw_interests
from regulars.webhooks.model import ENDPOINTS_MAX
from regulars.webhooks.queries import claims, endpoints
from regulars.webhooks.queries.claims import DeliveryResult, NewAttempt
from regulars.webhooks.secrets import decrypt_valid_secrets
from regulars.work.claims import CLAIM_FOR, COMPLETE_S, ClaimQueue
from regulars.work.queue import Due, Queue, WaitLimit

# A claimed delivery that has not started within this time might still run when its claim ends, so it returns to the
# queue. The claim must last for the attempt, for writing the outcome, and a second more.
START_WITHIN_S: Final = CLAIM_FOR.total_seconds() - COMPLETE_S - TIMEOUT_S - 1
# How often the time of the last success is written if nothing else changes.
SUCCESS_WRITTEN_EVERY: Final = timedelta(minutes=1)


class ClaimedDelivery(NamedTuple):
    """A delivery that this worker has claimed until a deadline; `message` is None if its content was erased."""

    id: UUID
    endpoint_id: UUID
    attempts: int
    until: datetime
    message: OutgoingMessage | None
    claimed_at: float


class DeliveryQueue(ClaimQueue[ClaimedDelivery, AttemptOutcome | None]):
    """Sends webhook deliveries; an outcome of None means that no attempt was made."""

    name = "webhooks.deliveries"
    due = Due(
        table="webhook_deliveries",
        waits=(
            WaitLimit(at_most=(CLAIM_FOR,), condition="owner IS NOT NULL", waits_again=True),
            WaitLimit(at_most=(timedelta(0),), condition="owner IS NULL AND attempts = 0"),
            # Tried before the clock was set back: the time of the next attempt counts from a time to come.
            WaitLimit(at_most=(timedelta(0),), condition="owner IS NULL AND attempts > 0 AND attempted_at > %(now)s"),
        ),
    )
    batch_rows = 128
    at_once_max = SOCKETS_MAX

    def __init__(self, sender: Sender, vault: AnyVault, metrics: DeliveryMetrics) -> None:
        super().__init__()
        self._sender = sender
        self._vault = vault
        self._metrics = metrics
        self._connections: dict[UUID, _EndpointConnections] = {}

    async def claim(
        self, tx: Tx, organization_id: UUID, *, limit: int, lowest: int, owner: UUID, until: datetime
    ) -> Sequence[ClaimedDelivery]:
        del lowest  # all deliveries have the same priority
        due_endpoints = await claims.lock_due_endpoints(tx, organization_id, owner=owner, limit=ENDPOINTS_MAX)
        self._metrics.set_waits(organization_id, [tx.now - endpoint.first_due_at for endpoint in due_endpoints])
        by_id = {endpoint.id: endpoint for endpoint in due_endpoints}
        slots: list[tuple[UUID, int]] = []
        for endpoint in due_endpoints:
            # Only one worker at a time serves an endpoint, so that no more deliveries are in flight than allowed.
            free = 0 if endpoint.claimed_elsewhere else claims_max(endpoint.health, now=tx.now) - endpoint.claimed_here
            free = min(free, limit - sum(count for _, count in slots))
            if free > 0:
                slots.append((endpoint.id, free))
        if not slots:
            return []
        due = await claims.lock_due_deliveries(tx, organization_id, slots)
        await claims.claim_deliveries(tx, organization_id, [delivery.id for delivery in due], owner=owner, until=until)
        probed = [delivery.endpoint_id for delivery in due if by_id[delivery.endpoint_id].health.probe_at is not None]
        if probed:
            await tx.execute(
                "UPDATE webhook_endpoints SET probe_at = %s WHERE organization_id = %s AND id = ANY (%s::uuid[])",
                (tx.now + PROBE_EVERY, organization_id, probed),
            )
        messages = await tx.fetch(
            "SELECT id, body FROM webhook_messages"
            " WHERE organization_id = %s AND id = ANY (%s::uuid[]) AND body IS NOT NULL",
            (organization_id, [delivery.message_id for delivery in due]),
        )
        bodies: dict[UUID, str] = dict(messages)
        secrets = {
            endpoint.id: decrypt_valid_secrets(self._vault, endpoint.id, endpoint.secrets, now=tx.now)
            for endpoint in due_endpoints
        }
        claimed_at = monotonic()
        return [
            ClaimedDelivery(
                delivery.id,
                delivery.endpoint_id,
                delivery.attempts,
                until,
                OutgoingMessage(
                    by_id[delivery.endpoint_id].url,
                    WEBHOOK_MESSAGE.encode(delivery.message_id),
                    bodies[delivery.message_id].encode(),
                    secrets[delivery.endpoint_id],
                    tx.now,
                    claimed_at,
                )
                if delivery.message_id in bodies
                else None,
                claimed_at,
            )
            for delivery in due
        ]

    async def act(self, organization_id: UUID, claim: ClaimedDelivery) -> AttemptOutcome | None:  # noqa: ARG002  # the queue's interface
        if claim.message is None:
            return None
        endpoint = self._connections.setdefault(claim.endpoint_id, _EndpointConnections())
        endpoint.deliveries += 1
        try:
            async with endpoint.connections:
                is_too_late = monotonic() - claim.claimed_at > START_WITHIN_S
                failpoint.hit("delivery.claimed")
                outcome = None if is_too_late else await self._sender.send(claim.message)
                failpoint.hit("delivery.answered")
                return outcome
        finally:
            endpoint.deliveries -= 1
            if not endpoint.deliveries:
                self._connections.pop(claim.endpoint_id, None)

    async def complete(
        self, tx: Tx, organization_id: UUID, done: Sequence[tuple[ClaimedDelivery, AttemptOutcome | None]]
    ) -> None:
        health = await endpoints.lock_health(tx, organization_id, sorted({claim.endpoint_id for claim, _ in done}))
        results = [_result_of(claim, outcome, now=tx.now) for claim, outcome in done]
        written = await claims.write_results(tx, organization_id, results, owner=self.owner)
        failed = [
            NewAttempt(
                claim.id, claim.attempts + 1, outcome.duration_ms, outcome.status, outcome.error, outcome.response
            )
            for claim, outcome in done
            if claim.id in written and outcome is not None and outcome.error is not None
        ]
        if failed:
            await claims.insert_attempts(tx, organization_id, failed)
        for endpoint_id, before in health.items():
            outcomes = [outcome for claim, outcome in done if claim.endpoint_id == endpoint_id and outcome is not None]
            await self._update_health(tx, organization_id, endpoint_id, before, outcomes)
        self._metrics.count(outcome for _, outcome in done)

    async def finish(self) -> None:
        await super().finish()
        await self._sender.close()

    async def _update_health(
        self, tx: Tx, organization_id: UUID, endpoint_id: UUID, before: Health, outcomes: Sequence[AttemptOutcome]
    ) -> None:
        health = before
        for outcome in outcomes:
            health = after_attempt(health, outcome, now=tx.now)
        is_gone = any(outcome.is_gone for outcome in outcomes)
        if is_gone or is_to_be_disabled(health, now=tx.now):
            by = "receiver" if is_gone else "failures"
            await endpoints.update_endpoint_state(tx, organization_id, endpoint_id, state="disabled", disabled_by=by)
            await withdraw_interests(tx, organization_id, endpoint_id)
        elif _must_be_written(before, health):
            await tx.execute(
                """
                UPDATE webhook_endpoints
                SET failures = %(failures)s, failing_since = %(failing_since)s, last_success_at = %(last_success_at)s,
                    is_slow = %(is_slow)s, probe_at = %(probe_at)s
                WHERE organization_id = %(organization_id)s AND id = %(id)s
                """,
                {"organization_id": organization_id, "id": endpoint_id, **health._asdict()},
            )
        self._metrics.set_failing(endpoint_id, is_failing=health.failures > 0)


class _EndpointConnections:
    """The connections of one endpoint, first come first served; `deliveries` use a connection or wait for one."""

    def __init__(self) -> None:
        self.connections = asyncio.Semaphore(CONNECTIONS_PER_ENDPOINT_MAX)
        self.deliveries = 0


class ProbeQueue(Queue):
    """The queue of failing endpoints whose next probe (a single delivery) is due; it runs the delivery queue."""

    name = "webhooks.probes"
    due = Due(table="webhook_endpoints", column="probe_at", waits=(WaitLimit(at_most=(PROBE_EVERY,)),))
    passes_at_once = 1

    def __init__(self, deliveries: DeliveryQueue) -> None:
        self._deliveries = deliveries

    async def run_pass(self, database: Database, organization_id: UUID) -> bool:
        await self._deliveries.run_pass(database, organization_id)
        return False


def _must_be_written(before: Health, after: Health) -> bool:
    """Return whether the health must be written. A change of only the last success is written once a minute."""
    if after._replace(last_success_at=None) != before._replace(last_success_at=None):
        return True
    if after.last_success_at is None or before.last_success_at is None:
        return after.last_success_at != before.last_success_at
    return after.last_success_at - before.last_success_at >= SUCCESS_WRITTEN_EVERY


def _result_of(claim: ClaimedDelivery, outcome: AttemptOutcome | None, *, now: datetime) -> DeliveryResult:
    if claim.message is None:
        return DeliveryResult(claim.id, claim.until, "cancelled", claim.attempts, None, None, None)
    if outcome is None:
        return DeliveryResult(claim.id, claim.until, "pending", claim.attempts, now, None, None)
    attempts = claim.attempts + 1
    if outcome.error is None:
        return DeliveryResult(claim.id, claim.until, "delivered", attempts, None, outcome.duration_ms, outcome.status)
    random_share = random.random()  # noqa: S311  # spreads retries over time and protects nothing
    due_at = next_attempt(now, attempts=attempts, retry_after=outcome.retry_after, random_share=random_share)
    state = "failed" if due_at is None else "pending"
    return DeliveryResult(claim.id, claim.until, state, attempts, due_at, outcome.duration_ms, outcome.status)
