"""The store of a consent: kept like proof and profile, and on the ledger for good."""

import json
from pathlib import Path
from uuid import UUID

from psycopg import sql
from tests.consent.desk import DAY, MINUTE, NOW, PROOF, Desk
from tests.support import samples
from tests.support.client import Api

from regulars.consent.model import Outcome
from regulars.kit.ids import STORE

WRITTEN_BY_0_1 = Path(__file__).parent / "fixtures" / "ledger_0_1.json"


def test_the_subscription_shows_the_store_of_the_last_opt_in_that_counts(desk: Desk) -> None:
    paris, lyon = desk.store("PARIS-01"), desk.store("LYON-01")
    steps = [
        desk.opt_in(store="PARIS-01", at=NOW - DAY),
        desk.opt_in(at=NOW - DAY),
        desk.opt_in(at=NOW - MINUTE, proof=PROOF),
        desk.opt_in(at=NOW - 2 * DAY, store="LYON-01"),
        desk.opt_in(at=NOW - MINUTE, store="LYON-01"),
    ]
    assert [(it.outcome.value, it.subscription.store and it.subscription.store.id) for it in steps] == [
        ("created", paris),
        ("already_subscribed", paris),
        ("updated", paris),
        ("superseded", paris),
        ("updated", lyon),
    ]
    desk.opt_out(now=NOW + MINUTE)
    back = desk.opt_in(at=NOW + 2 * MINUTE, now=NOW + 2 * MINUTE)
    assert (back.outcome, back.subscription.store) == (Outcome.RESUBSCRIBED, None)
    assert desk.find(back.subscription.id) == back.subscription


def test_the_ledger_keeps_the_store_and_the_chain_verifies(desk: Desk) -> None:
    paris = desk.store("PARIS-01")
    subscription = desk.opt_in(store="PARIS-01").subscription
    [entry] = desk.entries(subscription.id)
    assert f'"store_id":"{STORE.encode(paris)}"' in (entry.payload or "")
    assert desk.verify(subscription.id).fault is None


def test_the_api_takes_and_shows_it(api: Api) -> None:
    store = api.post("/v1/stores", samples.store()).json()
    for reference in (store["external_id"], store["id"]):
        answer = api.post("/v1/subscriptions/opt-in", samples.opt_in(store_id=reference)).json()
        assert answer["subscription"]["store"] == {"id": store["id"], "external_id": store["external_id"]}
    assert api.post("/v1/subscriptions/opt-in", samples.opt_in(store_id="nowhere")).refused == (404, "STORE_NOT_FOUND")
    assert api.post("/v1/subscriptions/opt-in", samples.opt_in()).json()["subscription"]["store"] is None


def test_a_ledger_that_the_first_release_wrote_verifies(desk: Desk) -> None:
    """Stored payloads are never written again, and the hashed text of a link never changes."""
    written = json.loads(WRITTEN_BY_0_1.read_text(encoding="utf-8"))
    desk.organization_id = UUID(written["organization_id"])
    for table in ("profiles", "subscriptions", "consent_ledger", "consent_payloads"):
        for row in written[table]:
            values = {name: json.dumps(value) if isinstance(value, dict) else value for name, value in row.items()}
            insert = sql.SQL("INSERT INTO {} ({}) VALUES ({}) ON CONFLICT DO NOTHING").format(
                sql.Identifier(table),
                sql.SQL(", ").join(map(sql.Identifier, values)),
                sql.SQL(", ").join(map(sql.Placeholder, values)),
            )
            desk.do(lambda tx, insert=insert, values=values: tx.execute(insert, values))
    verified = {row["id"]: desk.verify(UUID(row["id"])) for row in written["subscriptions"]}
    assert {it.fault for it in verified.values()} == {None}
    assert sum(it.entries for it in verified.values()) == len(written["consent_ledger"]) == 12
    assert sum(it.payloads_erased for it in verified.values()) == 1
