"""The page of the audit log, a list with filters, and its CSV file."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from regulars.accounts.audit.log import count_acts, list_act_kinds, list_acts
from regulars.accounts.audit.sentences import SENTENCES, describe
from regulars.accounts.list_pages import ListPages, OpenedList
from regulars.accounts.model import Act, ActFilter
from regulars.accounts.queries import list_members
from regulars.kit.db import Tx
from regulars.lists.columns import HARMLESS, Column, Columns, Head
from regulars.web.access import Action
from regulars.web.listing import COUNT_MAX, Count, Filter, read_view
from regulars.web.visit import Visit

PATH: Final = "/settings/audit"
COLUMNS: Final = Columns[Act](
    Column("at", lambda it: it.at, HARMLESS, Head("Time", "nowrap", 4)),
    Column("actor", lambda it: it.actor),
    Column("address", lambda it: it.address, head=Head("IP address", "drop-2 mono", 3, is_plain=True)),
    Column("act", lambda it: it.act, HARMLESS, Head("What happened", "", 1)),
    Column("subject", lambda it: it.subject),
    Column("before", lambda it: it.before),
    Column("after", lambda it: it.after, head=Head("Details", "drop-3", 2)),
)


async def _open_acts(tx: Tx, visit: Visit) -> OpenedList[Act]:
    kinds = await list_act_kinds(tx, visit.organization_id)
    choices = (
        Filter("act", "Action", choices=tuple((kind, SENTENCES.get(kind, kind).replace("{}", "…")) for kind in kinds)),
        Filter("actor", "Person", placeholder="name@example.com"),
        Filter("subject", "About", placeholder="ID or email address"),
        Filter("from", "From", kind="date"),
        Filter("to", "To", kind="date"),
    )
    view = read_view(visit, "audit", PATH, filters=choices)
    filters = ActFilter(
        act=view.value("act") or None,
        actor=view.value("actor") or None,
        subject=view.value("subject") or None,
        since=view.start_of("from", visit.format.zone),
        until=view.start_of("to", visit.format.zone, days_later=1),
    )

    async def load(tx: Tx, acts: Sequence[Act]) -> Mapping[str, Any]:
        number = await count_acts(tx, visit.organization_id, filters, count_max=COUNT_MAX + 1)
        members = {member.email: member for member in await list_members(tx, visit.organization_id)}
        return {"count": Count(number), "sentences": {act.id: describe(act, members) for act in acts}}

    source = view.by_key(lambda tx, page: list_acts(tx, visit.organization_id, page, filters))
    return OpenedList(view, source, load=load)


_ACTS: Final = ListPages(
    "accounts/audit.html", COLUMNS, _open_acts, act="audit.export", file_name="audit-{organization}.csv"
)
PAGES: Final = _ACTS.pages(PATH, needs=Action.READ_AUDIT_LOG)
