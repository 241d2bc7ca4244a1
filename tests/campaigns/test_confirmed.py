"""A campaign that finds more at its start than was confirmed asks before it sends."""

from decimal import Decimal

import pytest
from tests.support.gateway import ALWAYS

from regulars.campaigns import manage
from regulars.campaigns.confirmed_numbers import Question, RecipientsAndCost, read_cost, read_question
from regulars.campaigns.errors import QuestionNotAnswered
from regulars.texts.settings.model import Price, SmsSettings


def test_an_audience_beyond_the_margin_is_a_question_and_sends_nothing(desk):
    desk.crowd(3)
    campaign = desk.send(recipients=2)
    desk.work()
    row = desk.load(campaign).row
    assert (row.state, row.reason) == ("paused", "The audience has 3 recipients and 2 were confirmed. Confirm 3?")
    assert desk.gateway.sent == []
    desk.act(manage.resume, campaign, confirmed_recipients=3)
    desk.start()
    desk.work()
    assert desk.outcomes(campaign) == {"sent": 3}


def test_a_question_is_answered_with_the_numbers_that_were_shown(desk):
    desk.crowd(3)
    campaign = desk.send(recipients=1)
    with pytest.raises(QuestionNotAnswered, match="has 3 recipients and 1 were confirmed"):
        desk.act(manage.resume, campaign)
    with pytest.raises(QuestionNotAnswered, match="nothing was confirmed") as refused:
        desk.act(manage.resume, campaign, shown=Question(2, {}))
    assert refused.value.question.numbers == RecipientsAndCost(3, None)
    assert desk.load(campaign).row.state == "paused"
    assert desk.act(manage.resume, campaign, shown=Question(3, {})).confirmed_recipients == 3
    desk.act(manage.pause, campaign)
    with pytest.raises(QuestionNotAnswered):
        desk.act(manage.resume, campaign, shown=Question(3, {}))


def test_recipients_are_compared_without_those_who_are_held_out(desk):
    desk.crowd(10)
    campaign = desk.send(recipients=8, holdout_percent=20)
    assert desk.load(campaign).row.frozen_at is not None


def test_a_cost_beyond_the_margin_is_a_question_and_sends_nothing(desk):
    price = Price(Decimal("0.05"), "EUR")
    desk.settings(SmsSettings(brand="Shop", rules={"FR": ALWAYS}, prices={"FR": price}))
    desk.crowd(4)
    # The confirmed cost was of texts of one part.
    campaign = desk.send(cost={"EUR": Decimal("0.20")}, variants=[{"text": "A long text. " * 20}])
    desk.work()
    row = desk.load(campaign).row
    assert row.reason == "The texts cost about 0.40 EUR and 0.20 EUR were confirmed. Confirm 0.40 EUR?"
    assert read_question(row.question).numbers == RecipientsAndCost(4, {"EUR": Decimal("0.40")})
    assert desk.gateway.sent == []
    cost = {"EUR": Decimal("0.40")}
    with pytest.raises(QuestionNotAnswered):
        desk.act(manage.resume, campaign, confirmed_cost=cost)
    resumed = desk.act(manage.resume, campaign, confirmed_recipients=4, confirmed_cost=cost)
    assert (resumed.question, read_cost(resumed.confirmed_cost)) == (None, {"EUR": Decimal("0.40")})
    desk.start()
    desk.work()
    assert desk.outcomes(campaign) == {"sent": 4}


def test_an_audience_without_recipients_does_not_end_as_if_it_had_been_sent(desk):
    desk.crowd(1, tier="gold")
    silver = desk.segment({"type": "attribute", "key": "tier", "comparison": "is", "value": "silver"}, name="Silver")
    campaign = desk.send(segment=silver)
    row = desk.load(campaign).row
    assert (row.state, row.reason) == ("paused", "No customer of these segments may be texted.")
