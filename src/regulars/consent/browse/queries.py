"""The statements behind the pages on consent."""

from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from psycopg.sql import SQL

from regulars.consent.browse.model import StoreConsents, SubscriptionLine
from regulars.consent.model import Entry
from regulars.kit.db import Tx
from regulars.kit.keyset import Keyset, PageRequest, PageRows

_ENTRY = SQL(
    """
    SELECT l.sequence, l.kind, l.outcome, l.effective_at, l.claimed_at, l.received_at, l.commitment, l.previous_hash,
           l.hash, p.salt, p.payload::text
    FROM consent_ledger AS l
    LEFT JOIN consent_payloads AS p
        ON p.organization_id = %(organization_id)s AND p.subscription_id = %(subscription_id)s
        AND p.sequence = l.sequence
    WHERE l.organization_id = %(organization_id)s AND l.subscription_id = %(subscription_id)s
    """
)


async def find_deciding_entry(
    tx: Tx, organization_id: UUID, subscription_id: UUID, *, at: datetime, received_until: datetime
) -> Entry | None:
    """The entry that stands last at a moment, among those received until another."""
    rows = await tx.fetch(
        _ENTRY
        + SQL(
            """
            AND l.effective_at <= %(at)s AND l.received_at <= %(received_until)s
            ORDER BY l.effective_at DESC, (l.kind <> 'OPT_IN') DESC, l.sequence DESC
            LIMIT 1
            """
        ),
        {
            "organization_id": organization_id,
            "subscription_id": subscription_id,
            "at": at,
            "received_until": received_until,
        },
    )
    return Entry(*rows[0]) if rows else None


async def find_next_change(
    tx: Tx, organization_id: UUID, subscription_id: UUID, *, after: datetime, is_opt_in: bool
) -> Entry | None:
    """The first entry of a kind after a moment."""
    rows = await tx.fetch(
        _ENTRY
        + SQL(
            """
            AND l.effective_at > %(after)s AND (l.kind = 'OPT_IN') = %(is_opt_in)s
            ORDER BY l.effective_at, l.sequence
            LIMIT 1
            """
        ),
        {
            "organization_id": organization_id,
            "subscription_id": subscription_id,
            "after": after,
            "is_opt_in": is_opt_in,
        },
    )
    return Entry(*rows[0]) if rows else None


async def list_last_entries(tx: Tx, organization_id: UUID, subscription_id: UUID, *, limit: int) -> list[Entry]:
    """The newest entries by arrival, the newest first."""
    rows = await tx.fetch(
        _ENTRY + SQL("ORDER BY l.sequence DESC LIMIT %(limit)s"),
        {"organization_id": organization_id, "subscription_id": subscription_id, "limit": limit},
    )
    return [Entry(*row) for row in rows]


class LinkedEntry(NamedTuple):
    """An entry of a number that is linked to a customer."""

    profile_id: UUID
    subscription_id: UUID
    number_hash: bytes
    phone_number: str | None
    sequence: int
    kind: str
    outcome: str
    effective_at: datetime
    claimed_at: datetime | None
    received_at: datetime


async def list_entries_of_customers(
    tx: Tx, organization_id: UUID, profile_ids: list[UUID], *, numbers_max: int, entries_max: int
) -> list[LinkedEntry]:
    """The newest entries of every number linked to the customers."""
    rows = await tx.fetch(
        """
        SELECT it.id, number.id, number.number_hash, number.phone_number, entry.sequence, entry.kind, entry.outcome,
               entry.effective_at, entry.claimed_at, entry.received_at
        FROM unnest(%(profile_ids)s::uuid[]) AS it (id)
        CROSS JOIN LATERAL (
            SELECT id, number_hash, phone_number FROM subscriptions
            WHERE organization_id = %(organization_id)s AND profile_id = it.id
            ORDER BY id
            LIMIT %(numbers_max)s
        ) AS number
        CROSS JOIN LATERAL (
            SELECT sequence, kind, outcome, effective_at, claimed_at, received_at FROM consent_ledger
            WHERE organization_id = %(organization_id)s AND subscription_id = number.id
            ORDER BY sequence DESC
            LIMIT %(entries_max)s
        ) AS entry
        """,
        {
            "organization_id": organization_id,
            "profile_ids": profile_ids,
            "numbers_max": numbers_max,
            "entries_max": entries_max,
        },
    )
    return [LinkedEntry(*row) for row in rows]


