"""The list of credited tickets, as a page and a CSV file: each ticket with the text that it is credited to."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

from regulars.accounts.list_pages import ListPages, OpenedList
from regulars.attribution.credits import ROWS_SCANNED_MAX, CreditFilter, CreditLine, list_credits
from regulars.attribution.pages.credit_cards import describe_delay
from regulars.attribution.pages.links import TICKETS_PATH, encode_origin, name_origins
from regulars.kit.db import Tx
from regulars.kit.ids import CAMPAIGN, JOURNEY, PROFILE, SALES_EVENT, TEXT
from regulars.lists.columns import HARMLESS, Column, Columns, Head, Place
from regulars.sales.listing import CURRENCIES
from regulars.web.errors import BadFilter
from regulars.web.listing import Filter, ListView, read_view
from regulars.web.visit import Visit

FILTERS: Final = (
    Filter("origin", "Sent by", (("campaign", "Campaigns"), ("journey", "Journeys"), ("person", "Your team"))),
    Filter("id", "Campaign or journey", placeholder="cmp_… or jrn_…"),
    Filter("step", "Step of the journey"),
    Filter("text", "Text", placeholder="txt_…"),
    Filter("currency", "Currency", tuple((code, code) for code in CURRENCIES)),
    Filter("from", "Text sent from", kind="date"),
    Filter("to", "Text sent until", kind="date"),
)
_CUSTOMER: Final = Head("Customer", "clip drop-2", 2)
COLUMNS: Final = Columns[CreditLine](
    Column("sale_id", lambda it: SALES_EVENT.encode(it.credit.sale_id), HARMLESS, places=Place.FILE),
    Column("ticket", lambda it: it.ticket_number, HARMLESS, Head("Ticket", "clip", 1)),
    Column("occurred_at", lambda it: it.credit.occurred_at, HARMLESS),
    Column("currency", lambda it: it.credit.currency, HARMLESS),
    Column("gross_cents", lambda it: it.credit.gross_cents, HARMLESS, Head("Gross", "is-num drop-4", 5)),
    Column("net_cents", lambda it: it.credit.net_cents, HARMLESS, Head("Net", "is-num", 6)),
    Column("unmatched_returns_cents", lambda it: it.credit.unmatched_cents, HARMLESS, places=Place.FILE),
    Column("touch", lambda it: it.credit.touch, HARMLESS, Head("Bought", "drop-3", 4)),
    Column("touched_at", lambda it: it.credit.touched_at, HARMLESS, places=Place.FILE),
    Column("text_id", lambda it: TEXT.encode_or_none(it.credit.text_id), HARMLESS, places=Place.FILE),
    Column("text_sent_at", lambda it: it.credit.sent_at, HARMLESS),
    Column("origin_kind", lambda it: it.credit.origin_kind, HARMLESS, places=Place.FILE),
    Column("origin_id", lambda it: encode_origin(it.credit.origin), HARMLESS, Head("Sent by", "clip drop-4", 3)),
    Column("step", lambda it: it.credit.step, HARMLESS, places=Place.FILE),
    Column("profile_id", lambda it: PROFILE.encode_or_none(it.credit.profile_id), HARMLESS, _CUSTOMER),
)


async def _open_credits(_tx: Tx, visit: Visit) -> OpenedList[CreditLine]:
    view = read_view(visit, "attribution", TICKETS_PATH, filters=FILTERS)
    filters = _read_filter(visit, view)

    async def load(tx: Tx, lines: Sequence[CreditLine]) -> Mapping[str, Any]:
        delays = {line.credit.sale_id: describe_delay(line.credit) for line in lines}
        return {"names": await name_origins(tx, visit, [line.credit.origin for line in lines]), "delays": delays}

    source = view.by_key(
        lambda tx, page: list_credits(tx, visit.organization_id, filters, page), attrgetter("position")
    )
    return OpenedList(view, source, {"scanned": ROWS_SCANNED_MAX}, load)


TICKETS: Final = ListPages(
    "attribution/tickets.html", COLUMNS, _open_credits, act="analyse.export", file_name="attributed-tickets.csv"
)


def _read_filter(visit: Visit, view: ListView) -> CreditFilter:
    identifier, text = view.value("id"), view.value("text")
    origin_id = CAMPAIGN.decode(identifier) or JOURNEY.decode(identifier)
    text_id = TEXT.decode(text)
    if identifier and origin_id is None:
        raise BadFilter("“Campaign or journey” must be an ID such as cmp_… or jrn_….", path=visit.url(TICKETS_PATH))
    if text and text_id is None:
        raise BadFilter("“Text” must be an ID such as txt_….", path=visit.url(TICKETS_PATH))
    return CreditFilter(
        origin_kind=view.values.get("origin"),
        origin_id=origin_id,
        step=view.values.get("step"),
        text_id=text_id,
        currency=view.values.get("currency"),
        first=view.day("from"),
        last=view.day("to"),
    )
