"""The page that an invited developer finds: the address of the server, a key, and the requests that lead to the first
ticket."""

from typing import Final

from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.explore.first_steps import consent_step, store_step, ticket_step
from regulars.first_run.state import STEPS, read_state
from regulars.kit.ids import API_KEY
from regulars.organizations.manage import create_key
from regulars.organizations.model import Permission
from regulars.web.navigation import DEVELOPER_STEPS
from regulars.web.render import redirect, render
from regulars.web.visit import Visit

KEY_NAME: Final = "First key"
_IMPORT: Final = 'regulars import sales tickets.csv \\\n  --organization "{}" \\\n  --dry-run'


async def show_developer_page(visit: Visit) -> Response:
    async with visit.database.snapshot() as tx:
        state = await read_state(tx, visit.organization_id)
    return render(
        visit,
        "first_run/developer.html",
        state=state,
        steps=STEPS,
        store_step=store_step(visit.server_url),
        ticket_step=ticket_step(visit.server_url, today=visit.now),
        consent_step=consent_step(visit.server_url, today=visit.now),
        import_command=_IMPORT.format(visit.organization.name),
    )


async def create_first_key(visit: Visit) -> Response:
    """Create a key that writes: a developer may have it without being asked, and the first steps need no more."""
    async with visit.database.transaction() as tx:
        key, secret = await create_key(tx.connection, visit.organization_id, KEY_NAME, permission=Permission.INGEST)
        after = {"name": KEY_NAME, "permission": key.permission.value}
        await record_act(tx, visit, "key.create", API_KEY.encode(key.id), after=after)
    return redirect(visit, visit.url(DEVELOPER_STEPS), show_once=secret)
