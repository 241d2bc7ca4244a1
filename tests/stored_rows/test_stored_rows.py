"""Rows that an earlier release stored are read as they were meant: a renamed field or key must not lose them.

`write_rows.py` wrote `rows.json`. Python names may change; what is stored keeps its spelling (msgspec `name=`).
"""

import json
from collections.abc import Iterator
from typing import Any, LiteralString
from uuid import UUID

import httpx
import msgspec
import psycopg
import pyotp
import pytest
from psycopg import sql
from tests.pages.full_house import PRIVATE_MARKER
from tests.stored_rows.rows import insert_rows, read_file
from tests.support import database as databases
from tests.support.analysis import analysis_process
from tests.support.client import new_http
from tests.support.drain_queues import SETTINGS, drain
from tests.support.open_database import in_transaction, open_database
from tests.support.server import Server, running_server
from tests.support.visitor import Visitor, sign_in_now

from regulars.accounts import second_factor
from regulars.accounts.audit.chain import verify_log
from regulars.consent.verify import verify_organization
from regulars.journeys import definition as journeys
from regulars.kit import vault
from regulars.kit.db import Database, Tx
from regulars.kit.public_address import PublicAddress
from regulars.organizations.secret import context_of
from regulars.sales.model import LineItem
from regulars.segments import definition as segments
from regulars.stores.model import Address
from regulars.texts.providers.gateways import open_gateways
from regulars.texts.settings.model import InboundProgress, SmsSettings
from regulars.texts.settings.store import load_texting, open_token
from regulars.web.access import Role
from regulars.webhooks.secrets import decrypt_secret
from regulars.work.facts import Fact
from regulars.work.retries import RetryQueue
from regulars.worker import LISTENERS, queues

STORED = read_file()
ORGANIZATION = UUID(STORED["organization_id"])
TOPICS: dict[str, type[Fact]] = {kind.topic: kind for kind in LISTENERS}
DOCUMENTS = {
    "journey_versions.definition": journeys.Definition,
    "journey_drafts.definition": journeys.Definition,
    "journey_backtests.definition": journeys.Definition,
    "segment_versions.definition": segments.Definition,
    "sms_settings.settings": SmsSettings,
    "sms_settings.inbound": InboundProgress,
    "sales_events.line_items": list[LineItem],
    "stores.address": Address,
}


@pytest.fixture(scope="module")
def stored_url(shared_database: tuple[str, str]) -> Iterator[str]:
    """A database that the tests of this module only read."""
    server_url, template = shared_database
    with databases.new_database(server_url, template=template) as url:
        insert_stored_rows(url)
        yield url


def insert_stored_rows(url: str) -> None:
    insert_rows(url, STORED["tables"])
    with psycopg.connect(url) as connection:
        # Old enough to be deleted otherwise, when the test runs later than the day the rows were written.
        connection.execute("UPDATE idempotency_keys SET created_at = now()")
        connection.execute("UPDATE request_log SET answered_at = now()")


@pytest.fixture(scope="module")
def stored_server(stored_url: str) -> Iterator[Server]:
    with running_server(stored_url) as server:
        yield server


def fetch(url: str, query: LiteralString | sql.Composed) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchall()


def fetch_texts(url: str, table: str, *columns: str) -> list[tuple[Any, ...]]:
    """The columns as text."""
    names = sql.SQL(", ").join(sql.SQL("{}::text").format(sql.Identifier(name)) for name in columns)
    return fetch(url, sql.SQL("SELECT {} FROM {}").format(names, sql.Identifier(table)))


def written_again(content: str, kind: Any) -> Any:
    return json.loads(msgspec.json.encode(msgspec.json.decode(content, type=kind)))


def assert_holds(written: Any, stored: Any) -> None:
    """Everything stored is written again. A newer release may add fields."""
    if isinstance(stored, dict):
        assert isinstance(written, dict)
        assert stored.keys() <= written.keys()
        for key, value in stored.items():
            assert_holds(written[key], value)
    elif isinstance(stored, list):
        assert len(written) == len(stored)
        for one, value in zip(written, stored, strict=True):
            assert_holds(one, value)
    else:
        assert written == stored


@pytest.mark.parametrize("column", DOCUMENTS)
def test_a_stored_document_is_read_whole(stored_url, column):
    """Whatever is not read would be missing when it is written again."""
    table, _, name = column.partition(".")
    found = [content for (content,) in fetch_texts(stored_url, table, name) if content is not None]
    assert found
    for content in found:
        assert_holds(written_again(content, DOCUMENTS[column]), json.loads(content))


@pytest.mark.parametrize("table", ["outbox", "outbox_retries"])
def test_a_stored_fact_is_read_whole(stored_url, table):
    rows = fetch_texts(stored_url, table, "topic", "payload")
    assert {topic for topic, _ in rows} == set(TOPICS)
    for topic, payload in rows:
        assert_holds(written_again(payload, list[TOPICS[topic]]), json.loads(payload))  # type: ignore[misc]  # known at run time


