"""Play a definition over the recorded facts of the last days: who would have entered, and what would have been sent.

Customers are independent of each other, their numbers too: a number is linked to one of them. So facts are read in
pages only to learn whose they are, and each customer's story is played once, in the order of time.
"""

from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from regulars.catalog.model import day_of
from regulars.conditions.evaluation import Evaluator
from regulars.journeys.backtest import queries
from regulars.journeys.backtest.history import Story, load_stories
from regulars.journeys.backtest.report import Report
from regulars.journeys.backtest.simulation import Stage, play
from regulars.journeys.context import CannotJudge, judge
from regulars.journeys.definition import Definition
from regulars.journeys.errors import NotPossible
from regulars.journeys.manage import load_journey, refuse_faults
from regulars.journeys.model import RecordedRow, SaleRow
from regulars.journeys.program import FILTER
from regulars.journeys.runs.enter import TRIGGERS, Arrival, arrival_of_sale, may_enter_again
from regulars.journeys.snapshot import find_sales, load_asked_customers, load_known
from regulars.kit.clock import start_of_last
from regulars.kit.db import Tx
from regulars.messaging.find import find_suppressed
from regulars.messaging.settings.store import Texting

DAYS_MAX: Final = 90
FACTS_MAX: Final = 100_000
# Facts older than seven days when they were recorded bring no customer in.
TOO_OLD: Final = "too old"
_PAGE: Final = 200
_KINDS: Final = {trigger: kind for kind, trigger in TRIGGERS.items()}
_NO_ID: Final = UUID(int=0)


async def backtest(
    tx: Tx,
    organization_id: UUID,
    journey_id: UUID,
    *,
    texting: Texting,
    days: int,
    version: int | None = None,
    facts_max: int = FACTS_MAX,
) -> Report:
    """Of a saved version. The transaction is made read-only: nothing can be written by it from here on."""
    await queries.forbid_writes(tx)
    if not 1 <= days <= DAYS_MAX:
        raise NotPossible(f"A backtest plays 1 to {DAYS_MAX} days.")
    journey = await load_journey(tx, organization_id, journey_id, version=version)
    refuse_faults(journey)
    return await play_definition(
        tx,
        organization_id,
        journey_id,
        journey.definition,
        version=version or journey.row.version,
        texting=texting,
        days=days,
        facts_max=facts_max,
    )


async def play_definition(
    tx: Tx,
    organization_id: UUID,
    journey_id: UUID,
    definition: Definition,
    *,
    version: int,
    texting: Texting,
    days: int,
    facts_max: int = FACTS_MAX,
    tell: Callable[[int], None] | None = None,
) -> Report:
    """Of any definition that can run, saved or not; `tell` hears how many facts were played."""
    await queries.forbid_writes(tx)
    player = await _Player.begin(
        tx, organization_id, journey_id, definition, texting=texting, days=days, version=version
    )
    done: set[UUID] = set()
    async for page in player.pages(facts_max):
        await player.play_customers(page - done)
        done |= page
        if tell is not None:
            tell(player.report.facts)
    return player.report


