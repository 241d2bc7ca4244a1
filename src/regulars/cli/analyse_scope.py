"""Options of the `regulars analyse` commands, which select days, stores and customers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final
from uuid import UUID

import typer

from regulars.analytics.period import Period, read_period
from regulars.analytics.segment_conditions import resolve_members
from regulars.cli.output import CommandError, ExitCode
from regulars.cli.runner import find_organization, read_id
from regulars.kit import ids
from regulars.kit.clock import find_zone
from regulars.kit.db import Database, Tx
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
        zone = find_zone((await find_settings(tx.connection, owner.id)).time_zone)
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
