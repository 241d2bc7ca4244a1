"""Count the phone numbers with and without consent, by source, by store and by day, for the pages that show them.

Counting reads every subscription of the organization, which takes too long for a page. So a page shows the last count
and its time; if that count is too old, the page requests a new count, which the worker usually stores a second later.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec

from regulars.consent.model import Status
from regulars.kit.clock import monotonic, start_of_last_days
from regulars.kit.db import Database, Tx
from regulars.work.queue import Due, Queue, WaitLimit

# How many weeks of opt-ins and withdrawals are counted by day.
WEEKS_COUNTED: Final = 26
STORE_OPT_INS_DAYS: Final = 30
# A count is fresh for this many seconds, or for this many times the time that counting took, whichever is longer.
FRESH_S_MIN: Final = 30.0
FRESH_PER_COUNTING: Final = 50


class StoreConsents(msgspec.Struct, frozen=True):
    """How many numbers consented in one store: those subscribed now, and those that consented in the last 30 days."""

    store_id: UUID
    subscribed: int
    opt_ins: int


class DailyChange(msgspec.Struct, frozen=True):
    """The opt-ins and withdrawals of one day."""

    day: date
    opt_ins: int
    withdrawals: int


class ConsentFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of phone numbers by the state, the source and the store of their consent, and of changes by day."""

    subscribed: int = 0
    withdrawn: int = 0
    # Numbers of erased people.
    do_not_contact: int = 0
    # Subscribed numbers that have neither terms nor a source text as proof of consent.
    weak_proofs: int = 0
    # Subscribed phone numbers by the source of their consent, largest count first.
    sources: list[tuple[str, int]] = []
    stores: list[StoreConsents] = []
    changes: list[DailyChange] = []

    def opt_ins_at(self, store_id: UUID) -> int:
        return next((store.opt_ins for store in self.stores if store.store_id == store_id), 0)

    def since(self, day: date) -> DailyChange:
        """The sum of the changes since a day, that day included."""
        later_changes = [change for change in self.changes if change.day >= day]
        return DailyChange(
            day, sum(change.opt_ins for change in later_changes), sum(change.withdrawals for change in later_changes)
        )


class FiguresSnapshot(msgspec.Struct, frozen=True):
    """The last count and its time; both are None until the first count has ended."""

    figures: ConsentFigures | None
    counted_at: datetime | None
    is_being_counted: bool


class _StoredFigures(NamedTuple):
    counted_at: datetime | None
    # How long counting took.
    took_ms: int | None
    # The counts as JSON.
    figures: str | None
    # Whether a new count is requested.
    is_due: bool


class StatusCount(NamedTuple):
    status: str
    is_erased: bool
    source: str | None
    numbers: int
    # How many of these numbers have a weak proof.
    weak: int


class ChangeCount(NamedTuple):
    day: datetime
    is_opt_in: bool
    numbers: int


async def read_figures(database: Database, organization_id: UUID, *, time_zone: str) -> FiguresSnapshot:
    """Return the last count, and request a new count if the last count is too old."""
    async with database.reading() as tx:
        stored = await _find_figures(tx, organization_id)
        now = tx.now
    is_requested = stored is not None and stored.is_due
    if not is_requested and (stored is None or _is_stale(stored, now)):
        async with database.transaction() as tx:
            await tx.execute(
                """
                INSERT INTO consent_figures (organization_id, time_zone, due_at)
                VALUES (%(organization_id)s, %(time_zone)s, %(now)s)
                ON CONFLICT (organization_id) DO UPDATE SET due_at = excluded.due_at, time_zone = excluded.time_zone
                """,
                {"organization_id": organization_id, "time_zone": time_zone, "now": tx.now},
            )
        is_requested = True
    if stored is None or stored.figures is None:
        return FiguresSnapshot(None, None, is_requested)
    return FiguresSnapshot(msgspec.json.decode(stored.figures, type=ConsentFigures), stored.counted_at, is_requested)


async def request_recount(tx: Tx, organization_id: UUID) -> None:
    """Request a new count if there was a count before; otherwise the first page that needs a count requests it."""
    await tx.execute("UPDATE consent_figures SET due_at = %s WHERE organization_id = %s", (tx.now, organization_id))
    # After the commit, the process wakes a worker for this queue.
    tx.queues_to_wake.add((ConsentFiguresQueue.name, organization_id))


def _is_stale(stored: _StoredFigures, now: datetime) -> bool:
    if stored.counted_at is None:
        return True
    fresh_s = max(FRESH_S_MIN, FRESH_PER_COUNTING * (stored.took_ms or 0) / 1000)
    return now - stored.counted_at > timedelta(seconds=fresh_s)


class ConsentFiguresQueue(Queue):
    """Counts for each organization for which a page requested a count."""

    name = "consent.figures"
    due = Due(table="consent_figures", waits=(WaitLimit(at_most=(timedelta(0),)),))
    passes_at_once = 1

    async def run_pass(self, database: Database, organization_id: UUID) -> bool:
        await count_figures(database, organization_id)
        return False