_NEWEST: Final = Keyset({"s.id": UUID}, is_descending=True)
_INDEXED: Final = {"status": "s.status = %(status)s"}
_FILTERS: Final = {
    "source": "s.consent_source = %(source)s",
    "is_weak": "s.status = 'SUBSCRIBED' AND s.terms_version IS NULL AND s.source_text IS NULL",
    "is_erased": "(s.phone_number IS NULL) = %(is_erased)s",
}


async def list_newest_subscriptions(
    tx: Tx,
    organization_id: UUID,
    page: PageRequest,
    *,
    status: str | None,
    source: str | None,
    is_weak: bool,
    is_erased: bool | None,
    rows_max: int,
) -> PageRows[SubscriptionLine]:
    """Subscriptions the newest first, among a bounded number."""
    return await _NEWEST.scan(
        tx,
        SQL(
            """
            SELECT s.id, s.phone_number, s.status, s.consent_source, s.consented_at,
                   CASE WHEN s.status = 'UNSUBSCRIBED' THEN s.latest_opt_out_at END, s.terms_version IS NOT NULL,
                   p.id, p.external_id, p.first_name, p.last_name
            FROM (
                SELECT s.id, s.phone_number, s.status, s.consent_source, s.consented_at, s.latest_opt_out_at,
                       s.terms_version, s.source_text, s.profile_id
                FROM subscriptions AS s
                WHERE s.organization_id = %(organization_id)s {indexed} {beyond}
                ORDER BY {ordered}
                LIMIT %(looked_at)s
            ) AS s
            LEFT JOIN LATERAL (
                SELECT id, external_id, first_name, last_name FROM profiles
                WHERE organization_id = %(organization_id)s AND id = s.profile_id
                LIMIT 1
            ) AS p ON true
            WHERE true {narrowed}
            ORDER BY {ordered}
            LIMIT %(limit)s
            """
        ),
        page,
        {
            "organization_id": organization_id,
            "status": status,
            "source": source,
            "is_weak": is_weak or None,
            "is_erased": is_erased,
        },
        make=SubscriptionLine,
        table="subscriptions AS s",
        indexed=_INDEXED,
        filters=_FILTERS,
        rows_max=rows_max,
    )


async def find_statuses(tx: Tx, organization_id: UUID, profile_ids: list[UUID]) -> list[tuple[UUID, str, str | None]]:
    """The status and the number of each subscription of the customers."""
    rows = await tx.fetch(
        """
        SELECT wanted.profile_id, s.status, s.phone_number
        FROM unnest(%(profile_ids)s::uuid[]) AS wanted (profile_id)
        CROSS JOIN LATERAL (
            SELECT status, phone_number FROM subscriptions
            WHERE organization_id = %(organization_id)s AND profile_id = wanted.profile_id
            ORDER BY id
            LIMIT 20
        ) AS s
        """,
        {"organization_id": organization_id, "profile_ids": profile_ids},
    )
    return [(row[0], row[1], row[2]) for row in rows]


class StoredFigures(NamedTuple):
    counted_at: datetime | None
    took_ms: int | None
    figures: str | None
    is_due: bool


async def find_figures(tx: Tx, organization_id: UUID) -> StoredFigures | None:
    rows = await tx.fetch(
        "SELECT counted_at, took_ms, figures::text, due_at IS NOT NULL FROM consent_figures WHERE organization_id = %s",
        (organization_id,),
    )
    return StoredFigures(*rows[0]) if rows else None


