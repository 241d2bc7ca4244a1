"""The ledger: appended to, never changed, chained, and equal to what the head says."""

import asyncio
import random
from dataclasses import replace

import pytest
from tests.consent.desk import DAY, MINUTE, NOW, NUMBER, PROOF, Desk, consent, history, withdrawal
from tests.consent.fold import fold

from regulars.consent.opt_in import opt_in
from regulars.consent.opt_out import opt_out

CALLERS = 64
ALL_ENTRIES = """
    SELECT ctid::text, xmin::text, subscription_id, sequence, kind, outcome, effective_at, claimed_at, received_at,
           commitment, previous_hash, hash
    FROM consent_ledger WHERE organization_id = %s ORDER BY subscription_id, sequence
"""


def test_the_ledger_keeps_what_was_said_by_which_key_with_the_request_id(desk: Desk) -> None:
    desk.profile("CUST-1")
    subscription = desk.opt_in(proof=PROOF, profile="CUST-1").subscription
    desk.opt_out(reason="Asked at the till", source="POS", now=NOW + MINUTE)
    given, withdrawn = (entry.payload or "" for entry in desk.entries(subscription.id))
    for said in (
        '"phone_number":"+33612345678"',
        '"terms_version":"2026-01"',
        '"request_id":"req-1"',
        '"api_key_id":"key_',
    ):
        assert said in given
    assert '"source":"POS","reason":"Asked at the till"' in withdrawn


def test_the_chain_of_a_subscription_verifies(desk: Desk) -> None:
    subscription = desk.opt_in(proof=PROOF).subscription
    desk.opt_in(at=NOW - DAY)
    desk.stop(now=NOW + MINUTE)
    verification = desk.verify(subscription.id)
    assert (verification.entries, verification.payloads_erased, verification.fault) == (3, 0, None)


@pytest.mark.parametrize(
    ("table", "change", "fault", "sequence"),
    [
        ("consent_ledger", "outcome = 'updated'", "its hash is not the hash of what it says", 2),
        ("consent_ledger", "effective_at = now()", "its hash is not the hash of what it says", 2),
        ("consent_ledger", "previous_hash = hash", "it is not chained to the entry before it", 2),
        ("consent_payloads", 'payload = \'{"kind":"OPT_IN"}\'', "its payload is not the one it commits to", 2),
    ],
)
def test_a_changed_entry_breaks_the_chain(desk: Desk, table, change, fault, sequence) -> None:
    subscription = desk.opt_in(proof=PROOF).subscription
    desk.opt_in(at=NOW - DAY)
    desk.stop(now=NOW + MINUTE)
    desk.alter(f"UPDATE {table} SET {change} WHERE organization_id = %s AND sequence = 2")  # noqa: S608  # a table of cases
    verification = desk.verify(subscription.id)
    assert (verification.fault, verification.fault_sequence) == (fault, sequence)


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        (
            "DELETE FROM consent_ledger WHERE organization_id = %s AND sequence = 2",
            "an entry before this one is missing",
        ),
        ("DELETE FROM consent_ledger WHERE organization_id = %s AND sequence = 3", "entries are missing at the end"),
        ("UPDATE subscriptions SET status = 'SUBSCRIBED' WHERE organization_id = %s", "the head has another status"),
        (
            "UPDATE subscriptions SET latest_opt_out_at = NULL WHERE organization_id = %s",
            "the head has other latest times",
        ),
        ("UPDATE subscriptions SET last_hash = '' WHERE organization_id = %s", "the head has another last hash"),
    ],
)
def test_a_missing_entry_or_a_changed_head_is_found(desk: Desk, statement, fault) -> None:
    subscription = desk.opt_in(proof=PROOF).subscription
    desk.opt_in(at=NOW - DAY)
    desk.stop(now=NOW + MINUTE)
    desk.alter(statement)
    assert desk.verify(subscription.id).fault == fault


