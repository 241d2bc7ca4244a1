"""What the process holds is counted as it is, and stays within its budget whatever customers and tills send."""

import json
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from regulars.analysis.engine import Engine
from regulars.columns.engine.cache import CachedColumns, Result
from regulars.columns.engine.encoding import Dictionary, encode_values
from regulars.columns.engine.sales_encoding import read_part
from regulars.columns.engine.sales_runs import PRODUCT_IDS, PROPERTY_PREFIX, Dictionaries


def products(count: int) -> list[bytes]:
    """Each with a serial number of its own."""
    return [
        json.dumps({"external_id": f"A{n % 50}", "properties": {"serial": f"{n:08}", "size": str(n % 60)}}).encode()
        for n in range(count)
    ]


def test_words_count_what_they_take():
    tracemalloc.start()
    dictionaries = Dictionaries()
    codes = [dictionaries.encode_products(part, products(10_000)) for part in (PRODUCT_IDS, PROPERTY_PREFIX + "serial")]
    taken = tracemalloc.get_traced_memory()[0] - sum(part.nbytes for part in codes)
    tracemalloc.stop()
    assert 0.7 < dictionaries.nbytes / taken < 1.3


@pytest.mark.parametrize("length", [1, 100, 1_000])
def test_long_values_count_more_than_short_ones(length):
    tracemalloc.start()
    dictionary = Dictionary()
    dictionary.map([f"{n:0{length}}" for n in range(10_000, 14_000)])
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert 0.7 < dictionary.nbytes / taken < 1.3


def test_of_a_product_only_what_is_asked_is_read():
    dictionaries = Dictionaries()
    some = [b'{"external_id":"A","properties":{"size":40.0,"fair":true}}', b'{"name":"unnamed"}']
    more = [b'{"external_id":"B","properties":{"size":"40"}}', b'{"properties":null}']
    assert [dictionaries.encode_products(PROPERTY_PREFIX + "size", it).tolist() for it in (some, more)] == [
        [0, -1],
        [0, -1],
    ]
    assert dictionaries.encode_products(PRODUCT_IDS, [*more, *some]).tolist() == [0, -1, 1, -1]
    assert dictionaries.product_values(PROPERTY_PREFIX + "size").dictionary.values == ["40"]
    assert dictionaries.product_values(PROPERTY_PREFIX + "fair").dictionary.values == []
    dictionaries.forget(PRODUCT_IDS)
    assert len(dictionaries.product_values(PRODUCT_IDS).dictionary) == 0


def test_the_products_of_several_runs_are_decoded_one_run_at_a_time():
    """Whole products take several times the memory of the values that remain."""
    part, content = PROPERTY_PREFIX + "serial", encode_values(products(5_000), np.ones(5_000, np.int8))

    def peak_of(runs: int) -> int:
        dictionaries = Dictionaries()
        tracemalloc.start()
        with ThreadPoolExecutor(runs) as threads:
            list(threads.map(lambda _: read_part(part, content, dictionaries), range(runs)))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    assert peak_of(6) < 1.6 * peak_of(1)


def test_many_distinct_products_stay_within_the_budget(shop):
    lines = [{"product": json.loads(product)} for product in products(900)]
    for first in range(0, 900, 300):
        shop.sale(f"p{first}", lines=lines[first : first + 300])
    shop.drain()
    shop.begin_and_build()
    assert shop.count(sized("size", "40")) == 3
    [(_, cached)] = shop.engine.cache.list_cached()
    # Sixty sizes are all there is to know of nine hundred products.
    assert 60 * 100 < cached.dictionaries.nbytes < 60 * 300
    assert shop.count(sized("serial", "00000500")) == 1
    assert cached.dictionaries.nbytes > 900 * 100
    budget = cached.nbytes - 900 * 100
    for _ in range(2):
        shop.engine = Engine(shop.database, bytes_max=budget)
        assert shop.count(sized("serial", "00000500")) == 1
        assert shop.engine.cache.nbytes() <= budget
        # What is not asked any more goes first, and comes back.
        assert shop.count(sized("size", "40"), {"type": "bought", "products": ["A7"]}) == 3
        assert shop.engine.cache.nbytes() <= budget
        [(_, cached)] = shop.engine.cache.list_cached()
        assert cached.sales
    shop.engine = Engine(shop.database, bytes_max=1)
    for _ in range(2):
        assert shop.count(sized("serial", "00000500")) == 1
        [(_, cached)] = shop.engine.cache.list_cached()
        assert not cached.sales
        assert cached.dictionaries.nbytes < 200


def test_an_eviction_adds_the_sizes_up_once_and_knows_what_each_item_freed(shop, monkeypatch):
    shop.sale("p", lines=[{"product": json.loads(product)} for product in products(60)])
    shop.drain()
    shop.begin_and_build()
    assert shop.count(sized("size", "40"), {"type": "bought", "products": ["A7"]}) == 1
    [(organization_id, cached)] = shop.engine.cache.list_cached()
    size_of = CachedColumns.nbytes.fget
    while cached.columns or cached.sales:
        before = size_of(cached)
        assert cached.evict(set(), 1) == before - size_of(cached)
    assert cached.evict(set(), 1) is None
    for number in range(500):
        cached.results.add((number,), Result(np.zeros(100, bool)))
    added_up = []
    monkeypatch.setattr(CachedColumns, "nbytes", property(lambda self: added_up.append(self) or size_of(self)))
    shop.engine.cache._bytes_max = size_of(cached) - 300 * 100
    shop.engine.cache.evict_to_budget(organization_id, set(), is_busy=lambda _: False)
    assert len(cached.results) == 200
    assert len(added_up) == 1


def sized(key: str, value: str) -> dict[str, Any]:
    return {"type": "articles", "at_least": 1, "property": {"key": key, "comparison": "any_of", "values": [value]}}
