"""The page with the list of customers (all, filtered, or searched by name, id or phone number), and its CSV export. The
analysis process selects filtered and sorted customers; SQL lists and searches all others."""

from collections.abc import AsyncIterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlencode

import msgspec
from starlette.responses import Response

from regulars.accounts.audit.exports import export_csv
from regulars.columns import lifecycle
from regulars.columns.client import DEADLINE_S, Analysis, list_pages
from regulars.columns.model import BuildProgress
from regulars.columns.protocol import (
    AnalysisUnavailable,
    CursorExpired,
    MemberCursor,
    Members,
    NotReady,
    SegmentQuery,
    parse_cursor,
)
from regulars.consent.find import ConsentStatus, find_consent_statuses
from regulars.explore.customers.filters import COLUMNS, SORTS, CustomerSelection, offer_filters, read_selection
from regulars.kit.clock import format_timestamp
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE
from regulars.kit.keyset import PageRequest, PageRows
from regulars.profiles.model import Profile
from regulars.profiles.search import (
    ProfileHit,
    count_profiles,
    find_profiles_by_ids,
    list_newest,
    search_by_name,
    search_exactly,
)
from regulars.sales.purchase_history import LIST_MONTHS, History, read_history
from regulars.sales.tickets import list_tickets_of_customers
from regulars.segments.saved.resolve import query_of, resolve
from regulars.web import mask
from regulars.web.listing import (
    COUNT_MAX,
    EXPORT_ROWS,
    PAGE_ROWS,
    Count,
    ListPage,
    ListView,
    make_page,
    read_all_rows,
    read_view,
)
from regulars.web.render import redirect, render
from regulars.web.visit import Visit

PATH: Final = "/customers"
# How long an htmx request waits for the analysis process. Without a result the page shows the progress and reloads
# itself.
HTMX_WAIT_S: Final = 0.5
CSV_HEADER: Final = ("id", "external_id", "first_name", "last_name", "phone_number", "consent", "created_at")


class ListedCustomer(NamedTuple):
    hit: ProfileHit
    history: History
    status: str | None
    phone_number: str | None

    @property
    def profile(self) -> Profile:
        return self.hit.profile

    @property
    def canonical_id(self) -> str:
        return PROFILE.encode(self.hit.profile.id)


@dataclass(frozen=True, slots=True)
class FilterResult:
    """The response of the analysis process: a page of customers (`members`); the progress of preparing its data; that
    the preparation was never started; or why it did not respond. All fields are empty if it was not called."""

    members: Members | None = None
    progress: BuildProgress | None = None
    is_not_prepared: bool = False
    unavailable_reason: str | None = None


