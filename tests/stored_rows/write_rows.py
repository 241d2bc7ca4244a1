"""Write rows of every kind that is stored, as today's code writes them.

`REGULARS_WRITE_ROWS=1 .venv/bin/python -m pytest tests/stored_rows/write_rows.py` replaces `rows.json`. The rows are a
fixture: later releases must read them back (`test_stored_rows.py`). Run it again only to add a kind of row, and never
to make a failing test pass: installations hold rows like the old ones.
"""

import html
import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID, uuid4

import msgspec
import psycopg
import pyotp
import pytest
from tests.pages.conftest import analysis, full_house
from tests.pages.full_house import MARKER, PRIVATE_MARKER
from tests.stored_rows.documents import EVERY_STEP, every_condition
from tests.stored_rows.rows import dump_rows, write_file
from tests.support import samples
from tests.support.client import Api
from tests.support.crawl import crawl
from tests.support.drain_queues import SETTINGS, drain_queues
from tests.support.journeys import make_journey
from tests.support.open_database import in_transaction
from tests.support.tenant import Tenant, another_key
from tests.support.visitor import Visitor

from regulars.accounts import second_factor
from regulars.campaigns.facts import CampaignEnded
from regulars.consent.facts import SubscriptionChange, SubscriptionsChanged
from regulars.demo.requests import finish_run, request_demo
from regulars.experiments.facts import HoldoutMonthBegun, HoldoutQuarterChanged
from regulars.journeys.backtest.requests import request_backtest
from regulars.journeys.manage import load_journey
from regulars.kit import vault
from regulars.kit.db import Database, Tx
from regulars.kit.ids import JOURNEY, SEGMENT
from regulars.kit.public_address import PublicAddress
from regulars.links.facts import LinkClicked
from regulars.organizations.facts import TimeZoneChanged
from regulars.organizations.sealing import write_sealed
from regulars.privacy.facts import ProfileErased, StoredResponsesRemain
from regulars.profiles.facts import ProfileChange, ProfilesChanged
from regulars.sales.facts import SalesRecorded
from regulars.segments.definition import read_definition
from regulars.segments.saved.manage import create_segment, update_segment
from regulars.server import page_table
from regulars.texts.facts import MessagesChanged
from regulars.texts.providers.gateways import open_gateways
from regulars.texts.settings.model import (
    Cap,
    InboundProgress,
    OpenHours,
    OptOutNotice,
    SenderProgress,
    SendHoursRule,
    Simulation,
    SmsSettings,
    TwilioAccount,
)
from regulars.texts.settings.store import lock_texting, save_inbound_progress, save_texting, seal_token
from regulars.work.facts import Fact
from regulars.worker import LISTENERS, queues

__all__ = ["analysis", "full_house"]

NOW = datetime(2026, 11, 16, 21, 0, tzinfo=UTC)
ALWAYS = SendHoursRule(days=(OpenHours(0, 24 * 60),) * 7, on_holidays=True)
# Pages about one row, and lists of what is decoded; no forms that only ask for a confirmation.
SHOWS_ROWS = re.compile(
    r"/(consent|settings/audit|settings/texts|settings/texts/rules|messages/inbox|attributes|products|webhooks|requests"
    r"|segments|journeys|collisions|tickets|simulator|second-factor"
    r"|[^/]+/[^/]*[0-9][^/]*|journeys/[^/]+/(?:backtest|versions|edit|runs.*)|consent/numbers/[^/]+"
    r"|messages/numbers/[^/]+|webhooks/deliveries/[^/]+)$"
)
# More than a page of a list shows.
PAGE_ITEMS = 51
NEXT_PAGE = re.compile(r'href="(/[^"#]*[?&](?:amp;)?after=[^"#]*)"')


@pytest.mark.skipif(not os.environ.get("REGULARS_WRITE_ROWS"), reason="replaces rows.json; see the top of this file")
def test_write_rows(full_house, server, contract, http, api_database_url):
    house, visitor = full_house
    organization_id = house.organization_id
    tenant = another_key(api_database_url, Tenant(organization_id, uuid4(), ""))
    api = Api(server, contract, http, tenant)
    with psycopg.connect(api_database_url, autocommit=True) as connection:
        write_sealed(connection, vault.of(SETTINGS))
    _write_references(api, api_database_url)
    journey = _write_definitions(api_database_url, organization_id)
    totp = _write_factor(api_database_url, visitor)
    retries = list(_write_idempotent(api))
    lists = list(_read_lists(api, house.number))
    seen = crawl(visitor, page_table(SETTINGS), addresses=1)
    chosen = [one for one in seen if one.status == 200 and one.is_html and SHOWS_ROWS.search(one.path)]
    # A segment names its members only while the process that counts is running.
    pages = [{"path": one.path, "shows": PRIVATE_MARKER in one.text and "/segments" not in one.path} for one in chosen]
    pages += [{"path": f"/o/{visitor.who.slug}/journeys/{journey}{page}", "shows": False} for page in ("", "/backtest")]
    next_pages = sorted({html.unescape(link) for one in seen for link in NEXT_PAGE.findall(one.text)})
    # The pages asked the worker for counts.
    drain_queues(api_database_url, organization_id)
    _write_settings(api_database_url, organization_id)
    _write_facts(api_database_url, organization_id)
    write_file(
        {
            "organization_id": str(organization_id),
            "key": tenant.key,
            "totp": totp,
            "retries": retries,
            "lists": lists,
            "pages": pages,
            "next_pages": next_pages,
            "queues": _queue_names(api_database_url),
            "tables": dump_rows(api_database_url),
        }
    )


