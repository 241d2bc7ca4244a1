"""Loads the stores, customers, consents and tickets of the demo: tickets in bulk, everything else through the functions
that the API calls too. A light profile is a customer of whom only an id is known."""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from itertools import islice
from typing import Any, Final, TypeVar
from uuid import UUID

from regulars.consent.opt_in import opt_in
from regulars.consent.opt_out import opt_out
from regulars.demo.chain import SHOPS, Shop
from regulars.demo.people import DemoCustomer, make_consents, make_customers, make_profiles
from regulars.demo.tickets import make_tickets
from regulars.kit.db import Database, Tx
from regulars.kit.errors import ApiError
from regulars.kit.ids import ByExternalId, Reference
from regulars.organizations.manage import mark_as_demo
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
from regulars.texts.settings.store import lock_texting


class RealProviderError(Exception):
    """The organization sends real texts, and the numbers of demo customers could belong to real people."""

    def __init__(self) -> None:
        super().__init__("This organization texts through Twilio; the demo needs an organization with the simulator.")


async def mark_organization(database: Database, organization_id: UUID) -> None:
    """Mark the organization as a demo, which can only simulate texts. Refuse an organization with a real provider of
    SMS."""
    async with database.transaction() as tx:
        texting = await lock_texting(tx, organization_id)
        if texting is not None and texting.provider != "simulator":
            raise RealProviderError
        await mark_as_demo(tx.connection, organization_id)


SALES_MAX: Final = 10_000_000
BATCH_ITEMS: Final = 500
# How many of the last purchases `load_demo` returns: enough that each country is among them.
LAST_PURCHASES: Final = 200
# Enough rows that the cost of a commit does not matter, and few enough to stay well below the statement timeout.
COPY_ROWS: Final = 50_000
# How far in the future a sale may be.
TOLERANCE: Final = timedelta(0)

