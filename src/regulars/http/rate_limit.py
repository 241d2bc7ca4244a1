"""Limit the rate of requests per API key by a token bucket, which all server processes of a machine share.

The buckets are in shared memory. A bucket is one number, the time at which it will be full again: refilling needs no
write, an idle bucket needs no slot, and a process that dies leaves no inconsistent state. There is no lock. If two
processes take a token from one bucket within the same microsecond, one token is not counted; if there are more keys
than slots, the bucket nearest to full is replaced. Both errors are small and favour the caller.
"""

from math import ceil
from uuid import UUID

from regulars.kit.clock import monotonic
from regulars.kit.errors import Headers, RateLimited
from regulars.kit.shared_memory import map_block

# The bucket of a key is in one of this many adjacent slots. A slot has a tag (the last 64 bits of the API key's id) and
# the time at which the bucket is full, in seconds.
SLOTS_TRIED = 8
_SLOT_BYTES = 16
_TAG_BITS = (1 << 64) - 1
# Rounding error of sums of seconds, in tokens.
_ROUNDING = 0.01


class RateLimiter:
    """The rate limiter of all API keys; `per_s` = 0 switches off the limit and its headers. `block` is the shared
    memory; without it, the buckets are in the memory of this process."""

    def __init__(self, *, per_s: int, burst: int, block: memoryview | None = None) -> None:
        self._per_s = per_s
        self._burst = max(burst, 1)
        self._limit = b"%d" % self._burst
        block = map_block(None) if block is None else block
        # The number of slots at which a search may start.
        self._starts = len(block) // _SLOT_BYTES - SLOTS_TRIED
        # Two views of the same memory: even indexes are tags, odd ones are times.
        self._tags = block.cast("Q")
        self._full_times = block.cast("d")

    def take(self, api_key_id: UUID, *, tokens: int = 1) -> Headers:
        """Take tokens and return the headers of the response, or raise RateLimited and take nothing."""
        if self._per_s == 0:
            return ()
        now = monotonic()
        index = self._find(api_key_id.int & _TAG_BITS)
        full_at = self._full_times[index]
        tokens_left = self._burst - (full_at - now) * self._per_s if full_at > now else self._burst
        # A batch larger than the whole burst must not be refused forever: it is accepted if the bucket was full before
        # the request took its first token.
        cost = min(tokens, self._burst - 1) if tokens > 1 else 1
        if tokens_left + _ROUNDING < cost:
            wait_s = max(1, ceil((cost - tokens_left - _ROUNDING) / self._per_s))
            raise RateLimited(
                "The key has used up its requests for the moment; wait as long as Retry-After says.",
                headers=(*self._headers(tokens_left), (b"retry-after", b"%d" % wait_s)),
            )
        self._full_times[index] = max(now, full_at) + cost / self._per_s
        return self._headers(tokens_left - cost)

    def refund(self, api_key_id: UUID) -> None:
        """Put back the token of a request, because it is counted a second time."""
        if self._per_s:
            self._full_times[self._find(api_key_id.int & _TAG_BITS)] -= 1 / self._per_s

    def _find(self, tag: int) -> int:
        """Return the index in `_full_times` of the bucket with this tag, which is added if it is missing."""
        start = tag % self._starts * 2
        if self._tags[start] == tag:
            return start + 1
        slots = range(start, start + SLOTS_TRIED * 2, 2)
        for slot in slots:
            if self._tags[slot] == tag:
                return slot + 1
        # Use the slot that was never used, or whose bucket has been full for the longest time.
        slot = min(slots, key=lambda slot: self._full_times[slot + 1])
        self._full_times[slot + 1] = 0.0
        self._tags[slot] = tag
        return slot + 1

    def _headers(self, tokens_left: float) -> Headers:
        return (
            (b"ratelimit-limit", self._limit),
            (b"ratelimit-remaining", b"%d" % max(0.0, tokens_left + _ROUNDING)),
            (b"ratelimit-reset", b"%d" % ceil((self._burst - tokens_left - _ROUNDING) / self._per_s)),
        )
