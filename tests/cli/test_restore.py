"""What must not come back with a backup: erased people, revoked keys, sessions and links."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from uuid import UUID, uuid4

import psycopg
import pytest
from tests.cli.conftest import environment
from tests.privacy.people import OTHER, PERSON, erase, plant, whole_database
from tests.support.database_fixtures import SECRET
from tests.support.run_async import run_async

from regulars.consent.chain import hash_number
from regulars.kit import releases
from regulars.kit.db import Database
from regulars.kit.ids import PROFILE, ById
from regulars.kit.vault import Vault

THIRD = {**PERSON, "external_id": "CUST-THIRD", "number": "+33611111111", "first_name": "Tertia", "proof": "I, Tertia"}
KEY = "a key of at least thirty-two characters"
AT = datetime(2026, 1, 15, 12, tzinfo=UTC)
SIGNED_IN = """
    INSERT INTO users (id, email, name, created_at) VALUES (gen_random_uuid(), 'a@shop.example', 'Ada', now());
    INSERT INTO sessions (token_hash, id, user_id, created_at, last_seen_at, idle_s, ends_at)
        SELECT 'x', gen_random_uuid(), id, now(), now(), 3600, now() + interval '1 day' FROM users;
    INSERT INTO sign_in_links (token_hash, id, purpose, email, created_at, expires_at)
        VALUES ('y', gen_random_uuid(), 'password', 'a@shop.example', now(), now() + interval '1 day');