def _queue_names(database_url: str) -> list[str]:
    gateways = open_gateways(
        Database(database_url), vault=vault.of(SETTINGS), twilio_url=SETTINGS.twilio_url, address=PublicAddress()
    )
    return sorted(queue.name for queue in queues(SETTINGS, gateways))


def _post(api: Api, path: str, body: object, **headers: str) -> Any:
    answer = api.post(path, body, headers=headers)
    assert answer.status in {200, 201}, answer.body
    return answer


def _write_references(api: Api, database_url: str) -> None:
    """What the definitions name, and enough of everything for a second page."""
    product = {"external_id": "P", "name": "Coat", "properties": {"colour": "red"}}
    names = ["S", *(f"store {number}" for number in range(PAGE_ITEMS))]
    for name in names:
        _post(api, "/v1/stores", samples.store(external_id=name))
    _post(api, "/v1/profiles/batch", {"items": [{"external_id": f"customer {name}"} for name in names]})
    lines = [samples.line(product=product)]
    sales = [samples.sale(name, external_id=f"ticket {name}", line_items=lines) for name in names]
    _post(api, "/v1/sales-events/batch", {"items": sales})
    drain_queues(database_url, api.tenant.organization_id)


def _write_definitions(database_url: str, organization_id: UUID) -> str:
    """Segments and a journey with its backtest; the journey's id."""

    async def segments(tx: Tx) -> str:
        inner = {"name": "Inner", "match": every_condition()}
        made = await create_segment(tx, organization_id, read_definition(json.dumps(inner).encode()), created_by="me")
        asking = {"type": "segment", "id": SEGMENT.encode(made.row.id), "is": False}
        outer = {"name": "Outer", "match": {"type": "all", "of": [asking]}}
        other = await create_segment(tx, organization_id, read_definition(json.dumps(outer).encode()))
        again = {"name": "Outer", "match": every_condition(asking)}
        await update_segment(tx, organization_id, other.row.id, read_definition(json.dumps(again).encode()))
        return asking["id"]

    segment = in_transaction(database_url, segments)
    journey = make_journey(
        database_url,
        organization_id,
        *EVERY_STEP,
        name="Every step",
        is_live=False,
        filter=every_condition({"type": "segment", "id": segment}),
        reentry={"policy": "after_days", "days": 9},
        exit_on=["purchase", "return"],
    )

    async def backtest(tx: Tx) -> None:
        journey_id = JOURNEY.decode(journey)
        assert journey_id is not None
        definition = (await load_journey(tx, organization_id, journey_id)).definition
        await request_backtest(tx, organization_id, journey_id, definition, version=1, revision=None, days=30, by="me")
        await request_demo(tx, organization_id, tickets=50)
        await finish_run(tx, organization_id, {"tickets": 50})

    in_transaction(database_url, backtest)
    drain_queues(database_url, organization_id)
    return journey


def _write_settings(database_url: str, organization_id: UUID) -> None:
    async def act(tx: Tx) -> None:
        texting = await lock_texting(tx, organization_id)
        assert texting is not None
        settings = SmsSettings(
            brand=MARKER,
            help_contact="help@shop.example",
            rules={"FR": ALWAYS},
            caps=(Cap(texts=2, hours=48),),
            notices={"FR": OptOutNotice("STOP to 36123", "36123")},
            simulation=Simulation(fails=0.1, loses=0.2, delay_ms=3),
            twilio=TwilioAccount("AC" + "1" * 32, "+33644640001"),
        )
        token = seal_token(vault.of(SETTINGS), organization_id, "a token")
        await save_texting(
            tx,
            organization_id,
            replace(
                texting,
                provider="twilio",
                settings=settings,
                encrypted_token=token,
                held_since=NOW,
                held_reason="A pause.",
            ),
        )
        progress = SenderProgress(read_until=NOW, next_page="/next", next_until=NOW, has_failed=True)
        inbound = InboundProgress("AC" + "1" * 32, {"+33644640001": progress}, error="no answer", failing_since=NOW)
        await save_inbound_progress(tx, organization_id, inbound, due_at=NOW)

    in_transaction(database_url, act)


