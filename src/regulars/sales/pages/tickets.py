"""The pages of tickets: the filtered list, its CSV export, and one ticket as a receipt."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec
from markupsafe import Markup
from starlette.responses import Response

from regulars.accounts.list_pages import ListPages, OpenedList
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE, SALES_EVENT, STORE, ById, read_reference
from regulars.kit.keyset import PageRequest, PageRows
from regulars.lists.columns import HARMLESS, Column, Columns, Head, Place
from regulars.profiles.find import find_profile, find_profiles
from regulars.profiles.model import Profile
from regulars.sales.collision_review import find_collision
from regulars.sales.encode import encode_sale
from regulars.sales.listing import CURRENCIES, find_sale
from regulars.sales.model import LineItem, StoredSale, automation_state
from regulars.sales.tickets import (
    ListedTicket,
    TicketFilters,
    decode_stores,
    find_adjacent_tickets,
    list_tickets,
    position_of,
)
from regulars.stores.find import find_store, find_stores, list_stores
from regulars.web import mask
from regulars.web.access import Action
from regulars.web.errors import PageNotFound
from regulars.web.listing import DAY_MAX, DAY_MIN, Filter, ListView, read_view
from regulars.web.render import render
from regulars.web.route import Page
from regulars.web.visit import Visit

PATH: Final = "/tickets"
STORE_CHOICES_MAX: Final = 500
STORES_CHARACTERS_MAX: Final = 4_000
# Fields that may contain any JSON, and so personal data.
FREE_FIELDS: Final = ("payments", "loyalty", "metadata")
COLUMNS: Final = Columns[ListedTicket](
    Column("id", lambda it: SALES_EVENT.encode(it.id), HARMLESS, places=Place.FILE),
    Column("external_id", lambda it: it.external_id, HARMLESS, Head("Ticket", "clip", 1)),
    Column("type", lambda it: it.type, HARMLESS, Head("Type", "drop-3", 5)),
    Column("occurred_at", lambda it: it.occurred_at, HARMLESS, Head("Time", "nowrap drop-4", 4)),
    Column("store", lambda it: it.store_external_id, HARMLESS, Head("Store", "clip drop-3", 2)),
    Column("currency", lambda it: it.currency, HARMLESS),
    Column("total_amount_cents", lambda it: it.total_amount_cents, HARMLESS, Head("Amount", "is-num", 6)),
    Column("profile_id", lambda it: PROFILE.encode_or_none(it.profile_id), HARMLESS, places=Place.FILE),
    Column("profile_external_id", lambda it: it.profile_external_id, head=Head("Customer", "clip drop-2", 3)),
    Column("created_at", lambda it: it.created_at, HARMLESS, places=Place.FILE),
)


async def list_filters(tx: Tx, visit: Visit) -> list[Filter]:
    stores = await list_stores(tx, visit.organization_id, after=None, limit=STORE_CHOICES_MAX)
    choices = tuple((STORE.encode(store.id), store.display_name) for store in stores)
    chosen = visit.query.get("store", "")
    if chosen and chosen not in {value for value, _ in choices}:
        # The store in the page's URL may be missing from the choices, or be named by its external id.
        reference = read_reference(STORE, chosen)
        by_reference = await find_stores(tx, visit.organization_id, [reference])
        if reference in by_reference:
            choices = (*choices, (chosen, by_reference[reference].external_id))
    return [
        Filter("store", "Store", choices),
        Filter("type", "Type", (("PURCHASE", "Purchase"), ("RETURN", "Return"))),
        Filter("currency", "Currency", tuple((currency, currency) for currency in CURRENCIES)),
        Filter("customer", "Customer", (("yes", "Known"), ("no", "Anonymous"))),
        Filter("from", "From", kind="date"),
        Filter("to", "Up to", kind="date"),
        Filter("profile", "One customer", placeholder="Customer ID"),
        Filter("product", "Product", placeholder="Product code"),
        *_list_link_filters(visit),
    ]


def _list_link_filters(visit: Visit) -> list[Filter]:
    """The filters that only links from Analyse set: several stores, and one hour of a day. Each has its own value as
    its only choice."""
    filters = []
    if text := visit.query.get("stores", ""):
        store_ids = decode_stores(text[:STORES_CHARACTERS_MAX])
        choice = ("", "") if store_ids is None else (text, visit.format.count(len(store_ids), "store"))
        filters.append(Filter("stores", "Stores", (choice,), characters_max=STORES_CHARACTERS_MAX))
    if text := visit.query.get("hour", ""):
        hour = _read_hour(text)
        choice = ("", "") if hour is None else (text, f"{visit.format.full_day(hour.date())}, {hour.hour:02d}:00")
        filters.append(Filter("hour", "Hour from", (choice,)))
    return filters


def _read_hour(text: str) -> datetime | None:
    """Read an hour such as 2026-11-16T14, in the organization's time zone."""
    try:
        hour = datetime.strptime(text, "%Y-%m-%dT%H")  # noqa: DTZ007  # the zone is that of the organization
    except ValueError:
        return None
    return hour if DAY_MIN <= hour.date() <= DAY_MAX else None


async def read_filters(tx: Tx, visit: Visit, view: ListView) -> TicketFilters | None:
    """Read the filters from the page's URL; None if one names a store or customer that does not exist."""
    store = await _find_store_id(tx, visit, view.value("store"))
    profile = await _find_profile_id(tx, visit, view.value("profile"))
    if (view.value("store") and store is None) or (view.value("profile") and profile is None):
        return None
    customer, zone, hour = view.value("customer"), visit.format.zone, _read_hour(view.value("hour"))
    # The filter `to` includes its day.
    starts = [view.start_of("from", zone), hour and hour.replace(tzinfo=zone)]
    ends = [view.start_of("to", zone, days_later=1), hour and (hour + timedelta(hours=1)).replace(tzinfo=zone)]
    return TicketFilters(
        store_id=store,
        store_ids=decode_stores(view.value("stores")),
        profile_id=profile,
        occurred_from=max((start for start in starts if start is not None), default=None),
        occurred_to=min((end for end in ends if end is not None), default=None),
        type=view.values.get("type"),
        currency=view.values.get("currency"),
        is_identified=None if not customer else customer == "yes",
        product=view.values.get("product"),
    )


