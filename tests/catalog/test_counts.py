"""Counting how many stored values a type can read: in batches, resumable, and before a type is changed."""

import pytest

from regulars.catalog import entries
from regulars.catalog.counts import counting, queries
from regulars.catalog.counts.counting import CountQueue
from regulars.catalog.counts.model import START, JobState, Tally
from regulars.catalog.model import AttributeType, Catalog, KeyFilter
from regulars.kit.errors import ValidationError
from regulars.kit.keyset import PageRequest
from regulars.profiles.attribute_values import AttributeValues
from regulars.profiles.model import ProfileUpsert
from regulars.profiles.write import upsert_profiles
from regulars.sales.property_values import PropertyValues
from regulars.work.personal import ErasedPeople

pytestmark = pytest.mark.anyio

SIZES = ["1", "2", "n/a", "2", "007"]


@pytest.fixture
def queue() -> CountQueue:
    return CountQueue({Catalog.ATTRIBUTES: AttributeValues(), Catalog.PRODUCTS: PropertyValues()})


@pytest.fixture
async def customers(database, organization_id):
    """Five customers with a household size, which was first sent as a number."""
    async with database.transaction() as tx:
        upserts = [
            ProfileUpsert(external_id=f"c{place}", attributes={"size": size, "city": "Lyon"})
            for place, size in enumerate(SIZES)
        ]
        await upsert_profiles(tx, organization_id, upserts)


async def run(queue, database, organization_id) -> int:
    turns = 1
    while await queue.run_pass(database, organization_id):
        turns += 1
    return turns


@pytest.fixture
def counted(queue, database, organization_id):
    async def count(catalog=Catalog.ATTRIBUTES) -> dict[str, Tally]:
        async with database.transaction() as tx:
            await counting.count_every_key(tx, organization_id, catalog)
        await run(queue, database, organization_id)
        async with database.reading() as tx:
            full_counts = await counting.find_full_counts(tx, organization_id, catalog)
            assert full_counts.current is None
            return await counting.find_tallies(tx, organization_id, full_counts.done)

    return count


@pytest.fixture
def previewed(queue, database, organization_id):
    async def preview(declared: AttributeType, *, key="size", allowed_values=()):
        async with database.transaction() as tx:
            await counting.preview_type(
                tx, organization_id, Catalog.ATTRIBUTES, key, declared=declared, allowed_values=allowed_values
            )
        await run(queue, database, organization_id)
        async with database.reading() as tx:
            count = await counting.find_preview(tx, organization_id, Catalog.ATTRIBUTES, key)
            tallies = await counting.find_tallies(tx, organization_id, count)
        return count, tallies.get(key, Tally())

    return preview


async def test_every_key_is_counted_by_its_declared_type(customers, counted):
    tallies = await counted()
    assert (tallies["size"].readable, tallies["size"].unreadable) == (4, 1)
    assert (tallies["city"].readable, tallies["city"].unreadable) == (5, 0)
    assert tallies["size"].leading_zeros == 1


async def test_the_list_keeps_only_values_of_five_customers(customers, counted):
    tallies = await counted()
    assert {key: (one.samples, one.common) for key, one in tallies.items()} == {
        "city": ({}, {"Lyon": 5}),
        "size": ({}, {}),
    }


async def test_counting_again_replaces_the_count_before(customers, counted, database, organization_id):
    await counted()
    async with database.transaction() as tx:
        await upsert_profiles(tx, organization_id, [ProfileUpsert(external_id="c9", attributes={"size": "?"})])
    assert (await counted())["size"].unreadable == 2
    async with database.reading() as tx:
        rows = await tx.fetch("SELECT 1 FROM catalog_counts WHERE organization_id = %s", (organization_id,))
    assert len(rows) == 1


async def test_asking_twice_is_asking_once(customers, database, organization_id):
    async with database.transaction() as tx:
        first = await counting.count_every_key(tx, organization_id, Catalog.ATTRIBUTES)
        assert (await counting.count_every_key(tx, organization_id, Catalog.ATTRIBUTES)).id == first.id
        other = await counting.count_every_key(tx, organization_id, Catalog.PRODUCTS)
    assert other.id != first.id


