"""An organization with campaigns and a journey whose credits and results are written as the queues would write them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
from tests.support import samples
from tests.support.client import Api
from tests.support.open_database import in_transaction

from regulars.attribution.model import Attributed
from regulars.attribution.month_sums import CREDITED
from regulars.attribution.month_tables import TotalKey
from regulars.campaigns.definition import Definition
from regulars.campaigns.manage import create_campaign
from regulars.columns.questions import LiftAnswer, LiftSums
from regulars.experiments.arms import Variant
from regulars.experiments.sums import ArmSums
from regulars.journeys.definition import Definition as JourneyDefinition
from regulars.journeys.definition import SendText
from regulars.journeys.manage import create_journey
from regulars.kit.db import Tx

THANKS = JourneyDefinition(name="Thank you", trigger="purchase", steps=(SendText(id="thanks", text="Thank you!"),))


def arm(people: int, buyers: int, euros: float) -> ArmSums:
    """Each buyer spent so much, and no customer anything in the year before."""
    cents = round(euros * 100)
    return ArmSums(people, buyers, buyers * cents, float(buyers * cents**2), 0, 0.0, 0.0)


@dataclass(frozen=True)
class ResultsShop:
    api: Api
    database_url: str
    store: str
    # Of campaigns and journeys by name, where a test keeps them.
    ids: dict[str, UUID] = field(default_factory=dict)
    # The day of its opening, because the tests may run past midnight.
    today: date = field(default_factory=lambda: datetime.now(UTC).date())

    @property
    def organization_id(self) -> UUID:
        assert self.api.tenant is not None
        return self.api.tenant.organization_id

    def do(self, work: Callable[[Tx], Awaitable[Any]]) -> Any:
        return in_transaction(self.database_url, work)

    def write(self, statement: Any, *values: Any) -> None:
        self.do(lambda tx: tx.execute(statement, (self.organization_id, *values)))

    def campaign(self, name: str, *, holdout_percent: int = 10) -> UUID:
        """One that has ended."""
        definition = Definition(
            name=name, include=(), variants=(Variant(text="Hello", share=100),), holdout_percent=holdout_percent
        )
        made = self.do(lambda tx: create_campaign(tx, self.organization_id, definition, created_by="ann@shop.example"))
        self.write(
            "UPDATE campaigns SET state = 'ended', frozen_at = now(), ended_at = now(), recipients = 10"
            " WHERE organization_id = %s AND id = %s",
            made.row.id,
        )
        return made.row.id

    def journey(self) -> UUID:
        made = self.do(lambda tx: create_journey(tx, self.organization_id, THANKS, created_by="ann@shop.example"))
        return made.row.id

    def attribute(
        self, kind: str, origin: UUID, cents: int, *, days: int = 20, currency: str = "EUR", step: str = ""
    ) -> None:
        """Net of one ticket, and a text of one part to France, so many days ago."""
        day = self.today - timedelta(days=days)
        sums = {TotalKey(day, kind, origin, step, currency): Attributed(1, cents + 500, cents)}
        self.do(lambda tx: CREDITED.add(tx, self.organization_id, sums.items()))
        self.send(kind, origin, days=days, step=step)

    def send(
        self, kind: str, origin: UUID, *, days: int = 20, step: str = "", country: str = "FR", texts: int = 100
    ) -> None:
        """Texts of two parts; once for a day, step and country."""
        day = self.today - timedelta(days=days)
        for table, first, more in (("sent_texts", day, ", true"), ("sent_text_months", day.replace(day=1), "")):
            self.write(
                f"INSERT INTO {table} VALUES (%s, %s, %s, %s, %s, %s, %s, %s{more})"  # noqa: S608  # names above
                " ON CONFLICT (organization_id, day, origin_kind, origin_id, step, country) DO NOTHING",
                first, kind, origin, step, country, texts, 2 * texts,
            )  # fmt: skip

    def sell(self, customer: str | None, cents: int, at: str, **changes: Any) -> str:
        """A ticket of one product; gives its number."""
        line = samples.line(total_price_cents=cents, unit_price_cents=cents, tax_cents=0)
        who = {} if customer is None else {"profile_id": customer}
        sale = samples.sale(
            self.store, occurred_at=at, total_amount_cents=cents, total_tax_cents=0, line_items=[line], **who, **changes
        )
        answer = self.api.post("/v1/sales-events", sale)
        assert answer.status == 201, answer.body
        return str(sale["external_id"])

    def measure(
        self,
        kind: str,
        source: UUID,
        treated: ArmSums | None,
        held_out: ArmSums | None = None,
        *,
        state: str = "final",
        days: int = 20,
        currency: str = "EUR",
        step: str = "",
        period: str = "",
        sent_days: int = 1,
    ) -> None:
        """The texts leave on `sent_days` days and one more, and the window closes seven days after the last."""
        first = self.today - timedelta(days=days)
        last = first + timedelta(days=sent_days + 7)
        result = None
        if treated is not None and held_out is not None:
            answer = LiftAnswer(
                as_of=datetime.now(UTC),
                treated=treated.people,
                held_out=held_out.people,
                sums=(LiftSums(currency, treated, held_out, (-1.0, 1.0)),),
            )
            result = msgspec.json.encode(answer).decode()
        self.write(
            "INSERT INTO lifts (organization_id, kind, source_id, step, period, state, held_out_share, window_days,"
            " first_day, last_day, frozen_on, as_of, result) VALUES (%s, %s, %s, %s, %s, %s, 0.1, 7, %s, %s, %s, now(), %s)",
            kind, source, step, period, state, first, last, first, result,
        )  # fmt: skip


def open_results(api: Api, database_url: str) -> ResultsShop:
    store = samples.store(name="Paris")
    assert api.post("/v1/stores", store).status == 201
    return ResultsShop(api, database_url, store["external_id"])
