"""`regulars address`: the public address of the server, which links, callbacks and cookies depend on."""

from typing import Annotated, Any

import typer

from regulars.accounts import server_address
from regulars.accounts.audit.log import OPERATOR, record
from regulars.cli.address import find_address
from regulars.cli.output import CommandError, ExitCode, err, print_json
from regulars.cli.runner import AsJson, run_on_pool, transact
from regulars.kit import settings as kit_settings
from regulars.kit.db import Database, Tx
from regulars.kit.setting_kinds import public_url
from regulars.kit.settings import Settings, variable_of
from regulars.kit.ssrf import AddressPolicy
from regulars.organizations.manage import list_organizations
from regulars.organizations.public_address import find_stored_address, store_address

app = typer.Typer(no_args_is_help=True)

VARIABLE = variable_of("public_url")
# The operator may choose any address.
ANY_NETWORK = AddressPolicy(("0.0.0.0/0", "::/0"))


@app.command()
def show(as_json: AsJson = False) -> None:
    """Show the address that links and callbacks begin with, and where it comes from."""
    settings = kit_settings.load()

    async def work(tx: Tx) -> dict[str, Any]:
        source = settings.sources.get("public_url")
        if source is None:
            source = "database" if await find_stored_address(tx) is not None else "default"
        return {"address": await find_address(tx, settings), "source": source}

    found = transact(work)
    if as_json:
        print_json(found)
    else:
        typer.echo(found["address"])
        err.print(f"From {found['source']}.", markup=False, style="dim")


@app.command("set")
def set_address(
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="Such as https://regulars.example.com.")],
) -> None:
    """Store the public address; running servers and workers take it within 5 seconds."""
    try:
        url = public_url(address)
    except ValueError as error:
        raise CommandError(f"ADDRESS {error}, not '{address}'.", code=ExitCode.USAGE) from None
    _change(url)

    async def call(pool: Database, _settings: Settings) -> str | None:
        try:
            await server_address.call_self(pool, url, policy=ANY_NETWORK)
        except server_address.AddressRefusal as refusal:
            return str(refusal)
        return None

    problem = run_on_pool(call)
    found = "The server answers there." if problem is None else f"The server does not answer there yet: {problem}"
    err.print(f"Stored {url}. {found}", markup=False)
    _mention_setting()


@app.command()
def clear() -> None:
    """Forget the stored address."""
    _change(None)
    err.print("No address is stored.", markup=False)
    _mention_setting()


def _change(url: str | None) -> None:
    async def work(tx: Tx) -> None:
        before = await find_stored_address(tx)
        await store_address(tx, url)
        # It concerns every organization. Their logs are locked in a fixed order.
        for organization in sorted(await list_organizations(tx.connection), key=lambda each: each.id):
            await record(
                tx, organization.id, OPERATOR, "server.address", "server", before={"url": before}, after={"url": url}
            )

    transact(work)


def _mention_setting() -> None:
    if kit_settings.load().public_url is not None:
        err.print(f"{VARIABLE} is set here and wins over it.", markup=False)
