"""`regulars consent verify` and `regulars audit verify`: recompute the hash chains of consents and of the audit log."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Final

import typer
from rich.progress import Progress, TextColumn

from regulars.accounts.audit.chain import AuditProof, verify_log
from regulars.cli.output import CommandError, err, format_count, pick, print_rows
from regulars.cli.runner import AsJson, find_organization, run_on_pool
from regulars.consent.verify import Audit, verify_organization
from regulars.kit import ids
from regulars.kit.db import Database
from regulars.kit.settings import Settings
from regulars.organizations import manage
from regulars.organizations.model import Organization

consent_app = typer.Typer(no_args_is_help=True)
audit_app = typer.Typer(no_args_is_help=True)

FAULTS_SHOWN_MAX: Final = 10
NAME_COLUMN: Final = ("ORGANIZATION", "organization.name")

OptionalOrganization = Annotated[
    str | None,
    typer.Option("--organization", "-o", help="Name of the organization; default: all.", show_default=False),
]


@consent_app.command("verify")
def verify_consent(organization: OptionalOrganization = None, as_json: AsJson = False) -> None:
    """Recompute every hash of the ledger; exit code 1 if one does not match."""

    async def work(pool: Database, _settings: Settings) -> list[tuple[Organization, Audit]]:
        audits = []
        with Progress(
            TextColumn("{task.description}"), TextColumn("{task.completed:,} numbers"), console=err
        ) as progress:
            for each in await _find_organizations(pool, organization):
                advance = partial(progress.advance, progress.add_task(each.name, total=None))
                audits.append((each, await verify_organization(pool, each.id, on_progress=advance)))
        return audits

    audits = run_on_pool(work)
    rows: list[dict[str, Any]] = [
        {
            "organization": _as_data(each),
            "numbers": audit.subscriptions,
            **pick(audit, "entries", "payloads_erased"),
            "faults": [
                {"subscription": ids.SUBSCRIPTION.encode(subscription_id), "fault": fault}
                for subscription_id, fault in audit.faults.items()
            ],
        }
        for each, audit in audits
    ]
    erased, faulty = ("ERASED", _count("payloads_erased")), ("FAULTS", lambda row: f"{len(row['faults']):,}")
    columns = (NAME_COLUMN, ("NUMBERS", _count("numbers")), ("ENTRIES", _count("entries")), erased, faulty)
    print_rows(rows, columns, as_json=as_json)
    faults = [(row["organization"]["name"], fault) for row in rows for fault in row["faults"]]
    for name, fault in faults[:FAULTS_SHOWN_MAX]:
        err.print(f"{name}, {fault['subscription']}: {fault['fault']}", markup=False)
    if faults:
        raise CommandError(f"The ledger is damaged for {format_count(len(faults), 'number')}.")


@audit_app.command("verify")
def verify_audit_log(organization: OptionalOrganization = None, as_json: AsJson = False) -> None:
    """Recompute every hash of the audit log and print the last one; exit code 1 if one does not match."""

    async def work(pool: Database, _settings: Settings) -> list[tuple[Organization, AuditProof]]:
        return [(each, await verify_log(pool, each.id)) for each in await _find_organizations(pool, organization)]

    rows: list[dict[str, Any]] = [
        {
            "organization": _as_data(each),
            **pick(proof, "rows", "rows_outside", "addresses_deleted", "others_deleted"),
            "head": proof.head.hex(),
            "fault": proof.fault,
        }
        for each, proof in run_on_pool(work)
    ]
    names = {"ROWS": "rows", "OUTSIDE": "rows_outside", "ADDRESSES DELETED": "addresses_deleted"}
    counts = [(heading, _count(name)) for heading, name in (*names.items(), ("OTHERS DELETED", "others_deleted"))]
    print_rows(rows, (NAME_COLUMN, *counts, ("END OF THE CHAIN", "head")), as_json=as_json)
    faults = [row for row in rows if row["fault"] is not None]
    for row in faults:
        err.print(f"{row['organization']['name']}: {row['fault']}.", markup=False)
    if faults:
        raise CommandError(f"The audit log is damaged for {format_count(len(faults), 'organization')}.")


def _count(name: str) -> Callable[[dict[str, Any]], str]:
    return lambda row: f"{row[name]:,}"


async def _find_organizations(pool: Database, name: str | None) -> list[Organization]:
    async with pool.connection() as connection:
        if name is not None:
            return [await find_organization(connection, name)]
        return await manage.list_organizations(connection)


def _as_data(organization: Organization) -> dict[str, str]:
    return {"id": ids.ORGANIZATION.encode(organization.id), "name": organization.name}
