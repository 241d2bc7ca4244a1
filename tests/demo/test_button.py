"""The demo by the button of First steps, while a worker runs beside: all of it has to be there."""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Identifier
from tests.support import database
from tests.support.analysis import running_analysis
from tests.support.client import new_http
from tests.support.drain_queues import SETTINGS
from tests.support.run_async import run_async
from tests.support.server import Server, running_server
from tests.support.tenant import new_tenant
from tests.support.visitor import Visitor, sign_in_now
from tests.support.waiting import until

from regulars.demo import fill
from regulars.demo.campaigns import BUYERS_MAX
from regulars.demo.chain import COUNTRIES
from regulars.demo.endpoint import DELIVERIES
from regulars.demo.requests import TICKETS
from regulars.demo.texts import NOTICES
from regulars.kit import vault
from regulars.kit.db import Database
from regulars.kit.public_address import PublicAddress
from regulars.kit.settings import Settings
from regulars.links.marks import set_link_url
from regulars.texts.number_location import find_country
from regulars.texts.providers.gateways import open_gateways
from regulars.web.access import Role
from regulars.work.loop import run_worker
from regulars.worker import queues

FIRST_WORDS = {"fr": "Merci", "de": "Danke", "en": "Thank you"}
# The demo is loaded, and the worker has computed the lift of its ended campaign and credited the purchases, which it does
# two seconds after the last change of a customer.
IS_DONE = """
SELECT EXISTS (SELECT FROM lifts WHERE organization_id = %(demo)s AND state = 'final')
   AND EXISTS (SELECT FROM demo_runs WHERE organization_id = %(demo)s AND finished_at IS NOT NULL)
   AND NOT EXISTS (SELECT FROM outbox WHERE organization_id = %(demo)s)
   AND NOT EXISTS (SELECT FROM outbox_retries WHERE organization_id = %(demo)s)
   AND NOT EXISTS (SELECT FROM attribution_customers WHERE organization_id = %(demo)s AND due_at <= now() + interval '10 s')
"""


@dataclass(frozen=True)
class Pressed:
    """The demo after the button was pressed, and its owner."""

    owner: Visitor
    location: str
    organization_id: UUID
    database_url: str

    def page(self, path: str) -> str:
        found = self.owner.get(f"/{self.location.removesuffix('/demo')}{path}")
        assert found.status_code == 200
        return found.text

    def rows(self, query: str) -> list[TupleRow]:
        with psycopg.connect(self.database_url) as connection:
            return connection.execute(query, {"demo": self.organization_id}).fetchall()


@pytest.fixture(scope="module")
def pressed(shared_database: tuple[str, str]) -> Iterator[Pressed]:
    url, template = shared_database
    with (
        pytest.MonkeyPatch.context() as patch,
        database.new_database(url, template=template) as fresh,
        running_server(fresh) as server,
        running_analysis(server),
        new_http() as http,
    ):
        # The worker beside it takes all runs and texts before the demo does.
        patch.setattr(fill, "PASSES_MAX", 0)
        owner = Visitor(http, server.url, sign_in_now(fresh, new_tenant(fresh).organization_id, Role.OWNER))
        location = owner.post("/first-steps/demo").headers["location"]
        with psycopg.connect(fresh) as connection:
            [(demo,)] = connection.execute("SELECT organization_id FROM demo_runs").fetchall()
        found = Pressed(owner, location, demo, fresh)
        run_async(work(found, server))
        yield found


async def work(pressed: Pressed, server: Server) -> None:
    """Runs the worker until the demo is done."""
    settings = Settings(secret_key=SETTINGS.secret_key, data_dir=Path(server.environment["REGULARS_DATA_DIR"]))
    set_link_url(None, demo_url=server.url)
    opened = Database(pressed.database_url, pool_max=10)
    await opened.open()
    gateways = open_gateways(opened, vault=vault.of(settings), twilio_url=settings.twilio_url, address=PublicAddress())
    stop = asyncio.Event()
    working = asyncio.create_task(run_worker(opened, queues(settings, gateways), stop=stop, grace_s=5))
    try:
        await until(lambda: pressed.rows(IS_DONE) == [(True,)], every_s=0.2)
    finally:
        stop.set()
        await working
        set_link_url(None)
        await gateways.twilio.close()
        await opened.close()