def _write_factor(database_url: str, visitor: Visitor) -> dict[str, Any]:
    secret = pyotp.random_base32()

    async def act(tx: Tx) -> list[str]:
        now = pyotp.TOTP(secret).at(tx.now)
        return await second_factor.enable(tx, vault.of(SETTINGS), visitor.who.user_id, secret=secret, code=now)

    codes = in_transaction(database_url, act)
    return {"user_id": str(visitor.who.user_id), "secret": secret, "recovery_codes": codes[:2]}


def _write_idempotent(api: Api) -> Iterator[dict[str, Any]]:
    """Requests with a key, and their responses: a retry gets the same bytes."""
    bodies = {
        "/v1/profiles": {"external_id": "by a key", "first_name": "Ada"},
        "/v1/stores": samples.store(external_id="by a key"),
        "/v1/subscriptions/opt-out": {"phone_number": samples.phone(), "reason": "asked", "source": "OTHER"},
        "/v1/sales-events": samples.sale("by a key", external_id="by a key"),
    }
    for path, body in bodies.items():
        key = str(uuid4())
        answer = _post(api, path, body, **{"Idempotency-Key": key})
        yield {"path": path, "body": body, "key": key, "status": answer.status, "answer": answer.body.decode()}


def _read_lists(api: Api, number: str) -> Iterator[dict[str, Any]]:
    """The second page of every list of the API, by the cursor of the first."""
    withdrawn = api.get("/v1/subscriptions", status="UNSUBSCRIBED", limit=1).json()
    subscription = withdrawn["data"][0]["id"]
    since = samples.ago(days=2)
    lists: dict[str, dict[str, str]] = {
        "/v1/stores": {},
        "/v1/profiles": {},
        "/v1/profiles ": {"updated_from": since},
        "/v1/sales-events": {},
        "/v1/sales-events ": {"updated_from": since},
        "/v1/sales-events  ": {"occurred_from": since},
        "/v1/subscriptions": {},
        "/v1/subscriptions ": {"updated_from": since},
        f"/v1/subscriptions/{subscription}/history": {},
    }
    for path, query in lists.items():
        first = api.get(path.strip(), limit=1, **query)
        assert first.json().get("next_cursor"), first.body
        asked = {**query, "limit": "1", "cursor": first.json()["next_cursor"]}
        second = api.get(path.strip(), **asked)
        assert second.status == 200
        yield {"path": path.strip(), "query": asked, "answer": second.json()}


def _write_facts(database_url: str, organization_id: UUID) -> None:
    """A row of each topic in the outbox, and one for each listener that failed on it."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        [sale], [profile], [subscription], [text] = (
            connection.execute(query, (organization_id,)).fetchone()
            for query in (
                "SELECT id FROM sales_events WHERE organization_id = %s",
                "SELECT id FROM profiles WHERE organization_id = %s",
                "SELECT id FROM subscriptions WHERE organization_id = %s",
                "SELECT id FROM texts WHERE organization_id = %s",
            )
        )
        shown = msgspec.Raw(json.dumps({"id": "one", "external_id": MARKER}).encode())
        facts: tuple[Fact, ...] = (
            SalesRecorded(sales=[sale], property_keys=("colour",)),
            ProfileErased(profile_id=UUID(int=7), erased_at=NOW),
            StoredResponsesRemain(until=NOW, profile_ids=(UUID(int=7),), subscription_ids=(UUID(int=7),)),
            ProfilesChanged(at=NOW, changes=(ProfileChange(profile, "updated", shown),)),
            SubscriptionsChanged(
                at=NOW,
                changes=(
                    SubscriptionChange(subscription, 3, "consented", "eligible", profile, shown, by_erasure=True),
                ),
            ),
            MessagesChanged("text", text, "person", UUID(int=7), "1", profile, "delivered", "none", b"hash", NOW),
            LinkClicked(UUID(int=7), UUID(int=7), NOW),
            CampaignEnded(UUID(int=7)),
            TimeZoneChanged(),
            HoldoutMonthBegun(UUID(int=7), "2", date(2026, 11, 1), 10, 3),
            HoldoutQuarterChanged(date(2026, 10, 1), 10, date(2026, 11, 18), date(2026, 12, 31)),
        )
        for fact in facts:
            payload = msgspec.json.encode([fact]).decode()
            connection.execute(
                "INSERT INTO outbox (organization_id, id, topic, payload, created_at) VALUES (%s, %s, %s, %s, now())",
                (organization_id, uuid4(), fact.topic, payload),
            )
            for listener in LISTENERS[type(fact)]:
                connection.execute(
                    "INSERT INTO outbox_retries (organization_id, id, listener, topic, payload, created_at, attempts,"
                    " due_at) VALUES (%s, %s, %s, %s, %s, now(), 1, now())",
                    (organization_id, uuid4(), listener, fact.topic, payload),
                )
