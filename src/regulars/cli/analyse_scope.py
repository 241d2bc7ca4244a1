"""What the `regulars analyse` commands share: options that select days, stores and customers, and the printed table."""

import csv
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

import typer

from regulars.analytics.period import Period, read_period
from regulars.analytics.segment_conditions import resolve_members
from regulars.cli.output import CommandError, ExitCode, err, print_json, print_table
from regulars.cli.runner import find_organization, read_id
from regulars.kit import ids
from regulars.kit.clock import format_timestamp
from regulars.kit.db import Database, Tx
from regulars.kit.text import safe_cell
from regulars.organizations.settings import find_settings
from regulars.segments.analysis import questions
from regulars.segments.analysis.protocol import SegmentQuery
from regulars.stores.find import find_stores

# Longer than a page would wait: after its start, the analysis process first loads the sales that it sums.
DEADLINE_S: Final = 120.0

From = Annotated[
    str, typer.Option("--from", metavar="DAY", help="First day, such as 2026-11-16; 30 days ago if not given.")
]
To = Annotated[str, typer.Option("--to", metavar="DAY", help="Last day; today if not given.")]
OfSegment = Annotated[
    str | None, typer.Option("--segment", help="Only sales of the members of this segment (seg_ id).")
]
OfStores = Annotated[
    list[str] | None, typer.Option("--store", help="Only this store: external id or store_ id. May be repeated.")
]
AsCsv = Annotated[bool, typer.Option("--csv", help="Write CSV.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a command reports on: an organization, its days, and some or all of its stores and customers."""

    organization_id: UUID
    period: Period
    store_ids: tuple[UUID, ...] | None
    # None selects all sales, also those without a customer.
    members: SegmentQuery | None

    @property
    def days(self) -> questions.Period:
        return questions.Period(self.period.first, self.period.last)


async def find_scope(
    pool: Database, organization: str, first: str, last: str, *, segment: str | None, stores: Sequence[str] | None
) -> Scope:
    async with pool.transaction() as tx:
        owner = await find_organization(tx.connection, organization)
        zone = ZoneInfo((await find_settings(tx.connection, owner.id)).time_zone)
        period, faults = read_period({"from": first, "to": last}, tx.now.astimezone(zone).date())
        for name, sentence in faults.items():
            raise CommandError(f"--{name}: {sentence}", code=ExitCode.USAGE)
        members = None
        if segment is not None:
            members = await resolve_members(tx, owner.id, read_id(ids.SEGMENT, segment))
        store_ids = None if not stores else await _find_store_ids(tx, owner.id, stores)
        return Scope(organization_id=owner.id, period=period, store_ids=store_ids, members=members)


async def _find_store_ids(tx: Tx, organization_id: UUID, arguments: Sequence[str]) -> tuple[UUID, ...]:
    argument_by_reference = {ids.read_reference(ids.STORE, argument): argument for argument in arguments}
    stores = await find_stores(tx, organization_id, argument_by_reference)
    for reference, argument in argument_by_reference.items():
        if reference not in stores:
            raise CommandError(f"There is no store {argument}.")
    return tuple(store.id for store in stores.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedTable:
    """A table for output, with rows of totals. Sales before `filled_until`, if it is set, are still being counted."""

    columns: Sequence[str]
    rows: Sequence[dict[str, Any]]
    totals: Sequence[dict[str, Any]]
    as_of: datetime
    filled_until: datetime | None = None

    def print(self, *, as_json: bool, as_csv: bool) -> None:
        if as_json:
            data = {"as_of": self.as_of, "filled_until": self.filled_until, "rows": self.rows, "whole": self.totals}
            print_json(data)
            return
        cells = [["" if row.get(name) is None else str(row[name]) for name in self.columns] for row in self.rows]
        if as_csv:
            writer = csv.writer(sys.stdout)
            writer.writerow(self.columns)
            writer.writerows([safe_cell(cell) for cell in row] for row in cells)
            return
        print_table([name.replace("_", " ").upper() for name in self.columns], cells)
        err.print(f"As of {format_timestamp(self.as_of)}.", markup=False)
        if self.filled_until is not None:
            until = format_timestamp(self.filled_until)
            err.print(f"Older sales are being counted, so far to {until}.", markup=False)


def rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
