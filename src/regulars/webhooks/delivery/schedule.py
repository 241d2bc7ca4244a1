"""When a delivery is retried, and how many deliveries an endpoint gets depending on its health; no I/O."""

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

AT_ONCE_MAX: Final = 8
# A healthy endpoint gets more claims than it may have in flight, so that the next ones are ready when the first end.
CLAIMED_MAX: Final = 32
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
    """When to retry after this many failed attempts; None after the last one. The receiver may request a later time
    with `Retry-After`. `random_share` (0 to 1) scales the jitter."""
    due_at = RETRIES.due_at(now, attempts=attempts, random_share=random_share)
    if due_at is None or retry_after is None:
        return due_at
    return max(due_at, now + min(retry_after, RETRY_AFTER_MAX))


def after_attempt(health: Health, outcome: AttemptOutcome, *, now: datetime) -> Health:
    if outcome.error is None:
        return Health(last_success_at=now)
    failures = health.failures + 1
    failing_since = health.failing_since or now
    no_success_since = health.last_success_at or failing_since
    probes = failures >= PROBES_AFTER_FAILURES and now - no_success_since >= PROBES_AFTER
    return Health(
        failures=failures,
        failing_since=failing_since,
        last_success_at=health.last_success_at,
        is_slow=outcome.is_timeout,
        probe_at=now + PROBE_EVERY if probes else None,
    )


def is_to_be_disabled(health: Health, *, now: datetime) -> bool:
    """Whether all attempts of the last five days failed; a success resets the time of the first failure."""
    return health.failing_since is not None and now - health.failing_since >= DISABLED_AFTER


def claims_max(health: Health, *, now: datetime) -> int:
    """How many deliveries of an endpoint may be claimed at a time.

    An endpoint whose last attempt failed gets as many as may be in flight. An endpoint that timed out, or had no
    success yet, gets one: a receiver that hangs must not block more than one connection while others wait. An endpoint
    that fails again and again gets one when its next probe is due.
    """
    if health.probe_at is not None:
        return 1 if health.probe_at <= now else 0
    if health.is_slow or health.last_success_at is None:
        return 1
    return CLAIMED_MAX if health.failures == 0 else AT_ONCE_MAX
