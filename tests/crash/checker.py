"""Checks the invariants I1 to I5 of docs/reliability.md on the rows of the database and the history of the clients.

`effects.py` has the invariants about the effects of a write; `trial.py` runs all of them.
"""

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
from tests.crash.clients import BATCHES, OPT_INS, PROFILES, SALES
from tests.crash.journal import Journal

from regulars.kit.ids import PROFILE, SALES_EVENT


@dataclass(frozen=True)
class StoredRows:
    """All rows of the organization, read in one transaction."""

    sales: dict[str, dict[str, Any]]
    sales_count: int
    profiles: dict[str, UUID]
    stores: set[UUID]
    keys: dict[str, tuple[int, str]]
    facts_by_sale: Counter[str]
    counted: int
    consents: set[str]


def read(url: str, organization_id: UUID | None = None) -> StoredRows:
    """Reads one organization; None reads the only one."""
    with psycopg.connect(url) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")

        def rows(query: str) -> list[Any]:
            of_it = "organization_id = coalesce(%s, organization_id)"
            return connection.execute(
                f"{query} {'AND' if ' WHERE ' in query else 'WHERE'} {of_it}", (organization_id,)
            ).fetchall()  # type: ignore[arg-type]  # each caller passes a literal

        sales = rows("SELECT external_id, id, profile_id, store_id, total_amount_cents, line_items FROM sales_events")
        facts = rows("SELECT payload FROM outbox WHERE topic = 'sales.recorded'")
        return StoredRows(
            sales={
                row[0]: dict(zip(("id", "profile_id", "store_id", "amount", "lines"), row[1:], strict=True))
                for row in sales
            },
            sales_count=len(sales),
            profiles=dict(rows("SELECT external_id, id FROM profiles")),
            stores={row[0] for row in rows("SELECT id FROM stores")},
            keys={
                row[0]: row[1:] for row in rows("SELECT key, status, convert_from(body, 'UTF8') FROM idempotency_keys")
            },
            facts_by_sale=Counter(sale for row in facts for fact in row[0] for sale in fact["sales"]),
            counted=int(rows("SELECT coalesce(sum(purchases + returns), 0) FROM sales_totals WHERE NOT is_hour")[0][0]),
            consents={row[0] for row in rows("SELECT phone_number FROM subscriptions WHERE status = 'SUBSCRIBED'")},
        )


def check(url: str, journal: Journal, organization_id: UUID | None = None) -> None:
    held = read(url, organization_id)
    for holds in INVARIANTS:
        holds(held, journal)


def check_durable(held: StoredRows, journal: Journal) -> None:
    """I1: every write answered 2xx is in its table."""
    for _, answer, _ in journal.recorded(SALES, BATCHES):
        shown = answer["sales_event"]
        sale = held.sales.get(shown["external_id"])
        assert sale is not None, f"I1: {shown['external_id']} was acknowledged and is lost"
        assert SALES_EVENT.encode(sale["id"]) == shown["id"], f"I1: {shown['external_id']} is another sale"
        assert sale["amount"] == shown["total_amount_cents"]
        profile = None if sale["profile_id"] is None else PROFILE.encode(sale["profile_id"])
        assert profile == (shown["profile"] and shown["profile"]["id"]), (
            f"I1: {shown['external_id']} is another customer's"
        )
    for answered in journal.successes(PROFILES):
        shown = answered.json()
        identifier = held.profiles.get(shown["external_id"])
        assert identifier is not None, f"I1: {shown['external_id']} was acknowledged and is lost"
        assert PROFILE.encode(identifier) == shown["id"]
    for answered in journal.successes(OPT_INS):
        assert answered.call.subject in held.consents, f"I1: the consent of {answered.call.subject} is lost"


