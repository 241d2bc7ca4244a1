"""The home page of an organization: recent sales, texts and consents, and a list of what needs attention."""

from datetime import datetime
from typing import Final, NamedTuple

from starlette.responses import Response

from regulars.campaigns.attention import CampaignInNeed
from regulars.consent.figures import FiguresSnapshot, read_figures
from regulars.explore.home.overview import PERIODS, HomeOverview, JourneyNeedingAttention, StoreStatus, read_overview
from regulars.explore.home.sales_chart import BY_LABELS, draw_sales
from regulars.journeys.program import FILTER
from regulars.kit.ids import CAMPAIGN, JOURNEY, WEBHOOK
from regulars.kit.time_zones import UTC_NAME, shows_utc
from regulars.texts.settings.store import Texting
from regulars.web.access import Action
from regulars.web.charts import hour_columns, sparkline
from regulars.web.format import country_name
from regulars.web.render import render
from regulars.web.route import Page
from regulars.web.visit import Visit
from regulars.webhooks.find import WAITING_COUNTED_MAX, list_endpoints_needing_attention
from regulars.webhooks.model import EndpointStatus

STORES_SHOWN: Final = 8
PERIOD_LABELS: Final = {"today": "Today", "7d": "7 days", "30d": "30 days", "12m": "12 months"}
BEFORE_LABELS: Final = {
    "today": "yesterday",
    "7d": "the 7 days before",
    "30d": "the 30 days before",
    "12m": "the 12 months before",
}


class MoneyStat(NamedTuple):
    currency: str
    net: str
    more: str
    sparkline: str
    url: str


class Attention(NamedTuple):
    """One item of the list "Needs attention"; `kind` is the CSS class of its colour."""

    icon: str
    kind: str
    title: str
    text: str
    when: str
    url: str


class IngestionRow(NamedTuple):
    status: StoreStatus
    columns: list[object]


async def show_home(visit: Visit) -> Response:
    period = visit.query.get("period", "")
    period = period if period in PERIODS else "30d"
    by = visit.query.get("by", "")
    by = by if by in BY_LABELS else "week" if period == "12m" else "day"
    zone = visit.format.zone
    # A separate transaction, because this query changes planner settings until its transaction ends.
    async with visit.database.transaction() as tx:
        webhooks = await list_endpoints_needing_attention(tx, visit.organization_id)
    async with visit.database.snapshot() as tx:
        overview = await read_overview(
            tx,
            visit.organization_id,
            period=period,
            now=visit.now,
            zone=zone,
            webhooks=webhooks,
            with_stores=by == "store",
        )
    consent = await read_figures(visit.database, visit.organization_id, time_zone=zone.key)
    if not overview.stores and not overview.total.tickets:
        return render(visit, "explore/home_empty.html", country_not_utc=_find_country_not_utc(visit))
    first, today = overview.period.first, overview.period.last
    currencies = _list_currencies(overview)
    currency = visit.query.get("currency", "")
    currency = currency if currency in currencies else next(iter(currencies), "")
    return render(
        visit,
        "explore/home.html",
        period=period,
        periods=PERIOD_LABELS,
        before_label=f"{BEFORE_LABELS[period]}, until {visit.format.clock(visit.now)[:2]}:00",
        overview=overview,
        country_not_utc=_find_country_not_utc(visit),
        first=first,
        today=today.isoformat(),
        money=_sum_money(visit, overview, first.isoformat()),
        currencies=currencies,
        net_sales=draw_sales(visit.format, overview, currency, by) if currency else None,
        by=by,
        by_labels=BY_LABELS,
        tickets_url=visit.url("/tickets") + f"?from={first.isoformat()}",
        attention=list_attention(visit, overview, consent),
        consent=consent,
        consent_changes=None if consent.figures is None else consent.figures.since(first),
        ingestion=[_ingestion_row(visit, status) for status in overview.stores[:STORES_SHOWN]],
    )


def _find_country_not_utc(visit: Visit) -> str | None:
    """The name of the organization's country if the time zone is UTC, as it is until a user chooses one, and clocks of
    the country show another time."""
    country = visit.organization.default_country
    if country is None or visit.organization.time_zone != UTC_NAME or shows_utc(country, year=visit.now.year):
        return None
    return country_name(country)


