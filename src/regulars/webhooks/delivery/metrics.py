"""Metrics of webhook deliveries: outcomes of attempts, the longest wait, and the number of failing endpoints."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from regulars.kit.clock import monotonic
from regulars.kit.metrics import Gauge, Metrics
from regulars.webhooks.delivery.schedule import AttemptOutcome

# The wait of an organization is dropped if no pass of the queue has reported it for this long.
OBSERVED_FOR_S: Final = 60.0


class DeliveryMetrics:
    """What one worker has observed about its own deliveries, so that no metric needs a database query."""

    def __init__(self, metrics: Metrics) -> None:
        self._counts: Counter[str] = Counter()
        self._failing: set[UUID] = set()
        # By organization: when its deliveries were last observed, and how long the oldest had waited then.
        self._waiting: dict[UUID, tuple[float, float]] = {}
        meaning = "Attempts to deliver, by how they ended."
        for gauge in (
            Gauge("regulars_webhook_deliveries_total", meaning, "outcome", self._outcomes, is_counter=True),
            # The name before 0.2, for dashboards that still read it; the release after removes it.
            Gauge("regulars_webhook_deliveries", meaning, "outcome", self._outcomes),
            Gauge("regulars_webhook_oldest_seconds", "How long the oldest due delivery waits.", "", self._longest_wait),
            Gauge("regulars_webhook_endpoints_failing", "Endpoints whose last attempt failed.", "", self._fail_count),
        ):
            metrics.add_gauge(gauge)

    def count(self, outcomes: Iterable[AttemptOutcome | None]) -> None:
        self._counts.update(_name_outcome(outcome) for outcome in outcomes if outcome is not None)

    def set_failing(self, endpoint_id: UUID, *, is_failing: bool) -> None:
        (self._failing.add if is_failing else self._failing.discard)(endpoint_id)

    def set_waits(self, organization_id: UUID, waits: Sequence[timedelta]) -> None:
        if waits:
            self._waiting[organization_id] = (monotonic(), max(waits).total_seconds())
        else:
            self._waiting.pop(organization_id, None)

    def _outcomes(self) -> dict[str, float]:
        return dict(self._counts)

    def _longest_wait(self) -> dict[str, float]:
        now = monotonic()
        self._waiting = {
            organization_id: observed
            for organization_id, observed in self._waiting.items()
            if now - observed[0] < OBSERVED_FOR_S
        }
        return {"": max((now - observed_at + wait for observed_at, wait in self._waiting.values()), default=0.0)}

    def _fail_count(self) -> dict[str, float]:
        return {"": float(len(self._failing))}


def _name_outcome(outcome: AttemptOutcome) -> str:
    if outcome.error is None:
        return "delivered"
    return "timed_out" if outcome.is_timeout else "refused" if outcome.status is not None else "not_reached"
