"""The proof of a campaign is what the ledger of consent says about each text."""

import json
from typing import Any
from uuid import UUID

from tests.campaigns.desk import Desk
from tests.cli.conftest import environment, run_here

from regulars.campaigns.proof import write_proof
from regulars.kit.ids import CAMPAIGN


def read_proof(desk: Desk, campaign: UUID) -> list[dict[str, Any]]:
    async def read() -> bytes:
        return b"".join([page async for page in write_proof(desk.database, desk.organization_id, campaign)])

    return [json.loads(line) for line in desk.runner.run(read()).splitlines()]


def test_the_proof_names_the_entry_of_the_ledger_that_each_text_relied_on(desk, columns_database_url, tmp_path):
    desk.crowd(3)
    resubscribed, stopped, left = (f"+336123{number:05d}" for number in range(3))
    desk.opt_out(resubscribed)
    desk.opt_in("C0", resubscribed, source="WEBSITE")
    desk.drain()
    campaign = desk.send()
    desk.feed()
    desk.opt_out(left)
    desk.work()
    # What is said after the text left does not change the proof.
    desk.opt_in("C0", resubscribed, source="CHECKOUT")
    desk.opt_out(stopped)
    ledger = desk.sql(
        "SELECT s.phone_number, l.sequence, l.kind, l.hash FROM consent_ledger AS l JOIN subscriptions AS s"
        " ON s.organization_id = l.organization_id AND s.id = l.subscription_id WHERE l.organization_id = %s"
    )
    hashes = {(number, sequence): (kind, entry_hash.hex()) for number, sequence, kind, entry_hash in ledger}
    proved = {entry["phone_number"]: entry for entry in read_proof(desk, campaign)}
    relied_on = {number: entry["consent"] for number, entry in proved.items() if entry["consent"] is not None}
    assert {number: (it["sequence"], it["source"]) for number, it in relied_on.items()} == {
        resubscribed: (3, "WEBSITE"),
        stopped: (1, "OTHER"),
    }
    assert all((it["kind"], it["hash"]) == hashes[number, it["sequence"]] for number, it in relied_on.items())
    assert all(it["received_at"] <= proved[number]["claimed_at"] for number, it in relied_on.items())
    # A text that the gate skipped relied on no consent.
    assert (proved[left]["state"], proved[left]["consent"]) == ("skipped", None)
    # The command writes the same file as the page.
    [[name]] = desk.sql("SELECT name FROM organizations WHERE id = %s")
    variables = environment(DATABASE_URL=columns_database_url, REGULARS_DATA_DIR=str(tmp_path))
    written = run_here(["campaign", "proof", "-o", name, CAMPAIGN.encode(campaign)], variables, tmp_path)
    assert [json.loads(line) for line in written.out.splitlines()] == read_proof(desk, campaign), written.err
