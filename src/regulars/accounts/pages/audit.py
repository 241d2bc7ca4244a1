"""The page of the audit log, a list with filters, and its CSV file."""

from typing import Final

import msgspec
from starlette.responses import Response

from regulars.accounts.audit.exports import export_csv
from regulars.accounts.audit.log import count_acts, list_act_kinds, list_acts
from regulars.accounts.audit.sentences import SENTENCES, describe
from regulars.accounts.model import Act, ActFilter
from regulars.accounts.queries import list_members
from regulars.kit.clock import format_timestamp
from regulars.kit.db import Tx
from regulars.kit.keyset import PageRequest, PageRows
from regulars.web.access import Action
from regulars.web.listing import COUNT_MAX, Count, Filter, ListView, make_page, read_all_rows, read_view
from regulars.web.render import render
from regulars.web.route import Harm, Page
from regulars.web.visit import Visit

PATH: Final = "/settings/audit"
HEADER: Final = ("at", "actor", "address", "act", "subject", "before", "after")


async def show(visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        view = await _read_list_view(tx, visit)
        acts = await _list_acts(tx, visit, view, view.request)
        number = await count_acts(tx, visit.organization_id, _read_filter(visit, view), count_max=COUNT_MAX + 1)
        members = {member.email: member for member in await list_members(tx, visit.organization_id)}
    return render(
        visit,
        "accounts/audit.html",
        view=view,
        page=make_page(view, acts),
        count=Count(number),
        sentences={act.id: describe(act, members) for act in acts},
    )


async def export(visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        view = await _read_list_view(tx, visit)
    acts = read_all_rows(visit.database.reading, lambda tx, page: _list_acts(tx, visit, view, page))
    rows = (_make_csv_row(act) async for act in acts)
    return export_csv(visit, "audit.export", f"audit-{visit.organization.slug}.csv", HEADER, rows)


def _make_csv_row(act: Act) -> tuple[str, ...]:
    return (
        format_timestamp(act.at),
        act.actor,
        act.address or "",
        act.act,
        act.subject,
        _encode_json(act.before),
        _encode_json(act.after),
    )


async def _read_list_view(tx: Tx, visit: Visit) -> ListView:
    kinds = await list_act_kinds(tx, visit.organization_id)
    filters = (
        Filter("act", "Action", choices=tuple((kind, SENTENCES.get(kind, kind).replace("{}", "…")) for kind in kinds)),
        Filter("actor", "Person", placeholder="name@example.com"),
        Filter("subject", "About", placeholder="ID or email address"),
        Filter("from", "From", kind="date"),
        Filter("to", "To", kind="date"),
    )
    return read_view(visit, "audit", PATH, filters=filters)


async def _list_acts(tx: Tx, visit: Visit, view: ListView, page: PageRequest) -> PageRows[Act]:
    return await list_acts(tx, visit.organization_id, page, _read_filter(visit, view))


def _read_filter(visit: Visit, view: ListView) -> ActFilter:
    return ActFilter(
        act=view.value("act") or None,
        actor=view.value("actor") or None,
        subject=view.value("subject") or None,
        since=view.start_of("from", visit.format.zone),
        until=view.start_of("to", visit.format.zone, days_later=1),
    )


def _encode_json(value: object) -> str:
    return "" if value is None else msgspec.json.encode(value).decode()


PAGES: Final = (
    Page(path=PATH, needs=Action.READ_AUDIT_LOG, handle=show),
    Page(path=f"{PATH}.csv", needs=Action.READ_AUDIT_LOG, handle=export, harm=Harm.EXPORTS),
)
