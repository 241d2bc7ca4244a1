"""`regulars demo`: create a demo organization and fill it with two years of sample customers, sales and texts."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Final

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from regulars.accounts.audit.log import OPERATOR, record
from regulars.cli.address import find_address
from regulars.cli.output import CommandError, ExitCode, err, format_count, out
from regulars.cli.runner import run_on_pool
from regulars.demo.fill import fill_with_demo
from regulars.demo.load import SALES_MAX, DemoPlan, organization_has_data
from regulars.demo.people import count_customers
from regulars.kit import settings, vault
from regulars.kit.connection import Connection
from regulars.kit.db import Database
from regulars.organizations import manage
from regulars.organizations.model import Organization

DAY_FORMAT: Final = "%Y-%m-%d"
SALES_DEFAULT: Final = 20_000
# A statement of the bulk load may take longer than one of a request.
STATEMENT_TIMEOUT_MS: Final = 600_000


def demo(
    organization: Annotated[
        str, typer.Option("--organization", "-o", help="Name of the demo organization; created if it does not exist.")
    ] = "Demo",
    sales: Annotated[int, typer.Option(min=1, max=SALES_MAX, help="Number of tickets.")] = SALES_DEFAULT,
    seed: Annotated[int, typer.Option(help="The same seed gives the same data.")] = 1,
    until: Annotated[
        datetime | None,
        typer.Option(formats=[DAY_FORMAT], help="Last day of the two years; default: today.", show_default=False),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Add to a demo that has data already.")] = False,
) -> None:
    today = datetime.now(UTC)
    if until is not None and until.date() > today.date():
        raise CommandError("--until must not be in the future.", code=ExitCode.USAGE)
    plan = DemoPlan(seed=seed, sales=sales, customers=count_customers(sales), last_day=(until or today).date())
    run_on_pool(
        lambda pool, loaded: _fill(pool, organization, plan, force=force, opened_vault=vault.of(loaded)),
        needs_vault=True,
        may_create=True,
        statement_timeout_ms=STATEMENT_TIMEOUT_MS,
    )
    out.print(f"The organization {organization} now has {format_count(sales, 'ticket')} from two years.", markup=False)
    out.print("Next:", markup=False)
    arguments = f"you@example.com --role owner --organization {_quoted(organization)}"
    out.print(f"  regulars user create {arguments}  # prints a link to sign in", markup=False, soft_wrap=True)
    out.print(f"  regulars key create --organization {_quoted(organization)}", markup=False)
    out.print("  regulars serve", markup=False)
    address = find_address(settings.load())
    out.print(f"  curl -H 'x-api-key: …' '{address}/v1/sales-events?limit=5'", markup=False, soft_wrap=True)


async def _fill(pool: Database, name: str, plan: DemoPlan, *, force: bool, opened_vault: vault.AnyVault) -> None:
    async with pool.connection() as connection:
        organization = await _find_or_create(connection, name)
        secret_and_country = await manage.find_secret_and_country(connection, organization.id)
    if not force and await organization_has_data(pool, organization.id):
        raise CommandError(
            f"The organization {name} has data already; choose another with --organization, or add to it with --force."
        )
    with _progress_bars(plan) as bars:
        secret = secret_and_country.secret
        await fill_with_demo(pool, organization.id, plan, secret=secret, vault=opened_vault, progress=bars.add)
    async with pool.transaction() as tx:
        await record(tx, organization.id, OPERATOR, "demo.fill", name, after={"tickets": plan.sales})


async def _find_or_create(connection: Connection, name: str) -> Organization:
    """Find or create the organization; refuse one that is no demo: sample customers must not mix with real ones."""
    organization = await manage.find_organization(connection, name)
    if organization is None:
        return await manage.create_organization(connection, name)
    if not await manage.is_demo(connection, organization.id):
        raise CommandError(f"The organization {name} is not a demo; choose another name with --organization.")
    return organization


class _ProgressBars:
    """A bar for each phase of the load; a phase of unknown length gets its bar with its first items."""

    def __init__(self, progress: Progress, totals: dict[str, int]) -> None:
        self._progress = progress
        self._tasks = {phase: progress.add_task(phase, total=total) for phase, total in totals.items()}

    def add(self, phase: str, count: int) -> None:
        if phase not in self._tasks:
            self._tasks[phase] = self._progress.add_task(phase, total=None)
        self._progress.advance(self._tasks[phase], count)


@contextmanager
def _progress_bars(plan: DemoPlan) -> Iterator[_ProgressBars]:
    columns = (TextColumn("{task.description:<10}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err) as progress:
        yield _ProgressBars(progress, {"tickets": plan.sales})


def _quoted(name: str) -> str:
    return f"'{name}'" if " " in name else name
