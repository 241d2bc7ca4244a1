"""A database whose clock the test holds, and whose commits it can lose."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from math import inf

from regulars.kit.db import Database, Tx

SECOND_NS = 1_000_000_000


class CrashError(Exception):
    """The process dies before it commits."""


class HeldTime:
    """The clock of a server beside that database."""

    def __init__(self, database: "HeldDatabase") -> None:
        self._database = database

    def time_ns(self) -> int:
        # The fraction of the real second: chance is the same in every run, and ids must differ all the same.
        return int(self._database.now.timestamp()) * SECOND_NS + time.time_ns() % SECOND_NS


class HeldDatabase(Database):
    """Ahead of the real clock, so that whatever the database itself dates with now() lies in the past."""

    now: datetime
    is_dying = False

    def pass_time(self, passed: timedelta) -> None:
        self.now += passed

    @asynccontextmanager
    async def transaction(self, *, until: float = inf, statement_timeout_ms: int | None = None) -> AsyncIterator[Tx]:
        async with super().transaction(until=until, statement_timeout_ms=statement_timeout_ms) as tx:
            yield replace(tx, now=self.now)
            if self.is_dying:
                raise CrashError

    @asynccontextmanager
    async def reading(self, *, until: float = inf) -> AsyncIterator[Tx]:
        async with super().reading(until=until) as tx:
            yield replace(tx, now=self.now)
