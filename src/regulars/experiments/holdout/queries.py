"""The SQL of the global holdout: its setting, the draw of each quarter, and whether each customer was held out."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Final
from uuid import UUID

from regulars.experiments.holdout.model import DrawnCustomer, HoldoutRow, QuarterRow
from regulars.kit.arrays import Booleans, Ids
from regulars.kit.columns import Columns
from regulars.kit.db import Tx


async def find_holdout(tx: Tx, organization_id: UUID) -> HoldoutRow | None:
    return await tx.fetch_first(
        HoldoutRow, "SELECT {columns} FROM holdouts WHERE organization_id = %s", (organization_id,)
    )


async def set_due(tx: Tx, organization_id: UUID, due_at: datetime | None, *, attempts: int = 0) -> None:
    await tx.execute(
        "UPDATE holdouts SET due_at = %s, attempts = %s WHERE organization_id = %s",
        (due_at, attempts, organization_id),
    )


async def list_quarters(tx: Tx, organization_id: UUID) -> list[QuarterRow]:
    """The draws of the organization, newest quarter first."""
    return await tx.fetch_all(
        QuarterRow,
        "SELECT {columns} FROM holdout_quarters WHERE organization_id = %s ORDER BY quarter DESC",
        (organization_id,),
    )


async def save_draw(tx: Tx, organization_id: UUID, row: QuarterRow) -> None:
    """Save how far the draw of a quarter is: its last customer, its end and its counts."""
    await tx.execute(
        """
        UPDATE holdout_quarters
        SET drawn_to = %s, drawn_at = %s, customers = %s, held_out = %s
        WHERE organization_id = %s AND quarter = %s
        """,
        (row.drawn_to, row.drawn_at, row.customers, row.held_out, organization_id, row.quarter),
    )


_CUSTOMERS: Final = Columns(profile_id=Ids, is_held_out=Booleans)
_INSERT_DRAWN: Final = _CUSTOMERS.write(
    """
    INSERT INTO holdout_customers (organization_id, quarter, {columns})
    SELECT %(organization_id)s, %(quarter)s, it.* FROM {rows}
    WHERE EXISTS (SELECT 1 FROM profiles WHERE organization_id = %(organization_id)s AND id = it.profile_id)
    ON CONFLICT (organization_id, quarter, profile_id) DO NOTHING
    """
)


async def insert_customers(tx: Tx, organization_id: UUID, quarter: date, drawn: Sequence[DrawnCustomer]) -> None:
    """Insert customers who still exist. If a customer is erased at the same time, the worker deletes the row when it
    finishes the erasure."""
    await tx.execute(_INSERT_DRAWN, {"organization_id": organization_id, "quarter": quarter, **_CUSTOMERS.of(drawn)})


async def delete_customers_before(tx: Tx, organization_id: UUID, quarter: date, *, limit: int) -> int:
    """Delete a batch of customers of earlier quarters; return how many."""
    return await tx.execute(
        """
        DELETE FROM holdout_customers
        WHERE organization_id = %(organization_id)s AND (quarter, profile_id) IN (
            SELECT quarter, profile_id FROM holdout_customers
            WHERE organization_id = %(organization_id)s AND quarter < %(quarter)s
            LIMIT %(limit)s
        )
        """,
        {"organization_id": organization_id, "quarter": quarter, "limit": limit},
    )


async def is_any_customer_stored(tx: Tx, organization_id: UUID) -> bool:
    rows = await tx.fetch("SELECT 1 FROM holdout_customers WHERE organization_id = %s LIMIT 1", (organization_id,))
    return bool(rows)
