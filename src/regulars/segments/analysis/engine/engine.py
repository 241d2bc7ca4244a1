"""Answer a question: one snapshot, what it needs of the columns, and then the computing, in a thread."""

import asyncio
import random
import time
from datetime import datetime
from typing import Final
from uuid import UUID
from weakref import WeakValueDictionary

import msgspec
import numpy as np

from regulars.kit.db import Database, Tx
from regulars.segments.analysis.engine import queries
from regulars.segments.analysis.engine.cache import Held, Memory
from regulars.segments.analysis.engine.calendar import Zone
from regulars.segments.analysis.engine.customer_columns import PROFILE
from regulars.segments.analysis.engine.evaluation import Evaluation
from regulars.segments.analysis.engine.loading import RunGoneError, add_order, load, need_of
from regulars.segments.analysis.protocol import Answer, Figures, Members, Place, Question
from regulars.segments.columns.lifecycle import find_progress, rebuild
from regulars.segments.columns.model import FORMAT

# Each has a connection, and what it needs in memory at least while it lasts.
ANSWERS_AT_ONCE: Final = 4
SNAPSHOTS_MAX: Final = 5
MEMBERS_MAX: Final = 10_000


class Engine:
    """What the process keeps between questions. Those of one organization are answered one at a time; a large one that
    is read for the first time delays no other."""

    def __init__(self, database: Database, *, bytes_max: int) -> None:
        self._database = database
        self.cache = Memory(bytes_max)
        self._zones: dict[str, Zone] = {}
        # A lock is there as long as anybody holds or waits for it.
        self._turns: WeakValueDictionary[UUID, asyncio.Lock] = WeakValueDictionary()
        self._places = asyncio.Semaphore(ANSWERS_AT_ONCE)

    async def answer(self, question: Question) -> Answer:
        async with self._turn(question.organization_id), self._places:
            for _ in range(SNAPSHOTS_MAX):
                try:
                    async with self._database.transaction() as tx:
                        return await self._answer(tx, question)
                except RunGoneError:
                    continue
        return Answer(fault="The columns changed over and over while they were read.")

    async def forget_purged(self) -> None:
        """Let go of whatever people may be in who were erased: those columns were written anew without them."""
        for organization_id, held in self.cache.list_held():
            async with self._turn(organization_id), self._database.transaction() as tx:
                found = await queries.find_erased_since(tx, organization_id, held.snapshot.epoch)
                if found is None or not held.stays(*found):
                    self.cache.forget(organization_id)

    def _turn(self, organization_id: UUID) -> asyncio.Lock:
        return self._turns.setdefault(organization_id, asyncio.Lock())

    def _is_busy(self, organization_id: UUID) -> bool:
        return organization_id in self._turns

    async def _answer(self, tx: Tx, question: Question) -> Answer:
        started = time.perf_counter()
        asked = question.asked
        snapshot = await queries.find_snapshot(tx, question.organization_id)
        if snapshot is not None and snapshot.format < FORMAT:
            # Written by an older release: whoever asks first has them built again.
            await rebuild(tx, question.organization_id)
        if snapshot is None or snapshot.state != "ready" or snapshot.format != FORMAT:
            return Answer(is_ready=False, progress=await find_progress(tx, question.organization_id))
        if question.after is not None and question.after.epoch != snapshot.epoch:
            return Answer(is_renumbered=True)
        held = self.cache.find(question.organization_id, snapshot)
        need = need_of(asked.match, asked.segments)
        if question.want != "figures":
            need.customers.update(PROFILE)
            add_order(need, question.order)
        zone = self._zones.setdefault(asked.zone, Zone(asked.zone))
        await load(tx, question.organization_id, held, need, zone=zone)
        if question.want == "figures":
            figures = await asyncio.to_thread(_figures, held, question, zone, tx.now)
            took_ms = round((time.perf_counter() - started) * 1000, 1)
            answer = Answer(figures=msgspec.structs.replace(figures, took_ms=took_ms))
        else:
            numbers, following, total = await asyncio.to_thread(_members, held, question, zone)
            ids = tuple(held.profile_of(number) for number in numbers)
            place = None if following is None else Place(snapshot.epoch, following)
            answer = Answer(members=Members(profile_ids=ids, total=total, next=place, as_of=tx.now))
        self.cache.make_room(question.organization_id, need.customers | need.sales, is_busy=self._is_busy)
        return answer


def _figures(held: Held, question: Question, zone: Zone, as_of: datetime) -> Figures:
    evaluation = Evaluation(held, question.asked, zone)
    members = evaluation.members()
    return Figures(
        total=int(np.count_nonzero(members)),
        customers=int(np.count_nonzero(evaluation.alive)),
        split=evaluation.split(members),
        conditions=tuple(evaluation.count()),
        as_of=as_of,
        took_ms=0.0,
    )


def _members(held: Held, question: Question, zone: Zone) -> tuple[list[int], int | None, int]:
    """A page of them, where the next begins, and how many there are; or some by chance."""
    evaluation = Evaluation(held, question.asked, zone)
    is_of_one = question.want == "unreadable"
    numbers = np.flatnonzero(evaluation.unreadable(question.path) if is_of_one else evaluation.members())
    limit = min(question.limit, MEMBERS_MAX)
    if question.want == "sample":
        chance = random.Random(question.seed)  # noqa: S311  # which customers are shown is no secret
        chosen = chance.sample(range(numbers.size), min(limit, numbers.size))
        return [int(numbers[place]) for place in chosen], None, numbers.size
    if question.order is not None:
        first = 0 if question.after is None else question.after.number
        keys = evaluation.keys_of(question.order, question.currency)
        sorted_ = np.lexsort([-key[numbers] for key in reversed(keys)])[first : first + limit]
        return numbers[sorted_].tolist(), first + limit if first + limit < numbers.size else None, numbers.size
    first = 0 if question.after is None else int(np.searchsorted(numbers, question.after.number))
    page = numbers[first : first + limit].tolist()
    is_last = first + limit >= numbers.size
    return page, None if is_last else page[-1] + 1, numbers.size