@pytest.mark.parametrize(
    ("declared", "allowed", "unread"),
    [
        (AttributeType.TEXT, (), {}),
        (AttributeType.NUMBER, (), {"n/a": 1}),
        (AttributeType.BOOLEAN, (), {"1": 1, "2": 2, "n/a": 1, "007": 1}),
        (AttributeType.ENUM, ("2", "n/a"), {"1": 1, "007": 1}),
    ],
)
async def test_a_preview_says_what_the_type_could_read(customers, previewed, declared, allowed, unread):
    count, tally = await previewed(declared, allowed_values=allowed)
    assert (count.state, count.rows_read, count.rows_total) == (JobState.DONE, 5, 5)
    assert (tally.readable, tally.values, tally.samples) == (5 - sum(unread.values()), 5, unread)
    assert tally.common == {"1": 1, "2": 2, "n/a": 1, "007": 1}
    assert tally.has_all_values


async def test_a_value_of_a_list_is_readable_whatever_its_case_and_composition(database, organization_id, previewed):
    drinks = ["Caf\u00e9", "CAFE\u0301", "caf\u00e9", "cafe"]
    async with database.transaction() as tx:
        upserts = [ProfileUpsert(external_id=drink, attributes={"drink": drink}) for drink in drinks]
        await upsert_profiles(tx, organization_id, upserts)
    _, tally = await previewed(AttributeType.ENUM, key="drink", allowed_values=["Caf\u00e9"])
    assert (tally.readable, tally.samples) == (3, {"cafe": 1})


async def test_a_preview_changes_nothing_until_it_is_confirmed(
    customers, counted, previewed, database, organization_id
):
    await counted()
    count, _ = await previewed(AttributeType.ENUM, allowed_values=["1", "2", "2"])
    async with database.transaction() as tx:
        before = (await entries.find_entries(tx, organization_id, Catalog.ATTRIBUTES, ["size"]))[0]
        entry = await counting.confirm_preview(tx, organization_id, count)
    assert (before.type, entry.type, entry.allowed_values) == (AttributeType.NUMBER, AttributeType.ENUM, ("1", "2"))
    async with database.reading() as tx:
        full_counts = await counting.find_full_counts(tx, organization_id, Catalog.ATTRIBUTES)
        tallies = await counting.find_tallies(tx, organization_id, full_counts.done)
        assert await counting.find_preview(tx, organization_id, Catalog.ATTRIBUTES, "size") is None
    assert (tallies["size"].readable, tallies["size"].samples) == (3, {})


async def test_a_preview_that_still_runs_cannot_be_confirmed(customers, database, organization_id):
    async with database.transaction() as tx:
        count = await counting.preview_type(
            tx, organization_id, Catalog.ATTRIBUTES, "size", declared=AttributeType.BOOLEAN
        )
        assert await counting.confirm_preview(tx, organization_id, count) is None
        overview = await counting.count_every_key(tx, organization_id, Catalog.ATTRIBUTES)
        assert await counting.confirm_preview(tx, organization_id, overview) is None
        entry = (await entries.find_entries(tx, organization_id, Catalog.ATTRIBUTES, ["size"]))[0]
    assert entry.type is AttributeType.NUMBER


async def test_an_enum_without_values_is_refused(database, organization_id):
    async with database.transaction() as tx:
        with pytest.raises(ValidationError):
            await counting.preview_type(tx, organization_id, Catalog.ATTRIBUTES, "x", declared=AttributeType.ENUM)


