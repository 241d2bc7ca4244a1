"""What the process holds is counted as it is, and stays within its budget whatever customers and tills send."""

import json
import tracemalloc

import numpy as np
import pytest

from regulars.segments.analysis.engine import memory
from regulars.segments.analysis.engine.answer import Engine
from regulars.segments.analysis.engine.blobs import Dictionary
from regulars.segments.analysis.engine.memory import Results
from regulars.segments.analysis.engine.sales import Words

BIG = {"type": "articles", "at_least": 1, "property": {"key": "size", "comparison": "is", "value": "40"}}


def products(count: int) -> list[bytes]:
    """Each with a serial number of its own."""
    return [
        json.dumps({"external_id": f"A{n % 50}", "properties": {"serial": f"{n:08}", "size": str(n % 60)}}).encode()
        for n in range(count)
    ]


def test_words_count_what_they_take():
    tracemalloc.start()
    words = Words()
    words.map("product", products(20_000))
    words.ids()
    words.properties("serial")
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert 0.8 < words.nbytes / taken < 1.3


@pytest.mark.parametrize("length", [1, 100, 1_000])
def test_long_values_count_more_than_short_ones(length):
    tracemalloc.start()
    dictionary = Dictionary()
    dictionary.map([f"{n:0{length}}" for n in range(10_000, 25_000)])
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert 0.7 < dictionary.nbytes / taken < 1.3


def test_columns_of_products_grow_with_them():
    words = Words()
    words.map("product", [b'{"external_id":"A","properties":{"size":40.0,"fair":true}}', b'{"name":"unnamed"}'])
    assert words.properties("size").codes.tolist() == [-1, 0, -1]
    words.map("product", [b'{"external_id":"B","properties":{"size":"40"}}', b'{"properties":null}'])
    assert words.properties("size").codes.tolist() == [-1, 0, -1, 0, -1]
    assert words.properties("fair").dictionary.values == ["true"]
    assert words.ids().codes.tolist() == [-1, 0, -1, 1, -1]


def test_many_distinct_products_stay_within_the_budget(shop):
    lines = [{"product": json.loads(product)} for product in products(900)]
    for first in range(0, 900, 300):
        shop.sale(f"p{first}", lines=lines[first : first + 300])
    shop.drain()
    shop.begin()
    shop.build()
    held_of_all = _bytes_of_words(shop)
    shop.engine = Engine(shop.database, bytes_max=held_of_all // 2)
    for _ in range(2):
        assert shop.count(BIG) == 3
        assert shop.engine.memory.nbytes() <= held_of_all // 2
    shop.engine = Engine(shop.database, bytes_max=held_of_all)
    assert shop.count(BIG) == 3
    # Of the next question nothing is about products, so only these go.
    assert shop.count({"type": "bought", "window": {"last_days": 1}}) == 3
    [held] = shop.engine.memory.list_held()
    assert held.sales
    assert len(held.words.products) == 1
    assert shop.count(BIG) == 3


def _bytes_of_words(shop) -> int:
    assert shop.count(BIG) == 3
    [held] = shop.engine.memory.list_held()
    assert held.nbytes > held.words.nbytes > 900 * 200
    return held.words.nbytes


def test_results_of_one_question_have_a_limit(monkeypatch):
    monkeypatch.setattr(memory, "RESULTS_BYTES_MAX", 1_000)
    results = Results()
    for number in range(20):
        results.keep((number,), (np.zeros(300, bool), np.zeros(100, bool) if number % 2 else None))
        assert results.nbytes <= 1_000
    assert results.find((18,)) is not None
    assert results.find((0,)) is None
    # One alone may be as large as there are customers.
    assert results.keep(("large",), (np.zeros(5_000, bool), None)) is results.find(("large",))
    assert len(results) == 1
    results.clear()
    assert results.nbytes == 0
