"""Schedules the measurement of lift for journeys and for the organization's global holdout, and reads the two groups
that it compares: customers who were meant to be texted, and a holdout of customers who were not."""

from collections.abc import Sequence
from datetime import date, timedelta
from uuid import UUID

from regulars.attribution import lift_queries as queries
from regulars.attribution.lift import LiftSource, SourceKind, schedule_lift
from regulars.attribution.windows import find_windows
from regulars.columns.questions import ArmPeople
from regulars.experiments.facts import HoldoutMonthBegun, HoldoutQuarterChanged
from regulars.experiments.holdout.groups import read_groups
from regulars.experiments.journey_holdouts import read_holdout_groups
from regulars.kit.db import Tx

# The customers who were meant to be texted, and those who were held out.
ComparedGroups = tuple[ArmPeople, ArmPeople]


async def schedule_months(tx: Tx, organization_id: UUID, facts: Sequence[HoldoutMonthBegun]) -> None:
    """Listener: schedule a measurement for each month in which customers pass the split step of a journey. It counts a
    customer's sales from the split to `lift_days` days after the last text can have been sent."""
    lift_days = (await find_windows(tx, organization_id)).windows.lift_days
    for fact in facts:
        window_days = lift_days + fact.texts_within_days
        last_day_of_month = (fact.month + timedelta(days=31)).replace(day=1) - timedelta(days=1)
        await schedule_lift(
            tx,
            organization_id,
            LiftSource(SourceKind.JOURNEY, fact.journey_id, fact.step, f"{fact.month:%Y-%m}"),
            held_out_share=fact.percent / 100,
            window_days=window_days,
            days=(fact.month, last_day_of_month + timedelta(days=window_days)),
        )


async def schedule_quarters(tx: Tx, organization_id: UUID, facts: Sequence[HoldoutQuarterChanged]) -> None:
    """Listener: schedule a measurement for each quarter whose global holdout was selected or ended. A quarter that
    ended before its first whole day is not measured."""
    for fact in facts:
        source = LiftSource(SourceKind.HOLDOUT, organization_id, period=format_quarter(fact.quarter))
        await queries.delete_if_open(tx, organization_id, source)
        if fact.first_day <= fact.last_day:
            share, days = fact.percent / 100, (fact.first_day, fact.last_day)
            # The window of all customers is the quarter, so `window_days` is not used.
            await schedule_lift(tx, organization_id, source, held_out_share=share, window_days=0, days=days)


async def read_month(tx: Tx, organization_id: UUID, source: LiftSource) -> ComparedGroups:
    """The customers who passed the split step of a journey in the month of the source."""
    month = date.fromisoformat(f"{source.period}-01")
    groups = await read_holdout_groups(tx, organization_id, source.id, source.step, month)
    return ArmPeople(*groups.get(False, ())), ArmPeople(*groups.get(True, ()))


async def read_quarter(tx: Tx, organization_id: UUID, source: LiftSource) -> ComparedGroups:
    """The customers among whom the global holdout of the quarter was selected."""
    groups = await read_groups(tx, organization_id, parse_quarter(source.period))
    return ArmPeople(groups.get(False, b"")), ArmPeople(groups.get(True, b""))


def format_quarter(first_day: date) -> str:
    """The name of a quarter, such as 2026-Q4."""
    return f"{first_day.year}-Q{(first_day.month + 2) // 3}"


def parse_quarter(text: str) -> date:
    """The first day of a quarter."""
    year, _, number = text.partition("-Q")
    return date(int(year), 3 * int(number) - 2, 1)
