"""What operators and probes ask a server: is it alive, is it ready, and how much has it done."""

import asyncio

import psycopg
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from regulars.kit import migrate
from regulars.kit.db import CONNECTION_ERRORS, Database
from regulars.kit.metrics import CONTENT_TYPE, PROCESS


def service_routes(readiness: "Readiness") -> list[BaseRoute]:
    return [
        Route("/healthz", _healthz),
        Route("/readyz", readiness.respond),
        Route("/metrics", _metrics),
    ]


async def _healthz(_request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _metrics(_request: Request) -> Response:
    return Response(PROCESS.render(), media_type=CONTENT_TYPE)


class Readiness:
    """Ready means: the database answers, and no migration is missing."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # Migrations only go forward: once none was missing, none will be for this release.
        self._is_migrated = False

    async def respond(self, _request: Request) -> Response:
        reason = await self.missing()
        if reason is not None:
            return JSONResponse({"status": "unavailable", "reason": reason}, 503)
        return JSONResponse({"status": "ready"})

    async def missing(self) -> str | None:
        """What keeps the server from being ready, as a sentence; None when nothing does."""
        try:
            async with self._database.connection() as connection:
                await connection.execute("SELECT 1")
            if not self._is_migrated:
                self._is_migrated = not await asyncio.to_thread(migrate.pending, self._database.url)
        except (*CONNECTION_ERRORS, psycopg.Error, migrate.MigrationError):
            return "The database cannot be reached."
        return None if self._is_migrated else "Migrations are missing: run `regulars migrate`."
