import random
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from babel import Locale
from babel.numbers import format_currency, format_decimal

from regulars.web.format import LOCALES, NOTHING, Format, short_external_id, short_id

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
MOMENT = datetime(2026, 11, 14, 15, 42, 7, tzinfo=UTC)
NBSP, NARROW = "\N{NO-BREAK SPACE}", "\N{NARROW NO-BREAK SPACE}"


def reader(locale: str, zone: str = "Europe/Paris") -> Format:
    return Format(locale, zone, now=NOW)


@pytest.mark.parametrize(
    ("locale", "written"),
    [
        ("en-GB", ("€1,284.30", f"CHF{NBSP}412.80", "61,877", "68.4%", "14 Nov 2026, 16:42")),
        (
            "fr-FR",
            (f"1{NARROW}284,30{NBSP}€", f"412,80{NBSP}CHF", f"61{NARROW}877", f"68,4{NBSP}%", "14 nov. 2026, 16:42"),
        ),
        ("fr-CH", (f"1{NARROW}284,30{NBSP}€", f"412,80{NBSP}CHF", f"61{NARROW}877", "68,4%", "14 nov. 2026, 16:42")),
        ("de-CH", (f"EUR{NBSP}1’284.30", f"CHF{NBSP}412.80", "61’877", "68.4%", "14.11.2026, 16:42")),
    ],
)
def test_it_writes_the_table_of_the_design(locale, written):
    formats = reader(locale)
    assert written == (
        formats.money(128430, "EUR"),
        formats.money(41280, "CHF"),
        formats.number(61877),
        formats.share(684, 1000),
        formats.full_moment(MOMENT),
    )


@pytest.mark.parametrize("locale", LOCALES)
def test_every_locale_that_is_offered_writes_everything(locale):
    formats = reader(locale)
    assert "1" in formats.money(-100, "CHF")
    assert formats.moment(MOMENT).endswith("16:42")


@pytest.mark.parametrize("locale", LOCALES)
def test_numbers_are_written_as_babel_writes_them(locale):
    formats, babel_locale = reader(locale), Locale.parse(locale, sep="-")
    chance = random.Random(locale)

    def written_by_babel(amount: Decimal, currency: str, **options: Any) -> str:
        text = format_currency(amount, currency, locale=babel_locale, **options)
        # Babel writes "CHF412.80"; the space is ours.
        return re.sub(rf"^{currency}(?=\d)", f"{currency}{NBSP}", text)

    for number in [0, 5, 99, 100, 1000, *(chance.randrange(10**digits) for digits in range(1, 16) for _ in range(10))]:
        assert formats.number(number) == format_decimal(number, locale=babel_locale)
        for currency in ("EUR", "CHF", "GBP", "USD"):
            amount = Decimal(number) / 100
            assert formats.money(number, currency) == written_by_babel(amount, currency)
            whole = written_by_babel(Decimal(number), currency).replace(
                babel_locale.number_symbols["latn"]["decimal"] + "00", "", 1
            )
            assert formats.money_whole(number * 100, currency) == whole
        # A price of a part may have any currency; some have no decimals, or three.
        for currency in ("EUR", "CHF", "JPY", "ISK", "RSD", "TND"):
            assert formats.money(number, currency) == written_by_babel(Decimal(number) / 100, currency)
            price = Decimal(number) / 1000
            assert formats.price(price, currency) == written_by_babel(price, currency, decimal_quantization=False)


def test_a_negative_amount_has_a_real_minus_sign():
    assert reader("en-GB").money(-1990, "EUR") == "−€19.90"
    assert reader("fr-FR").money(-1990, "EUR") == f"−19,90{NBSP}€"
    assert reader("de-CH").money(-1990, "CHF") == f"−CHF{NBSP}19.90"
    assert reader("en-GB").number(-5) == "−5"


def test_large_sums_of_overviews_have_no_cents():
    assert reader("en-GB").money_rounded(999_999, "EUR") == "€9,999.99"
    assert reader("en-GB").money_rounded(1_000_049, "EUR") == "€10,000"
    assert reader("fr-FR").money_rounded(1_284_350, "EUR") == f"12{NARROW}844{NBSP}€"
    assert reader("de-CH").money_rounded(-2_000_000, "CHF") == f"−CHF{NBSP}20’000"


def test_several_currencies_are_one_line_each_and_the_larger_comes_first():
    assert reader("en-GB").monies([("EUR", 8600), ("CHF", 245510)]) == [f"CHF{NBSP}2,455.10", "€86.00"]