def test_names_that_rows_wait_under_are_still_known(stored_url):
    listeners = {name for by in LISTENERS.values() for name in by}
    assert {name for (name,) in fetch(stored_url, "SELECT listener FROM outbox_retries")} <= listeners
    assert {topic for (topic,) in fetch(stored_url, "SELECT topic FROM interests")} <= set(TOPICS)
    gateways = open_gateways(
        Database(stored_url), vault=vault.of(SETTINGS), twilio_url=SETTINGS.twilio_url, address=PublicAddress()
    )
    assert set(STORED["queues"]) <= {queue.name for queue in queues(SETTINGS, gateways)}


def test_both_chains_verify(stored_url):
    with open_database(stored_url) as opened:
        log = opened.run(lambda database: verify_log(database, ORGANIZATION))
        ledger = opened.run(lambda database: verify_organization(database, ORGANIZATION))
    assert (log.fault, log.rows) == (None, len(STORED["tables"]["audit_log"]["rows"]))
    assert (ledger.faults, ledger.entries) == ({}, len(STORED["tables"]["consent_ledger"]["rows"]))


def test_sealed_secrets_open(stored_url):
    opening = vault.of(SETTINGS)
    for endpoint_id, sealed in fetch(stored_url, "SELECT id, secret FROM webhook_endpoints"):
        assert decrypt_secret(opening, endpoint_id, bytes(sealed))
    [(plain, sealed)] = fetch(stored_url, "SELECT secret, sealed_secret FROM organizations")
    assert opening.open(bytes(sealed), context=context_of(ORGANIZATION)) == bytes(plain)

    async def read(tx: Tx) -> str:
        user_id, totp = UUID(STORED["totp"]["user_id"]), pyotp.TOTP(STORED["totp"]["secret"])
        await second_factor.check(tx, opening, user_id, totp.at(tx.now))
        await second_factor.check(tx, opening, user_id, STORED["totp"]["recovery_codes"][0])
        texting = await load_texting(tx, ORGANIZATION)
        assert texting is not None
        return open_token(opening, texting)

    assert in_transaction(stored_url, read) == "a token"


def call(server: Server, method: str, path: str, **more: Any) -> httpx.Response:
    headers = {"X-Api-Key": STORED["key"], **more.pop("headers", {})}
    with new_http() as client:
        return client.request(method, f"{server.url}{path}", headers=headers, **more)


@pytest.mark.parametrize("stored", STORED["lists"], ids=lambda stored: stored["path"])
def test_a_cursor_leads_to_the_page_it_led_to(stored_server, stored):
    answer = call(stored_server, "GET", stored["path"], params=stored["query"])
    # Whether more follows depends on the clock where a list is read in the order of changes.
    assert (answer.status_code, answer.json()["data"]) == (200, stored["answer"]["data"])


@pytest.mark.parametrize("stored", STORED["retries"], ids=lambda stored: stored["path"])
def test_a_retry_gets_the_stored_response(stored_server, stored):
    answer = call(
        stored_server, "POST", stored["path"], json=stored["body"], headers={"Idempotency-Key": stored["key"]}
    )
    assert (answer.status_code, answer.text) == (stored["status"], stored["answer"])
    assert answer.headers["Idempotent-Replayed"] == "true"


def test_pages_show_what_is_stored(stored_server, stored_url):
    signed_in = sign_in_now(stored_url, ORGANIZATION, Role.OWNER)
    wrong = []
    # Without the process that counts, pages and files of figures wait for it.
    with analysis_process(stored_server.environment), new_http() as client:
        visitor = Visitor(client, stored_server.url, signed_in)
        for page in STORED["pages"]:
            answer = visitor.get(f"/{page['path']}")
            if answer.status_code != 200 or (page["shows"] and PRIVATE_MARKER not in answer.text):
                wrong.append((page["path"], answer.status_code))
        at_the_start = [path for path in STORED["next_pages"] if "before=" not in visitor.get(f"/{path}").text]
    assert (wrong, at_the_start) == ([], [])


def test_stored_facts_take_effect(database_url):
    insert_stored_rows(database_url)

    async def work(opened: Database) -> int:
        done = await drain(opened, ORGANIZATION, LISTENERS)
        retries = RetryQueue(LISTENERS)
        while await retries.run_pass(opened, ORGANIZATION):
            pass
        return done

    before = fetch(database_url, "SELECT count(*) FROM webhook_messages")[0][0]
    facts = fetch(database_url, "SELECT count(*) FROM outbox")[0][0]
    with open_database(database_url) as opened:
        assert opened.run(work) == facts
    assert fetch(database_url, "SELECT count(*) FROM outbox_retries") == [(0,)]
    assert fetch(database_url, "SELECT count(*) FROM webhook_messages")[0][0] > before
