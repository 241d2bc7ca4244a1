"""The results page of a campaign or journey: sales attributed to its texts, and extra sales measured with a holdout."""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from functools import partial
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from regulars.attribution.lift import Lift, SourceKind, read_lifts, select_measured
from regulars.attribution.model import Attributed, Origin
from regulars.attribution.month_sums import read_sums_of
from regulars.attribution.pages.definitions import DEFINITIONS
from regulars.attribution.pages.groups import Group
from regulars.attribution.pages.headline import Headline, write_headline
from regulars.attribution.pages.lift_view import LiftView, judge, view_lifts, view_periods, view_verdict
from regulars.attribution.pages.links import name_origins, tickets_url
from regulars.attribution.pages.overview import describe_cost
from regulars.attribution.sent_texts import read_sent_of
from regulars.campaigns.manage import load_campaign
from regulars.campaigns.totals import count_sent
from regulars.experiments.effect import EffectEstimate, LiftComparison
from regulars.journeys.definition import SendText
from regulars.journeys.labels import describe_step
from regulars.journeys.manage import Journey, load_journey
from regulars.journeys.program import walk_steps
from regulars.journeys.stats import load_stats
from regulars.kit.db import Tx
from regulars.kit.ids import CAMPAIGN, JOURNEY
from regulars.links.counts import ClickCount, count_clicks
from regulars.links.origin_kind import OriginKind
from regulars.sales.listing import CURRENCIES
from regulars.texts.settings.model import Price
from regulars.texts.settings.store import load_texting
from regulars.web.format import Format
from regulars.web.render import render
from regulars.web.visit import Visit

MONTHS_SHOWN: Final = 24
VARIANT_LETTERS: Final = "ABCD"
EARLIER_STEP: Final = "A step of an earlier version"
_PLACE: Final = re.compile(r"\d+(\.(then|else)\.\d+)*")


class ArmLine(NamedTuple):
    """A row of the table that compares texted customers with the holdout."""

    name: str
    texted: str
    held_out: str
    difference: str = ""
    range: str = ""


class Diagnostic(NamedTuple):
    """A further result of the comparison, for users who want to check it."""

    name: str
    text: str


class Detail(NamedTuple):
    """One measured result: the comparison of texted customers with the holdout."""

    name: str
    days: str
    lift: LiftView
    lines: Sequence[ArmLine]
    diagnostics: Sequence[Diagnostic]
    sentence: str


class ClickLine(NamedTuple):
    """Clicks on the links of one variant or step."""

    name: str
    people: str
    machines: str


class StepLine(NamedTuple):
    """The results of a step that sends a text; `note` is the id of the step."""

    name: str
    note: str
    texts: str
    tickets: str
    tickets_url: str
    net: str
    cost: str


async def show_campaign_results(visit: Visit) -> Response:
    campaign_id = visit.read_id(CAMPAIGN, "There is no such campaign in this organization.")
    async with visit.database.reading() as tx:
        row = (await load_campaign(tx, visit.organization_id, campaign_id)).row
        group, prices, clicks = await _load_results(tx, visit, Origin(OriginKind.CAMPAIGN, campaign_id))
        sent = await count_sent(tx, visit.organization_id, [campaign_id])
    # Like on the page of progress: a text that was sent again counts once.
    values = {**_template_values(visit, group, prices), "texts": sent.get(campaign_id, 0)}
    names = {str(arm): f"Variant {letter}" for arm, letter in enumerate(VARIANT_LETTERS, start=1)}
    return render(
        visit,
        "attribution/results.html",
        row=row,
        steps=(),
        clicks=_list_click_lines(visit.format, clicks, names),
        is_campaign=True,
        **values,
    )


async def show_journey_results(visit: Visit) -> Response:
    journey_id = visit.read_id(JOURNEY, "There is no such journey in this organization.")
    async with visit.database.reading() as tx:
        journey = await load_journey(tx, visit.organization_id, journey_id)
        stats = await load_stats(tx, visit.organization_id, journey_id)
        group, prices, clicks = await _load_results(tx, visit, Origin(OriginKind.JOURNEY, journey_id))
    values = _template_values(visit, group, prices)
    return render(
        visit,
        "attribution/results.html",
        row=journey.row,
        steps=_steps(visit, group, prices, journey, values["headline"].currency),
        clicks=_list_click_lines(visit.format, clicks, _name_steps(journey)),
        is_campaign=False,
        entered=sum(version.entered for version in stats.values()),
        **values,
    )


