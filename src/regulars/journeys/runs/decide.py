"""Decides how far a run (one customer's way through a journey) advances at a given time. No I/O.

Live runs and backtests share this code: the caller loads the data of the run, and saves or counts the decisions.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from regulars.experiments.sides import random_percent
from regulars.journeys import definition as steps
from regulars.journeys.context import EvaluationContext, NotEvaluable, describe_inputs, evaluate, template_variables
from regulars.journeys.model import SALE_TYPES, PersonRow, RecordedSale, SaleRow, SaleTimes
from regulars.journeys.program import StepNode, graph_of, references_of
from regulars.journeys.runs.wait_times import choose_zone, next_local_time
from regulars.kit.errors import ValidationError
from regulars.profiles.model import merge
from regulars.texts.model import EXPIRES_AFTER
from regulars.texts.template import MissingValue, render_text

# More steps than any definition has. A run that reaches this number is in a cycle, which no graph of steps has.
STEPS_AT_ONCE_MAX: Final = 120
# After this time a text has expired, so a run continues even if the end of its text was not recorded.
TEXT_ENDS_WITHIN: Final = EXPIRES_AFTER + timedelta(hours=1)
# A transaction that records a sale is open for at most this time.
WRITES_LAST_MAX: Final = timedelta(minutes=15)
# How long a run waits at a branch that cannot be evaluated. It retries after 5 minutes at first, later hourly.
FAULT_LASTS_MAX: Final = timedelta(days=30)
FAULT_RETRY_MIN: Final = timedelta(minutes=5)
FAULT_RETRY_MAX: Final = timedelta(hours=1)

CUSTOMER_GONE: Final = "the customer is gone"
WITHDRAWN: Final = "left by a withdrawal"
NOT_EVALUATED: Final = "the branch could not be judged for 30 days"

Attributes = Mapping[str, str]


class RunSubject(NamedTuple):
    """The constant data of a run: the customer, the definition, and the sale or consent (fact) that started the run."""

    journey_id: UUID
    profile_id: UUID
    definition: steps.Definition
    fact_kind: str
    # When the sale or consent was recorded.
    triggered_at: datetime
    # False in old versions, in which all splits divide the customers identically.
    has_independent_splits: bool = True


class Position(NamedTuple):
    """The step that a run takes next, or waits at."""

    step: str | None
    waits_for: str | None = None
    waiting_since: datetime | None = None
    # While the run waits for a purchase: the customer's sales that existed when the wait began.
    seen_sales: Collection[UUID] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """The data for the decisions of a run at the time `evaluation.now`."""

    evaluation: EvaluationContext
    person: PersonRow
    sale: SaleRow | None
    # The customer's other sales that were recorded since `sales_needed_since`.
    sales: Sequence[SaleTimes]
    phone_number: str | None
    brand: str


class StepEvent(NamedTuple):
    """An event of a run, which becomes an entry of its trace."""

    step: str | None
    event: str
    detail: dict[str, Any]


class HoldoutPass(NamedTuple):
    """The run passed a split step that holds `percent` percent of the customers out."""

    step: str
    percent: int
    is_held_out: bool


class RequestedText(NamedTuple):
    """A text that the run requests; `rendered` is a `MissingValue` if a variable has no value."""

    step: str
    rendered: str | MissingValue
    has_personal_links: bool = False


@dataclass(slots=True)
class RunProgress:
    """The result of advancing a run: the run waits at its position until `due_at`, or has ended with an outcome. The
    caller requests the text, and stores changes, events and holdouts."""

    position: Position
    # The customer's attributes after the steps; `changes` has the attributes that the steps set.
    attributes: Attributes
    changes: dict[str, str] = field(default_factory=dict)
    due_at: datetime | None = None
    outcome: str | None = None
    reason: str | None = None
    text: RequestedText | None = None
    events: list[StepEvent] = field(default_factory=list)
    holdouts: list[HoldoutPass] = field(default_factory=list)


def advance(run: RunSubject, position: Position, context: RunContext) -> RunProgress:
    """Take steps until a step waits, requests a text or ends the run."""
    return _StepRunner(run, position, context).advance()


def end(progress: RunProgress, outcome: str) -> RunProgress:
    progress.outcome = outcome
    progress.events.append(StepEvent(progress.position.step, "ended", {"outcome": outcome}))
    return progress


def sales_needed_since(triggered_at: datetime, position: Position, now: datetime) -> datetime:
    """The run needs the customer's sales that were recorded since this time."""
    waiting_since = position.waiting_since if position.waits_for == "purchase" else None
    return min(triggered_at, (waiting_since or now) - WRITES_LAST_MAX)


