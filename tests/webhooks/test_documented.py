"""docs/webhooks.md: every sample is what is sent, and the receivers in it work."""

import asyncio
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from datetime import timedelta

import httpx
import pytest
from tests.support.database_fixtures import SECRET
from tests.support.project import ROOT
from tests.webhooks.shop import CONSENTED_AT, NUMBER

from regulars.consent import chain
from regulars.consent.ledger import EventOrigin
from regulars.consent.opt_in import Consent, opt_in
from regulars.inbox.queries.replies import insert_reply_if_new
from regulars.kit.ids import new_uuid
from regulars.sales.decode import decode_sale
from regulars.sales.record import record_sales
from regulars.stores.model import StoreUpsert
from regulars.stores.upsert import upsert_stores
from regulars.texts.facts import publish_reply, publish_text_changes
from regulars.texts.model import ReplyRow, TextRow
from regulars.texts.text_rows import insert_texts_if_new
from regulars.webhooks import events
from regulars.webhooks.model import DEFAULT_EVENT_TYPES, EVENT_TYPES, FAMILIES, PING

pytestmark = pytest.mark.anyio

DOCUMENT = (ROOT / "docs" / "webhooks.md").read_text()
SAMPLES = {json.loads(text)["type"]: json.loads(text) for text in re.findall(r"```json\n(.*?)```", DOCUMENT, re.DOTALL)}


def without_ids_and_times(value):
    text = re.sub(r"\b(prof|sub|wh)_[0-9a-z]{26}", r"\1_", json.dumps(value, sort_keys=True))
    text = re.sub(r"\b(evt|store|txt|rpl)_[0-9a-z]{26}", r"\1_", text)
    return json.loads(re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "TIME", text))


async def everything_that_can_happen(shop, created):
    await shop.upsert("CUST-1042", phone_number=NUMBER, first_name="Zoë", attributes={"size": "M"})
    await shop.upsert("CUST-1042", last_name="Martin")
    await shop.consent("CUST-1042")
    await shop.consent("CUST-1042", source="CHECKOUT")
    await shop.withdraw()
    async with shop.database.transaction() as tx:
        again = Consent(phone_number=NUMBER, source="WEBSITE", consented_at=tx.now, origin=EventOrigin())
        await opt_in(tx, shop.organization_id, [again], secret=bytes(range(32)))
    await shop.do(events.ping, created.endpoint.id)
    await shop.do(upsert_stores, [StoreUpsert(external_id="PARIS-01")])
    sale = SAMPLES["sales_event.recorded"]["data"]
    fields = {name: sale[name] for name in ("external_id", "type", "occurred_at", "currency", "total_amount_cents")}
    body = {**fields, "store_id": "PARIS-01", "profile_id": "CUST-1042", "total_discount_cents": 0}
    decoded = decode_sale(json.dumps({**body, "line_items": sale["line_items"]}).encode())
    await shop.do(record_sales, [decoded], tolerance=timedelta(0))
    await shop.do(exchange_texts)
    await shop.deliver()
    await shop.erase("CUST-1042")
    await shop.deliver()


async def exchange_texts(tx, organization_id):
    """What the room of texts records when a text changes its state, and when a reply comes; of a journey too."""
    [(profile_id,)] = await tx.fetch("SELECT id FROM profiles WHERE organization_id = %s", (organization_id,))
    outbound = SAMPLES["message.sent"]["data"]["message"]
    for origin in ("person", "journey"):
        text = (new_uuid(), origin, new_uuid(), "", profile_id, b"hash", NUMBER, outbound["text"], 1, "sent", None)
        row = TextRow(*text, None, tx.now, 1, None, None, tx.now, tx.now, None)
        await insert_texts_if_new(tx, organization_id, [row])
        for state, reason in (("sent", None), ("delivered", None), ("failed", "refused")):
            await publish_text_changes(
                tx, organization_id, [row._replace(state=state, reason=reason)], previous_state="queued"
            )
    words = SAMPLES["message.received"]["data"]["message"]["text"]
    reply = ReplyRow(new_uuid(), "t", "1", b"hash", NUMBER, profile_id, words, "other", *[None] * 4, tx.now)
    await insert_reply_if_new(tx, organization_id, reply)
    await publish_reply(tx, organization_id, reply)