async def _load_results(
    tx: Tx, visit: Visit, origin: Origin
) -> tuple[Group, dict[str, Price], Mapping[str, ClickCount]]:
    """The results of a campaign or journey, the prices of texts, and the clicks by variant or step."""
    origin_name = (await name_origins(tx, visit, [origin]))[origin.id]
    group = Group(
        kind=origin.kind.value,
        key="",
        name=origin_name.name,
        url=f"{origin_name.url}/results",
        tickets_url=tickets_url(visit, None, origin),
        sums=await read_sums_of(tx, visit.organization_id, origin.id),
        sent=await read_sent_of(tx, visit.organization_id, origin.id),
        lifts=await read_lifts(tx, visit.organization_id, SourceKind(origin.kind.value), [origin.id]),
    )
    texting = await load_texting(tx, visit.organization_id)
    clicks = await count_clicks(tx, visit.organization_id, origin.kind, [origin.id])
    # Without a text that left, there is no link that a customer could click.
    counted = clicks.get(origin.id, {}) if group.texts else {}
    return group, {} if texting is None else dict(texting.settings.prices), counted


def _list_click_lines(formats: Format, clicks: Mapping[str, ClickCount], names: Mapping[str, str]) -> list[ClickLine]:
    return [
        ClickLine(names.get(step, EARLIER_STEP), formats.number(count.people), formats.number(count.machines))
        for step, count in sorted(clicks.items())
    ]


def _name_steps(journey: Journey) -> dict[str, str]:
    """The names of the steps that send a text, by step path, in the order of the flow."""
    steps = walk_steps(journey.definition.steps)
    return {path: describe_step(step).name for path, step in steps if isinstance(step, SendText)}


def _describe_place(step: str) -> str:
    """The place of a step for users: `1.else.2` is step 2 on the second path after step 1. Other ids are unchanged."""
    if _PLACE.fullmatch(step) is None:
        return step
    return f"Step {step}".replace(".then.", ", first path, step ").replace(".else.", ", second path, step ")


def _template_values(visit: Visit, group: Group, prices: dict[str, Price]) -> dict[str, Any]:
    """The template values that results of campaigns and of journeys share."""
    formats = visit.format
    currencies = sorted(group.currencies, key=lambda it: (-group.total(it).net_cents, it)) or ["EUR"]
    requested = visit.query.get("currency", "")
    currency = requested if requested in CURRENCIES else currencies[0]
    headlines = [_headline(visit, group, prices, it) for it in [currency, *(it for it in currencies if it != currency)]]
    lifts = [it for it in group.lifts if it.currency in {currency, None}]
    newest = max(select_measured(lifts, currency), key=lambda it: it.first_day or date.min, default=None)
    sums = group.total(currency)
    return {
        "here": group.url.removesuffix("/results"),
        "headline": headlines[0],
        "others": headlines[1:],
        "detail": None if newest is None or newest.comparison is None else _detail(formats, newest, newest.comparison),
        "describe_place": _describe_place,
        # The results of a journey by the month in which customers passed its split.
        "months": view_periods(
            formats,
            [it for it in lifts if it.source.period] if group.kind == OriginKind.JOURNEY else [],
            currency,
            name_period=partial(_name_month, formats),
            limit=MONTHS_SHOWN,
        ),
        "sums": sums,
        "texts": group.texts,
        "returned_cents": sums.gross_cents - sums.net_cents,
        "as_of_lift": max((it.as_of for it in lifts if it.as_of is not None), default=None),
        "defined": DEFINITIONS,
    }


