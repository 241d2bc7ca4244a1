"""Checks the invariants I6 to I10, I12 and I13: the effects of the writes, and the behaviour of the processes."""

import json
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
from standardwebhooks.webhooks import WebhookVerificationError
from tests.crash.checker import is_founding
from tests.crash.clients import BATCHES, OPT_INS, OPT_OUTS, SALES
from tests.crash.external import Arrival
from tests.crash.journal import Journal, RecordedResponse
from tests.crash.shops import Shop
from tests.crash.world import World
from tests.support.run_async import run_async
from tests.webhooks.receiver import Received

from regulars.consent.verify import Audit, verify_organization
from regulars.kit import ids
from regulars.kit.db import Database
from regulars.work.facts import AUTOMATION_WINDOW

Ledger = dict[tuple[Any, int], bytes]
MEMORY_BYTES_MAX = 1 << 30
HANDLES_MAX = 400
CONNECTIONS_MAX = 24
PROBLEM = "application/problem+json"


@dataclass(frozen=True)
class WorkerRows:
    """The rows that the worker wrote for the facts of a shop."""

    sales: list[tuple[str, UUID, UUID | None, datetime, datetime]]
    runs: list[tuple[str, str, UUID]]
    texts: dict[str, tuple[str, str, str]]
    messages: dict[str, tuple[str, str | None]]
    withdrawn: set[str]
    ledger: Ledger


def read_worker_rows(url: str, organization_id: UUID) -> WorkerRows:
    with psycopg.connect(url) as connection:

        def rows(query: str) -> list[Any]:
            return connection.execute(query, (organization_id,)).fetchall()  # type: ignore[arg-type]  # a literal below

        return WorkerRows(
            rows(
                "SELECT external_id, id, profile_id, occurred_at, created_at FROM sales_events WHERE organization_id = %s"
            ),
            rows("SELECT fact_kind, fact_id, journey_id FROM journey_runs WHERE organization_id = %s"),
            {
                ids.TEXT.encode(row[0]): (row[1], f"{row[2]}/{row[3]}", row[4])
                for row in rows("SELECT id, origin_kind, origin_id, step, state FROM texts WHERE organization_id = %s")
            },
            {
                ids.WEBHOOK_MESSAGE.encode(row[0]): (row[1], row[2])
                for row in rows("SELECT id, type, body FROM webhook_messages WHERE organization_id = %s")
            },
            {
                row[0]
                for row in rows(
                    "SELECT phone_number FROM subscriptions WHERE organization_id = %s AND status = 'UNSUBSCRIBED'"
                )
            },
            read_ledger(connection, organization_id),
        )


def read_ledger(connection: "psycopg.Connection[Any]", organization_id: UUID) -> Ledger:
    found = connection.execute(
        "SELECT subscription_id, sequence, hash FROM consent_ledger WHERE organization_id = %s", (organization_id,)
    )
    return {(row[0], row[1]): bytes(row[2]) for row in found}


def check_journeys(followed: WorkerRows, arrivals: list[Arrival], journal: Journal) -> None:
    """I6: at most one run per journey and fact, one send per run and step; each eligible customer without a conflict entered."""
    twice = [run for run, times in Counter(followed.runs).items() if times > 1]
    assert not twice, f"I6: entered more than once: {twice}"
    origins = [followed.texts[it.text_id][1] for it in arrivals if it.is_taken and it.text_id in followed.texts]
    again = [origin for origin, times in Counter(origins).items() if times > 1]
    assert not again, f"I6: sent more than once: {again}"
    # While a campaign is paused, a refused text returns to it and becomes a new text later.
    unknown = [it.text_id for it in arrivals if it.is_taken and it.text_id not in followed.texts]
    assert not unknown, f"I6: texts left that are in no table: {unknown}"
    entered = {fact for kind, fact, _ in followed.runs if kind == "sale"}
    bought = Counter(profile for _, _, profile, _, _ in followed.sales)
    for name, identifier, profile, occurred_at, created_at in followed.sales:
        is_eligible = profile is not None and created_at - occurred_at <= AUTOMATION_WINDOW
        has_entered = ids.SALES_EVENT.encode(identifier) in entered
        assert is_eligible or not has_entered, f"I13: {name} is too old and started a run"
        # A customer with one purchase had no earlier run that could block the entry.
        assert has_entered or not is_eligible or bought[profile] > 1, f"I6: {name} started no run"
    del journal


def check_time(followed: WorkerRows, journal: Journal) -> None:
    """I13: eligible if and only if the sale was at most seven days old by the database's clock."""
    ages = {name: created_at - occurred_at for name, _, _, occurred_at, created_at in followed.sales}
    for status, answer, _ in journal.recorded(SALES, BATCHES):
        shown = answer["sales_event"]
        if status != 201 or shown["profile"] is None:
            continue
        age = ages.get(shown["external_id"], timedelta(0))
        expected = "eligible" if age <= AUTOMATION_WINDOW else "stale_fact"
        assert answer["automation"]["state"] == expected, (
            f"I13: {shown['external_id']}, {age} old: {answer['automation']}"
        )


def check_consent(shop: Shop, followed: WorkerRows, arrivals: list[Arrival], journal: Journal) -> None:
    """I7: a withdrawal is final, and only its confirmation leaves after the response."""
    answered = _withdrawals(journal)
    for number in answered:
        assert number in followed.withdrawn, f"I7: {number} withdrew, was answered, and is subscribed"
    for arrival in arrivals:
        kind = followed.texts.get(arrival.text_id, ("", "", ""))[0]
        if kind not in {"stop", "help"} and arrival.at > answered.get(arrival.number, float("inf")):
            late_s = arrival.at - answered[arrival.number]
            raise AssertionError(f"I7: {arrival.number} got a text {late_s:.3f} s after its withdrawal was answered")
    # A refused text was not sent, and is tried again.
    taken = [it for it in arrivals if it.is_taken]
    confirmed = Counter(it.number for it in taken if followed.texts.get(it.text_id, ("",))[0] == "stop")
    often = [number for number, times in confirmed.items() if times > 1]
    assert not often, f"I7: confirmed more than once: {often} in {shop.tag}"


