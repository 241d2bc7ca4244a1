"""The whole schedule and the states of an endpoint in virtual time: 75 hours pass in milliseconds."""

import itertools
import random
from datetime import UTC, datetime, timedelta

import pytest

from regulars.webhooks.delivery.schedule import (
    CLAIMED_MAX,
    CONNECTIONS_PER_ENDPOINT_MAX,
    DISABLED_AFTER,
    PROBE_EVERY,
    AttemptOutcome,
    Health,
    after_attempt,
    claims_max,
    is_to_be_disabled,
    next_attempt,
)

START = datetime(2026, 3, 2, tzinfo=UTC)
OK = AttemptOutcome(None, 200)
BAD = AttemptOutcome("The response was 500.", 500)
SLOW = AttemptOutcome("no answer", is_timeout=True)
H = 3600


def attempts(chance):
    """When each attempt of a delivery is made that never succeeds."""
    moment, made = START, []
    while moment is not None:
        made.append(moment)
        moment = next_attempt(moment, attempts=len(made), random_share=chance)
    return made


def test_ten_attempts_are_made_with_the_waits_of_the_ruling():
    made = attempts(0.0)
    waits = [(later - earlier).total_seconds() for earlier, later in itertools.pairwise(made)]
    assert waits == [5, 300, 1800, 2 * H, 5 * H, 10 * H, 14 * H, 20 * H, 24 * H]
    assert made[-1] - START == timedelta(hours=75, minutes=35, seconds=5)


@pytest.mark.parametrize("chance", [0.0, 0.3, 1.0])
def test_waits_are_up_to_a_tenth_longer_and_never_shorter(chance):
    plain, made = attempts(0.0), attempts(chance)
    assert len(made) == 10
    for number in range(1, 10):
        wait, least = made[number] - made[number - 1], plain[number] - plain[number - 1]
        assert least <= wait <= least * 1.1


def test_a_receiver_may_ask_for_later_and_for_a_day_at_most():
    ask = timedelta(minutes=10)
    assert next_attempt(START, attempts=1, retry_after=ask, random_share=0) == START + ask
    assert next_attempt(START, attempts=9, retry_after=ask, random_share=0) == START + timedelta(hours=24)
    assert next_attempt(START, attempts=1, retry_after=timedelta(days=9), random_share=0) == START + timedelta(hours=24)
    assert next_attempt(START, attempts=10, retry_after=ask, random_share=0) is None


def test_a_new_endpoint_gets_one_delivery_until_it_has_answered():
    assert claims_max(Health(), now=START) == 1
    assert claims_max(after_attempt(Health(), OK, now=START), now=START) == CLAIMED_MAX


def test_one_that_failed_gets_eight_and_one_that_timed_out_gets_one():
    healthy = after_attempt(Health(), OK, now=START)
    assert claims_max(after_attempt(healthy, BAD, now=START), now=START) == CONNECTIONS_PER_ENDPOINT_MAX
    slow = after_attempt(healthy, SLOW, now=START)
    assert claims_max(slow, now=START) == 1
    assert claims_max(after_attempt(slow, OK, now=START), now=START) == CLAIMED_MAX


def test_probes_begin_after_twenty_failures_and_fifteen_minutes_and_end_with_a_success():
    health = after_attempt(Health(), OK, now=START)
    for minute in range(19):
        health = after_attempt(health, BAD, now=START + timedelta(minutes=minute))
    assert health.probe_at is None
    soon = after_attempt(after_attempt(Health(), OK, now=START), BAD, now=START)
    for _ in range(30):
        soon = after_attempt(soon, BAD, now=START + timedelta(minutes=14))
    assert soon.probe_at is None
    now = START + timedelta(minutes=20)
    health = after_attempt(health, BAD, now=now)
    assert health.probe_at == now + PROBE_EVERY
    assert claims_max(health, now=now) == 0
    assert claims_max(health, now=now + PROBE_EVERY) == 1
    health = after_attempt(health, OK, now=now + PROBE_EVERY)
    assert claims_max(health, now=now + PROBE_EVERY) == CLAIMED_MAX


def test_five_days_of_nothing_but_failure_end_it_and_a_success_starts_anew():
    health = after_attempt(Health(), BAD, now=START)
    assert not is_to_be_disabled(health, now=START + DISABLED_AFTER - timedelta(seconds=1))
    assert is_to_be_disabled(health, now=START + DISABLED_AFTER)
    health = after_attempt(health, OK, now=START + timedelta(days=4))
    health = after_attempt(health, BAD, now=START + timedelta(days=4))
    assert not is_to_be_disabled(health, now=START + timedelta(days=8))


def test_nothing_is_lost_in_72_hours_of_outage():
    """An endpoint with an event every ten minutes is away for three days, as the queue treats it."""
    rng = random.Random(7)
    outage = (START + timedelta(hours=1), START + timedelta(hours=73))
    waiting: dict[int, tuple[datetime, int]] = {}
    delivered: set[int] = set()
    failed: set[int] = set()
    health, now, made = Health(), START, 0
    while now < START + timedelta(hours=130):
        if now < START + timedelta(hours=80) and now.minute % 10 == 0 and now.second == 0:
            waiting[made] = (now, 0)
            made += 1
        due = sorted((at, number) for number, (at, _) in waiting.items() if at <= now)
        for _, number in due[: claims_max(health, now=now)]:
            outcome = BAD if outage[0] <= now < outage[1] else OK
            health = after_attempt(health, outcome, now=now)
            count = waiting[number][1] + 1
            again = next_attempt(now, attempts=count, random_share=rng.random())
            if outcome.error is None:
                delivered.add(number)
                del waiting[number]
            elif again is None:
                failed.add(number)
                del waiting[number]
            else:
                waiting[number] = (again, count)
        assert not is_to_be_disabled(health, now=now)
        now += timedelta(seconds=30)
    assert failed == set()
    assert waiting == {}
    assert delivered == set(range(made))
