"""Answers a request to the analysis process: takes a snapshot of the columnar copy of customers and sales, loads the
required columns, and evaluates them in a thread."""

import asyncio
import time
from datetime import datetime
from typing import Final
from uuid import UUID
from weakref import WeakValueDictionary

import msgspec
import numpy as np

from regulars.analytics.answers.answer import add_required, find_answer, respond_to
from regulars.columns.engine import run_rows as queries
from regulars.columns.engine.audience import AudienceCopy, choose_sample, copy_audience
from regulars.columns.engine.cache import CachedColumns, ColumnCache
from regulars.columns.engine.calendar import Zone
from regulars.columns.engine.evaluation import Evaluation
from regulars.columns.engine.loading import RunGoneError, load, required_parts_of
from regulars.columns.lifecycle import find_build_progress, rebuild
from regulars.columns.model import FORMAT
from regulars.columns.protocol import AnalysisRequest, AnalysisResponse, MemberCursor, Members, SegmentCounts
from regulars.kit.db import Database, Tx
from regulars.work.outbox import behind_since

# A limit because each request occupies a database connection and the memory for its columns.
REQUESTS_AT_ONCE: Final = 4
# How often a request takes a snapshot; it takes a new one if compaction deleted data that was being read.
SNAPSHOTS_MAX: Final = 5
MEMBERS_MAX: Final = 10_000


class Engine:
    """Answers requests from cached columns, one request at a time per organization, so that loading a large
    organization for the first time delays no other organization."""

    def __init__(self, database: Database, *, bytes_max: int) -> None:
        self._database = database
        self.cache = ColumnCache(bytes_max)
        self._zones: dict[str, Zone] = {}
        # A lock exists only while a request holds it or waits for it.
        self._locks: WeakValueDictionary[UUID, asyncio.Lock] = WeakValueDictionary()
        self._slots = asyncio.Semaphore(REQUESTS_AT_ONCE)

    async def respond(self, request: AnalysisRequest) -> AnalysisResponse | AudienceCopy:
        async with self._lock(request.organization_id), self._slots:
            for _ in range(SNAPSHOTS_MAX):
                try:
                    async with self._database.transaction() as tx:
                        return await self._respond(tx, request)
                except RunGoneError:
                    continue
        return AnalysisResponse(fault="The columns changed over and over while they were read.")

    async def drop_purged(self) -> None:
        """Drop the cached columns of organizations whose stored columns were purged of erased customers."""
        for organization_id, cached in self.cache.list_cached():
            async with self._lock(organization_id), self._database.transaction() as tx:
                erased_since = await queries.find_erased_since(tx, organization_id, cached.snapshot.epoch)
                if erased_since is None or not cached.is_still_valid(*erased_since):
                    self.cache.forget(organization_id)

    def _lock(self, organization_id: UUID) -> asyncio.Lock:
        return self._locks.setdefault(organization_id, asyncio.Lock())

    async def _respond(self, tx: Tx, request: AnalysisRequest) -> AnalysisResponse | AudienceCopy:
        started = time.perf_counter()
        query = request.query
        # Read before the snapshot, which then contains all changes that were recorded before this time.
        as_of = (await behind_since(tx, request.organization_id) if request.question else None) or tx.now
        snapshot = await queries.find_snapshot(tx, request.organization_id)
        if snapshot is not None and snapshot.format < FORMAT:
            # Written by an older release: the first request starts a rebuild.
            await rebuild(tx, request.organization_id)
        if snapshot is None or snapshot.state != "ready" or snapshot.format != FORMAT:
            return AnalysisResponse(is_ready=False, progress=await find_build_progress(tx, request.organization_id))
        if request.after is not None and request.after.epoch != snapshot.epoch:
            # A rebuild gave all customers new numbers, so the cursor is no longer valid.
            return AnalysisResponse(is_renumbered=True)
        cached = self.cache.find(request.organization_id, snapshot)
        required = required_parts_of(request)
        if request.question is not None:
            answer = find_answer(cached, query, request.question, as_of)
            if answer is not None:
                return AnalysisResponse(answer=answer)
            required = add_required(required, query, request.question)
        zone = self._zones.setdefault(query.zone, Zone(query.zone))
        await load(tx, request.organization_id, cached, required, zone=zone)
        response: AnalysisResponse | AudienceCopy
        if request.want == "figures":
            figures = await asyncio.to_thread(_count, cached, request, zone, tx.now)
            took_ms = round((time.perf_counter() - started) * 1000, 1)
            response = AnalysisResponse(figures=msgspec.structs.replace(figures, took_ms=took_ms))
        elif request.question is not None:
            response = await respond_to(tx, request, request.question, cached, zone=zone, as_of=as_of)
        elif request.want in {"audience", "freeze"}:
            # The counts, or ("freeze") also the ids.
            audience = await asyncio.to_thread(copy_audience, cached, request, zone, tx.now)
            response = audience if request.want == "freeze" else AnalysisResponse(audience=audience.counts)
        else:
            numbers, next_number, total = await asyncio.to_thread(_list_members, cached, request, zone)
            ids = tuple(cached.profile_of(number) for number in numbers)
            cursor = None if next_number is None else MemberCursor(snapshot.epoch, next_number)
            response = AnalysisResponse(members=Members(profile_ids=ids, total=total, next=cursor, as_of=tx.now))
        parts = required.customers | required.sales
        self.cache.evict_to_budget(request.organization_id, parts, is_busy=self._locks.__contains__)
        return response


def _count(cached: CachedColumns, request: AnalysisRequest, zone: Zone, as_of: datetime) -> SegmentCounts:
    evaluation = Evaluation(cached, request.query, zone)
    members = evaluation.members()
    return SegmentCounts(
        total=int(np.count_nonzero(members)),
        customers=int(np.count_nonzero(evaluation.alive)),
        split=evaluation.count_by_consent(members),
        conditions=tuple(evaluation.count()),
        as_of=as_of,
        took_ms=0.0,
    )


def _list_members(cached: CachedColumns, request: AnalysisRequest, zone: Zone) -> tuple[list[int], int | None, int]:
    """A page of customer numbers, where the next page begins, and the total; or a random sample. The next page begins
    at a customer number; in a sorted list, at an index."""
    evaluation = Evaluation(cached, request.query, zone)
    if request.want == "sample":
        members = evaluation.members()
        return choose_sample(members, request), None, int(np.count_nonzero(members))
    is_unreadable = request.want == "unreadable"
    numbers = np.flatnonzero(evaluation.unreadable(request.path) if is_unreadable else evaluation.members())
    limit = min(request.limit, MEMBERS_MAX)
    if request.order is not None:
        first = 0 if request.after is None else request.after.number
        keys = evaluation.sort_keys_of(request.order, request.currency)
        order = np.lexsort([-key[numbers] for key in reversed(keys)])[first : first + limit]
        return numbers[order].tolist(), first + limit if first + limit < numbers.size else None, numbers.size
    first = 0 if request.after is None else int(np.searchsorted(numbers, request.after.number))
    page = numbers[first : first + limit].tolist()
    is_last = first + limit >= numbers.size
    return page, None if is_last else page[-1] + 1, numbers.size
