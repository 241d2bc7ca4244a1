"""Read, lock and delete rows of consent with SQL; `statements.py` has the statements that write the ledger.

Most statements look up a list of keys one key at a time, through LATERAL: before the first ANALYZE the planner expects
few rows of an organization, and caches a plan for `= ANY` that reads all rows of the organization.
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, LiteralString, NamedTuple
from uuid import UUID

from psycopg.rows import TupleRow
from psycopg.sql import SQL, Composable

from regulars.consent.model import Proof, SubscriptionState
from regulars.kit.arrays import Blobs
from regulars.kit.db import Tx


class LedgerHead(NamedTuple):
    """The head of a phone number's ledger: its row of `subscriptions`. `state` is None while the ledger has no entry,
    which only the transaction that inserts the row can see."""

    id: UUID
    number_hash: bytes
    state: SubscriptionState | None
    entry_count: int
    last_hash: bytes
    created_at: datetime
    updated_at: datetime
    # The status as stored; `verify.py` compares it with the state.
    status: str


class SubscriptionRow(NamedTuple):
    ledger_head: LedgerHead
    profile_external_id: str | None
    store_external_id: str | None


async def lock_heads(tx: Tx, organization_id: UUID, number_hashes: Collection[bytes]) -> list[LedgerHead]:
    rows = await tx.fetch(_SELECT_HEADS + "FOR UPDATE) AS head", (Blobs(number_hashes), organization_id))
    return [_head(row) for row in rows]


async def lock_available_heads(tx: Tx, organization_id: UUID, number_hashes: Collection[bytes]) -> list[LedgerHead]:
    """Lock and return heads without waiting: heads that another transaction has locked are skipped."""
    rows = await tx.fetch(_SELECT_HEADS + "FOR UPDATE SKIP LOCKED) AS head", (Blobs(number_hashes), organization_id))
    return [_head(row) for row in rows]


async def find_heads(tx: Tx, organization_id: UUID, number_hashes: Collection[bytes]) -> list[LedgerHead]:
    """The heads of the numbers, without a lock."""
    rows = await tx.fetch(_SELECT_HEADS + ") AS head", (Blobs(number_hashes), organization_id))
    return [_head(row) for row in rows]


_SELECT_HEADS = """
SELECT head.id, head.number_hash, head.entry_count, head.last_hash, head.created_at,
       head.updated_at, head.status, head.phone_number, head.profile_id, head.store_id,
       head.consent_source, head.consented_at, head.terms_url, head.terms_version, head.source_text,
       head.latest_opt_in_at, head.latest_opt_out_at
