"""`regulars user`: people who sign in to the web application."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar

import typer

from regulars.accounts import manage
from regulars.accounts.errors import AccountRefusal
from regulars.accounts.links.link import LINK_PATH
from regulars.accounts.model import read_email
from regulars.cli import database
from regulars.cli.organization import find_organization
from regulars.cli.output import CommandError, Exit, err, print_json, print_table, shown_time
from regulars.cli.transact import OfOrganization
from regulars.kit.clock import format_timestamp
from regulars.kit.db import Tx
from regulars.kit.settings import Settings, load
from regulars.web.access import Role

app = typer.Typer(no_args_is_help=True, help="Create people who sign in, give them links and roles.")

Answer = TypeVar("Answer")
Email = Annotated[str, typer.Argument(metavar="EMAIL", help="The address they sign in with.", show_default=False)]


@app.command()
def create(
    email: Email,
    organization: OfOrganization,
    role: Annotated[Role, typer.Option(help="What they may do.")] = Role.ANALYST,
) -> None:
    """Print a one-time link that invites somebody; they choose a password with it, or show the one they have."""
    address = _read(email)

    async def work(tx: Tx) -> str:
        found = await find_organization(tx.connection, organization)
        return await manage.create_user(tx, address, organization_id=found.id, role=role)

    _print_link(*_run(work))


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
    _print_link(*_run(lambda tx: manage.link_for(tx, address, without_second_factor=without_second_factor)))


@app.command("list")
def list_all(as_json: Annotated[bool, typer.Option("--json", help="Write JSON for programs.")] = False) -> None:
    """List every user with their organizations and roles."""
    users, _settings = _run(manage.list_users)
    if as_json:
        print_json([_as_data(one) for one in users])
        return
    print_table(
        ["EMAIL", "NAME", "ORGANIZATION", "ROLE", "SECOND FACTOR", "CREATED (UTC)", "DISABLED (UTC)"],
        [
            [
                one.person.email,
                one.person.name,
                one.organization or "",
                one.role or "",
                "on" if one.person.has_second_factor else "off",
                shown_time(one.person.created_at),
                shown_time(one.person.disabled_at),
            ]
            for one in users
        ],
    )


@app.command()
def disable(email: Email) -> None:
    """Sign somebody out everywhere and let them in no more; what they did stays in the audit log."""
    address = _read(email)
    _run(lambda tx: manage.disable_user(tx, address))
    err.print(f"Disabled {address}.", markup=False)


@app.command()
def enable(email: Email) -> None:
    """Let somebody in again who was disabled."""
    address = _read(email)
    _run(lambda tx: manage.enable_user(tx, address))
    err.print(f"Enabled {address}.", markup=False)


@app.command()
def role(
    email: Email,
    role: Annotated[Role, typer.Argument(metavar="ROLE", help="owner, admin, marketer, analyst or developer.")],
    organization: OfOrganization,
) -> None:
    """Give a member another role; the last owner stays one."""
    address = _read(email)

    async def work(tx: Tx) -> None:
        found = await find_organization(tx.connection, organization)
        await manage.give_role(tx, address, role, organization_id=found.id)

    _run(work)
    err.print(f"{address} is {role.value} of {organization} now.", markup=False)


def _run(work: Callable[[Tx], Awaitable[Answer]]) -> tuple[Answer, Settings]:
    """One transaction; a refusal is a sentence and changes nothing."""
    settings = load()

    try:
        with database.ready(settings) as url:
            return database.transact(url, work), settings
    except AccountRefusal as refusal:
        raise CommandError(str(refusal)) from refusal


def _print_link(token: str, settings: Settings) -> None:
    # The link and nothing else, so that a script can pass it on.
    typer.echo(f"{settings.base_url}{LINK_PATH}/{token}")
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
        "created_at": format_timestamp(person.created_at),
        "disabled_at": format_timestamp(person.disabled_at) if person.disabled_at else None,
    }
