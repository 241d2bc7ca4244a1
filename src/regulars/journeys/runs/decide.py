"""Where a run goes from a moment: the one code that decides for live runs and for backtests. No I/O.

The caller looks up what the run may see at that moment and writes down, or counts, what was decided.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from regulars.journeys.context import CannotJudge, Seen, describe_context, judge, values_of
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
from regulars.journeys.model import PersonRow, RecordedRow, RecordedSale, SaleRow
from regulars.journeys.program import Node, needs_of, program_of
from regulars.journeys.runs.wait_times import after_wait, choose_zone, end_of_wait, next_local_time
from regulars.kit.errors import ValidationError
from regulars.messaging.model import EXPIRES_AFTER
from regulars.messaging.template import MissingValue, parse_template, render
from regulars.profiles.model import merge

# More than any definition has: a run that takes more in one pass goes in a circle, which cannot be.
STEPS_AT_ONCE_MAX: Final = 120
# A text ends within its time; if no fact says so, the run looks by itself a little later.
TEXT_ENDS_WITHIN: Final = EXPIRES_AFTER + timedelta(hours=1)
# No transaction that records a sale is open for longer, by far.
WRITES_LAST_MAX: Final = timedelta(minutes=15)
# How long a run waits at a branch that cannot be judged, and how often it looks: soon at first, then every hour.
FAULT_LASTS_MAX: Final = timedelta(days=30)
FAULT_LOOK_MIN: Final = timedelta(minutes=5)
FAULT_LOOK_MAX: Final = timedelta(hours=1)
EXITS: Final = {"purchase": "PURCHASE", "return": "RETURN"}

CUSTOMER_GONE: Final = "the customer is gone"
WITHDRAWN: Final = "left by a withdrawal"
NOT_JUDGED: Final = "the branch could not be judged for 30 days"

Attributes = Mapping[str, str]

_HUNDREDTHS: Final = 10_000


class RunSubject(NamedTuple):
    """What does not change about a run: whose it is, what it follows, and what brought the customer in."""

    journey_id: UUID
    profile_id: UUID
    definition: Definition
    fact_kind: str
    # When the fact was recorded.
    since: datetime


class Position(NamedTuple):
    """Where a run stands: the step to do next, or the one it waits in."""

    step: str | None
    waits_for: str | None = None
    waiting_since: datetime | None = None
    # While it waits for a purchase: the sales that were there when the wait began.
    seen_sales: Collection[UUID] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """What a run knows at a moment, `seen.now`."""

    seen: Seen
    person: PersonRow
    sale: SaleRow | None
    # The customer's other sales that were recorded since `looks_back_to`.
    sales: Sequence[RecordedRow]
    phone_number: str | None
    brand: str


class StepNote(NamedTuple):
    """One line of a trace."""

    step: str | None
    event: str
    detail: dict[str, Any]


class RequestedText(NamedTuple):
    step: str
    words: str | MissingValue


@dataclass(slots=True)
class Progress:
    """What a run decided: it waits where it stands until `due_at`, or it has ended with an outcome."""

    position: Position
    # The customer's attributes afterwards; `changes` are those that the run set.
    attributes: Attributes
    changes: dict[str, str] = field(default_factory=dict)
    due_at: datetime | None = None
    outcome: str | None = None
    reason: str | None = None
    text: RequestedText | None = None
    notes: list[StepNote] = field(default_factory=list)


def go_on(run: RunSubject, position: Position, context: RunContext) -> Progress:
    """Step after step until one waits, texts or ends the run."""
    return _Walk(run, position, context).go_on()


def end(position: Position, attributes: Attributes, outcome: str) -> Progress:
    progress = Progress(position, attributes, outcome=outcome)
    progress.notes.append(StepNote(position.step, "ended", {"outcome": outcome}))
    return progress


def looks_back_to(since: datetime, position: Position, now: datetime) -> datetime:
    """What a run needs to see of its customer's sales begins here."""
    waiting_since = position.waiting_since if position.waits_for == "purchase" else None
    return min(since, (waiting_since or now) - WRITES_LAST_MAX)


