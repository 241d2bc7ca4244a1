"""Serve the probes for operators: whether the server is alive, whether it is ready, and its metrics."""

import asyncio
from collections.abc import Callable
from typing import Final

import psycopg
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from regulars.kit import migrate
from regulars.kit.clock import monotonic
from regulars.kit.db import CONNECTION_ERRORS, Database
from regulars.kit.metrics import CONTENT_TYPE, PROCESS_METRICS
from regulars.kit.releases import ProcessRole, find_refusal
from regulars.kit.writable import Writability

# The server is not ready while a write waits for longer than this.
STUCK_AFTER_S: Final = 5.0
PROBE_S_MAX: Final = 5.0


def service_routes(readiness: "Readiness") -> list[BaseRoute]:
    return [
        Route("/healthz", _healthz),
        Route("/readyz", readiness.respond),
        Route("/metrics", _metrics),
    ]


async def _healthz(_request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _metrics(_request: Request) -> Response:
    return Response(PROCESS_METRICS.render(), media_type=CONTENT_TYPE)


class Readiness:
    """The server is ready when the database accepts writes, no write is stuck, no migration is missing, no newer
    release has excluded this one, and it is not stopping."""

    def __init__(
        self,
        database: Database,
        *,
        writability: Writability,
        oldest_write_s: Callable[[], float],
        is_stopping: Callable[[], bool],
    ) -> None:
        self._database = database
        self._writability = writability
        self._oldest_write_s = oldest_write_s
        self._is_stopping = is_stopping
        # Migrations only go forward: once this release misses none, it will never miss one.
        self._is_migrated = False

    async def respond(self, _request: Request) -> Response:
        reason = await self.explain()
        if reason is not None:
            return JSONResponse({"status": "unavailable", "reason": reason}, 503)
        return JSONResponse({"status": "ready"})

    async def explain(self) -> str | None:
        """Say in one sentence why the server is not ready; None if it is ready."""
        if self._is_stopping():
            return "The server is stopping."
        if self._oldest_write_s() > STUCK_AFTER_S:
            return f"Writes have been waiting for the database for more than {STUCK_AFTER_S:.0f} seconds."
        try:
            reason = await self._writability.find_write_error(until=monotonic() + PROBE_S_MAX)
            if not self._is_migrated:
                self._is_migrated = not await asyncio.to_thread(migrate.pending, self._database.url)
            if self._is_migrated and reason is None:
                reason = await find_refusal(self._database, ProcessRole.SERVER, until=monotonic() + PROBE_S_MAX)
        except (*CONNECTION_ERRORS, psycopg.Error, migrate.MigrationError):
            return "The database cannot be reached."
        if not self._is_migrated:
            return "Migrations are missing: run `regulars migrate`."
        return reason
