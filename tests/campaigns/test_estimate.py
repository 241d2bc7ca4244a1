"""Before a campaign is sent: whom it reaches and what it costs."""

from collections import Counter
from datetime import timedelta
from decimal import Decimal

import pytest
from tests.support.gateway import ALWAYS

from regulars.campaigns import estimate
from regulars.campaigns.text_sizes import TextGroup, apportion
from regulars.experiments.effect import smallest_effects
from regulars.experiments.sums import WeeklySpend
from regulars.texts.settings.model import Price, SmsSettings

PRICES = {"FR": Price(Decimal("0.049"), "EUR"), "CH": Price(Decimal("0.053"), "CHF")}
OPEN_TO_ALL = {"FR": ALWAYS, "CH": ALWAYS, "GB": ALWAYS}


def settings(**more) -> SmsSettings:
    return SmsSettings(brand="Shop", rules=OPEN_TO_ALL, prices=PRICES, **more)


def test_an_estimate_counts_recipients_parts_and_cost_by_country(desk):
    desk.settings(settings())
    desk.crowd(6)
    desk.person("Beat", "+41791234501", "Beat")
    desk.person("Zoë", "+41791234502", "Zoë")
    desk.person("Anne", "+447400123456", "Anne")
    desk.customer("never asked")
    desk.drain()
    text = "Hello {{ profile.first_name }}, " + "the new collection is here. " * 3 + "See you soon in your store."
    found = desk.estimate(variants=[{"text": text}])
    assert (found.counts.split.may_be_texted, found.recipients, found.held_out, found.sampled) == (9, 9, 0, 9)
    by_country = {it.country: (it.recipients, it.parts, it.cost) for it in found.size.countries}
    # ë is not in the alphabet of the SMS, é is: Zoë's text takes three parts.
    assert by_country == {"FR": (6, 6, Decimal("0.294")), "CH": (2, 4, Decimal("0.212")), "GB": (1, 1, None)}
    assert found.size.cost.amounts == {"EUR": Decimal("0.294"), "CHF": Decimal("0.212")}
    assert found.size.cost.parts_without_price == {"GB": 1}
    [variant] = found.size.variants
    assert (variant.recipients, variant.spread, variant.unicode, variant.forcing) == (9, {1: 8, 3: 1}, 1, [])
    assert (found.parts_if_replaced, found.duration, found.capped) == (None, None, 0)


def test_the_estimate_is_what_the_campaign_sends(desk):
    desk.settings(settings())
    desk.crowd(4)
    desk.person("Beat", "+41791234501", "Beat")
    # Of a range that is not assigned: columns know no country of it.
    desk.person("Kim", "+446195064365", "Kim")
    desk.drain()
    variants = [{"text": "Hello {{ profile.first_name }}, " + "a longer text " * 11}]
    found = desk.estimate(variants=variants)
    campaign = desk.send(variants=variants)
    desk.work()
    sent = desk.sql(
        "SELECT country, recipients, parts FROM campaign_totals WHERE organization_id = %s AND campaign_id = %s"
        " AND outcome = 'sent' AND recipients > 0",
        campaign,
    )
    assert {(it.country, it.recipients, it.parts) for it in found.size.countries} == set(sent)


def test_the_character_that_forces_unicode_is_named_with_its_word(desk):
    desk.settings(settings())
    desk.crowd(2)
    text = "Bonjour, vos soldes commencent demain dès 9 h et durent jusqu\u2019à dimanche soir."
    found = desk.estimate(variants=[{"text": text, "share": 50}, {"text": "Hello", "share": 50}])
    [one] = found.size.variants[0].forcing
    assert (one.character, one.word, one.replacement) == ("\u2019", "jusqu\u2019à", "'")
    assert (found.size.variants[0].spread, found.size.variants[1].spread) == ({2: 1}, {1: 1})
    assert (found.size.parts, found.parts_if_replaced) == (3, 2)


def test_recipients_without_a_text_are_counted_by_reason(desk):
    desk.settings(settings())
    desk.crowd(1)
    desk.person("nameless", "+33699999999")
    desk.drain()
    found = desk.estimate(variants=[{"text": "Hello {{ profile.first_name }}"}])
    assert found.size.skipped == {"missing_value: profile.first_name": 1}
    assert (found.recipients, found.size.parts) == (2, 1)
    # A text that a user is still writing has no parts.
    assert desk.estimate(variants=[{"text": "Hello {{ profile."}]).size.skipped == {"fault": 2}


def test_recipients_who_reached_the_frequency_cap_are_forecast(desk):
    desk.crowd(4)
    desk.send(holdout_percent=50)
    desk.work()
    sent = len(desk.gateway.sent)
    assert desk.estimate().capped == sent


def test_the_slower_of_the_campaign_and_its_sender_decides_the_duration(desk):
    desk.settings(settings(senders={"FR": "SHOP"}, parts_per_second={"SHOP": 0.5}))
    desk.crowd(6)
    assert desk.estimate().duration == timedelta(seconds=12)
    assert desk.estimate(texts_per_hour=360).duration == timedelta(minutes=1)
    desk.settings(settings())
    assert desk.estimate().duration is None


def test_holdouts_are_offered_with_their_sizes_and_effects(desk):
    desk.crowd(20)
    desk.sale("C0", ago=timedelta(days=3))
    desk.drain()
    found = desk.estimate(holdout_percent=15, with_spend=True)
    assert (found.recipients, found.held_out) == (17, 3)
    assert [(it.percent, it.held_out) for it in found.holdouts] == [(5, 1), (10, 2), (15, 3), (20, 4)]
    assert all(effect.cents is None and effect.currency == "EUR" for it in found.holdouts for effect in it.effects)
    assert desk.estimate(holdout_percent=15).holdouts[0].effects == ()


def test_the_smallest_effect_is_that_of_a_plain_power_calculation():
    # 20,000 customers of whom 2,000 are held out; a deviation of 80 euros a week. The error of the difference is
    # 8,000 * sqrt(1/18,000 + 1/2,000) = 188.6 cents, and 2.8016 errors show it in four of five cases.
    spend = WeeklySpend("EUR", 9_000, 380.0, 8_000.0**2, 1_200.0)
    [effect] = smallest_effects([spend], customers=20_000, first=18_000, second=2_000)
    assert effect.cents == pytest.approx(528.3, abs=0.1)
    assert effect.percent == pytest.approx(139.0, abs=0.1)
    # Under 100 buyers are expected among those held out.
    [too_few] = smallest_effects([spend], customers=20_000, first=18_400, second=1_600)
    assert too_few.cents is None
    assert smallest_effects([spend], customers=0, first=0, second=0)[0].cents is None


def test_scaled_numbers_are_whole_and_add_up():
    one, two, three = (TextGroup(1, country, 1, is_unicode=False, reason="") for country in ("FR", "CH", "GB"))
    assert sorted(apportion({one: 1.0, two: 1.0, three: 1.0}, 10).values()) == [3, 3, 4]
    assert apportion({one: 0.4, two: 99.6}, 1_000) == Counter({one: 4, two: 996})
    assert apportion({}, 5) == Counter()


def test_a_country_that_no_sampled_customer_has_is_scaled_from_all(desk, monkeypatch):
    desk.settings(settings())
    desk.crowd(8)
    desk.person("Beat", "+41791234501", "Beat")
    desk.drain()
    monkeypatch.setattr(estimate, "SAMPLE_MAX", 2)
    found = desk.estimate()
    assert found.sampled == 2
    assert {it.country: it.recipients for it in found.size.countries} == {"FR": 8, "CH": 1}
