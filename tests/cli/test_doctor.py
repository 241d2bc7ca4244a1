import psycopg
import psycopg.sql
from tests.support.database import plant_catalog_of_a_cluster


def bad(ran):
    return {finding["name"]: finding for finding in ran.data if not finding["ok"]}


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


def test_a_cluster_whose_nodes_agree_is_good_and_each_fault_is_named(regulars, database_url):
    plant_catalog_of_a_cluster(database_url)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("INSERT INTO pg_dist_node VALUES (1, 'one', 5432), (2, 'two', 5432)")
        connection.execute(
            "INSERT INTO planted_nodes VALUES (1, true, '17.2 13.0-1', '0'), (2, true, '17.2 13.0-1', '0')"
        )
        ran = regulars("doctor", "--json")
        assert {name for name in bad(ran) if name.startswith("cluster")} == set()
        assert "All 2 nodes respond." in {finding["found"] for finding in ran.data}
        connection.execute("UPDATE planted_nodes SET versions = '17.1 13.0-1', clock_off = '0.7 s' WHERE nodeid = 2")
        connection.execute("DELETE FROM pg_dist_partition WHERE logicalrelid = 'texts'::regclass")
        found = bad(regulars("doctor", "--json"))
        assert "17.1 13.0-1 and 17.2 13.0-1" in found["cluster versions"]["found"]
        assert "0.7 s" in found["cluster clocks"]["found"]
        assert found["cluster tables"]["found"] == "Not distributed: texts."
        assert all(finding["advice"] for name, finding in found.items() if name.startswith("cluster"))
        connection.execute("UPDATE planted_nodes SET success = false, versions = NULL WHERE nodeid = 1")
        connection.execute("INSERT INTO pg_dist_node VALUES (3, 'three', 5433)")
        found = bad(regulars("doctor", "--json"))
        assert found["cluster nodes"]["found"] == "No response from one:5432, three:5433."


def test_a_host_for_short_links_that_has_no_address_is_a_warning(regulars):
    def look(**settings):
        ran = regulars("doctor", "--json", **settings)
        assert ran.code == 0
        [finding] = [finding for finding in ran.data if finding["name"] == "short links"]
        return finding["found"], bool(finding["advice"])

    assert look() == ("Not set up: links in texts stay as they are written.", False)
    assert look(REGULARS_LINK_URL="http://127.0.0.1:8080") == ("Links in texts lead to 127.0.0.1.", False)
    assert look(REGULARS_LINK_URL="https://go.invalid") == ("go.invalid has no address here.", True)