def test_a_second_press_opens_the_same_demo(pressed):
    assert pressed.owner.post("/first-steps/demo").headers["location"] == pressed.location
    assert "Your demo is ready" in pressed.page("/demo")
    assert len(pressed.rows("SELECT FROM demo_runs")) == 1


def test_the_headline_shows_a_lift_with_its_interval(pressed):
    page = pressed.page("/analyse/attribution")
    assert "Loyalty weekend, euro countries" in page
    assert "Of €100 attributed, €" in page
    assert " were extra" in page
    assert "(95%)" in page
    [(treated, held_out, outcomes)] = pressed.rows(
        "SELECT count(*) FILTER (WHERE r.arm > 0), count(*) FILTER (WHERE r.arm = 0), array_agg(DISTINCT r.outcome)"
        " FROM campaigns AS c JOIN campaign_recipients AS r ON r.organization_id = %(demo)s AND r.campaign_id = c.id"
        " WHERE c.organization_id = %(demo)s AND c.name LIKE 'Loyalty%%'"
    )
    # No text was expired by the worker, and all left weeks ago.
    assert set(outcomes) == {"delivered", "failed", "held_out"}
    assert min(treated, held_out) > 80
    bought = dict(
        pressed.rows(
            "SELECT r.arm > 0, count(*) FROM sales_events AS e JOIN campaign_recipients AS r"
            " ON r.organization_id = %(demo)s AND r.profile_id = e.profile_id JOIN campaigns AS c"
            " ON c.organization_id = %(demo)s AND c.id = r.campaign_id AND c.name LIKE 'Loyalty%%'"
            " WHERE e.organization_id = %(demo)s AND e.external_id LIKE 'LOYALTY-%%' GROUP BY 1"
        )
    )
    assert bought[True] > bought[False] > 0
    assert pressed.rows(
        "SELECT bool_and(claimed_at < now() - interval '40 days') FROM texts AS t JOIN campaigns AS c"
        " ON c.organization_id = %(demo)s AND c.id = t.origin_id AND c.name LIKE 'Loyalty%%'"
        " WHERE t.organization_id = %(demo)s"
    ) == [(True,)]


def test_something_is_there_on_every_page(pressed):
    [(progress,)] = pressed.rows("SELECT progress::jsonb FROM demo_runs WHERE finished_at IS NOT NULL")
    assert progress["tickets"] == TICKETS
    assert set(progress) >= {"stores", "customers", "consents", "tickets"}
    newest = pressed.rows("SELECT first_name FROM profiles WHERE organization_id = %(demo)s ORDER BY id DESC LIMIT 50")
    assert all(first_name for (first_name,) in newest)
    for table, at_least in (("segments", 5), ("api_keys", 2), ("request_log", 40), ("ticket_collisions", 3)):
        query = SQL("SELECT count(*) FROM {} WHERE organization_id = %(demo)s").format(Identifier(table))
        assert pressed.rows(query)[0][0] >= at_least, table
    refused = pressed.rows("SELECT DISTINCT code FROM request_log WHERE organization_id = %(demo)s AND status >= 400")
    assert set(refused) == {("STORE_NOT_FOUND",), ("VALIDATION_ERROR",)}
    assert pressed.rows("SELECT FROM replies WHERE organization_id = %(demo)s AND body = 'STOP'")
    assert fill.POSTAL_ADDRESS in pressed.page("/settings/texts")


