"""Simulate one customer's run from a moment of the past on. No I/O: the history has all that followed.

Every step is decided by the code that decides for live runs (`runs/decide.py`). This module adds what surrounds a live
run: when it is woken, whether the gate lets its text through, and which event ends it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from regulars.catalog.model import day_of
from regulars.conditions.customers import Customer
from regulars.conditions.evaluation import Evaluator
from regulars.consent.numbers import TextNumber
from regulars.journeys.backtest.history import Story
from regulars.journeys.check import find_unjudgeable
from regulars.journeys.context import Seen
from regulars.journeys.definition import Definition
from regulars.journeys.model import SaleRow
from regulars.journeys.program import program_of
from regulars.journeys.runs.decide import WITHDRAWN, Position, Progress, RunContext, RunSubject, find_exit, go_on
from regulars.journeys.snapshot import ticket_of, unasked_customer
from regulars.messaging.gate import GateContext, SendNow, Skip, decide
from regulars.messaging.model import EXPIRES_AFTER, Reason
from regulars.messaging.number_location import locate_number
from regulars.messaging.request import compose_for, reason_to_skip
from regulars.messaging.settings.store import Texting
from regulars.messaging.template import MissingValue

STILL_WAITING: Final = "still waiting"


@dataclass(slots=True, kw_only=True)
class Stage:
    """What all customers share."""

    journey_id: UUID
    definition: Definition
    texting: Texting
    evaluator: Evaluator
    now: datetime
    suppressed: set[bytes] = field(default_factory=set)
    # As they are now: who was in a segment earlier is not known.
    customers: Mapping[UUID, Customer] = field(default_factory=dict)
    unjudgeable: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.unjudgeable = find_unjudgeable(self.definition, self.evaluator.known)

    def seen(self, story: Story, sale: SaleRow | None, moment: datetime) -> Seen:
        person, zone = story.person, self.evaluator.known.zone
        current = replace(self.customers.get(person.id) or unasked_customer(person), attributes=person.attributes)
        return Seen(
            now=moment,
            evaluator=self.evaluator,
            customer=story.customer_at(moment, current, zone),
            current=current,
            today=day_of(self.now, zone),
            ticket=ticket_of(sale),
            is_subscribed=story.number_at(moment) is not None,
            unjudgeable=self.unjudgeable,
        )


class Text(NamedTuple):
    """What became of a text, and when; without a reason it was sent."""

    at: datetime
    reason: str | None
    parts: int = 0


class Played(NamedTuple):
    """`ended_at` is None for a run that waits for something still to come."""

    ended_at: datetime | None
    outcome: str
    texts: list[Text]


def play(stage: Stage, story: Story, sale: SaleRow | None, entered_at: datetime) -> Played:
    return _Run(stage, story, sale, entered_at).play()


class _Run:
    def __init__(self, stage: Stage, story: Story, sale: SaleRow | None, entered_at: datetime) -> None:
        self._stage = stage
        self._story = story
        self._sale = sale
        self._subject = RunSubject(
            journey_id=stage.journey_id,
            profile_id=story.person.id,
            definition=stage.definition,
            fact_kind="consent" if sale is None else "sale",
            since=entered_at,
        )
        # The moment that ends the run wherever it is by then.
        self._leaves = min(self._find_leaves(), default=None)
        self._texts: list[Text] = []

    def play(self) -> Played:
        """From one moment at which the run is looked at to the next."""
        position, at = Position(program_of(self._stage.definition).first), self._subject.since
        while at <= self._stage.now:
            if self._leaves is not None and self._leaves[0] <= at:
                return Played(*self._leaves, self._texts)
            progress = go_on(self._subject, position, self._context(at))
            self._story.person.attributes.update(progress.changes)
            if progress.outcome is not None:
                return Played(at, progress.outcome, self._texts)
            position, at = progress.position, self._next_look(progress, at)
        return Played(None, STILL_WAITING, self._texts)

    def _find_leaves(self) -> Iterator[tuple[datetime, str]]:
        since = self._subject.since
        left = find_exit(self._stage.definition, self._story.sales, since=since, entry=self._sale)
        if left is not None:
            yield left
        withdrawn_at = self._story.first_withdrawal(after=since)
        if withdrawn_at is not None:
            yield withdrawn_at, WITHDRAWN

    def _context(self, at: datetime) -> RunContext:
        stage, story = self._stage, self._story
        number = story.number_at(at)
        return RunContext(
            seen=stage.seen(story, self._sale, at),
            person=story.person,
            sale=self._sale,
            sales=story.recorded_by(at, but=None if self._sale is None else self._sale.id),
            phone_number=None if number is None else number.phone_number,
            brand=stage.texting.brand,
        )

    def _next_look(self, progress: Progress, at: datetime) -> datetime:
        """When something wakes the run: the end of its wait, a purchase, the end of its text, or what ends it."""
        moments = [] if progress.due_at is None else [progress.due_at]
        if progress.position.waits_for == "purchase":
            moments += [it.created_at for it in self._story.sales if it.type == "PURCHASE" and it.created_at > at]
        if progress.text is not None:
            moments = [self._text(progress.text.words, at)]
        if self._leaves is not None:
            moments.append(self._leaves[0])
        return min(moments)

    def _text(self, words: str | MissingValue, at: datetime) -> datetime:
        """When the text has ended one way or another. A run that leaves before takes its text with it."""
        number = self._story.number_at(at)
        text = self._judge(words, number, at)
        if self._leaves is not None and at < self._leaves[0] <= text.at:
            text = Text(self._leaves[0], Reason.LEFT.value)
        if text.at <= self._stage.now:
            self._texts.append(text)
            if text.reason is None and number is not None:
                self._story.texted.setdefault(number.number_hash, []).append(text.at)
        return text.at

    def _judge(self, words: str | MissingValue, number: TextNumber | None, at: datetime) -> Text:
        """The gate at every moment at which it would have looked; one beyond now is not decided yet."""
        stage = self._stage
        composed = compose_for(words, number, stage.texting)
        reason = reason_to_skip(words, number, composed)
        if reason is not None or number is None:
            return Text(at, reason)
        location = locate_number(number.phone_number)
        moment = at
        while moment <= stage.now:
            candidate = GateContext(
                is_exempt=False,
                profile_id=self._story.person.id,
                expires_at=at + EXPIRES_AFTER,
                location=location,
                is_country_set=stage.texting.notice_of(location.country) is not None,
                is_subscribed=self._story.may_text(number.number_hash, moment),
                linked_profile_id=self._story.person.id,
                is_suppressed=number.number_hash in stage.suppressed,
                rule=stage.texting.settings.rule_of(location.country or ""),
                earlier=self._story.texted.get(number.number_hash, ()),
            )
            decision = decide(candidate, stage.texting.settings.caps, moment)
            if isinstance(decision, SendNow):
                return Text(moment, None, composed.measured.parts)
            if isinstance(decision, Skip):
                return Text(moment, decision.reason.value)
            moment = decision.until
        return Text(moment, None)
