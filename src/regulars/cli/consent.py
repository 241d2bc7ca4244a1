"""`regulars consent`: prove the ledger."""

import asyncio
from typing import Annotated, Any

import typer
from rich.progress import Progress, TextColumn

from regulars.cli import database
from regulars.cli.organization import find_organization
from regulars.cli.output import CommandError, counted, err, print_json, print_table
from regulars.consent.verify import Audit, verify_organization
from regulars.kit import ids, settings
from regulars.organizations import manage
from regulars.organizations.model import Organization

app = typer.Typer(no_args_is_help=True, help="Prove the consent ledger.")

FAULTS_SHOWN_MAX = 10


@app.callback()
def _group() -> None:
    """A callback keeps `verify` a word of its own while it is the only command."""


@app.command()
def verify(
    organization: Annotated[
        str | None,
        typer.Option("--organization", "-o", help="Name of the organization; default all of them.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON for programs.")] = False,
) -> None:
    """Recompute every hash of the ledger and say what was seen; exit code 1 if anything does not hold."""
    with database.ready(settings.load()) as url:
        audits = asyncio.run(_verify(url, organization))
    if as_json:
        print_json([_as_data(each, audit) for each, audit in audits])
    else:
        print_table(
            ["ORGANIZATION", "NUMBERS", "ENTRIES", "ERASED", "FAULTS"],
            [
                [each.name, *(f"{n:,}" for n in (a.subscriptions, a.entries, a.payloads_erased, len(a.faults)))]
                for each, a in audits
            ],
        )
    faults = [(each, subscription, fault) for each, audit in audits for subscription, fault in audit.faults.items()]
    for each, subscription, fault in faults[:FAULTS_SHOWN_MAX]:
        err.print(f"{each.name}, {ids.SUBSCRIPTION.encode(subscription)}: {fault}", markup=False)
    if faults:
        raise CommandError(f"The ledger does not hold for {counted(len(faults), 'number')}.")


async def _verify(url: str, name: str | None) -> list[tuple[Organization, Audit]]:
    async with database.pool(url) as opened:
        async with opened.connection() as connection:
            organizations = (
                await manage.list_organizations(connection)
                if name is None
                else [await find_organization(connection, name)]
            )
        audits = []
        with Progress(
            TextColumn("{task.description}"), TextColumn("{task.completed:,} numbers"), console=err
        ) as progress:
            for each in organizations:
                task = progress.add_task(each.name, total=None)

                def advance(count: int, task: Any = task) -> None:
                    progress.advance(task, count)

                audits.append((each, await verify_organization(opened, each.id, on_progress=advance)))
        return audits


def _as_data(organization: Organization, audit: Audit) -> dict[str, Any]:
    return {
        "organization": {"id": ids.ORGANIZATION.encode(organization.id), "name": organization.name},
        "numbers": audit.subscriptions,
        "entries": audit.entries,
        "payloads_erased": audit.payloads_erased,
        "faults": [
            {"subscription": ids.SUBSCRIPTION.encode(each), "fault": fault} for each, fault in audit.faults.items()
        ],
    }
