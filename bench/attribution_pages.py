"""Measures the pages of attribution for a large organization: 60 campaigns and 20 journeys in two years, with sums per
day, step, currency and country, and a holdout result for each campaign and month."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from typing import Any, Final
from uuid import UUID

import msgspec

from database import Cluster
from pages import MEDIAN_MS_MAX, PageTime, Reader, processor_s, serving_pages, time_page
from processes import wait_until_started
from regulars.accounts import sessions, users
from regulars.attribution.pages.links import PATH
from regulars.campaigns.definition import read_definition
from regulars.campaigns.manage import create_campaign
from regulars.columns.questions import LiftAnswer, LiftSums
from regulars.experiments.sums import ArmSums
from regulars.journeys.definition import read_definition as read_journey
from regulars.journeys.manage import create_journey
from regulars.kit.db import Database, Tx
from regulars.kit.ids import CAMPAIGN, JOURNEY, SEGMENT, new_uuid
from regulars.kit.migrate import migrate
from regulars.organizations.manage import create_organization
from regulars.web.access import Role

DATABASE: Final = "bench_attribution_pages"
CAMPAIGNS: Final = 60
JOURNEYS: Final = 20
DAYS: Final = 730
CURRENCIES: Final = ("EUR", "CHF")
FILLED: Final = "attribution_totals, attribution_months, sent_texts, sent_text_months, lifts"
# All texts of a campaign are sent, and credited, on one day.
_CAMPAIGN_ROWS = """
INSERT INTO attribution_totals
    (organization_id, is_in_months, day, origin_kind, origin_id, step, currency, tickets, gross_cents, net_cents,
     unmatched_cents)
SELECT %(organization_id)s, true, it.day, 'campaign', it.id, '', currency, 900, 900000, 800000, 100
FROM unnest(%(ids)s::uuid[], %(days)s::date[]) AS it (id, day), unnest(%(currencies)s::text[]) AS currency
"""
_JOURNEY_ROWS = """
INSERT INTO attribution_totals
    (organization_id, is_in_months, day, origin_kind, origin_id, step, currency, tickets, gross_cents, net_cents,
     unmatched_cents)
SELECT %(organization_id)s, true, current_date - day, 'journey', it.id, step, currency, 9, 9000, 8000, 0
FROM generate_series(1, %(days_back)s) AS day, unnest(%(ids)s::uuid[]) AS it (id), unnest(ARRAY['one', 'two']) AS step,
     unnest(%(currencies)s::text[]) AS currency
"""
_SENT_ROWS = """
INSERT INTO sent_texts (organization_id, is_in_months, day, origin_kind, origin_id, step, country, texts, parts)
SELECT t.organization_id, true, t.day, t.origin_kind, t.origin_id, t.step, country, 90, 120
FROM (SELECT DISTINCT organization_id, day, origin_kind, origin_id, step FROM attribution_totals) AS t,
     unnest(ARRAY['FR', 'CH', 'DE']) AS country
WHERE t.organization_id = %(organization_id)s
"""
_MONTHS = (
    """
    INSERT INTO attribution_months
    SELECT organization_id, date_trunc('month', day)::date, origin_kind, origin_id, step, currency,
           sum(tickets)::bigint, sum(gross_cents), sum(net_cents), sum(unmatched_cents)
    FROM attribution_totals WHERE organization_id = %(organization_id)s GROUP BY 1, 2, 3, 4, 5, 6
    """,
    """
    INSERT INTO sent_text_months
    SELECT organization_id, date_trunc('month', day)::date, origin_kind, origin_id, step, country,
           sum(texts)::bigint, sum(parts)::bigint
    FROM sent_texts WHERE organization_id = %(organization_id)s GROUP BY 1, 2, 3, 4, 5, 6
    """,
)
_LIFT = """
INSERT INTO lifts (organization_id, kind, source_id, step, period, state, held_out_share, window_days, first_day,
                   last_day, frozen_on, as_of, result)
