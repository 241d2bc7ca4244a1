"""Which purchase a returned line belongs to, compared with a plain search that knows no stack and no order of arrival."""

import random

from regulars.sales.returned_lines import CustomerSale, match_returns, net_cents, returned_totals

DAY = 86_400_000_000
SEEDS = 2_000


def test_the_net_of_a_discounted_ticket_is_never_below_nothing():
    assert net_cents(80, 100) == 0
    assert net_cents(80, 30) == 50


def test_a_minus_sign_on_the_lines_of_a_return_changes_nothing():
    assert returned_totals([-50, -20]) == returned_totals([50, 20]) == [50, 20]


def random_sales(chance):
    return [
        CustomerSale(
            key,
            chance.randrange(70) * DAY // 2,
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
    sales = [CustomerSale(f"p{n}", n, f"p{n}", False, "EUR", 2, [("A", 2)]) for n in range(10_000)]
    sales += [CustomerSale(f"r{n}", 10_000 + n, f"r{n}", True, "EUR", 1, [("A", 1)]) for n in range(10_000)]
    assert sum(match_returns(sales).returned_cents.values()) == 10_000