async def ask_for_figures(tx: Tx, organization_id: UUID, *, time_zone: str) -> None:
    await tx.execute(
        """
        INSERT INTO consent_figures (organization_id, time_zone, due_at)
        VALUES (%(organization_id)s, %(time_zone)s, %(now)s)
        ON CONFLICT (organization_id) DO UPDATE SET due_at = excluded.due_at, time_zone = excluded.time_zone
        """,
        {"organization_id": organization_id, "time_zone": time_zone, "now": tx.now},
    )


async def ask_for_figures_again(tx: Tx, organization_id: UUID) -> None:
    """Have the figures counted again that were counted before."""
    await tx.execute("UPDATE consent_figures SET due_at = %s WHERE organization_id = %s", (tx.now, organization_id))


async def lock_due_figures(tx: Tx, organization_id: UUID) -> str | None:
    """The zone in which to count, if somebody asked and nobody else is counting."""
    rows = await tx.fetch(
        """
        SELECT time_zone FROM consent_figures
        WHERE organization_id = %s AND due_at IS NOT NULL
        FOR UPDATE SKIP LOCKED
        """,
        (organization_id,),
    )
    return rows[0][0] if rows else None


async def keep_figures(tx: Tx, organization_id: UUID, *, counted_at: datetime, took_ms: int, figures: str) -> None:
    await tx.execute(
        """
        UPDATE consent_figures
        SET due_at = NULL, counted_at = %(counted_at)s, took_ms = %(took_ms)s, figures = %(figures)s
        WHERE organization_id = %(organization_id)s
        """,
        {"organization_id": organization_id, "counted_at": counted_at, "took_ms": took_ms, "figures": figures},
    )


class StatusCount(NamedTuple):
    status: str
    is_forgotten: bool
    source: str | None
    numbers: int
    # How many of these have neither terms nor words as proof.
    weak: int


async def count_subscriptions(tx: Tx, organization_id: UUID) -> list[StatusCount]:
    """For the worker only: it reads every subscription."""
    rows = await tx.fetch(
        """
        SELECT status, phone_number IS NULL, consent_source, count(*),
               count(*) FILTER (WHERE terms_version IS NULL AND source_text IS NULL)
        FROM subscriptions
        WHERE organization_id = %s
        GROUP BY 1, 2, 3
        """,
        (organization_id,),
    )
    return [StatusCount(*row) for row in rows]


async def count_by_store(tx: Tx, organization_id: UUID, *, since: datetime) -> list[StoreConsents]:
    """For the worker only: numbers by the store of their consent, and those that consented since a moment."""
    rows = await tx.fetch(
        """
        SELECT store_id, count(*) FILTER (WHERE status = 'SUBSCRIBED'),
               count(*) FILTER (WHERE latest_opt_in_at >= %(since)s)
        FROM subscriptions
        WHERE organization_id = %(organization_id)s AND store_id IS NOT NULL
        GROUP BY store_id
        """,
        {"organization_id": organization_id, "since": since},
    )
    return [StoreConsents(*row) for row in rows]


class ChangeCount(NamedTuple):
    day: datetime
    is_opt_in: bool
    numbers: int


async def count_changes(tx: Tx, organization_id: UUID, *, since: datetime, time_zone: str) -> list[ChangeCount]:
    """For the worker only: it reads the whole ledger."""
    rows = await tx.fetch(
        """
        SELECT date_trunc('day', effective_at, %(time_zone)s), kind = 'OPT_IN', count(*)
        FROM consent_ledger
        WHERE organization_id = %(organization_id)s AND effective_at >= %(since)s
          AND outcome IN ('created', 'resubscribed', 'unsubscribed')
        GROUP BY 1, 2
        """,
        {"organization_id": organization_id, "since": since, "time_zone": time_zone},
    )
    return [ChangeCount(*row) for row in rows]
