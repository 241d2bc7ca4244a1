"""`regulars key`: create, list and revoke API keys."""

from typing import Annotated, Any
from uuid import UUID

import typer
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from regulars.accounts.audit.log import OPERATOR, record
from regulars.cli import database
from regulars.cli.organization import find_organization
from regulars.cli.output import CommandError, Exit, err, print_json, print_table, shown_time
from regulars.cli.transact import OfOrganization
from regulars.kit import ids, settings
from regulars.kit.clock import format_timestamp
from regulars.kit.db import Tx
from regulars.organizations import manage
from regulars.organizations.model import ApiKey, Permission

app = typer.Typer(no_args_is_help=True, help="Create, list and revoke API keys.")


@app.command()
def create(
    organization: OfOrganization,
    name: Annotated[str, typer.Option(help="What the key is for; shown in lists.")] = "default",
    permission: Annotated[
        Permission, typer.Option(help="An ingest key writes, and reads nothing that was stored before.")
    ] = Permission.FULL,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON for programs.")] = False,
) -> None:
    """Create a key and print it, this once: afterwards only its hash exists."""
    loaded = settings.load()

    async def work(tx: Tx) -> tuple[ApiKey, str]:
        found = await find_organization(tx.connection, organization)
        key, secret = await manage.create_key(tx.connection, found.id, name, permission=permission)
        after = {"name": name, "permission": permission.value}
        await record(tx, found.id, OPERATOR, "key.create", ids.API_KEY.encode(key.id), after=after)
        return key, secret

    with database.ready(loaded) as url:
        key, secret = database.transact(url, work)
    if as_json:
        print_json({**_as_data(key), "key": secret})
    else:
        # The key and nothing else, so that a script can take it: `KEY=$(regulars key create -o Shop)`.
        typer.echo(secret)
    err.print(
        f"Made in {database.place(loaded)}. Keep this key now: it is never shown again.", style="dim", markup=False
    )


@app.command("list")
def list_all(
    organization: OfOrganization,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON for programs.")] = False,
) -> None:
    """List the keys of an organization, without their secrets."""

    async def work(connection: AsyncConnection[TupleRow]) -> list[ApiKey]:
        found = await find_organization(connection, organization)
        return await manage.list_keys(connection, found.id)

    with database.ready(settings.load()) as url:
        keys = database.run_on(url, work)
    if as_json:
        print_json([_as_data(key) for key in keys])
        return
    print_table(
        ["ID", "NAME", "PERMISSION", "ENDS IN", "CREATED (UTC)", "LAST USED (UTC)", "REVOKED (UTC)"],
        [
            [
                ids.API_KEY.encode(key.id),
                key.name,
                key.permission.value,
                key.hint,
                shown_time(key.created_at),
                shown_time(key.last_used_at),
                shown_time(key.revoked_at),
            ]
            for key in keys
        ],
    )


@app.command()
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The id that `key list` shows.", show_default=False)],
    organization: Annotated[
        str | None,
        typer.Option("--organization", "-o", help="Name of the organization; a key of another is refused."),
    ] = None,
) -> None:
    """Revoke a key; every server process refuses it within a second."""
    identifier = _read_id(key_id)

    async def work(tx: Tx) -> bool:
        owner = None if organization is None else await find_organization(tx.connection, organization)
        key = await manage.revoke_key(tx.connection, identifier, organization_id=None if owner is None else owner.id)
        if key is not None:
            await record(tx, key.organization_id, OPERATOR, "key.revoke", key_id, before={"name": key.name})
        return key is not None

    with database.ready(settings.load()) as url:
        revoked = database.transact(url, work)
    if not revoked:
        raise CommandError(f"There is no key {key_id}; `regulars key list` shows the ids.")
    err.print(f"Revoked {key_id}.", markup=False)


def _read_id(text: str) -> UUID:
    identifier = ids.API_KEY.decode(text)
    if identifier is None:
        raise CommandError(f"'{text}' is not the id of a key; ids start with {ids.API_KEY.prefix}.", code=Exit.USAGE)
    return identifier


def _as_data(key: ApiKey) -> dict[str, Any]:
    return {
        "id": ids.API_KEY.encode(key.id),
        "name": key.name,
        "permission": key.permission.value,
        "ends_in": key.hint,
        "created_at": format_timestamp(key.created_at),
        "last_used_at": format_timestamp(key.last_used_at) if key.last_used_at else None,
        "revoked_at": format_timestamp(key.revoked_at) if key.revoked_at else None,
    }
