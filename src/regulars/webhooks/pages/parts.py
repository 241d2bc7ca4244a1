"""What the pages about webhooks share."""

from typing import Final
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.ids import WEBHOOK, WEBHOOK_DELIVERY
from regulars.web.errors import PageNotFound
from regulars.web.format import NOTHING, Format
from regulars.web.visit import Visit
from regulars.webhooks.browse.listing import read_fare
from regulars.webhooks.browse.model import Fare
from regulars.webhooks.model import Delivery

PATH: Final = "/webhooks"
DELIVERIES: Final = f"{PATH}/deliveries"
BAR_STEP: Final = 5
_KINDS: Final = {
    "Healthy": "live",
    "Failing": "failing",
    "Disabled": "blocked",
    "Not used yet": "pending",
    "Waits for approval": "warn",
}
_MINUTE_S: Final = 60
_HOUR_S: Final = 3_600
_DAY_S: Final = 86_400
_SLOW_MS: Final = 10_000


class Shown:
    """Words and addresses for templates, bound to the reader."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit

    @staticmethod
    def host(url: str) -> str:
        """An address without its scheme, as people say it."""
        return url.partition("://")[2]

    @staticmethod
    def kind(fare: Fare) -> str:
        return _KINDS[fare.word]

    @staticmethod
    def bars(fare: Fare) -> list[tuple[int, str]]:
        """The last deliveries as small bars, the oldest at the left; what waits is pale."""
        kinds = {"delivered": "c1", "failed": "c4", "pending": "past", "cancelled": "past"}
        shown = ["c4" if one.state == "pending" and one.attempts else kinds[one.state] for one in reversed(fare.last)]
        return [(place * BAR_STEP, kind) for place, kind in enumerate(shown)]

    @staticmethod
    def answer(delivery: Delivery) -> tuple[str, str]:
        """The word and the kind of badge of what came of a delivery last."""
        if delivery.state == "cancelled":
            return "Cancelled", "blocked"
        if delivery.state == "delivered":
            return str(delivery.answer_status or "Delivered"), "yes"
        if not delivery.attempts:
            return "Waits", "pending"
        return str(delivery.answer_status or "No answer"), "failing"

    def took(self, milliseconds: int | None) -> str:
        if milliseconds is None:
            return NOTHING
        formats: Format = self._visit.format
        if milliseconds >= _SLOW_MS:
            return f"{formats.number(milliseconds // 1000)} s"
        return f"{formats.number(milliseconds)} ms"

    def endpoint_url(self, endpoint_id: UUID, *more: str) -> str:
        return self._visit.url(PATH, WEBHOOK.encode(endpoint_id), *more)

    def delivery_url(self, delivery_id: UUID, *more: str) -> str:
        return self._visit.url(DELIVERIES, WEBHOOK_DELIVERY.encode(delivery_id), *more)

    @staticmethod
    def wait(seconds: float) -> str:
        """A wait in its own unit: `5 s`, `30 min`, `2 h`."""
        for unit, length in (("h", _HOUR_S), ("min", _MINUTE_S)):
            if seconds >= length:
                return f"{int(seconds // length)} {unit}"
        return f"{int(seconds)} s"


async def referred_fare(tx: Tx, visit: Visit) -> Fare:
    """The endpoint of the address."""
    fare = await read_fare(tx, visit.organization_id, WEBHOOK.decode(visit.references[0]))
    if fare is None:
        raise PageNotFound("This organization has no such endpoint.")
    return fare
