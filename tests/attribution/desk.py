"""Drive attribution in an organization of its own: queues are given turns by hand."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from tests.columns.fed_shop import FedShop

from regulars.attribution.credits import find_credits
from regulars.attribution.jobs import CustomerQueue, RecomputeQueue
from regulars.attribution.model import Credit
from regulars.texts.facts import MessagesChanged
from regulars.work import outbox
from regulars.work.outbox import OutboxQueue
from regulars.worker import LISTENERS

OUR_LISTENERS = {
    kind: {name: it for name, it in by_name.items() if name.startswith("attribution.")}
    for kind, by_name in LISTENERS.items()
}
SUMS = """SELECT day, origin_kind, origin_id, step, currency, count(*), sum(gross_cents), sum(net_cents), sum(unmatched_cents)
FROM attributed_sales WHERE organization_id = %s GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
"""
TOTALS = """SELECT day, origin_kind, origin_id, step, currency, tickets, gross_cents, net_cents, unmatched_cents
FROM attribution_totals WHERE organization_id = %s AND tickets <> 0 ORDER BY 1, 2, 3, 4, 5
"""
MONTH_SUMS = SUMS.replace("SELECT day", "SELECT date_trunc('month', day)::date")
MONTHS = TOTALS.replace("attribution_totals", "attribution_months")


class Desk(FedShop):
    def drain(self) -> None:
        self.turn(OutboxQueue(OUR_LISTENERS))

    def compute(self) -> None:
        """Hand over the facts that wait, and compute what is due. The totals are the sums of the credits."""
        self.turn(RecomputeQueue())
        self.drain()
        # The first customers of an organization are computed twice.
        for _ in range(2):
            self.alter("UPDATE attribution_customers SET due_at = now() - interval '1 s' WHERE organization_id = %s")
            self.turn(CustomerQueue())
        assert self.sql(TOTALS) == self.sql(SUMS)
        assert self.sql(MONTHS) == self.sql(MONTH_SUMS)

    def announce(self, text_ids: Iterable[UUID], *, previous_state: str = "sending") -> None:
        """That texts changed, as their sender does; recorded only where there is interest."""
        rows = self.sql(
            "SELECT id, origin_kind, origin_id, step, profile_id, state FROM texts"
            " WHERE organization_id = %s AND id = ANY (%s::uuid[])",
            list(text_ids),
        )
        facts = [MessagesChanged("text", *row, previous_state=previous_state) for row in rows]
        self.do(lambda tx: outbox.record(tx, self.organization_id, facts))

    @property
    def zone_info(self) -> ZoneInfo:
        return ZoneInfo(self.zone)

    def buy(self, name: str | None, amount: int = 1000, *, ago: float = 0, product: str = "A", **more: Any) -> UUID:
        """A ticket with one line, some hours ago; gives its id."""
        line = {"product": {"external_id": product}, "total_price_cents": amount}
        self.sale(name, amount=amount, ago=timedelta(hours=ago), lines=[line], **more)
        [(identifier,)] = self.sql("SELECT id FROM sales_events WHERE organization_id = %s ORDER BY id DESC LIMIT 1")
        return identifier

    def bring_back(self, name: str, amount: int = 1000, *, ago: float = 0, **more: Any) -> UUID:
        return self.buy(name, amount, ago=ago, kind="RETURN", **more)

    def credits(self) -> dict[UUID, Credit]:
        rows = self.sql("SELECT sale_id FROM attributed_sales WHERE organization_id = %s")
        return self.do(lambda tx: find_credits(tx, self.organization_id, [row[0] for row in rows]))

    def credit(self, sale_id: UUID) -> Credit | None:
        return self.credits().get(sale_id)

    def last_text(self) -> UUID:
        [(identifier,)] = self.sql("SELECT id FROM texts WHERE organization_id = %s ORDER BY id DESC LIMIT 1")
        return identifier
