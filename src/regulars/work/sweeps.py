"""Sweeps: what is kept for a time becomes due at its end, like everything else that waits.

The loop looks now and then, finds the organizations that have something past its time, and runs the room's own sweep
for each; all others cost nothing.
"""

from collections.abc import Awaitable, Callable
from uuid import UUID

from regulars.kit.db import Database
from regulars.work.queue import Due, Queue


class Sweep(Queue):
    turns_at_once = 1

    def __init__(
        self, name: str, due: Due, run: Callable[[Database, UUID], Awaitable[object]], *, look_every_s: float
    ) -> None:
        """`run` deletes all that is past its time in small transactions."""
        self.name = name
        self.due = due
        self.look_every_s = look_every_s
        self._run = run

    async def take_turn(self, database: Database, organization_id: UUID) -> bool:
        await self._run(database, organization_id)
        return False
