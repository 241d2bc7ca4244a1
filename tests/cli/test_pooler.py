"""A pooler before PostgreSQL: by session it works, by transaction it is refused before anything is served."""

from structlog.testing import capture_logs
from tests.support.pooler import pooled

from regulars.cli.database import check_change_lists


def finding(ran):
    return next(one for one in ran.data if one["name"] == "pooler")


def test_one_that_lends_by_transaction_is_refused_at_the_start(command, database_url):
    with pooled(database_url, by_transaction=True) as url:
        for arguments in (["serve", "--port", "0"], ["worker"], ["migrate"], ["organization", "list"]):
            sentence = command(*arguments, DATABASE_URL=url).complains(code=3)
            assert "lends connections by transaction" in sentence
            assert "pool_mode = session" in sentence


def test_doctor_distinguishes_the_two(command, database_url):
    with pooled(database_url, by_transaction=True) as url:
        ran = command("doctor", "--json", DATABASE_URL=url)
    assert ran.code == 1
    assert not finding(ran)["ok"]
    assert "by transaction" in finding(ran)["found"]
    assert "pool_mode = session" in finding(ran)["advice"]
    with pooled(database_url, by_transaction=False) as url:
        ran = command("doctor", "--json", DATABASE_URL=url)
    assert finding(ran)["ok"]
    assert "by session" in finding(ran)["found"]
    ran = command("doctor", "--json", DATABASE_URL=database_url)
    assert "PostgreSQL directly" in finding(ran)["found"]


def test_one_that_lends_by_session_serves_commands(command, database_url):
    with pooled(database_url, by_transaction=False) as url:
        assert command("organization", "create", "Shop", DATABASE_URL=url).code == 0
        assert "Shop" in command("organization", "list", DATABASE_URL=url).out


def test_one_that_replaces_the_application_name_leaves_no_lists_of_changes(command, database_url):
    with pooled(database_url, by_transaction=False) as url:
        ran = command("doctor", "--json", DATABASE_URL=url)
    [found] = [one for one in ran.data if one["name"] == "lists of changes"]
    assert not found["ok"]
    assert "application name" in found["found"]
    assert "pg_read_all_stats" in found["advice"]


def test_the_start_warns_of_one_that_replaces_the_application_name(database_url):
    with pooled(database_url, by_transaction=False) as url, capture_logs() as lines:
        check_change_lists(url)
        check_change_lists(database_url)
    [warning] = lines
    assert warning["event"] == "changes.cannot_be_listed"
    assert "application name" in warning["reason"]
