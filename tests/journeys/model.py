"""Journeys in memory, written a second time and as simply as possible: a run is a generator that follows its
steps and stops where it waits. The state machine compares it with the real ones."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from regulars.experiments.sides import random_percent

CLAIM_FOR = timedelta(seconds=15)
TEXT_WAITS = timedelta(hours=97)
EXPIRES = timedelta(hours=96)
ASKS_AFTER = timedelta(hours=48)
KIND_OF = {"purchase": "PURCHASE", "return": "RETURN"}


class Exited(Exception):
    pass


@dataclass(eq=False)
class Sale:
    id: UUID
    buyer: str
    kind: str
    at: datetime


@dataclass(eq=False)
class Consent:
    """Or a withdrawal, without a customer if the number belongs to none."""

    customer: str | None
    at: datetime


@dataclass(eq=False)
class Text:
    run: "Run"
    step: str
    created_at: datetime
    state: str = "queued"
    claimed_at: datetime | None = None


@dataclass(eq=False)
class Run:
    journey: "Journey"
    version: int
    customer: str
    fact: Sale | Consent
    step: str | None
    due: datetime | None
    state: str = "active"
    outcome: str | None = None
    waits_for: str | None = None
    events: list[tuple[str | None, str]] = field(default_factory=lambda: [(None, "entered")])
    script: Iterator[None] | None = None

    @property
    def definition(self) -> dict[str, Any]:
        return self.journey.versions[self.version - 1]

    def shown(self) -> tuple[Any, ...]:
        return (self.customer, self.version, self.state, self.step, self.waits_for, self.outcome, self.events)


@dataclass(eq=False)
class Journey:
    id: UUID
    versions: list[dict[str, Any]]
    state: str = "draft"
    paused_at: datetime | None = None
    # Since when which version was live, and until when.
    live: dict[datetime, tuple[int, datetime | None]] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    entered_at: dict[str, datetime] = field(default_factory=dict)

    def version_at(self, moment: datetime) -> int | None:
        return next(
            (
                version
                for since, (version, until) in self.live.items()
                if since <= moment and not (until and moment >= until)
            ),
            None,
        )

    def begin(self, now: datetime) -> None:
        self.live[now] = (len(self.versions), None)

    def end(self, now: datetime) -> None:
        self.live = {since: (version, until or now) for since, (version, until) in self.live.items()}

    def open_runs(self) -> list[Run]:
        return [run for run in self.runs if run.state == "active"]


class World:
    def __init__(self, ids: dict[str, UUID], now: datetime) -> None:
        self.ids = ids
        self.now = now
        self.subscribed: set[str] = set()
        # When each customer's number was withdrawn. A number belongs to its customer from the first consent on.
        self.withdrawals: dict[str, list[datetime]] = {}
        self.linked: set[str] = set()
        self.sales: list[Sale] = []
        self.journeys: list[Journey] = []
        self.texts: list[Text] = []
        # Facts that wait for delivery: (topic, fact), in order.
        self.outbox: list[tuple[str, Any]] = []
        self.sent = 0

    def runs(self) -> list[Run]:
        return [run for journey in self.journeys for run in journey.runs]

    def active_runs_of(self, customers: set[str]) -> list[Run]:
        return [run for run in self.runs() if run.state == "active" and run.customer in customers]

    # What people do.

    def sell(self, sale: Sale) -> None:
        self.sales.append(sale)
        self.outbox.append(("sales", sale))

    def opt_in(self, customer: str) -> None:
        if customer not in self.subscribed:
            self.subscribed.add(customer)
            self.linked.add(customer)
            self.outbox.append(("consents", ("in", Consent(customer, self.now))))

    def opt_out(self, customer: str) -> None:
        if customer in self.subscribed or customer not in self.withdrawals:
            self.subscribed.discard(customer)
            self.withdrawals.setdefault(customer, []).append(self.now)
            whom = customer if customer in self.linked else None
            self.outbox.append(("consents", ("out", Consent(whom, self.now))))

    def edit(self, journey: Journey, definition: dict[str, Any]) -> None:
        journey.versions.append(definition)
        if journey.state == "live":
            journey.end(self.now)
            journey.begin(self.now)

    def pause(self, journey: Journey) -> None:
        journey.end(self.now)
        journey.state, journey.paused_at = "paused", self.now

    def may_activate(self, journey: Journey, waiting: str | None) -> bool:
        is_long = journey.paused_at is not None and self.now - journey.paused_at > ASKS_AFTER
        return not (is_long and waiting is None and journey.open_runs())

    def activate(self, journey: Journey, waiting: str | None) -> None:
        if waiting == "end":
            self.end_all(journey, "ended by a person")
        journey.state, journey.paused_at = "live", None
        journey.begin(self.now)

    def archive(self, journey: Journey) -> None:
        journey.end(self.now)
        self.end_all(journey, "archived")
        journey.state, journey.paused_at = "archived", None

    def end_all(self, journey: Journey, outcome: str) -> None:
        for run in journey.open_runs():
            self.finish(run, outcome)

    # What the worker does.

    def deliver_facts(self) -> None:
        waiting, self.outbox = self.outbox, []
        by_topic: dict[str, list[Any]] = {}
        for topic, fact in waiting:
            by_topic.setdefault(topic, []).append(fact)
        for topic, facts in by_topic.items():
            if topic == "sales":
                self._on_sales(facts)
            elif topic == "consents":
                self._on_consents(facts)
            else:
                self._on_texts(facts)

    def _on_sales(self, sales: list[Sale]) -> None:
        for run in self.active_runs_of({sale.buyer for sale in sales}):
            theirs = [sale for sale in sales if sale.buyer == run.customer]
            exits = [it for it in run.definition.get("exit_on", ()) for sale in theirs if self._is_exit(run, it, sale)]
            if exits:
                self.finish(run, f"left by a {exits[0]}")
            elif run.waits_for == "purchase" and any(sale.kind == "PURCHASE" for sale in theirs):
                self._wake(run)
        for journey in self.journeys:
            for sale in sorted(set(sales), key=lambda it: it.id):
                self._enter(journey, sale, sale.buyer, "purchase" if sale.kind == "PURCHASE" else "return")

    def _on_consents(self, changes: list[tuple[str, Any]]) -> None:
        for what, withdrawal in changes:
            for run in self.active_runs_of({withdrawal.customer}) if what == "out" else ():
                if withdrawal.at > run.fact.at:
                    self.finish(run, "left by a withdrawal")
        for journey in self.journeys:
            for what, consent in changes:
                if what == "in":
                    self._enter(journey, consent, consent.customer, "opt_in")

    def _on_texts(self, texts: list[Text]) -> None:
        for text in texts:
            run = text.run
            if run.state == "active" and run.waits_for == "text" and run.step == text.step:
                self._wake(run)

    def _wake(self, run: Run) -> None:
        run.due = self.now

    def _enter(self, journey: Journey, fact: Sale | Consent, customer: str, trigger: str) -> None:
        version = journey.version_at(fact.at)
        if version is None or journey.state == "archived":
            return
        definition = journey.versions[version - 1]
        if definition["trigger"] != trigger or (definition.get("filter") and customer not in self.subscribed):
            return
        if any(run.customer == customer for run in journey.open_runs()) or any(it.fact is fact for it in journey.runs):
            return
        reentry, entered_at = definition.get("reentry", {"policy": "always"}), journey.entered_at.get(customer)
        if entered_at is not None and (
            reentry["policy"] == "never"
            or (reentry["policy"] == "after_days" and self.now - entered_at < timedelta(days=reentry["days"]))
        ):
            return
        journey.entered_at[customer] = self.now
        first = definition["steps"][0].get("id") or "1"
        run = Run(journey, version, customer, fact, first, self.now)
        run.script = self._follow(run, definition["steps"], "")
        journey.runs.append(run)

    def _is_exit(self, run: Run, kind: str, sale: Sale) -> bool:
        return sale.kind == KIND_OF[kind] and sale.at > run.fact.at

    def advance(self) -> None:
        due = [run for run in self.runs() if run.state == "active" and run.due is not None and run.due <= self.now]
        for run in due:
            if run.journey.state == "live":
                self._go_on(run)

    def _go_on(self, run: Run) -> None:
        if isinstance(run.fact, Consent) and run.customer not in self.subscribed:
            return self.finish(run, "left by a withdrawal")
        withdrawals = self.withdrawals.get(run.customer, ()) if run.customer in self.linked else ()
        if run.waits_for is None and any(at > run.fact.at for at in withdrawals):
            return self.finish(run, "left by a withdrawal")
        theirs = [sale for sale in self.sales if sale.buyer == run.customer and sale is not run.fact]
        exits = [it for it in run.definition.get("exit_on", ()) if any(self._is_exit(run, it, sale) for sale in theirs)]
        if exits:
            return self.finish(run, f"left by a {exits[0]}")
        assert run.script is not None
        try:
            next(run.script)
        except StopIteration:
            run.step = None
            self.finish(run, "completed", is_left=False)
        except Exited:
            self.finish(run, "exited", is_left=False)

    def finish(self, run: Run, outcome: str, *, is_left: bool = True) -> None:
        if is_left and run.waits_for == "text":
            for text in self.texts:
                if text.run is run and text.state == "queued":
                    self._end_text(text, "skipped")
        run.state, run.outcome, run.due, run.waits_for = "ended", outcome, None, None
        run.events.append((run.step, "ended"))

    def _follow(self, run: Run, steps: list[dict[str, Any]], prefix: str) -> Iterator[None]:
        for number, step in enumerate(steps, start=1):
            place = step.get("id") or f"{prefix}{number}"
            run.step, run.waits_for = place, None
            match step["do"]:
                case "wait":
                    run.events.append((place, "waits"))
                    run.waits_for, run.due = "time", self.now + timedelta(**_length(step))
                    yield
                    run.events.append((place, "went on"))
                case "wait_for_purchase":
                    way = yield from self._await_purchase(run, place, timedelta(**_length(step)))
                    yield from self._fork(run, step, way, prefix=f"{prefix}{number}.")
                case "branch":
                    yield from self._fork(run, step, run.customer in self.subscribed, prefix=f"{prefix}{number}.")
                case "split":
                    share = random_percent(run.journey.id, self.ids[run.customer], salt=place)
                    yield from self._fork(run, step, share < step["percent"], prefix=f"{prefix}{number}.")
                case "send_text":
                    run.events.append((place, "texts"))
                    run.waits_for, run.due = "text", self.now + TEXT_WAITS
                    self._ask_for_text(run, place)
                    yield
                case "set_attribute":
                    run.events.append((place, "set"))
                case "exit":
                    raise Exited
            run.waits_for = None

    def _await_purchase(self, run: Run, place: str, length: timedelta) -> Iterator[None]:
        def theirs() -> list[Sale]:
            return [it for it in self.sales if it.buyer == run.customer and it is not run.fact]

        seen, end = theirs(), self.now + length
        run.events.append((place, "waits"))
        while True:
            run.waits_for, run.due = "purchase", end
            yield
            if any(sale.kind == "PURCHASE" and sale not in seen and sale.at <= end for sale in theirs()):
                return True
            if self.now >= end:
                return False

    def _fork(self, run: Run, step: dict[str, Any], is_then: Any, *, prefix: str) -> Iterator[None]:
        way = "then" if is_then else "else"
        run.waits_for = None
        run.events.append((run.step, way))
        yield from self._follow(run, step.get(way, []), f"{prefix}{way}.")

    def _ask_for_text(self, run: Run, place: str) -> None:
        text = Text(run, place, self.now)
        self.texts.append(text)
        if run.customer not in self.subscribed:
            self._end_text(text, "skipped")

    def send(self, *, dies: bool = False) -> None:
        for text in self.texts:
            if text.state == "sending" and text.claimed_at is not None and self.now >= text.claimed_at + CLAIM_FOR:
                self._end_text(text, "unknown")
            elif text.state == "queued":
                is_expired = self.now >= text.created_at + EXPIRES
                if text.run.journey.state == "paused" and not is_expired:
                    continue
                if is_expired or text.run.customer not in self.subscribed:
                    self._end_text(text, "skipped")
                    continue
                self.sent += 1
                text.claimed_at = self.now
                if dies:
                    text.state = "sending"
                else:
                    self._end_text(text, "sent")

    def _end_text(self, text: Text, state: str) -> None:
        text.state = state
        self.outbox.append(("texts", text))


def _length(step: dict[str, Any]) -> dict[str, int]:
    return {unit: step[unit] for unit in ("minutes", "hours", "days") if unit in step}
