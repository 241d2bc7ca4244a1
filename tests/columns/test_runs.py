"""Runs of sales in memory: what is picked by stretches is what looking at each would find."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from regulars.columns.engine import sales_runs
from regulars.columns.engine.calendar import EPOCH_ORDINAL, Zone
from regulars.columns.engine.sales_encoding import (
    LINE_PARTS,
    SALE_PARTS,
    encode_parts,
    group_by_product,
    merge,
    read_flat,
    read_part,
    sort_flat,
    split_erased,
    with_sums_of_lines,
)
from regulars.columns.engine.sales_runs import ALL_DAYS, Dictionaries, SalesRun, scale_of, select_window
from regulars.columns.model import ERASED, Run

RUN = Run(1, "sales", 1, 1, 0, 0)


def flat_run(seed: int, *, size: int = 60, products: int = 9) -> dict[str, np.ndarray]:
    """Sales in no order, with lines of products in no order; the product 0 is none."""
    chance = np.random.default_rng(seed)
    lines = chance.integers(0, 5, size)
    count = int(lines.sum())
    return with_sums_of_lines(
        {
            "customer": chance.integers(0, 12, size),
            "at_s": chance.integers(1_700_000_000, 1_700_900_000, size),
            "store": chance.integers(0, 3, size),
            "kind": chance.integers(0, 4, size),
            "amount": chance.integers(-500, 500, size),
            "discount": chance.integers(-50, 50, size),
            "tax": chance.integers(-90, 90, size),
            "lines": lines,
        },
        {
            "product": chance.integers(0, products, count),
            "quantity": chance.integers(-3, 4, count) * 500_000,
            "line_units": chance.integers(-3, 4, count) * 1_000_000,
            "total": chance.integers(-900, 900, count),
        },
    )


def dictionaries() -> Dictionaries:
    made = Dictionaries()
    made.map("store", [bytes([number]) for number in range(3)])
    made.map("kind", ["EUR", "CHF"])
    made.map("product", [b'{"external_id":"%d"}' % number for number in range(1, 9)])
    return made


def sales_of(flat: dict[str, np.ndarray]) -> list[tuple[object, ...]]:
    """Each sale with all that it says and with its lines: the same whatever the order."""
    lines: dict[int, list[tuple[int, ...]]] = {place: [] for place in range(flat["customer"].size)}
    for sale, names in LINE_PARTS.items():
        for place, *row in zip(*(flat[name].tolist() for name in (sale, *names)), strict=True):
            lines[place].append(tuple(row))
    rows = zip(*(flat[name].tolist() for name in SALE_PARTS), strict=True)
    return sorted((*row, tuple(sorted(lines[place]))) for place, row in enumerate(rows))


def test_a_merge_and_the_way_to_the_disk_and_back_change_no_line():
    first, second = flat_run(1), flat_run(2)
    together = merge([sort_flat(first), sort_flat(second)])
    assert (np.diff(together["at_s"]) >= 0).all()
    assert sales_of(together) == sorted(sales_of(first) + sales_of(second))
    # The reader's dictionaries have the words in another order.
    others = Dictionaries()
    others.map("store", [b"\x02", b"x", b"\x00"])
    others.map("kind", ["CHF"])
    others.map("product", [b'{"external_id":"7"}'])
    back = read_flat(encode_parts(together, dictionaries()), others)
    coded = {"store", "kind", "product"}
    for name in set(back) - coded:
        assert back[name].tolist() == together[name].tolist(), name
    spelled = [dictionaries().products.values[code] for code in together["product"].tolist()]
    assert [others.products.values[code] for code in back["product"].tolist()] == spelled
    kinds = [(others.currencies.values[kind >> 1], kind & 1) for kind in back["kind"].tolist()]
    assert kinds == [(dictionaries().currencies.values[kind >> 1], kind & 1) for kind in together["kind"].tolist()]
    for name, scale in {"quantity": 500_000, "other_units": 1_000_000}.items():
        part = read_part(name, encode_parts(together, dictionaries())[name], others)
        assert part[scale_of(name)].tolist() == [scale]


def test_the_sales_of_erased_customers_lose_only_the_customer():
    flat = flat_run(3)
    left, erased = split_erased(sort_flat(flat), np.array([2, 5]))
    sales = sales_of(flat)
    assert sales_of(left) == [sale for sale in sales if sale[0] not in {2, 5}]
    assert sales_of(erased) == sorted((ERASED, *sale[1:]) for sale in sales if sale[0] in {2, 5})
    assert len(sales_of(erased)) > 3


@pytest.mark.parametrize("slices_max", [0, 2_000])
@pytest.mark.parametrize("passing", [[], [3], [1, 2, 8], [*range(1, 9)]])
def test_lines_are_picked_by_their_products(monkeypatch, slices_max, passing):
    monkeypatch.setattr(sales_runs, "SLICES_MAX", slices_max)
    flat = sort_flat(flat_run(4))
    run = SalesRun(RUN, group_by_product(flat))
    table = np.isin(np.arange(9), passing)
    sale, total = run.pick_lines(table[run.parts["product"]], "sale", "total")
    wanted = table[flat["product"]]
    assert (sale.tolist(), total.tolist()) == (flat["sale"][wanted].tolist(), flat["total"][wanted].tolist())


@pytest.mark.parametrize("zone", ["UTC", "America/St_Johns"])
def test_a_window_is_the_same_where_the_day_goes_back(zone):
    """In St. John's the clock went from one minute past midnight back to the day before."""
    midnight = int(datetime(2010, 11, 7, 2, 30, tzinfo=UTC).timestamp())
    at_s = np.arange(midnight - 3_600, midnight + 7_200, 20)
    days = [datetime.fromtimestamp(int(at), ZoneInfo(zone)).date().toordinal() - EPOCH_ORDINAL for at in at_s]
    first = min(days)
    run = SalesRun(RUN, {"customer": np.arange(at_s.size), "at_s": at_s})
    for window in ((first, first), (first + 1, first + 1), (first, first + 1), (first + 1, first), ALL_DAYS):
        chosen = select_window(run, window, Zone(zone))
        wanted = [place for place, day in enumerate(days) if window[0] <= day <= window[1]]
        assert chosen.of("customer").tolist() == wanted
        assert np.flatnonzero(chosen.has(np.arange(at_s.size))).tolist() == wanted
    assert run.is_in_order is (zone == "UTC")