async def _find_store_id(tx: Tx, visit: Visit, text: str) -> UUID | None:
    reference = read_reference(STORE, text)
    stores = await find_stores(tx, visit.organization_id, [reference]) if text else {}
    return stores[reference].id if reference in stores else None


async def _find_profile_id(tx: Tx, visit: Visit, text: str) -> UUID | None:
    """Find the customer of the filter. A user who may not see personal data can use only the canonical id."""
    reference = read_reference(PROFILE, text)
    if not text or not (visit.sees_personal or isinstance(reference, ById)):
        return None
    profiles = await find_profiles(tx, visit.organization_id, [reference])
    return profiles[reference].id if reference in profiles else None


async def _open_tickets(tx: Tx, visit: Visit) -> OpenedList[ListedTicket]:
    view = read_view(visit, "tickets", PATH, filters=await list_filters(tx, visit))
    filters = await read_filters(tx, visit, view)
    source = view.by_key(partial(_list, visit.organization_id, filters), position_of)
    return OpenedList(view, source, {"is_by_time": filters is None or filters.is_by_time})


async def _list(
    organization_id: UUID, filters: TicketFilters | None, tx: Tx, page: PageRequest
) -> PageRows[ListedTicket]:
    return PageRows() if filters is None else await list_tickets(tx, organization_id, filters, page)


TICKETS: Final = ListPages("sales/tickets.html", COLUMNS, _open_tickets, act="tickets.export", file_name="tickets.csv")


class Receipt(NamedTuple):
    """The lines of a ticket and their sum, to compare with the total that the caller sent."""

    lines: Sequence[LineItem]
    lines_cents: int
    # The number of lines without a tax.
    without_tax: int

    def adds_up(self, sale: StoredSale) -> bool:
        return self.lines_cents == sale.ticket.total_amount_cents


async def find_ticket(tx: Tx, visit: Visit) -> StoredSale:
    sale = await find_sale(tx, visit.organization_id, visit.references[0])
    if sale is None:
        raise PageNotFound("No ticket of this organization has this id.")
    return sale


class StartedJourney(NamedTuple):
    """A journey (automation) that the ticket started for its customer, and the URL path of that run."""

    name: str
    path: tuple[str, ...]
    # The state of the run: active, parked (failed after all retries) or ended.
    state: str


ListStarted = Callable[[Tx, UUID, StoredSale], Awaitable[Sequence[StartedJourney]]]
# Renders a card on the page of a ticket.
TicketCard = Callable[[Tx, Visit, StoredSale], Awaitable[Markup]]


async def show_ticket(list_started: ListStarted, attribution_card: TicketCard, visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        sale = await find_ticket(tx, visit)
        store = await find_store(tx, visit.organization_id, ById(sale.store.id))
        customer: Profile | None = None
        if sale.profile is not None:
            customer = await find_profile(tx, visit.organization_id, ById(sale.profile.id))
        collision = await find_collision(tx, visit.organization_id, sale)
        earlier, later = await find_adjacent_tickets(tx, visit.organization_id, sale)
        started = await list_started(tx, visit.organization_id, sale)
        credit = await attribution_card(tx, visit, sale)
    return render(
        visit,
        "sales/ticket.html",
        sale=sale,
        ticket=sale.ticket,
        receipt=read_receipt(sale),
        store=store,
        store_name=sale.store.external_id if store is None else store.display_name,
        customer=customer,
        customer_url="" if customer is None else visit.url("/customers", PROFILE.encode(customer.id)),
        canonical_id=SALES_EVENT.encode(sale.id),
        collision=collision,
        # The state at the time of recording, as in the response to the caller.
        automation=automation_state(sale, is_new=True, now=sale.created_at),
        started=started,
        credit=credit,
        earlier_url=None if earlier is None else visit.url(PATH, earlier),
        later_url=None if later is None else visit.url(PATH, later),
        json=_format_json(visit, sale),
    )


def read_receipt(sale: StoredSale) -> Receipt:
    lines = msgspec.json.decode(sale.ticket.line_items, type=list[LineItem])
    return Receipt(lines, sum(line.total_price_cents for line in lines), sum(line.tax_cents is None for line in lines))


def _format_json(visit: Visit, sale: StoredSale) -> str:
    """Return the ticket as the API's JSON, without the fields that the user may not see."""
    response: dict[str, Any] = msgspec.json.decode(encode_sale(sale))
    if not visit.sees_personal:
        for field in FREE_FIELDS:
            response[field] = None if response[field] is None else mask.HIDDEN
        if response["profile"] is not None:
            response["profile"]["external_id"] = mask.HIDDEN
    return msgspec.json.format(msgspec.json.encode(response), indent=2).decode()


def pages(*, list_started: ListStarted, attribution_card: TicketCard) -> tuple[Page, ...]:
    """Declare the pages. `list_started` finds the journeys that a ticket started, and `attribution_card` renders which
    text message the ticket is credited to; both belong to modules that import this one."""
    return (
        *TICKETS.pages(PATH, needs=Action.READ),
        Page(path=f"{PATH}/{{ticket}}", needs=Action.READ, handle=partial(show_ticket, list_started, attribution_card)),
    )