@pytest.mark.parametrize(
    ("part", "whole", "shown"),
    [(0, 10, "0%"), (10, 10, "100%"), (1, 100_000, "<0.1%"), (99_999, 100_000, "99.9%"), (1, 3, "33.3%"), (1, 0, "–")],
)
def test_a_share_never_rounds_to_nothing_or_to_all(part, whole, shown):
    assert reader("en-GB").share(part, whole) == shown


def test_the_year_is_written_when_it_is_not_this_one():
    assert reader("en-GB").day(MOMENT) == "14 Nov"
    assert reader("en-GB").day(date(2024, 2, 29)) == "29 Feb 2024"


def test_a_list_names_the_weekday_of_the_last_fourteen_days():
    formats = reader("en-GB")
    assert formats.list_day(MOMENT) == "Sat 14 Nov"
    assert formats.list_day(NOW - timedelta(days=14)) == "1 Nov"


def test_times_are_the_organization_s_and_the_element_carries_utc():
    assert reader("en-GB", "America/New_York").clock(MOMENT) == "10:42"
    tag = reader("en-GB").time_tag(MOMENT, seconds=True)
    assert tag == '<time datetime="2026-11-14T15:42:07.000Z">14 Nov, 16:42:07</time>'


@pytest.mark.parametrize(
    ("seconds", "shown"), [(11, "11 s ago"), (90, "1 min ago"), (7200, "2 h ago"), (-5, "0 s ago")]
)
def test_ago_is_in_the_largest_unit(seconds, shown):
    assert reader("en-GB").ago(NOW - timedelta(seconds=seconds)) == shown


def test_an_unknown_locale_or_zone_still_shows_the_page():
    assert Format("xx-QQ", "Nowhere/Land", now=NOW).clock(MOMENT) == "15:42"


def test_a_page_of_a_list_says_from_when_to_when():
    assert reader("en-GB").span(MOMENT, MOMENT - timedelta(days=9)) == "5 Nov to 14 Nov"
    assert reader("en-GB").span(MOMENT, MOMENT) == "14 Nov"


@pytest.mark.parametrize(
    ("number", "shown"), [(0, "0 tickets"), (1, "1 ticket"), (2, "2 tickets"), (1284, "1,284 tickets")]
)
def test_a_count_has_its_noun(number, shown):
    assert reader("en-GB").count(number, "ticket") == shown


def test_a_count_takes_the_verb_along_and_stops_at_a_limit():
    assert reader("en-GB").count(1, "reply needs", "replies need") == "1 reply needs"
    assert reader("en-GB").count(100, "delivery waits", "deliveries wait", count_max=100) == "100 deliveries wait"
    assert reader("en-GB").count(101, "delivery waits", "deliveries wait", count_max=100) == "100+ deliveries wait"


@pytest.mark.parametrize(
    ("number", "shown"), [(3, "+3 opt-ins"), (1, "+1 opt-in"), (0, "0 opt-ins"), (-0, "0 opt-ins"), (-2, "−2 opt-ins")]
)
def test_a_change_has_a_sign_unless_it_is_nothing(number, shown):
    assert reader("en-GB").change(number, "opt-in") == shown


def test_an_amount_of_nothing_has_no_sign():
    for cents in (0, -0):
        assert reader("en-GB").money(cents, "EUR") == "€0.00"
    assert reader("en-GB").number(-0.0) == "0"


def test_an_id_is_shortened_in_the_middle():
    assert short_id("prof_01h455vb4pex5vsknk084sn02q") == "prof_01h4…n02q"
    assert short_id("C-100482") == "C-100482"
    assert short_external_id("LYON-01/2026-11-14/000431") == "LYON-01/2026-11-14/000431"
    assert short_external_id("https://shop.example/customers/4711-0815") == "https://shop.example…711-0815"


def test_figures_of_a_column_have_the_same_number_of_decimals():
    english, french = reader("en-GB"), reader("fr-FR")
    shares = [english.aligned_share(part, 1000) for part in (0, 30, 25, 1000)]
    assert shares == ["0.0%", "3.0%", "2.5%", "100.0%"]
    assert french.aligned_share(3, 100) == f"3,0{NBSP}%"
    assert english.aligned_share(1, 0) == NOTHING
    deltas = [english.aligned_delta(now, 1000) for now in (900, 911, 1000, 2000, 0)]
    assert deltas == ["−10.0%", "−8.9%", "0.0%", "+100.0%", "−100.0%"]
    assert french.aligned_delta(110, 100) == f"+10,0{NBSP}%"
    assert english.aligned_delta(1, 0) == NOTHING
    assert [english.aligned_number(number) for number in (2, 1234.567)] == ["2.00", "1,234.57"]
