"""`regulars organization`: create and list."""

from typing import Annotated, Any

import typer

from regulars.cli import database
from regulars.cli.output import CommandError, Exit, out, print_json, print_table, shown_time
from regulars.kit import ids, settings
from regulars.kit.clock import format_timestamp
from regulars.organizations import manage
from regulars.organizations.model import Organization

app = typer.Typer(no_args_is_help=True, help="Create and list organizations.")

NAME_CHARACTERS_MAX = 255

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
