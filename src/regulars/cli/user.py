"""`regulars user`: invite users of the web application, change their roles, reset and disable their accounts."""

from collections.abc import Awaitable
from typing import Annotated, Any, Final

import typer

from regulars.accounts import users
from regulars.accounts.links import LINK_PATH
from regulars.accounts.model import read_email
from regulars.cli.address import find_address
from regulars.cli.output import CommandError, ExitCode, err, pick, print_rows
from regulars.cli.runner import AsJson, OfOrganization, bind, run, transact
from regulars.kit.db import Tx
from regulars.web.access import Role

app = typer.Typer(no_args_is_help=True)

COLUMNS: Final = (
    *("email", "name", "organization", "role"),
    *(("SECOND FACTOR", lambda user: "on" if user["second_factor"] else "off"), "created_at", "disabled_at"),
)
Email = Annotated[str, typer.Argument(metavar="EMAIL", help="Email address of the user.", show_default=False)]


@app.command()
def create(
    email: Email,
    organization: OfOrganization,
    role: Annotated[Role, typer.Option(help="Role in the organization.")] = Role.ANALYST,
) -> None:
    """Invite a user: print a one-time link with which they choose a password, or enter the one they have."""
    address = _read_address(email)
    _print_link(
        run(
            organization,
            lambda it: _with_address(it.tx, users.invite_user(it.tx, it.organization_id, address, role=role)),
        )
    )


@app.command()
def link(
    email: Email,
    without_second_factor: Annotated[
        bool,
        typer.Option(
            "--without-second-factor",
            help="Also remove the second factor and the password, for a lost phone or a stolen account.",
        ),
    ] = False,
) -> None:
    """Print a one-time link for a new password, valid for 48 hours; ends the user's sessions and older links."""
    address = _read_address(email)
    _print_link(
        transact(
            lambda tx: _with_address(tx, users.reset_user(tx, address, without_second_factor=without_second_factor))
        )
    )


@app.command("list")
def list_all(as_json: AsJson = False) -> None:
    """List all users with their organizations and roles."""
    print_rows([_as_data(listing) for listing in transact(users.list_users)], COLUMNS, as_json=as_json)


@app.command()
def disable(email: Email) -> None:
    """Sign a user out everywhere and refuse further sign-ins; their acts stay in the audit log."""
    address = _read_address(email)
    transact(lambda tx: users.disable_user(tx, address))
    err.print(f"Disabled {address}.", markup=False)


@app.command()
def enable(email: Email) -> None:
    """Allow a disabled user to sign in again."""
    address = _read_address(email)
    transact(lambda tx: users.enable_user(tx, address))
    err.print(f"Enabled {address}.", markup=False)


@app.command()
def role(
    email: Email,
    role: Annotated[Role, typer.Argument(metavar="ROLE", help="owner, admin, marketer, analyst or developer.")],
    organization: OfOrganization,
) -> None:
    """Change the role of a member; the last owner cannot be changed."""
    address = _read_address(email)
    run(organization, bind(users.set_role, address, role))
    err.print(f"{address} is now {role.value} of {organization}.", markup=False)


async def _with_address(tx: Tx, token: Awaitable[str]) -> str:
    made = await token
    return f"{await find_address(tx)}{LINK_PATH}/{made}"


def _print_link(link: str) -> None:
    # stdout has only the link, so that a script can read it.
    typer.echo(link)
    err.print("The link works once, for 48 hours; send it to the user.", style="dim")


def _read_address(email: str) -> str:
    address = read_email(email)
    if address is None:
        raise CommandError(f"'{email}' is not an address like name@example.com.", code=ExitCode.USAGE)
    return address


def _as_data(listing: users.UserListing) -> dict[str, Any]:
    return {
        **pick(listing.account, "email", "name"),
        **pick(listing, "organization", "role"),
        "second_factor": listing.account.has_second_factor,
        **pick(listing.account, "created_at", "disabled_at"),
    }
