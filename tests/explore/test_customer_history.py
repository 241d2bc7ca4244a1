"""What tickets say of a customer, how facts are merged into one line, and what is drawn of them."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from regulars.consent.model import LedgerEntry
from regulars.explore.customers.timeline import PAGE_ENTRIES, merge
from regulars.sales.purchase_history import months_back, read_history
from regulars.sales.tickets import CustomerTicket
from regulars.web.charts import ConsentChange, bar_chart, consent_strip, nice_top, stacked_chart

PARIS = ZoneInfo("Europe/Paris")
NOW = datetime(2026, 11, 14, 15, 0, tzinfo=UTC)


def ticket(number: int, days_ago: float, *, kind: str = "PURCHASE", cents: int = 1000, currency: str = "EUR"):
    moment = NOW - timedelta(days=days_ago)
    return CustomerTicket(UUID(int=1), UUID(int=number), f"T-{number}", kind, moment, currency, cents, UUID(int=2), 1)


def entry(sequence: int, days_ago: float, *, kind: str = "OPT_IN", outcome: str = "created"):
    moment = NOW - timedelta(days=days_ago)
    return LedgerEntry(sequence, kind, outcome, moment, moment, moment, b"", b"", b"", None, None)


def test_money_is_net_of_returns_and_apart_by_currency():
    tickets = [ticket(1, 40), ticket(2, 20, kind="RETURN", cents=300), ticket(3, 10, currency="CHF", cents=5000)]
    history = read_history(tickets, now=NOW, zone=PARIS)
    assert history.net() == [("CHF", 5000), ("EUR", 700)]
    assert (history.purchases, history.total.returns) == (2, 1)
    assert history.last_purchase_at == NOW - timedelta(days=10)


def test_a_month_with_only_a_return_is_a_ring_and_months_are_those_of_the_zone():
    # Half past midnight on 1 November in Paris is still October in UTC.
    first = CustomerTicket(
        UUID(int=1), UUID(int=9), "T", "PURCHASE", datetime(2026, 10, 31, 23, 30, tzinfo=UTC), "EUR", 1, UUID(int=2), 1
    )
    history = read_history([first, ticket(2, 35, kind="RETURN")], now=NOW, zone=PARIS, months=3)
    assert [dot.kind for dot in history.dots] == ["", "back", "on"]
    assert (history.months_bought, history.months_only_returned) == (1, 1)


def test_a_rhythm_needs_three_days_with_a_purchase():
    assert read_history([ticket(1, 1), ticket(2, 1.01), ticket(3, 20)], now=NOW, zone=PARIS).usual_days is None
    three = [ticket(1, 1), ticket(2, 11), ticket(3, 21)]
    assert read_history(three, now=NOW, zone=PARIS).usual_days == 10


def test_the_timeline_is_one_line_page_by_page_without_a_fact_twice():
    tickets = [ticket(n, n) for n in range(1, 30)]
    entries = [entry(n, n + 0.5) for n in range(1, 11)]
    seen, before = [], None
    while True:
        page = merge(tickets, entries, before=before)
        seen += page.entries
        assert page.total == 39
        if page.older is None:
            break
        before = page.older
    assert len(seen) == len({entry_.key for entry_ in seen}) == 39
    assert [entry_.at for entry_ in seen] == sorted((entry_.at for entry_ in seen), reverse=True)
    assert len(merge(tickets, entries).entries) == PAGE_ENTRIES


@pytest.mark.parametrize(("kind", "count"), [("all", 4), ("tickets", 1), ("returns", 1), ("consent", 2)])
def test_the_timeline_shows_one_kind(kind, count):
    tickets = [ticket(1, 1), ticket(2, 2, kind="RETURN")]
    entries = [entry(1, 3), entry(2, 2, kind="OPT_OUT", outcome="unsubscribed")]
    assert len(merge(tickets, entries, kind=kind).entries) == count


@pytest.mark.parametrize("before", ["", "x", "~", "2026-01-01~", "nonsense~5", "2026-13-01T00:00:00Z~5"])
def test_an_unknown_position_shows_the_first_page(before):
    assert len(merge([ticket(1, 1)], [], before=before).entries) == 1


def test_a_superseded_consent_is_neither_yes_nor_no():
    [entry_] = merge([], [entry(1, 1, outcome="superseded")]).entries
    assert (entry_.is_opt_in, entry_.is_withdrawal, entry_.title) == (False, False, "Opt-in, superseded")


def test_bars_start_at_nought_and_returns_hang_below():
    chart = bar_chart([0.0, 50.0, -20.0, 100.0], titles=["a", "b", "c", "d"], labels=list("abcd"), is_last_partial=True)
    assert [bar.kind for bar in chart.bars] == ["c1", "c1", "c4", "c1 is-open"]
    assert [rule.label for rule in chart.grid_lines] == ["0", "50", "100", "−20"]
    assert chart.bars[2].y == chart.grid_lines[0].y
    assert float(chart.bars[2].y) + float(chart.bars[2].height) == float(chart.grid_lines[-1].y) == 144.0


def test_the_compared_period_is_a_line_over_the_bars_with_gaps_where_there_was_none():
    chart = bar_chart(
        [1.0, 2.0, 3.0], titles=list("abc"), labels=list("abc"), is_last_partial=False, compared=[4.0, None, 2.0],
        marked={1: "Armistice"},
    )  # fmt: skip
    assert [(step.x, step.next_y) for step in chart.steps] == [("0.00%", None), ("66.67%", None)]
    assert [rule.label for rule in chart.grid_lines] == ["0", "2", "4"]
    assert [(mark.x, mark.label) for mark in chart.marks] == [("33.33%", "Armistice")]


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([4000.0, -80.0], ["0", "2k", "4k"]),
        ([0.0, -80.0], ["0", "−80"]),
        ([100.0, -1000.0], ["0", "100", "−1k"]),
        ([100.0, -20.0], ["0", "50", "100", "−20"]),
    ],
)
def test_labels_of_the_vertical_axis_do_not_overlap(values, labels):
    chart = bar_chart(values, titles=["a", "b"], labels=["a", "b"], is_last_partial=False)
    assert [rule.label for rule in chart.grid_lines] == labels
    heights = sorted(float(rule.y) for rule in chart.grid_lines)
    assert min(high - low for low, high in pairwise(heights)) >= 12


def test_stacked_bars_stand_on_each_other():
    chart = stacked_chart([[10.0], [5.0]], titles=[["old"], ["new"]], labels=["Nov"], is_last_partial=False)
    foot, top = chart.bars
    assert float(top.y) + float(top.height) == pytest.approx(float(foot.y))
    assert (foot.kind, top.kind) == ("c1", "c2")


@pytest.mark.parametrize(
    ("value", "top"),
    [(0, 1.0), (-5, 1.0), (1, 2), (1.1, 2), (2.1, 4), (5, 6), (12, 20), (2_510, 3_000), (83_860, 100_000)],
)
def test_the_top_of_an_axis_is_a_round_number(value, top):
    assert nice_top(value) == top


def test_the_strip_shows_nothing_said_then_each_state():
    start, end = NOW - timedelta(days=100), NOW
    changes = [
        ConsentChange(NOW - timedelta(days=50), is_opt_in=True),
        ConsentChange(NOW - timedelta(days=25), is_opt_in=False),
    ]
    strip = consent_strip(changes, start=start, end=end, marked_at=NOW - timedelta(days=40))
    assert [span.kind for span in strip.spans] == ["none", "yes", "no"]
    assert strip.marked_x == "196.8"
    # A moment outside of what is drawn stands at the edge.
    assert consent_strip(changes, start=start, end=end, marked_at=NOW + timedelta(days=9)).marked_x == "328.0"


def test_months_run_over_the_turn_of_the_year():
    assert months_back(datetime(2026, 2, 1, tzinfo=UTC).date(), 4) == [(2025, 10), (2025, 11), (2026, 0), (2026, 1)]
