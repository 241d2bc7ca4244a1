"""Pages of other rooms name the campaigns that texts, customers and conditions belong to, and lead to them."""

import html
import re

import psycopg
from tests.pages.test_journey_builder import Builder, blank, keep
from tests.support import samples
from tests.support.drain_queues import drain_queues
from tests.support.journeys import make_campaign
from tests.support.texts import open_at_any_hour, send_order

from regulars.kit.ids import CAMPAIGN, PROFILE, TEXT
from regulars.links.origin_kind import OriginKind
from regulars.texts.request import TextOrder
from regulars.web.access import Role

__all__ = ["Builder", "blank"]


def test_a_text_of_a_campaign_names_it_wherever_it_is_shown(api, marketer, tenant, api_database_url):
    number, organization_id = samples.phone(), tenant.organization_id
    open_at_any_hour(api_database_url, organization_id)
    profile = api.post("/v1/profiles", samples.profile(first_name="Odile")).json()["id"]
    consent = {"phone_number": number, "consent_source": "WEBSITE", "consented_at": samples.ago(days=1)}
    api.post("/v1/subscriptions/opt-in", {**consent, "profile_id": profile})
    campaign = make_campaign(api_database_url, organization_id, name="Spring preview")
    profile_id, campaign_id = PROFILE.decode(profile), CAMPAIGN.decode(campaign)
    order = TextOrder(
        origin_kind=OriginKind.CAMPAIGN, origin_id=campaign_id, step="1", rendered="Hello", profile_id=profile_id
    )
    text = send_order(api_database_url, organization_id, order)
    marketer.post(f"/simulator/{number}/reply", text="When does it begin?")
    drain_queues(api_database_url, organization_id)
    reply = re.search(r"/messages/inbox/(rpl_\w+)", marketer.get("/messages/inbox").text)[1]
    link = f'/campaigns/{campaign}">'
    messages = marketer.get("/messages").text
    conversation = messages.partition("/messages/numbers/")[2].partition('"')[0]
    for page in (
        messages,
        marketer.get(f"/messages/{TEXT.encode(text)}").text,
        marketer.get(f"/messages/numbers/{conversation}").text,
        marketer.get(f"/messages/inbox/{reply}").text,
        marketer.get(f"/customers/{profile}").text,
        marketer.get("/search", q="spring prev").text,
    ):
        assert "Spring preview" in page.partition(link)[2][:200]
    assert marketer.get("/search", q=campaign).headers["location"].endswith(f"/campaigns/{campaign}")


def test_a_segment_leads_to_a_campaign_and_names_those_that_use_it(
    marketer, visitor_as, tenant, analysis, api_database_url
):
    saved = marketer.post("/segments/save", name="Regulars", **{"r~kind": "all", "r.0~kind": "named"})
    segment = saved.headers["location"].rpartition("/")[2]
    for page in (f"/segments/{segment}", f"/segments/{segment}/members"):
        assert f'/campaigns/new?segment={segment}"' in marketer.get(page).text
        assert "/campaigns/new" not in visitor_as(Role.ANALYST).get(page).text
    assert "Regulars" in marketer.get("/campaigns/new", segment=segment).text
    campaign = make_campaign(api_database_url, tenant.organization_id, segment=segment, name="Spring preview")
    link = f'/campaigns/{campaign}">Spring preview</a>'
    assert link in marketer.get(f"/segments/{segment}").text
    assert link in marketer.get(f"/segments/{segment}/delete").text


def test_the_home_page_names_a_campaign_that_a_person_decides_about(api, marketer, tenant, api_database_url):
    api.post("/v1/stores", samples.store())
    campaign = make_campaign(api_database_url, tenant.organization_id, name="Spring preview")
    with psycopg.connect(api_database_url) as connection:
        pause = "UPDATE campaigns SET state = 'paused', reason = 'Confirm 1,200?', due_at = now() WHERE id = %s"
        connection.execute(pause, [CAMPAIGN.decode(campaign)])
    home = marketer.get("/").text
    assert "Spring preview is paused" in home.partition(f"/campaigns/{campaign}")[2][:200]
    assert "Confirm 1,200?" in home
    # The navigation counts it.
    assert '/campaigns">Campaigns<span class="count">1<' in home


def test_a_campaign_is_picked_in_a_branch_by_its_name(blank, tenant, api_database_url):
    assert "Received the campaign" not in blank.page(filter="1")
    campaign = make_campaign(api_database_url, tenant.organization_id, name="Spring preview")
    blank.add("1", "branch")
    assert "Received the campaign" in blank.page(step="1")
    assert keep(blank, "1", {"kind": "received_campaign", "campaign": campaign, "is": "no"}).status_code == 303
    assert f'<option value="{campaign}" selected>Spring preview</option>' in blank.page(step="1")
    assert blank.names() == ["Did not receive the campaign “Spring preview”?"]
    assert blank.save().status_code == 303
    journey = html.unescape(blank.visitor.get(f"/journeys/{blank.journey}").text)
    assert "Did not receive the campaign “Spring preview”" in journey
