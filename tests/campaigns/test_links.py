"""Links in the texts of a campaign: one for all recipients of a variant, or one for each recipient."""

import pytest
from tests.links.test_links import HOST, host

from regulars.campaigns.preview import PreviewedCustomers
from regulars.links.marks import SAMPLE_CODE

__all__ = ["host"]

LONG = "https://shop.example/" + "a" * 300
TEXT = f'Hello {{{{ profile.first_name }}}}: {{{{ link("{LONG}") }}}}'


def links(desk):
    return [word for text in desk.gateway.sent for word in text.body.split() if word.startswith(HOST)]


@pytest.mark.parametrize(("personal", "expected"), [(False, 1), (True, 4)])
def test_recipients_share_the_links_of_a_campaign_unless_each_gets_their_own(desk, host, personal, expected):
    people = desk.crowd(4)
    campaign = desk.send(variants=[{"text": TEXT}], personal_links=personal)
    desk.work()
    assert desk.outcomes(campaign) == {"sent": 4}
    assert len(links(desk)) == 4
    assert len(set(links(desk))) == expected
    rows = desk.sql("SELECT origin_kind, origin_id, step, profile_id FROM links WHERE organization_id = %s")
    assert {row[:3] for row in rows} == {("campaign", campaign, "1")}
    assert {row[3] for row in rows} == (set(people) if personal else {None})


def test_the_cost_and_the_preview_count_a_link_with_its_real_length(desk, host):
    desk.crowd(2)
    assert desk.estimate(variants=[{"text": TEXT}]).size.parts == 2
    [shown] = desk.preview(PreviewedCustomers.RANDOM, variants=[{"text": TEXT}])
    assert f"{HOST}/l/{SAMPLE_CODE}" in shown.body
    assert shown.measured.parts == 1
