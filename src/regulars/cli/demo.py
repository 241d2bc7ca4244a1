"""`regulars demo`: create a demo organization and fill it with two years of sample customers, sales and texts."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Final
from uuid import UUID

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from regulars.accounts.audit.log import OPERATOR, record
from regulars.cli.address import find_address, find_command
from regulars.cli.output import CommandError, ExitCode, err, format_count, out
from regulars.cli.runner import run_on_pool
from regulars.demo.load import SALES_MAX, DemoPlan, organization_has_data
from regulars.demo.people import count_customers
from regulars.demo.requests import TICKETS, begin_run, do_run, give_up_run
from regulars.kit import settings, vault
from regulars.kit.db import Database, Tx
from regulars.organizations import manage
from regulars.organizations.settings import NameTaken
from regulars.processes import serve_lock

DAY_FORMAT: Final = "%Y-%m-%d"
# A statement of the bulk load may take longer than one of a request.
STATEMENT_TIMEOUT_MS: Final = 600_000
SEED_MAX: Final = 2**63 - 1


def demo(
    organization: Annotated[
        str, typer.Option("--organization", "-o", help="Name of the demo organization; created if it does not exist.")
    ] = "Demo",
    sales: Annotated[int, typer.Option(min=1, max=SALES_MAX, help="Number of tickets.")] = TICKETS,
    seed: Annotated[int, typer.Option(min=0, max=SEED_MAX, help="The same seed gives the same data.")] = 1,
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
    address = run_on_pool(
        lambda pool, loaded: _fill(pool, organization, plan, force=force, opened_vault=vault.of(loaded)),
        needs_vault=True,
        may_create=True,
        statement_timeout_ms=STATEMENT_TIMEOUT_MS,
    )
    _print_next_steps(organization, sales, address)


async def _fill(pool: Database, name: str, plan: DemoPlan, *, force: bool, opened_vault: vault.AnyVault) -> str:
    try:
        async with pool.transaction() as tx:
            organization_id = await _find_or_create(tx, name)
            if not await begin_run(tx, organization_id, plan):
                raise _refuse_second_run(name)
            if not force and await organization_has_data(tx, organization_id):
                raise CommandError(
                    f"The organization {name} has data already; choose another with --organization, or add to it with"
                    " --force."
                )
            secret = (await manage.find_secret_and_country(tx.connection, organization_id)).secret
    except NameTaken:
        raise _refuse_second_run(name) from None
    try:
        with _progress_bars(plan) as bars:
            await do_run(pool, organization_id, plan, secret=secret, vault=opened_vault, progress=bars.add)
    except BaseException:
        async with pool.transaction() as tx:
            await give_up_run(tx, organization_id)
        raise
    async with pool.transaction() as tx:
        await record(tx, organization_id, OPERATOR, "demo.fill", name, after={"tickets": plan.sales})
        return await find_address(tx)


def _refuse_second_run(name: str) -> CommandError:
    return CommandError(
        f"The organization {name} is being filled with a demo already; wait for it, or choose another with"
        " --organization."
    )


async def _find_or_create(tx: Tx, name: str) -> UUID:
    """Find or create the organization; refuse one that is no demo: sample customers must not mix with real ones."""
    organization = await manage.find_organization(tx.connection, name)
    if organization is None:
        organization = await manage.create_organization(tx.connection, name)
        await manage.mark_as_demo(tx.connection, organization.id)
    elif not await manage.is_demo(tx.connection, organization.id):
        raise CommandError(f"The organization {name} is not a demo; choose another name with --organization.")
    return organization.id


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


def _print_next_steps(organization: str, sales: int, address: str) -> None:
    loaded = settings.load()
    command, name = find_command(), shlex.quote(organization)
    is_running = serve_lock.find_address(loaded.data_dir) is not None
    steps = [
        f"{command} user create you@example.com --role owner --organization {name}  # prints a link to sign in",
        *([] if is_running else [f"{command} serve  # then open {address}"]),
        f"{command} key create --organization {name}",
        f"curl -H 'x-api-key: …' '{address}/v1/sales-events?limit=5'",
    ]
    out.print(f"The organization {organization} now has {format_count(sales, 'ticket')} from two years.", markup=False)
    if is_running:
        out.print(f"The server runs on {address}.", markup=False, soft_wrap=True)
    out.print("Next:", markup=False)
    for step in steps:
        out.print(f"  {step}", markup=False, soft_wrap=True)
