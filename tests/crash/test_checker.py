"""Tests that the checker finds each kind of damage, planted in a copy of an undamaged database."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from tests.crash import checker
from tests.crash.clients import SALES, STORE, Caller, Till
from tests.crash.journal import Call, Journal, RecordedResponse
from tests.support import samples
from tests.support.database import new_database
from tests.support.server import running_server
from tests.support.tenant import new_tenant

SENT = 150
DAMAGE = {
    "a sale is lost": ("DELETE FROM sales_events WHERE external_id = (SELECT min(external_id) FROM sales_events)", "I1"),
    "a batch is lost": ("DELETE FROM sales_events WHERE created_at IN (SELECT created_at FROM sales_events GROUP BY created_at HAVING count(*) > 1)", "I1"),
    "a consent is lost": ("UPDATE subscriptions SET status = 'UNSUBSCRIBED'", "I1"),
    "a profile is lost": ("DELETE FROM profiles WHERE first_name IS NOT NULL", "I1"),
    "a sale has changed hands": ("UPDATE sales_events SET profile_id = NULL", "I1"),
    "a fact is missing": ("DELETE FROM outbox", "I3"),
    "a fact is there twice": ("INSERT INTO outbox SELECT organization_id, gen_random_uuid(), topic, payload, created_at FROM outbox", "I3"),
    "a store is missing": ("DELETE FROM stores", "I3"),
    "a sale without lines": ("UPDATE sales_events SET line_items = '[]'", "I3"),
    "a light profile without a sale": ("INSERT INTO profiles (organization_id, id, external_id, created_at, updated_at) SELECT organization_id, gen_random_uuid(), 'orphan', now(), now() FROM stores", "I4"),
    "an answer has changed": ("UPDATE idempotency_keys SET body = body || ' '", "I5"),
    "a key is lost": ("DELETE FROM idempotency_keys", "I5"),
}  # fmt: skip


@pytest.fixture(scope="module")
def sound(shared_database: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Journal]]:
    """A database after some traffic, without open connections, and the journal of the traffic."""
    server_url, template = shared_database
    journal = Journal(Path(tmp_path_factory.mktemp("journal")) / "journal.jsonl")
    with new_database(server_url, template=template) as url:
        with running_server(url, rate_limit_per_s="0") as server:
            key = new_tenant(url).key
            caller = Caller(server, key, journal)
            till = Till(0, seed=1, server=server, api_key=key, journal=journal)
            store = samples.json_bytes(samples.store(external_id=STORE)).decode()
            assert caller.send(Call("/v1/stores", store, None, STORE))
            for _ in range(SENT):
                assert caller.send(till.choose())
            caller.close()
        journal.close()
        yield url, journal


def test_a_sound_database_passes(sound):
    url, journal = sound
    checker.check(url, journal)
    statuses = {answer.status for answer in journal.answers}
    assert statuses == {200, 201, 400, 404}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_found(sound, server_url, damage):
    url, journal = sound
    statement, invariant = DAMAGE[damage]
    with new_database(server_url, template=urlsplit(url).path.removeprefix("/")) as copy:
        with psycopg.connect(copy, autocommit=True) as connection:
            connection.execute(statement)  # type: ignore[arg-type]  # the statements above
        with pytest.raises(AssertionError, match=f"^{invariant}"):
            checker.check(copy, journal)


def test_a_refused_sale_that_is_there_is_found(sound, tmp_path):
    url, journal = sound
    altered = Journal(tmp_path / "journal.jsonl")
    created = next(journal.successes(SALES))
    altered.answered(RecordedResponse(created.call, 404, "{}", is_replay=False))
    altered.close()
    with pytest.raises(AssertionError, match=r"^I4"):
        checker.check(url, altered)


def test_answers_that_contradict_each_other_are_found(sound, tmp_path):
    url, journal = sound
    created = next(a for a in journal.answers if a.status == 201 and a.call.key and not a.is_replay)
    refused = next(a for a in journal.answers if a.status == 404 and a.call.key)
    other_key = replace(created.call, key=None)
    lies = {
        "I5.*more than once": replace(refused, is_replay=False),
        "I5.*several": RecordedResponse(created.call, 200, created.body, is_replay=True),
        "I2": RecordedResponse(other_key, 201, created.body, is_replay=False),
    }
    for number, (invariant, lie) in enumerate(lies.items()):
        altered = Journal(tmp_path / f"{number}.jsonl")
        for answer in random.Random(number).sample(journal.answers, len(journal.answers)):
            altered.sending(answer.call)
            altered.answered(answer)
        altered.answered(lie)
        altered.close()
        with pytest.raises(AssertionError, match=invariant):
            checker.check(url, altered)
