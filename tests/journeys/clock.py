"""A database whose clock the test holds, and whose commits it can lose."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from math import inf

from regulars.kit.db import Database, Tx


class CrashError(Exception):
    """The process dies before it commits."""


class HeldDatabase(Database):
    """Ahead of the real clock, so that whatever the database itself dates with now() lies in the past."""

    now: datetime
    is_dying = False

    def pass_time(self, passed: timedelta) -> None:
        self.now += passed

    @asynccontextmanager
    async def transaction(self, *, until: float = inf) -> AsyncIterator[Tx]:
        async with super().transaction(until=until) as tx:
            yield replace(tx, now=self.now)
            if self.is_dying:
                raise CrashError

    @asynccontextmanager
    async def reading(self, *, until: float = inf) -> AsyncIterator[Tx]:
        async with super().reading(until=until) as tx:
            yield replace(tx, now=self.now)