@dataclass(slots=True)
class _Player:
    tx: Tx
    organization_id: UUID
    stage: Stage
    report: Report

    @classmethod
    async def begin(
        cls,
        tx: Tx,
        organization_id: UUID,
        journey_id: UUID,
        definition: Definition,
        *,
        texting: Texting,
        days: int,
        version: int,
    ) -> "_Player":
        known = await load_known(tx, organization_id, [definition])
        stage = Stage(
            journey_id=journey_id,
            definition=definition,
            texting=texting,
            evaluator=Evaluator(known),
            now=tx.now,
        )
        report = Report.begin(version, since=start_of_last(days, tx.now, known.zone), until=tx.now, zone=known.zone.key)
        return cls(tx, organization_id, stage, report)

    def pages(self, facts_max: int) -> AsyncIterator[set[UUID]]:
        kind = _KINDS.get(self.stage.definition.trigger)
        return self._consenting(facts_max) if kind is None else self._buying(kind, facts_max)

    async def play_customers(self, profile_ids: Collection[UUID]) -> None:
        """What conditions ask about reaches back as far as they look on the first day."""
        stories = await load_stories(self.tx, self.organization_id, profile_ids, since=self.report.since)
        hashes = {number.number_hash for story in stories for number in story.numbers}
        if hashes:
            self.stage.suppressed = await find_suppressed(self.tx, self.organization_id, hashes)
        known = self.stage.evaluator.known
        self.stage.customers = await load_asked_customers(
            self.tx,
            self.organization_id,
            [self.stage.definition],
            profile_ids,
            known=known,
            today=day_of(self.report.since, known.zone),
        )
        wanted = {sale.id for story in stories for sale in story.sales if self._is_trigger(sale)}
        sales = {sale.id: sale for sale in await find_sales(self.tx, self.organization_id, wanted)}
        for story in stories:
            self._play_customer(story, sales)

    def _play_customer(self, story: Story, sales: dict[UUID, SaleRow]) -> None:
        entered_at: datetime | None = None
        ended_at: datetime | None = None
        for arrival in self._arrivals(story, sales):
            at = arrival.recorded_at
            sale = None if arrival.sale_id is None else sales[arrival.sale_id]
            reason = self._reason_to_stay_out(story, sale, at, entered_at, ended_at)
            if reason is not None:
                self._stay_out(story, reason, at)
                continue
            played = play(self.stage, story, sale, at)
            entered_at, ended_at = at, played.ended_at
            self.report.day(at).entries += 1
            self.report.name("entries", story.person.id)
            for text in played.texts:
                day = self.report.day(text.at)
                self.report.name(text.reason or "texts", story.person.id)
                if text.reason is None:
                    day.texts += 1
                    day.parts += text.parts
                else:
                    day.skipped[text.reason] += 1
            if played.ended_at is None:
                self.report.still_waiting += 1
            else:
                self.report.outcomes[played.outcome] += 1

    def _stay_out(self, story: Story, reason: str, at: datetime) -> None:
        self.report.day(at).not_entered[reason] += 1
        self.report.name(reason, story.person.id)

    def _reason_to_stay_out(
        self,
        story: Story,
        sale: SaleRow | None,
        at: datetime,
        entered_at: datetime | None,
        ended_at: datetime | None,
    ) -> str | None:
        definition = self.stage.definition
        answer = judge(FILTER, definition.filter, self.stage.seen(story, sale, at))
        if isinstance(answer, CannotJudge):
            return "filter cannot be judged"
        if not answer:
            return "filter"
        if entered_at is not None and (ended_at is None or ended_at > at):
            return "already in it"
        return None if may_enter_again(definition.reentry, entered_at, at) else "reentry"

    def _arrivals(self, story: Story, sales: dict[UUID, SaleRow]) -> list[Arrival]:
        if self.stage.definition.trigger == "opt_in":
            found = list(story.consents())
        else:
            found = []
            for row in (sales[sale.id] for sale in story.sales if sale.id in sales):
                if (arrival := arrival_of_sale(row)) is not None:
                    found.append(arrival)
                else:
                    self._stay_out(story, TOO_OLD, row.created_at)
        within = [it for it in found if self.report.since <= it.recorded_at <= self.report.until]
        return sorted(within, key=lambda it: (it.recorded_at, it.id))

    def _is_trigger(self, sale: RecordedRow) -> bool:
        is_within = self.report.since <= sale.created_at <= self.report.until
        return is_within and TRIGGERS[sale.type] == self.stage.definition.trigger

    async def _buying(self, kind: str, facts_max: int) -> AsyncIterator[set[UUID]]:
        """Where there are too many sales, the first ones are played, and the report ends with them."""
        since = self.report.since
        beyond = await queries.find_first_sale_beyond(
            self.tx, self.organization_id, kind, since=since, skipped=facts_max
        )
        if beyond is not None:
            self.report.is_cut, self.report.until = True, beyond - timedelta(milliseconds=1)
        after = queries.first_id_since(since)
        while self.report.facts < facts_max:
            limit = min(_PAGE, facts_max - self.report.facts)
            rows = await queries.list_sales(self.tx, self.organization_id, kind, since=since, after=after, limit=limit)
            if not rows:
                return
            self.report.facts += len(rows)
            yield {profile_id for _, profile_id in rows}
            after = rows[-1][0]

    async def _consenting(self, facts_max: int) -> AsyncIterator[set[UUID]]:
        """Where too many numbers changed, the first ones are played."""
        after = (self.report.since - timedelta(milliseconds=1), _NO_ID)
        while True:
            rows = await queries.list_changed_subscriptions(
                self.tx, self.organization_id, after=after, limit=min(_PAGE, facts_max - self.report.facts + 1)
            )
            if self.report.facts + len(rows) > facts_max:
                self.report.is_cut, rows = True, rows[: facts_max - self.report.facts]
            if not rows:
                return
            self.report.facts += len(rows)
            yield {profile_id for _, _, profile_id in rows if profile_id is not None}
            after = rows[-1][:2]
