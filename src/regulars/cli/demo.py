"""`regulars demo`: a made-up chain of shops to look around in."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Final

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from regulars.accounts.audit.log import OPERATOR, record
from regulars.cli.frame import run_on_pool
from regulars.cli.output import CommandError, Exit, counted, err, out
from regulars.demo.fill import fill
from regulars.demo.load import SALES_MAX, DemoPlan, organization_has_data
from regulars.demo.people import count_customers
from regulars.kit import vault
from regulars.kit.db import Database
from regulars.organizations import manage
from regulars.organizations.model import Organization

DAY_FORMAT: Final = "%Y-%m-%d"
SALES_DEFAULT: Final = 20_000
# A piece of the bulk load waits for the disk longer than a request ever may.
STATEMENT_TIMEOUT_MS: Final = 600_000


def demo(
    organization: Annotated[str, typer.Option("--organization", "-o", help="Demo to fill or create.")] = "Demo",
    sales: Annotated[int, typer.Option(min=1, max=SALES_MAX, help="How many tickets.")] = SALES_DEFAULT,
    seed: Annotated[int, typer.Option(help="The same seed gives the same data.")] = 1,
    until: Annotated[
        datetime | None,
        typer.Option(formats=[DAY_FORMAT], help="The day the two years end; default today.", show_default=False),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Fill a demo that has data; what it has already stays.")
    ] = False,
) -> None:
    today = datetime.now(UTC)
    if until is not None and until.date() > today.date():
        raise CommandError("--until must not lie in the future.", code=Exit.USAGE)
    plan = DemoPlan(seed=seed, sales=sales, customers=count_customers(sales), last_day=(until or today).date())
    run_on_pool(
        lambda pool, settings: _fill(pool, organization, plan, force=force, sealing=vault.of(settings)),
        seals=True,
        may_create=True,
        statement_timeout_ms=STATEMENT_TIMEOUT_MS,
    )
    out.print(f"The organization {organization} now has {counted(sales, 'ticket')} of two years.", markup=False)
    out.print("Next:", markup=False)
    who = f"you@example.com --role owner --organization {_quoted(organization)}"
    out.print(f"  regulars user create {who}  # prints a link to sign in", markup=False, soft_wrap=True)
    out.print(f"  regulars key create --organization {_quoted(organization)}", markup=False)
    out.print("  regulars serve", markup=False)
    out.print("  curl -H 'x-api-key: …' 'http://127.0.0.1:8080/v1/sales-events?limit=5'", markup=False)


async def _fill(pool: Database, name: str, plan: DemoPlan, *, force: bool, sealing: vault.AnyVault) -> None:
    async with pool.connection() as connection:
        organization = await _find_or_create(connection, name)
        particulars = await manage.find_particulars(connection, organization.id)
    if not force and await organization_has_data(pool, organization.id):
        raise CommandError(
            f"The organization {name} has data already; choose another with --organization, or add to it with --force."
        )
    with _progress_bars(plan) as progress:
        await fill(pool, organization.id, plan, secret=particulars.secret, vault=sealing, progress=progress.add)
    async with pool.transaction() as tx:
        await record(tx, organization.id, OPERATOR, "demo.fill", name, after={"tickets": plan.sales})


async def _find_or_create(connection: manage.Connection, name: str) -> Organization:
    """Invented customers never stand beside real ones: only a demo is filled again."""
    found = await manage.find_organization(connection, name)
    if found is None:
        return await manage.create_organization(connection, name)
    if not await manage.is_demo(connection, found.id):
        raise CommandError(f"The organization {name} is not a demo; choose another name with --organization.")
    return found


class _Bars:
    """A bar for each part of the load; parts of unknown length start when their first items are in."""

    def __init__(self, progress: Progress, totals: dict[str, int]) -> None:
        self._progress = progress
        self._tasks = {part: progress.add_task(part, total=total) for part, total in totals.items()}

    def add(self, part: str, count: int) -> None:
        if part not in self._tasks:
            self._tasks[part] = self._progress.add_task(part, total=None)
        self._progress.advance(self._tasks[part], count)


@contextmanager
def _progress_bars(plan: DemoPlan) -> Iterator[_Bars]:
    columns = (TextColumn("{task.description:<10}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err) as progress:
        yield _Bars(progress, {"tickets": plan.sales})


def _quoted(name: str) -> str:
    return f"'{name}'" if " " in name else name