def test_no_ledger_row_is_ever_changed(desk: Desk) -> None:
    profile_id = desk.profile("CUST-1")
    desk.opt_in(proof=PROOF, profile="CUST-1")
    desk.opt_out(now=NOW + MINUTE)
    before = desk.sql(ALL_ENTRIES)
    desk.opt_in(at=NOW + 2 * MINUTE, now=NOW + 2 * MINUTE, profile="CUST-1")
    desk.opt_in(at=NOW - DAY, now=NOW + 2 * MINUTE)
    desk.stop(now=NOW + 3 * MINUTE)
    desk.erase(profile_id, phone_number=NUMBER, now=NOW + 4 * MINUTE)
    after = desk.sql(ALL_ENTRIES)
    assert len(after) == 6
    assert after[:2] == before


def test_heads_equal_the_full_fold_after_random_concurrent_batches(desk: Desk) -> None:
    seed = random.SystemRandom().randrange(2**32)
    rng = random.Random(seed)
    desk.profile("CUST-1", phone_number="+12125550100")
    numbers = [f"+3361234567{digit}" for digit in range(6)]
    batches = [_random_commands(rng, numbers, count=rng.randint(1, 20)) for _ in range(40)]
    results = _in_parallel(desk, batches)
    assert len(results) == sum(len(batch) for batch in batches)
    subscriptions = {it.subscription.id for it in results}
    assert len(subscriptions) <= len(numbers)
    total = 0
    for subscription_id in subscriptions:
        entries = desk.entries(subscription_id)
        total += len(entries)
        assert desk.head(subscription_id).state == fold(history(entries)), f"seed {seed}"
        assert desk.verify(subscription_id).fault is None, f"seed {seed}"
    assert total == len(results), f"seed {seed}"


def test_a_batch_costs_the_same_number_of_statements_whatever_its_size(desk: Desk) -> None:
    desk.profile("CUST-1")

    def statements(use_case, commands) -> int:
        asked = []

        async def count(tx):
            run = tx.connection.execute

            async def counted(query, *arguments, **options):
                asked.append(query)
                return await run(query, *arguments, **options)

            tx.connection.execute = counted
            try:
                await use_case(tx, desk.organization_id, commands, secret=desk.secret)
            finally:
                del tx.connection.execute

        desk.do(count)
        return len(asked)

    numbers = [f"+33612345{number:03}" for number in range(201)]
    many_in = [consent(number, profile="CUST-1") for number in numbers[1:]]
    many_out = [withdrawal(number) for number in numbers[1:]]
    assert statements(opt_in, [consent(numbers[0], profile="CUST-1")]) == statements(opt_in, many_in) <= 8
    assert statements(opt_out, [withdrawal(numbers[0])]) == statements(opt_out, many_out) <= 8


def _random_commands(rng: random.Random, numbers: list[str], *, count: int):
    """A batch of one kind, as the queue of one endpoint gives it; times on a coarse grid, so that many are equal."""
    is_opt_in = rng.random() < 0.5
    commands = []
    for _ in range(count):
        number = rng.choice(numbers)
        at = NOW - rng.randint(0, 5) * MINUTE
        if len(numbers) == 1:
            is_opt_in = rng.random() < 0.5
        if is_opt_in:
            source, proof = rng.choice(["WEBSITE", "EVENT"]), rng.choice([None, PROOF])
            commands.append(consent(number, at=at, source=source, proof=proof))
        else:
            commands.append(withdrawal(number, at=rng.choice([None, at])))
    return commands


def _in_parallel(desk: Desk, batches):
    async def one(commands):
        async with desk.database.transaction() as tx:
            use_case = opt_in if hasattr(commands[0], "consented_at") else opt_out
            at_now = replace(tx, now=NOW)
            return await use_case(at_now, desk.organization_id, commands, secret=desk.secret)

    async def all_at_once():
        return await asyncio.gather(*(one(commands) for commands in batches))

    return [result for results in desk.runner.run(all_at_once()) for result in results]
