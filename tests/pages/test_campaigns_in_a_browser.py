"""With a browser: from a segment to a campaign that is sent and to a STOP. Without a script,
tests/pages/test_campaigns.py sends the same forms."""

import re

from playwright.sync_api import expect
from tests.support.browser import WAIT_MS

expect.set_options(timeout=WAIT_MS)


def test_a_segment_becomes_a_campaign_that_is_sent_and_answered_with_stop(tab, marketer, shop):
    tab.goto(marketer.url(f"/segments/{shop.segment}"))
    tab.get_by_role("link", name="Text this segment").first.click()
    tab.get_by_label("Name").fill("Spring preview")
    tab.get_by_role("button", name="Create draft").click()
    # The script replaces the field; until it has run, the label leads to one that will be hidden.
    tab.wait_for_load_state()
    text = tab.get_by_label("Text", exact=True)
    text.fill('Hello {{ profile.first_name | default("you") }}, it’s spring.')
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
