"""With a browser: from a segment to a campaign that is scheduled, sent at once instead, and answered with STOP. Without a
script, tests/pages/test_campaigns.py sends the same forms."""

import re
from datetime import datetime, timedelta

from playwright.sync_api import expect
from tests.pages.campaign_shop import TEXTED
from tests.support.browser import DESKTOP, PHONE, WAIT_MS
from tests.support.hand import Hand

CAMPAIGN_CLICKS_MAX = 9

expect.set_options(timeout=WAIT_MS)


def test_a_campaign_is_scheduled_in_nine_clicks_then_sent_and_answered_with_stop(tab, marketer, shop):
    assert marketer.post("/segments/save", name="Another", **TEXTED).is_redirect
    hand = Hand(tab)
    tab.goto(marketer.url("/campaigns"))
    hand.click(tab.get_by_role("link", name="New campaign"))
    hand.write(tab.get_by_label("Name of the campaign"), "Spring preview")
    hand.choose(tab.get_by_label("Segment"), "Everybody")
    hand.click(tab.get_by_role("button", name="Create draft"))
    text = tab.get_by_role("textbox", name="Text", exact=True)
    hand.write(text, 'Hello {{ profile.first_name | default("you") }}, it’s spring.')
    hand.click(tab.get_by_label("At a date and time"))
    start = tab.get_by_label("Date and time", exact=True)
    at = datetime.fromisoformat(start.input_value()) + timedelta(days=1)
    hand.write_time(start, f"{at:%Y-%m-%dT%H:%M}")
    hand.click(tab.get_by_role("button", name="Save and review…"))
    # What is sent, to whom and when is said before it is scheduled.
    for words in ("3 customers get a text", "Everybody", "it’s spring", "UTC"):
        expect(tab.locator("#confirm")).to_contain_text(words)
    tab.set_viewport_size(PHONE)
    assert min(button.bounding_box()["x"] for button in tab.locator("#confirm .dialog-foot .button").all()) > 0
    tab.set_viewport_size(DESKTOP)
    hand.click(tab.get_by_role("button", name=re.compile(rf"^Schedule for {at.day} .* 10:00")))
    expect(tab.locator("#head")).to_contain_text("Scheduled")
    assert hand.clicks <= CAMPAIGN_CLICKS_MAX

    tab.get_by_role("button", name="Pause campaign").click()
    tab.get_by_role("link", name="Edit campaign").click()
    tab.get_by_label("As soon as I confirm it").check()
    expect(tab.locator("#measured output")).to_have_text("3")
    tab.get_by_role("button", name="Replace with").click()
    expect(tab.locator("#f-v1_text")).to_have_value(re.compile("it's spring"))
    tab.get_by_role("button", name="Show longest text").click()
    expect(tab.locator("#measured .text-in")).to_contain_text("it's spring")
    tab.get_by_role("button", name="Save and review…").click()
    tab.get_by_role("button", name="Send 3 texts now").click()
    expect(tab.get_by_role("heading", level=1)).to_have_text("Spring preview")
    campaign = tab.url
    shop.work()
    expect(tab.locator("#campaign .lead")).to_have_text("Finished; no more texts leave")
    expect(tab.locator("#campaign .is-sum dd").first).to_contain_text("3")
    marketer.post(f"/simulator/{shop.numbers[0]}/reply", text="STOP")
    shop.work(1)
    tab.goto(campaign)
    expect(tab.get_by_role("region", name="By variant").locator("tbody td").last).to_have_text("1")
    tab.get_by_role("link", name="Show all recipients").click()
    expect(tab.locator("tbody tr")).to_have_count(3)
