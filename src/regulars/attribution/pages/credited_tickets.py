"""The list of credited tickets, as a page and a CSV file: each ticket with the text that it is credited to."""

from typing import Final

from starlette.responses import Response

from regulars.accounts.audit.exports import export_csv
from regulars.attribution.credits import ROWS_SCANNED_MAX, CreditFilter, CreditLine, list_credits
from regulars.attribution.pages.credit_cards import describe_delay
from regulars.attribution.pages.links import TICKETS_PATH, encode_origin, name_origins, text_url
from regulars.kit.clock import format_timestamp
from regulars.kit.ids import CAMPAIGN, JOURNEY, PROFILE, SALES_EVENT, TEXT
from regulars.kit.keyset import Position
from regulars.sales.listing import CURRENCIES
from regulars.web.errors import BadFilter
from regulars.web.listing import Filter, ListView, make_page, read_all_rows, read_view
from regulars.web.render import render
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
CSV_HEADER: Final = (
    "sale_id", "ticket", "occurred_at", "currency", "gross_cents", "net_cents", "unmatched_returns_cents", "touch",
    "touched_at", "text_id", "text_sent_at", "origin_kind", "origin_id", "step", "profile_id",
)  # fmt: skip


async def show_tickets(visit: Visit) -> Response:
    view = read_view(visit, "attribution", TICKETS_PATH, filters=FILTERS)
    filters = _read_filter(visit, view)
    async with visit.database.reading() as tx:
        page = make_page(view, await list_credits(tx, visit.organization_id, filters, view.request), _position)
        names = await name_origins(tx, visit, [line.credit.origin for line in page.rows])
    return render(
        visit,
        "attribution/tickets.html",
        view=view,
        page=page,
        names=names,
        delays={line.credit.sale_id: describe_delay(line.credit) for line in page.rows},
        text_url=lambda text_id: text_url(visit, text_id),
        profile_url=lambda profile_id: visit.url("/customers", PROFILE.encode(profile_id)),
        scanned=ROWS_SCANNED_MAX,
    )


async def export_tickets(visit: Visit) -> Response:
    view = read_view(visit, "attribution", TICKETS_PATH, filters=FILTERS)
    filters = _read_filter(visit, view)
    lines = read_all_rows(
        visit.database.reading, lambda tx, page: list_credits(tx, visit.organization_id, filters, page), _position
    )
    rows = (_csv_row(line) async for line in lines)
    return export_csv(visit, "analyse.export", "attributed-tickets.csv", CSV_HEADER, rows)


def _position(line: CreditLine) -> Position:
    return line.position


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


def _csv_row(line: CreditLine) -> list[str]:
    credit = line.credit
    return [
        SALES_EVENT.encode(credit.sale_id),
        line.ticket_number,
        format_timestamp(credit.occurred_at),
        credit.currency,
        str(credit.gross_cents),
        str(credit.net_cents),
        str(credit.unmatched_cents),
        credit.touch,
        format_timestamp(credit.touched_at),
        "" if credit.text_id is None else TEXT.encode(credit.text_id),
        format_timestamp(credit.sent_at),
        credit.origin_kind,
        encode_origin(credit.origin),
        credit.step,
        "" if credit.profile_id is None else PROFILE.encode(credit.profile_id),
    ]