def _headline(visit: Visit, group: Group, prices: dict[str, Price], currency: str) -> Headline:
    verdict = judge(group.lifts, currency)
    return write_headline(
        visit.format,
        currency,
        view_verdict(visit.format, verdict, currency),
        scope=currency,
        attributed_cents=group.total(currency).net_cents,
        measured_cents=group.measured_cents(currency, verdict.measured),
        cost=describe_cost(visit.format, group.sent, prices),
        tickets_url=f"{group.tickets_url}&currency={currency}",
        url=f"{group.url}?currency={currency}",
    )


def _detail(formats: Format, lift: Lift, comparison: LiftComparison) -> Detail:
    currency = lift.currency or ""
    treated, held_out = comparison.treated, comparison.held_out

    def money(estimate: EffectEstimate) -> tuple[str, str]:
        """The difference, and its interval."""
        low, high = formats.money(round(estimate.low), currency), formats.money(round(estimate.high), currency)
        return formats.money_change(estimate.value, currency), f"{low} to {high}"

    lines = [
        ArmLine("Customers", formats.number(treated.people), formats.number(held_out.people)),
        ArmLine(
            "Bought",
            formats.share(treated.buyers, treated.people),
            formats.share(held_out.buyers, held_out.people),
            formats.points(treated.buyers / treated.people, held_out.buyers / held_out.people),
        ),
        ArmLine(
            "Net per customer",
            formats.money(round(treated.spend_cents / treated.people), currency),
            formats.money(round(held_out.spend_cents / held_out.people), currency),
            *money(comparison.adjusted),
        ),
    ]
    buyers = comparison.buyers
    diagnostics = [
        Diagnostic("Difference without adjustment", ", ".join(money(comparison.raw))),
        Diagnostic(
            "Difference in the share of buyers", f"{formats.points(buyers.low, 0)} to {formats.points(buyers.high, 0)}"
        ),
    ]
    if lift.bootstrap is not None:
        low, high = (formats.money(round(end), currency) for end in lift.bootstrap)
        diagnostics.append(Diagnostic("Range from random samples", f"{low} to {high}"))
    per_customer, people = money(comparison.adjusted)[0], formats.number(treated.people)
    view = view_lifts(formats, [lift], currency)
    return Detail(
        _name_detail(formats, lift),
        "" if lift.first_day is None or lift.last_day is None else formats.period(lift.first_day, lift.last_day),
        view,
        lines,
        diagnostics,
        f"{per_customer} times {people} customers gives {view.extra} extra, before rounding. All customers who were"
        " to be texted count, even if the text failed. The difference is adjusted for what the same customers spent in"
        " the year before.",
    )


def _name_detail(formats: Format, lift: Lift) -> str:
    if lift.source.kind is SourceKind.CAMPAIGN:
        return "Texted and holdout"
    name = f"{len(lift.months)} months together" if lift.months else _name_month(formats, lift.source.period)
    return f"{name} · {_describe_place(lift.source.step)}"


def _name_month(formats: Format, period: str) -> str:
    return formats.month(date.fromisoformat(f"{period}-01"))


def _steps(visit: Visit, group: Group, prices: dict[str, Price], journey: Journey, currency: str) -> list[StepLine]:
    """The steps that send a text, in the order of the flow, then such steps of earlier versions of the journey."""
    formats = visit.format
    step_names = _name_steps(journey)
    origins = {it.origin for it in group.sums} | {it.origin for it in group.sent}
    steps_with_texts = {origin.step for origin in origins}
    lines = []
    for step in [*step_names, *sorted(steps_with_texts - step_names.keys())]:
        sums = sum((it.sums for it in group.sums if it.origin.step == step and it.currency == currency), Attributed())
        sent = [it for it in group.sent if it.origin.step == step]
        origin = Origin(OriginKind.JOURNEY, journey.row.id, step)
        lines.append(
            StepLine(
                step_names.get(step, EARLIER_STEP),
                _describe_place(step),
                formats.number(sum(it.texts for it in sent)),
                formats.number(sums.tickets),
                tickets_url(visit, None, origin, currency=currency) if sums.tickets else "",
                formats.money(sums.net_cents, currency),
                describe_cost(formats, sent, prices),
            )
        )
    return lines
