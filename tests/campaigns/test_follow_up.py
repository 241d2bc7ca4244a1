"""Those who received a campaign and did not buy since become a segment, with a draft for them."""

from datetime import timedelta

import pytest
from tests.support.gateway import ALWAYS

from regulars.campaigns import manage
from regulars.campaigns.follow_up import follow_up
from regulars.kit.ids import SEGMENT
from regulars.kit.refusals import NotPossible
from regulars.texts.settings.model import SmsSettings


def test_who_received_it_and_did_not_buy_since_gets_a_follow_up(desk):
    desk.settings(SmsSettings(brand="Shop", rules={"FR": ALWAYS}, caps=()))
    desk.crowd(4)
    desk.sale("C0", ago=timedelta(days=30))
    campaign = desk.send(name="Spring", holdout_percent=0)
    desk.work()
    desk.sale("C1")
    desk.drain()
    segment, draft = desk.do(lambda tx: follow_up(tx, desk.organization_id, campaign, by="ann@shop.example"))
    assert (segment.row.name, draft.row.name) == ("Spring: received, did not buy", "Spring: follow-up")
    assert (draft.row.state, draft.row.created_by, draft.faults) == ("draft", "ann@shop.example", [])
    assert draft.definition.include == (SEGMENT.encode(segment.row.id),)
    desk.crowd(1)
    desk.act(manage.schedule, draft.row.id, confirmed_recipients=3, is_now=True)
    desk.start()
    desk.work()
    assert desk.outcomes(draft.row.id) == {"sent": 3}
    texted = desk.sql(
        "SELECT profile_id FROM campaign_recipients WHERE organization_id = %s AND campaign_id = %s", draft.row.id
    )
    assert {row[0] for row in texted} == {desk.people[name] for name in ("C0", "C2", "C3")}


def test_a_campaign_that_no_customer_received_has_no_follow_up(desk):
    draft = desk.draft()
    with pytest.raises(NotPossible, match="No customer has received"):
        desk.do(lambda tx: follow_up(tx, desk.organization_id, draft, by="ann@shop.example"))
