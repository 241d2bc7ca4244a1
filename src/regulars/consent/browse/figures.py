"""How many may be texted, from which source, and how that moves: counted by the worker when a page asks.

Counting reads every subscription of the organization, which no page may do. So a page shows what was counted last and
says when; if that is too old, it asks for a new count, which is there a second later.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec

from regulars.consent.browse import queries
from regulars.consent.browse.model import StoreConsents
from regulars.consent.model import Status
from regulars.kit.clock import monotonic, start_of_last
from regulars.kit.db import Database, Tx
from regulars.work.queue import Due, Queue

WEEKS: Final = 26
BY_STORE_DAYS: Final = 30
FRESH_S_MIN: Final = 30.0
# Counting takes at most this part of the time while somebody keeps looking.
FRESH_PER_COUNTING: Final = 50


class Change(msgspec.Struct, frozen=True):
    """What happened on one day: people who opted in, and people who withdrew."""

    day: date
    opt_ins: int
    withdrawals: int


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    subscribed: int = 0
    withdrawn: int = 0
    do_not_contact: int = 0
    weak_proofs: int = 0
    # Subscribed by the source of their consent, the largest first.
    sources: list[tuple[str, int]] = []
    stores: list[StoreConsents] = []
    changes: list[Change] = []

    def opt_ins_at(self, store_id: UUID) -> int:
        return next((one.opt_ins for one in self.stores if one.store_id == store_id), 0)

    def since(self, day: date) -> Change:
        """The changes from a day on, added up."""
        fitting = [change for change in self.changes if change.day >= day]
        return Change(day, sum(one.opt_ins for one in fitting), sum(one.withdrawals for one in fitting))


class Counted(msgspec.Struct, frozen=True):
    """Figures and when they were counted; without them, they are being counted for the first time."""

    figures: Figures | None
    counted_at: datetime | None
    is_being_counted: bool


async def read_figures(database: Database, organization_id: UUID, *, time_zone: str) -> Counted:
    """What was counted last; asks for a new count if it is too old."""
    async with database.reading() as tx:
        stored = await queries.find_figures(tx, organization_id)
        now = tx.now
    is_being_counted = stored is not None and stored.is_due
    if not is_being_counted and (stored is None or _is_stale(stored, now)):
        async with database.transaction() as tx:
            await queries.ask_for_figures(tx, organization_id, time_zone=time_zone)
        is_being_counted = True
    if stored is None or stored.figures is None:
        return Counted(None, None, is_being_counted)
    return Counted(msgspec.json.decode(stored.figures, type=Figures), stored.counted_at, is_being_counted)


async def recount(tx: Tx, organization_id: UUID) -> None:
    """Have the figures counted again; those that no page has asked for yet are counted when one does."""
    await queries.ask_for_figures_again(tx, organization_id)
    tx.touched.add((ConsentFigures.name, organization_id))


def _is_stale(stored: queries.StoredFigures, now: datetime) -> bool:
    if stored.counted_at is None:
        return True
    fresh_s = max(FRESH_S_MIN, FRESH_PER_COUNTING * (stored.took_ms or 0) / 1000)
    return now - stored.counted_at > timedelta(seconds=fresh_s)


class ConsentFigures(Queue):
    """Counts for the organizations whose pages asked."""

    name = "consent.figures"
    due = Due(table="consent_figures")
    passes_at_once = 1

    async def run_pass(self, database: Database, organization_id: UUID) -> bool:
        await count_figures(database, organization_id)
        return False


async def count_figures(database: Database, organization_id: UUID) -> None:
    async with database.transaction() as tx:
        time_zone = await queries.lock_due_figures(tx, organization_id)
        if time_zone is None:
            return
        started = monotonic()
        counts = await queries.count_subscriptions(tx, organization_id)
        zone = ZoneInfo(time_zone)
        since = tx.now - timedelta(weeks=WEEKS)
        changes = await queries.count_changes(tx, organization_id, since=since, time_zone=time_zone)
        stores = await queries.count_by_store(tx, organization_id, since=start_of_last(BY_STORE_DAYS, tx.now, zone))
        figures = _figures(counts, stores, changes, zone)
        took_ms = int((monotonic() - started) * 1000)
        await queries.keep_figures(
            tx, organization_id, counted_at=tx.now, took_ms=took_ms, figures=msgspec.json.encode(figures).decode()
        )


def _figures(
    counts: Sequence[queries.StatusCount],
    stores: Sequence[StoreConsents],
    changes: Sequence[queries.ChangeCount],
    zone: ZoneInfo,
) -> Figures:
    subscribed = [one for one in counts if one.status == Status.SUBSCRIBED]
    sources: Counter[str] = Counter()
    for one in subscribed:
        sources[one.source or "OTHER"] += one.numbers
    days: dict[date, Counter[bool]] = {}
    for change in changes:
        days.setdefault(change.day.astimezone(zone).date(), Counter())[change.is_opt_in] += change.numbers
    return Figures(
        subscribed=sum(one.numbers for one in subscribed),
        withdrawn=sum(one.numbers for one in counts if one.status != Status.SUBSCRIBED and not one.is_forgotten),
        do_not_contact=sum(one.numbers for one in counts if one.status != Status.SUBSCRIBED and one.is_forgotten),
        weak_proofs=sum(one.weak for one in subscribed),
        sources=sources.most_common(),
        stores=sorted(stores, key=lambda one: -one.opt_ins),
        changes=[Change(day, many[True], many[False]) for day, many in sorted(days.items())],
    )