FROM (SELECT number_hash FROM unnest(%s::bytea[]) AS given (number_hash) ORDER BY number_hash) AS wanted
CROSS JOIN LATERAL (
    SELECT * FROM subscriptions WHERE organization_id = %s AND number_hash = wanted.number_hash
    """


async def find_linked_hashes(tx: Tx, organization_id: UUID, profile_ids: Collection[UUID]) -> dict[UUID, list[bytes]]:
    """The hashes of the numbers linked to each profile, in the order of their creation."""
    rows = await tx.fetch(
        """
        SELECT wanted.profile_id, found.number_hash
        FROM unnest(%s::uuid[]) AS wanted (profile_id)
        CROSS JOIN LATERAL (
            SELECT id, number_hash FROM subscriptions
            WHERE organization_id = %s AND profile_id = wanted.profile_id
            ORDER BY id OFFSET 0
        ) AS found
        ORDER BY found.id
        """,
        (list(profile_ids), organization_id),
    )
    linked: dict[UUID, list[bytes]] = {}
    for profile_id, number_hash in rows:
        linked.setdefault(profile_id, []).append(number_hash)
    return linked


async def find_external_ids(
    tx: Tx, organization_id: UUID, *, profiles: Collection[UUID], stores: Collection[UUID]
) -> dict[UUID, str]:
    """The external_ids of profiles and of stores."""
    return await tx.fetch_map(
        """
        SELECT found.id, found.external_id FROM unnest(%s::uuid[]) AS wanted (id)
        CROSS JOIN LATERAL (
            SELECT id, external_id FROM profiles WHERE organization_id = %s AND id = wanted.id LIMIT 1
        ) AS found
        UNION ALL
        SELECT found.id, found.external_id FROM unnest(%s::uuid[]) AS wanted (id)
        CROSS JOIN LATERAL (
            SELECT id, external_id FROM stores WHERE organization_id = %s AND id = wanted.id LIMIT 1
        ) AS found
        """,
        (list(profiles), organization_id, list(stores), organization_id),
    )


async def find_subscription(tx: Tx, organization_id: UUID, subscription_id: UUID) -> SubscriptionRow | None:
    rows = await select_subscriptions(
        tx,
        SQL("subscriptions.organization_id = %(organization_id)s AND subscriptions.id = %(id)s"),
        {"organization_id": organization_id, "id": subscription_id, "limit": 1},
    )
    return rows[0] if rows else None


async def find_by_hashes(tx: Tx, organization_id: UUID, number_hashes: Collection[bytes]) -> list[SubscriptionRow]:
    return await select_subscriptions(
        tx,
        SQL("subscriptions.organization_id = %(organization_id)s AND subscriptions.number_hash = ANY (%(hashes)s)"),
        {"organization_id": organization_id, "hashes": list(number_hashes), "limit": None},
    )


async def find_deciding_rows(tx: Tx, organization_id: UUID, profile_ids: Collection[UUID]) -> list[SubscriptionRow]:
    """For each profile the subscription that decides its status: of those subscribed the one with the latest consent,
    or if none is subscribed, the one withdrawn last."""
    return await select_subscriptions(
        tx,
        SQL(
            """
            subscriptions.organization_id = %(organization_id)s AND subscriptions.id IN (
                SELECT DISTINCT ON (profile_id) id FROM subscriptions
                WHERE organization_id = %(organization_id)s AND profile_id = ANY (%(profiles)s)
                ORDER BY profile_id, status, CASE status WHEN 'SUBSCRIBED' THEN consented_at ELSE latest_opt_out_at END
                    DESC, id DESC
            )
            """
        ),
        {"organization_id": organization_id, "profiles": list(profile_ids), "limit": None},
    )


async def select_subscriptions(
    tx: Tx, condition: Composable, parameters: Mapping[str, Any], *, order: LiteralString = "subscriptions.id"
) -> list[SubscriptionRow]:
    """The subscriptions that fulfil the condition; `parameters` has its values and the `limit`."""
    rows = await tx.fetch(
        SQL(
            """
            SELECT subscriptions.id, subscriptions.number_hash, subscriptions.entry_count, subscriptions.last_hash,
                   subscriptions.created_at, subscriptions.updated_at, subscriptions.status, subscriptions.phone_number,
                   subscriptions.profile_id, subscriptions.store_id, subscriptions.consent_source,
                   subscriptions.consented_at, subscriptions.terms_url, subscriptions.terms_version,
                   subscriptions.source_text, subscriptions.latest_opt_in_at, subscriptions.latest_opt_out_at,
                   profiles.external_id, stores.external_id
            FROM subscriptions
            LEFT JOIN profiles
                ON profiles.organization_id = subscriptions.organization_id AND profiles.id = subscriptions.profile_id
            LEFT JOIN stores
                ON stores.organization_id = subscriptions.organization_id AND stores.id = subscriptions.store_id
            WHERE {condition}
            ORDER BY {order}
            LIMIT %(limit)s
            """
        ).format(condition=condition, order=SQL(order)),
        parameters,
    )
    return [SubscriptionRow(_head(row[:-2]), *row[-2:]) for row in rows]


def _head(row: TupleRow) -> LedgerHead:
    head_id, number_hash, entry_count, last_hash, created_at, updated_at, status, *fields = row
    phone_number, profile_id, store_id, source, consented_at, *proof, latest_opt_in_at, latest_opt_out_at = fields
    state = SubscriptionState(
        phone_number=phone_number,
        profile_id=profile_id,
        store_id=store_id,
        source=source,
        consented_at=consented_at,
        proof=Proof(*proof) if any(value is not None for value in proof) else None,
        latest_opt_in_at=latest_opt_in_at,
        latest_opt_out_at=latest_opt_out_at,
    )
    return LedgerHead(
        head_id, number_hash, state if entry_count else None, entry_count, last_hash, created_at, updated_at, status
    )
