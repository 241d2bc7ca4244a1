"""Load the demo: people and shops through the use cases, tickets in bulk."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import islice
from typing import Final, TypeVar
from uuid import UUID

from regulars.consent.opt_in import Consent, opt_in
from regulars.consent.opt_out import opt_out
from regulars.demo import queries
from regulars.demo.chain import SHOPS, Shop
from regulars.demo.mark import mark
from regulars.demo.people import Customer, Opinions, describe, make_customers, opinions
from regulars.demo.tickets import make_tickets
from regulars.kit.db import Database
from regulars.kit.errors import ApiError
from regulars.kit.ids import ByExternalId, Reference
from regulars.profiles.facts import publish_light_profiles
from regulars.profiles.find import find_profiles
from regulars.profiles.model import ProfileRef
from regulars.profiles.write import create_light_profiles, remove_light_profiles, upsert_profiles
from regulars.sales.load import load_sales
from regulars.sales.model import Sale
from regulars.sales.record import record_sales
from regulars.stores.find import find_stores
from regulars.stores.model import Address, StoreUpsert
from regulars.stores.upsert import upsert_stores

SALES_MAX: Final = 10_000_000
BATCH_ITEMS: Final = 500
LAST_TICKETS: Final = 3
# Enough rows to make a commit cheap, few enough to come well under the statement timeout.
COPY_ROWS: Final = 50_000
TOLERANCE: Final = timedelta(0)

Item = TypeVar("Item")
# Told after each transaction: which part, and how many of its items went in.
Progress = Callable[[str, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What is to be told; equal stories give equal data, but for canonical ids and the time of loading."""

    seed: int
    sales: int
    customers: int
    last_day: date


async def organization_has_data(database: Database, organization_id: UUID) -> bool:
    async with database.transaction() as tx:
        return await queries.has_data(tx, organization_id)


async def load_demo(
    database: Database, organization_id: UUID, story: Story, *, secret: bytes, progress: Progress
) -> list[Sale]:
    """The last tickets of customers come back, for whatever happens to them next."""
    await mark(database, organization_id)
    customers = make_customers(story.seed, story.customers)
    await load_shops(database, organization_id, progress)
    # Before those with a name, who are then the newest and the first that a list shows.
    light = await create_light(database, organization_id, customers)
    for batch in batches(describe(story.seed, customers), BATCH_ITEMS):
        async with database.transaction() as tx:
            _refuse_errors(await upsert_profiles(tx, organization_id, batch))
        progress("customers", len(batch))
    said = opinions(story.seed, customers, story.last_day)
    await load_opinions(database, organization_id, said, secret=secret, progress=progress)
    last: deque[Sale] = deque(maxlen=LAST_TICKETS)
    made = make_tickets(story.seed, customers, count=story.sales, last_day=story.last_day)
    tickets = _remembering(made, last)
    async with database.transaction() as tx:
        is_again = await queries.has_sales(tx, organization_id)
    if is_again:
        # A bulk load cannot skip what is there already, and the use case can.
        await record_tickets(database, organization_id, tickets, progress)
    else:
        await load_tickets(database, organization_id, tickets, customers, light, progress=progress)
    return [*last]


def _remembering(tickets: Iterable[Sale], last: deque[Sale]) -> Iterator[Sale]:
    for ticket in tickets:
        if ticket.profile is not None and ticket.type == "PURCHASE":
            last.append(ticket)
        yield ticket


async def load_shops(database: Database, organization_id: UUID, progress: Progress) -> None:
    async with database.transaction() as tx:
        await upsert_stores(tx, organization_id, [_store(shop) for shop in SHOPS])
    progress("stores", len(SHOPS))


async def load_opinions(
    database: Database, organization_id: UUID, said: Opinions, *, secret: bytes, progress: Progress
) -> None:
    """The waves follow one another, as they did in time for each number."""

    async def consent(consents: Iterable[Consent]) -> None:
        for batch in batches(consents, BATCH_ITEMS):
            async with database.transaction() as tx:
                _refuse_errors(await opt_in(tx, organization_id, batch, secret=secret))
            progress("consents", len(batch))

    await consent(said.opt_ins)
    for batch in batches(said.opt_outs, BATCH_ITEMS):
        async with database.transaction() as tx:
            _refuse_errors(await opt_out(tx, organization_id, batch, secret=secret))
        progress("consents", len(batch))
    await consent(said.returns)


async def create_light(database: Database, organization_id: UUID, customers: Sequence[Customer]) -> list[ProfileRef]:
    """Customers that only tills know."""
    made: list[ProfileRef] = []
    for names in batches([customer.external_id for customer in customers if customer.is_light], BATCH_ITEMS):
        async with database.transaction() as tx:
            created = await create_light_profiles(tx, organization_id, names)
        made += [profile for profile in created.values() if profile.is_new]
    return made


async def load_tickets(
    database: Database,
    organization_id: UUID,
    tickets: Iterator[Sale],
    customers: Sequence[Customer],
    light: Sequence[ProfileRef],
    *,
    progress: Progress,
) -> None:
    """In bulk. Light profiles of customers who never came are removed again."""
    stores, profiles = await _references(database, organization_id, customers)
    loaded = COPY_ROWS
    while loaded == COPY_ROWS:
        async with database.transaction() as tx:
            chunk = islice(tickets, COPY_ROWS)
            loaded = await load_sales(tx, organization_id, chunk, stores=stores, profiles=profiles)
        progress("tickets", loaded)
    for batch in batches(light, BATCH_ITEMS):
        async with database.transaction() as tx:
            unused = set(await queries.find_profiles_without_sales(tx, organization_id, [one.id for one in batch]))
            await remove_light_profiles(tx, organization_id, unused)
            await publish_light_profiles(tx, organization_id, [one for one in batch if one.id not in unused])


async def record_tickets(
    database: Database, organization_id: UUID, tickets: Iterable[Sale], progress: Progress
) -> None:
    """One by one through the use case, which leaves the same rows and skips what is there already."""
    for batch in batches(tickets, BATCH_ITEMS):
        async with database.transaction() as tx:
            _refuse_errors(await record_sales(tx, organization_id, batch, tolerance=TOLERANCE))
        progress("tickets", len(batch))


def batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


async def _references(
    database: Database, organization_id: UUID, customers: Sequence[Customer]
) -> tuple[dict[Reference, UUID], dict[Reference, UUID]]:
    async with database.transaction() as tx:
        wanted = [ByExternalId(shop.external_id) for shop in SHOPS]
        stores = {key: store.id for key, store in (await find_stores(tx, organization_id, wanted)).items()}
    profiles: dict[Reference, UUID] = {}
    for batch in batches(customers, BATCH_ITEMS):
        async with database.transaction() as tx:
            references = [ByExternalId(customer.external_id) for customer in batch]
            found = await find_profiles(tx, organization_id, references)
        profiles.update({key: profile.id for key, profile in found.items()})
    return stores, profiles


def _store(shop: Shop) -> StoreUpsert:
    address = Address(
        address_line1=shop.street,
        postal_code=shop.postal_code,
        locality=shop.city,
        country_code=shop.country,
        administrative_area1=shop.region,
    )
    return StoreUpsert(external_id=shop.external_id, name=shop.name, address=address)


def _refuse_errors(outcomes: Sequence[object]) -> None:
    """The story is ours, so a refusal is a mistake in it and not something to go on from."""
    for outcome in outcomes:
        if isinstance(outcome, ApiError):
            raise outcome