def _list_currencies(overview: HomeOverview) -> list[str]:
    """The currencies of the period, the largest net sales first; then those that occur only on other days of the
    chart."""
    of_chart = {currency for total in overview.days.values() for currency in total.sums}
    of_period = [currency for currency, _ in overview.total.by_net_sales()]
    return [*of_period, *sorted(of_chart - set(of_period))]


def _sum_money(visit: Visit, overview: HomeOverview, first: str) -> list[MoneyStat]:
    stats = []
    for currency, sums in overview.total.by_net_sales():
        gross = visit.format.money_rounded(sums.gross_cents, currency)
        returned = visit.format.money_rounded(sums.returned_cents, currency)
        days = [total.sums.get(currency) for total in overview.days.values()]
        stats.append(
            MoneyStat(
                currency,
                visit.format.money_rounded(sums.net_cents, currency),
                f"{gross} gross, {returned} returned",
                sparkline([0 if day is None else day.net_cents for day in days]),
                visit.url("/tickets") + f"?from={first}&currency={currency}",
            )
        )
    return stats


def list_attention(visit: Visit, overview: HomeOverview, consent: FiguresSnapshot) -> list[Attention]:
    """The items that need a user's attention, most urgent first."""
    items = [_webhook_item(visit, status) for status in overview.webhooks]
    if overview.held is not None:
        items.append(_held_item(visit, overview.held))
    items += [_silent_store_item(visit, status) for status in overview.silent]
    items += [_journey_item(visit, journey) for journey in overview.journeys]
    items += [_campaign_item(visit, campaign) for campaign in overview.campaigns]
    if overview.undecided_replies:
        items.append(_replies_item(visit, overview.undecided_replies))
    if overview.open_collisions:
        items.append(
            Attention(
                "ticket",
                "warn",
                visit.format.count(overview.open_collisions, "conflicting ticket"),
                "Same ticket number, different content. The first ticket counts.",
                "",
                visit.url("/collisions"),
            )
        )
    if overview.api_responses.refusals:
        title = visit.format.count(overview.api_responses.refusals, "rejected request")
        share = visit.format.share(overview.api_responses.refusals, overview.api_responses.responses)
        url = visit.url("/requests") + "?kind=refused" if visit.may(Action.READ_REQUEST_LOG) else ""
        items.append(Attention("plug", "warn", title, f"{share} of API requests in the last 24 hours.", "", url))
    if consent.figures is not None and consent.figures.weak_proofs:
        items.append(
            Attention(
                "consent",
                "",
                visit.format.count(
                    consent.figures.weak_proofs, "consent has a weak proof", "consents have a weak proof"
                ),
                "Neither a terms version nor the wording was recorded.",
                "",
                visit.url("/consent/numbers") + "?proof=weak",
            )
        )
    return items


def _webhook_item(visit: Visit, status: EndpointStatus) -> Attention:
    host = status.endpoint.url.partition("://")[2]
    url = visit.url("/webhooks", WEBHOOK.encode(status.endpoint.id)) if visit.may(Action.READ_WEBHOOKS) else ""
    since = status.endpoint.health.failing_since or status.endpoint.disabled_at
    when = _describe_duration(visit, since)
    if status.endpoint.is_draft:
        text = "A developer drafted it. Nothing is sent to it until an admin approves it."
        when = _describe_duration(visit, status.endpoint.created_at)
        return Attention("plug", "warn", f"Webhook to {host} waits for approval", text, when, url)
    if not status.is_failing or status.will_be_disabled_at is None:
        return Attention("alert", "no", f"Webhook to {host} is disabled", status.endpoint.note or "", when, url)
    waits = visit.format.count(status.waiting.total, "delivery waits", "deliveries wait", count_max=WAITING_COUNTED_MAX)
    text = f"{waits}. It is disabled on {visit.format.moment(status.will_be_disabled_at)} if it keeps failing."
    return Attention("alert", "no", f"Webhook to {host} fails", text, when, url)


