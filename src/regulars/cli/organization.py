"""`regulars organization`: create and list."""

from typing import Annotated, Any

import typer
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from regulars.cli import database
from regulars.cli.output import CommandError, Exit, err, out, print_json, print_table, shown_time
from regulars.kit import ids, settings
from regulars.kit.clock import format_timestamp
from regulars.organizations import manage, particulars
from regulars.organizations.model import Organization

app = typer.Typer(no_args_is_help=True, help="Create, set up and list organizations.")

NAME_CHARACTERS_MAX = 255
COUNTRY_LETTERS = 2

AsJson = Annotated[bool, typer.Option("--json", help="Write JSON for programs.")]


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="The organization's name; it must be unique.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Create an organization and print its id; creating it again prints the same id."""
    if not name.strip() or name != name.strip() or len(name) > NAME_CHARACTERS_MAX or not name.isprintable():
        raise CommandError(
            f"A name has 1 to {NAME_CHARACTERS_MAX} printable characters and no space at its ends.", code=Exit.USAGE
        )
    with database.ready(settings.load()) as url:
        organization = database.run_on(url, lambda connection: manage.create_organization(connection, name))
    if as_json:
        print_json(_as_data(organization))
    else:
        out.print(ids.ORGANIZATION.encode(organization.id), markup=False)


@app.command("set")
def set_particulars(
    name: Annotated[str, typer.Argument(help="The organization's name.", show_default=False)],
    time_zone: Annotated[str | None, typer.Option(help="As in Europe/Paris.", show_default=False)] = None,
    locale: Annotated[str | None, typer.Option(help="As in fr-FR.", show_default=False)] = None,
    default_country: Annotated[
        str | None, typer.Option(help="As in FR; reads numbers without a prefix.", show_default=False)
    ] = None,
) -> None:
    """Set the time zone, the locale or the default country of an organization; what is left out stays."""
    if time_zone is not None and not particulars.is_time_zone(time_zone):
        raise CommandError(f"'{time_zone}' is not a time zone such as Europe/Paris.", code=Exit.USAGE)
    if default_country is not None and (len(default_country) != COUNTRY_LETTERS or not default_country.isalpha()):
        raise CommandError(f"'{default_country}' is not a two-letter country code such as FR.", code=Exit.USAGE)

    async def work(connection: AsyncConnection[TupleRow]) -> particulars.Settings:
        found = await manage.find_organization(connection, name)
        if found is None:
            raise CommandError(f"There is no organization named '{name}'; `regulars organization list` shows them all.")
        before = await particulars.find_settings(connection, found.id)
        after = particulars.Settings(
            name=before.name,
            time_zone=time_zone or before.time_zone,
            locale=locale or before.locale,
            default_country=default_country.upper() if default_country else before.default_country,
        )
        await particulars.change_settings(connection, found.id, after)
        return after

    with database.ready(settings.load()) as url:
        after = database.run_on(url, work)
    err.print(
        f"{name}: time zone {after.time_zone}, locale {after.locale},"
        f" default country {after.default_country or 'none'}.",
        markup=False,
    )


@app.command("list")
def list_all(as_json: AsJson = False) -> None:
    """List every organization."""
    with database.ready(settings.load()) as url:
        organizations = database.run_on(url, manage.list_organizations)
    if as_json:
        print_json([_as_data(organization) for organization in organizations])
        return
    print_table(
        ["ID", "NAME", "CREATED (UTC)"],
        [[ids.ORGANIZATION.encode(each.id), each.name, shown_time(each.created_at)] for each in organizations],
    )


def _as_data(organization: Organization) -> dict[str, Any]:
    return {
        "id": ids.ORGANIZATION.encode(organization.id),
        "name": organization.name,
        "created_at": format_timestamp(organization.created_at),
    }
