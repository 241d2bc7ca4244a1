"""Columns are fed exactly once, whatever the order, and say what the rows say."""

import asyncio
import gc
import weakref
import zlib
from datetime import timedelta
from uuid import UUID

import pytest
from tests.support.waiting import until, until_locked

from regulars.columns import lifecycle
from regulars.columns.column_rows import delete_state, lock_state
from regulars.columns.engine.customer_columns import ATTRIBUTE_PREFIX, PROFILE
from regulars.columns.engine.encoding import decode, decode_coded
from regulars.columns.engine.sales_encoding import read_numbers
from regulars.columns.feed.build import run_batch
from regulars.columns.model import FORMAT, PACKED, unpack_customers, unpack_sales

BOUGHT = {"type": "bought"}


def spend(at_least: int, **given):
    return {"type": "spend", "currency": "EUR", "at_least_cents": at_least, **given}


@pytest.fixture
def fed(shop):
    shop.customer("ann", first_name="Ann", phone="+33612345601", tier="Gold", points="10")
    shop.customer("bob", tier="Silver", points="x")
    shop.customer("cat")
    shop.sale("ann", amount=5000, ago=timedelta(days=3))
    shop.sale("bob", amount=700, ago=timedelta(days=100), store="PAR")
    shop.drain()
    shop.begin_and_build()
    return shop


def test_only_a_text_that_was_sent_or_may_have_been_writes_a_run(fed):
    """A campaign of a million texts has as many facts of each state."""

    def runs() -> int:
        [(count,)] = fed.sql("SELECT count(*) FROM segment_runs WHERE organization_id = %s")
        return int(count)

    before = runs()
    for previous, state in (("queued", "queued"), ("queued", "skipped"), ("sent", "delivered")):
        fed.text("ann", ago=timedelta(0), state=state, previous_state=previous)
    fed.drain()
    assert runs() == before
    fed.text("ann", ago=timedelta(0), state="sent", previous_state="sending")
    fed.drain()
    assert runs() == before + 1
    assert fed.members({"type": "texts", "days": 1}) == {"ann"}


def test_a_sale_that_is_published_during_a_build_counts_once_and_its_entry_is_deleted(shop):
    entries = "SELECT count(*) FROM segment_fed WHERE organization_id = %s"
    shop.sale("c0", amount=1000)
    shop.drain()
    shop.begin()
    shop.sale("c0", amount=1000)
    shop.drain()
    assert shop.sql(entries) == [(1,)]
    shop.build()
    assert (shop.count(spend(2000)), shop.count(spend(2001)), shop.sql(entries)) == (1, 0, [(0,)])


def test_an_erased_customer_leaves_nothing_in_the_stored_bytes(fed):
    for number in range(3):
        fed.customer(f"n{number}", secret=f"needle-{number}", shared="kept")
        fed.sale(f"n{number}", amount=100, lines=[{"product": {"external_id": "p"}}])
        fed.drain()
    [(identifier,)] = fed.sql("SELECT id FROM profiles WHERE organization_id = %s AND external_id = 'n1'")
    [(number,)] = fed.sql(
        "SELECT number FROM segment_customers WHERE organization_id = %s AND profile_id = %s", identifier
    )
    fed.erase("n1")
    fed.drain()
    assert "n1" not in fed.members()
    assert "needle-1" in stored_words(fed)
    assert identifier in stored_profiles(fed)
    assert fed.compact(purge_after=timedelta(0))
    assert {"needle-0", "needle-2", "kept"} <= stored_words(fed)
    assert "needle-1" not in stored_words(fed)
    assert number not in stored_customers(fed)
    assert fed.sql("SELECT 1 FROM segment_customers WHERE organization_id = %s AND profile_id = %s", identifier) == []
    assert identifier not in stored_profiles(fed)
    assert fed.count(BOUGHT) == 4
    assert fed.members({"type": "attribute", "key": "shared", "comparison": "is_set"}) == {"n0", "n2"}


def test_after_a_vacuum_nothing_of_an_erased_customer_is_on_the_disk_or_in_memory(fed):
    fed.customer("dan", secret="needle")
    fed.drain()
    assert fed.members({"type": "attribute", "key": "secret", "comparison": "is", "value": "needle"}) == {"dan"}
    [(_, cached)] = fed.engine.cache.list_cached()
    assert "needle" in cached.columns["a:secret"].dictionary.values
    cached = weakref.ref(cached)
    # Compressed, so they are recognized as a whole.
    packed = [
        bytes(content)
        for (content,) in fed.sql("SELECT content FROM segment_blobs WHERE organization_id = %s AND part = '*'")
        if b"needle" in zlib.decompress(content)
    ]
    assert packed
    assert all(content in vacuumed_bytes(fed) for content in packed)
    fed.erase("dan")
    fed.drain()
    # As every minute; the purge is half a day later.
    fed.runner.run(fed.engine.drop_purged())
    assert cached() is not None
    assert fed.compact(purge_after=timedelta(0))
    assert not any(content in vacuumed_bytes(fed) for content in packed)
    fed.runner.run(fed.engine.drop_purged())
    gc.collect()
    assert cached() is None
    assert "dan" not in fed.members()


