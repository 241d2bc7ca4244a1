"""The SQL that reads customers for the columns, their columnar copy, and that a build of the columns needs. Each build
has a number, the epoch. LATERAL looks up each id separately.

A profile is looked up with `id >= … ORDER BY id LIMIT 1`, for which only the index on the id can be used. With an
equality the planner, which has no statistics of the single organization, may choose another index and scan all rows of
the organization.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, LiteralString, NamedTuple
from uuid import UUID

from regulars.kit.arrays import Ids
from regulars.kit.columns import fill
from regulars.kit.db import Tx


class ProfileRow(NamedTuple):
    id: UUID
    created_s: int
    first_name: str | None
    last_name: str | None
    phone_number: str | None
    phone_reachable: bool
    attributes: str


class ConsentRow(NamedTuple):
    profile_id: UUID
    status: str
    source: str | None
    store_id: UUID | None
    since_s: int | None
    is_suppressed: bool


async def list_profile_ids(tx: Tx, organization_id: UUID, *, after: UUID, limit: int) -> list[UUID]:
    return await tx.fetch_column(
        "SELECT id FROM profiles WHERE organization_id = %s AND id > %s ORDER BY id LIMIT %s",
        (organization_id, after, limit),
    )


async def count_profiles(tx: Tx, organization_id: UUID) -> int:
    return await tx.fetch_count("SELECT count(*) FROM profiles WHERE organization_id = %s", (organization_id,))


async def find_profiles(tx: Tx, organization_id: UUID, ids: Sequence[UUID]) -> list[ProfileRow]:
    return await tx.fetch_all(
        ProfileRow,
        """
        SELECT found.id, found.created_s, found.first_name, found.last_name, found.phone_number, found.phone_reachable,
               found.attributes
        FROM unnest(%(ids)s::uuid[]) AS it (id)
        CROSS JOIN LATERAL (
            SELECT id, floor(extract(epoch FROM created_at))::bigint AS created_s, first_name, last_name, phone_number,
                   phone_reachable, attributes::text AS attributes
            FROM profiles WHERE organization_id = %(organization_id)s AND id >= it.id ORDER BY id LIMIT 1
        ) AS found
        WHERE found.id = it.id
        """,
        {"organization_id": organization_id, "ids": Ids(ids)},
    )


async def find_consents(tx: Tx, organization_id: UUID, ids: Sequence[UUID]) -> list[ConsentRow]:
    """For each profile the subscription that decides whether it may be texted, chosen as in `consent.check`."""
    return await tx.fetch_all(
        ConsentRow,
        """
        SELECT it.id, found.status, found.consent_source, found.store_id,
               floor(extract(epoch FROM found.since))::bigint,
               EXISTS (
                   SELECT FROM suppressions
                   WHERE organization_id = %(organization_id)s AND number_hash = found.number_hash
               )
        FROM unnest(%(ids)s::uuid[]) AS it (id)
        CROSS JOIN LATERAL (
            SELECT status, consent_source, store_id, number_hash,
                   CASE status WHEN 'SUBSCRIBED' THEN consented_at ELSE latest_opt_out_at END AS since
            FROM subscriptions
            WHERE organization_id = %(organization_id)s AND profile_id = it.id
            ORDER BY status, since DESC, id DESC
            LIMIT 1
        ) AS found
        """,
        {"organization_id": organization_id, "ids": Ids(ids)},
    )


async def find_texts(tx: Tx, organization_id: UUID, ids: Sequence[UUID]) -> list[tuple[UUID, UUID | None, int]]:
    """When each profile last got a text of each journey, of each campaign, or of another sender: profile, sender and
    Unix time. Replies to STOP and HELP are not counted.

    A campaign also counts as received if the outcome of its text is unknown. Such a text gets the time 0, so that
    conditions on the time of texts do not count it.
    """
    return await tx.fetch(
        """
        SELECT it.id, found.sender_id, found.at_s
        FROM unnest(%(ids)s::uuid[]) AS it (id)
        CROSS JOIN LATERAL (
            SELECT CASE texts.origin_kind WHEN 'campaign' THEN texts.origin_id ELSE runs.journey_id END AS sender_id,
                   max(CASE texts.state WHEN 'unknown' THEN 0
                       ELSE floor(extract(epoch FROM COALESCE(texts.claimed_at, texts.created_at))) END)::bigint AS at_s
            FROM texts
            LEFT JOIN journey_runs AS runs ON texts.origin_kind = 'journey' AND runs.id = texts.origin_id
                AND runs.organization_id = %(organization_id)s
            WHERE texts.organization_id = %(organization_id)s AND texts.profile_id = it.id
              AND texts.origin_kind NOT IN ('stop', 'help')
              AND (texts.state IN ('sent', 'delivered') OR texts.state = 'unknown' AND texts.origin_kind = 'campaign')
            GROUP BY 1
        ) AS found
        """,
        {"organization_id": organization_id, "ids": Ids(ids)},
    )


async def find_once_linked(tx: Tx, organization_id: UUID, subscription_ids: Sequence[UUID]) -> set[UUID]:
    """Find all profiles that these subscriptions were ever linked to: if a subscription moves to another profile, both
    profiles change."""
    profile_ids = await tx.fetch_column(
        """
        SELECT DISTINCT found.profile_id
        FROM unnest(%(ids)s::uuid[]) AS it (id)
        CROSS JOIN LATERAL (
            SELECT profile_id FROM consent_payloads
            WHERE organization_id = %(organization_id)s AND subscription_id = it.id AND profile_id IS NOT NULL
            UNION
            SELECT profile_id FROM subscriptions
            WHERE organization_id = %(organization_id)s AND id = it.id AND profile_id IS NOT NULL
        ) AS found
        """,
        {"organization_id": organization_id, "ids": list(subscription_ids)},
    )
    return set(profile_ids)


async def find_linked_by_hash(tx: Tx, organization_id: UUID, hashes: Sequence[bytes]) -> set[UUID]:
    """Find the profiles of the subscriptions with these hashes of phone numbers."""
    profile_ids = await tx.fetch_column(
        """
        SELECT profile_id FROM subscriptions
        WHERE organization_id = %s AND number_hash = ANY (%s::bytea[]) AND profile_id IS NOT NULL
        """,
        (organization_id, list(hashes)),
    )
    return set(profile_ids)


async def find_next_transaction_id(tx: Tx) -> tuple[int, datetime]:
    """Read the next transaction id and the current time, for `has_older_transaction`."""
    [(transaction_id, now)] = await tx.fetch(
        "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint, clock_timestamp()"
    )
    return transaction_id, now


async def has_older_transaction(tx: Tx, *, below: int, before: datetime) -> bool:
    """Whether a transaction is open that has a lower id or began earlier.

    The id alone is not enough: a transaction gets its id with its first write, after it checked whether facts must be
    recorded.
    """
    is_open = await tx.fetch_value(
        """
        SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint < %s OR EXISTS (
            SELECT FROM pg_stat_activity
            WHERE datname = current_database() AND backend_type = 'client backend' AND xact_start < %s
        )
        """,
        (below, before),
    )
    return bool(is_open)


async def delete_old_epochs(tx: Tx, organization_id: UUID, *, before: int, limit: int) -> int:
    """Delete a batch of rows of the epochs before this one; return how many."""
    for statement in _DELETE_OLD_ROWS:
        deleted = await tx.execute(statement, {"organization_id": organization_id, "epoch": before, "limit": limit})
        if deleted:
            return deleted
    return 0


# Deletes a batch of the rows of one table that have such an epoch.
_DELETE_BATCH: Final[LiteralString] = """
DELETE FROM {table} WHERE organization_id = %(organization_id)s AND ctid = ANY (ARRAY(
    SELECT ctid FROM {table} WHERE organization_id = %(organization_id)s AND epoch {comparison} %(epoch)s
    LIMIT {limit}
))
"""
_DELETE_BY_EPOCH: Final = fill(_DELETE_BATCH, comparison="<")
_DELETE_OLD_ROWS: Final = (
    fill(_DELETE_BY_EPOCH, table="segment_fed", limit="%(limit)s"),
    fill(_DELETE_BY_EPOCH, table="segment_blobs", limit="least(%(limit)s, 100)"),
    fill(_DELETE_BY_EPOCH, table="segment_runs", limit="%(limit)s"),
    fill(_DELETE_BY_EPOCH, table="segment_customers", limit="%(limit)s"),
)
_DELETE_WRITTEN_SALES: Final = fill(_DELETE_BATCH, comparison="=", table="segment_fed", limit="%(limit)s")


async def delete_written_sales(tx: Tx, organization_id: UUID, epoch: int, *, limit: int) -> int:
    """Delete a batch of the list of sales that listeners wrote during a build, once the build is complete."""
    return await tx.execute(_DELETE_WRITTEN_SALES, {"organization_id": organization_id, "epoch": epoch, "limit": limit})