def _withdrawals(journal: Journal) -> dict[str, float]:
    """Numbers that withdrew, with the time of the first successful response."""
    first: dict[str, float] = {}
    for answer in journal.answers:
        is_withdrawal = answer.call.path == OPT_OUTS or answer.call.signature is not None
        if is_withdrawal and answer.is_success and _took_effect(answer):
            first.setdefault(answer.call.subject, answer.at)
    return first


def _took_effect(answer: RecordedResponse) -> bool:
    return answer.call.signature is not None or answer.json()["outcome"] != "superseded"


def check_ledger(url: str, shop: Shop, before: Ledger, followed: WorkerRows) -> None:
    """I7: the state follows from the ledger, the chain verifies, and no row of it ever changes."""
    changed = [place for place, link in before.items() if followed.ledger.get(place) != link]
    assert not changed, f"I7: entries of the ledger changed: {changed}"
    audit = run_async(_audit(url, shop.organization_id))
    assert not audit.faults, f"I7: the ledger does not hold: {audit.faults}"


async def _audit(url: str, organization_id: UUID) -> Audit:
    database = Database(url, pool_max=2)
    await database.open()
    try:
        return await verify_organization(database, organization_id)
    finally:
        await database.close()


def check_webhooks(shop: Shop, followed: WorkerRows, received: list[Received], journal: Journal) -> None:
    """I8: every event arrived at least once, complete, under one id and signed; every acknowledged write has an event."""
    came = Counter(it.id for it in received)
    # An event about an erased customer is blank, and is no longer sent.
    missing = [name for name, (_, body) in followed.messages.items() if name not in came and body is not None]
    assert not missing, f"I8: {len(missing)} events never came: {missing[:5]}"
    unknown = [name for name in came if name not in followed.messages]
    assert not unknown, f"I8: events came that are in no table: {unknown[:5]}"
    for it in received:
        _verify(it, shop.hook_secret)
    bodies = [json.loads(body) for _, body in followed.messages.values() if body]
    created = {it["data"]["external_id"] for it in bodies if it["type"] == "profile.created"}
    consented = {it["data"]["subscription"]["phone_number"] for it in bodies if it["type"] == "subscription.created"}
    for answer in journal.answers:
        if answer.status != 201 or answer.is_replay:
            continue
        if answer.call.path == OPT_INS:
            assert answer.call.subject in consented, f"I8: no event is about the consent of {answer.call.subject}"
        if answer.call.path == SALES and (profile := answer.json()["sales_event"]["profile"]) is not None:
            name = profile["external_id"]
            assert name in created or is_founding(name), f"I8: no event is about {name}"


def _verify(it: Received, secret: str) -> None:
    try:
        it.verify(secret)
    except WebhookVerificationError as error:
        raise AssertionError(f"I8: {it.id} cannot be verified: {error}") from None


def check_tenants(shop: Shop, others: list[Shop], journal: Journal, received: list[Received]) -> None:
    """I9: no response or webhook of an organization has data of another."""
    said = [answer.body for answer in journal.answers] + [it.body.decode() for it in received]
    for other in others:
        leaks = [text[:200] for text in said if f"{other.tag}-" in text]
        assert not leaks, f"I9: {shop.tag} got data of {other.tag}: {leaks[0]}"


def check_answers(journal: Journal, *, allowed: set[int]) -> None:
    """I10: no 5xx but 503 with its Retry-After, and every refusal in the envelope."""
    for answer in journal.answers:
        about = f"{answer.call.path} {answer.status} {answer.body[:300]}"
        assert answer.status in allowed, f"I10: {about}"
        if answer.status >= 400 and answer.call.signature is None:
            assert answer.media_type == PROBLEM, f"I10: not in the envelope: {about}"
        if answer.status == 503:
            assert answer.retry_after, f"I10: 503 without Retry-After: {about}"


LISTENER_LOST = '{"event": "listener error: ConnectorException('


def check_logs(logs: dict[str, str], shops: list[Shop], *, may_have_tracebacks: bool) -> None:
    """I9 and I10: no process wrote a traceback, a key or a phone number into its log."""
    for name, text in logs.items():
        # The job library logs a lost database with a traceback.
        ours = [line for line in text.splitlines() if "Traceback" in line and not line.startswith(LISTENER_LOST)]
        assert may_have_tracebacks or not ours, f"I10: {name}: {ours[0][:3000]}"
        for shop in shops:
            assert shop.key not in text, f"I9: {name} wrote an API key into its log"
            assert shop.number(0)[:9] not in text, f"I9: {name} wrote a phone number into its log"


def check_bounds(world: World) -> None:
    """I12: no process exceeds its limits of memory and handles, nor has more connections than its pools."""
    for process in (*world.servers, world.worker):
        assert process.memory_bytes() < MEMORY_BYTES_MAX, f"I12: {process.name} has {process.memory_bytes()} bytes"
        assert process.handles() < HANDLES_MAX, f"I12: {process.name} has {process.handles()} open files"
    [(connections,)] = world.rows("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
    most = CONNECTIONS_MAX * (len(world.servers) + 1)
    assert connections <= most, f"I12: {connections} connections to the database"