Item = TypeVar("Item")
# Called after each transaction with the kind of rows, such as `tickets`, and their number.
Progress = Callable[[str, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoPlan:
    """The size and seed of a demo. Equal plans give equal data, except for canonical ids and the time of loading."""

    seed: int
    sales: int
    customers: int
    last_day: date


async def organization_has_data(tx: Tx, organization_id: UUID) -> bool:
    has_data = await tx.fetch_value(
        "SELECT EXISTS (SELECT FROM stores WHERE organization_id = %(organization_id)s)"
        " OR EXISTS (SELECT FROM profiles WHERE organization_id = %(organization_id)s)"
        " OR EXISTS (SELECT FROM sales_events WHERE organization_id = %(organization_id)s)",
        {"organization_id": organization_id},
    )
    return bool(has_data)


async def load_demo(
    database: Database, organization_id: UUID, plan: DemoPlan, *, secret: bytes, progress: Progress
) -> list[Sale]:
    """Load the data; return the last purchases of known customers."""
    await mark_organization(database, organization_id)
    customers = make_customers(plan.seed, plan.customers)
    await load_shops(database, organization_id, progress)
    # Light profiles are created first, so that lists, which show the newest first, begin with named customers.
    light_profiles = await create_light(database, organization_id, customers)
    write = partial(_write_batches, database, organization_id, progress)
    await write("customers", make_profiles(plan.seed, customers), write=upsert_profiles)
    history = make_consents(plan.seed, customers, plan.last_day)
    # For each number, these three are in the order of time.
    await write("consents", history.opt_ins, write=partial(opt_in, secret=secret))
    await write("consents", history.opt_outs, write=partial(opt_out, secret=secret))
    await write("consents", history.renewals, write=partial(opt_in, secret=secret))
    last_purchases: deque[Sale] = deque(maxlen=LAST_PURCHASES)
    all_tickets = make_tickets(plan.seed, customers, count=plan.sales, last_day=plan.last_day)
    tickets = _collect_last(all_tickets, last_purchases)
    async with database.transaction() as tx:
        has_sales = await tx.fetch_value(
            "SELECT EXISTS (SELECT FROM sales_events WHERE organization_id = %s)", (organization_id,)
        )
    if has_sales:
        # A bulk load cannot skip existing tickets; `record_sales` can.
        await record_tickets(database, organization_id, tickets, progress)
    else:
        await load_tickets(database, organization_id, tickets, customers, light_profiles, progress=progress)
    return [*last_purchases]


def _collect_last(tickets: Iterable[Sale], last_purchases: deque[Sale]) -> Iterator[Sale]:
    """Pass the tickets through, and append the purchases of known customers to the deque."""
    for ticket in tickets:
        if ticket.profile is not None and ticket.type == "PURCHASE":
            last_purchases.append(ticket)
        yield ticket


async def load_shops(database: Database, organization_id: UUID, progress: Progress) -> None:
    async with database.transaction() as tx:
        await upsert_stores(tx, organization_id, [_make_store(shop) for shop in SHOPS])
    progress("stores", len(SHOPS))


async def _write_batches(
    database: Database,
    organization_id: UUID,
    progress: Progress,
    kind: str,
    items: Iterable[Any],
    *,
    write: Callable[..., Awaitable[Sequence[object]]],
) -> None:
    """Write the items as the API does; rows that exist already are skipped."""
    for batch in batches(items, BATCH_ITEMS):
        async with database.transaction() as tx:
            for outcome in await write(tx, organization_id, batch):
                # The data of the demo is valid, so an error is a bug.
                if isinstance(outcome, ApiError):
                    raise outcome
        progress(kind, len(batch))


async def create_light(
    database: Database, organization_id: UUID, customers: Sequence[DemoCustomer]
) -> list[ProfileRef]:
    """Create the light profiles; return those that did not exist."""
    new_profiles: list[ProfileRef] = []
    for external_ids in batches([customer.external_id for customer in customers if customer.is_light], BATCH_ITEMS):
        async with database.transaction() as tx:
            created = await create_light_profiles(tx, organization_id, external_ids)
        new_profiles += [profile for profile in created.values() if profile.is_new]
    return new_profiles


async def load_tickets(
    database: Database,
    organization_id: UUID,
    tickets: Iterator[Sale],
    customers: Sequence[DemoCustomer],
    light_profiles: Sequence[ProfileRef],
    *,
    progress: Progress,
) -> None:
    """Load the tickets in bulk; then delete the new light profiles without a ticket, and publish the others as
    events."""
    stores, profiles = await _find_ids(database, organization_id, customers)
    loaded = COPY_ROWS
    while loaded == COPY_ROWS:
        async with database.transaction() as tx:
            chunk = islice(tickets, COPY_ROWS)
            loaded = await load_sales(tx, organization_id, chunk, stores=stores, profiles=profiles)
        progress("tickets", loaded)
    for batch in batches(light_profiles, BATCH_ITEMS):
        async with database.transaction() as tx:
            unused_ids = await tx.fetch_column(
                "SELECT p.id FROM profiles p WHERE p.organization_id = %s AND p.id = ANY(%s) AND NOT EXISTS ("
                "SELECT FROM sales_events e WHERE e.organization_id = p.organization_id AND e.profile_id = p.id)",
                (organization_id, [profile.id for profile in batch]),
            )
            unused = set(unused_ids)
            await remove_light_profiles(tx, organization_id, unused)
            used = [profile for profile in batch if profile.id not in unused]
            await publish_light_profiles(tx, organization_id, used)


async def record_tickets(
    database: Database, organization_id: UUID, tickets: Iterable[Sale], progress: Progress
) -> None:
    """Record the tickets through `record_sales`, which writes the same rows and skips existing tickets."""
    record = partial(record_sales, tolerance=TOLERANCE)
    await _write_batches(database, organization_id, progress, "tickets", tickets, write=record)


def batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


async def _find_ids(
    database: Database, organization_id: UUID, customers: Sequence[DemoCustomer]
) -> tuple[dict[Reference, UUID], dict[Reference, UUID]]:
    async with database.transaction() as tx:
        references = [ByExternalId(shop.external_id) for shop in SHOPS]
        stores = {key: store.id for key, store in (await find_stores(tx, organization_id, references)).items()}
    profiles: dict[Reference, UUID] = {}
    for batch in batches(customers, BATCH_ITEMS):
        async with database.transaction() as tx:
            references = [ByExternalId(customer.external_id) for customer in batch]
            batch_profiles = await find_profiles(tx, organization_id, references)
        profiles.update({reference: profile.id for reference, profile in batch_profiles.items()})
    return stores, profiles


def _make_store(shop: Shop) -> StoreUpsert:
    address = Address(
        address_line1=shop.street,
        postal_code=shop.postal_code,
        locality=shop.city,
        country_code=shop.country,
        administrative_area1=shop.region,
    )
    return StoreUpsert(external_id=shop.external_id, name=shop.name, address=address)
