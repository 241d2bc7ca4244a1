"""Creates a very large organization: loads a small demo with COPY, then multiplies it inside the database."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

import psycopg
from psycopg import sql

from automation import JOURNEYS, fill_runs, make_journeys
from bulk import Connection, prepare, without_indexes
from messages import MESSAGES, fill_messages
from regulars.demo.load import DemoPlan, load_demo
from regulars.kit.db import Database
from regulars.organizations.manage import create_organization, find_secret_and_country
from regulars.sales.totals.fill import fill_batch, recount
from regulars.sales.totals.progress import last_id_at, update_fill
from remaining_rows import fill_remaining_rows

STATEMENT_TIMEOUT_MS = 3_600_000
GROWING = ("profiles", "sales_events", "subscriptions")
# The tables with hundreds of thousands of rows.
TABLES = (*GROWING, *MESSAGES, *JOURNEYS)

# Maps customers to their copies, so that copies of tickets and consents refer to the copies of their customers.
MAP = """
CREATE TEMP TABLE copies AS
SELECT p.id AS old_id, k AS copy, pg_temp.id_at(%(ms)s + k * 100000 + row_number() OVER (PARTITION BY k)) AS new_id
FROM profiles p CROSS JOIN generate_series(1, %(times)s) AS k WHERE p.organization_id = %(organization_id)s
"""
FROM_PROFILES = "FROM copies c JOIN profiles t ON t.organization_id = %(organization_id)s AND t.id = c.old_id"
FROM_SALES = """
FROM sales_events t CROSS JOIN generate_series(1, %(times)s) AS k
LEFT JOIN copies c ON c.old_id = t.profile_id AND c.copy = k
WHERE t.organization_id = %(organization_id)s
"""
FROM_SUBSCRIPTIONS = """
FROM subscriptions t JOIN copies c ON c.old_id = t.profile_id
WHERE t.organization_id = %(organization_id)s AND t.phone_number IS NOT NULL
"""
# Another number of the same country: its last four digits change.
NEXT_NUMBER = """
left(t.phone_number, -4) || lpad(((right(t.phone_number, 4)::int + c.copy * 97) %% 10000)::text, 4, '0')
"""
# The columns that differ between a row and its copies.
CHANGED = {
    "profiles": {
        "id": "c.new_id",
        "external_id": "t.external_id || '-' || c.copy",
        "phone_number": NEXT_NUMBER,
    },
    "sales_events": {
        "id": "pg_temp.id_at(%(ms)s + k * 100000)",
        "external_id": "t.external_id || '-' || k",
        "profile_id": "c.new_id",
        "occurred_at": "t.occurred_at - k * interval '37 minutes'",
    },
    "subscriptions": {
        "id": "pg_temp.id_at(%(ms)s + c.copy * 100000)",
        "profile_id": "c.new_id",
        "number_hash": "sha256(t.number_hash || c.copy::text::bytea)",
        "phone_number": NEXT_NUMBER,
    },
}
SOURCES = {"profiles": FROM_PROFILES, "sales_events": FROM_SALES, "subscriptions": FROM_SUBSCRIPTIONS}

Say = Callable[[str], None]


@dataclass(frozen=True)
class Size:
    """The size of the demo, how often it is copied, and the numbers of other rows."""

    customers: int
    sales: int
    times: int
    messages: int
    runs: int
    audit_entries: int = 100_000


LARGE = Size(customers=5_200, sales=25_000, times=200, messages=1_000_000, runs=200_000)


async def fill_large(url: str, size: Size, say: Say) -> UUID:
    """Fills a migrated database with one large organization; returns its id."""
    started = datetime.now(UTC)
    database = Database(url, pool_max=2, statement_timeout_ms=STATEMENT_TIMEOUT_MS)
    await database.open()
    try:
        organization_id = await _load(database, size)
        journeys = await make_journeys(database, organization_id)
        say(f"loaded {size.sales:,} tickets of {size.customers:,} customers in {_seconds(started):.0f} s")
        with psycopg.connect(url, autocommit=True) as connection:
            prepare(connection)
            _multiply(connection, organization_id, size.times - 1)
            say(f"multiplied by {size.times} after {_seconds(started):.0f} s")
            fill_messages(connection, organization_id, size.messages)
            say(f"{size.messages:,} texts and deliveries after {_seconds(started):.0f} s")
            fill_runs(connection, organization_id, journeys, size.runs)
            fill_remaining_rows(connection, organization_id, audit_entries=size.audit_entries)
            say(f"{size.runs:,} runs of journeys after {_seconds(started):.0f} s")
        await _count_totals(database, organization_id)
        say(f"totals of every hour and day after {_seconds(started):.0f} s")
    finally:
        await database.close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")
        counts = {table: _count(connection, table) for table in TABLES}
    shown = ", ".join(f"{count:,} {table}" for table, count in counts.items())
    say(f"{shown} after {_seconds(started):.0f} s")
    return organization_id


async def _load(database: Database, size: Size) -> UUID:
    async with database.connection() as connection:
        organization = await create_organization(connection, "Large")
        secret_and_country = await find_secret_and_country(connection, organization.id)
    story = DemoPlan(seed=1, sales=size.sales, customers=size.customers, last_day=datetime.now(UTC).date())
    await load_demo(database, organization.id, story, secret=secret_and_country.secret, progress=lambda *_: None)
    return organization.id


def _multiply(connection: Connection, organization_id: UUID, times: int) -> None:
    # The copies are a day old, so that they are before every horizon.
    ms = int(datetime.now(UTC).timestamp() * 1000) - 86_400_000
    values = {"organization_id": organization_id, "times": times, "ms": ms}
    connection.execute(MAP, values)
    connection.execute("ANALYZE copies")
    with without_indexes(connection, GROWING):
        for table in GROWING:
            names = _columns(connection, table)
            columns = sql.SQL(", ").join(map(sql.Identifier, names))
            chosen = sql.SQL(", ").join(_value(table, name) for name in names)
            statement = sql.SQL("INSERT INTO {} ({}) SELECT {} ").format(sql.Identifier(table), columns, chosen)
            connection.execute(statement + sql.SQL(SOURCES[table]), values)


def _value(table: str, column: str) -> sql.Composable:
    changed = CHANGED[table].get(column)
    return sql.SQL(changed) if changed is not None else sql.SQL("t.{}").format(sql.Identifier(column))


def _columns(connection: Connection, table: str) -> list[str]:
    rows = connection.execute(
        "SELECT column_name FROM information_schema.columns WHERE table_name = %s AND is_generated = 'NEVER'", (table,)
    )
    return [str(row[0]) for row in rows.fetchall()]


async def _count_totals(database: Database, organization_id: UUID) -> None:
    """Counts all sales as the first fill of the totals does, and marks the fill as complete."""
    async with database.transaction() as tx:
        await recount(tx, organization_id)
        end = last_id_at(tx.now)
    while await fill_batch(database, organization_id):
        pass
    async with database.transaction() as tx:
        await update_fill(tx, organization_id, walked_to=end, due_at=None)


def _count(connection: Connection, table: str) -> int:
    row = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))).fetchone()
    return int(str(row[0])) if row else 0


def _seconds(started: datetime) -> float:
    return (datetime.now(UTC) - started).total_seconds()
