from datetime import timedelta

import msgspec
import pytest
from psycopg import sql
from tests.support.database_fixtures import SECRET

from regulars.imports import run
from regulars.imports.model import FileRow, ImportKind
from regulars.imports.row_writer import Target
from regulars.imports.run import run_import

pytestmark = pytest.mark.anyio

STORE = {"external_id": "S1", "name": "Paris"}
SALE = {
    "external_id": "S1:1",
    "type": "PURCHASE",
    "occurred_at": "2026-03-01T10:00:00Z",
    "store_id": "S1",
    "currency": "EUR",
    "total_amount_cents": 100,
    "total_discount_cents": 0,
    "profile_id": "C1",
    "line_items": [{"quantity": 1, "total_price_cents": 100}],
}
CONSENT = {"phone_number": "+33612345678", "consent_source": "WEBSITE", "consented_at": "2026-01-01T00:00:00Z"}
WITHDRAWAL = {"phone_number": "+33612345678", "unsubscribed_at": "2026-02-01T00:00:00Z"}
TABLES = (
    "stores",
    "profiles",
    "sales_events",
    "subscriptions",
    "consent_ledger",
    "consent_payloads",
    "ticket_collisions",
    "profile_attributes",
    "outbox",
)


EVERY_ROW = sql.SQL("SELECT t::text FROM {} t ORDER BY 1")


class Importing:
    def __init__(self, database, organization_id) -> None:
        self.database = database
        self.target = Target(
            organization_id=organization_id, secret=SECRET, default_country=None, tolerance=timedelta(seconds=30)
        )
        self.rejected: list[tuple[int, str]] = []

    async def run(self, kind, *bodies, dry_run=False):
        self.rejected.clear()
        rows = [
            FileRow(number, body if isinstance(body, bytes) else msgspec.json.encode(body))
            for number, body in enumerate(bodies, start=1)
        ]
        report = await run_import(
            self.database,
            kind,
            rows,
            self.target,
            dry_run=dry_run,
            on_rejected=lambda row, error: self.rejected.append((row.number, error.code)),
            on_progress=lambda _: None,
        )
        return {name: count for name, count in report.as_data().items() if count and name != "rows"}

    async def everything(self):
        """Every row of every table, so that a test can say that nothing at all has changed."""
        async with self.database.connection() as connection:
            return {
                table: await (await connection.execute(EVERY_ROW.format(sql.Identifier(table)))).fetchall()
                for table in TABLES
            }


@pytest.fixture
def importing(database, organization_id):
    return Importing(database, organization_id)


async def test_stores_and_profiles_are_created_updated_or_left_alone(importing):
    assert await importing.run(ImportKind.STORES, STORE, {**STORE, "name": "Lyon"}, {"external_id": "S1"}) == {
        "created": 1,
        "updated": 1,
        "unchanged": 1,
    }
    assert await importing.run(ImportKind.PROFILES, {"external_id": "C1", "attributes": {"tier": "gold"}}) == {
        "created": 1
    }


async def test_bad_rows_stop_nothing_and_are_reported_with_their_reasons(importing):
    await importing.run(ImportKind.STORES, STORE)
    bad = (
        b"not json",
        {**SALE, "external_id": "prof_1"},
        {**SALE, "external_id": "S1:2", "store_id": "S9"},
        {**SALE, "external_id": "S1:3", "occurred_at": "2999-01-01T00:00:00Z"},
    )
    assert await importing.run(ImportKind.SALES, *bad, SALE) == {"created": 1, "rejected": 4}
    assert importing.rejected == [
        (1, "INVALID_JSON"),
        (2, "RESERVED_EXTERNAL_ID"),
        (3, "STORE_NOT_FOUND"),
        (4, "OCCURRED_AT_IN_FUTURE"),
    ]


