import psycopg
import psycopg.sql


def bad(ran):
    return {finding["name"]: finding for finding in ran.data if not finding["ok"]}


def test_a_good_embedded_setup_passes_every_check(command, data_dir):
    assert command("migrate", REGULARS_DATA_DIR=str(data_dir)).code == 0
    ran = command("doctor", "--json", REGULARS_DATA_DIR=str(data_dir))
    assert bad(ran) == {}
    assert ran.code == 0
    names = {finding["name"] for finding in ran.data}
    assert {"python", "settings", "disk", "database", "durability", "rights", "clock", "migrations"} <= names


def test_a_database_that_is_not_durable_is_bad(regulars, database_url):
    with psycopg.connect(database_url, autocommit=True) as connection:
        name = psycopg.sql.Identifier(connection.info.dbname)
        connection.execute(psycopg.sql.SQL("ALTER DATABASE {} SET synchronous_commit = off").format(name))
    ran = regulars("doctor", "--json")
    assert ran.code == 1
    assert "synchronous_commit = off" in bad(ran)["durability"]["found"]
    assert bad(ran)["durability"]["advice"]


def test_missing_migrations_are_bad(command, empty_database_url):
    ran = command("doctor", "--json", DATABASE_URL=empty_database_url)
    assert ran.code == 1
    assert "0001_foundation" in bad(ran)["migrations"]["found"]
    assert "regulars migrate" in bad(ran)["migrations"]["advice"]


def test_an_unreachable_database_is_bad(command):
    ran = command("doctor", DATABASE_URL="postgresql://user:hunter2@127.0.0.1:1/x")
    assert ran.code == 1
    assert "bad database: " in ran.out
    assert "Check DATABASE_URL" in ran.out
    assert "hunter2" not in ran.out + ran.err


def test_a_bad_setting_is_bad(command):
    ran = command("doctor", "--json", REGULARS_PORT="http")
    assert ran.code == 1
    assert "REGULARS_PORT" in bad(ran)["settings"]["found"]


def test_more_connections_than_the_database_allows_is_bad(regulars):
    ran = regulars("doctor", "--json", REGULARS_DATABASE_POOL_MAX="1000", REGULARS_WORKERS="64")
    assert "connections" in bad(ran)


def test_a_proxy_that_is_not_named_is_a_warning(regulars):
    def advice(**settings):
        ran = regulars("doctor", "--json", REGULARS_PUBLIC_URL="https://regulars.example", **settings)
        return next(finding["advice"] for finding in ran.data if finding["name"] == "proxy")

    assert "REGULARS_TRUSTED_PROXIES" in advice()
    assert advice(REGULARS_TRUSTED_PROXIES="10.0.0.1") == ""
