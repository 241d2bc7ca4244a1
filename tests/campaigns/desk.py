"""Drive campaigns in an organization of its own: queues are given turns by hand."""

import asyncio
import json
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.columns.fed_shop import FedShop
from tests.segments.test_members import answering

from regulars.campaigns import manage
from regulars.campaigns.confirmed_numbers import Cost
from regulars.campaigns.definition import Definition, read_definition
from regulars.campaigns.estimate import Estimate, estimate
from regulars.campaigns.model import CampaignRow, add_up
from regulars.campaigns.preview import Preview, PreviewedCustomers, preview
from regulars.campaigns.queries import find_campaigns
from regulars.campaigns.run.queue import CampaignQueue
from regulars.campaigns.run.start import StartQueue
from regulars.campaigns.totals import list_totals
from regulars.kit.db import Database
from regulars.kit.ids import SEGMENT
from regulars.segments.definition import read_definition as read_segment
from regulars.segments.saved.manage import create_segment
from regulars.work.outbox import OutboxQueue
from regulars.worker import LISTENERS

REACHABLE = {"type": "consent", "state": "may_be_texted"}
OUR_LISTENERS = {
    kind: {
        name: it
        for name, it in by_name.items()
        if name.startswith(("segments.", "catalog.", "campaigns.", "attribution."))
    }
    for kind, by_name in LISTENERS.items()
}


def definition(segment: str, **more: Any) -> Definition:
    given = {"name": "Sale", "include": [segment], "variants": [{"text": "Hello"}], **more}
    return read_definition(json.dumps(given).encode())


class Desk(FedShop):
    def __init__(self, runner: asyncio.Runner, database: Database, path: Path) -> None:
        super().__init__(runner, database)
        self.path = path
        self.campaigns = CampaignQueue()
        self.people: dict[str, UUID] = {}
        self.reachable = self.segment(REACHABLE)

    # What a marketer does.

    def segment(self, *conditions: dict[str, Any], name: str = "Everybody") -> str:
        match = {"type": "all", "of": list(conditions)}
        given = read_segment(json.dumps({"name": name, "match": match}).encode())
        made = self.do(lambda tx: create_segment(tx, self.organization_id, given))
        return SEGMENT.encode(made.row.id)

    def draft(self, **more: Any) -> UUID:
        given = definition(more.pop("segment", self.reachable), **more)
        return self.do(
            lambda tx: manage.create_campaign(tx, self.organization_id, given, created_by="ann@shop.example")
        ).row.id

    def faults(self, **more: Any) -> list[tuple[str, str]]:
        given = definition(self.reachable, **more)
        found = self.do(lambda tx: manage.check_definition(tx, self.organization_id, given))
        return [(fault.place, fault.message) for fault in found]

    def act(self, act: Any, campaign_id: UUID, *, now: datetime | None = None, **more: Any) -> CampaignRow:
        return self.do(
            lambda tx: act(tx, self.organization_id, campaign_id, **{"by": "ann@shop.example", **more}), now=now
        )

    def send(self, *, recipients: int | None = None, cost: Cost | None = None, **more: Any) -> UUID:
        """A campaign whose audience is frozen, unless it was refused."""
        campaign_id = self.draft(**more)
        confirmed = len(self.people) if recipients is None else recipients
        self.act(manage.schedule, campaign_id, confirmed_recipients=confirmed, confirmed_cost=cost, is_now=True)
        self.drain()
        self.start()
        return campaign_id

    def load(self, campaign_id: UUID) -> manage.Campaign:
        return self.do(lambda tx: manage.load_campaign(tx, self.organization_id, campaign_id))

    def estimate(self, *, with_spend: bool = False, **more: Any) -> Estimate:
        given = definition(more.pop("segment", self.reachable), **more)

        async def run() -> Estimate:
            async with answering(self, self.path) as analysis:
                return await estimate(self.database, analysis, self.organization_id, given, with_spend=with_spend)

        return self.runner.run(run())

    def preview(
        self, which: PreviewedCustomers, *, variant: int = 1, hidden: str | None = None, **more: Any
    ) -> list[Preview]:
        given = definition(more.pop("segment", self.reachable), **more)

        async def run() -> list[Preview]:
            async with answering(self, self.path) as analysis:
                return await preview(
                    self.database, analysis, self.organization_id, given, which, variant=variant, hidden=hidden
                )

        return self.runner.run(run())

    def load_row(self, campaign_id: UUID) -> CampaignRow:
        """Of a campaign whose definition cannot be read."""
        [row] = self.do(lambda tx: find_campaigns(tx, self.organization_id, [campaign_id]))
        return row

    # The customers.

    def crowd(self, count: int, **attributes: str) -> list[UUID]:
        """Customers who may be texted, each with a number."""
        made = self.customers(count, first=len(self.people), **attributes)
        self.people |= made
        self.drain()
        self.build()
        return [*made.values()]

    def person(self, name: str, phone: str, first_name: str | None = None) -> None:
        """Such a customer with a number and a name of the test's own."""
        self.people[name] = self.customer(name, phone=phone, first_name=first_name)
        self.opt_in(name, phone)

    # What the worker does.

    def drain(self) -> None:
        self.turn(OutboxQueue(OUR_LISTENERS))

    def start(self) -> None:
        """Freeze the audiences of campaigns that are due."""

        async def run() -> None:
            async with answering(self, self.path) as analysis:
                queue = StartQueue(analysis)
                await queue.run_pass(self.database, self.organization_id)
                await queue.finish()

        self.runner.run(run())

    def feed(self) -> None:
        """Until nothing is due now."""
        self.turn(self.campaigns)

    def work(self) -> None:
        """Until the campaigns that can be sent are sent."""
        for _ in range(10):
            self.alter(
                "UPDATE campaigns SET due_at = now() - interval '1 s' WHERE organization_id = %s AND state = 'sending'"
            )
            self.feed()
            self.turn(self.texts_queue)
            self.drain()

    # What came of it.

    def outcomes(self, campaign_id: UUID, *, gone: int = 0) -> dict[str, int]:
        """The outcomes that occur, as the totals count them. The rows of recipients say the same, but for erased ones
        and `gone`, whose outcome was final when they were erased."""
        totals = self.do(lambda tx: list_totals(tx, self.organization_id, campaign_id))
        counted = {outcome: times for outcome, times in add_up(totals).items() if times}
        rows = self.sql(
            "SELECT outcome, count(*) FROM campaign_recipients WHERE organization_id = %s AND campaign_id = %s"
            " GROUP BY outcome",
            campaign_id,
        )
        erased = counted.get("erased", 0) + gone
        assert sum(counted.values()) == sum(times for _, times in rows) + erased
        assert gone or erased or counted == dict(rows)
        return counted

    def texts(self, campaign_id: UUID) -> list[tuple[str, str | None]]:
        return self.sql(
            "SELECT state, reason FROM texts WHERE organization_id = %s AND origin_id = %s ORDER BY id", campaign_id
        )
