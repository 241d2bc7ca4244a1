"""The button that starts a demo, and the page "Demo", which shows the progress of loading its sample data."""

import contextlib
from dataclasses import replace
from datetime import timedelta
from typing import Final

from starlette.responses import Response

from regulars.accounts.audit.log import actor_of, record
from regulars.accounts.users import find_memberships, join
from regulars.demo.requests import TICKETS, find_run, lock_requests, request_demo
from regulars.kit.db import Tx
from regulars.organizations.manage import create_organization, mark_as_demo
from regulars.organizations.model import Organization
from regulars.organizations.settings import NameTaken, change_settings, find_settings
from regulars.web.access import Role
from regulars.web.errors import PageNotFound
from regulars.web.navigation import DEMO
from regulars.web.render import redirect, render
from regulars.web.visit import Visit
from regulars.work.outbox import behind_since

DEMO_NAME: Final = "Demo"
DEMOS_MAX: Final = 50


async def start_demo(visit: Visit) -> Response:
    """Create a separate organization for the demo, so that sample customers never mix with real ones; a second click
    opens the first one."""
    async with visit.database.transaction() as tx:
        await lock_requests(tx, visit.user.id)
        slug = await _find_demo(tx, visit)
        if slug is None:
            organization = await _create_demo(tx)
            await mark_as_demo(tx.connection, organization.id)
            settings = await find_settings(tx.connection, organization.id)
            settings = replace(
                settings,
                time_zone=visit.organization.time_zone,
                locale=visit.organization.locale,
                default_country=visit.organization.default_country,
            )
            await change_settings(tx, organization.id, settings)
            await join(tx, organization.id, organization.name, visit.user.id, Role.OWNER)
            await request_demo(tx, organization.id)
            await record(
                tx, organization.id, actor_of(visit), "demo.ask", organization.name, after={"tickets": TICKETS}
            )
            memberships = await find_memberships(tx, visit.user.id)
            slug = next(each.slug for each in memberships if each.organization_id == organization.id)
    return redirect(visit, f"/o/{slug}{DEMO}")


async def show_demo(visit: Visit) -> Response:
    async with visit.database.snapshot() as tx:
        run = await find_run(tx, visit.organization_id)
        counted_until = await behind_since(tx, visit.organization_id, at_least=timedelta(0))
        memberships = await find_memberships(tx, visit.user.id)
    other_memberships = [each for each in memberships if each.organization_id != visit.organization_id]
    if run is None:
        return render(visit, "first_run/no_demo.html")
    return render(
        visit,
        "first_run/demo.html",
        run=run,
        done=run.progress.get("tickets", 0),
        # The page waits only until the loaded tickets are counted. The demo's campaign keeps sending texts, so newer
        # events always wait to be counted.
        is_counting=run.finished_at is not None and counted_until is not None and counted_until <= run.finished_at,
        other_organization=other_memberships[0] if other_memberships else None,
    )


async def _find_demo(tx: Tx, visit: Visit) -> str | None:
    """The slug of a demo of this user that is being loaded or was loaded; one that failed does not count."""
    for membership in await find_memberships(tx, visit.user.id):
        run = await find_run(tx, membership.organization_id)
        if run is not None and run.failed_at is None:
            return membership.slug
    return None


async def _create_demo(tx: Tx) -> Organization:
    """Create the organization under the first free name of Demo, Demo 2, Demo 3 …"""
    for name in (DEMO_NAME, *(f"{DEMO_NAME} {number}" for number in range(2, DEMOS_MAX))):
        with contextlib.suppress(NameTaken):
            return await create_organization(tx.connection, name)
    raise PageNotFound(f"There are {DEMOS_MAX} demos already; create another one with `regulars demo`.")
