"""The horizon of lists of changes: every session of ours that writes holds it back, or the list is refused."""

import uuid
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql
from structlog.testing import capture_logs

from regulars.kit import horizon
from regulars.kit.clock import truncate_to_milliseconds
from regulars.kit.db import Database
from regulars.kit.errors import Unavailable
from regulars.kit.horizon import find_problem, read_horizon

pytestmark = pytest.mark.anyio
OF_THE_POOLER = "regulars - 10.0.0.7:51234"


@pytest.fixture
def role(database_url: str) -> Iterator[str]:
    """A role that sees no transactions of other roles."""
    name = f"node_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))
        yield name
        connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


async def test_a_session_whose_name_a_pooler_extended_holds_the_horizon_back(database: Database):
    with psycopg.connect(database.url, application_name=OF_THE_POOLER) as writing:
        [(began,)] = writing.execute("SELECT now() - interval '2 seconds'").fetchall()
        async with database.reading() as tx:
            assert await read_horizon(tx) == truncate_to_milliseconds(began)


async def test_a_list_is_refused_while_the_transactions_of_another_role_are_hidden(
    database: Database, role: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(horizon, "_PROBLEM_LOG", horizon.ProblemLog())
    become = sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(role))
    allow = sql.SQL("GRANT pg_read_all_stats TO {}").format(sql.Identifier(role))
    # The sessions of `database` were opened by another role, and one of them may be writing.
    async with database.transaction() as tx:
        await read_horizon(tx)
        await tx.connection.execute(become)
        with capture_logs() as lines:
            # The first refusal follows the reading before at once, and the second logs nothing more.
            for _ in range(2):
                with pytest.raises(Unavailable, match="regulars doctor"):
                    await read_horizon(tx)
    [line] = lines
    assert "of another role: " in line["reason"]
    async with database.transaction() as tx:
        await tx.connection.execute(allow)
        await tx.connection.execute(become)
        await read_horizon(tx)


async def test_a_list_is_refused_if_the_own_session_has_another_name(database: Database):
    async with database.transaction() as tx:
        await tx.execute("SELECT set_config('application_name', 'pooler', true)")
        with pytest.raises(Unavailable):
            await read_horizon(tx)


async def test_a_list_is_refused_while_a_session_of_ours_does_not_track_its_transactions(database: Database):
    with psycopg.connect(database.url, application_name="regulars", autocommit=True) as writing:
        writing.execute("SET track_activities = off")
        async with database.reading() as tx:
            with pytest.raises(Unavailable):
                await read_horizon(tx)


def test_the_problem_names_the_role_for_the_operator(database_url: str, role: str):
    with psycopg.connect(database_url, application_name=OF_THE_POOLER) as connection:
        assert find_problem(connection) is None
        connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
        assert (find_problem(connection) or "").endswith(f"another role: {connection.info.user}.")
