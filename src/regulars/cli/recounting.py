"""`regulars doctor --recount`: rebuild what is derived from stored rows, as after a worker of an older release."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final
from uuid import UUID

import psycopg

from regulars.catalog.counts.counting import count_every_key
from regulars.catalog.model import Catalog
from regulars.cli.frame import run_on_pool
from regulars.cli.output import CommandError, counted, out, print_json
from regulars.consent import figures
from regulars.kit.db import Database, Tx
from regulars.kit.settings import Settings
from regulars.organizations import manage
from regulars.sales.totals import fill
from regulars.segments.columns import lifecycle

# Workers that write the totals hold their lock for as long as a batch takes.
TRIES_MAX: Final = 40
TRY_AGAIN_S: Final = 0.25


def recount(*, as_json: bool) -> None:
    """Mark everything derived as due; the worker rebuilds it in batches, beside servers that go on."""
    count = run_on_pool(_recount_all)
    if as_json:
        print_json({"organizations": count, "recounted": list(DERIVED)})
        return
    names = ", ".join(DERIVED)
    out.print(
        f"The worker recounts {counted(count, 'organization')}: {names}. Pages say up to when sales are counted.",
        markup=False,
    )


async def _recount_all(pool: Database, _settings: Settings) -> int:
    async with pool.connection() as connection:
        organizations = await manage.list_organizations(connection)
    for organization in organizations:
        for name, mark in DERIVED.items():
            await _mark(pool, organization.id, name, mark)
    return len(organizations)


async def _mark(
    opened: Database, organization_id: UUID, name: str, mark: Callable[[Tx, UUID], Awaitable[object]]
) -> None:
    for _ in range(TRIES_MAX):
        try:
            async with opened.transaction() as tx:
                await mark(tx, organization_id)
                return
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            await asyncio.sleep(TRY_AGAIN_S)
    raise CommandError(f"The {name} are in use without a pause; run it again when the worker has less to do.")


async def _recount_catalogs(tx: Tx, organization_id: UUID) -> None:
    for catalog in Catalog:
        await count_every_key(tx, organization_id, catalog)


DERIVED: Final[dict[str, Callable[[Tx, UUID], Awaitable[object]]]] = {
    "hourly totals of sales": fill.recount,
    "catalog keys and values": _recount_catalogs,
    "consent figures": figures.recount,
    "columns of segments": lifecycle.rebuild,
}
