"""Runs stay few, whatever their sizes, and whatever else waits to be written anew."""

from datetime import timedelta

import pytest
from tests.columns.fed_shop import OUR_LISTENERS

from regulars.columns.engine import compaction
from regulars.columns.engine.compaction import (
    MERGE_CHANGES_MIN,
    MERGE_CHANGES_PER_BLOCK_MIN,
    MERGE_RUNS,
    MERGED_ROWS_MAX,
    choose_runs,
    should_merge_patches,
)
from regulars.columns.feed.build import BATCH_SALES
from regulars.columns.model import COMPACTION_CLAIM, Run
from regulars.kit.ids import ByExternalId
from regulars.privacy.erase import erase_profiles
from regulars.work.outbox import OutboxQueue

BIG = MERGED_ROWS_MAX // MERGE_RUNS + 1


def runs(*rows: int, kind: str = "sales", level: int = 0) -> list[Run]:
    return [Run(place, kind, level, place, count, 0) for place, count in enumerate(rows, 1)]


def compacted(given: list[Run]) -> list[Run]:
    """What merging leaves, by sizes alone."""
    while chosen := choose_runs(given):
        rows, level = sum(run.rows for run in chosen), chosen[0].level + 1
        given = [run for run in given if run not in chosen]
        given.append(Run(1000 + chosen[-1].id, chosen[0].kind, level, chosen[-1].ordinal, rows, 0))
        given.sort(key=lambda run: (run.ordinal, run.id))
    return given


def test_too_few_are_left_alone():
    assert choose_runs(runs(*[10] * (MERGE_RUNS - 1))) == []


def test_the_oldest_of_a_level_are_merged_as_many_as_fit_into_a_run():
    given = runs(*[10] * (MERGE_RUNS + 3))
    assert choose_runs(given) == given
    given = runs(*[BIG - 1] * (MERGE_RUNS + 3))
    assert choose_runs(given) == given[:MERGE_RUNS]


def test_runs_with_and_without_customers_are_merged_apart():
    of_customers, others = runs(*[10] * (MERGE_RUNS - 1)), runs(*[10] * MERGE_RUNS, kind="anonymous")
    assert choose_runs([*of_customers, *others]) == others


def test_a_build_merges_each_sale_once():
    given = runs(*[BATCH_SALES] * 300)
    chosen = choose_runs(given, is_building=True)
    assert sum(run.rows for run in chosen) > MERGED_ROWS_MAX - BATCH_SALES
    assert choose_runs(chosen, is_building=True) == []
    assert choose_runs(chosen) == chosen


def test_runs_that_are_big_already_do_not_keep_the_others_from_being_merged():
    big, small = runs(*[BIG] * MERGE_RUNS), runs(*[10] * MERGE_RUNS)
    small = [run._replace(id=run.id + 100, ordinal=run.ordinal + 100) for run in small]
    assert choose_runs(big) == []
    assert choose_runs([*big, *small]) == small
    assert choose_runs([*big[:5], *small, *big[5:]]) == small


def test_a_build_leaves_few_runs():
    """Each has about as many sales as a run may have."""
    fitting = MERGED_ROWS_MAX // BATCH_SALES
    left = compacted(runs(*[BATCH_SALES] * fitting * 5))
    assert [(run.level, run.rows) for run in left] == [(1, fitting * BATCH_SALES)] * 5


def test_no_run_grows_beyond_all_bounds():
    left = compacted(runs(*[MERGED_ROWS_MAX // MERGE_RUNS] * 64))
    assert [run.rows for run in left] == [MERGED_ROWS_MAX] * 4


def test_patches_become_one_and_none_is_left_out():
    """The last of them counts."""
    assert choose_runs(runs(*[10] * (MERGE_RUNS - 1), kind="patch")) == []
    given = runs(*[10] * (MERGE_RUNS + 3), kind="patch")
    assert choose_runs(given) == given
    [left] = compacted(given)
    assert (left.level, left.rows) == (1, 10 * (MERGE_RUNS + 3))


def test_as_many_changes_as_are_worth_it_are_folded():
    few, enough = runs(MERGE_CHANGES_MIN - 1, kind="patch"), runs(MERGE_CHANGES_MIN - 1, 1, kind="patch")
    assert (should_merge_patches(few), should_merge_patches(enough)) == (False, True)
    # Each of many blocks is worth as many by itself.
    blocks = runs(*[BIG] * 100, kind="block")
    assert not should_merge_patches([*enough, *blocks])
    assert should_merge_patches([*runs(100 * MERGE_CHANGES_PER_BLOCK_MIN, kind="patch"), *blocks])


def live(shop) -> int:
    [(count,)] = shop.sql("SELECT count(*) FROM segment_runs WHERE organization_id = %s AND is_live")
    return count


@pytest.fixture
def erased(shop):
    """A shop where the bytes of an erased customer wait for tonight."""
    for name in ("ann", "bob"):
        shop.sale(name, amount=1000)
    shop.drain()
    shop.begin_and_build()
    shop.erase("bob")
    shop.drain()
    shop.compact()
    [(wait,)] = shop.sql("SELECT tidy_at - now() FROM segment_columns WHERE organization_id = %s")
    assert wait > 2 * COMPACTION_CLAIM
    return shop


def test_runs_are_merged_while_an_erased_customer_s_bytes_wait(erased):
    for number in range(MERGE_RUNS):
        erased.sale("ann", amount=number)
        erased.drain()
    before = live(erased)
    assert erased.compact()
    assert live(erased) < before
    # The bytes are not forgotten over it.
    [(wait,)] = erased.sql("SELECT tidy_at - now() FROM segment_columns WHERE organization_id = %s")
    assert wait > 2 * COMPACTION_CLAIM


def test_a_claimed_compaction_is_not_disturbed_while_runs_come(erased):
    erased.alter("UPDATE segment_columns SET tidy_at = now() + interval '4 minutes' WHERE organization_id = %s")
    for number in range(MERGE_RUNS):
        erased.sale("ann", amount=number)
        erased.drain()
    assert not erased.compact()


def test_who_is_erased_while_others_are_taken_out_waits_for_the_next_time(erased, monkeypatch):
    find_erased = compaction._find_erased

    async def find_dead_during_an_erasure(tx, organization_id, epoch, blocks):
        async with erased.database.transaction() as other:
            await erase_profiles(other, organization_id, [ByExternalId("ann")], secret=erased.secret)
        await OutboxQueue(OUR_LISTENERS).run_pass(erased.database, organization_id)
        return await find_erased(tx, organization_id, epoch, blocks)

    erased.alter("UPDATE segment_columns SET tidy_at = now() - interval '1 second' WHERE organization_id = %s")
    with monkeypatch.context() as patched:
        patched.setattr(compaction, "_find_erased", find_dead_during_an_erasure)
        assert erased.compact(purge_after=timedelta(0))
    [(since,)] = erased.sql("SELECT erased_since FROM segment_columns WHERE organization_id = %s")
    assert since is not None
    erased.alter("UPDATE segment_columns SET tidy_at = now() - interval '1 second' WHERE organization_id = %s")
    assert erased.compact(purge_after=timedelta(0))
    rows = erased.sql("SELECT erased_since, tidy_at FROM segment_columns WHERE organization_id = %s")
    assert rows == [(None, None)]
    assert erased.sql("SELECT 1 FROM segment_runs WHERE organization_id = %s AND kind = 'sales'") == []
