"""`regulars key`: create, list and revoke API keys."""

from typing import Annotated, Any, Final

import typer

from regulars.accounts.audit.log import OPERATOR, record
from regulars.cli import database
from regulars.cli.output import CommandError, err, pick, print_result, print_rows
from regulars.cli.runner import AsJson, CommandContext, OfOrganization, find_organization, read_id, run, transact
from regulars.kit import ids, settings
from regulars.kit.db import Tx
from regulars.organizations import manage
from regulars.organizations.model import ApiKey, Permission

app = typer.Typer(no_args_is_help=True)

COLUMNS: Final = ("id", "name", "permission", "ends_in", "created_at", "last_used_at", "revoked_at")


@app.command()
def create(
    organization: OfOrganization,
    name: Annotated[str, typer.Option(help="Purpose of the key; shown in lists.")] = "default",
    permission: Annotated[
        Permission, typer.Option(help="An ingest key can write, but cannot read stored data.")
    ] = Permission.FULL,
    as_json: AsJson = False,
) -> None:
    """Create a key and print it. It cannot be shown again: only its hash is stored."""

    async def work(context: CommandContext) -> tuple[ApiKey, str]:
        key, secret = await manage.create_key(
            context.tx.connection, context.organization_id, name, permission=permission
        )
        after = {"name": name, "permission": permission.value}
        await context.record("key.create", ids.API_KEY.encode(key.id), after=after)
        return key, secret

    key, secret = run(organization, work)
    # stdout has only the key, so that a script can read it: `KEY=$(regulars key create -o Shop)`.
    print_result({**_as_data(key), "key": secret}, secret, as_json=as_json)
    created_in = f"Created in {database.describe(settings.load())}."
    err.print(f"{created_in} Store this key now: it is not shown again.", style="dim", markup=False)


@app.command("list")
def list_all(organization: OfOrganization, as_json: AsJson = False) -> None:
    """List the keys of an organization, without their secrets."""
    keys = run(organization, lambda context: manage.list_keys(context.tx.connection, context.organization_id))
    print_rows([_as_data(key) for key in keys], COLUMNS, as_json=as_json)


@app.command()
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The id that `key list` shows.", show_default=False)],
    organization: Annotated[
        str | None,
        typer.Option("--organization", "-o", help="Name of the organization; refuses a key of another one."),
    ] = None,
) -> None:
    """Revoke a key; all servers reject it within a second."""
    identifier = read_id(ids.API_KEY, key_id)

    async def work(tx: Tx) -> bool:
        owner = None if organization is None else await find_organization(tx.connection, organization)
        key = await manage.revoke_key(tx.connection, identifier, organization_id=None if owner is None else owner.id)
        if key is not None:
            await record(tx, key.organization_id, OPERATOR, "key.revoke", key_id, before={"name": key.name})
        return key is not None

    if not transact(work):
        raise CommandError(f"There is no key {key_id}; `regulars key list` shows the ids.")
    err.print(f"Revoked {key_id}.", markup=False)


def _as_data(key: ApiKey) -> dict[str, Any]:
    return {
        "id": ids.API_KEY.encode(key.id),
        "name": key.name,
        "permission": key.permission.value,
        "ends_in": key.hint,
        **pick(key, "created_at", "last_used_at", "revoked_at"),
    }
