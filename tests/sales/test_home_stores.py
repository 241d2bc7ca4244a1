"""The home store: where a customer bought most often in 12 months."""

import pytest
from tests.journeys.test_plans import OLD_TICKETS
from tests.sales.desk import STORE, Desk, ticket
from tests.support import samples
from tests.support.plans import rows_read, watch

from regulars.kit.ids import new_uuid
from regulars.sales.home_stores import PURCHASES_MAX, HomeStore, find_home_stores
from regulars.stores.model import Address, StoreUpsert
from regulars.stores.upsert import upsert_stores

pytestmark = pytest.mark.anyio

LYON, NICE = "LYON-02", "NICE-03"
TICKETS = 3_000


async def homes_of(desk: Desk) -> dict[str, HomeStore]:
    """By the code of the customer."""
    names = dict(await desk.rows("SELECT id, external_id FROM profiles WHERE organization_id = %s"))
    async with desk.database.reading() as tx:
        found = await find_home_stores(tx, desk.organization_id, [*names, new_uuid()])
    return {names[profile_id]: home for profile_id, home in found.items()}


async def record(desk: Desk, customer: str, *visits: tuple[str, int], kind: str = "PURCHASE") -> None:
    """Visits as store and days ago."""
    for number, (store, days) in enumerate(visits):
        sale = ticket(
            f"{customer}-{kind}-{number}",
            type=kind,
            store_id=store,
            profile_id=customer,
            occurred_at=samples.ago(days=days, hours=1),
        )
        await desk.record(sale)


async def test_it_is_the_store_of_most_purchases_and_of_those_the_last(desk: Desk):
    address = Address(address_line1="1 quai", postal_code="69002", locality="Lyon", country_code="FR")
    async with desk.database.transaction() as tx:
        lyon = StoreUpsert(external_id=LYON, name="Bellecour", address=address)
        await upsert_stores(tx, desk.organization_id, [lyon, StoreUpsert(external_id=NICE)])
    await record(desk, "most", (LYON, 300), (LYON, 200), (STORE, 1))
    await record(desk, "tied", (STORE, 30), (LYON, 20), (LYON, 300), (STORE, 310))
    # Purchases of more than a year ago and returns do not count, whenever they were recorded.
    await record(desk, "moved", (LYON, 400), (LYON, 380), (NICE, 200))
    await record(desk, "moved", (LYON, 10), (LYON, 20), kind="RETURN")
    await record(desk, "returned", (LYON, 10), kind="RETURN")
    homes = await homes_of(desk)
    assert homes.keys() == {"most", "tied", "moved"}
    assert homes["most"][1:] == homes["tied"][1:] == ("Bellecour", "Lyon", "FR")
    assert homes["moved"][1:] == (NICE, None, None)


async def test_of_a_shared_card_only_the_last_purchases_are_read(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    [(store_id,)] = await desk.rows("SELECT id FROM stores WHERE organization_id = %s")
    async with desk.database.transaction() as tx:
        # The tickets name one id, as their customer and as their store.
        given = {"organization_id": desk.organization_id, "profile_id": store_id, "tickets": TICKETS}
        await tx.execute(OLD_TICKETS, given)
    read = watch(monkeypatch, rows_read)
    async with desk.database.reading() as tx:
        homes = await find_home_stores(tx, desk.organization_id, [store_id])
    assert homes[store_id].name == STORE
    # The index and a few steps above it.
    assert max(read.values()) <= 5 * PURCHASES_MAX < TICKETS