async def test_it_counts_in_batches_with_progress_and_resumes_after_a_crash(
    customers, database, organization_id, queue, monkeypatch
):
    monkeypatch.setattr(counting, "BATCH_ROWS", 2)
    async with database.transaction() as tx:
        started = await counting.count_every_key(tx, organization_id, Catalog.ATTRIBUTES)
    assert await queue.run_pass(database, organization_id)
    async with database.reading() as tx:
        halfway = await queries.find_count(tx, organization_id, started.id)
    assert (halfway.state, halfway.rows_read, halfway.rows_total) == (JobState.RUNNING, 2, None)
    fresh_worker = CountQueue({Catalog.ATTRIBUTES: AttributeValues(), Catalog.PRODUCTS: PropertyValues()})
    assert await run(fresh_worker, database, organization_id) == 3
    async with database.reading() as tx:
        done = await queries.find_count(tx, organization_id, started.id)
        tallies = await counting.find_tallies(tx, organization_id, done)
    assert (done.state, done.rows_read, tallies["size"].values) == (JobState.DONE, 5, 5)
    async with database.transaction() as tx:
        assert (await counting.count_every_key(tx, organization_id, Catalog.ATTRIBUTES)).rows_total == 5


class Broken(AttributeValues):
    async def read_batch(self, *args, **kwargs):
        raise RuntimeError("planted")


@pytest.mark.usefixtures("customers")
async def test_a_count_that_keeps_failing_forgets_its_values_and_is_tried_for_ever(
    database, organization_id, queue, counted, monkeypatch
):
    monkeypatch.setattr(counting, "BATCH_ROWS", 2)
    broken = CountQueue({Catalog.ATTRIBUTES: Broken()})
    async with database.transaction() as tx:
        count = await counting.count_every_key(tx, organization_id, Catalog.ATTRIBUTES)
    await queue.run_pass(database, organization_id)
    for _ in range(len(broken.schedule.waits_s) + 1):
        await broken.run_pass(database, organization_id)
        async with database.transaction() as tx:
            await tx.execute(
                "UPDATE catalog_counts SET due_at = %s WHERE organization_id = %s AND due_at IS NOT NULL",
                (tx.now, organization_id),
            )
    async with database.reading() as tx:
        failed = await queries.find_count(tx, organization_id, count.id)
        assert (failed.state, failed.walked_to, failed.rows_read) == (JobState.FAILED, START, 0)
        assert failed.due_at
        assert await counting.find_tallies(tx, organization_id, failed) == {}
    assert (await counted())["size"].values == 5


async def test_an_unconfirmed_preview_is_deleted_after_a_day(customers, previewed, database, organization_id, queue):
    count, _ = await previewed(AttributeType.TEXT)
    assert count.due_at - count.finished_at == counting.PREVIEW_RETENTION
    async with database.transaction() as tx:
        await tx.execute("UPDATE catalog_counts SET due_at = %s WHERE organization_id = %s", (tx.now, organization_id))
    await run(queue, database, organization_id)
    async with database.reading() as tx:
        assert await queries.find_count(tx, organization_id, count.id) is None
        assert await counting.find_tallies(tx, organization_id, count) == {}


async def test_an_erasure_takes_the_samples_and_leaves_the_numbers(customers, previewed, database, organization_id):
    count, _ = await previewed(AttributeType.NUMBER)
    async with database.transaction() as tx:
        await counting.erase_values(tx, organization_id, ErasedPeople(profile_ids=[]))
        tallies = await counting.find_tallies(tx, organization_id, count)
    assert tallies["size"] == Tally(readable=4, unreadable=1, leading_zeros=1)


async def test_keys_are_listed_in_order_by_text_and_type_and_page_by_page(customers, database, organization_id):
    async with database.reading() as tx:

        async def keys(position=None, *, is_backward=False, **wanted):
            page = PageRequest(10, position, is_backward)
            found = await entries.list_entries(tx, organization_id, Catalog.ATTRIBUTES, page, KeyFilter(**wanted))
            return [entry.key for entry in found]

        assert await keys() == ["city", "size"]
        assert await keys(containing="IZ") == ["size"]
        assert await keys(declared=AttributeType.TEXT) == ["city"]
        assert await keys(("city",)) == ["size"]
        assert await keys(("size",), is_backward=True) == ["city"]
        assert await entries.count_entries(tx, organization_id, Catalog.ATTRIBUTES, count_max=1) == 1
