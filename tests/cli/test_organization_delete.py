"""Deleting an organization: everything of it goes, nothing of the others does, and a straggler is caught."""

from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql
from tests.cli.conftest import environment, run_here
from tests.support.database import new_database

from regulars.organizations import dissolve as dissolving
from regulars.organizations.dissolve import referring_first


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    monkeypatch.setattr(dissolving, "KEY_CACHE_WAIT_S", 0)
    monkeypatch.setattr(dissolving, "SECOND_DELETION_WAIT_S", 0)
    monkeypatch.setattr(dissolving, "ROWS_PER_TRANSACTION_MAX", 70)


@pytest.fixture(scope="module")
def two_shops_url(shared_database, tmp_path_factory):
    """A database that each test copies."""
    url, template = shared_database
    folder = tmp_path_factory.mktemp("shops")
    with new_database(url, template=template) as filled:
        variables = environment(DATABASE_URL=filled, REGULARS_DATA_DIR=str(folder / "data"))
        for name in ("Gone", "Stays"):
            for arguments in (["demo", "--sales", "150"], ["key", "create"]):
                ran = run_here([*arguments, "--organization", name], variables, folder)
                assert ran.code == 0, ran.err
        yield filled


@pytest.fixture
def database_url(server_url, two_shops_url):
    with new_database(server_url, template=urlsplit(two_shops_url).path.removeprefix("/")) as copy:
        yield copy


def rows_of(database_url: str, organization_id: str) -> dict[str, int]:
    """How many rows each table has of an organization; asked by its id, which outlives it."""
    with psycopg.connect(database_url) as connection:
        tables = connection.execute(
            "SELECT table_name::text FROM information_schema.columns"
            " WHERE column_name = 'organization_id' AND table_schema = 'public'"
        ).fetchall()
        count = "SELECT count(*) FROM {} WHERE organization_id = %s"
        return {
            table: connection.execute(sql.SQL(count).format(sql.Identifier(table)), (organization_id,)).fetchone()[0]
            for (table,) in tables
        }


def id_of(database_url: str, name: str) -> str:
    with psycopg.connect(database_url) as connection:
        return connection.execute("SELECT id FROM organizations WHERE name = %s", (name,)).fetchone()[0]


def test_everything_of_it_goes_once_its_name_is_typed_and_nothing_of_the_others(regulars, database_url):
    gone, stays = id_of(database_url, "Gone"), id_of(database_url, "Stays")
    rows, before = rows_of(database_url, gone), rows_of(database_url, stays)
    assert sum(rows.values()) > 250
    for typed in ("gone\n", "\n", ""):
        refused = regulars("organization", "delete", "Gone", typed=typed)
        assert refused.code == 1, typed
        assert "Traceback" not in refused.err
        assert rows_of(database_url, gone) == rows
    deleted = regulars("organization", "delete", "Gone", typed="Gone\n")
    assert deleted.code == 0, deleted.err
    assert "could text these people again" in " ".join(deleted.err.split())
    assert set(rows_of(database_url, gone).values()) == {0}
    assert rows_of(database_url, stays) == before
    assert [each["name"] for each in regulars("organization", "list", "--json").data] == ["Stays"]


def test_the_keys_end_first_and_what_is_written_meanwhile_goes_with_the_second_pass(
    regulars, database_url, monkeypatch
):
    gone = id_of(database_url, "Gone")
    waits: list[float] = []

    async def written_meanwhile(seconds: float) -> None:
        waits.append(seconds)
        with psycopg.connect(database_url, autocommit=True) as connection:
            live = connection.execute(
                "SELECT count(*) FROM api_keys WHERE organization_id = %s AND revoked_at IS NULL", (gone,)
            ).fetchone()
            assert live == (0,)
            connection.execute(
                "INSERT INTO stores (organization_id, id, external_id, created_at, updated_at)"
                " VALUES (%s, gen_random_uuid(), %s, now(), now())",
                (gone, f"late-{len(waits)}"),
            )

    monkeypatch.setattr(dissolving, "KEY_CACHE_WAIT_S", 2.0)
    monkeypatch.setattr(dissolving, "SECOND_DELETION_WAIT_S", 60.0)
    monkeypatch.setattr(dissolving, "sleep", written_meanwhile)
    assert regulars("organization", "delete", "Gone", "--confirm", "Gone").code == 0
    assert waits == [2.0, 60.0]
    assert set(rows_of(database_url, gone).values()) == {0}
    assert "no organization named" in regulars("organization", "delete", "Gone", "--confirm", "Gone").complains(code=1)


def test_a_table_goes_before_those_it_refers_to():
    references = {"lines": {"tickets"}, "tickets": {"shops", "elsewhere"}, "shops": set(), "loop": {"loop"}}
    ordered = referring_first(references)
    assert sorted(ordered) == sorted(references)
    assert ordered.index("lines") < ordered.index("tickets") < ordered.index("shops")
