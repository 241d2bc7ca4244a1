"""Values that are suggested while a user types: the most frequent ones, counted without a button, of no few customers."""

from datetime import timedelta
from uuid import uuid4

import pytest

from regulars.catalog import entries
from regulars.catalog.counts import counting, queries
from regulars.catalog.counts.counting import CountQueue
from regulars.catalog.counts.model import FREQUENT_MAX, DeclaredType, Tally, ValueCount, add_values
from regulars.catalog.model import AttributeType, Catalog
from regulars.catalog.suggestions import SUGGESTIONS_MAX, SuggestedValue, suggest_values
from regulars.profiles.attribute_values import AttributeValues
from regulars.profiles.model import ProfileUpsert
from regulars.profiles.write import upsert_profiles
from regulars.work.personal import ErasedPeople

pytestmark = pytest.mark.anyio

CITIES = ["Lyon"] * 7 + ["Paris"] * 4 + ["paris"] * 5 + ["PARIS"] * 5 + ["7"] * 6 + ["Nantes"] * 4


class Counted:
    """An organization, and the queue that counts its values."""

    def __init__(self, database, organization_id) -> None:
        self.database = database
        self.organization_id = organization_id
        self.queue = CountQueue({Catalog.ATTRIBUTES: AttributeValues()})

    async def store(self, values, *, first=0) -> None:
        upserts = [
            ProfileUpsert(external_id=f"c{number}", attributes={"city": value})
            for number, value in enumerate(values, first)
        ]
        async with self.database.transaction() as tx:
            await upsert_profiles(tx, self.organization_id, upserts)

    async def work(self) -> None:
        while await self.queue.run_pass(self.database, self.organization_id):
            pass

    async def pass_time(self) -> None:
        async with self.database.transaction() as tx:
            await tx.execute(
                "UPDATE catalog_counts SET due_at = %s WHERE organization_id = %s", (tx.now, self.organization_id)
            )

    async def suggest(self, typed="", *, key="city", sees_personal=True) -> list[tuple[str, int]]:
        async with self.database.reading() as tx:
            return await suggest_values(
                tx, self.organization_id, Catalog.ATTRIBUTES, key, typed, sees_personal=sees_personal
            )

    async def retype(self, declared, *allowed) -> None:
        """By way of a preview, as the page does it."""
        async with self.database.transaction() as tx:
            await counting.preview_type(
                tx, self.organization_id, Catalog.ATTRIBUTES, "city", declared=declared, allowed_values=allowed
            )
        await self.work()
        async with self.database.transaction() as tx:
            preview = await counting.find_preview(tx, self.organization_id, Catalog.ATTRIBUTES, "city")
            assert await counting.confirm_preview(tx, self.organization_id, preview)

    async def erase(self, *values) -> None:
        people = ErasedPeople(profile_ids=[uuid4() for _ in values], attributes=[("city", value) for value in values])
        async with self.database.transaction() as tx:
            await counting.erase_values(tx, self.organization_id, people)


@pytest.fixture
async def counted(database, organization_id) -> Counted:
    counted = Counted(database, organization_id)
    await counted.store(CITIES)
    await counted.work()
    return counted


async def test_values_of_five_customers_are_suggested_without_a_button_the_most_frequent_first(counted):
    assert await counted.suggest() == [("PARIS", 10), ("Lyon", 7), ("7", 6)]
    assert await counted.suggest("AR") == [("PARIS", 10)]
    assert await counted.suggest("nantes") == []
    assert await counted.suggest(key="unknown") == []
    assert await counted.suggest("x" * 300) == []


async def test_values_that_too_few_customers_have_are_not_even_stored(counted):
    async with counted.database.reading() as tx:
        rows = await tx.fetch(
            "SELECT common::text FROM catalog_tallies WHERE organization_id = %s", (counted.organization_id,)
        )
    assert "Nantes" not in str(rows)
    assert "Paris" not in str(rows)


async def test_values_are_counted_again_when_customers_have_changed(counted):
    await counted.store(["Nantes"], first=len(CITIES))
    await counted.work()
    assert ("Nantes", 5) not in await counted.suggest()
    await counted.pass_time()
    await counted.work()
    assert ("Nantes", 5) in await counted.suggest()


