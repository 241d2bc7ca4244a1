"""Runs go on: step after step until one waits, texts or ends. What a bite decides is written together at its end."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from regulars.consent.numbers.gate import find_text_numbers
from regulars.journeys.chance import share_of
from regulars.journeys.conditions import Seen, holds
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
from regulars.journeys.runs import queries
from regulars.journeys.runs.definitions import load_definitions
from regulars.journeys.runs.model import Noted, RunRow
from regulars.journeys.runs.note import count
from regulars.journeys.runs.when import after_wait, choose_zone, end_of_wait, next_local_time
from regulars.journeys.runs.words import shown_segments, values_of
from regulars.journeys.sight.look import Sight, Subject, find_segments, look, recorded_since, seen_segments
from regulars.journeys.sight.model import RecordedRow
from regulars.journeys.trace import keep as trace
from regulars.kit.db import Tx
from regulars.kit.ids import ById
from regulars.messaging.leave import skip_queued
from regulars.messaging.model import EXPIRES_AFTER, OriginKind
from regulars.messaging.request import TextOrder, request_texts
from regulars.messaging.settings.store import Texting, load_texting
from regulars.messaging.template import parse_template, render
from regulars.profiles.model import Profile
from regulars.profiles.set_attributes import AttributeChanges, set_attributes

# More than any definition has: a run that takes more in one turn goes in a circle, which cannot be.
STEPS_AT_ONCE_MAX: Final = 120
# A text ends within its time; if nobody tells, the run looks by itself a little later.
TEXT_ENDS_WITHIN: Final = EXPIRES_AFTER + timedelta(hours=1)
# No transaction that records a sale is open for longer, by far.
WRITES_LAST_MAX: Final = timedelta(minutes=15)
EXITS: Final = {"purchase": "PURCHASE", "return": "RETURN"}


async def advance(tx: Tx, organization_id: UUID, rows: Sequence[RunRow]) -> None:
    """The runs are locked by the caller."""
    texting = await load_texting(tx, organization_id)
    if texting is None:
        return
    turn = await _Turn.begin(tx, organization_id, rows, texting)
    for row in rows:
        await turn.go_on(row)
    await turn.write()


class _Turn:
    """One bite of runs: what was looked up for all of them, and what they decided."""

    def __init__(self, tx: Tx, organization_id: UUID, texting: Texting) -> None:
        self._tx = tx
        self._organization_id = organization_id
        self._texting = texting
        self._definitions: dict[tuple[UUID, int], Definition] = {}
        self._sight: Sight
        self._numbers: dict[UUID, str] = {}
        self._recorded: dict[UUID, list[RecordedRow]] = {}
        self._zone = "UTC"
        self._saved: list[RunRow] = []
        self._notes: list[Noted] = []
        self._counted: list[tuple[RunRow, str, str]] = []
        self._orders: list[TextOrder] = []
        # Runs that end while a text of theirs may still be queued.
        self._left: list[UUID] = []

    @classmethod
    async def begin(cls, tx: Tx, organization_id: UUID, rows: Sequence[RunRow], texting: Texting) -> "_Turn":
        turn = cls(tx, organization_id, texting)
        turn._definitions = await load_definitions(tx, organization_id, {(row.journey_id, row.version) for row in rows})
        subjects = [turn._subject(row) for row in rows]
        turn._sight = await look(tx, organization_id, subjects)
        numbers = await find_text_numbers(tx, organization_id, {row.profile_id for row in rows})
        turn._numbers = {profile_id: number.phone_number for profile_id, number in numbers.items()}
        asked = [(row.profile_id, row.sale_id, _looks_back_to(row, tx.now)) for row in rows]
        recorded = await recorded_since(tx, organization_id, asked)
        turn._recorded = {row.id: found for row, found in zip(rows, recorded, strict=True)}
        turn._zone = turn._sight.zone
        return turn

    async def go_on(self, row: RunRow) -> None:
        definition = self._definitions[row.journey_id, row.version]
        seen = self._sight.seen(self._subject(row), self._tx.now)
        if seen is None:
            return self._end(row, "the customer is gone")
        if row.fact_kind == "consent" and not seen.is_subscribed:
            # The withdrawal may have been told together with the consent, before there was a run to end.
            return self._end(row, "left by a withdrawal")
        exited = next((it for it in definition.exit_on if self._has_left_by(row, EXITS[it])), None)
        if exited is not None:
            return self._end(row, f"left by a {exited}")
        nodes = program_of(definition).nodes
        run = row._replace(attempts=0)
        for _ in range(STEPS_AT_ONCE_MAX):
            node = nodes.get(run.step) if run.step is not None else None
            if node is None:
                return self._end(run, "completed")
            after = await self._do(run, node, seen)
            if isinstance(node.step, SetAttribute):
                seen = await self._seen_again(row, seen, node.step)
            if after is None:
                return None
            run = after
        raise AssertionError("a program without circles ends")

    async def _seen_again(self, row: RunRow, seen: Seen, step: SetAttribute) -> Seen:
        """What the run has just written counts at its next branch, in segments too."""
        seen = replace(seen, attributes={**seen.attributes, step.key: step.value})
        if not seen.segments:
            return seen
        found = await find_segments(self._tx, self._organization_id, [self._subject(row)])
        return replace(seen, segments=seen_segments(found, row.profile_id, seen.segments.keys()))

    async def write(self) -> None:
        tx, organization_id = self._tx, self._organization_id
        if self._orders:
            await request_texts(tx, organization_id, self._orders, texting=self._texting)
        if self._saved:
            await queries.save_runs(tx, organization_id, self._saved)
        if self._notes:
            await trace.insert_trace(tx, organization_id, self._notes)
        await count(tx, organization_id, self._counted)
        await skip_queued(tx, organization_id, OriginKind.JOURNEY, self._left)

    async def _do(self, run: RunRow, node: Node, seen: Seen) -> RunRow | None:
        """One step: the run at its next step, or None where it waits or has ended."""
        match node.step:
            case Wait() | WaitUntil():
                return self._wait(run, node)
            case WaitForPurchase() as step:
                return self._wait_for_purchase(run, node, step)
            case Branch(condition=condition):
                return self._fork(run, node, is_then=holds(condition, seen), why=_shown(seen))
            case Split(percent=percent):
                share = share_of(run.journey_id, run.profile_id)
                return self._fork(run, node, is_then=share < percent, why={"share": share})
            case SendText() as step:
                return self._text(run, node, step)
            case SetAttribute(key=key, value=value):
                change = AttributeChanges(ById(run.profile_id), {key: value})
                [outcome] = await set_attributes(self._tx, self._organization_id, [change])
                # Refused where the customer has too many attributes; the run goes on, and says so.
                self._note(run, node, "set" if isinstance(outcome, Profile) else "not set", {"key": key})
                return _to(run, node.next)
            case Exit():
                self._end(run, "exited")
                return None

    def _wait(self, run: RunRow, node: Node) -> RunRow | None:
        """The end of a wait is reckoned once, from the moment the run came to it."""
        if run.waits_for == "time":
            self._note(run, node, "went on", {})
            return _to(run, node.next)
        if isinstance(node.step, WaitUntil):
            sale = self._sight.sales.get(run.sale_id) if run.sale_id is not None else None
            zone = choose_zone(self._numbers.get(run.profile_id), sale.country if sale else None, self._zone)
            due_at = next_local_time(node.step, self._tx.now, zone)
        elif isinstance(node.step, Wait):
            due_at = after_wait(node.step, self._tx.now)
        else:
            raise TypeError(f"{type(node.step).__name__} is no wait")
        self._note(run, node, "waits", {"until": due_at.isoformat()})
        self._saved.append(run._replace(waits_for="time", waiting_since=self._tx.now, due_at=due_at))
        return None

    def _wait_for_purchase(self, run: RunRow, node: Node, step: WaitForPurchase) -> RunRow | None:
        """Sales are read when the wait begins, at every wake-up and at its end. What counts is a purchase that was not
        there at the beginning, whatever its transaction's own time: it may have begun before and committed after."""
        if run.waits_for == "purchase" and run.waiting_since is not None:
            since, seen = run.waiting_since, set(run.seen_sales or ())
            end = end_of_wait(step, since)
            if any(
                sale.type == "PURCHASE" and sale.id not in seen and since - WRITES_LAST_MAX < sale.created_at <= end
                for sale in self._recorded[run.id]
            ):
                return self._fork(run, node, is_then=True, why={"bought": True})
            if self._tx.now >= end:
                return self._fork(run, node, is_then=False, why={"bought": False})
            self._saved.append(run._replace(due_at=end))
            return None
        end = end_of_wait(step, self._tx.now)
        self._note(run, node, "waits", {"for": "a purchase", "until": end.isoformat()})
        self._saved.append(
            run._replace(
                waits_for="purchase",
                waiting_since=self._tx.now,
                due_at=end,
                seen_sales=[sale.id for sale in self._recorded[run.id]],
            )
        )
        return None

    def _text(self, run: RunRow, node: Node, step: SendText) -> RunRow | None:
        if run.waits_for == "text":
            # Whoever woke the run knows that the text has ended, one way or another.
            return _to(run, node.next)
        person = self._sight.people[run.profile_id]
        sale = self._sight.sales.get(run.sale_id) if run.sale_id is not None else None
        words = render(parse_template(step.text), values_of(person, sale, brand=self._texting.brand))
        self._orders.append(
            TextOrder(
                origin_kind=OriginKind.JOURNEY, origin_id=run.id, step=node.id, words=words, profile_id=run.profile_id
            )
        )
        self._note(run, node, "texts", {})
        due_at = self._tx.now + TEXT_ENDS_WITHIN
        self._saved.append(run._replace(waits_for="text", waiting_since=self._tx.now, due_at=due_at))
        return None

    def _fork(self, run: RunRow, node: Node, *, is_then: bool, why: dict[str, Any]) -> RunRow:
        self._note(run, node, "then" if is_then else "else", why)
        return _to(run, node.then if is_then else node.otherwise)

    def _end(self, run: RunRow, outcome: str) -> None:
        ended = run._replace(state="ended", waits_for=None, due_at=None, outcome=outcome, ended_at=self._tx.now)
        self._saved.append(ended)
        if run.waits_for == "text":
            self._left.append(run.id)
        self._notes.append(Noted(run.id, run.step, "ended", {"outcome": outcome}))
        self._counted.append((run, run.step or "", "ended"))

    def _note(self, run: RunRow, node: Node, event: str, detail: dict[str, Any]) -> None:
        self._notes.append(Noted(run.id, node.id, event, detail))
        self._counted.append((run, node.id, event))

    def _has_left_by(self, run: RunRow, kind: str) -> bool:
        return any(sale.type == kind and sale.created_at > run.since for sale in self._recorded[run.id])

    def _subject(self, row: RunRow) -> Subject:
        return Subject(row.profile_id, row.sale_id, self._definitions[row.journey_id, row.version])


def _looks_back_to(row: RunRow, now: datetime) -> datetime:
    """What a run needs to see of its customer's sales begins here."""
    waiting_since = row.waiting_since if row.waits_for == "purchase" and row.waiting_since is not None else now
    return min(row.since, waiting_since - WRITES_LAST_MAX)


def _to(run: RunRow, step: str | None) -> RunRow:
    return run._replace(step=step, waits_for=None, waiting_since=None)


def _shown(seen: Seen) -> dict[str, Any]:
    """What a branch saw, without the customer's own words."""
    shown = {"subscribed": seen.is_subscribed, "purchases": {str(days): it for days, it in seen.purchases.items()}}
    return {**shown, **shown_segments(seen)}