VALUES (%s, %s, %s, %s, %s, 'final', 0.1, 7, %s::date, %s::date + 8, %s::date, now(), %s)
"""


@dataclass(frozen=True)
class AttributionPages:
    rows: int
    lifts: int
    pages: list[PageTime]

    @property
    def is_reached(self) -> bool:
        return all(page.median_ms <= MEDIAN_MS_MAX for page in self.pages)


def measure_pages(cluster: Cluster) -> AttributionPages:
    cluster.drop(DATABASE)
    cluster.execute(f"CREATE DATABASE {DATABASE}")
    url = cluster.url_of(DATABASE)
    migrate(url)
    slug, token, addresses = asyncio.run(_fill(url))
    rows = cluster.count("attribution_totals", DATABASE) + cluster.count("sent_texts", DATABASE)
    with serving_pages(url) as (server, port, _folder):
        wait_until_started(server.pid)
        used = partial(processor_s, server.pid, cluster.postmaster_pid)
        reader = Reader(port, slug, token)
        pages = [
            time_page(reader, used, name, f"/o/{slug}{path}", status=200, is_file=False)
            for name, path in addresses.items()
        ]
    return AttributionPages(rows, cluster.count("lifts", DATABASE), pages)


def show_pages(times: AttributionPages, say: Callable[[str], None]) -> None:
    say(f"  pages with {times.rows:,} rows of sums and {times.lifts} results by holdout:")
    for page in times.pages:
        say(f"    {page.path}: median {page.median_ms:.1f} ms, processor {page.processor_ms:.1f} ms")
    state = "reached" if times.is_reached else "MISSED"
    say(f"  every page of attribution within {MEDIAN_MS_MAX:.0f} ms at the median: {state}")


async def _fill(url: str) -> tuple[str, str, dict[str, str]]:
    """Inserts the rows; returns the slug, the session token and the paths of the pages."""
    database = Database(url, pool_max=2, statement_timeout_ms=600_000)
    await database.open()
    try:
        async with database.connection() as connection:
            organization_id = (await create_organization(connection, "Attribution")).id
        async with database.transaction() as tx:
            person = await users.create_account(tx, email="owner@large.example", name="Owner")
            await users.join(tx, organization_id, "Attribution", person.id, Role.OWNER)
            token = await sessions.start_session(tx, person.id, is_remembered=True, address="127.0.0.1", agent="bench")
            [membership] = await users.find_memberships(tx, person.id)
            campaigns, journeys = await _make_origins(tx, organization_id)
            await _write_sums(tx, organization_id, campaigns, journeys)
            await _write_lifts(tx, organization_id, campaigns, journeys)
        async with database.connection() as connection:
            await connection.execute(f"VACUUM ANALYZE {FILLED}")
    finally:
        await database.close()
    two_years = f"from={date.fromordinal(_today().toordinal() - DAYS)}&to={_today()}"
    addresses = {
        "overview, 90 days": PATH,
        "overview, 12 months": f"{PATH}?period=12m",
        "overview, two years": f"{PATH}?{two_years}",
        "overview by month": f"{PATH}?period=12m&by=month",
        "results of a campaign": f"/campaigns/{CAMPAIGN.encode(next(iter(campaigns)))}/results",
        "results of a journey": f"/journeys/{JOURNEY.encode(journeys[0])}/results",
    }
    return membership.slug, token, addresses


def _today() -> date:
    return datetime.now(UTC).date()


async def _make_origins(tx: Tx, organization_id: UUID) -> tuple[dict[UUID, date], list[UUID]]:
    """Creates journeys, and campaigns with the day on which they were sent."""
    campaigns = {}
    for number in range(CAMPAIGNS):
        given: dict[str, Any] = {
            "name": f"Campaign {number}",
            "include": [SEGMENT.encode(new_uuid())],
            "variants": [{"text": "Hello"}],
            "holdout_percent": 10,
        }
        made = await create_campaign(tx, organization_id, read_definition(json.dumps(given).encode()))
        campaigns[made.row.id] = date.fromordinal(_today().toordinal() - 45 - number * (DAYS - 60) // CAMPAIGNS)
    await tx.execute(
        "UPDATE campaigns SET state = 'ended', frozen_at = now(), ended_at = now(), recipients = 10"
        " WHERE organization_id = %s",
        (organization_id,),
    )
    steps = [{"do": "send_text", "id": it, "text": "Thank you!"} for it in ("one", "two")]
    journeys = []
    for number in range(JOURNEYS):
        journey = {"name": f"Journey {number}", "trigger": "purchase", "steps": steps}
        made_journey = await create_journey(tx, organization_id, read_journey(json.dumps(journey).encode()))
        journeys.append(made_journey.row.id)
    return campaigns, journeys


async def _write_sums(tx: Tx, organization_id: UUID, campaigns: dict[UUID, date], journeys: list[UUID]) -> None:
    given = {"organization_id": organization_id, "currencies": list(CURRENCIES), "days_back": DAYS}
    await tx.execute(_CAMPAIGN_ROWS, {**given, "ids": list(campaigns), "days": list(campaigns.values())})
    await tx.execute(_JOURNEY_ROWS, {**given, "ids": journeys})
    for statement in (_SENT_ROWS, *_MONTHS):
        await tx.execute(statement, given)


async def _write_lifts(tx: Tx, organization_id: UUID, campaigns: dict[UUID, date], journeys: list[UUID]) -> None:
    treated, held_out = (
        ArmSums(people, people // 10, people * 400, people * 2e6, people * 4_000, people * 9e7, people * 3e6)
        for people in (18_000, 2_000)
    )
    sums = tuple(LiftSums(currency, treated, held_out, (-1.0, 1.0)) for currency in CURRENCIES)
    answer = LiftAnswer(as_of=tx.now, treated=treated.people, held_out=held_out.people, sums=sums)
    result = msgspec.json.encode(answer).decode()
    months = sorted({date.fromordinal(_today().toordinal() - day).replace(day=1) for day in range(DAYS)})
    sources = [("campaign", it, "", "", day) for it, day in campaigns.items()]
    sources += [("journey", it, "split", f"{month:%Y-%m}", month) for it in journeys for month in months]
    sources += [("holdout", organization_id, "", f"{it:%Y}-Q{it.month // 3 + 1}", it) for it in months[::3]]
    for *source, day in sources:
        await tx.execute(_LIFT, (organization_id, *source, day, day, day, result))
