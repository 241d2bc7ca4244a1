"""Holdouts of journeys and of the organization as sources of lift: when they are compared, and which customers are in
each group."""

from collections.abc import Sequence
from datetime import date, timedelta
from uuid import UUID

from regulars.attribution import lift_queries as queries
from regulars.attribution.lift import LiftSource, SourceKind, schedule_lift
from regulars.attribution.windows import find_windows
from regulars.journeys.facts import HoldoutMonthBegun
from regulars.journeys.runs.holdouts import read_holdout_groups
from regulars.kit.db import Tx
from regulars.messaging.facts import HoldoutQuarterChanged
from regulars.messaging.holdout.groups import read_groups
from regulars.segments.analysis.questions import ArmPeople

# The customers who were meant to be texted, and those who were held out.
BothGroups = tuple[ArmPeople, ArmPeople]


async def schedule_months(tx: Tx, organization_id: UUID, facts: Sequence[HoldoutMonthBegun]) -> None:
    """Listener of months in which customers pass the split step of a journey. Each customer has a separate window, from
    the split to `lift_days` days after the last text can have been sent."""
    lift_days = (await find_windows(tx, organization_id)).windows.lift_days
    for fact in facts:
        window_days = lift_days + fact.texts_within_days
        last_pass = (fact.month + timedelta(days=31)).replace(day=1) - timedelta(days=1)
        await schedule_lift(
            tx,
            organization_id,
            LiftSource(SourceKind.JOURNEY, fact.journey_id, fact.step, f"{fact.month:%Y-%m}"),
            held_out_share=fact.percent / 100,
            window_days=window_days,
            days=(fact.month, last_pass + timedelta(days=window_days)),
        )


async def schedule_quarters(tx: Tx, organization_id: UUID, facts: Sequence[HoldoutQuarterChanged]) -> None:
    """Listener of quarters whose global holdout was drawn or ended. A quarter that ended before its first whole day is
    not compared."""
    for fact in facts:
        source = LiftSource(SourceKind.HOLDOUT, organization_id, period=write_quarter(fact.quarter))
        await queries.delete_if_open(tx, organization_id, source)
        if fact.first_day <= fact.last_day:
            share, days = fact.percent / 100, (fact.first_day, fact.last_day)
            await schedule_lift(tx, organization_id, source, held_out_share=share, window_days=0, days=days)


async def read_month(tx: Tx, organization_id: UUID, source: LiftSource) -> BothGroups:
    month = date.fromisoformat(f"{source.period}-01")
    groups = await read_holdout_groups(tx, organization_id, source.id, source.step, month)
    return ArmPeople(*groups.get(False, ())), ArmPeople(*groups.get(True, ()))


async def read_quarter(tx: Tx, organization_id: UUID, source: LiftSource) -> BothGroups:
    groups = await read_groups(tx, organization_id, parse_quarter(source.period))
    return ArmPeople(groups.get(False, b"")), ArmPeople(groups.get(True, b""))


def write_quarter(first_day: date) -> str:
    """The name of a quarter, such as 2026-Q4."""
    return f"{first_day.year}-Q{(first_day.month + 2) // 3}"


def parse_quarter(text: str) -> date:
    """The first day of a quarter."""
    year, _, number = text.partition("-Q")
    return date(int(year), 3 * int(number) - 2, 1)
