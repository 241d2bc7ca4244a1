"""The outbox: facts are recorded in the transaction that made them true, and handed to their listeners afterwards.

Listeners of one fact do not know each other. If one fails, the others' success is committed with a row for the one
that failed (`retries.py`), which is tried again alone. One that cannot get its lock, or takes too long, blocks no
other listener either: its facts are put aside for it at once, and for a while it is not waited for again.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from regulars.kit import failpoint, ids, log
from regulars.kit.clock import monotonic
from regulars.kit.db import Database, Tx
from regulars.work import queries
from regulars.work.batch_size import HELD_UP
from regulars.work.facts import Fact, Listener, Listeners, find_condition
from regulars.work.queries import OutboxRow, RetryRow
from regulars.work.queue import (
    BITE_ROWS,
    Due,
    Queue,
    RowsFailedError,
    Schedule,
    find_guilty,
    log_failure,
    raise_if_lost,
)

# Waits before the second, third, … try. A fact that a listener fails on after all of them is parked: it stays for a
# person to look at, and nothing waits behind it.
# A fact waits a moment in the busiest hour too; only what waits longer is worth a word to people.
BEHIND_MIN: Final = timedelta(seconds=3)
RETRIES: Final = Schedule(waits_s=(1, 5, 30, 120, 600, 1800, 3600))


# Some 6,000 sales; one that is bigger by itself is taken alone.
BITE_CHARACTERS_MAX: Final = 1 << 18
# Under this name the loop finds what was put aside (`retries.py`).
RETRY_QUEUE: Final = "outbox.retries"
# A statement of a listener has this long while the facts of all others wait for it. Put aside, it has the usual limit.
STATEMENT_MS_MAX: Final = 5_000
# How long the facts of a listener that was held up go straight to its own queue.
ASIDE_S: Final = 60.0

_log = log.get(__name__)

Tell = Callable[[Tx, UUID, type[Fact], Mapping[str, Listener], Sequence[OutboxRow]], Awaitable[None]]


async def record(tx: Tx, organization_id: UUID, facts: Sequence[Fact], *, due_at: datetime | None = None) -> None:
    """Write the facts: one row for each topic, whose payload is the list of its facts in the order given.

    Facts that wait for interest are written only if there is any. The worker is woken after the commit.
    """
    by_type: dict[type[Fact], list[Fact]] = {}
    for fact in facts:
        by_type.setdefault(type(fact), []).append(fact)
    rows = [
        queries.NewOutboxRow(
            ids.new_uuid(), kind.topic, msgspec.json.encode(together).decode(), on_interest=kind.on_interest
        )
        for kind, together in by_type.items()
    ]
    if rows and await queries.insert_outbox_rows(tx, organization_id, rows, due_at=due_at):
        tx.touched.add((OutboxQueue.name, organization_id))


async def is_wanted(tx: Tx, organization_id: UUID, fact: type[Fact]) -> bool:
    """Whether anybody waits for the fact: asked by those for whom making it is work, before they make it."""
    return await queries.has_interest(tx, organization_id, topic=fact.topic)


async def behind_since(tx: Tx, organization_id: UUID) -> datetime | None:
    """What was recorded up to when has reached its listeners, if they are behind; figures are as of then."""
    oldest = await queries.find_oldest_row(tx, organization_id)
    return oldest if oldest is not None and tx.now - oldest > BEHIND_MIN else None


class OutboxQueue(Queue):
    """Hands every due fact to its listeners.

    Rows whose topic no listener table names are left alone: they may belong to a newer version of the code that is
    starting up beside this one.

    The listeners in `last` hear their facts when all others have heard theirs, of whatever kind. They hold something of
    the organization until the commit: if another took a lock of its own after that, two workers that drain the same
    organization could wait for each other.
    """

    name = "outbox"
    due = Due(table="outbox")
    turns_at_once = 4
    gathers = True

    def __init__(self, listeners: Listeners, *, last: Collection[str] = ()) -> None:
        self._kinds = {kind.topic: kind for kind in listeners}
        self._rounds = [
            {
                kind: {name: listener for name, listener in by_name.items() if (name in last) is is_last}
                for kind, by_name in listeners.items()
            }
            for is_last in (False, True)
        ]
        conditions = {find_condition(listener) for by_name in listeners.values() for listener in by_name.values()}
        self._conditions = sorted(condition for condition in conditions if condition is not None)
        self._bite_rows = BITE_ROWS
        # Organization and listener, and until when its facts are put aside.
        self._aside: dict[tuple[UUID, str], float] = {}

    async def take_turn(self, database: Database, organization_id: UUID) -> bool:
        while True:
            try:
                return await self._hand_over(database, organization_id, self._tell_all)
            except ListenerHeldUpError as held_up:
                # Nothing took effect. The same facts are handed to the others, and put aside for this one.
                self._put_aside(organization_id, held_up.listener, held_up.__cause__)
            except RowsFailedError:
                return await self._hand_over(database, organization_id, self._tell_each)

    async def _hand_over(self, database: Database, organization_id: UUID, tell: Tell) -> bool:
        async with database.transaction(statement_timeout_ms=STATEMENT_MS_MAX) as tx:
            limit = self._bite_rows
            taken = await queries.take_due_rows(tx, organization_id, list(self._kinds), limit=limit)
            rows = self._bite(taken)
            if rows:
                failpoint.hit("fact.taken", tx.connection.cut_off)
            by_topic: dict[str, list[OutboxRow]] = {}
            for row in rows:
                by_topic.setdefault(row.topic, []).append(row)
            unmet = await self._find_unmet_conditions(tx, organization_id) if rows else ()
            for listeners in self._rounds:
                for topic, together in by_topic.items():
                    kind = self._kinds[topic]
                    needed = {
                        name: listener
                        for name, listener in listeners[kind].items()
                        if find_condition(listener) not in unmet
                    }
                    waited_for = await self._without_aside(tx, organization_id, needed, together)
                    if waited_for:
                        await tell(tx, organization_id, kind, waited_for, together)
            if rows:
                await queries.delete_rows(tx, organization_id, [row.id for row in rows])
        return len(rows) < len(taken) or len(taken) == limit

    async def _find_unmet_conditions(self, tx: Tx, organization_id: UUID) -> Collection[str | None]:
        if not self._conditions:
            return ()
        held = await queries.evaluate_conditions(tx, organization_id, self._conditions)
        return {condition for condition, holds in zip(self._conditions, held, strict=True) if not holds}

    def _put_aside(self, organization_id: UUID, listener: str, error: BaseException | None) -> None:
        now = monotonic()
        self._aside = {address: until for address, until in self._aside.items() if until > now}
        self._aside[organization_id, listener] = now + ASIDE_S
        _log.warning(
            "outbox.listener_put_aside",
            organization_id=str(organization_id),
            listener=listener,
            error=type(error).__name__,
        )

    async def _without_aside(
        self, tx: Tx, organization_id: UUID, listeners: Mapping[str, Listener], rows: Sequence[OutboxRow]
    ) -> Mapping[str, Listener]:
        """The listeners to notify now; the rows are put aside for those that hit a lock or a timeout a moment ago."""
        if not self._aside:
            return listeners
        now = monotonic()
        aside = [name for name in listeners if self._aside.get((organization_id, name), now) > now]
        for name in aside:
            await self._keep_for(tx, organization_id, name, rows, attempts=0)
        return {name: listener for name, listener in listeners.items() if name not in aside}

    async def _keep_for(
        self, tx: Tx, organization_id: UUID, name: str, rows: Sequence[OutboxRow], *, attempts: int
    ) -> None:
        due_at = RETRIES.due_at(tx.now, attempts=attempts) if attempts else tx.now
        ids_of_rows = [row.id for row in rows]
        await queries.insert_retries(tx, organization_id, ids_of_rows, listener=name, attempts=attempts, due_at=due_at)
        tx.touched.add((RETRY_QUEUE, organization_id))

    def _bite(self, taken: Sequence[OutboxRow]) -> Sequence[OutboxRow]:
        """The first of the rows, up to a size: one may tell of one sale and another of a thousand.

        The rest is left to the next turn, and as long as rows are this big fewer of them are taken.
        """
        size = 0
        for count, row in enumerate(taken, 1):
            size += len(row.payload)
            if size > BITE_CHARACTERS_MAX:
                self._bite_rows = count
                return taken[:count]
        self._bite_rows = min(BITE_ROWS, self._bite_rows * 2)
        return taken

    async def _tell_all(
        self,
        tx: Tx,
        organization_id: UUID,
        kind: type[Fact],
        listeners: Mapping[str, Listener],
        rows: Sequence[OutboxRow],
    ) -> None:
        """The usual case, with as few round trips as there are: if any row fails, none has taken effect."""
        name = ""
        try:
            facts = decode_facts(kind, rows)
            for name, listener in listeners.items():  # noqa: B007  # the name is read where it failed
                await listener(tx, organization_id, facts)
        except HELD_UP as error:
            raise ListenerHeldUpError(name) from error
        except Exception as error:
            raise_if_lost(tx, error)
            raise RowsFailedError from error

    async def _tell_each(
        self,
        tx: Tx,
        organization_id: UUID,
        kind: type[Fact],
        listeners: Mapping[str, Listener],
        rows: Sequence[OutboxRow],
    ) -> None:
        """Each listener by itself, in halves where it fails; what it fails on waits for it alone."""
        for name, listener in listeners.items():

            async def tell(some: Sequence[OutboxRow], listener: Listener = listener) -> None:
                await listener(tx, organization_id, decode_facts(kind, some))

            try:
                # A savepoint around the bisection: a listener that is held up handles no row here, and all rows later.
                async with tx.connection.transaction():
                    guilty = await find_guilty(tx, rows, tell)
            except HELD_UP as held_up:
                self._put_aside(organization_id, name, held_up)
                await self._keep_for(tx, organization_id, name, rows, attempts=0)
                continue
            for row, error in guilty:
                about = {"row": str(row.id), "topic": kind.topic, "listener": name}
                log_failure(self.name, organization_id, error, attempts=1, is_parked=False, **about)
            if guilty:
                await self._keep_for(tx, organization_id, name, [row for row, _ in guilty], attempts=1)


class ListenerHeldUpError(Exception):
    """A listener could not get its lock or ran out of time."""

    def __init__(self, listener: str) -> None:
        super().__init__(listener)
        self.listener = listener


def decode_facts(kind: type[Fact], rows: Sequence[OutboxRow | RetryRow]) -> list[Fact]:
    decoder = msgspec.json.Decoder(list[kind])  # type: ignore[valid-type]  # known at run time only
    return [fact for row in rows for fact in decoder.decode(row.payload)]