async def test_nothing_is_counted_again_while_no_customer_changes(counted):
    async with counted.database.transaction() as tx:
        [before] = await queries.list_full_counts(tx, counted.organization_id, Catalog.ATTRIBUTES)
        await tx.execute(
            "UPDATE profiles SET updated_at = %s WHERE organization_id = %s",
            (before.created_at - timedelta(days=1), counted.organization_id),
        )
        await tx.execute(
            "UPDATE catalog_counts SET created_at = %s WHERE organization_id = %s",
            (before.created_at - timedelta(hours=3), counted.organization_id),
        )
    await counted.pass_time()
    await counted.work()
    async with counted.database.reading() as tx:
        [after] = await queries.list_full_counts(tx, counted.organization_id, Catalog.ATTRIBUTES)
    assert after.id == before.id
    assert timedelta(hours=3) < after.due_at - before.created_at < timedelta(hours=4)


async def test_an_erasure_reaches_the_values_of_the_erased(counted):
    await counted.erase("7", "7", "Lyon")
    assert await counted.suggest() == [("PARIS", 10), ("Lyon", 6)]


async def test_an_erasure_reaches_a_count_that_runs(counted, monkeypatch):
    monkeypatch.setattr(counting, "BATCH_ROWS", len(CITIES))
    async with counted.database.transaction() as tx:
        running = await counting.count_every_key(tx, counted.organization_id, Catalog.ATTRIBUTES)
    await counted.queue.run_pass(counted.database, counted.organization_id)
    await counted.erase("Nantes", "Lyon")
    async with counted.database.reading() as tx:
        tallies = await queries.find_tallies(tx, counted.organization_id, running.id)
    assert "Nantes" not in tallies["city"].common
    assert tallies["city"].common["Lyon"] == 6


async def test_a_retype_leaves_only_values_that_fit(counted):
    await counted.retype(AttributeType.NUMBER)
    assert await counted.suggest() == [("7", 6)]
    await counted.retype(AttributeType.ENUM, "Paris", "Lyon")
    assert await counted.suggest() == [("Paris", 10), ("Lyon", 7)]


async def test_a_retype_begins_a_running_count_again(counted, monkeypatch):
    monkeypatch.setattr(counting, "BATCH_ROWS", 20)
    async with counted.database.transaction() as tx:
        running = await counting.count_every_key(tx, counted.organization_id, Catalog.ATTRIBUTES)
    await counted.queue.run_pass(counted.database, counted.organization_id)
    async with counted.database.transaction() as tx:
        await tx.execute("UPDATE catalog_counts SET due_at = %s WHERE id = %s", (tx.now + timedelta(1), running.id))
    await counted.retype(AttributeType.ENUM, "Lyon")
    await counted.pass_time()
    await counted.work()
    async with counted.database.reading() as tx:
        done = (await counting.find_full_counts(tx, counted.organization_id, Catalog.ATTRIBUTES)).done
        tallies = await counting.find_tallies(tx, counted.organization_id, done)
    assert (tallies["city"].readable, tallies["city"].values) == (7, len(CITIES))


async def test_a_masked_role_gets_only_values_that_staff_declared(counted):
    assert await counted.suggest(sees_personal=False) == []
    await counted.retype(AttributeType.ENUM, "Lyon")
    assert await counted.suggest(sees_personal=False) == [("Lyon", 7)]


async def test_of_a_hundred_thousand_values_the_first_twenty_are_suggested(counted):
    values = [ValueCount("city", f"City {number}", 5 + number) for number in range(100_000)]
    tallies: dict[str, Tally] = {}
    add_values(tallies, values, {}, is_preview=False, frequent_keys=["city"])
    assert len(tallies["city"].common) == FREQUENT_MAX
    async with counted.database.transaction() as tx:
        [count] = await queries.list_full_counts(tx, counted.organization_id, Catalog.ATTRIBUTES)
        await queries.upsert_tallies(tx, counted.organization_id, count.id, tallies)
    found = await counted.suggest("city")
    assert len(found) == SUGGESTIONS_MAX
    assert found[0] == SuggestedValue("City 99999", 100_004)


def test_only_the_first_keys_store_values():
    tallies: dict[str, Tally] = {}
    values = [ValueCount("a", "x", 9), ValueCount("b", "x", 9)]
    add_values(tallies, values, {"a": DeclaredType(AttributeType.TEXT)}, is_preview=False, frequent_keys=["a"])
    assert [tallies[key].common for key in "ab"] == [{"x": 9}, {}]
    assert tallies["b"].values == 9


async def test_the_first_keys_are_those_in_the_order_of_the_database(counted):
    async with counted.database.transaction() as tx:
        await entries.register_attributes(tx, counted.organization_id, {"dog": "1"})
        found = await entries.find_among_first(
            tx, counted.organization_id, Catalog.ATTRIBUTES, ["dog", "city", "x"], limit=1
        )
    assert found == {"city"}
