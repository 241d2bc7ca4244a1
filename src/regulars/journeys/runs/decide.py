"""Decides how far a run advances at a time, for live runs and for backtests. No I/O.

The caller loads the context of the run at that time, and saves or counts the decisions.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from regulars.journeys import definition as steps
from regulars.journeys.context import CannotJudge, EvaluationContext, describe_context, judge, template_variables
from regulars.journeys.model import PersonRow, RecordedRow, RecordedSale, SaleRow
from regulars.journeys.program import ProgramNode, program_of, references_of
from regulars.journeys.runs.wait_times import after_wait, choose_zone, end_of_wait, next_local_time
from regulars.kit.errors import ValidationError
from regulars.messaging.model import EXPIRES_AFTER
from regulars.messaging.template import MissingValue, render_text
from regulars.profiles.model import merge

# More than any definition has, so reaching it would mean a cycle, which a program cannot have.
STEPS_AT_ONCE_MAX: Final = 120
# A text has expired by then. If no change of the text was recorded, the run continues after this time.
TEXT_ENDS_WITHIN: Final = EXPIRES_AFTER + timedelta(hours=1)
# An upper bound on how long a transaction that records a sale is open.
WRITES_LAST_MAX: Final = timedelta(minutes=15)
# How long a run waits at a branch that cannot be evaluated, and how often it retries: soon at first, then hourly.
FAULT_LASTS_MAX: Final = timedelta(days=30)
FAULT_RETRY_MIN: Final = timedelta(minutes=5)
FAULT_RETRY_MAX: Final = timedelta(hours=1)
EXITS: Final = {"purchase": "PURCHASE", "return": "RETURN"}

CUSTOMER_GONE: Final = "the customer is gone"
WITHDRAWN: Final = "left by a withdrawal"
NOT_JUDGED: Final = "the branch could not be judged for 30 days"

Attributes = Mapping[str, str]

_HUNDREDTHS: Final = 10_000


class RunSubject(NamedTuple):
    """The constant part of a run: the customer, the definition, and the sale or consent (fact) that started it."""

    journey_id: UUID
    profile_id: UUID
    definition: steps.Definition
    fact_kind: str
    # When the sale or consent was recorded.
    since: datetime
    # Whether each split hashes customers with its own salt. In old versions all splits divide the customers
    # identically.
    salts_splits: bool = True


class Position(NamedTuple):
    """The step that a run takes next, or waits at."""

    step: str | None
    waits_for: str | None = None
    waiting_since: datetime | None = None
    # While the run waits for a purchase: the sales that existed when the wait began.
    seen_sales: Collection[UUID] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """The data for the decisions of a run at a time, which is `evaluation.now`."""

    evaluation: EvaluationContext
    person: PersonRow
    sale: SaleRow | None
    # The customer's other sales that were recorded since `sales_needed_since`.
    sales: Sequence[RecordedRow]
    phone_number: str | None
    brand: str


class StepEvent(NamedTuple):
    """One line of a trace."""

    step: str | None
    event: str
    detail: dict[str, Any]


class HoldoutPass(NamedTuple):
    """The run passed a split that holds `percent` percent of the customers out."""

    step: str
    percent: int
    is_held_out: bool


class RequestedMessage(NamedTuple):
    step: str
    rendered: str | MissingValue
    has_personal_links: bool = False


@dataclass(slots=True)
class RunProgress:
    """The result of advancing a run: the run waits at its position until `due_at`, or has ended with an outcome. The
    caller sends the text and writes the changes, events and passes."""

    position: Position
    # The customer's attributes afterwards; `changes` are those that the run set.
    attributes: Attributes
    changes: dict[str, str] = field(default_factory=dict)
    due_at: datetime | None = None
    outcome: str | None = None
    reason: str | None = None
    text: RequestedMessage | None = None
    events: list[StepEvent] = field(default_factory=list)
    holdouts: list[HoldoutPass] = field(default_factory=list)


def advance(run: RunSubject, position: Position, context: RunContext) -> RunProgress:
    """Take steps until one waits, requests a text or ends the run."""
    return _StepRunner(run, position, context).advance()


def end(position: Position, attributes: Attributes, outcome: str) -> RunProgress:
    progress = RunProgress(position, attributes, outcome=outcome)
    progress.events.append(StepEvent(position.step, "ended", {"outcome": outcome}))
    return progress


def sales_needed_since(since: datetime, position: Position, now: datetime) -> datetime:
    """The time since which the run needs the recorded sales of the customer."""
    waiting_since = position.waiting_since if position.waits_for == "purchase" else None
    return min(since, (waiting_since or now) - WRITES_LAST_MAX)


def find_exit(
    definition: steps.Definition, sales: Iterable[RecordedSale], *, since: datetime, entry: RecordedSale | None
) -> tuple[datetime, str] | None:
    """The first sale after the start of the run that ends it: when it was recorded, and the outcome.
    `entry` is the sale that started the run, if it was a sale."""
    kinds = {EXITS[it]: f"left by a {it}" for it in definition.exit_on}
    ending = [
        (sale.created_at, kinds[sale.type])
        for sale in sales
        if sale.type in kinds and (sale.created_at > since or (entry is not None and _follows(sale, entry)))
    ]
    return min(ending, default=None)


def _follows(sale: RecordedSale, entry: RecordedSale) -> bool:
    """Sales recorded in one transaction have the same recording time; they are ordered by occurrence, then by id."""
    return sale.created_at == entry.created_at and (sale.occurred_at, sale.id) > (entry.occurred_at, entry.id)


class _StepRunner:
    def __init__(self, run: RunSubject, position: Position, context: RunContext) -> None:
        self._run = run
        self._context = context
        self._evaluation = context.evaluation
        self._now = context.evaluation.now
        self._progress = RunProgress(position, context.person.attributes)

    def advance(self) -> RunProgress:
        if self._run.fact_kind == "consent" and not self._evaluation.is_subscribed:
            # The withdrawal may have been published together with the consent, before there was a run to end.
            return self._end(WITHDRAWN)
        exit_ = find_exit(self._run.definition, self._context.sales, since=self._run.since, entry=self._context.sale)
        if exit_ is not None:
            return self._end(exit_[1])
        nodes = program_of(self._run.definition).nodes
        for _ in range(STEPS_AT_ONCE_MAX):
            step = self._progress.position.step
            node = nodes.get(step) if step is not None else None
            if node is None:
                return self._end("completed")
            self._take_step(node)
            if self._progress.due_at is not None or self._progress.outcome is not None:
                return self._progress
        raise AssertionError("a program without circles ends")

    def _take_step(self, node: ProgramNode) -> None:
        """Take one step; afterwards the run is at the next step, waits, or has ended."""
        match node.step:
            case steps.Wait() | steps.WaitUntil() as step:
                self._wait(node, step)
            case steps.WaitForPurchase() as step:
                self._wait_for_purchase(node, step)
            case steps.Branch() as step:
                self._branch(node, step)
            case steps.Split() as step:
                self._split(node, step)
            case steps.SendText() as step:
                self._text(node, step)
            case steps.SetAttribute() as step:
                self._set_attribute(node, step)
            case steps.Exit():
                self._end("exited")

    def _wait(self, node: ProgramNode, step: steps.Wait | steps.WaitUntil) -> None:
        """The end of a wait is computed once, when the run reaches the step."""
        if self._progress.position.waits_for == "time":
            self._record(node, "went on", {})
            return self._move_to(node.next)
        due_at = (
            next_local_time(step, self._now, self._zone())
            if isinstance(step, steps.WaitUntil)
            else after_wait(step, self._now)
        )
        self._record(node, "waits", {"until": due_at.isoformat()})
        return self._wait_here("time", due_at)

    def _wait_for_purchase(self, node: ProgramNode, step: steps.WaitForPurchase) -> None:
        """A purchase counts if it did not exist when the wait began, whatever its recording time: its transaction may
        have begun before and committed after. A purchase recorded after the wait began always counts, even if it was
        already visible when the sales were loaded."""
        position = self._progress.position
        is_new = position.waits_for != "purchase" or position.waiting_since is None
        since = self._now if is_new or position.waiting_since is None else position.waiting_since
        end = end_of_wait(step, since)
        if is_new:
            self._record(node, "waits", {"for": "a purchase", "until": end.isoformat()})
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

    def _branch(self, node: ProgramNode, step: steps.Branch) -> None:
        verdict = judge(node.id, step.condition, self._evaluation)
        if not isinstance(verdict, CannotJudge):
            segments = references_of(self._run.definition).segments
            return self._fork(node, is_then=verdict, why=describe_context(self._evaluation, step.condition, segments))
        position = self._progress.position
        since = position.waiting_since if position.waits_for == "fault" else None
        if since is None:
            self._record(node, "cannot judge", {"fault": verdict.fault})
            return self._wait_here("fault", self._now + FAULT_RETRY_MIN)
        if self._now >= since + FAULT_LASTS_MAX:
            self._progress.reason = verdict.fault
            self._end(NOT_JUDGED)
            return None
        pause = min(max((self._now - since) / 2, FAULT_RETRY_MIN), FAULT_RETRY_MAX)
        self._progress.due_at = min(self._now + pause, since + FAULT_LASTS_MAX)
        return None

    def _split(self, node: ProgramNode, step: steps.Split) -> None:
        salt = node.id if self._run.salts_splits else ""
        share = share_of(self._run.journey_id, self._run.profile_id, salt=salt)
        is_then = share < step.percent
        if step.holdout:
            self._progress.holdouts.append(HoldoutPass(node.id, 100 - step.percent, is_held_out=not is_then))
        self._fork(node, is_then=is_then, why={"share": share})

    def _text(self, node: ProgramNode, step: steps.SendText) -> None:
        if self._progress.position.waits_for == "text":
            # The run was woken because its text was sent, skipped or failed.
            return self._move_to(node.next)
        person = self._context.person._replace(attributes=dict(self._progress.attributes))
        values = template_variables(person, self._context.sale, brand=self._context.brand)
        self._progress.text = RequestedMessage(node.id, render_text(step.text, values), step.personal_links)
        self._record(node, "texts", {})
        return self._wait_here("text", self._now + TEXT_ENDS_WITHIN)

    def _set_attribute(self, node: ProgramNode, step: steps.SetAttribute) -> None:
        """Set an attribute. If the customer has too many attributes, it is not set; the run records that and
        continues."""
        try:
            attributes = merge(dict(self._progress.attributes), {step.key: step.value})
        except ValidationError:
            self._record(node, "not set", {"key": step.key})
            return self._move_to(node.next)
        self._record(node, "set", {"key": step.key})
        self._progress.attributes = attributes
        self._progress.changes[step.key] = step.value
        # The next branch, and segments in it, use the new value.
        self._evaluation = self._evaluation.with_attributes(attributes)
        return self._move_to(node.next)

    def _zone(self) -> str:
        sale = self._context.sale
        return choose_zone(self._context.phone_number, sale.country if sale else None, self._evaluation.zone)

    def _fork(self, node: ProgramNode, *, is_then: bool, why: dict[str, Any]) -> None:
        self._record(node, "then" if is_then else "else", why)
        self._move_to(node.then if is_then else node.otherwise)

    def _move_to(self, step: str | None) -> None:
        self._progress.position = Position(step)

    def _wait_here(self, waits_for: str, due_at: datetime) -> None:
        self._progress.position = Position(self._progress.position.step, waits_for, self._now)
        self._progress.due_at = due_at

    def _end(self, outcome: str) -> RunProgress:
        self._progress.outcome = outcome
        self._progress.events.append(StepEvent(self._progress.position.step, "ended", {"outcome": outcome}))
        return self._progress

    def _record(self, node: ProgramNode, event: str, detail: dict[str, Any]) -> None:
        self._progress.events.append(StepEvent(node.id, event, detail))


def share_of(journey_id: UUID, profile_id: UUID, *, salt: str) -> float:
    """A pseudo-random number from 0 to 100, which is always the same for a customer, a journey and a salt."""
    digest = hashlib.sha256(journey_id.bytes + profile_id.bytes + salt.encode()).digest()
    return int.from_bytes(digest[:8], "big") % _HUNDREDTHS / 100