def find_exit(
    definition: steps.Definition, sales: Iterable[RecordedSale], *, since: datetime, entry: RecordedSale | None
) -> tuple[datetime, str] | None:
    """The first sale that ends the run: when it was recorded, and the outcome of the run. `entry` is the sale that
    started the run; None if a consent did."""
    outcomes = {SALE_TYPES[it]: f"left by a {it}" for it in definition.exit_on}
    exits = [
        (sale.created_at, outcomes[sale.type])
        for sale in sales
        if sale.type in outcomes and (sale.created_at > since or (entry is not None and _follows(sale, entry)))
    ]
    return min(exits, default=None)


def _follows(sale: RecordedSale, entry: RecordedSale) -> bool:
    """Whether a sale that was recorded in the same transaction as the entry, so at the same time, happened after it."""
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
            # The withdrawal has the earlier time if its transaction began before that of the consent and waited for it.
            return self._end(WITHDRAWN)
        since, entry = self._run.triggered_at, self._context.sale
        exit_ = find_exit(self._run.definition, self._context.sales, since=since, entry=entry)
        if exit_ is not None:
            return self._end(exit_[1])
        nodes = graph_of(self._run.definition).nodes
        for _ in range(STEPS_AT_ONCE_MAX):
            step = self._progress.position.step
            node = nodes.get(step) if step is not None else None
            if node is None:
                return self._end("completed")
            self._take_step(node)
            if self._progress.due_at is not None or self._progress.outcome is not None:
                return self._progress
        raise AssertionError("a graph without cycles ends")

    def _take_step(self, node: StepNode) -> None:
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
                self._send_text(node, step)
            case steps.SetAttribute() as step:
                self._set_attribute(node, step)
            case steps.Exit():
                self._end("exited")

    def _wait(self, node: StepNode, step: steps.Wait | steps.WaitUntil) -> None:
        """Wait until a time, which is computed once, when the run reaches the step."""
        if self._progress.position.waits_for == "time":
            self._record(node, "went on", {})
            return self._move_to(node.next)
        due_at = (
            next_local_time(step, self._now, self._choose_zone())
            if isinstance(step, steps.WaitUntil)
            else self._now + step.duration
        )
        self._record(node, "waits", {"until": due_at.isoformat()})
        return self._wait_here("time", due_at)

    def _wait_for_purchase(self, node: StepNode, step: steps.WaitForPurchase) -> None:
        """Wait for a purchase that did not exist when the wait began, whatever its recording time: its transaction may
        have begun before the wait and committed after. A purchase recorded after the wait began always counts, even if
        it was already visible when the sales were loaded."""
        position = self._progress.position
        is_new = position.waits_for != "purchase" or position.waiting_since is None
        since = self._now if is_new or position.waiting_since is None else position.waiting_since
        end = since + step.duration
        if is_new:
            self._record(node, "waits", {"for": "a purchase", "until": end.isoformat()})
            seen = {sale.id for sale in self._context.sales if sale.created_at <= since}
        else:
            seen = set(position.seen_sales)
        if any(
            sale.type == "PURCHASE" and sale.id not in seen and since - WRITES_LAST_MAX < sale.created_at <= end
            for sale in self._context.sales
        ):
            return self._take_path(node, is_then=True, why={"bought": True})
        if self._now >= end:
            return self._take_path(node, is_then=False, why={"bought": False})
        self._progress.position = Position(position.step, "purchase", since, tuple(sorted(seen)))
        self._progress.due_at = end
        return None

    def _branch(self, node: StepNode, step: steps.Branch) -> None:
        result = evaluate(node.id, step.condition, self._evaluation)
        if not isinstance(result, NotEvaluable):
            segments = references_of(self._run.definition).segments
            inputs = describe_inputs(self._evaluation, step.condition, segments)
            return self._take_path(node, is_then=result, why=inputs)
        position = self._progress.position
        since = position.waiting_since if position.waits_for == "fault" else None
        if since is None:
            self._record(node, "cannot judge", {"fault": result.fault})
            return self._wait_here("fault", self._now + FAULT_RETRY_MIN)
        if self._now >= since + FAULT_LASTS_MAX:
            self._progress.reason = result.fault
            self._end(NOT_EVALUATED)
            return None
        retry_after = min(max((self._now - since) / 2, FAULT_RETRY_MIN), FAULT_RETRY_MAX)
        self._progress.due_at = min(self._now + retry_after, since + FAULT_LASTS_MAX)
        return None

    def _split(self, node: StepNode, step: steps.Split) -> None:
        salt = node.id if self._run.has_independent_splits else ""
        percent = random_percent(self._run.journey_id, self._run.profile_id, salt=salt)
        is_then = percent < step.percent
        if step.holdout:
            self._progress.holdouts.append(HoldoutPass(node.id, 100 - step.percent, is_held_out=not is_then))
        self._take_path(node, is_then=is_then, why={"share": percent})

    def _send_text(self, node: StepNode, step: steps.SendText) -> None:
        if self._progress.position.waits_for == "text":
            # The run was woken because its text was sent, skipped or failed.
            return self._move_to(node.next)
        person = self._context.person._replace(attributes=dict(self._progress.attributes))
        values = template_variables(person, self._context.sale, brand=self._context.brand)
        self._progress.text = RequestedText(node.id, render_text(step.text, values), step.personal_links)
        self._record(node, "texts", {})
        return self._wait_here("text", self._now + TEXT_ENDS_WITHIN)

    def _set_attribute(self, node: StepNode, step: steps.SetAttribute) -> None:
        """Set an attribute of the customer. If the customer has too many attributes, record that and continue."""
        try:
            attributes = merge(dict(self._progress.attributes), {step.key: step.value})
        except ValidationError:
            self._record(node, "not set", {"key": step.key})
            return self._move_to(node.next)
        self._record(node, "set", {"key": step.key})
        self._progress.attributes = attributes
        self._progress.changes[step.key] = step.value
        # Later branches, and the segments in their conditions, use the new value.
        self._evaluation = self._evaluation.with_attributes(attributes)
        return self._move_to(node.next)

    def _choose_zone(self) -> str:
        sale = self._context.sale
        return choose_zone(self._context.phone_number, sale.country if sale else None, self._evaluation.zone)

    def _take_path(self, node: StepNode, *, is_then: bool, why: dict[str, Any]) -> None:
        """Continue on the first or the second path after the step, and record why."""
        self._record(node, "then" if is_then else "else", why)
        self._move_to(node.then if is_then else node.otherwise)

    def _move_to(self, step: str | None) -> None:
        self._progress.position = Position(step)

    def _wait_here(self, waits_for: str, due_at: datetime) -> None:
        self._progress.position = Position(self._progress.position.step, waits_for, self._now)
        self._progress.due_at = due_at

    def _end(self, outcome: str) -> RunProgress:
        return end(self._progress, outcome)

    def _record(self, node: StepNode, event: str, detail: dict[str, Any]) -> None:
        self._progress.events.append(StepEvent(node.id, event, detail))
