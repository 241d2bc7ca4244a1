"""One customer's way through a definition, from a moment of the past on. No I/O: the story knows what followed."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from regulars.journeys.backtest.story import Story
from regulars.journeys.chance import share_of
from regulars.journeys.check import segments_of
from regulars.journeys.conditions import Seen, Types, holds
from regulars.journeys.definition import (
    Branch,
    Definition,
    Exit,
    SendText,
    SetAttribute,
    Split,
    Wait,
    WaitForPurchase,
    WaitUntil,
)
from regulars.journeys.program import Node, program_of
from regulars.journeys.runs.advance import EXITS
from regulars.journeys.runs.when import after_wait, choose_zone, end_of_wait, next_local_time
from regulars.journeys.runs.words import values_of
from regulars.journeys.sight.look import conditions_of, seen_sale, seen_segments, windows_of
from regulars.journeys.sight.model import SaleRow
from regulars.messaging.model import EXPIRES_AFTER, Candidate, Send, Skip, decide
from regulars.messaging.places import place_of
from regulars.messaging.request import compose_for, reason_to_skip
from regulars.messaging.settings.store import Texting
from regulars.messaging.template import Missing, parse_template, render
from regulars.segments.explain.why import Memberships

STILL_WAITING: Final = "still waiting"


@dataclass(slots=True, kw_only=True)
class Stage:
    """What all customers share."""

    journey_id: UUID
    definition: Definition
    texting: Texting
    attribute_types: Types
    property_types: Types
    zone: str
    now: datetime
    suppressed: set[bytes] = field(default_factory=set)
    # As they are now: who was in a segment earlier is not known.
    memberships: Memberships = field(default_factory=lambda: Memberships({}, set()))

    def seen(self, story: Story, sale: SaleRow | None, moment: datetime) -> Seen:
        return Seen(
            now=moment,
            zone=self.zone,
            sale=None if sale is None else seen_sale(sale),
            attributes=story.person.attributes,
            attribute_types=self.attribute_types,
            property_types=self.property_types,
            is_subscribed=story.number_at(moment) is not None,
            purchases={
                days: story.count_purchases(
                    since=moment - timedelta(days=days), recorded_by=moment, but=None if sale is None else sale.id
                )
                for days in windows_of(conditions_of(self.definition))
            },
            segments=seen_segments(self.memberships, story.person.id, segments_of(self.definition)),
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
        self._sale_id = None if sale is None else sale.id
        self._leaves = min(self._find_leaves(entered_at), default=None)
        self._at = entered_at
        self._texts: list[Text] = []

    def play(self) -> Played:
        program = program_of(self._stage.definition)
        step = program.first
        while True:
            if self._leaves is not None and self._leaves[0] <= self._at:
                return Played(*self._leaves, self._texts)
            if self._at > self._stage.now:
                return Played(None, STILL_WAITING, self._texts)
            node = None if step is None else program.nodes[step]
            if node is None or isinstance(node.step, Exit):
                return Played(self._at, "completed" if node is None else "exited", self._texts)
            step = self._do(node)

    def _find_leaves(self, entered_at: datetime) -> Iterator[tuple[datetime, str]]:
        """The moments that end the run wherever it is by then."""
        for name in self._stage.definition.exit_on:
            moment = self._story.first_sale(EXITS[name], after=entered_at, but=self._sale_id)
            if moment is not None:
                yield moment, f"left by a {name}"
        withdrawn_at = self._story.first_withdrawal(after=entered_at)
        if withdrawn_at is not None:
            yield withdrawn_at, "left by a withdrawal"

    def _do(self, node: Node) -> str | None:
        """The next step; the clock of the run has gone on to when it comes there."""
        stage, story = self._stage, self._story
        match node.step:
            case Wait() as step:
                self._at = after_wait(step, self._at)
            case WaitUntil() as step:
                self._at = next_local_time(step, self._at, self._zone())
            case WaitForPurchase() as step:
                return self._wait_for_purchase(node, step)
            case Branch(condition=condition):
                is_then = holds(condition, stage.seen(story, self._sale, self._at))
                return node.then if is_then else node.otherwise
            case Split(percent=percent):
                return node.then if share_of(stage.journey_id, story.person.id) < percent else node.otherwise
            case SendText(text=text):
                self._text(text)
            case SetAttribute(key=key, value=value):
                story.person.attributes[key] = value
            case Exit():
                raise AssertionError("an exit is no step to go on from")
        return node.next

    def _zone(self) -> str:
        number = self._story.number_at(self._at)
        country = None if self._sale is None else self._sale.country
        return choose_zone(None if number is None else number.phone_number, country, self._stage.zone)

    def _wait_for_purchase(self, node: Node, step: WaitForPurchase) -> str | None:
        end = end_of_wait(step, self._at)
        bought_at = self._story.first_sale("PURCHASE", after=self._at, but=self._sale_id)
        is_bought = bought_at is not None and bought_at <= end
        self._at = bought_at if bought_at is not None and is_bought else end
        return node.then if is_bought else node.otherwise

    def _text(self, template: str) -> None:
        """The run goes on when the text has ended one way or another."""
        values = values_of(self._story.person, self._sale, brand=self._stage.texting.brand)
        words = render(parse_template(template), values)
        text = self._judge(words)
        if text.at <= self._stage.now:
            self._texts.append(text)
        self._at = text.at

    def _judge(self, words: str | Missing) -> Text:
        """The gate at every moment at which it would have looked; one beyond now is not decided yet."""
        stage = self._stage
        number = self._story.number_at(self._at)
        composed = compose_for(words, number, stage.texting)
        reason = reason_to_skip(words, number, composed)
        if reason is not None or number is None:
            return Text(self._at, reason)
        place = place_of(number.phone_number)
        earlier = self._story.texted.setdefault(number.number_hash, [])
        moment = self._at
        while moment <= stage.now:
            candidate = Candidate(
                is_exempt=False,
                profile_id=self._story.person.id,
                expires_at=self._at + EXPIRES_AFTER,
                place=place,
                is_country_set=stage.texting.notice_of(place.country) is not None,
                is_subscribed=self._story.may_text(number.number_hash, moment),
                linked_profile_id=self._story.person.id,
                is_suppressed=number.number_hash in stage.suppressed,
                rule=stage.texting.settings.rule_of(place.country or ""),
                earlier=earlier,
            )
            decision = decide(candidate, stage.texting.settings.caps, moment)
            if isinstance(decision, Send):
                earlier.append(moment)
                return Text(moment, None, composed.measured.parts)
            if isinstance(decision, Skip):
                return Text(moment, decision.reason.value)
            moment = decision.until
        return Text(moment, None)