def vacuumed_bytes(shop) -> bytes:
    """The files of the blobs, after a vacuum that writes them anew, as PostgreSQL reads them."""

    async def read() -> bytes:
        async with await shop.database.dial() as connection:
            await connection.set_autocommit(True)
            await until_no_snapshot_is_older(connection)
            await connection.execute("VACUUM FULL segment_blobs")
            await connection.execute("CHECKPOINT")
            rows = await connection.execute(
                "SELECT pg_read_binary_file(pg_relation_filepath(it.file)) FROM pg_class, LATERAL"
                " (VALUES (pg_class.oid), (pg_class.reltoastrelid)) AS it (file) WHERE relname = 'segment_blobs'"
            )
            return b"".join([bytes(row[0]) for row in await rows.fetchall()])

    return shop.runner.run(read())


async def until_no_snapshot_is_older(connection) -> None:
    """A vacuum keeps rows that a snapshot of the same database still sees; servers of other tests look at it too."""
    [fence] = await (await connection.execute("SELECT pg_current_xact_id()::xid::text")).fetchone()
    older = (
        "SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        " AND greatest(age(backend_xmin), age(backend_xid)) > age(%s::text::xid)"
    )

    async def is_oldest() -> bool:
        return await (await connection.execute(older, (fence,))).fetchone() is None

    await until(is_oldest)


def stored_words(shop) -> set[str]:
    found: set[str] = set()
    rows = shop.sql(
        "SELECT r.kind, b.part, b.content FROM segment_blobs AS b JOIN segment_runs AS r"
        " ON r.organization_id = b.organization_id AND r.epoch = b.epoch AND r.id = b.run_id"
        " WHERE b.organization_id = %s"
    )
    for kind, part, content in rows:
        if kind == "patch":
            found.update(value for state in unpack_customers(content) for value in state.attributes.values())
        elif part.startswith(ATTRIBUTE_PREFIX):
            found.update(decode_coded(content)[0])
    return found


def stored_profiles(shop) -> set[UUID]:
    """The ids in patches and blocks."""
    rows = shop.sql(
        "SELECT r.id, r.kind, b.part, b.content FROM segment_blobs AS b JOIN segment_runs AS r"
        " ON r.organization_id = b.organization_id AND r.epoch = b.epoch AND r.id = b.run_id"
        " WHERE b.organization_id = %s AND r.kind IN ('patch', 'block')"
    )
    found = {
        UUID(bytes=state.profile)
        for _, kind, _, content in rows
        if kind == "patch"
        for state in unpack_customers(content)
        if state.profile
    }
    parts = {(run_id, part): decode(content).tolist() for run_id, kind, part, content in rows if part in PROFILE}
    for run_id in {run_id for run_id, _ in parts}:
        pairs = zip(*(parts[run_id, part] for part in PROFILE), strict=True)
        found |= {UUID(int=high << 64 | low) for high, low in pairs if high}
    return found


def stored_customers(shop) -> set[int]:
    rows = shop.sql(
        "SELECT r.level, b.part, b.content FROM segment_blobs AS b JOIN segment_runs AS r"
        " ON r.organization_id = b.organization_id AND r.epoch = b.epoch AND r.id = b.run_id"
        " WHERE b.organization_id = %s AND r.kind IN ('sales', 'anonymous')"
    )
    found: set[int] = set()
    for _, part, content in rows:
        if part == PACKED:
            found.update(read_numbers(unpack_sales(content).customer).tolist())
        elif part == "customer":
            found.update(decode(content).tolist())
    return found


def test_with_the_last_segment_the_columns_go_and_with_the_next_they_come_back(fed):
    fed.do(lambda tx: lifecycle.end(tx, fed.organization_id))
    assert not fed.ask({"type": "all", "of": []}).is_ready
    fed.sale("ann", amount=1)
    fed.drain()
    fed.build()
    for table in ("segment_columns", "segment_customers", "segment_runs", "segment_blobs", "segment_fed", "interests"):
        assert fed.sql(f"SELECT 1 FROM {table} WHERE organization_id = %s") == []  # noqa: S608  # names of ours
    fed.begin_and_build()
    assert fed.members(spend(5001)) == {"ann"}