def check_once(held: StoredRows, journal: Journal) -> None:
    """I2: one row per external_id, and at most one 201 that is not a replay."""
    assert held.sales_count == len(held.sales), "I2: two rows of one external_id"
    recorded = journal.recorded(SALES, BATCHES)
    sales = [it["sales_event"]["external_id"] for status, it, is_replay in recorded if status == 201 and not is_replay]
    others = [
        f"{path} {answer.call.subject}"
        for path in (PROFILES, OPT_INS)
        for answer in journal.successes(path)
        if answer.status == 201 and not answer.is_replay
    ]
    for created in (Counter(sales), Counter(others)):
        twice = [subject for subject, count in created.items() if count > 1]
        assert not twice, f"I2: created more than once: {twice}"


def check_whole(held: StoredRows, _journal: Journal) -> None:
    """I3: a sale has its lines, store, profile and exactly one fact, waiting or handled; no key without its sale."""
    profile_ids = set(held.profiles.values())
    for external_id, sale in held.sales.items():
        assert sale["lines"], f"I3: {external_id} has no lines"
        assert sale["store_id"] in held.stores, f"I3: {external_id} has no store"
        assert sale["profile_id"] is None or sale["profile_id"] in profile_ids, (
            f"I3: {external_id} has lost its customer"
        )
    ids = {str(sale["id"]) for sale in held.sales.values()}
    strange = [sale for sale, times in held.facts_by_sale.items() if times > 1 or sale not in ids]
    assert not strange, f"I3: facts and sales differ: {strange}"
    assert held.counted + len(held.facts_by_sale) == len(ids), (
        f"I3: facts and sales differ: {len(ids)} sales, {len(held.facts_by_sale)} facts wait, {held.counted} were handled"
    )
    for key, (status, body) in held.keys.items():
        answer = json.loads(body) if status in {200, 201} and body else {}
        bodies = [answer, *(result["body"] for result in answer.get("results", ()))]
        for event in (body["sales_event"] for body in bodies if "sales_event" in body):
            assert event["external_id"] in held.sales, f"I3: the key {key} speaks of a sale that is not there"


def check_no_ghost(held: StoredRows, journal: Journal) -> None:
    """I4: refusals and duplicates left no rows, and no light profile exists without its sale."""
    refused = {
        answer.call.subject
        for answer in journal.answers
        if 400 <= answer.status < 500 and answer.status not in {409, 429}
    }
    for answer in journal.successes(BATCHES):
        items = json.loads(answer.call.body)["items"]
        results = zip(items, answer.json()["results"], strict=True)
        refused |= {item["external_id"] for item, result in results if result["status"] not in {200, 201}}
    assert not refused & held.sales.keys(), "I4: a refused sale is there"
    # The duplicate counts as the first ticket of its id if the first one was lost.
    haunted = {call.ghost for call in journal.calls if call.ghost is not None} & held.profiles.keys()
    used = {sale["profile_id"] for sale in held.sales.values()}
    ghosts = [name for name in haunted if held.profiles[name] not in used]
    assert not ghosts, f"I4: refused or repeated sales left {ghosts}"
    pushed = {call.subject for call in journal.calls if call.path == PROFILES}
    orphans = [
        name
        for name, identifier in held.profiles.items()
        if name not in pushed and identifier not in used and not is_founding(name) and not is_erased_customer(name)
    ]
    assert not orphans, f"I4: light profiles without a sale: {orphans}"


def is_founding(name: str) -> bool:
    """Whether the customer existed before the trial (`shops.py`)."""
    tag, _, number = name.partition("-customer-")
    return bool(tag) and number.isdigit()


def is_erased_customer(name: str) -> bool:
    """Whether `erased_customers.py` created the customer; those calls are in a separate history."""
    return "-leaver-" in name


def check_replay(held: StoredRows, journal: Journal) -> None:
    """I5: one execution per key; all its responses are byte-equal and stored, and all but one are marked as replays."""
    for key, answers in journal.by_key().items():
        assert len({(answer.status, answer.body) for answer in answers}) == 1, (
            f"I5: {key} has several answers: {answers}"
        )
        assert [answer.is_replay for answer in answers].count(False) <= 1, f"I5: {key} ran more than once: {answers}"
        assert held.keys.get(key) == (answers[0].status, answers[0].body), (
            f"I5: {key} is stored otherwise or not at all"
        )


INVARIANTS = (check_durable, check_once, check_whole, check_no_ghost, check_replay)
