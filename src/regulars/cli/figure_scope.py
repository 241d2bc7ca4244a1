"""What `regulars explore` and `attribution show` report on: the options that select days, stores, customers and a
currency."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, get_args
from uuid import UUID

import typer

from regulars.analytics import figures
from regulars.analytics.period import COMPARES, Period, read_period
from regulars.cli.output import CommandError, ExitCode
from regulars.cli.runner import find_organization, read_id
from regulars.columns import questions
from regulars.kit import ids
from regulars.kit.db import Database, Tx
from regulars.kit.time_zones import find_zone
from regulars.organizations.settings import find_settings
from regulars.sales.model import Currency
from regulars.stores.find import find_stores

# Longer than a page would wait: after its start, the analysis process first loads the sales that it sums.
DEADLINE_S: Final = 120.0

From = Annotated[
    str, typer.Option("--from", metavar="DAY", help="First day, such as 2026-11-16; 30 days ago if not given.")
]
To = Annotated[str, typer.Option("--to", metavar="DAY", help="Last day; today if not given.")]
OfSegments = Annotated[
    list[str] | None,
    typer.Option("--segment", help="Only sales of the members of this segment (seg_ id); repeated for --by segment."),
]
OfStores = Annotated[
    list[str] | None, typer.Option("--store", help="Only this store: external id or store_ id. May be repeated.")
]
AllCurrencies = Annotated[
    str | None,
    typer.Option(
        "--currency",
        help="Only amounts in EUR, GBP, USD or CHF. All if not given; of products and rfm that with the largest net.",
    ),
]
By = Annotated[
    list[str] | None,
    typer.Option(
        "--by",
        help="What a row is: day, week, month, hour, store, country, product, segment, newness, property:NAME or total."
        " At most two, each with --by.",
    ),
]
Measures = Annotated[list[str] | None, typer.Option("--measure", help="Only this measure; may be repeated.")]
OfProduct = Annotated[str | None, typer.Option("--product", help="Only lines of the product with this code.")]
Beside = Annotated[str | None, typer.Option("--compare", help=f"Beside another period: {', '.join(COMPARES)}.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Write CSV.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a command reports on: an organization, its days, and some or all of its stores, customers and
    currencies."""

    organization_id: UUID
    period: Period
    store_ids: tuple[UUID, ...] | None
    # Without a segment all sales are selected, also those without a customer.
    segment_ids: tuple[UUID, ...]
    currency: Currency | None

    @property
    def days(self) -> questions.Period:
        return questions.Period(self.period.first, self.period.last)


async def find_scope(
    pool: Database,
    organization: str,
    first: str,
    last: str,
    *,
    preset: str = "",
    segments: Sequence[str] = (),
    stores: Sequence[str] = (),
    currency: str | None = None,
) -> Scope:
    currency_code = None if currency is None else _read_currency(currency)
    async with pool.transaction() as tx:
        owner = await find_organization(tx.connection, organization)
        zone = find_zone((await find_settings(tx.connection, owner.id)).time_zone)
        period, faults = read_period({"period": preset, "from": first, "to": last}, tx.now.astimezone(zone).date())
        for name, sentence in faults.items():
            raise CommandError(f"--{name}: {sentence}", code=ExitCode.USAGE)
        store_ids = None if not stores else await _find_store_ids(tx, owner.id, stores)
        return Scope(
            organization_id=owner.id,
            period=period,
            store_ids=store_ids,
            segment_ids=tuple(read_id(ids.SEGMENT, segment) for segment in segments),
            currency=currency_code,
        )


def _read_currency(text: str) -> Currency:
    for currency in get_args(Currency):
        if text == currency:
            return currency  # type: ignore[no-any-return]  # one of the literals
    raise CommandError(f"--currency: {text} is none of {', '.join(get_args(Currency))}.", code=ExitCode.USAGE)


async def _find_store_ids(tx: Tx, organization_id: UUID, arguments: Sequence[str]) -> tuple[UUID, ...]:
    argument_by_reference = {ids.read_reference(ids.STORE, argument): argument for argument in arguments}
    stores = await find_stores(tx, organization_id, argument_by_reference)
    for reference, argument in argument_by_reference.items():
        if reference not in stores:
            raise CommandError(f"There is no store {argument}.")
    return tuple(store.id for store in stores.values())


async def list_currencies(pool: Database, scope: Scope) -> list[Currency]:
    """The chosen currency, or those of the sales of these days and stores, largest net sales first."""
    if scope.currency is not None:
        return [scope.currency]
    async with pool.reading() as tx:
        return await figures.list_currencies(tx, scope.organization_id, scope.period, store_ids=scope.store_ids)
