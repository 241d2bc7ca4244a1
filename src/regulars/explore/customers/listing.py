"""The list of customers: found by name, id or number, or all of them, with their months, sums and consent."""

from datetime import datetime
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from starlette.responses import Response

from regulars.accounts.audit.exports import export_csv
from regulars.consent.browse.ledger import Standing, find_standings
from regulars.kit.clock import format_timestamp
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE
from regulars.kit.keyset import PageRequest, PageRows
from regulars.profiles.browse.search import Hit, count_profiles, list_newest, search_by_name, search_exactly
from regulars.profiles.model import Profile
from regulars.sales.browse.history import LIST_MONTHS, History, read_history
from regulars.sales.browse.tickets import list_tickets_of_customers
from regulars.web import mask
from regulars.web.listing import COUNT_MAX, Count, Filter, ListView, cut, read_view, walk
from regulars.web.render import render
from regulars.web.visit import Visit

PATH: Final = "/customers"
CSV_HEADER: Final = ("id", "external_id", "first_name", "last_name", "phone_number", "consent", "created_at")


class CustomerRow(NamedTuple):
    hit: Hit
    history: History
    status: str | None
    phone_number: str | None

    @property
    def profile(self) -> Profile:
        return self.hit.profile

    @property
    def canonical(self) -> str:
        return PROFILE.encode(self.hit.profile.id)


def filters(visit: Visit) -> list[Filter]:
    words = "Name, number, external id or prof_…" if visit.sees_personal else "prof_…"
    return [Filter("q", "Search customers", kind="search", placeholder=words)]


async def show_customers(visit: Visit) -> Response:
    view = read_view(visit, "customers", PATH, filters=filters(visit))
    async with visit.database.reading() as tx:
        hits = await find(tx, visit, view, view.request)
        page = cut(view, hits, lambda hit: hit.position)
        rows = await dress(tx, visit, list(page.rows))
        count = Count(await count_profiles(tx, visit.organization_id, most=COUNT_MAX + 1))
    return render(visit, "explore/customers.html", view=view, page=page, rows=rows, count=count)


async def find(tx: Tx, visit: Visit, view: ListView, page: PageRequest) -> PageRows[Hit]:
    """Whoever the words mean exactly, else whose name begins so; names are not searched for whoever sees none."""
    text = view.value("q")
    if not text:
        return await list_newest(tx, visit.organization_id, page)
    exact = await search_exactly(
        tx,
        visit.organization_id,
        text,
        default_country=visit.place.default_country,
        sees_personal=visit.sees_personal,
    )
    if exact:
        return PageRows(Hit(profile, (str(profile.id),)) for profile in exact if page.position is None)
    if not visit.sees_personal:
        return PageRows()
    return await search_by_name(tx, visit.organization_id, text, page)


async def dress(tx: Tx, visit: Visit, hits: list[Hit]) -> list[CustomerRow]:
    """What the list shows beside each name."""
    ids = [hit.profile.id for hit in hits]
    tickets = await list_tickets_of_customers(tx, visit.organization_id, ids)
    standings = await find_standings(tx, visit.organization_id, ids)
    zone: ZoneInfo = visit.format.zone
    return [
        CustomerRow(
            hit,
            read_history(tickets[hit.profile.id], now=visit.now, zone=zone, months=LIST_MONTHS),
            status_of(hit.profile, _status(standings.get(hit.profile.id))),
            number_of(hit.profile, standings.get(hit.profile.id)),
        )
        for hit in hits
    ]


def _status(standing: Standing | None) -> str | None:
    return None if standing is None else standing.status


def number_of(profile: Profile, standing: Standing | None) -> str | None:
    """Their own number, or the one that came with a consent."""
    return profile.phone_number or (None if standing is None else standing.phone_number)


def status_of(profile: Profile, status: str | None) -> str | None:
    """Never asked, and with a number that no text reaches, is worth saying."""
    if status is None and profile.phone_number and not profile.phone_reachable:
        return "UNREACHABLE"
    return status


async def export_customers(visit: Visit) -> Response:
    view = read_view(visit, "customers", PATH, filters=filters(visit))

    async def fetch(tx: Tx, page: PageRequest) -> PageRows[tuple[Hit, Standing | None]]:
        hits = await find(tx, visit, view, page)
        standings = await find_standings(tx, visit.organization_id, [hit.profile.id for hit in hits])
        return PageRows((hit, standings.get(hit.profile.id)) for hit in hits)

    found = walk(visit.database.reading, fetch, lambda one: one[0].position)
    rows = (_csv_row(visit, hit.profile, standing) async for hit, standing in found)
    return export_csv(visit, "customers.export", "customers.csv", CSV_HEADER, rows)


def _csv_row(visit: Visit, profile: Profile, standing: Standing | None) -> list[str]:
    number = number_of(profile, standing)
    phone = number if visit.sees_personal else mask.phone(visit, number)
    created: datetime = profile.created_at
    return [
        PROFILE.encode(profile.id),
        mask.text(visit, profile.external_id) or "",
        mask.text(visit, profile.first_name) or "",
        mask.text(visit, profile.last_name) or "",
        phone or "",
        _status(standing) or "NEVER_ASKED",
        format_timestamp(created),
    ]
