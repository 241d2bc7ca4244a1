"""Decide when a delivery is retried and, by the health of its endpoint, how many a worker claims at once; no I/O."""

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from regulars.work.queue import Schedule

# The waits after the first attempt, which is made at once: nine more attempts, over at least 75 hours and 35 minutes.
_HOUR_S: Final = 3600
RETRIES: Final = Schedule(
    waits_s=(5, 300, 1800, 2 * _HOUR_S, 5 * _HOUR_S, 10 * _HOUR_S, 14 * _HOUR_S, 20 * _HOUR_S, 24 * _HOUR_S),
    jitter=0.1,
)
RETRY_AFTER_MAX: Final = timedelta(hours=24)

# How many deliveries are sent to one endpoint at the same time.
CONNECTIONS_PER_ENDPOINT_MAX: Final = 8
# For a healthy endpoint a worker claims more deliveries than it may send at once, so that it need not wait for the next
# claim when the first deliveries end.
CLAIMED_MAX: Final = 32
# After this many failures and this long without a success, an endpoint gets only one delivery (a probe) at a time.
PROBES_AFTER_FAILURES: Final = 20
PROBES_AFTER: Final = timedelta(minutes=15)
PROBE_EVERY: Final = timedelta(minutes=5)
DISABLED_AFTER: Final = timedelta(days=5)
GONE: Final = 410


class AttemptOutcome(NamedTuple):
    """How one attempt ended. Without an error it is a success."""

    error: str | None
    status: int | None = None
    duration_ms: int = 0
    response: str | None = None
    retry_after: timedelta | None = None
    is_timeout: bool = False

    @property
    def is_gone(self) -> bool:
        return self.status == GONE


class Health(NamedTuple):
    """The results of the last attempts at an endpoint."""

    failures: int = 0
    failing_since: datetime | None = None
    last_success_at: datetime | None = None
    is_slow: bool = False
    probe_at: datetime | None = None


def next_attempt(
    now: datetime, *, attempts: int, retry_after: timedelta | None = None, random_share: float
) -> datetime | None:
    """Return when to retry after this many failed attempts; None after the last one. The receiver may request a later
    time with `Retry-After`. `random_share` (0 to 1) scales the jitter."""
    due_at = RETRIES.due_at(now, attempts=attempts, random_share=random_share)
    if due_at is None or retry_after is None:
        return due_at
    return max(due_at, now + min(retry_after, RETRY_AFTER_MAX))


def after_attempt(health: Health, outcome: AttemptOutcome, *, now: datetime) -> Health:
    """Return the health of an endpoint after one more attempt."""
    if outcome.error is None:
        return Health(last_success_at=now)
    failures = health.failures + 1
    failing_since = health.failing_since or now
    no_success_since = health.last_success_at or failing_since
    is_probed = failures >= PROBES_AFTER_FAILURES and now - no_success_since >= PROBES_AFTER
    return Health(
        failures=failures,
        failing_since=failing_since,
        last_success_at=health.last_success_at,
        is_slow=outcome.is_timeout,
        probe_at=now + PROBE_EVERY if is_probed else None,
    )


def is_to_be_disabled(health: Health, *, now: datetime) -> bool:
    """Return whether all attempts of the last five days failed; a success resets the time of the first failure."""
    return health.failing_since is not None and now - health.failing_since >= DISABLED_AFTER


def claims_max(health: Health, *, now: datetime) -> int:
    """Return how many deliveries of an endpoint may be claimed at a time.

    If the last attempt failed, as many as are sent at once. If it timed out, or no attempt has succeeded yet, one: a
    receiver that hangs must not block several connections while other endpoints wait. If an endpoint fails again and
    again, one when its next probe is due.
    """
    if health.probe_at is not None:
        return 1 if health.probe_at <= now else 0
    if health.is_slow or health.last_success_at is None:
        return 1
    return CLAIMED_MAX if health.failures == 0 else CONNECTIONS_PER_ENDPOINT_MAX
