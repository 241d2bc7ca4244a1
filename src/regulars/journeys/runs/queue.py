"""The queue of due runs. A batch loads what its runs need, lets `decide` decide, and writes the decisions together."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from regulars.consent.numbers import find_text_numbers
from regulars.journeys.definition import Definition
from regulars.journeys.interests import end_need
from regulars.journeys.model import Noted, RecordedRow, RunRow
from regulars.journeys.program import sets_attributes
from regulars.journeys.runs import queries, trace
from regulars.journeys.runs.decide import (
    CUSTOMER_GONE,
    Position,
    Progress,
    RunContext,
    RunSubject,
    end,
    go_on,
    looks_back_to,
)
from regulars.journeys.runs.definition_cache import load_definitions
from regulars.journeys.snapshot import Sight, Subject, find_sales_since, look
from regulars.kit.db import Database, Tx
from regulars.kit.ids import ById
from regulars.messaging.holds import cancel_texts
from regulars.messaging.model import OriginKind
from regulars.messaging.request import TextOrder, request_texts
from regulars.messaging.settings.store import Texting, load_texting
from regulars.profiles.find import try_lock_profiles
from regulars.profiles.model import AttributeChanges, Profile
from regulars.profiles.write import set_attributes
from regulars.work.queue import Due, RowQueue, Schedule, take_free


class RunQueue(RowQueue[RunRow]):
    name = "journey_runs"
    due = Due(table="journey_runs")
    schedule = Schedule(waits_s=(5, 30, 120, 600, 3600))
    batch_rows = 100

    async def run_pass(self, database: Database, organization_id: UUID) -> bool:
        is_more = await super().run_pass(database, organization_id)
        if not is_more:
            await end_need(database, organization_id)
        return is_more

    async def take(self, tx: Tx, organization_id: UUID, *, limit: int) -> Sequence[RunRow]:
        async def find(after: RunRow | None, many: int) -> Sequence[RunRow]:
            return await queries.take_due_runs(tx, organization_id, after=after, limit=many)

        async def lock(found: Sequence[RunRow]) -> Sequence[RunRow]:
            return await _without_held_up(tx, organization_id, found)

        return await take_free(find, lock, limit=limit)

    async def act(self, tx: Tx, organization_id: UUID, rows: Sequence[RunRow]) -> None:
        await advance(tx, organization_id, rows)

    async def postpone(
        self, tx: Tx, organization_id: UUID, row: RunRow, *, attempts: int, due_at: datetime | None
    ) -> None:
        """A run that keeps failing is parked with its reason, and a person can resume it."""
        failed = row._replace(state="active" if due_at is not None else "parked", attempts=attempts, due_at=due_at)
        await queries.save_runs(tx, organization_id, [failed])

    async def record_failure(self, tx: Tx, organization_id: UUID, row: RunRow, error: Exception) -> None:
        # The trace has the kind of error for developers; its words may hold a customer's own, and are in the log.
        why = type(error).__name__
        await queries.set_reason(tx, organization_id, row.id, reason="A step failed; the log of the worker says why.")
        detail = {"attempts": row.attempts + 1, "error": why}
        await trace.insert_trace(tx, organization_id, [Noted(row.id, row.step, "failed", detail)])


async def _without_held_up(tx: Tx, organization_id: UUID, rows: Sequence[RunRow]) -> Sequence[RunRow]:
    """Those that can go on now. A run that may set an attribute needs its customer's profile; everybody else locks that
    first and runs after it, so this takes what is free and waits for nobody. The others are due again in a moment."""
    definitions = await load_definitions(tx, organization_id, {(row.journey_id, row.version) for row in rows})
    changing = {row.profile_id for row in rows if sets_attributes(definitions[row.journey_id, row.version])}
    held_up = await try_lock_profiles(tx, organization_id, changing) if changing else set()
    return [row for row in rows if row.profile_id not in held_up]


async def advance(tx: Tx, organization_id: UUID, rows: Sequence[RunRow]) -> None:
    """The runs are locked by the caller, and so are the profiles of those that may set an attribute."""
    texting = await load_texting(tx, organization_id)
    if texting is None:
        return
    batch = await _Batch.load(tx, organization_id, rows, texting)
    for row in rows:
        batch.go_on(row)
    await batch.write()


class _Batch:
    """What was looked up for some runs, and what they decided."""

    def __init__(
        self,
        tx: Tx,
        organization_id: UUID,
        *,
        texting: Texting,
        definitions: dict[tuple[UUID, int], Definition],
        sight: Sight,
        numbers: dict[UUID, str],
        recorded: dict[UUID, list[RecordedRow]],
    ) -> None:
        self._tx = tx
        self._organization_id = organization_id
        self._texting = texting
        self._definitions = definitions
        self._sight = sight
        self._numbers = numbers
        self._recorded = recorded
        # What customers have after the runs of this batch so far: a customer may have several, in several journeys.
        self._attributes = {person.id: person.attributes for person in sight.people.values()}
        self._changes: dict[UUID, dict[str, str]] = {}
        self._saved: list[RunRow] = []
        self._notes: list[Noted] = []
        self._counted: list[tuple[RunRow, str, str]] = []
        self._orders: list[TextOrder] = []
        # Runs that end while a text of theirs may still be queued.
        self._left: list[UUID] = []

    @classmethod
    async def load(cls, tx: Tx, organization_id: UUID, rows: Sequence[RunRow], texting: Texting) -> "_Batch":
        definitions = await load_definitions(tx, organization_id, {(row.journey_id, row.version) for row in rows})
        subjects = [Subject(row.profile_id, row.sale_id, definitions[row.journey_id, row.version]) for row in rows]
        sight = await look(tx, organization_id, subjects)
        numbers = await find_text_numbers(tx, organization_id, {row.profile_id for row in rows})
        asked = [(row.profile_id, row.sale_id, looks_back_to(row.since, _position(row), tx.now)) for row in rows]
        recorded = await find_sales_since(tx, organization_id, asked)
        return cls(
            tx,
            organization_id,
            texting=texting,
            definitions=definitions,
            sight=sight,
            numbers={profile_id: number.phone_number for profile_id, number in numbers.items()},
            recorded={row.id: found for row, found in zip(rows, recorded, strict=True)},
        )

    def go_on(self, row: RunRow) -> None:
        definition = self._definitions[row.journey_id, row.version]
        context = self._context(row, definition)
        if context is None:
            return self._record(row, end(_position(row), {}, CUSTOMER_GONE))
        subject = RunSubject(row.journey_id, row.profile_id, definition, row.fact_kind, row.since)
        progress = go_on(subject, _position(row), context)
        if progress.changes:
            self._attributes[row.profile_id] = dict(progress.attributes)
            self._changes.setdefault(row.profile_id, {}).update(progress.changes)
        return self._record(row, progress)

    def _context(self, row: RunRow, definition: Definition) -> RunContext | None:
        """None: the customer is gone."""
        profile_id = row.profile_id
        seen = self._sight.seen(Subject(profile_id, row.sale_id, definition), self._tx.now)
        if seen is None:
            return None
        attributes = self._attributes[profile_id]
        if profile_id in self._changes:
            seen = seen.with_attributes(attributes)
        return RunContext(
            seen=seen,
            person=self._sight.people[profile_id]._replace(attributes=attributes),
            sale=None if row.sale_id is None else self._sight.sales.get(row.sale_id),
            sales=self._recorded[row.id],
            phone_number=self._numbers.get(profile_id),
            brand=self._texting.brand,
        )

    def _record(self, row: RunRow, progress: Progress) -> None:
        position = progress.position
        self._saved.append(
            row._replace(
                state="active" if progress.outcome is None else "ended",
                step=position.step,
                waits_for=position.waits_for if progress.outcome is None else None,
                waiting_since=position.waiting_since,
                due_at=progress.due_at,
                seen_sales=list(position.seen_sales) if position.waits_for == "purchase" else None,
                attempts=0,
                outcome=progress.outcome,
                reason=progress.reason,
                ended_at=None if progress.outcome is None else self._tx.now,
            )
        )
        if progress.text is not None:
            self._orders.append(
                TextOrder(
                    origin_kind=OriginKind.JOURNEY,
                    origin_id=row.id,
                    step=progress.text.step,
                    words=progress.text.words,
                    profile_id=row.profile_id,
                )
            )
        if progress.outcome is not None and position.waits_for == "text":
            self._left.append(row.id)
        self._notes += [Noted(row.id, note.step, note.event, note.detail) for note in progress.notes]
        self._counted += [(row, note.step or "", note.event) for note in progress.notes]

    async def write(self) -> None:
        tx, organization_id = self._tx, self._organization_id
        if self._changes:
            await _set_attributes(tx, organization_id, self._changes)
        if self._orders:
            await request_texts(tx, organization_id, self._orders, texting=self._texting)
        await queries.save_runs(tx, organization_id, self._saved)
        if self._notes:
            await trace.insert_trace(tx, organization_id, self._notes)
        await trace.count_events(tx, organization_id, self._counted)
        await cancel_texts(tx, organization_id, OriginKind.JOURNEY, self._left)


def _position(row: RunRow) -> Position:
    return Position(row.step, row.waits_for, row.waiting_since, row.seen_sales or ())


async def _set_attributes(tx: Tx, organization_id: UUID, changes: dict[UUID, dict[str, str]]) -> None:
    """All customers with one call. The profiles are locked, so what was decided from their attributes still holds."""
    wanted = [AttributeChanges(ById(profile_id), set_) for profile_id, set_ in sorted(changes.items())]
    outcomes = await set_attributes(tx, organization_id, wanted)
    refused = next((it for it in outcomes if not isinstance(it, Profile)), None)
    if refused is not None:
        raise refused
