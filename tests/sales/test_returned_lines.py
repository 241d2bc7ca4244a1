"""Which purchase a returned line belongs to, compared with a plain search that knows no stack and no order of arrival."""

import random

import pytest

from regulars.sales.returned_lines import RETURN_WITHIN_US, CustomerSale, match_returns, net_cents, returned_totals

DAY = 86_400_000_000
SEEDS = 2_000


def purchase(key, at, *lines, currency="EUR"):
    return CustomerSale(key, at, key, False, currency, sum(cents for _, cents in lines), lines)


def a_return(key, at, *lines, currency="EUR"):
    return CustomerSale(key, at, key, True, currency, sum(cents for _, cents in lines), lines)


def test_a_return_takes_from_the_latest_purchase_of_the_product():
    sales = [
        purchase("old", 0, ("A", 50)),
        purchase("new", DAY, ("A", 50), ("B", 20)),
        a_return("r", 2 * DAY, ("A", 50)),
    ]
    assert match_returns(sales) == ({"new": 50}, {})


def test_what_one_purchase_cannot_cover_is_taken_from_the_one_before():
    sales = [purchase("old", 0, ("A", 50)), purchase("new", DAY, ("A", 30)), a_return("r", 2 * DAY, ("A", 90))]
    assert match_returns(sales) == ({"new": 30, "old": 50}, {"r": 10})


@pytest.mark.parametrize(
    ("bought", "returned"),
    [
        (purchase("p", 0, ("A", 50)), a_return("r", DAY, ("B", 50))),
        (purchase("p", 0, ("A", 50)), a_return("r", DAY, (None, 50))),
        (purchase("p", 0, (None, 50)), a_return("r", DAY, (None, 50))),
        (purchase("p", 0, ("A", 50)), a_return("r", DAY, ("A", 50), currency="CHF")),
        (purchase("p", 0, ("A", 50)), a_return("r", RETURN_WITHIN_US + 1, ("A", 50))),
        (purchase("s", DAY, ("A", 50)), a_return("r", DAY, ("A", 50))),
    ],
)
def test_another_product_currency_or_time_matches_nothing(bought, returned):
    assert match_returns([bought, returned]) == ({}, {"r": 50})


def test_of_two_tickets_at_the_same_time_the_one_with_the_lower_id_is_the_earlier():
    sales = [purchase("p1", DAY, ("A", 50)), purchase("p2", DAY, ("A", 50)), a_return("r", DAY, ("A", 60))]
    assert match_returns(sales) == ({"p2": 50, "p1": 10}, {})


def test_the_net_of_a_discounted_ticket_is_never_below_nothing():
    assert net_cents(80, 100) == 0
    assert net_cents(80, 30) == 50


def test_a_minus_sign_on_the_lines_of_a_return_changes_nothing():
    assert returned_totals([-50, -20]) == returned_totals([50, 20]) == [50, 20]


def random_sales(chance):
    return [
        CustomerSale(
            key,
            chance.randrange(60) * DAY // 2,
            f"T{chance.randrange(10**6):06}",
            chance.random() < 0.4,
            chance.choice(("EUR", "CHF", "GBP")),
            chance.randrange(0, 200),
            [(chance.choice(("A", "B", "C", None)), chance.randrange(-20, 100)) for _ in range(chance.randrange(4))],
        )
        for key in range(chance.randrange(1, 14))
    ]


def search(sales):
    """Every cent of a returned product looks for its purchase by itself."""
    bought = {
        (sale.key, product): sum(cents for code, cents in sale.lines if code == product)
        for sale in sales
        if not sale.is_return
        for product in "ABC"
    }
    returned, unmatched = {}, {}
    for back in sorted((one for one in sales if one.is_return), key=lambda one: (one.at, one.external_id)):
        matched = 0
        for product in "ABC":
            for _ in range(sum(cents for code, cents in back.lines if code == product)):
                candidates = [
                    one
                    for one in sales
                    if not one.is_return
                    and one.currency == back.currency
                    and (one.at, one.external_id) < (back.at, back.external_id)
                    and back.at <= one.at + 30 * DAY
                    and bought[one.key, product] > 0
                ]
                if candidates:
                    latest = max(candidates, key=lambda one: (one.at, one.external_id))
                    bought[latest.key, product] -= 1
                    returned[latest.key] = returned.get(latest.key, 0) + 1
                    matched += 1
        if back.total_cents > matched:
            unmatched[back.key] = back.total_cents - matched
    return returned, unmatched


def test_it_agrees_with_a_plain_search_in_any_order_of_arrival():
    for seed in range(SEEDS):
        chance = random.Random(seed)
        sales = random_sales(chance)
        expected = search(sales)
        chance.shuffle(sales)
        assert match_returns(sales) == expected, seed


def test_the_sales_before_a_purchase_do_not_change_what_was_returned_of_it():
    for seed in range(SEEDS):
        sales = random_sales(random.Random(seed))
        since = 15 * DAY
        later = {one.key for one in sales if one.at >= since}
        whole = {key: cents for key, cents in match_returns(sales).returned_cents.items() if key in later}
        assert match_returns([one for one in sales if one.at >= since]).returned_cents == whole, seed


def test_ten_thousand_sales_of_one_customer_are_matched_in_a_moment():
    sales = [purchase(f"p{n}", n, ("A", 2)) for n in range(10_000)]
    sales += [a_return(f"r{n}", 10_000 + n, ("A", 1)) for n in range(10_000)]
    assert sum(match_returns(sales).returned_cents.values()) == 10_000
