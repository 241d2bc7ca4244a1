"""Pages about consent: statistics, the list of phone numbers, the page of one number, and its certificate of consent as
JSON and for print."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple

import msgspec
from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.accounts.list_pages import ListPages, OpenedList
from regulars.conditions.labels import SOURCES
from regulars.consent.certificate import Certificate, certificate_as_json, make_certificate
from regulars.consent.figures import WEEKS_COUNTED, ConsentFigures, FiguresSnapshot, read_figures
from regulars.consent.find import DO_NOT_CONTACT, SubscriptionItem, find_subscription, list_newest, search_subscription
from regulars.consent.model import SubscriptionState
from regulars.explore.ledger_labels import describe
from regulars.explore.number_view import NumberLabels, describe_answer, read_local_time, read_number
from regulars.kit.db import Tx
from regulars.kit.ids import API_KEY, PROFILE, STORE, SUBSCRIPTION, ById
from regulars.kit.keyset import PageRequest, PageRows
from regulars.lists.columns import HARMLESS, Column, Columns, Head, PartlyMasked, Place
from regulars.lists.masking import hide_digits
from regulars.organizations.manage import list_keys
from regulars.profiles.find import find_profile
from regulars.sales.totals.reports import sum_totals
from regulars.stores.find import name_stores
from regulars.texts.settings.store import load_texting
from regulars.web import mask
from regulars.web.access import Action
from regulars.web.charts import Chart, bar_chart
from regulars.web.errors import PageNotFound
from regulars.web.format import Format
from regulars.web.listing import Filter, read_view
from regulars.web.render import render
from regulars.web.route import Harm, Page
from regulars.web.static import NO_STORE, SECURITY_HEADERS
from regulars.web.visit import Visit

PATH: Final = "/consent"
NUMBERS: Final = "/consent/numbers"
NO_NUMBER: Final = "No number of this organization has this id."
STATUSES: Final = (
    ("SUBSCRIBED", "May be texted"),
    ("UNSUBSCRIBED", "Opted out"),
    (DO_NOT_CONTACT, "Of an erased customer"),
)
COLUMNS: Final = Columns[SubscriptionItem](
    Column("id", lambda it: SUBSCRIPTION.encode(it.id), HARMLESS),
    Column(
        "phone_number", lambda it: PartlyMasked(it.phone_number, hide_digits), head=Head("Phone number", "nowrap", 1)
    ),
    Column("status", lambda it: it.status, HARMLESS, Head("Consent", "", 6)),
    Column("consent_source", lambda it: it.consent_source, HARMLESS, Head("Source", "drop-2", 3)),
    Column("consented_at", lambda it: it.consented_at, HARMLESS, Head("Opted in", "nowrap drop-3", 4)),
    Column("unsubscribed_at", lambda it: it.unsubscribed_at, HARMLESS, places=Place.FILE),
    Column("profile_id", lambda it: PROFILE.encode_or_none(it.profile_id), HARMLESS, places=Place.FILE),
    Column("profile_external_id", lambda it: it.profile_external_id, head=Head("Customer", "clip drop-3", 2)),
    Column("has_terms", lambda it: it.has_terms, HARMLESS, Head("Proof", "drop-1", 5), places=Place.PAGE),
)


@dataclass(frozen=True, slots=True)
class WeekTotals:
    """Opt-ins by week as a chart; opt-ins and opt-outs by week as table rows."""

    chart: Chart
    rows: list[tuple[str, int, int]]


class StoreRow(NamedTuple):
    """The opt-in rate of a store: its opt-ins and its tickets in 30 days."""

    name: str
    url: str
    subscribed: int
    opt_ins: int
    tickets: int

    @property
    def per_hundred(self) -> float | None:
        return round(100 * self.opt_ins / self.tickets, 1) if self.tickets else None


async def show_consent(visit: Visit) -> Response:
    first = visit.format.today - timedelta(days=29)
    counted = await read_figures(visit.database, visit.organization_id, time_zone=visit.format.zone.key)
    stores = [] if counted.figures is None else await _rank_stores(visit, counted.figures)
    return render(
        visit,
        "explore/consent.html",
        counted=counted,
        sources=SOURCES,
        numbers_url=visit.url(NUMBERS),
        stores=stores,
        weeks=None if counted.figures is None else _sum_weeks(visit, counted),
        last_30_days=None if counted.figures is None else counted.figures.since(first),
    )


async def _rank_stores(visit: Visit, figures: ConsentFigures) -> list[StoreRow]:
    """The stores with tickets or consents, the highest opt-in rate first."""
    today = visit.format.today
    async with visit.database.reading() as tx:
        sums = await sum_totals(tx, visit.organization_id, ("store",), first=today - timedelta(days=29), last=today)
        tickets = {store_id: total.tickets for (store_id,), total in sums.items()}
        consents_by_store = {consents.store_id: consents for consents in figures.stores}
        names = await name_stores(tx, visit.organization_id, {*tickets, *consents_by_store})
    rows = [
        StoreRow(
            name,
            visit.url("/stores", STORE.encode(store_id)),
            consents_by_store[store_id].subscribed if store_id in consents_by_store else 0,
            consents_by_store[store_id].opt_ins if store_id in consents_by_store else 0,
            tickets.get(store_id, 0),
        )
        for store_id, name in names.items()
    ]
    return sorted(rows, key=lambda row: (-(row.per_hundred or 0), row.name.casefold()))


def _sum_weeks(visit: Visit, counted: FiguresSnapshot) -> WeekTotals:
    """Sum the daily changes of each week, which starts on Monday; the chart ends with the current week."""
    monday = visit.format.today - timedelta(days=visit.format.today.weekday())
    starts = [monday - timedelta(weeks=n) for n in reversed(range(WEEKS_COUNTED - 1))]
    changes = [] if counted.figures is None else counted.figures.changes
    rows = []
    for start in starts:
        days = [change for change in changes if start <= change.day < start + timedelta(weeks=1)]
        rows.append((start, sum(day.opt_ins for day in days), sum(day.withdrawals for day in days)))
    formats: Format = visit.format
    chart = bar_chart(
        [float(opt_ins) for _, opt_ins, _ in rows],
        titles=[f"Week of {formats.day(start)}: {formats.number(opt_ins)} opt-ins" for start, opt_ins, _ in rows],
        labels=[formats.day(start) for start, _, _ in rows],
        is_last_partial=True,
    )
    return WeekTotals(chart, [(formats.day(start), opt_ins, opt_outs) for start, opt_ins, opt_outs in reversed(rows)])


def filters(visit: Visit) -> list[Filter]:
    placeholder = "Full phone number, or its ID (sub_…)" if visit.sees_personal else "ID of a number (sub_…)"
    return [
        Filter("q", "Find a number", kind="search", placeholder=placeholder),
        Filter("status", "Consent", STATUSES),
        Filter("source", "Source", tuple(SOURCES.items())),
        Filter("proof", "Proof", (("weak", "Weak: no terms and no wording"),)),
    ]


async def _open_numbers(_tx: Tx, visit: Visit) -> OpenedList[SubscriptionItem]:
    view = read_view(visit, "subscriptions", NUMBERS, filters=filters(visit))

    async def fetch(tx: Tx, page: PageRequest) -> PageRows[SubscriptionItem]:
        status, source = view.values.get("status"), view.values.get("source")
        is_weak = view.value("proof") == "weak"
        return await list_newest(tx, visit.organization_id, page, status=status, source=source, is_weak=is_weak)

    async def find_number(tx: Tx) -> str | None:
        """Find the page of an exact phone number or id."""
        secret, sees_personal = visit.organization.secret, visit.sees_personal
        subscription = await search_subscription(
            tx, visit.organization_id, view.value("q"), secret=secret, sees_personal=sees_personal
        )
        return None if subscription is None else visit.url(NUMBERS, SUBSCRIPTION.encode(subscription.id))

    find_exactly = find_number if view.value("q") else None
    return OpenedList(view, view.by_key(fetch), {"sources": SOURCES}, find_exactly=find_exactly)


PHONE_NUMBERS: Final = ListPages(
    "explore/numbers.html", COLUMNS, _open_numbers, act="consent.export", file_name="consent.csv"
)


async def show_number(visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        subscription = await find_subscription(tx, visit.organization_id, visit.read_id(SUBSCRIPTION, NO_NUMBER))
        if subscription is None:
            raise PageNotFound(NO_NUMBER)
        number = await read_number(tx, visit, subscription, checked_at=read_local_time(visit, visit.query.get("at")))
        customer = None
        if subscription.profile is not None:
            customer = await find_profile(tx, visit.organization_id, ById(subscription.profile.id))
    canonical_id = SUBSCRIPTION.encode(subscription.id)
    return render(
        visit,
        "explore/number_page.html",
        number=number,
        canonical_id=canonical_id,
        here=visit.url(NUMBERS, canonical_id),
        customer=customer,
        customer_url="" if customer is None else visit.url("/customers", PROFILE.encode(customer.id)),
    )


async def _make_certificate(tx: Tx, visit: Visit) -> Certificate:
    certificate = await make_certificate(
        tx,
        visit.organization_id,
        visit.read_id(SUBSCRIPTION, NO_NUMBER),
        at=read_local_time(visit, visit.query.get("at")),
    )
    if certificate is None:
        raise PageNotFound(NO_NUMBER)
    return certificate


async def download_certificate(visit: Visit) -> Response:
    async with visit.database.transaction() as tx:
        certificate = await _make_certificate(tx, visit)
        name = SUBSCRIPTION.encode(certificate.subscription.id)
        await record_act(tx, visit, "consent.certificate", name)
    headers = {
        **SECURITY_HEADERS,
        "Cache-Control": NO_STORE,
        "Content-Disposition": f'attachment; filename="consent-{name}.json"',
    }
    body = msgspec.json.format(
        msgspec.json.encode(certificate_as_json(certificate, organization_name=visit.organization.name)), indent=2
    )
    return Response(body, media_type="application/json", headers=headers)


async def print_certificate(visit: Visit) -> Response:
    async with visit.database.transaction() as tx:
        certificate = await _make_certificate(tx, visit)
        key_names = {API_KEY.encode(key.id): key.name for key in await list_keys(tx.connection, visit.organization_id)}
        linked = certificate.subscription.profile
        profile = None if linked is None else await find_profile(tx, visit.organization_id, ById(linked.id))
        texting = await load_texting(tx, visit.organization_id)
    customer = None if profile is None else mask.name(visit, profile.first_name, profile.last_name)
    brand = visit.organization.name if texting is None else texting.brand
    return render(
        visit,
        "explore/certificate.html",
        certificate=certificate,
        customer=customer,
        brand=brand,
        postal_address=None if texting is None else texting.settings.postal_address,
        sentence=_summarize(visit, certificate.subscription.state, customer, brand),
        document=certificate_as_json(certificate, organization_name=visit.organization.name),
        entry_views=[describe(visit, entry, key_names) for entry in certificate.entries],
        answer_entries=describe_answer(visit, certificate.answer, key_names),
        labels=NumberLabels(visit.format),
        here=visit.url(NUMBERS, SUBSCRIPTION.encode(certificate.subscription.id)),
    )


def _summarize(visit: Visit, state: SubscriptionState, customer: str | None, brand: str) -> str:
    """The first sentence of the certificate: who agreed or opted out, and when."""
    number = mask.phone(visit, state.phone_number) or "This number"
    who = f"{customer} ({number})" if customer else number
    moment = visit.format.full_moment
    if state.is_erased:
        return f"{who} was erased and must not be texted by {brand}."
    if state.consented_at is None:
        return f"{who} never agreed to be texted by {brand}."
    agreed = f"{who} agreed on {moment(state.consented_at)} to be texted by {brand}"
    if state.unsubscribed_at is not None:
        return f"{agreed} and opted out on {moment(state.unsubscribed_at)}."
    return f"{agreed} and has not opted out."


PAGES: Final = (
    Page(path=PATH, needs=Action.READ, handle=show_consent),
    *PHONE_NUMBERS.pages(NUMBERS, needs=Action.READ),
    Page(path=f"{NUMBERS}/{{number}}", needs=Action.READ, handle=show_number),
    Page(
        path=f"{NUMBERS}/{{number}}/certificate", needs=Action.SEE_PERSONAL, handle=print_certificate, harm=Harm.EXPORTS
    ),
    Page(
        path=f"{NUMBERS}/{{number}}/certificate.json",
        needs=Action.SEE_PERSONAL,
        handle=download_certificate,
        harm=Harm.EXPORTS,
    ),
)
