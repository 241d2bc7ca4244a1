"""A token bucket per API key, in memory: each process takes its share of the limit."""

from dataclasses import dataclass
from math import ceil
from uuid import UUID

from regulars.kit.clock import monotonic
from regulars.kit.errors import RateLimited

BUCKETS_MAX = 10_000

Headers = tuple[tuple[bytes, bytes], ...]


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_at: float


class RateLimiter:
    """`per_s` = 0 switches the limit off, and its headers with it."""

    def __init__(self, *, per_s: int, burst: int, processes: int = 1) -> None:
        self._per_s = per_s / processes
        self._burst = max(burst / processes, 1.0)
        self._limit = str(per_s).encode()
        self._buckets: dict[UUID, _Bucket] = {}

    def take(self, api_key_id: UUID, *, tokens: int = 1) -> Headers:
        """Take tokens and give the headers of the answer, or raise RateLimited and take nothing."""
        if self._per_s == 0:
            return ()
        now = monotonic()
        bucket = self._buckets.get(api_key_id)
        if bucket is None:
            if len(self._buckets) >= BUCKETS_MAX:
                self._forget_full_buckets(now)
            bucket = self._buckets[api_key_id] = _Bucket(self._burst, now)
        else:
            bucket.tokens = min(self._burst, bucket.tokens + (now - bucket.filled_at) * self._per_s)
            bucket.filled_at = now
        # A batch larger than the whole burst must not be refused forever: a bucket that was full before the request
        # took its own token lets it pass.
        price = min(tokens, self._burst - 1) if tokens > 1 else 1
        if bucket.tokens < price:
            wait_s = max(1, ceil((price - bucket.tokens) / self._per_s))
            raise RateLimited(
                "The key has used up its requests for the moment; wait as long as Retry-After says.",
                headers=(*self._headers(bucket), (b"retry-after", b"%d" % wait_s)),
            )
        bucket.tokens -= price
        return self._headers(bucket)

    def _headers(self, bucket: _Bucket) -> Headers:
        full_in_s = ceil((self._burst - bucket.tokens) / self._per_s)
        return (
            (b"ratelimit-limit", self._limit),
            (b"ratelimit-remaining", b"%d" % bucket.tokens),
            (b"ratelimit-reset", b"%d" % full_in_s),
        )

    def _forget_full_buckets(self, now: float) -> None:
        """A bucket that has filled up again says nothing that a new one would not."""
        self._buckets = {
            key: bucket
            for key, bucket in self._buckets.items()
            if bucket.tokens + (now - bucket.filled_at) * self._per_s < self._burst
        }