async def count_figures(database: Database, organization_id: UUID) -> None:
    async with database.transaction() as tx:
        time_zone = await _lock_due_figures(tx, organization_id)
        if time_zone is None:
            return
        started = monotonic()
        counts = await _count_subscriptions(tx, organization_id)
        zone = ZoneInfo(time_zone)
        since = tx.now - timedelta(weeks=WEEKS_COUNTED)
        changes = await _count_changes(tx, organization_id, since=since, time_zone=time_zone)
        stores = await _count_by_store(tx, organization_id, since=start_of_last_days(STORE_OPT_INS_DAYS, tx.now, zone))
        figures = _sum_counts(counts, stores, changes, zone)
        took_ms = int((monotonic() - started) * 1000)
        await tx.execute(
            """
            UPDATE consent_figures SET due_at = NULL, counted_at = %s, took_ms = %s, figures = %s
            WHERE organization_id = %s
            """,
            (tx.now, took_ms, msgspec.json.encode(figures).decode(), organization_id),
        )


def _sum_counts(
    counts: Sequence[StatusCount],
    stores: Sequence[StoreConsents],
    changes: Sequence[ChangeCount],
    zone: ZoneInfo,
) -> ConsentFigures:
    subscribed = [count for count in counts if count.status == Status.SUBSCRIBED]
    withdrawn = [count for count in counts if count.status != Status.SUBSCRIBED]
    sources: Counter[str] = Counter()
    for count in subscribed:
        sources[count.source or "OTHER"] += count.numbers
    days: dict[date, Counter[bool]] = {}
    for change in changes:
        days.setdefault(change.day.astimezone(zone).date(), Counter())[change.is_opt_in] += change.numbers
    return ConsentFigures(
        subscribed=sum(count.numbers for count in subscribed),
        withdrawn=sum(count.numbers for count in withdrawn if not count.is_erased),
        do_not_contact=sum(count.numbers for count in withdrawn if count.is_erased),
        weak_proofs=sum(count.weak for count in subscribed),
        sources=sources.most_common(),
        stores=sorted(stores, key=lambda store: -store.opt_ins),
        changes=[
            DailyChange(day, counts_of_day[True], counts_of_day[False]) for day, counts_of_day in sorted(days.items())
        ],
    )


async def _find_figures(tx: Tx, organization_id: UUID) -> _StoredFigures | None:
    return await tx.fetch_first(
        _StoredFigures,
        "SELECT counted_at, took_ms, figures::text, due_at IS NOT NULL FROM consent_figures WHERE organization_id = %s",
        (organization_id,),
    )


async def _lock_due_figures(tx: Tx, organization_id: UUID) -> str | None:
    """Lock the row of a due count, and return its time zone; None if no count is due or the row is locked already."""
    return await tx.fetch_value(
        """
        SELECT time_zone FROM consent_figures
        WHERE organization_id = %s AND due_at IS NOT NULL
        FOR UPDATE SKIP LOCKED
        """,
        (organization_id,),
    )


async def _count_subscriptions(tx: Tx, organization_id: UUID) -> list[StatusCount]:
    """Count numbers by status and source. Only the worker calls this function, because it reads every subscription."""
    return await tx.fetch_all(
        StatusCount,
        """
        SELECT status, phone_number IS NULL, consent_source, count(*),
               count(*) FILTER (WHERE terms_version IS NULL AND source_text IS NULL)
        FROM subscriptions
        WHERE organization_id = %s
        GROUP BY 1, 2, 3
        """,
        (organization_id,),
    )


async def _count_by_store(tx: Tx, organization_id: UUID, *, since: datetime) -> list[StoreConsents]:
    """Count numbers by the store of their consent. Only the worker calls this function: it reads every subscription."""
    return await tx.fetch_all(
        StoreConsents,
        """
        SELECT store_id, count(*) FILTER (WHERE status = 'SUBSCRIBED'),
               count(*) FILTER (WHERE latest_opt_in_at >= %(since)s)
        FROM subscriptions
        WHERE organization_id = %(organization_id)s AND store_id IS NOT NULL
        GROUP BY store_id
        """,
        {"organization_id": organization_id, "since": since},
    )


async def _count_changes(tx: Tx, organization_id: UUID, *, since: datetime, time_zone: str) -> list[ChangeCount]:
    """Count opt-ins and withdrawals by day. Only the worker calls this function, because it reads the whole ledger."""
    return await tx.fetch_all(
        ChangeCount,
        """
        SELECT date_trunc('day', effective_at, %(time_zone)s), kind = 'OPT_IN', count(*)
        FROM consent_ledger
        WHERE organization_id = %(organization_id)s AND effective_at >= %(since)s
          AND outcome IN ('created', 'resubscribed', 'unsubscribed')
        GROUP BY 1, 2
        """,
        {"organization_id": organization_id, "since": since, "time_zone": time_zone},
    )
