from collections.abc import Callable
from uuid import UUID

import pytest

from regulars.http import rate_limit
from regulars.http.rate_limit import RateLimiter
from regulars.kit.errors import RateLimited

KEY, OTHER = UUID(int=1), UUID(int=2)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(rate_limit, "monotonic", clock)
    return clock


def headers(act: Callable[[], tuple[tuple[bytes, bytes], ...]]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in act()}


def refusal(limiter: RateLimiter, **options: int) -> dict[str, str]:
    with pytest.raises(RateLimited) as caught:
        limiter.take(KEY, **options)
    return headers(lambda: caught.value.headers)


def test_a_bucket_gives_its_burst_and_then_as_much_as_flows_in(clock):
    limiter = RateLimiter(per_s=10, burst=20)
    remaining = [headers(lambda: limiter.take(KEY))["ratelimit-remaining"] for _ in range(20)]
    assert remaining == [str(number) for number in range(19, -1, -1)]
    assert refusal(limiter) == {
        "ratelimit-limit": "10",
        "ratelimit-remaining": "0",
        "ratelimit-reset": "2",
        "retry-after": "1",
    }
    clock.now += 0.1
    limiter.take(KEY)
    refusal(limiter)
    clock.now += 1000
    assert headers(lambda: limiter.take(KEY))["ratelimit-remaining"] == "19"


def test_keys_have_buckets_of_their_own(clock):
    limiter = RateLimiter(per_s=1, burst=1)
    limiter.take(KEY)
    refusal(limiter)
    limiter.take(OTHER)


def test_a_refusal_takes_nothing_and_says_when_it_is_worth_trying(clock):
    limiter = RateLimiter(per_s=10, burst=100)
    limiter.take(KEY)
    limiter.take(KEY, tokens=60)
    for _ in range(5):
        assert refusal(limiter, tokens=60)["retry-after"] == "3"
    clock.now += 3
    limiter.take(KEY, tokens=60)


def test_a_batch_larger_than_the_burst_passes_when_the_bucket_is_full(clock):
    """The request itself has taken its token before its batch is decoded and charged for."""
    for burst in (1, 2, 100):
        limiter = RateLimiter(per_s=10, burst=burst)
        limiter.take(KEY)
        limiter.take(KEY, tokens=499)
        refusal(limiter)
        clock.now += 1000
        limiter.take(KEY)
        limiter.take(KEY, tokens=499)


def test_each_process_takes_its_share(clock):
    limiter = RateLimiter(per_s=100, burst=200, processes=4)
    taken = 0
    while True:
        try:
            shown = headers(lambda: limiter.take(KEY))
        except RateLimited:
            break
        taken += 1
    assert taken == 50
    assert shown["ratelimit-limit"] == "100"
    clock.now += 1
    for _ in range(25):
        limiter.take(KEY)
    refusal(limiter)


def test_zero_switches_the_limit_and_its_headers_off(clock):
    limiter = RateLimiter(per_s=0, burst=0)
    assert all(limiter.take(KEY, tokens=500) == () for _ in range(10))


def test_buckets_that_are_full_again_are_forgotten_and_the_others_kept(clock, monkeypatch):
    monkeypatch.setattr(rate_limit, "BUCKETS_MAX", 100)
    limiter = RateLimiter(per_s=1, burst=2)
    for number in range(100):
        limiter.take(UUID(int=number + 10))
    clock.now += 1
    limiter.take(KEY)
    limiter.take(KEY)
    assert len(limiter._buckets) == 1
    for number in range(99):
        limiter.take(UUID(int=number + 10))
    clock.now += 1.5
    limiter.take(OTHER)
    assert set(limiter._buckets) == {KEY, OTHER}
    limiter.take(KEY)
    refusal(limiter)
