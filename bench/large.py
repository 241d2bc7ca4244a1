"""An organization as large as they come: a small demo, loaded with COPY, and then multiplied inside the database."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

import psycopg
from psycopg import sql

from messages import MESSAGES, fill_messages
from regulars.demo.load import Story, load_demo
from regulars.kit.db import Database
from regulars.organizations.manage import create_organization, find_particulars
from regulars.sales.totals.fill import last_id_at, take_bite

CUSTOMERS = 10_000
SALES = 50_000
TIMES = 100
STATEMENT_TIMEOUT_MS = 3_600_000
GROWING = ("profiles", "sales_events", "subscriptions")

# An id in the order of time, as our own are: milliseconds, the version, and chance.
NEW_ID = """
CREATE FUNCTION pg_temp.id_at(ms bigint) RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT (lpad(to_hex(ms), 12, '0') || '7' || substr(r, 1, 3) || '8' || substr(r, 4, 15))::uuid
    FROM (SELECT md5(random()::text) AS r) AS chance
$$
"""
# Which copy of a customer stands for which: copies of tickets and consents go to the copies of their customers.
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
# Another number of the same country: its last four digits turn.
NEXT_NUMBER = """
left(t.phone_number, -4) || lpad(((right(t.phone_number, 4)::int + c.copy * 97) %% 10000)::text, 4, '0')
"""
# What differs between a row and its copies; everything else is copied.
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
    customers: int
    sales: int
    times: int
    # Texts, replies and deliveries of webhooks beside them.
    messages: int = 1_000_000


LARGE = Size(CUSTOMERS, SALES, TIMES)


async def fill_large(url: str, size: Size, say: Say) -> UUID:
    """Fill a migrated database with one large organization; give its id."""
    started = datetime.now(UTC)
    organization_id = await _load(url, size)
    say(f"loaded {size.sales:,} tickets of {size.customers:,} customers in {_seconds(started):.0f} s")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET statement_timeout = 0")
        connection.execute("SET work_mem = '256MB'")
        _multiply(connection, organization_id, size.times - 1)
        say(f"multiplied by {size.times} after {_seconds(started):.0f} s")
        fill_messages(connection, organization_id, size.messages)
        say(f"{size.messages:,} texts and deliveries after {_seconds(started):.0f} s")
    await _count_hours(url, organization_id)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")
        counts = {table: _count(connection, table) for table in (*GROWING, *MESSAGES)}
    shown = ", ".join(f"{count:,} {table}" for table, count in counts.items())
    say(f"{shown} after {_seconds(started):.0f} s")
    return organization_id


async def _load(url: str, size: Size) -> UUID:
    database = Database(url, pool_max=2, statement_timeout_ms=STATEMENT_TIMEOUT_MS)
    await database.open()
    try:
        async with database.connection() as connection:
            organization = await create_organization(connection, "Large")
            particulars = await find_particulars(connection, organization.id)
        story = Story(seed=1, sales=size.sales, customers=size.customers, last_day=datetime.now(UTC).date())
        await load_demo(database, organization.id, story, secret=particulars.secret, progress=lambda *_: None)
    finally:
        await database.close()
    return organization.id


def _multiply(connection: "psycopg.Connection[tuple[object, ...]]", organization_id: UUID, times: int) -> None:
    """Without the indexes, which are built again at the end: that is several times faster."""
    # The copies are a day old, so that what walks behind the present has passed them.
    ms = int(datetime.now(UTC).timestamp() * 1000) - 86_400_000
    values = {"organization_id": organization_id, "times": times, "ms": ms}
    definitions = _drop_indexes(connection)
    connection.execute(NEW_ID)
    connection.execute(MAP, values)
    connection.execute("ANALYZE copies")
    for table in GROWING:
        names = _columns(connection, table)
        columns = sql.SQL(", ").join(map(sql.Identifier, names))
        chosen = sql.SQL(", ").join(_value(table, name) for name in names)
        statement = sql.SQL("INSERT INTO {} ({}) SELECT {} ").format(sql.Identifier(table), columns, chosen)
        connection.execute(statement + sql.SQL(SOURCES[table]) + sql.SQL(" ON CONFLICT DO NOTHING"), values)
    for definition in definitions:
        connection.execute(definition)


def _value(table: str, column: str) -> sql.Composable:
    changed = CHANGED[table].get(column)
    return sql.SQL(changed) if changed is not None else sql.SQL("t.{}").format(sql.Identifier(column))


def _columns(connection: "psycopg.Connection[tuple[object, ...]]", table: str) -> list[str]:
    rows = connection.execute(
        "SELECT column_name FROM information_schema.columns WHERE table_name = %s AND is_generated = 'NEVER'", (table,)
    )
    return [str(row[0]) for row in rows.fetchall()]


def _drop_indexes(connection: "psycopg.Connection[tuple[object, ...]]") -> Sequence[bytes]:
    rows = connection.execute(
        "SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid) FROM pg_index i"
        " WHERE i.indrelid = ANY(%s::regclass[]) AND NOT i.indisunique",
        (list(GROWING),),
    ).fetchall()
    for name, _ in rows:
        connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(str(name))))
    return [str(definition).encode() for _, definition in rows]


async def _count_hours(url: str, organization_id: UUID) -> None:
    """The totals of all that was copied, by the job that counts what was stored before there were any."""
    database = Database(url, pool_max=2, statement_timeout_ms=STATEMENT_TIMEOUT_MS)
    await database.open()
    try:
        async with database.transaction() as tx:
            await tx.execute("DELETE FROM hourly_totals WHERE organization_id = %s", (organization_id,))
            await tx.execute(
                "INSERT INTO hourly_totals_fills (organization_id, fence, walked_to, due_at) VALUES (%s, %s, %s, now())"
                " ON CONFLICT (organization_id) DO UPDATE SET fence = excluded.fence, walked_to = excluded.walked_to,"
                " due_at = excluded.due_at",
                (organization_id, last_id_at(tx.now), UUID(int=0)),
            )
        while await take_bite(database, organization_id):
            pass
    finally:
        await database.close()


def _count(connection: "psycopg.Connection[tuple[object, ...]]", table: str) -> int:
    row = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))).fetchone()
    return int(str(row[0])) if row else 0


def _seconds(started: datetime) -> float:
    return (datetime.now(UTC) - started).total_seconds()
