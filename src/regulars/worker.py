"""Composition root of the worker: who listens to which fact, and what is done for every organization on a schedule."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from regulars.idempotency.sweep import sweep as sweep_idempotency_keys
from regulars.kit.db import Database
from regulars.kit.process import on_stop_signals, when_ended
from regulars.kit.settings import Settings
from regulars.organizations.manage import list_organizations
from regulars.privacy.facts import AnswersUnread, ProfileErased
from regulars.privacy.jobs import anonymise_stragglers, read_on
from regulars.request_log.sweep import sweep as sweep_request_log
from regulars.sales.facts import SalesRecorded
from regulars.sales.jobs import count_new_sales, register_new_product_keys
from regulars.work.facts import Listeners
from regulars.work.jobs import Sweep, Work
from regulars.work.run import run_worker

LISTENERS: Final[Listeners] = {
    SalesRecorded: (register_new_product_keys, count_new_sales),
    ProfileErased: (anonymise_stragglers,),
    AnswersUnread: (read_on,),
}

SWEEPS: Final = (
    Sweep(name="idempotency.sweep", cron="*/5 * * * *", run=sweep_idempotency_keys),
    Sweep(name="request_log.sweep", cron="7 * * * *", run=sweep_request_log),
)


def run(settings: Settings, url: str, *, lifeline: int | None = None) -> None:
    """Work until SIGTERM or SIGINT, or until the lifeline ends; the database must be reachable and migrated."""
    asyncio.run(_run(settings, url, lifeline=lifeline))


async def _run(settings: Settings, url: str, *, lifeline: int | None) -> None:
    stop = asyncio.Event()
    on_stop_signals(stop.set)
    if lifeline is not None:
        when_ended(lifeline, stop.set)
    database = Database(
        url,
        pool_max=settings.database_pool_max,
        statement_timeout_ms=settings.statement_timeout_ms,
        lock_timeout_ms=settings.lock_timeout_ms,
    )
    await database.open()
    work = Work(database=database, organization_ids=_organization_ids, listeners=LISTENERS, sweeps=SWEEPS)
    try:
        await run_worker(work, stop=stop, grace_s=settings.shutdown_grace_s)
    finally:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(database.close(), settings.shutdown_grace_s)


async def _organization_ids(database: Database) -> Sequence[UUID]:
    async with database.connection() as connection:
        return [organization.id for organization in await list_organizations(connection)]
