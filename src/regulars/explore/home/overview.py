"""Load the data of the home page: the sales of a period and of the period before it, the activity of each store, and
what needs attention."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final, NamedTuple, cast
from uuid import UUID
from zoneinfo import ZoneInfo

from regulars.analytics.figures import read_totals
from regulars.analytics.period import Period, Preset, comparison_of, preset_period
from regulars.analytics.query import DAY, Query
from regulars.analytics.query import STORE as BY_STORE
from regulars.campaigns.attention import CampaignInNeed, find_in_need
from regulars.inbox.find import count_undecided
from regulars.journeys.manage import find_unevaluable_journeys, list_journeys
from regulars.journeys.model import JourneyRow
from regulars.journeys.stats import count_at_fault, count_parked, load_total_stats
from regulars.kit.db import Tx
from regulars.request_log.entries import count_responses
from regulars.request_log.model import Counts
from regulars.sales.collision_review import count_open_collisions
from regulars.sales.totals.model import PerCurrency, add_totals
from regulars.sales.totals.reports import StoreActivity, read_store_activity
from regulars.stores.find import list_stores, name_stores
from regulars.stores.model import Store
from regulars.texts.find import count_texts_by_state
from regulars.texts.settings.store import Texting, load_texting
from regulars.webhooks.model import EndpointStatus
from regulars.work.outbox import BEHIND_MIN, behind_since

PERIODS: Final = ("today", "7d", "30d", "12m")
# For a short period the chart still shows this many days; the totals above it are those of the period.
CHART_DAYS_MIN: Final = 30
STORES_MAX: Final = 500
# Collisions and undecided replies are counted up to this number each.
WAITING_COUNTED_MAX: Final = 100
PARKED_COUNTED_MAX: Final = 1_000
JOURNEYS_SEARCHED_MAX: Final = 1_000


class JourneyNeedingAttention(NamedTuple):
    row: JourneyRow
    # Runs that failed after all retries.
    parked: int
    # Customers who are in the journey now.
    inside: int
    # Customers who wait at a branch whose condition cannot be evaluated.
    at_fault: int
    # Why a condition cannot be evaluated, by its branch, or by `filter` for the entry filter.
    condition_errors: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatus:
    store: Store
    activity: StoreActivity


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeOverview:
    # The sales of each day of the chart, also of days without a ticket.
    days: Mapping[date, PerCurrency]
    # The sales of these days by the name of the store; empty unless the chart shows stores.
    by_store: Mapping[str, PerCurrency]
    period: Period
    # The sales of the period, and of the period of the same length before it, up to the last full hour.
    total: PerCurrency
    before: PerCurrency
    today: PerCurrency
    stores: list[StoreStatus]
    has_more_stores: bool
    # API responses in the last 24 hours, and how many of them were refusals.
    api_responses: Counts
    # Different tickets that were sent with the same id and that no user has reviewed yet.
    open_collisions: int
    undecided_replies: int
    # The SMS settings while all texts are on hold.
    held: Texting | None
    webhooks: list[EndpointStatus]
    # The number of today's texts by their state.
    texts: dict[str, int]
    # Journeys and campaigns that need attention.
    journeys: list[JourneyNeedingAttention]
    campaigns: list[CampaignInNeed]
    # Set while the totals of older tickets are still being computed: tickets up to this time are included.
    filled_until: datetime | None
    # Set while new tickets wait to be counted: tickets received up to this time are included.
    counted_until: datetime | None

    @property
    def silent(self) -> list[StoreStatus]:
        return [status for status in self.stores if status.activity.is_silent]


async def read_overview(
    tx: Tx,
    organization_id: UUID,
    *,
    period: str,
    now: datetime,
    zone: ZoneInfo,
    webhooks: list[EndpointStatus],
    with_stores: bool = False,
) -> HomeOverview:
    today = now.astimezone(zone).date()
    current = Period(today, today) if period == "today" else preset_period(cast(Preset, period), today)
    drawn = Period(min(current.first, today - timedelta(days=CHART_DAYS_MIN - 1)), today)
    sales = await read_totals(tx, organization_id, Query(period=drawn, by=(DAY,)))
    days = sales.of(drawn)
    hour = now.astimezone(zone).hour
    beside = Query(period=current, comparison=comparison_of(current, "before"), until_hour=hour)
    stores = await list_stores(tx, organization_id, after=None, limit=STORES_MAX + 1)
    activities = await read_store_activity(
        tx, organization_id, [store.id for store in stores[:STORES_MAX]], now=now, zone=zone
    )
    statuses = [StoreStatus(store=store, activity=activities[store.id]) for store in stores[:STORES_MAX]]
    texting = await load_texting(tx, organization_id)
    counts = (await count_responses(tx, organization_id)).values()
    has_tickets = any(total.sums for total in days.values())
    return HomeOverview(
        days=days,
        by_store=await _sum_by_store(tx, organization_id, drawn) if with_stores else {},
        period=current,
        total=add_totals(total for day, total in days.items() if day in current),
        before=(await read_totals(tx, organization_id, beside)).compared_total,
        today=days[today],
        # Silent stores first, then by name.
        stores=sorted(
            statuses, key=lambda status: (not status.activity.is_silent, status.store.display_name.casefold())
        ),
        has_more_stores=len(stores) > STORES_MAX,
        api_responses=Counts(sum(of_key.responses for of_key in counts), sum(of_key.refusals for of_key in counts)),
        texts=await count_texts_by_state(tx, organization_id, today),
        journeys=await find_journeys_needing_attention(tx, organization_id),
        campaigns=await find_in_need(tx, organization_id, is_on_hold=texting is not None and texting.is_on_hold),
        open_collisions=await count_open_collisions(tx, organization_id, count_max=WAITING_COUNTED_MAX + 1),
        undecided_replies=await count_undecided(tx, organization_id, limit=WAITING_COUNTED_MAX + 1),
        held=texting if texting is not None and texting.is_on_hold else None,
        webhooks=webhooks,
        filled_until=sales.progress.filled_until,
        # If no ticket is counted yet, show that tickets wait to be counted even if they have waited only briefly;
        # otherwise the page would say that no ticket has arrived.
        counted_until=await behind_since(tx, organization_id, at_least=BEHIND_MIN if has_tickets else timedelta(0)),
    )


async def find_journeys_needing_attention(tx: Tx, organization_id: UUID) -> list[JourneyNeedingAttention]:
    """Journeys that need attention: with a condition that cannot be evaluated, with runs that failed after all retries,
    or paused with customers in them."""
    parked = await count_parked(tx, organization_id, limit=PARKED_COUNTED_MAX)
    at_fault = await count_at_fault(tx, organization_id, limit=PARKED_COUNTED_MAX)
    journeys = await list_journeys(tx, organization_id, limit=JOURNEYS_SEARCHED_MAX)
    errors = await find_unevaluable_journeys(tx, organization_id, journeys)
    rows = [
        row for row in journeys if row.state == "paused" or row.id in parked or row.id in at_fault or row.id in errors
    ]
    stats = await load_total_stats(tx, organization_id, [row.id for row in rows])
    summaries = [
        JourneyNeedingAttention(
            row, parked.get(row.id, 0), stats[row.id].active_runs, at_fault.get(row.id, 0), errors.get(row.id, {})
        )
        for row in rows
    ]
    return [journey for journey in summaries if journey.parked or journey.inside or journey.condition_errors]


async def _sum_by_store(tx: Tx, organization_id: UUID, period: Period) -> dict[str, PerCurrency]:
    sales = await read_totals(tx, organization_id, Query(period=period, by=(BY_STORE,)))
    names = await name_stores(tx, organization_id, [store_id for (store_id,) in sales.rows])
    # Stores with the same name are added up.
    by_name: dict[str, PerCurrency] = {}
    for (store_id,), total in sales.rows.items():
        name = names[store_id]
        by_name[name] = add_totals([by_name[name], total]) if name in by_name else total
    return by_name
