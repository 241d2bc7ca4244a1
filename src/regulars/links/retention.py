"""Delete clicks and personal links after 25 months, and the IP address and user agent of a click after an hour."""

from collections.abc import Collection
from datetime import timedelta
from typing import Final
from uuid import UUID

from regulars.kit.db import Database, Tx
from regulars.links import link_rows as queries
from regulars.links.facts import LinkClicked
from regulars.work.outbox import rewrite_waiting_facts
from regulars.work.queue import delete_in_batches

# How long texts, replies and clicks are stored: 25 months.
RETENTION: Final = timedelta(days=762)
# The documentation promises a day; the classification needs IP addresses and user agents only for a minute.
TRACE_RETENTION: Final = timedelta(hours=1)


async def sweep_clicks(database: Database, organization_id: UUID) -> None:
    """Delete clicks and personal links that are older than 25 months."""
    await delete_in_batches(database, organization_id, queries.delete_old_clicks, retention=RETENTION)
    await delete_in_batches(database, organization_id, queries.delete_old_links, retention=RETENTION)


async def sweep_click_traces(database: Database, organization_id: UUID) -> None:
    """Delete the IP addresses and user agents (traces) of clicks that are older than an hour."""
    await delete_in_batches(database, organization_id, queries.delete_traces, retention=TRACE_RETENTION)


async def erase_from_click_facts(tx: Tx, organization_id: UUID, profile_ids: Collection[UUID]) -> None:
    """Remove erased people from recorded clicks that listeners have not handled yet."""

    def remove_people(fact: LinkClicked) -> LinkClicked | None:
        return None if fact.profile_id in profile_ids else fact

    await rewrite_waiting_facts(tx, organization_id, LinkClicked, profile_ids, remove_people)


async def forget_people(
    tx: Tx, organization_id: UUID, profile_ids: Collection[UUID], text_ids: Collection[UUID]
) -> None:
    """Remove erased people from their links, which still work, and IP addresses and user agents from their clicks."""
    codes = await tx.fetch_column(
        """
        UPDATE links SET profile_id = NULL, text_id = NULL
        WHERE organization_id = %(organization_id)s AND code = ANY (ARRAY(
            SELECT code FROM links
            WHERE organization_id = %(organization_id)s
              AND (profile_id = ANY (%(profile_ids)s::uuid[]) OR text_id = ANY (%(text_ids)s::uuid[]))
            ORDER BY code
            FOR UPDATE
        ))
        RETURNING code
        """,
        {"organization_id": organization_id, "profile_ids": list(profile_ids), "text_ids": list(text_ids)},
    )
    await tx.execute(
        """
        UPDATE clicks SET address = NULL, agent = NULL, traced_at = NULL
        WHERE organization_id = %s AND code = ANY (%s::text[]) AND traced_at IS NOT NULL
        """,
        (organization_id, codes),
    )