def test_texts_are_in_the_language_of_their_customer(pressed):
    texts = pressed.rows(
        "SELECT t.state, t.body, t.phone_number, p.attributes ->> 'country', t.origin_kind FROM texts t"
        " JOIN profiles p ON p.organization_id = t.organization_id AND p.id = t.profile_id"
        " WHERE t.organization_id = %(demo)s AND t.state IN ('sent', 'delivered', 'failed')"
    )
    assert {"sent", "delivered", "failed"} <= {state for state, *_ in texts}
    for _, body, number, country, origin in texts:
        assert origin == "campaign" or FIRST_WORDS[COUNTRIES[country].language] in body, country
        assert NOTICES[country].words in body, country
        assert find_country(number) == country


def test_a_campaign_is_running_and_others_have_ended(pressed):
    campaigns = pressed.rows(
        "SELECT c.state, (SELECT sum(recipients) FROM campaign_totals t WHERE t.organization_id = %(demo)s"
        " AND t.campaign_id = c.id AND t.arm >= 0), c.recipients FROM campaigns c WHERE c.organization_id = %(demo)s"
    )
    assert sorted(state for state, *_ in campaigns) == ["draft", "ended", "ended", "ended", "sending"]
    assert all(counted == recipients and counted > 0 for state, counted, recipients in campaigns if state != "draft")
    outcomes = pressed.rows("SELECT DISTINCT outcome FROM campaign_totals WHERE organization_id = %(demo)s")
    assert {"sent", "delivered", "failed", "held_out", "waiting"} <= {outcome for (outcome,) in outcomes}
    assert pressed.rows("SELECT sum(clicks) > 0 FROM click_totals WHERE organization_id = %(demo)s") == [(True,)]
    bought = pressed.rows(
        "SELECT count(DISTINCT e.id) FROM sales_events AS e JOIN texts AS t ON t.organization_id = %(demo)s"
        " AND t.profile_id = e.profile_id AND t.origin_kind = 'campaign' AND t.claimed_at < e.occurred_at"
        " WHERE e.organization_id = %(demo)s AND e.external_id LIKE 'AFTER-TEXT-%%'"
    )
    assert bought == [(BUYERS_MAX,)]


def test_short_links_work_without_a_setting(pressed):
    [(body,)] = pressed.rows(
        "SELECT body FROM texts WHERE organization_id = %(demo)s AND body LIKE '%%/l/%%' AND state = 'delivered' LIMIT 1"
    )
    [link] = re.findall(rf"{re.escape(pressed.owner.base_url)}/l/\w+", body)
    opened = pressed.owner.http.get(link)
    assert (opened.status_code, opened.headers["location"][:19]) == (302, "https://example.com")


def test_customers_buy_in_their_own_country(pressed):
    elsewhere = pressed.rows(
        "SELECT count(*) FROM sales_events AS e"
        " JOIN stores AS s ON s.organization_id = %(demo)s AND s.id = e.store_id"
        " JOIN profiles AS p ON p.organization_id = %(demo)s AND p.id = e.profile_id"
        " WHERE e.organization_id = %(demo)s AND s.address ->> 'country_code' <> p.attributes ->> 'country'"
    )
    assert elsewhere == [(0,)]


def test_an_endpoint_has_deliveries_and_one_fault_to_repair(pressed):
    deliveries = pressed.rows(
        "SELECT state, answer_status, due_at IS NULL, count(*) FROM webhook_deliveries"
        " WHERE organization_id = %(demo)s GROUP BY 1, 2, 3 ORDER BY 1"
    )
    assert deliveries == [("delivered", 200, True, DELIVERIES - 1), ("pending", 410, False, 1)]
    [(state, by)] = pressed.rows("SELECT state, disabled_by FROM webhook_endpoints WHERE organization_id = %(demo)s")
    assert (state, by) == ("disabled", "receiver")
    assert "on hold: the endpoint is disabled" in pressed.page("/webhooks")
    assert "is disabled" in pressed.page("/")
