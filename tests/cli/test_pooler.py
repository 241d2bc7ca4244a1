"""A pooler before PostgreSQL: by session it works, by transaction it is refused before anything is served."""

from structlog.testing import capture_logs
from tests.support.pooler import pooled

from regulars.cli.database import check_change_lists


def test_one_that_lends_by_transaction_is_refused_at_the_start(command, database_url):
    with pooled(database_url, by_transaction=True) as url:
        for arguments in (["serve", "--port", "0"], ["worker"], ["migrate"], ["organization", "list"]):
            sentence = command(*arguments, DATABASE_URL=url).complains(code=3)
            assert "lends connections by transaction" in sentence
            assert "pool_mode = session" in sentence


def test_doctor_distinguishes_the_two_and_one_by_session_serves_commands(command, database_url):
    def findings(url, *, code=None):
        ran = command("doctor", "--json", DATABASE_URL=url)
        assert code in {None, ran.code}
        return {one["name"]: one for one in ran.data}

    with pooled(database_url, by_transaction=True) as url:
        found = findings(url, code=1)["pooler"]
    assert not found["ok"]
    assert "by transaction" in found["found"]
    assert "pool_mode = session" in found["advice"]
    with pooled(database_url, by_transaction=False) as url:
        found = findings(url)
        assert command("organization", "create", "Shop", DATABASE_URL=url).code == 0
        assert "Shop" in command("organization", "list", DATABASE_URL=url).out
    assert found["pooler"]["ok"]
    assert "by session" in found["pooler"]["found"]
    # It replaces the application name.
    assert not found["lists of changes"]["ok"]
    assert "application name" in found["lists of changes"]["found"]
    assert "pg_read_all_stats" in found["lists of changes"]["advice"]
    assert "PostgreSQL directly" in findings(database_url)["pooler"]["found"]


def test_the_start_warns_of_one_that_replaces_the_application_name(database_url):
    with pooled(database_url, by_transaction=False) as url, capture_logs() as lines:
        check_change_lists(url)
        check_change_lists(database_url)
    [warning] = lines
    assert warning["event"] == "changes.cannot_be_listed"
    assert "application name" in warning["reason"]
