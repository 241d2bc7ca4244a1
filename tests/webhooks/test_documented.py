"""docs/webhooks.md: every sample is what is sent, and the receivers in it work."""

import asyncio
import json
import os
import re
import shutil
import socket
import subprocess
import sys

import httpx
import pytest
from tests.support.project import ROOT
from tests.webhooks.shop import CONSENTED_AT, NUMBER

from regulars.consent.ledger import Origin
from regulars.consent.opt_in import Consent, opt_in
from regulars.webhooks import post
from regulars.webhooks.model import EVENTS, PING

pytestmark = pytest.mark.anyio

DOCUMENT = (ROOT / "docs" / "webhooks.md").read_text()
SAMPLES = {json.loads(text)["type"]: json.loads(text) for text in re.findall(r"```json\n(.*?)```", DOCUMENT, re.DOTALL)}


def without_ids_and_times(value):
    text = re.sub(r"\b(prof|sub|wh)_[0-9a-z]{26}", r"\1_", json.dumps(value, sort_keys=True))
    return json.loads(re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "TIME", text))


async def everything_that_can_happen(shop, created):
    await shop.upsert("CUST-1042", phone_number=NUMBER, first_name="Zoë", attributes={"size": "M"})
    await shop.upsert("CUST-1042", last_name="Martin")
    await shop.consent("CUST-1042")
    await shop.consent("CUST-1042", source="CHECKOUT")
    await shop.withdraw()
    async with shop.database.transaction() as tx:
        again = Consent(phone_number=NUMBER, source="WEBSITE", consented_at=tx.now, origin=Origin())
        await opt_in(tx, shop.organization_id, [again], secret=bytes(range(32)))
    await shop.do(post.ping, created.endpoint.id)
    await shop.deliver()
    await shop.erase("CUST-1042")
    await shop.deliver()


async def test_every_sample_is_what_is_sent(shop, receiver):
    created = await shop.create(receiver.url)
    await everything_that_can_happen(shop, created)
    first = {}
    for one in receiver.received:
        first.setdefault(one.event["type"], one.event)
    assert set(SAMPLES) == {*EVENTS, PING}
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
