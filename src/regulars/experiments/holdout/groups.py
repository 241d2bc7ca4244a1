"""Find the customers who get no texts because they are in the global holdout, and the two groups of a quarter: those
held out, and those who get texts.

A draw chooses at random which customers are held out in a quarter.
"""

from collections.abc import Collection
from datetime import date, datetime
from uuid import UUID

from regulars.experiments.holdout import queries
from regulars.kit.db import Tx


async def find_held_out(tx: Tx, organization_id: UUID, profile_ids: Collection[UUID], *, at: datetime) -> set[UUID]:
    """The customers who get no text of a campaign whose recipients were fixed at this time."""
    _, held_out_by_id = await find_holdout_draw(tx, organization_id, profile_ids, at=at)
    return {profile_id for profile_id, is_held_out in held_out_by_id.items() if is_held_out}


async def find_held_out_of_journeys(tx: Tx, organization_id: UUID, profile_ids: Collection[UUID]) -> set[UUID]:
    """The customers who get no text of a journey now."""
    row = await queries.find_holdout(tx, organization_id)
    # The setting `with_journeys` says whether customers who are held out get no texts of journeys either.
    if row is None or not row.with_journeys:
        return set()
    return await find_held_out(tx, organization_id, profile_ids, at=tx.now)


async def find_holdout_draw(
    tx: Tx, organization_id: UUID, profile_ids: Collection[UUID], *, at: datetime
) -> tuple[int, dict[UUID, bool]]:
    """The percentage of held-out customers in the draw that is in effect at a time, and whether each customer is held
    out; customers who were created after the draw are absent. A draw is in effect from its completion until the next
    draw is complete."""
    draws = await tx.fetch(
        """
        SELECT quarter, percent, stopped_at FROM holdout_quarters
        WHERE organization_id = %s AND drawn_at <= %s
        ORDER BY quarter DESC
        LIMIT 1
        """,
        (organization_id, at),
    )
    if not draws or (draws[0][2] is not None and draws[0][2] <= at):
        return 0, {}
    quarter, percent, _ = draws[0]
    rows = await tx.fetch(
        """
        SELECT profile_id, is_held_out FROM holdout_customers
        WHERE organization_id = %s AND quarter = %s AND profile_id = ANY (%s::uuid[])
        """,
        (organization_id, quarter, list(profile_ids)),
    )
    return percent, dict(rows)


async def read_groups(tx: Tx, organization_id: UUID, quarter: date) -> dict[bool, bytes]:
    """The joined ids, 16 bytes each, of a quarter's customers: held out under True, others under False."""
    rows = await tx.fetch(
        """
        SELECT is_held_out, string_agg(uuid_send(profile_id), ''::bytea) FROM holdout_customers
        WHERE organization_id = %s AND quarter = %s
        GROUP BY is_held_out
        """,
        (organization_id, quarter),
    )
    return {row[0]: bytes(row[1]) for row in rows}


async def delete_customers_of(tx: Tx, organization_id: UUID, profile_ids: Collection[UUID]) -> None:
    await tx.execute(
        """
        DELETE FROM holdout_customers
        WHERE organization_id = %(organization_id)s AND profile_id = ANY (%(profile_ids)s::uuid[])
          AND quarter IN (SELECT quarter FROM holdout_quarters WHERE organization_id = %(organization_id)s)
        """,
        {"organization_id": organization_id, "profile_ids": list(profile_ids)},
    )


async def list_quarters_of(tx: Tx, organization_id: UUID, profile_id: UUID) -> list[tuple[date, bool]]:
    """The quarters for which a customer was drawn, and whether the customer was held out in each."""
    return await tx.fetch(
        """
        SELECT quarter, is_held_out FROM holdout_customers
        WHERE organization_id = %(organization_id)s AND profile_id = %(profile_id)s
          AND quarter IN (SELECT quarter FROM holdout_quarters WHERE organization_id = %(organization_id)s)
        ORDER BY quarter
        """,
        {"organization_id": organization_id, "profile_id": profile_id},
    )