class CustomerList:
    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis

    async def show(self, visit: Visit) -> Response:
        async with visit.database.reading() as tx:
            view = await _read_view(tx, visit)
            count = Count(await count_profiles(tx, visit.organization_id, count_max=COUNT_MAX + 1))
            selection = await read_selection(tx, visit, view)
            query = await _make_query(tx, visit, selection)
            progress = await lifecycle.find_build_progress(tx, visit.organization_id)
        result = FilterResult()
        if _needs_analysis(view) and selection.fault is None:
            result = await self._query_analysis(visit, query, selection, progress)
        async with visit.database.reading() as tx:
            if not _needs_analysis(view):
                hits = await find(tx, visit, view, view.request)
                page = make_page(view, hits, lambda hit: hit.position)
            else:
                members = await _load_hits(tx, visit, result.members)
                page = _result_page(view, members, result.members, parse_cursor(visit.query.get("after", "")))
            rows = await load_rows(tx, visit, list(page.rows))
        hidden = COLUMNS.keys() & set(view.value("hide").split(","))
        return render(
            visit,
            "explore/customers.html",
            view=view,
            page=page,
            rows=rows,
            count=count,
            selection=selection,
            result=result,
            needs_analysis=_needs_analysis(view),
            definition=msgspec.json.encode(selection.match).decode() if selection.match.of else "",
            shown=COLUMNS.keys() - hidden,
            columns=[(name, title, _toggle_url(view, hidden, name)) for name, title in COLUMNS.items()],
        )

    async def export(self, visit: Visit) -> Response:
        async with visit.database.reading() as tx:
            view = await _read_view(tx, visit)
            selection = await read_selection(tx, visit, view)
            query = await _make_query(tx, visit, selection)
        if not _needs_analysis(view):
            return export_csv(visit, "customers.export", "customers.csv", CSV_HEADER, _csv_rows_of_all(visit, view))
        try:
            first = await self._analysis.members(visit.organization_id, query, limit=EXPORT_ROWS)
        except (NotReady, AnalysisUnavailable):
            # The page shows the progress, or the error.
            return await self.show(visit)
        rows = self._csv_rows_of_members(visit, query, first)
        return export_csv(visit, "customers.export", "customers.csv", CSV_HEADER, rows)

    async def prepare(self, visit: Visit) -> Response:
        """Start preparing the data for filters and sort orders."""
        async with visit.database.transaction() as tx:
            await lifecycle.begin(tx, visit.organization_id)
        return redirect(visit, f"{visit.url(PATH)}?{urlencode(parse_qsl(visit.form.get('query', '')))}")

    async def _query_analysis(
        self, visit: Visit, query: SegmentQuery, selection: CustomerSelection, progress: BuildProgress | None
    ) -> FilterResult:
        if progress is None or progress.state == "building":
            return FilterResult(progress=progress, is_not_prepared=progress is None)
        try:
            members = await self._analysis.members(
                visit.organization_id,
                query,
                order=selection.order,
                currency=selection.currency,
                after=parse_cursor(visit.query.get("after", "")),
                limit=PAGE_ROWS,
                deadline_s=HTMX_WAIT_S if visit.is_htmx else DEADLINE_S,
            )
        except NotReady as error:
            return FilterResult(progress=error.progress, is_not_prepared=error.progress is None)
        except (AnalysisUnavailable, CursorExpired) as error:
            return FilterResult(unavailable_reason=str(error))
        return FilterResult(members)

    async def _csv_rows_of_members(self, visit: Visit, query: SegmentQuery, first: Members) -> AsyncIterator[list[str]]:
        async for members in list_pages(self._analysis, visit.organization_id, query, first, limit=EXPORT_ROWS):
            async with visit.database.reading() as tx:
                consents = await find_consent_statuses(tx, visit.organization_id, list(members.profile_ids))
                for hit in await _load_hits(tx, visit, members):
                    yield _csv_row(visit, hit.profile, consents.get(hit.profile.id))


async def _read_view(tx: Tx, visit: Visit) -> ListView:
    return read_view(visit, "customers", PATH, filters=await offer_filters(tx, visit), sorts=tuple(SORTS))


async def _make_query(tx: Tx, visit: Visit, selection: CustomerSelection) -> SegmentQuery:
    """The query for the analysis process. A list that is only sorted has no conditions; unlike a segment without
    conditions, it is valid and selects all customers."""
    resolved = await resolve(tx, visit.organization_id, selection.match)
    return query_of(resolved, is_faulty=None if selection.match.of else False)


def _needs_analysis(view: ListView) -> bool:
    """Whether the list is filtered or sorted, so that the analysis process selects the rows. A search by name or number
    uses an index instead."""
    is_sorted = view.sort != view.sorts[0]
    return not view.value("q") and (is_sorted or any(each.name in view.values for each in view.menu_filters))


async def _load_hits(tx: Tx, visit: Visit, members: Members | None) -> list[ProfileHit]:
    """The customers in the order of the result, without those deleted since it was computed."""
    ids = () if members is None else members.profile_ids
    profiles = {profile.id: profile for profile in await find_profiles_by_ids(tx, visit.organization_id, ids)}
    return [ProfileHit(profiles[each], position=(str(each),)) for each in ids if each in profiles]


