"""`regulars organization`: create, list, rename, configure and delete organizations."""

import dataclasses
import sys
from typing import Annotated, Any

import typer
from rich.progress import Progress, TextColumn

from regulars.accounts.audit.log import OPERATOR, record
from regulars.accounts.organization_settings import known_locales
from regulars.cli import database
from regulars.cli.output import CommandError, ExitCode, err, format_count, print_result, print_rows
from regulars.cli.runner import AsJson, CommandContext, find_organization, run, run_on_pool, transact
from regulars.kit import ids, settings
from regulars.kit.db import Database, Tx
from regulars.kit.time_zones import time_zones
from regulars.organizations import manage
from regulars.organizations import settings as organization_settings
from regulars.organizations.dissolve import dissolve
from regulars.organizations.model import Organization
from regulars.stores.model import COUNTRY_CODES

app = typer.Typer(no_args_is_help=True)

NAME_CHARACTERS_MAX = 255
NO_COUNTRY = "none"
WARNING = (
    "This deletes {name} from {database} for good: its customers, tickets, consents with their ledger, keys and pages."
    " Its opt-outs and do-not-contact entries are deleted too: a new organization could text these people again."
)

Name = Annotated[str, typer.Argument(help="Name of the organization.", show_default=False)]


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="Name of the new organization; it must be unique.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Create an organization and print its id."""
    _check_name(name)
    try:
        organization = transact(lambda tx: _create(tx, name))
    except organization_settings.NameTaken as refusal:
        raise CommandError(f"{refusal} `regulars organization list` shows its id.") from None
    print_result(_as_data(organization), ids.ORGANIZATION.encode(organization.id), as_json=as_json)


@app.command("list")
def list_all(as_json: AsJson = False) -> None:
    """List all organizations."""
    organizations = transact(lambda tx: manage.list_organizations(tx.connection))
    print_rows([_as_data(each) for each in organizations], ("id", "name", "created_at"), as_json=as_json)


@app.command()
def rename(
    name: Name,
    new_name: Annotated[str, typer.Argument(help="New name; it must be unique.", show_default=False)],
) -> None:
    """Rename an organization; its id, keys and addresses stay the same."""
    _check_name(new_name)
    run(name, lambda context: _change(context, name=new_name))
    err.print(f"Renamed {name} to {new_name}.", markup=False)


@app.command("set")
def set_settings(
    name: Name,
    time_zone: Annotated[str | None, typer.Option(help="Time zone, such as Europe/Paris.", show_default=False)] = None,
    locale: Annotated[str | None, typer.Option(help="Locale, such as fr-FR.", show_default=False)] = None,
    default_country: Annotated[
        str | None,
        typer.Option(
            help="Country, such as FR, of phone numbers that have no country prefix, in profiles and opt-outs; `none`"
            " uses REGULARS_DEFAULT_COUNTRY.",
            show_default=False,
        ),
    ] = None,
    require_second_factor: Annotated[
        bool | None,
        typer.Option(
            "--require-second-factor/--no-second-factor-required",
            help="Whether owners and admins need a second factor.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Change settings of an organization; options that are left out keep their value."""
    changes: dict[str, str | bool | None] = {}
    if require_second_factor is not None:
        changes["requires_second_factor"] = require_second_factor
    if time_zone is not None:
        if time_zone not in time_zones():
            raise CommandError(f"'{time_zone}' is not a time zone such as Europe/Paris.", code=ExitCode.USAGE)
        changes["time_zone"] = time_zone
    if locale is not None:
        if locale not in known_locales():
            locales = ", ".join(known_locales())
            raise CommandError(f"'{locale}' is not one of the locales {locales}.", code=ExitCode.USAGE)
        changes["locale"] = locale
    if default_country is not None:
        country = default_country.upper()
        if default_country != NO_COUNTRY and country not in COUNTRY_CODES:
            raise CommandError(
                f"'{default_country}' is not a country code such as FR, nor `none`.", code=ExitCode.USAGE
            )
        changes["default_country"] = None if default_country == NO_COUNTRY else country
    after = run(name, lambda context: _change(context, **changes))
    err.print(
        f"{name}: time zone {after.time_zone}, locale {after.locale},"
        f" default country {after.default_country or 'none'},"
        f" second factor {'required' if after.requires_second_factor else 'not required'} for owners and admins.",
        markup=False,
    )


@app.command()
def delete(
    name: Name,
    confirm: Annotated[
        str | None,
        typer.Option(help="The name again, for scripts; without it the command asks.", show_default=False),
    ] = None,
) -> None:
    """Delete an organization with all its data, for good; takes a little over a minute."""
    organization = transact(lambda tx: find_organization(tx.connection, name))
    if confirm is None:
        err.print(WARNING.format(name=name, database=database.describe(settings.load())), markup=False)
        err.print("Type the name of the organization to continue: ", end="")
        confirm = sys.stdin.readline().rstrip("\n")
    if confirm != name:
        raise CommandError("The name does not match, so nothing was deleted.")
    rows = run_on_pool(lambda pool, _settings: _dissolve(pool, organization))
    err.print(f"Deleted {name} with {format_count(rows, 'row')}.", markup=False)


async def _create(tx: Tx, name: str) -> Organization:
    organization = await manage.create_organization(tx.connection, name)
    await record(tx, organization.id, OPERATOR, "organization.create", name)
    return organization


async def _change(context: CommandContext, **changes: str | bool | None) -> organization_settings.OrganizationSettings:
    before = await organization_settings.find_settings(context.tx.connection, context.organization_id)
    after = dataclasses.replace(before, **changes)  # type: ignore[arg-type]  # only the country may be None
    organization_settings.refuse_foreign_zone(before, after)
    await organization_settings.change_settings(context.tx, context.organization_id, after)
    old_values = {name: getattr(before, name) for name in changes}
    await context.record("organization.change", after.name, before=old_values, after=changes)
    return after


async def _dissolve(pool: Database, organization: Organization) -> int:
    deleted_rows = 0
    columns = (TextColumn("{task.description}"), TextColumn("{task.fields[rows]:,} rows"))
    with Progress(*columns, console=err) as progress:
        task = progress.add_task("Revoking its keys", rows=0)

        def on_deleted(table: str, count: int) -> None:
            nonlocal deleted_rows
            deleted_rows += count
            progress.update(task, description=f"Deleting {table}", rows=deleted_rows)

        await dissolve(pool, organization.id, on_deleted=on_deleted)
    return deleted_rows


def _check_name(name: str) -> None:
    if not name.strip() or name != name.strip() or len(name) > NAME_CHARACTERS_MAX or not name.isprintable():
        raise CommandError(
            f"A name has 1 to {NAME_CHARACTERS_MAX} printable characters and no space at its ends.", code=ExitCode.USAGE
        )


def _as_data(organization: Organization) -> dict[str, Any]:
    return {
        "id": ids.ORGANIZATION.encode(organization.id),
        "name": organization.name,
        "created_at": organization.created_at,
    }