def test_columns_that_are_wanted_again_while_their_last_trace_goes_begin_anew(fed):
    """The transaction that begins finds the old row, and waits for the batch that deletes it."""
    fed.do(lambda tx: lifecycle.end(tx, fed.organization_id))

    async def begin() -> None:
        async with fed.database.transaction() as tx:
            await lifecycle.begin(tx, fed.organization_id)

    async def both() -> None:
        async with fed.database.transaction() as tx:
            await lock_state(tx, fed.organization_id)
            beginning = asyncio.create_task(begin())
            await until_locked(fed.database, "FROM segment_columns")
            for table in ("segment_blobs", "segment_runs", "segment_customers"):
                await tx.execute(f"DELETE FROM {table} WHERE organization_id = %s", (fed.organization_id,))  # noqa: S608  # names of ours
            await delete_state(tx, fed.organization_id)
        await beginning

    fed.runner.run(both())
    fed.build()
    assert fed.members(BOUGHT) == {"ann", "bob"}


def test_a_rebuild_starts_from_the_rows(fed):
    fed.alter("UPDATE segment_columns SET next_number = next_number WHERE organization_id = %s")
    fed.alter("DELETE FROM segment_blobs WHERE organization_id = %s")
    assert fed.do(lambda tx: lifecycle.rebuild(tx, fed.organization_id))
    progress = fed.do(lambda tx: lifecycle.find_build_progress(tx, fed.organization_id))
    assert (progress.state, progress.phase) == ("building", "waiting")
    fed.sale("cat", amount=50)
    fed.drain()
    fed.build()
    assert fed.members(BOUGHT) == {"ann", "bob", "cat"}
    assert fed.sql("SELECT DISTINCT epoch FROM segment_customers WHERE organization_id = %s") == [(2,)]


def test_a_build_that_waited_when_it_was_saved_goes_on_in_a_cluster_with_lower_numbers(fed):
    """A restored fence may be a number that this cluster reaches only after years."""
    assert fed.do(lambda tx: lifecycle.rebuild(tx, fed.organization_id))
    fed.alter(
        "UPDATE segment_columns SET fence = 1::bigint << 60, fenced_at = now(), is_littered = false"
        " WHERE organization_id = %s"
    )
    fed.runner.run(run_batch(fed.database, fed.organization_id))
    [(fence,)] = fed.sql("SELECT fence FROM segment_columns WHERE organization_id = %s")
    assert fence < 1 << 60
    fed.build()
    assert fed.members(BOUGHT) == {"ann", "bob"}


def test_columns_of_an_older_format_are_built_again(fed):
    """By what comes first: a question, the build that a migration made due, or a fact."""
    # The time of a transaction is cut to the millisecond.
    fed.alter(
        "UPDATE segment_columns SET format = 3, build_at = now() - interval '1 second' WHERE organization_id = %s"
    )
    assert fed.runner.run(run_batch(fed.database, fed.organization_id))
    assert fed.sql("SELECT format, state FROM segment_columns WHERE organization_id = %s") == [(FORMAT, "building")]
    fed.build()
    assert fed.members(BOUGHT) == {"ann", "bob"}
    fed.alter("UPDATE segment_columns SET format = 0 WHERE organization_id = %s")
    answer = fed.ask({"type": "all", "of": []})
    assert (answer.is_ready, answer.progress and answer.progress.state) == (False, "building")
    fed.build()
    assert fed.members(BOUGHT) == {"ann", "bob"}
    fed.alter("UPDATE segment_columns SET format = 0 WHERE organization_id = %s")
    fed.sale("cat", amount=50)
    fed.drain()
    fed.build()
    assert fed.members(BOUGHT) == {"ann", "bob", "cat"}


def test_a_missing_run_is_reported_and_gives_no_wrong_count(fed):
    for _ in range(16):
        fed.sale("cat", amount=1)
        fed.drain()
    assert fed.compact()
    assert fed.sql("SELECT count(*) FROM segment_runs WHERE organization_id = %s AND kind = 'sales' AND level > 0") == [
        (1,)
    ]
    fed.alter("DELETE FROM segment_blobs WHERE organization_id = %s")
    assert fed.ask({"type": "all", "of": [BOUGHT]}).fault == "The columns changed over and over while they were read."
    assert fed.do(lambda tx: lifecycle.rebuild(tx, fed.organization_id))
    fed.build()
    assert fed.members(spend(16)) == {"ann", "bob", "cat"}


def test_a_first_count_says_how_far_it_is(fed):
    fed.count({"type": "attribute", "key": "tier", "comparison": "is", "value": "gold"}, spend(600))
    [(_, cached)] = fed.engine.cache.list_cached()
    assert cached.progress.total == cached.progress.done > 0
    fed.count(spend(700))
    # What is in memory is not read again.
    assert cached.progress.total == 0
