"""The member for whom a command acts: `--as EMAIL`. The person at the server vouches for it; there is no password."""

import getpass
from typing import Annotated

import typer

from regulars.accounts.audit.log import COMMAND_LINE
from regulars.accounts.team import require_editor
from regulars.cli.runner import CommandContext

AsMember = Annotated[
    str | None, typer.Option("--as", metavar="EMAIL", help="The member who makes this change.", show_default=False)
]


async def find_changer(context: CommandContext, email: str | None) -> str:
    """The name under which a change is stored: the email address of the member, or that of the command line."""
    return operator_name() if email is None else await require_editor(context.tx, context.organization_id, email)


def operator_name() -> str:
    """The name for changes of which no member is known, with the account of the operating system."""
    return f"{COMMAND_LINE} ({getpass.getuser()})"
