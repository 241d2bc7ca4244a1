"""The columns have every sale once, of customers and of others, and segments read only those of customers."""

import contextlib

import pytest
from tests.columns.stored_sales import check_all_sales

from regulars.columns import lifecycle
from regulars.columns.feed import build
from regulars.columns.feed import runs as feeding
from regulars.columns.feed.build import run_batch

BOUGHT = {"type": "bought"}
SCARF = {"external_id": "scarf", "properties": {"colour": "red"}}


def sell_some(shop) -> None:
    for number in range(5):
        shop.sale(f"c{number}", amount=1000 + number, discount=50, tax=200, lines=[{"product": SCARF}, {}])
        shop.sale(None, amount=700 + number, lines=[{"product": SCARF, "quantity": 2}])
    shop.sale(None, kind="RETURN", amount=300, tax=50, lines=[{"product": SCARF, "quantity": -1}, {"quantity": 1}])
    shop.sale("c0", kind="RETURN", amount=300, lines=[{"quantity": 0.25, "unit": "kg"}])


@pytest.fixture
def sold(shop):
    sell_some(shop)
    shop.drain()
    shop.begin_and_build()
    return shop


def test_segments_do_not_read_sales_without_a_customer(sold):
    assert sold.count(BOUGHT) == 5
    [(_, cached)] = sold.engine.cache.list_cached()
    assert {run.meta.kind for run in cached.sales.values()} == {"sales"}
    results = len(cached.results)
    sold.sale(None, amount=100)
    sold.drain()
    assert sold.count(BOUGHT) == 5
    assert len(cached.results) == results, "The result was computed again."


def test_a_build_that_dies_between_and_within_batches_loses_and_doubles_nothing(sold, monkeypatch):
    monkeypatch.setattr(build, "BATCH_SALES", 5)
    pack_sales = feeding.pack_sales
    packed = 0

    def die_at_times(pack):
        nonlocal packed
        packed += 1
        if packed % 3 == 0:
            raise KeyboardInterrupt
        return pack_sales(pack)

    monkeypatch.setattr(feeding, "pack_sales", die_at_times)
    sold.do(lambda tx: lifecycle.rebuild(tx, sold.organization_id))
    for number in range(200):
        with contextlib.suppress(KeyboardInterrupt):
            sold.runner.run(run_batch(sold.database, sold.organization_id))
        if number % 10 == 0:
            sold.sale(None if number % 20 else "c2", amount=number)
        if number % 30 == 0:
            with contextlib.suppress(KeyboardInterrupt):
                sold.drain()
        if not sold.runner.run(sold.is_building()):
            break
    monkeypatch.setattr(feeding, "pack_sales", pack_sales)
    assert packed > 6
    sold.drain()
    check_all_sales(sold)
