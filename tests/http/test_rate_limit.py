import os
import signal
from collections.abc import Callable
from uuid import UUID

import pytest

from regulars.http import rate_limit
from regulars.http.rate_limit import SLOTS_TRIED, RateLimiter
from regulars.kit.errors import RateLimited
from regulars.kit.shared_memory import BLOCK_BYTES, map_block, new_block

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


def refusal(limiter: RateLimiter, *, key: UUID = KEY, **options: int) -> dict[str, str]:
    with pytest.raises(RateLimited) as caught:
        limiter.take(key, **options)
    return headers(lambda: caught.value.headers)


def test_a_bucket_gives_its_burst_and_then_as_much_as_flows_in(clock):
    limiter = RateLimiter(per_s=10, burst=20)
    remaining = [headers(lambda: limiter.take(KEY))["ratelimit-remaining"] for _ in range(20)]
    assert remaining == [str(number) for number in range(19, -1, -1)]
    assert refusal(limiter) == {
        "ratelimit-limit": "20",
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


def test_processes_count_together(clock):
    block = map_block(None)
    one, other = (RateLimiter(per_s=100, burst=200, block=block) for _ in range(2))
    for number in range(200):
        shown = headers(lambda: (one if number % 3 else other).take(KEY))  # noqa: B023  # called at once
        assert shown["ratelimit-limit"] == "200"
        assert shown["ratelimit-remaining"] == str(199 - number)
    refusal(one)
    refusal(other)
    clock.now += 1
    for _ in range(50):
        one.take(KEY)
        other.take(KEY)
    refusal(one)
    refusal(other)


def test_a_process_that_died_in_the_middle_changes_nothing_for_the_others():
    """Real processes on one block; one is killed, and a new one finds the bucket as it was left."""
    descriptor = new_block()
    limiter = RateLimiter(per_s=1, burst=10_000, block=map_block(descriptor))
    taken = [take_in_another_process(descriptor) for _ in range(3)]
    assert taken == [2_000, 2_000, 2_000]
    # Beyond these the bucket has gained as many as seconds have passed.
    assert 3_999 <= int(headers(lambda: limiter.take(KEY))["ratelimit-remaining"]) < 5_000


def take_in_another_process(descriptor: int) -> int:
    """Take two thousand tokens and be killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        limiter = RateLimiter(per_s=1, burst=10_000, block=map_block(descriptor))
        for _ in range(2_000):
            limiter.take(KEY)
        os.write(writing, b"2000")
        signal.pause()
    os.close(writing)
    taken = int(os.read(reading, 4))
    os.close(reading)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return taken


def test_the_figures_stay_within_the_burst(clock):
    """Whatever the rate and the burst: thirds of a second must not round a token away, nor make one up."""
    for per_s, burst in ((3, 7), (7, 3), (999, 1_000), (1_000_000, 2)):
        limiter = RateLimiter(per_s=per_s, burst=burst)
        for round_ in range(50):
            clock.now += 1000.1
            for number in range(burst if burst < 10 else 3):
                shown = headers(lambda: limiter.take(KEY))  # noqa: B023  # called at once
                assert shown["ratelimit-limit"] == str(burst)
                assert shown["ratelimit-remaining"] == str(burst - 1 - number), (per_s, burst, round_)


def test_zero_switches_the_limit_and_its_headers_off(clock):
    limiter = RateLimiter(per_s=0, burst=0)
    assert all(limiter.take(KEY, tokens=500) == () for _ in range(10))


def test_of_more_keys_than_there_is_room_for_those_that_are_full_again_make_way(clock):
    limiter = RateLimiter(per_s=1, burst=2)
    # Keys that all begin at one slot; they have eight between them.
    crowd = [UUID(int=KEY.int + number * limiter._starts) for number in range(SLOTS_TRIED)]
    for key in crowd:
        limiter.take(key)
        limiter.take(key)
    for key in crowd:
        refusal(limiter, key=key)
    clock.now += 1
    # Seven are used up again and the last is the one that is nearest to full.
    for key in crowd[:-1]:
        limiter.take(key)
    newcomer = UUID(int=KEY.int + SLOTS_TRIED * limiter._starts)
    limiter.take(newcomer)
    limiter.take(newcomer)
    refusal(limiter, key=newcomer)
    for key in crowd[:-1]:
        refusal(limiter, key=key)


def test_memory_does_not_grow_with_the_keys(clock):
    block = map_block(None)
    limiter = RateLimiter(per_s=1000, burst=2000, block=block)
    for number in range(100_000):
        limiter.take(UUID(int=number * 0x9E3779B97F4A7C15))
    assert len(block) == BLOCK_BYTES
    assert {name for name, value in vars(limiter).items() if isinstance(value, dict | list)} == set()