def find_exit(
    definition: Definition, sales: Iterable[RecordedSale], *, since: datetime, entry: RecordedSale | None
) -> tuple[datetime, str] | None:
    """The first sale after the fact that brought the customer in that ends the run: when it was recorded, and how.
    `entry` is that fact, if it was a sale."""
    kinds = {EXITS[it]: f"left by a {it}" for it in definition.exit_on}
    ending = [
        (sale.created_at, kinds[sale.type])
        for sale in sales
        if sale.type in kinds and (sale.created_at > since or (entry is not None and _follows(sale, entry)))
    ]
    return min(ending, default=None)


def _follows(sale: RecordedSale, entry: RecordedSale) -> bool:
    """Sales that were recorded together have one time: the one that happened first is first, then the one that came
    first."""
    return sale.created_at == entry.created_at and (sale.occurred_at, sale.id) > (entry.occurred_at, entry.id)


class _Walk:
    def __init__(self, run: RunSubject, position: Position, context: RunContext) -> None:
        self._run = run
        self._context = context
        self._seen = context.seen
        self._now = context.seen.now
        self._progress = Progress(position, context.person.attributes)

    def go_on(self) -> Progress:
        if self._run.fact_kind == "consent" and not self._seen.is_subscribed:
            # The withdrawal may have been published together with the consent, before there was a run to end.
            return self._end(WITHDRAWN)
        left = find_exit(self._run.definition, self._context.sales, since=self._run.since, entry=self._context.sale)
        if left is not None:
            return self._end(left[1])
        nodes = program_of(self._run.definition).nodes
        for _ in range(STEPS_AT_ONCE_MAX):
            step = self._progress.position.step
            node = nodes.get(step) if step is not None else None
            if node is None:
                return self._end("completed")
            self._do(node)
            if self._progress.due_at is not None or self._progress.outcome is not None:
                return self._progress
        raise AssertionError("a program without circles ends")

    def _do(self, node: Node) -> None:
        """One step: the run stands at its next step afterwards, or waits, or has ended."""
        match node.step:
            case Wait() | WaitUntil() as step:
                self._wait(node, step)
            case WaitForPurchase() as step:
                self._wait_for_purchase(node, step)
            case Branch() as step:
                self._branch(node, step)
            case Split(percent=percent):
                share = share_of(self._run.journey_id, self._run.profile_id)
                self._fork(node, is_then=share < percent, why={"share": share})
            case SendText() as step:
                self._text(node, step)
            case SetAttribute() as step:
                self._set_attribute(node, step)
            case Exit():
                self._end("exited")

    def _wait(self, node: Node, step: Wait | WaitUntil) -> None:
        """The end of a wait is reckoned once, from the moment the run came to it."""
        if self._progress.position.waits_for == "time":
            self._note(node, "went on", {})
            return self._to(node.next)
        due_at = (
            next_local_time(step, self._now, self._zone())
            if isinstance(step, WaitUntil)
            else after_wait(step, self._now)
        )
        self._note(node, "waits", {"until": due_at.isoformat()})
        return self._stay("time", due_at)

    def _wait_for_purchase(self, node: Node, step: WaitForPurchase) -> None:
        """What counts is a purchase that was not there when the wait began, whatever its transaction's own time: it may
        have begun before and committed after. One that is recorded later than the beginning counts although the rows
        were read later still."""
        position = self._progress.position
        is_new = position.waits_for != "purchase" or position.waiting_since is None
        since = self._now if is_new or position.waiting_since is None else position.waiting_since
        end = end_of_wait(step, since)
        if is_new:
            self._note(node, "waits", {"for": "a purchase", "until": end.isoformat()})
            seen = {sale.id for sale in self._context.sales if sale.created_at <= since}
        else:
            seen = set(position.seen_sales)
        if any(
            sale.type == "PURCHASE" and sale.id not in seen and since - WRITES_LAST_MAX < sale.created_at <= end
            for sale in self._context.sales
        ):
            return self._fork(node, is_then=True, why={"bought": True})
        if self._now >= end:
            return self._fork(node, is_then=False, why={"bought": False})
        self._progress.position = Position(position.step, "purchase", since, tuple(sorted(seen)))
        self._progress.due_at = end
        return None

    def _branch(self, node: Node, step: Branch) -> None:
        answer = judge(node.id, step.condition, self._seen)
        if not isinstance(answer, CannotJudge):
            segments = needs_of(self._run.definition).segments
            return self._fork(node, is_then=answer, why=describe_context(self._seen, step.condition, segments))
        position = self._progress.position
        since = position.waiting_since if position.waits_for == "fault" else None
        if since is None:
            self._note(node, "cannot judge", {"fault": answer.fault})
            return self._stay("fault", self._now + FAULT_LOOK_MIN)
        if self._now >= since + FAULT_LASTS_MAX:
            self._progress.reason = answer.fault
            self._end(NOT_JUDGED)
            return None
        pause = min(max((self._now - since) / 2, FAULT_LOOK_MIN), FAULT_LOOK_MAX)
        self._progress.due_at = min(self._now + pause, since + FAULT_LASTS_MAX)
        return None

    def _text(self, node: Node, step: SendText) -> None:
        if self._progress.position.waits_for == "text":
            # The run is woken when its text has ended, one way or another.
            return self._to(node.next)
        person = self._context.person._replace(attributes=dict(self._progress.attributes))
        values = values_of(person, self._context.sale, brand=self._context.brand)
        self._progress.text = RequestedText(node.id, render(parse_template(step.text), values))
        self._note(node, "texts", {})
        return self._stay("text", self._now + TEXT_ENDS_WITHIN)

    def _set_attribute(self, node: Node, step: SetAttribute) -> None:
        """Refused where the customer has too many attributes: the run goes on with what they have, and says so."""
        try:
            attributes = merge(dict(self._progress.attributes), {step.key: step.value})
        except ValidationError:
            self._note(node, "not set", {"key": step.key})
            return self._to(node.next)
        self._note(node, "set", {"key": step.key})
        self._progress.attributes = attributes
        self._progress.changes[step.key] = step.value
        # What the run has just set counts at its next branch, in segments too.
        self._seen = self._seen.with_attributes(attributes)
        return self._to(node.next)

    def _zone(self) -> str:
        sale = self._context.sale
        return choose_zone(self._context.phone_number, sale.country if sale else None, self._seen.zone)

    def _fork(self, node: Node, *, is_then: bool, why: dict[str, Any]) -> None:
        self._note(node, "then" if is_then else "else", why)
        self._to(node.then if is_then else node.otherwise)

    def _to(self, step: str | None) -> None:
        self._progress.position = Position(step)

    def _stay(self, waits_for: str, due_at: datetime) -> None:
        self._progress.position = Position(self._progress.position.step, waits_for, self._now)
        self._progress.due_at = due_at

    def _end(self, outcome: str) -> Progress:
        self._progress.outcome = outcome
        self._progress.notes.append(StepNote(self._progress.position.step, "ended", {"outcome": outcome}))
        return self._progress

    def _note(self, node: Node, event: str, detail: dict[str, Any]) -> None:
        self._progress.notes.append(StepNote(node.id, event, detail))


def share_of(journey_id: UUID, profile_id: UUID) -> float:
    """From 0 to 100, always the same for a customer and a journey."""
    digest = hashlib.sha256(journey_id.bytes + profile_id.bytes).digest()
    return int.from_bytes(digest[:8], "big") % _HUNDREDTHS / 100
