"""Lists credits for the pages: tickets (sales) that are attributed to a text.

A credit belongs to the day on which its text was sent, in the organization's time zone.
"""

from collections.abc import Iterable
from datetime import date
from typing import Final, LiteralString, NamedTuple
from uuid import UUID

from psycopg.sql import SQL

from regulars.attribution.model import Credit
from regulars.attribution.queries import fetch_credits, read_credit
from regulars.kit.columns import names_of
from regulars.kit.db import Tx
from regulars.kit.keyset import Keyset, PageRequest, PageRows, Position, Scan


class CreditFilter(NamedTuple):
    """Which credits a list shows; `first` and `last` are days on which texts were sent."""

    origin_kind: str | None = None
    origin_id: UUID | None = None
    step: str | None = None
    text_id: UUID | None = None
    currency: str | None = None
    first: date | None = None
    last: date | None = None


class CreditLine(NamedTuple):
    """A credit in a list, with the number of its ticket and the name of its customer."""

    credit: Credit
    ticket_number: str
    store_name: str | None
    first_name: str | None
    last_name: str | None
    profile_external_id: str | None

    @property
    def position(self) -> Position:
        return self.credit.day.isoformat(), str(self.credit.sale_id)


_BY_DAY: Final = Keyset({"c.day": date.fromisoformat, "c.sale_id": UUID}, is_descending=True)
_CONDITIONS: Final[dict[str, LiteralString]] = {
    "origin_kind": "c.origin_kind = %(origin_kind)s",
    "origin_id": "c.origin_id = %(origin_id)s",
    "step": "c.step = %(step)s",
    "text_id": "c.text_id = %(text_id)s",
    "currency": "c.currency = %(currency)s",
    "first": "c.day >= %(first)s",
    "last": "c.day <= %(last)s",
}
ROWS_SCANNED_MAX: Final = 20_000


async def list_credits(tx: Tx, organization_id: UUID, filters: CreditFilter, page: PageRequest) -> PageRows[CreditLine]:
    """Credits of the newest texts first. Filters without an index search at most `ROWS_SCANNED_MAX` rows."""
    # The filters that the index for the list supports.
    indexed = ["first", "last"]
    if filters.text_id is not None:
        indexed.append("text_id")
    elif filters.origin_id is not None:
        indexed.append("origin_id")
    return await _BY_DAY.fetch(
        tx,
        SQL(_LIST_CREDITS),
        page,
        {"organization_id": organization_id, **filters._asdict()},
        make=_make_line,
        filters={name: text for name, text in _CONDITIONS.items() if name not in indexed},
        scan=Scan("attributed_sales AS c", ROWS_SCANNED_MAX, {name: _CONDITIONS[name] for name in indexed}),
    )


_COLUMNS: Final[LiteralString] = names_of(Credit, "c")
_LIST_CREDITS: Final[LiteralString] = (
    "SELECT " + _COLUMNS + ", s.external_id, s.store_name, p.first_name, p.last_name, p.external_id"  # noqa: S608  # columns of ours
    """
    FROM (
        SELECT * FROM (
            SELECT c.* FROM attributed_sales AS c
            WHERE c.organization_id = %(organization_id)s {and_indexed_filters} {and_after_position}
            ORDER BY {ordered}
            LIMIT %(scan_limit)s
        ) AS c
        WHERE true {and_filters}
        ORDER BY {ordered}
        LIMIT %(limit)s
    ) AS c
    LEFT JOIN LATERAL (
        SELECT e.external_id, t.name AS store_name
        FROM sales_events AS e
        JOIN stores AS t ON t.organization_id = %(organization_id)s AND t.id = e.store_id
        WHERE e.organization_id = %(organization_id)s AND e.id = c.sale_id
        LIMIT 1
    ) AS s ON true
    LEFT JOIN LATERAL (
        SELECT external_id, first_name, last_name FROM profiles
        WHERE organization_id = %(organization_id)s AND id = c.profile_id
        LIMIT 1
    ) AS p ON true
    ORDER BY {ordered}
    """
)


def _make_line(*row: object) -> CreditLine:
    width = len(Credit._fields)
    return CreditLine(read_credit(row[:width]), *row[width:])  # type: ignore[arg-type]  # the columns of the statement


async def find_credits(tx: Tx, organization_id: UUID, sale_ids: Iterable[UUID]) -> dict[UUID, Credit]:
    """The credits of these sales by sale id; a sale without a credit has no entry."""
    found = await fetch_credits(
        tx,
        "SELECT {columns} FROM attributed_sales WHERE organization_id = %s AND sale_id = ANY (%s::uuid[])",
        (organization_id, list(sale_ids)),
    )
    return {credit.sale_id: credit for credit in found}
