"""The queue of due journey runs. A batch loads the data of its runs, calls `decide`, and writes all decisions."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

from regulars.catalog.model import day_of
from regulars.consent.history import find_withdrawals
from regulars.consent.numbers import TextNumber, find_text_numbers
from regulars.experiments.facts import HoldoutMonthBegun
from regulars.experiments.holdout.groups import find_held_out_of_journeys
from regulars.experiments.journey_holdouts import HoldoutPassRow, first_counted_day, record_passes
from regulars.journeys.definition import Definition
from regulars.journeys.interests import stop_recording_unneeded_facts
from regulars.journeys.model import RunRow, SaleTimes, TraceEntry
from regulars.journeys.program import holdouts_of, sets_attributes
from regulars.journeys.runs import decide, queries, trace
from regulars.journeys.runs.decide import FAULT_RETRY_MAX
from regulars.journeys.runs.definition_cache import Version, load_definitions, load_versions
from regulars.journeys.snapshot import DecisionSubject, JourneySnapshot, find_sales_since, load_snapshot
from regulars.kit.db import Database, Tx
from regulars.kit.ids import ById
from regulars.links.origin_kind import OriginKind
from regulars.profiles.find import try_lock_profiles
from regulars.profiles.model import AttributeChanges, Profile
from regulars.profiles.write import set_attributes
from regulars.texts.model import SkipReason
from regulars.texts.request import TextOrder, request_texts
from regulars.texts.settings.store import Texting, load_texting
from regulars.texts.stops import SET_ASIDE_MAX, cancel_texts, lock_claims_shared
from regulars.work.queue import Due, RowQueue, Schedule, WaitLimit, take_free


class RunQueue(RowQueue[RunRow]):
    name = "journey_runs"
    schedule = Schedule(waits_s=(5, 30, 120, 600, 3600))
    # The index `journey_runs_due_soon` has the runs of these states; the others wait for days.
    due = Due(
        table="journey_runs",
        waits=(
            schedule.retries(),
            WaitLimit(at_most=(timedelta(0),), condition="attempts = 0 AND waits_for IS NULL"),
            WaitLimit(at_most=(FAULT_RETRY_MAX,), condition="attempts = 0 AND waits_for = 'fault'"),
        ),
    )
    batch_rows = 100

    async def run_pass(self, database: Database, organization_id: UUID) -> bool:
        is_more = await super().run_pass(database, organization_id)
        if not is_more:
            await stop_recording_unneeded_facts(database, organization_id)
        return is_more

    async def take(self, tx: Tx, organization_id: UUID, *, limit: int) -> Sequence[RunRow]:
        """Lock due runs, except those that another transaction has locked, or whose profile it has locked. Runs of a
        paused journey are set aside, a few thousand at a time; the search goes on behind them."""
        await lock_claims_shared(tx, organization_id)
        stopped: list[UUID] = []

        async def find(after: queries.DueRun | None, page_limit: int) -> Sequence[queries.DueRun]:
            skips_stopped = len(stopped) >= SET_ASIDE_MAX
            return await queries.take_due_runs(
                tx, organization_id, after=after, limit=page_limit, skips_stopped=skips_stopped
            )

        async def lock(due: Sequence[queries.DueRun]) -> Sequence[RunRow]:
            stopped.extend(it.run.id for it in due if it.is_stopped)
            return await _without_locked_profiles(tx, organization_id, [it.run for it in due if not it.is_stopped])

        taken = await take_free(find, lock, limit=limit)
        if stopped:
            await queries.set_aside(tx, organization_id, stopped[:SET_ASIDE_MAX])
            # More of them may be due: wake this queue again after the commit.
            tx.queues_to_wake.add((self.name, organization_id))
        return taken

    async def act(self, tx: Tx, organization_id: UUID, rows: Sequence[RunRow]) -> None:
        """Advance the runs. `take` has locked them, and the profiles of runs that may set an attribute."""
        texting = await load_texting(tx, organization_id)
        if texting is None:
            return
        batch = await _Batch.load(tx, organization_id, rows, texting)
        for row in rows:
            batch.advance(row)
        await batch.write()

    async def postpone(
        self, tx: Tx, organization_id: UUID, row: RunRow, *, attempts: int, due_at: datetime | None
    ) -> None:
        """Retry a failed run later; after the last attempt, park it until a user resumes it."""
        failed = row._replace(state="active" if due_at is not None else "parked", attempts=attempts, due_at=due_at)
        await queries.save_runs(tx, organization_id, [failed])

    async def record_failure(self, tx: Tx, organization_id: UUID, row: RunRow, error: Exception) -> None:
        # The trace stores the class of the error. Its message may contain personal data and is only in the log.
        error_class = type(error).__name__
        await queries.set_reason(tx, organization_id, row.id, reason="A step failed; the log of the worker says why.")
        detail = {"attempts": row.attempts + 1, "error": error_class}
        await trace.insert_trace(tx, organization_id, [TraceEntry(row.id, row.step, "failed", detail)])


async def _without_locked_profiles(tx: Tx, organization_id: UUID, rows: Sequence[RunRow]) -> Sequence[RunRow]:
    """Lock the profiles of runs that may set an attribute, and return the runs that can advance now. All other writers
    lock a profile before its runs, so waiting here could deadlock: runs of profiles that another transaction has locked
    are skipped, and remain due."""
    definitions = await load_definitions(tx, organization_id, {(row.journey_id, row.version) for row in rows})
    to_lock = {row.profile_id for row in rows if sets_attributes(definitions[row.journey_id, row.version])}
    unavailable = await try_lock_profiles(tx, organization_id, to_lock) if to_lock else set()
    return [row for row in rows if row.profile_id not in unavailable]


@dataclass(slots=True, kw_only=True)
class _Batch:
    """The loaded data of a batch of runs, and their decisions."""

    tx: Tx
    organization_id: UUID
    texting: Texting
    versions: dict[tuple[UUID, int], Version]
    snapshot: JourneySnapshot
    numbers: dict[UUID, TextNumber]
    # Runs that have not advanced yet whose customers withdrew their consent after the run's trigger.
    withdrawn: set[UUID]
    # The sales of the run's customer that the run needs besides the sale that started it, by run id.
    other_sales: dict[UUID, list[SaleTimes]]
    # The attributes that runs of this batch set, by profile id. A customer may have runs in several journeys.
    changes: dict[UUID, dict[str, str]] = field(default_factory=dict)
    rows_to_save: list[RunRow] = field(default_factory=list)
    trace: list[TraceEntry] = field(default_factory=list)
    # Events to count: run, step and event name.
    counts: list[tuple[RunRow, str, str]] = field(default_factory=list)
    requested_texts: list[TextOrder] = field(default_factory=list)
    holdouts: list[HoldoutPassRow] = field(default_factory=list)
    holdout_months: set[HoldoutMonthBegun] = field(default_factory=set)
    # Runs that end while one of their texts may still be queued.
    ended_with_text: list[UUID] = field(default_factory=list)

    @classmethod
    async def load(cls, tx: Tx, organization_id: UUID, rows: Sequence[RunRow], texting: Texting) -> "_Batch":
        versions = await load_versions(tx, organization_id, {(row.journey_id, row.version) for row in rows})
        subjects = [
            DecisionSubject(row.profile_id, row.sale_id, versions[row.journey_id, row.version].definition)
            for row in rows
        ]
        snapshot = await load_snapshot(tx, organization_id, subjects)
        needed_since = [decide.sales_needed_since(row.triggered_at, _position_of(row), tx.now) for row in rows]
        searches = [(row.profile_id, row.sale_id, since) for row, since in zip(rows, needed_since, strict=True)]
        sales_by_search = await find_sales_since(tx, organization_id, searches)
        return cls(
            tx=tx,
            organization_id=organization_id,
            texting=texting,
            versions=versions,
            snapshot=snapshot,
            numbers=await find_text_numbers(tx, organization_id, {row.profile_id for row in rows}),
            withdrawn=await _find_withdrawn_runs(tx, organization_id, rows),
            other_sales={row.id: sales for row, sales in zip(rows, sales_by_search, strict=True)},
        )

    def advance(self, row: RunRow) -> None:
        definition, has_independent_splits, _ = self.versions[row.journey_id, row.version]
        context = self._build_context(row, definition)
        if context is None:
            return self._record(row, decide.end(decide.RunProgress(_position_of(row), {}), decide.CUSTOMER_GONE))
        if row.id in self.withdrawn:
            return self._record(row, decide.end(decide.RunProgress(_position_of(row), {}), decide.WITHDRAWN))
        # `fact_kind` says whether a sale or a consent started the run.
        subject = decide.RunSubject(
            row.journey_id, row.profile_id, definition, row.fact_kind, row.triggered_at, has_independent_splits
        )
        progress = decide.advance(subject, _position_of(row), context)
        if progress.changes:
            self.changes.setdefault(row.profile_id, {}).update(progress.changes)
        return self._record(row, progress)

    def _build_context(self, row: RunRow, definition: Definition) -> decide.RunContext | None:
        """The context of a run; None if the customer was erased."""
        profile_id = row.profile_id
        evaluation = self.snapshot.context_of(DecisionSubject(profile_id, row.sale_id, definition), self.tx.now)
        if evaluation is None:
            return None
        person = self.snapshot.people[profile_id]
        if profile_id in self.changes:
            person = person._replace(attributes={**person.attributes, **self.changes[profile_id]})
            evaluation = evaluation.with_attributes(person.attributes)
        number = self.numbers.get(profile_id)
        return decide.RunContext(
            evaluation=evaluation,
            person=person,
            sale=None if row.sale_id is None else self.snapshot.sales.get(row.sale_id),
            sales=self.other_sales[row.id],
            phone_number=None if number is None else number.phone_number,
            brand=self.texting.brand,
        )

    def _record(self, row: RunRow, progress: decide.RunProgress) -> None:
        position = progress.position
        self.rows_to_save.append(
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
                ended_at=None if progress.outcome is None else self.tx.now,
            )
        )
        if progress.text is not None:
            self.requested_texts.append(
                TextOrder(
                    origin_kind=OriginKind.JOURNEY,
                    origin_id=row.id,
                    step=progress.text.step,
                    rendered=progress.text.rendered,
                    profile_id=row.profile_id,
                    link_origin=(row.journey_id, progress.text.step),
                    has_personal_links=progress.text.has_personal_links,
                )
            )
        if progress.outcome is not None and position.waits_for == "text":
            self.ended_with_text.append(row.id)
        for passed in progress.holdouts:
            self._record_holdout(row, passed)
        self.trace += [TraceEntry(row.id, event.step, event.event, event.detail) for event in progress.events]
        self.counts += [(row, event.step or "", event.event) for event in progress.events]

    def _record_holdout(self, row: RunRow, passed: decide.HoldoutPass) -> None:
        """Record that the customer passed a split that holds customers out. `HoldoutMonthBegun` makes the attribution
        package schedule the comparison of the purchases of the two groups in that month."""
        zone = self.snapshot.evaluator.context.zone
        sale = None if row.sale_id is None else self.snapshot.sales.get(row.sale_id)
        trigger_day = None if sale is None else day_of(sale.occurred_at, zone)
        counted_from = first_counted_day(day_of(self.tx.now, zone), trigger_day)
        month = counted_from.replace(day=1)
        self.holdouts.append(
            HoldoutPassRow(
                row.journey_id, passed.step, month, row.profile_id, counted_from, passed.percent, passed.is_held_out
            )
        )
        [split] = [
            it for it in holdouts_of(self.versions[row.journey_id, row.version].definition) if it.id == passed.step
        ]
        # `days` is rounded down, so a day is added.
        self.holdout_months.add(
            HoldoutMonthBegun(row.journey_id, passed.step, month, passed.percent, split.texts_within.days + 1)
        )

    async def write(self) -> None:
        tx, organization_id = self.tx, self.organization_id
        if self.changes:
            await _set_attributes(tx, organization_id, self.changes)
        if self.requested_texts:
            await request_texts(tx, organization_id, await self._skip_held_out(), texting=self.texting)
        await queries.save_runs(tx, organization_id, self.rows_to_save)
        await record_passes(tx, organization_id, self.holdouts, self.holdout_months)
        if self.trace:
            await trace.insert_trace(tx, organization_id, self.trace)
        await trace.count_events(tx, organization_id, self.counts)
        await cancel_texts(tx, organization_id, self.ended_with_text)

    async def _skip_held_out(self) -> list[TextOrder]:
        """The requested texts, with a skip reason for customers in the global holdout; their runs continue."""
        profile_ids = {text.profile_id for text in self.requested_texts if text.profile_id is not None}
        held_out = await find_held_out_of_journeys(self.tx, self.organization_id, profile_ids)
        return [
            replace(text, skipped_for=SkipReason.GLOBAL_HOLDOUT) if text.profile_id in held_out else text
            for text in self.requested_texts
        ]


async def _find_withdrawn_runs(tx: Tx, organization_id: UUID, rows: Sequence[RunRow]) -> set[UUID]:
    """The listener ends runs at a withdrawal, but may have handled it before there was a run: facts of different kinds
    are handled in any order. So a run is checked once more before its first step."""
    new = [row for row in rows if row.waits_for is None]
    withdrew = await find_withdrawals(tx, organization_id, [(row.profile_id, row.triggered_at) for row in new])
    return {row.id for row, is_withdrawn in zip(new, withdrew, strict=True) if is_withdrawn}


def _position_of(row: RunRow) -> decide.Position:
    return decide.Position(row.step, row.waits_for, row.waiting_since, row.seen_sales or ())


async def _set_attributes(tx: Tx, organization_id: UUID, changes: dict[UUID, dict[str, str]]) -> None:
    """Set the attributes of all customers. Their profiles are locked, so decisions on attributes are still valid."""
    by_profile = [AttributeChanges(ById(profile_id), values) for profile_id, values in sorted(changes.items())]
    outcomes = await set_attributes(tx, organization_id, by_profile)
    error = next((it for it in outcomes if not isinstance(it, Profile)), None)
    if error is not None:
        raise error
