"""What pages show of endpoints and deliveries."""

from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from regulars.webhooks.delivery.schedule import DISABLED_AFTER
from regulars.webhooks.model import Endpoint

# So many deliveries are looked at for those that fit a filter no index knows.
LOOKED_AT_MAX: Final = 10_000


class Wanted(NamedTuple):
    endpoint_id: UUID | None = None
    state: str | None = None
    type: str | None = None


class LastDelivery(NamedTuple):
    state: str
    attempts: int
    answer_status: int | None
    attempted_at: datetime | None


class Waiting(NamedTuple):
    """Deliveries that wait, counted up to a bound; the last answer is among them."""

    many: int = 0
    oldest: datetime | None = None
    attempted_at: datetime | None = None
    answer_status: int | None = None


class Fare(NamedTuple):
    """How an endpoint fares."""

    endpoint: Endpoint
    last: list[LastDelivery]
    waiting: Waiting

    @property
    def is_failing(self) -> bool:
        return self.endpoint.state == "enabled" and self.endpoint.health.failing_since is not None

    @property
    def needs_a_person(self) -> bool:
        """It fails, was disabled because it failed, or waits for approval."""
        return self.is_failing or self.endpoint.disabled_by in {"receiver", "failures"} or self.endpoint.is_draft

    @property
    def word(self) -> str:
        if self.endpoint.is_draft:
            return "Waits for approval"
        if self.endpoint.state == "disabled":
            return "Disabled"
        if self.is_failing:
            return "Failing"
        return "Healthy" if self.endpoint.health.last_success_at is not None else "Not used yet"

    @property
    def disabled_on(self) -> datetime | None:
        """When it is given up if nothing succeeds until then."""
        since = self.endpoint.health.failing_since
        return since + DISABLED_AFTER if self.is_failing and since is not None else None

    @property
    def arrived(self) -> int:
        return sum(one.state == "delivered" for one in self.last)

    @property
    def last_answer(self) -> tuple[datetime, int | None] | None:
        """When an attempt ended last, and with which status; None as a status is no answer at all."""
        times = [(one.attempted_at, one.answer_status) for one in self.last]
        times.append((self.waiting.attempted_at, self.waiting.answer_status))
        known = [(at, status) for at, status in times if at is not None]
        return max(known, key=lambda one: one[0]) if known else None
