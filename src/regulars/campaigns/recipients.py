"""Lists the recipients of a campaign by outcome, and the campaigns of one person.

The arm of a recipient is the number of their text variant, or 0 if they are held out.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from psycopg.sql import SQL

from regulars.campaigns.model import RecipientOutcome
from regulars.kit.db import Tx
from regulars.kit.keyset import Keyset, PageRequest, PageRows, Position, Scan, reading_in_index_order

# With a filter that matches few rows, a list scans at most this many rows; then the page says where the scan stopped.
ROWS_SCANNED_MAX: Final = 10_000
# The index has the block instead of the profile id; the rows of one block are sorted.
_BY_OUTCOME: Final = Keyset({"outcome": str, "block": int, "profile_id": UUID})


class RecipientFilter(NamedTuple):
    """Filters of recipients; None means any value."""

    outcome: str | None = None
    reason: str | None = None
    country: str | None = None
    arm: int | None = None


LAST_ID: Final = UUID(int=(1 << 128) - 1)


class RecipientRow(NamedTuple):
    """`open_at` is when the text may be queued, `fed_at` when it was queued. Blocks are in the order of profile ids."""

    profile_id: UUID
    arm: int
    outcome: str
    reason: str
    open_at: datetime
    fed_at: datetime | None
    block: int


class RecipientOfPerson(NamedTuple):
    campaign_id: UUID
    name: str
    arm: int
    outcome: str
    reason: str
    created_at: datetime


async def list_recipients(
    tx: Tx,
    organization_id: UUID,
    campaign_id: UUID,
    *,
    outcome: RecipientOutcome,
    after: RecipientRow | None = None,
    limit: int,
) -> list[RecipientRow]:
    """Recipients with one outcome, in the order of their profile ids; `after` is the last one of the page before."""
    page = PageRequest(limit, None if after is None else position_of(after))
    return await list_recipient_page(tx, organization_id, campaign_id, RecipientFilter(outcome=outcome.value), page)


def position_of(row: RecipientRow) -> Position:
    return (row.outcome, str(row.block), str(row.profile_id))


async def list_recipient_page(
    tx: Tx, organization_id: UUID, campaign_id: UUID, filters: RecipientFilter, page: PageRequest
) -> PageRows[RecipientRow]:
    """A page of recipients, ordered by outcome and then by profile id."""
    # From a position, the planner judges by the outcome alone how many rows are left. Where it expects few, it would
    # sort the whole campaign instead of one block.
    async with reading_in_index_order(tx):
        return await _BY_OUTCOME.fetch(
            tx,
            SQL(
                """
                SELECT profile_id, arm, outcome, reason, open_at, fed_at, block FROM (
                    SELECT profile_id, arm, outcome, reason, country, open_at, fed_at, block FROM campaign_recipients
                    WHERE organization_id = %(organization_id)s {and_indexed_filters} {and_after_position}
                    ORDER BY {ordered}
                    LIMIT %(scan_limit)s
                ) AS campaign_recipients
                WHERE true {and_filters}
                ORDER BY {ordered}
                LIMIT %(limit)s
                """
            ),
            page,
            {"organization_id": organization_id, "campaign_id": campaign_id, **filters._asdict()},
            make=RecipientRow,
            filters={"reason": "reason = %(reason)s", "country": "country = %(country)s", "arm": "arm = %(arm)s"},
            scan=Scan(
                "campaign_recipients",
                ROWS_SCANNED_MAX,
                {"campaign_id": "campaign_id = %(campaign_id)s", "outcome": "outcome = %(outcome)s"},
            ),
        )


async def find_arms(tx: Tx, organization_id: UUID, campaign_id: UUID, profile_ids: Collection[UUID]) -> dict[UUID, int]:
    """The arms of these recipients."""
    return await tx.fetch_map(
        """
        SELECT profile_id, arm FROM campaign_recipients
        WHERE organization_id = %s AND campaign_id = %s AND profile_id = ANY (%s::uuid[])
        """,
        (organization_id, campaign_id, list(profile_ids)),
    )


async def list_recipients_of_person(
    tx: Tx, organization_id: UUID, profile_id: UUID, *, before: UUID = LAST_ID, limit: int
) -> list[RecipientOfPerson]:
    """The campaigns of which a person is a recipient, the newest first. The person is looked up in each campaign: an
    organization has few campaigns, and an index by person would be as large as the primary key."""
    return await tx.fetch_all(
        RecipientOfPerson,
        """
        SELECT campaigns.id, campaigns.name, it.arm, it.outcome, it.reason, it.created_at
        FROM campaigns
        CROSS JOIN LATERAL (
            SELECT arm, outcome, reason, created_at FROM campaign_recipients
            WHERE organization_id = %(organization_id)s AND campaign_id = campaigns.id
              AND profile_id = %(profile_id)s
            LIMIT 1
        ) AS it
        WHERE campaigns.organization_id = %(organization_id)s AND campaigns.id < %(before)s
        ORDER BY campaigns.id DESC
        LIMIT %(limit)s
        """,
        {"organization_id": organization_id, "profile_id": profile_id, "before": before, "limit": limit},
    )
