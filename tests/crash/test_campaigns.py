"""Tests that the checks of campaigns find each kind of damage, planted after a campaign has ended."""

from types import SimpleNamespace

import pytest
from tests.campaigns.conftest import desk  # noqa: F401  # a fixture
from tests.crash.campaigns import check_campaign
from tests.crash.external import Arrival
from tests.crash.marketers import Campaign

from regulars.kit.ids import TEXT

DAMAGE = {
    "a total is too large": (
        "UPDATE campaign_totals SET recipients = recipients + 1 WHERE organization_id = %s AND outcome = 'sent'",
        "C4: .* add up to",
    ),
    "a recipient has another outcome": (
        "UPDATE campaign_recipients SET outcome = 'failed' WHERE organization_id = %s AND outcome = 'sent'",
        "C4: more rows",
    ),
    "a text has another state": ("UPDATE texts SET state = 'failed' WHERE organization_id = %s", "C4: .* do not say"),
    "a person has two texts": (
        """
        UPDATE texts SET profile_id = (
            SELECT first.profile_id FROM texts AS first WHERE first.organization_id = texts.organization_id LIMIT 1
        )
        WHERE organization_id = %s
        """,
        "C1: 1 people",
    ),
    "it has not ended": ("UPDATE campaigns SET state = 'sending' WHERE organization_id = %s", "STUCK"),
}


@pytest.fixture
def sent(desk):  # noqa: F811  # the fixture
    desk.crowd(4)
    campaign_id = desk.send()
    desk.work()
    rows = desk.sql("SELECT id, phone_number FROM texts WHERE organization_id = %s")
    arrivals = [Arrival(10.0, "", TEXT.encode(text), number, "", is_taken=True) for text, number in rows]
    return SimpleNamespace(desk=desk, campaign=Campaign(campaign_id), arrivals=arrivals)


def check(sent):
    shop = SimpleNamespace(organization_id=sent.desk.organization_id, tag="shop")
    return check_campaign(sent.desk.database.url, shop, sent.campaign, sent.arrivals)


def test_a_sound_campaign_passes(sent):
    assert check(sent) == {"sent": 4}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_found(sent, damage):
    statement, finding = DAMAGE[damage]
    sent.desk.alter(statement)
    with pytest.raises(AssertionError, match=finding):
        check(sent)


def test_a_number_that_got_it_twice_is_found(sent):
    sent.arrivals.append(sent.arrivals[0])
    with pytest.raises(AssertionError, match="C1: 1 numbers"):
        check(sent)


def test_a_text_that_left_during_a_pause_is_found(sent):
    sent.campaign.pauses.append((9.0, 20.0))
    assert check(sent) == {"sent": 4}
    sent.campaign.pauses.append((7.0, 20.0))
    with pytest.raises(AssertionError, match=r"C3: 4 texts left up to 3.0 s"):
        check(sent)


def test_a_sum_that_did_not_add_up_for_a_moment_is_found(sent):
    sent.campaign.faults.append("C4: sending with 4 recipients, and outcomes add up to 3")
    with pytest.raises(AssertionError, match="C4: sending"):
        check(sent)