def _held_item(visit: Visit, texting: Texting) -> Attention:
    when = _describe_duration(visit, texting.held_since)
    return Attention(
        "pause", "no", "All texts are paused", texting.held_reason or "", when, visit.url("/settings/texts")
    )


def _replies_item(visit: Visit, undecided: int) -> Attention:
    title = visit.format.count(undecided, "reply to read", "replies to read")
    text = "They are not STOP, START or HELP. A possible opt-out takes effect after 5 business days."
    return Attention("message", "warn", title, text, "", visit.url("/messages/inbox"))


def _silent_store_item(visit: Visit, status: StoreStatus) -> Attention:
    activity = status.activity
    last = activity.last_received_at
    since = "No ticket yet" if last is None else f"No ticket since {visit.format.moment(last)}"
    return Attention(
        "store",
        "no",
        f"{status.store.display_name} sends no tickets",
        f"{since}. It usually sends {visit.format.number(activity.usual_rate)} tickets an hour at this time of the"
        " week.",
        _describe_duration(visit, last),
        visit.url("/stores", status.store.external_id),
    )


def _journey_item(visit: Visit, journey: JourneyNeedingAttention) -> Attention:
    url = visit.url("/journeys", JOURNEY.encode(journey.row.id))
    if journey.condition_errors or journey.at_fault:
        return _condition_error_item(visit, journey, url)
    if journey.parked:
        title = f"{journey.row.name}: {visit.format.count(journey.parked, 'customer is', 'customers are')} stuck"
        text = "A step failed, and so did its retries."
        return Attention("automate", "no", title, text, "", f"{url}/runs?state=parked")
    paused = journey.row.paused_at
    waiting = visit.format.count(journey.inside, "customer waits", "customers wait")
    since = _describe_duration(visit, paused)
    return Attention(
        "automate", "warn", f"{journey.row.name} is paused", f"{waiting} in it, and no customer enters.", since, url
    )


def _condition_error_item(visit: Visit, journey: JourneyNeedingAttention, url: str) -> Attention:
    sentences = ["No customer enters."] if FILTER in journey.condition_errors else []
    if journey.at_fault:
        sentences.append(f"{visit.format.count(journey.at_fault, 'customer waits', 'customers wait')} at a branch.")
    sentences += list(journey.condition_errors.values())[:1]
    title = f"{journey.row.name}: a condition has an error"
    return Attention("automate", "no", title, " ".join(sentences), "", url)


def _campaign_item(visit: Visit, campaign: CampaignInNeed) -> Attention:
    row = campaign.row
    url = visit.url("/campaigns", CAMPAIGN.encode(row.id))
    waiting = visit.format.count(campaign.unsent, "recipient waits", "recipients wait")
    if campaign.stalled_since is None:
        text = row.reason or (f"{waiting} for the text." if campaign.unsent else "It has not started.")
        when = _describe_duration(visit, campaign.row.updated_at)
        return Attention("message", "no" if row.reason else "warn", f"{row.name} is paused", text, when, url)
    when = _describe_duration(visit, campaign.stalled_since)
    if row.frozen_at is None:
        text = row.reason or "Its audience is not ready yet."
        return Attention("message", "no", f"{row.name} should have started", text, when, url)
    title = f"{row.name} has sent nothing for ten minutes"
    return Attention("message", "no", title, f"{waiting} for the text.", when, url)


def _describe_duration(visit: Visit, since: datetime | None) -> str:
    return "" if since is None else f"for {visit.format.ago(since).removesuffix(' ago')}"


def _ingestion_row(visit: Visit, status: StoreStatus) -> IngestionRow:
    """The tickets of a store per hour, from 9:00 or the first hour with tickets, until now."""
    now = visit.now.astimezone(visit.format.zone).hour
    begin = min([*status.activity.usual, *status.activity.today, 9])
    hours = range(begin, max(now + 1, begin + 1))
    tickets = [status.activity.today.get(hour, 0) for hour in hours]
    usual = [status.activity.usual.get(hour, 0.0) for hour in hours]
    return IngestionRow(status, list(hour_columns(tickets, usual)))


PAGES: Final = (Page(path="/", needs=Action.READ, handle=show_home),)