async def test_an_erasure_blanks_events_of_texts_that_name_only_a_number(shop, receiver):
    """An answer from the inbox goes to a number and names no customer."""
    await shop.create(receiver.url, "message.*")
    await shop.upsert("CUST-1042", phone_number=NUMBER)
    await shop.consent("CUST-1042")

    async def answer(tx, organization_id):
        row = (new_uuid(), "answer", new_uuid(), "", None, chain.hash_number(SECRET, NUMBER), NUMBER, "Yes", 1, "sent")
        text = TextRow(*row, None, None, tx.now, 1, None, None, tx.now, tx.now, None)
        stranger = text._replace(
            id=new_uuid(), origin_id=new_uuid(), number_hash=b"nobody", phone_number="+33700000000"
        )
        await insert_texts_if_new(tx, organization_id, [text, stranger])
        await publish_text_changes(tx, organization_id, [text, stranger], previous_state="queued")

    await shop.do(answer)
    await shop.run_listeners()
    query = "SELECT body IS NOT NULL FROM webhook_messages WHERE organization_id = %s"
    async with shop.database.reading() as tx:
        assert await tx.fetch(query, (shop.organization_id,)) == [(True,)]
    await shop.erase("CUST-1042")
    async with shop.database.reading() as tx:
        assert await tx.fetch(query, (shop.organization_id,)) == [(False,)]
    await shop.deliver()
    assert receiver.received == []


async def test_an_endpoint_that_chose_nothing_takes_the_two_families_of_the_specification(shop, receiver):
    assert DEFAULT_EVENT_TYPES == ("profile.*", "subscription.*")
    created = await shop.create(receiver.url)
    await everything_that_can_happen(shop, created)
    assert {one.event["type"].partition(".")[0] for one in receiver.received} == {"profile", "subscription", "webhook"}


async def test_every_sample_is_what_is_sent(shop, receiver):
    created = await shop.create(receiver.url, *FAMILIES)
    await everything_that_can_happen(shop, created)
    first = {}
    for one in receiver.received:
        first.setdefault(one.event["type"], one.event)
    assert set(SAMPLES) == {*EVENT_TYPES, PING}
    # Of a journey's texts nothing is sent.
    assert sum(one.event["type"] == "message.sent" for one in receiver.received) == 1
    for kind, sample in SAMPLES.items():
        assert without_ids_and_times(first[kind]) == without_ids_and_times(sample), kind
        assert list(first[kind]) == list(sample)
    assert CONSENTED_AT is not None


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.mark.parametrize("language", ["python", "javascript"])
async def test_the_receivers_of_the_document_take_what_is_genuine_and_refuse_the_rest(shop, language, tmp_path):
    program = {"python": sys.executable, "javascript": shutil.which("node")}[language]
    if program is None:
        pytest.skip("there is no `node` on the PATH; install Node.js to run the JavaScript receiver")
    (source,) = re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)
    file = tmp_path / {"python": "receiver.py", "javascript": "receiver.js"}[language]
    file.write_text(source)
    port = free_port()
    created = await shop.create(f"http://127.0.0.1:{port}/")
    environment = {**os.environ, "PORT": str(port), "WEBHOOK_SECRET": created.secret}
    process = await asyncio.create_subprocess_exec(
        program, str(file), env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(30), httpx.AsyncClient() as client:
            while True:
                try:
                    refused = await client.post(f"http://127.0.0.1:{port}/", content=b"{}")
                    break
                except httpx.TransportError:
                    await asyncio.sleep(0.1)
        assert refused.status_code == 401
        await shop.upsert("CUST-1042")
        await shop.deliver()
        (delivery,) = await shop.deliveries()
        assert (delivery.state, delivery.answer_status) == ("delivered", 204)
    finally:
        process.kill()
        out, _ = await process.communicate()
    assert out.decode().split() == ["profile.created"]