async def test_fields_that_the_api_does_not_have_are_counted(importing):
    rows = ({**STORE, "nmae": 1}, {**STORE, "nmae": 2, "address": None, "till": 7}, {**STORE, "name": "Lyon"})
    assert await importing.run(ImportKind.STORES, *rows) == {
        "created": 1,
        "unchanged": 1,
        "updated": 1,
        "ignored": {"nmae": 2, "till": 1},
    }


async def test_a_consent_may_say_in_which_store_it_was_given(importing):
    await importing.run(ImportKind.STORES, STORE)
    assert await importing.run(ImportKind.CONSENTS, {**CONSENT, "store_id": "S1"}, {**CONSENT, "store_id": "S9"}) == {
        "created": 1,
        "rejected": 1,
    }
    assert importing.rejected == [(2, "STORE_NOT_FOUND")]


async def test_running_files_twice_changes_nothing_at_all(importing):
    files = {
        ImportKind.STORES: [STORE],
        ImportKind.PROFILES: [{"external_id": "C1", "first_name": "Ada", "attributes": {"tier": "gold"}}],
        ImportKind.SALES: [SALE, SALE, {**SALE, "external_id": "S1:2", "profile_id": None}],
        ImportKind.CONSENTS: [CONSENT, WITHDRAWAL, {**CONSENT, "profile_id": "C1"}, {**WITHDRAWAL, "reason": "no"}],
    }
    for kind, rows in files.items():
        await importing.run(kind, *rows)
    before = await importing.everything()
    assert all(before[table] for table in TABLES if table != "ticket_collisions")
    again = {kind: await importing.run(kind, *rows) for kind, rows in files.items()}
    assert again == {
        ImportKind.STORES: {"unchanged": 1},
        ImportKind.PROFILES: {"unchanged": 1},
        ImportKind.SALES: {"duplicate": 3},
        ImportKind.CONSENTS: {"unchanged": 4},
    }
    assert await importing.everything() == before


async def test_a_dry_run_reports_the_same_and_stores_nothing(importing):
    await importing.run(ImportKind.STORES, STORE)
    before = await importing.everything()
    rows = (SALE, SALE, {**SALE, "total_amount_cents": 7}, {**SALE, "store_id": "S9", "external_id": "S1:2"})
    counts = await importing.run(ImportKind.SALES, *rows, dry_run=True)
    assert await importing.everything() == before
    assert counts == {"created": 1, "duplicate": 2, "differing": 1, "rejected": 1}
    assert await importing.run(ImportKind.SALES, *rows) == counts


async def test_consents_and_withdrawals_meet_in_the_order_of_the_file(importing):
    later = {**CONSENT, "consented_at": "2026-03-01T00:00:00Z"}
    assert await importing.run(
        ImportKind.CONSENTS, CONSENT, WITHDRAWAL, later, {**CONSENT, "consent_source": "EVENT"}
    ) == {
        "created": 1,
        "updated": 2,
        "superseded": 1,
    }


async def test_a_row_that_is_consent_and_withdrawal_or_neither_is_refused(importing):
    neither = {"phone_number": "+33612345678"}
    assert await importing.run(ImportKind.CONSENTS, {**CONSENT, **WITHDRAWAL}, neither) == {"rejected": 2}


async def test_what_the_database_refuses_costs_only_the_guilty_row(importing, monkeypatch):
    await importing.run(ImportKind.STORES, STORE)
    async with importing.database.connection() as connection:
        await connection.execute("ALTER TABLE sales_events ADD CHECK (external_id <> 'S1:13')")
    sales = [{**SALE, "external_id": f"S1:{number}"} for number in range(20)]
    assert await importing.run(ImportKind.SALES, *sales) == {"created": 19, "rejected": 1}
    assert importing.rejected == [(14, "INTERNAL_ERROR")]


async def test_a_file_longer_than_a_batch_is_taken_whole(importing, monkeypatch):
    monkeypatch.setattr(run, "BATCH_ROWS", 3)
    rows = [{"external_id": f"S{number % 5}"} for number in range(10)]
    assert await importing.run(ImportKind.STORES, *rows) == {"created": 5, "unchanged": 5}
