import psycopg
import pytest

from regulars.kit.db_checks import NotDurableError, assert_durable


def test_a_durable_server_is_accepted(database_url):
    with psycopg.connect(database_url) as connection:
        assert_durable(connection)


def test_a_session_that_commits_asynchronously_is_refused(database_url):
    with (
        psycopg.connect(database_url, options="-c synchronous_commit=off") as connection,
        pytest.raises(NotDurableError, match=r"\(synchronous_commit = off\)"),
    ):
        assert_durable(connection)


@pytest.mark.parametrize("value", ["local", "remote_write", "remote_apply", "on"])
def test_every_waiting_kind_of_commit_is_accepted(database_url, value):
    with psycopg.connect(database_url, options=f"-c synchronous_commit={value}") as connection:
        assert_durable(connection)