def _result_page(
    view: ListView, hits: list[ProfileHit], members: Members | None, cursor: MemberCursor | None
) -> ListPage[ProfileHit]:
    """`cursor` is that of this page. The page before it is of the same build (epoch) of the columnar data, since the
    analysis process refuses the cursor of another one."""
    if members is None:
        return ListPage(())
    previous = None
    if cursor is not None and cursor.number:
        before = cursor._replace(number=max(cursor.number - PAGE_ROWS, 0))
        previous = view.url(after=str(before)) if before.number else view.url()
    return ListPage(hits, previous, None if members.next is None else view.url(after=str(members.next)))


def _toggle_url(view: ListView, hidden: AbstractSet[str], name: str) -> str:
    """The address of the same list with this column hidden, or shown if it is hidden now."""
    return view.url(without="hide", hide=",".join(sorted(hidden ^ {name})))


async def find(tx: Tx, visit: Visit, view: ListView, page: PageRequest) -> PageRows[ProfileHit]:
    """The customers with the searched id or phone number, else those whose name begins with the text; without a text,
    the newest. A user who may not see names cannot search by name."""
    text = view.value("q")
    if not text:
        return await list_newest(tx, visit.organization_id, page)
    exact = await find_exactly(tx, visit, text)
    if exact:
        return PageRows(ProfileHit(profile, position=(str(profile.id),)) for profile in exact if page.position is None)
    if not visit.sees_personal:
        return PageRows()
    return await search_by_name(tx, visit.organization_id, text, page)


async def find_exactly(tx: Tx, visit: Visit, text: str) -> list[Profile]:
    """The customers with this id or phone number, if the user may see it."""
    return await search_exactly(
        tx,
        visit.organization_id,
        text,
        default_country=visit.organization.default_country,
        sees_personal=visit.sees_personal,
    )


async def load_rows(tx: Tx, visit: Visit, hits: list[ProfileHit]) -> list[ListedCustomer]:
    """Load the data that the list shows for each customer."""
    ids = [hit.profile.id for hit in hits]
    tickets = await list_tickets_of_customers(tx, visit.organization_id, ids)
    consents = await find_consent_statuses(tx, visit.organization_id, ids)
    return [
        ListedCustomer(
            hit,
            read_history(tickets[hit.profile.id], now=visit.now, zone=visit.format.zone, months=LIST_MONTHS),
            status_of(hit.profile, _status_of_consent(consents.get(hit.profile.id))),
            number_of(hit.profile, consents.get(hit.profile.id)),
        )
        for hit in hits
    ]


def _status_of_consent(consent: ConsentStatus | None) -> str | None:
    return None if consent is None else consent.status


def number_of(profile: Profile, consent: ConsentStatus | None) -> str | None:
    """The customer's own number, or the number of their consent."""
    return profile.phone_number or (None if consent is None else consent.phone_number)


def status_of(profile: Profile, status: str | None) -> str | None:
    """The status for the list: UNREACHABLE for a customer without a consent event whose number cannot receive texts."""
    if status is None and profile.phone_number and not profile.phone_reachable:
        return "UNREACHABLE"
    return status


def _csv_rows_of_all(visit: Visit, view: ListView) -> AsyncIterator[list[str]]:
    async def fetch(tx: Tx, page: PageRequest) -> PageRows[tuple[ProfileHit, ConsentStatus | None]]:
        hits = await find(tx, visit, view, page)
        consents = await find_consent_statuses(tx, visit.organization_id, [hit.profile.id for hit in hits])
        return PageRows((hit, consents.get(hit.profile.id)) for hit in hits)

    customers = read_all_rows(visit.database.reading, fetch, lambda pair: pair[0].position)
    return (_csv_row(visit, hit.profile, consent) async for hit, consent in customers)


def _csv_row(visit: Visit, profile: Profile, consent: ConsentStatus | None) -> list[str]:
    number = number_of(profile, consent)
    phone = number if visit.sees_personal else mask.phone(visit, number)
    return [
        PROFILE.encode(profile.id),
        mask.text(visit, profile.external_id) or "",
        mask.text(visit, profile.first_name) or "",
        mask.text(visit, profile.last_name) or "",
        phone or "",
        _status_of_consent(consent) or "NEVER_ASKED",
        format_timestamp(profile.created_at),
    ]