"""


def on(url, work, *arguments):
    """Run a use case of the tests on a database."""

    async def run():
        database = Database(url, pool_max=2)
        try:
            return await work(database, *arguments)
        finally:
            await database.close()

    return run_async(run())


def ask(url, query, *values):
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(query, values).fetchall()


def alive(url):
    return {name for (name,) in ask(url, "SELECT external_id FROM profiles")}


@pytest.fixture
def shop(regulars, database_url):
    """An organization whose secret the helpers of the tests know."""
    regulars("organization", "create", "Shop")
    [(organization_id,)] = ask(database_url, "UPDATE organizations SET secret = %s RETURNING id", SECRET)
    return organization_id


def entry(organization_id: UUID, profile_id: UUID, person: dict[str, str], *outcomes: str) -> str:
    identifier = str(uuid4())
    hashes = [hash_number(SECRET, person["number"]).hex()]
    erased = {"entry": identifier, "organization_id": str(organization_id), "profile_id": str(profile_id)}
    lines = [{**erased, "number_hashes": hashes, "erased_at": AT.isoformat()}]
    lines += [{"entry": identifier, "outcome": outcome} for outcome in outcomes]
    return "".join(json.dumps(line) + "\n" for line in lines)


def test_what_the_replaced_database_had_ended_stays_ended(regulars, shop, database_url, tmp_path):
    file = str(tmp_path / "today.dump")
    profile_id = on(database_url, plant, shop, PERSON)
    on(database_url, plant, shop, OTHER)
    revoked, live = (regulars("key", "create", "-o", "Shop", "--name", name, "--json").data for name in ("old", "new"))
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(SIGNED_IN)
    regulars("organization", "create", "Chain")
    campaign = schedule_campaign(regulars, tmp_path)
    assert regulars("backup", file).code == 0
    on(database_url, erase, shop, ById(profile_id))
    erased = ask(database_url, "SELECT profile_id, number_hashes, erased_at FROM erasures")
    regulars("key", "revoke", revoked["id"])
    restored = regulars("restore", "--force", file)
    assert restored.code == 0, restored.err
    assert "Erased 1 customer again" in restored.err
    assert alive(database_url) == {OTHER["external_id"]}
    assert ask(database_url, "SELECT profile_id, number_hashes, erased_at FROM erasures") == erased
    stored = on(database_url, whole_database, shop)
    assert [trace for trace in PERSON.values() if trace in stored] == []
    keys = {key["id"]: key["revoked_at"] for key in regulars("key", "list", "-o", "Shop", "--json").data}
    assert (keys[revoked["id"]] is None, keys[live["id"]] is None) == (False, True)
    assert f"{live['id']} of Shop: new" in restored.err
    assert revoked["id"] not in restored.err
    assert ask(database_url, "SELECT count(*) FROM sessions") == [(0,)]
    assert ask(database_url, "SELECT count(*) FROM sign_in_links WHERE expires_at > now()") == [(0,)]
    assert ask(database_url, "SELECT count(*) FROM restore_marker") == [(0,)]
    shown = regulars("campaign", "show", campaign, "-o", "Chain").data
    assert (shown["state"], "twice" in shown["reason"]) == ("paused", True)
    resumed = regulars("campaign", "resume", campaign, "-o", "Chain", "--json").data
    assert resumed["state"] == "scheduled"


def schedule_campaign(regulars, folder) -> str:
    file = folder / "definition.json"
    consent = {"type": "consent", "state": "may_be_texted"}
    file.write_text(json.dumps({"name": "All", "match": {"type": "all", "of": [consent]}}))
    segment = regulars("segment", "create", str(file), "-o", "Chain").out.strip()
    schedule = {"start": "at", "at": "2099-11-20T10:00:00Z"}
    given = {"name": "Sale", "include": [segment], "variants": [{"text": "Hello"}], "schedule": schedule}
    file.write_text(json.dumps(given))
    campaign = regulars("campaign", "create", str(file), "-o", "Chain").out.strip()
    assert regulars("campaign", "schedule", campaign, "--recipients", "1", "-o", "Chain").code == 0
    return campaign


def test_logs_of_lost_nodes_are_replayed_on_a_new_database(regulars, shop, database_url, empty_database_url, tmp_path):
    file, first, second = tmp_path / "today.dump", tmp_path / "first.log", tmp_path / "second.log"
    gone, stays, uncertain = (on(database_url, plant, shop, person) for person in (PERSON, OTHER, THIRD))
    regulars("key", "create", "-o", "Shop")
    assert regulars("backup", str(file)).code == 0
    first.write_text(entry(shop, gone, PERSON, "committed") + entry(shop, stays, OTHER, "void"))
    second.write_text("half a li\n" + entry(shop, uncertain, THIRD) + entry(uuid4(), uuid4(), OTHER, "committed"))
    missing = regulars("restore", str(file), "--erasures", "missing.log", DATABASE_URL=empty_database_url)
    assert "missing.log does not exist" in missing.complains(code=2)
    logs = ("--erasures", str(first), "--erasures", str(second))
    restored = regulars("restore", str(file), *logs, "--revoke-keys", DATABASE_URL=empty_database_url)
    assert restored.code == 0, restored.err
    assert "Erased 2 customers again" in restored.err
    assert f"{PROFILE.encode(uncertain)} of Shop, requested 2026-01-15 12:00:00 UTC" in restored.err
    assert PROFILE.encode(gone) not in restored.err
    assert f"In {second} these lines cannot be read and were skipped: 1." in restored.err
    assert "All API keys of the backup are revoked" in restored.err
    assert alive(empty_database_url) == {OTHER["external_id"]}
    assert ask(empty_database_url, "SELECT count(*) FROM api_keys WHERE revoked_at IS NULL") == [(0,)]
    assert ask(empty_database_url, "SELECT DISTINCT erased_at FROM erasures") == [(AT,)]
    numbers = "SELECT status, count(*) FROM subscriptions GROUP BY status ORDER BY status"
    assert ask(empty_database_url, numbers) == [("SUBSCRIBED", 1), ("UNSUBSCRIBED", 2)]


def test_a_backup_of_an_older_release_waits_for_migrate(regulars, shop, database_url, empty_database_url, tmp_path):
    file, log = tmp_path / "today.dump", tmp_path / "data" / "erasures.log"
    profile_id = on(database_url, plant, shop, PERSON)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(SIGNED_IN)
        connection.execute("DROP TABLE erasures, erasures_to_replay, restore_marker")
        connection.execute("DELETE FROM migrations WHERE name IN ('0095_erasures', '0096_restores')")
    assert regulars("backup", str(file)).code == 0
    log.parent.mkdir(exist_ok=True)
    # The log of this node needs no option.
    log.write_text(entry(shop, profile_id, PERSON, "committed"))
    restored = regulars("restore", str(file), DATABASE_URL=empty_database_url)
    assert "Now run `regulars migrate`" in restored.err
    assert ask(empty_database_url, "SELECT count(*) FROM sessions") == [(0,)]
    assert alive(empty_database_url) == {PERSON["external_id"]}
    assert "run `regulars migrate`" in regulars("key", "list", "-o", "Shop", DATABASE_URL=empty_database_url).complains(
        code=3
    )
    migrated = regulars("migrate", DATABASE_URL=empty_database_url)
    assert (migrated.code, "Erased 1 customer again" in migrated.err) == (0, True)
    assert alive(empty_database_url) == set()
    assert "Erased" not in regulars("migrate", DATABASE_URL=empty_database_url).err


def test_a_server_that_finds_a_restore_unfinished_finishes_it_before_it_serves(shop, database_url, tmp_path):
    profile_id = on(database_url, plant, shop, PERSON)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(SIGNED_IN)
        # As a restore leaves it that was killed right after its commit.
        connection.execute("INSERT INTO restore_marker VALUES (true, now(), '{}', false)")
        connection.execute(
            "INSERT INTO erasures_to_replay VALUES (%s, %s, %s, %s, true)",
            (shop, profile_id, [hash_number(SECRET, PERSON["number"])], AT),
        )
    serving = subprocess.Popen(
        [sys.executable, "-m", "regulars.cli", "serve", "--port", "0", "--no-worker"],
        env=environment(DATABASE_URL=database_url, REGULARS_DATA_DIR=str(tmp_path / "data"), REGULARS_SECRET_KEY=KEY),
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert any('"event": "server.started"' in line for line in serving.stderr)
        assert alive(database_url) == set()
        assert ask(database_url, "SELECT count(*) FROM sessions") == [(0,)]
        assert ask(database_url, "SELECT count(*) FROM restore_marker") == [(0,)]
        # `regulars vault seal` reads there which key the server has.
        announced = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s"
        assert ask(database_url, announced, f"regulars in use {releases.THIS_RELEASE:04} {Vault(KEY).fingerprint}")
    finally:
        serving.terminate()
        serving.communicate(timeout=30)
