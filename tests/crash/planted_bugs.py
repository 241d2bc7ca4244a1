"""Bugs that a process of the harness can run with, to prove that the checks find them."""

import asyncio
from collections.abc import Collection, Sequence
from typing import Any, Final
from uuid import UUID

import psycopg

from regulars.consent.numbers import NumberConsent, lock_available_consents
from regulars.http import fallback_path
from regulars.http.in_flight import respond
from regulars.kit.clock import monotonic
from regulars.kit.db import Database, Tx
from regulars.texts import send
from regulars.work import outbox
from regulars.work.facts import Fact

# Long enough for a kill to happen in it.
GAP_S: Final = 0.15
# Longer, because withdrawals are rare.
WIDE_GAP_S: Final = 4.0
CHECKED_EVERY_S: Final = 0.02
# The time in which a committed withdrawal gets its response. Soon after, its fact ends the run and skips the text.
ANSWERED_WITHIN_S: Final = 0.2
KEY_DROPPED: Final = "ALTER TABLE idempotency_keys DROP CONSTRAINT idempotency_keys_pkey"


def answer_before_commit() -> None:
    """Responds before the commit."""
    store_new = fallback_path.store_new

    async def too_early(tx: Tx, organization_id: UUID, requests: Any, responses: Any, known: Any) -> None:
        await store_new(tx, organization_id, requests, responses, known)
        for request, response in zip(requests, responses, strict=True):
            respond(request, response)
        await asyncio.sleep(GAP_S)

    fallback_path.store_new = too_early


def gate_after_claim() -> None:
    """Reads consent without a lock, so that it may change before the text is claimed."""

    async def look(
        tx: Tx, organization_id: UUID, hashes: Collection[bytes]
    ) -> tuple[dict[bytes, NumberConsent], set[bytes]]:
        found = await read_without_lock(tx, organization_id, hashes)
        # The bug shows only if a withdrawal gets its response between check and claim: wait for one while consents are
        # recorded. Without that limit the last texts of a trial would take minutes.
        until = monotonic() + WIDE_GAP_S
        while monotonic() < until and await has_new_consents(tx, organization_id):
            if await read_without_lock(tx, organization_id, hashes) != found:
                await asyncio.sleep(ANSWERED_WITHIN_S)
                break
            await asyncio.sleep(CHECKED_EVERY_S)
        return found

    async def has_new_consents(tx: Tx, organization_id: UUID) -> bool:
        rows = await tx.fetch(
            "SELECT FROM consent_ledger WHERE organization_id = %s"
            " AND received_at > clock_timestamp() - interval '2 s' LIMIT 1",
            (organization_id,),
        )
        return bool(rows)

    async def read_without_lock(
        tx: Tx, organization_id: UUID, hashes: Collection[bytes]
    ) -> tuple[dict[bytes, NumberConsent], set[bytes]]:
        await tx.execute("SAVEPOINT looked")
        found = await lock_available_consents(tx, organization_id, hashes)
        await tx.execute("ROLLBACK TO SAVEPOINT looked")
        return found

    send.lock_available_consents = look


def fact_after_commit() -> None:
    """Records the fact in a separate transaction, shortly after the one of its cause."""
    record, opened = outbox.record, Database.open
    databases: list[Database] = []
    late: set[asyncio.Task[None]] = set()

    async def remember(self: Database) -> None:
        databases.append(self)
        await opened(self)

    async def record_late(organization_id: UUID, facts: Sequence[Fact]) -> None:
        await asyncio.sleep(GAP_S)
        async with databases[0].transaction() as tx:
            await record(tx, organization_id, facts)

    async def record_soon(_tx: Tx, organization_id: UUID, facts: Sequence[Fact], **_: Any) -> None:
        task = asyncio.create_task(record_late(organization_id, facts))
        late.add(task)
        task.add_done_callback(late.discard)

    Database.open = remember  # type: ignore[method-assign]
    outbox.record = record_soon


BUGS: Final = {
    "answer_before_commit": answer_before_commit,
    "gate_after_claim": gate_after_claim,
    "fact_after_commit": fact_after_commit,
}


def plant(name: str) -> None:
    BUGS[name]()


def drop_key(url: str) -> None:
    """Drops the unique key, so that two processes may both execute a request with one idempotency key."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(KEY_DROPPED)
