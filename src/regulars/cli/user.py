"""`regulars user`: people who sign in to the web application."""

from typing import Annotated, Any, Final

import typer

from regulars.accounts import manage
from regulars.accounts.links.link import LINK_PATH
from regulars.accounts.model import read_email
from regulars.cli.frame import AsJson, OfOrganization, run, transact
from regulars.cli.output import CommandError, Exit, err, print_rows
from regulars.kit import settings
from regulars.web.access import Role

app = typer.Typer(no_args_is_help=True)

COLUMNS: Final = (
    *("email", "name", "organization", "role"),
    *(("SECOND FACTOR", lambda user: "on" if user["second_factor"] else "off"), "created_at", "disabled_at"),
)
Email = Annotated[str, typer.Argument(metavar="EMAIL", help="The address they sign in with.", show_default=False)]


@app.command()
def create(
    email: Email,
    organization: OfOrganization,
    role: Annotated[Role, typer.Option(help="What they may do.")] = Role.ANALYST,
) -> None:
    """Print a one-time link that invites somebody; they choose a password with it, or show the one they have."""
    address = _read(email)
    _print_link(
        run(organization, lambda it: manage.create_user(it.tx, address, organization_id=it.organization_id, role=role))
    )


@app.command()
def link(
    email: Email,
    without_second_factor: Annotated[
        bool,
        typer.Option(
            "--without-second-factor",
            help="Take the second factor and the old password too: a lost phone, an account in other hands.",
        ),
    ] = False,
) -> None:
    """Print a one-time link for a new password, for 48 hours; ends their sessions and links that others made."""
    address = _read(email)
    _print_link(transact(lambda tx: manage.link_for(tx, address, without_second_factor=without_second_factor)))


@app.command("list")
def list_all(as_json: AsJson = False) -> None:
    """List every user with their organizations and roles."""
    print_rows([_as_data(one) for one in transact(manage.list_users)], COLUMNS, as_json=as_json)


@app.command()
def disable(email: Email) -> None:
    """Sign somebody out everywhere and let them in no more; what they did stays in the audit log."""
    address = _read(email)
    transact(lambda tx: manage.disable_user(tx, address))
    err.print(f"Disabled {address}.", markup=False)


@app.command()
def enable(email: Email) -> None:
    """Let somebody in again who was disabled."""
    address = _read(email)
    transact(lambda tx: manage.enable_user(tx, address))
    err.print(f"Enabled {address}.", markup=False)


@app.command()
def role(
    email: Email,
    role: Annotated[Role, typer.Argument(metavar="ROLE", help="owner, admin, marketer, analyst or developer.")],
    organization: OfOrganization,
) -> None:
    """Give a member another role; the last owner stays one."""
    address = _read(email)
    run(organization, lambda it: manage.give_role(it.tx, address, role, organization_id=it.organization_id))
    err.print(f"{address} is {role.value} of {organization} now.", markup=False)


def _print_link(token: str) -> None:
    # The link and nothing else, so that a script can pass it on.
    typer.echo(f"{settings.load().base_url}{LINK_PATH}/{token}")
    err.print("The link works once, for 48 hours; pass it on to the person it is for.", style="dim")


def _read(email: str) -> str:
    address = read_email(email)
    if address is None:
        raise CommandError(f"'{email}' is not an address like name@example.com.", code=Exit.USAGE)
    return address


def _as_data(one: manage.Listed) -> dict[str, Any]:
    person = one.person
    return {
        "email": person.email,
        "name": person.name,
        "organization": one.organization,
        "role": one.role,
        "second_factor": person.has_second_factor,
        "created_at": person.created_at,
        "disabled_at": person.disabled_at,
    }
