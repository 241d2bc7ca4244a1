"""The rate of a campaign: at most 61 minutes' worth in any hour, whatever the queue, the provider and the worker do."""

import random
from bisect import bisect_left
from datetime import UTC, datetime, timedelta

import pytest

from regulars.campaigns.run.feed import Rate
from regulars.campaigns.run.queries import DueCampaign

BEGUN = datetime(2026, 11, 17, tzinfo=UTC)
HOURS = 4


def campaign(*, tokens=0.0, queued=0, at_s=0.0):
    at = BEGUN + timedelta(seconds=at_s)
    empty = DueCampaign(*[None] * len(DueCampaign._fields))
    return empty._replace(tokens=tokens, tokens_at=at, tokens_queued=queued)


def tokens_after(seconds, *, per_hour, tokens=0.0, queued=0):
    return Rate.at(campaign(tokens=tokens, queued=queued), per_hour, BEGUN + timedelta(seconds=seconds)).tokens


def test_a_rate_never_saves_more_than_a_minute():
    assert tokens_after(30, per_hour=3_600) == 30
    assert tokens_after(30, per_hour=3_600, tokens=50) == 60
    assert tokens_after(10**6, per_hour=3_600) == 60
    assert tokens_after(10**6, per_hour=1) == 1
    # Texts that waited are a part of the minute.
    assert tokens_after(10**6, per_hour=3_600, queued=45) == 15
    assert tokens_after(10**6, per_hour=3_600, queued=99) == 0


@pytest.mark.parametrize("per_hour", [60, 3_600, 20_000])
def test_no_hour_has_more_than_61_minutes_worth(per_hour):
    """A worker that stops and starts, and a provider that hangs and then takes everything at once."""
    chance = random.Random(per_hour)
    row, queued, at_s = campaign(), 0, 0.0
    left: list[float] = []
    while at_s < HOURS * 3_600:
        at_s += chance.choice([1] * 2_000 + [5, 60, 700])
        # What was queued may leave long before the next feeding, just before it, or not at all.
        leaving = chance.choice([0, queued, queued])
        left += [at_s] * leaving
        queued -= leaving
        rate = Rate.at(row, per_hour, BEGUN + timedelta(seconds=at_s))
        fed = max(0, min(256, int(rate.capacity) - queued, int(rate.tokens)))
        queued += fed
        row = campaign(tokens=rate.tokens - fed, queued=queued, at_s=at_s)
    most = max(number - bisect_left(left, at - 3_600) + 1 for number, at in enumerate(left))
    assert most <= 61 * per_hour / 60
    assert most > per_hour / 3


@pytest.mark.parametrize("per_hour", [30, 600, 20_000])
def test_a_provider_that_keeps_up_gets_nearly_the_whole_rate(per_hour):
    row, at_s, left = campaign(), 0.0, 0
    while at_s < HOURS * 3_600:
        rate = Rate.at(row, per_hour, BEGUN + timedelta(seconds=at_s))
        fed = int(rate.tokens)
        # It is fed again when a token is there, and a second after a text was queued.
        row = campaign(tokens=rate.tokens - fed, queued=fed, at_s=at_s)
        left += fed
        at_s += 1 if fed else max(1.0, (1 - rate.tokens) / rate.per_second)
    assert left > 0.97 * HOURS * per_hour - 1
