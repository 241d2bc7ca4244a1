"""`regulars audit`: prove the audit log."""

import asyncio
from typing import Annotated, Any

import typer

from regulars.accounts.audit.verify import AuditProof, verify_log
from regulars.cli import database
from regulars.cli.organization import find_organization
from regulars.cli.output import CommandError, counted, err, print_json, print_table
from regulars.kit import ids, settings
from regulars.organizations import manage
from regulars.organizations.model import Organization

app = typer.Typer(no_args_is_help=True, help="Prove the audit log.")


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
    """Recompute every hash of the audit log and print the end of each chain; exit code 1 if anything does not hold."""
    with database.ready(settings.load()) as url:
        proofs = asyncio.run(_verify(url, organization))
    if as_json:
        print_json([_as_data(each, proof) for each, proof in proofs])
    else:
        print_table(
            ["ORGANIZATION", "ROWS", "OUTSIDE", "ADDRESSES DELETED", "OTHERS DELETED", "END OF THE CHAIN"],
            [
                [
                    each.name,
                    *(f"{n:,}" for n in (p.rows, p.rows_outside, p.addresses_deleted, p.others_deleted)),
                    p.head.hex(),
                ]
                for each, p in proofs
            ],
        )
    faults = [(each, proof.fault) for each, proof in proofs if proof.fault is not None]
    for each, fault in faults:
        err.print(f"{each.name}: {fault}.", markup=False)
    if faults:
        raise CommandError(f"The audit log does not hold for {counted(len(faults), 'organization')}.")


async def _verify(url: str, name: str | None) -> list[tuple[Organization, AuditProof]]:
    async with database.pool(url) as opened:
        async with opened.connection() as connection:
            organizations = (
                await manage.list_organizations(connection)
                if name is None
                else [await find_organization(connection, name)]
            )
        return [(each, await verify_log(opened, each.id)) for each in organizations]


def _as_data(organization: Organization, proof: AuditProof) -> dict[str, Any]:
    return {
        "organization": {"id": ids.ORGANIZATION.encode(organization.id), "name": organization.name},
        "rows": proof.rows,
        "rows_outside": proof.rows_outside,
        "addresses_deleted": proof.addresses_deleted,
        "others_deleted": proof.others_deleted,
        "head": proof.head.hex(),
        "fault": proof.fault,
    }
