"""Labels, URLs and formats for the templates about webhooks; and the endpoint whose id is in a page's URL."""

from typing import Final
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.etag import etag_of
from regulars.kit.ids import WEBHOOK, WEBHOOK_DELIVERY
from regulars.web.errors import PageNotFound
from regulars.web.format import NOTHING, Format
from regulars.web.visit import Visit
from regulars.webhooks.find import find_status
from regulars.webhooks.model import Delivery, Endpoint, EndpointStatus

PATH: Final = "/webhooks"
DELIVERIES: Final = f"{PATH}/deliveries"
NO_ENDPOINT: Final = "This organization has no such endpoint."
BAR_STEP_PX: Final = 5
_BADGE_KINDS: Final = {
    "Healthy": "live",
    "Failing": "failing",
    "Disabled": "blocked",
    "Not used yet": "pending",
    "Waits for approval": "warn",
}
# From this duration on, seconds are shown instead of milliseconds.
_SECONDS_FROM_MS: Final = 10_000


def part_of(endpoint: Endpoint) -> object:
    """What users edit of an endpoint, and what they approve."""
    return endpoint.url, endpoint.description, sorted(endpoint.event_types)


class WebhookView:
    """Labels and URLs for templates, in the user's formats."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit

    @staticmethod
    def short_url(url: str) -> str:
        """Return a URL without its scheme."""
        return url.partition("://")[2]

    @staticmethod
    def etag(endpoint: Endpoint) -> str:
        """Identifies where the endpoint sends which events."""
        return etag_of(part_of(endpoint))

    @staticmethod
    def badge_kind(status: EndpointStatus) -> str:
        return _BADGE_KINDS[status.label]

    @staticmethod
    def bars(status: EndpointStatus) -> list[tuple[int, str]]:
        """Return a bar for each of the last deliveries, oldest at the left: its position and its CSS class."""
        kinds = {"delivered": "c1", "failed": "c4", "pending": "past", "cancelled": "past"}
        oldest_first = reversed(status.last_deliveries)
        bars = ["c4" if row.state == "pending" and row.attempts else kinds[row.state] for row in oldest_first]
        return [(number * BAR_STEP_PX, kind) for number, kind in enumerate(bars)]

    @staticmethod
    def response_badge(delivery: Delivery) -> tuple[str, str]:
        """Return the text and the kind of the badge for the last response to a delivery."""
        if delivery.state == "cancelled":
            return "Cancelled", "blocked"
        if delivery.state == "delivered":
            return str(delivery.answer_status or "Delivered"), "yes"
        if not delivery.attempts:
            return "Not tried yet", "pending"
        return str(delivery.answer_status or "No response"), "failing"

    def duration(self, milliseconds: int | None) -> str:
        if milliseconds is None:
            return NOTHING
        formats: Format = self._visit.format
        if milliseconds >= _SECONDS_FROM_MS:
            return f"{formats.number(milliseconds // 1000)} s"
        return f"{formats.number(milliseconds)} ms"

    def endpoint_url(self, endpoint_id: UUID, *segments: str) -> str:
        return self._visit.url(PATH, WEBHOOK.encode(endpoint_id), *segments)

    def delivery_url(self, delivery_id: UUID, *segments: str) -> str:
        return self._visit.url(DELIVERIES, WEBHOOK_DELIVERY.encode(delivery_id), *segments)


async def find_endpoint_in_path(tx: Tx, visit: Visit) -> EndpointStatus:
    """Return the endpoint whose id is in the page's URL; raises PageNotFound."""
    status = await find_status(tx, visit.organization_id, WEBHOOK.decode(visit.references[0]))
    if status is None:
        raise PageNotFound(NO_ENDPOINT)
    return status
