"""The page with the list of customers (all, filtered, or searched by name, id or phone number), and its CSV export. The
analysis process selects filtered and sorted customers; SQL lists and searches all others."""

from collections.abc import Awaitable, Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Final, NamedTuple, TypeVar
from urllib.parse import parse_qsl, urlencode
from uuid import UUID

import msgspec
from starlette.responses import Response

from regulars.accounts.audit.exports import export_csv
from regulars.accounts.list_pages import EXPORT_ROWS
from regulars.columns import lifecycle
from regulars.columns.client import DEADLINE_S, Analysis
from regulars.columns.model import BuildProgress
from regulars.columns.protocol import AnalysisUnavailable, CursorExpired, Members, NotReady, SegmentQuery
from regulars.columns.ranked_source import PAGE_RETRIES_S, ByRank
from regulars.consent.find import ConsentStatus, find_consent_statuses
from regulars.explore.customers.filters import COLUMNS, SORTS, CustomerSelection, offer_filters, read_selection
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE
from regulars.kit.keyset import PageRequest, PageRows, Position
from regulars.lists.sources import ByKey, Source, read_all_rows
from regulars.profiles.file_columns import PROFILE_COLUMNS, ListedProfile
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
from regulars.web.listing import COUNT_MAX, PAGE_ROWS, Count, ListPage, ListView, link_page, read_page, read_view
from regulars.web.render import redirect, render
from regulars.web.visit import Visit

PATH: Final = "/customers"
# How long an htmx request waits for the analysis process. Without a result the page shows the progress and reloads
# itself.
HTMX_WAIT_S: Final = 0.5

Row = TypeVar("Row")
Load = Callable[[Tx, Visit, Sequence[ProfileHit]], Awaitable[Sequence[Row]]]


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
        page: ListPage[ListedCustomer] = ListPage(())
        if not _needs_analysis(view):
            source = _by_key(visit, view, load_rows, attrgetter("hit.position"))
            page = await read_page(view, source, visit.database.reading)
        elif selection.fault is None:
            result, page = await self._rank(visit, view, query, selection, progress)
        hidden = COLUMNS.keys() & set(view.value("hide").split(","))
        return render(
            visit,
            "explore/customers.html",
            view=view,
            page=page,
            rows=page.rows,
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
        source: Source[ListedProfile] = _by_key(visit, view, _load_file_rows, attrgetter("position"))
        first = None
        if _needs_analysis(view):
            request = partial(self._analysis.members, visit.organization_id, query)
            source = ByRank(request=request, load=_by_ids(visit, _load_file_rows), retries_s=PAGE_RETRIES_S)
            try:
                first = await source.page(visit.database.reading, limit=EXPORT_ROWS)
            except (NotReady, AnalysisUnavailable):
                # The page shows the progress, or the error.
                return await self.show(visit)
        rows = read_all_rows(source, visit.database.reading, limit=EXPORT_ROWS, first=first)
        cells = (PROFILE_COLUMNS.cells(it, sees_personal=visit.sees_personal) async for it in rows)
        return export_csv(visit, "customers.export", "customers.csv", PROFILE_COLUMNS.header(), cells)

    async def prepare(self, visit: Visit) -> Response:
        """Start preparing the data for filters and sort orders."""
        async with visit.database.transaction() as tx:
            await lifecycle.begin(tx, visit.organization_id)
        return redirect(visit, f"{visit.url(PATH)}?{urlencode(parse_qsl(visit.form.get('query', '')))}")

    async def _rank(
        self,
        visit: Visit,
        view: ListView,
        query: SegmentQuery,
        selection: CustomerSelection,
        progress: BuildProgress | None,
    ) -> tuple[FilterResult, ListPage[ListedCustomer]]:
        if progress is None or progress.state == "building":
            return FilterResult(progress=progress, is_not_prepared=progress is None), ListPage(())
        request = partial(
            self._analysis.members,
            visit.organization_id,
            query,
            order=selection.order,
            currency=selection.currency,
            deadline_s=HTMX_WAIT_S if visit.is_htmx else DEADLINE_S,
        )
        source = ByRank(request=request, load=_by_ids(visit, load_rows), is_sorted=True)
        try:
            page = await source.page(visit.database.reading, after=view.after, before=view.before, limit=PAGE_ROWS)
        except NotReady as error:
            return FilterResult(progress=error.progress, is_not_prepared=error.progress is None), ListPage(())
        except (AnalysisUnavailable, CursorExpired) as error:
            return FilterResult(unavailable_reason=str(error)), ListPage(())
        return FilterResult(page.members), link_page(view, page)


def _by_key(visit: Visit, view: ListView, load: Load[Row], position_of: Callable[[Row], Position]) -> ByKey[Row]:
    async def fetch(tx: Tx, page: PageRequest) -> PageRows[Row]:
        hits = await find(tx, visit, view, page)
        return hits.replaced(await load(tx, visit, hits))

    return view.by_key(fetch, position_of)


def _by_ids(visit: Visit, load: Load[Row]) -> Callable[[Tx, Sequence[UUID]], Awaitable[Sequence[Row]]]:
    """Load the rows of customers in the order of their ids, without those deleted since they were ranked."""

    async def load_ranked(tx: Tx, ids: Sequence[UUID]) -> Sequence[Row]:
        profiles = {profile.id: profile for profile in await find_profiles_by_ids(tx, visit.organization_id, ids)}
        hits = [ProfileHit(profiles[each], position=(str(each),)) for each in ids if each in profiles]
        return await load(tx, visit, hits)

    return load_ranked


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


async def load_rows(tx: Tx, visit: Visit, hits: Sequence[ProfileHit]) -> list[ListedCustomer]:
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


async def _load_file_rows(tx: Tx, visit: Visit, hits: Sequence[ProfileHit]) -> list[ListedProfile]:
    consents = await find_consent_statuses(tx, visit.organization_id, [hit.profile.id for hit in hits])
    rows = []
    for profile, position in hits:
        consent = consents.get(profile.id)
        status = _status_of_consent(consent) or "NEVER_ASKED"
        rows.append(ListedProfile(profile, number_of(profile, consent), status, position))
    return rows
