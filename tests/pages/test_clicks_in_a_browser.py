"""With a browser: how many clicks a marketer needs, see `tests.support.hand`."""

import re

import pytest
from playwright.sync_api import expect
from tests.pages.segment_shop import open_counted_shop
from tests.support.browser import WAIT_MS
from tests.support.hand import Hand
from tests.support.shared_tabs import tab_of
from tests.support.visitor import Visitor

SEGMENT_CLICKS = 10
JOURNEY_CLICKS_MAX = 12
expect.set_options(timeout=WAIT_MS)


@pytest.fixture
def hand(chromium, marketer):
    with tab_of(chromium, marketer, locale="en-GB") as tab:
        yield Hand(tab)


def test_a_journey_with_a_wait_and_a_text_goes_live_in_twelve_clicks(hand: Hand, marketer: Visitor):
    tab = hand.tab
    tab.goto(marketer.url("/journeys"))
    hand.click(tab.get_by_role("link", name="New journey"))
    hand.click(tab.get_by_role("button", name="Create blank journey"))
    hand.write(tab.get_by_label("Name", exact=True), "Welcome")
    hand.click(tab.get_by_label("A customer opts in to texts"))
    hand.click(tab.get_by_role("button", name="Save trigger"))
    hand.click(tab.get_by_role("link", name="Wait", exact=True))
    hand.write(tab.get_by_label("Days"), "2")
    hand.click(tab.get_by_role("button", name="Add step"))
    hand.click(tab.get_by_role("link", name="Send a text"))
    hand.write(tab.get_by_role("textbox", name="Text", exact=True), "Welcome, and thank you.")
    hand.click(tab.get_by_role("button", name="Add step"))
    hand.click(tab.get_by_role("button", name="Save and activate…"))
    # What will happen is said before it does.
    outline = tab.locator("section", has=tab.get_by_role("heading", name="When it is live"))
    for words in (
        "with each new opt-in",
        "Wait: 2 days",
        "Send a text: “Welcome, and thank you.”",
        "the simulator",
        "Sending hours",
    ):
        expect(outline).to_contain_text(words)
    hand.click(tab.get_by_role("button", name="Activate version 1"))
    expect(tab.get_by_text(re.compile("Version 1, live since"))).to_be_visible()
    assert hand.clicks <= JOURNEY_CLICKS_MAX


def test_a_segment_of_three_conditions_with_suggested_values_takes_ten_clicks(
    hand: Hand, marketer: Visitor, api, api_database_url
):
    open_counted_shop(api, api_database_url)
    tab = hand.tab
    tab.goto(marketer.url("/segments"))
    hand.click(tab.get_by_role("link", name="New segment"))
    hand.write(tab.get_by_label("Name", exact=True), "Linen in Lyon")
    hand.click(tab.locator("#c-r-0").get_by_text("Products", exact=True))
    hand.search(tab.locator("#r-0-more_products"), "chem", "Chemise LIN-1 €49.00 · 6 sold in 30 days")
    expect(tab.get_by_role("button", name="Remove Chemise (LIN-1)")).to_be_visible()
    hand.click(tab.get_by_role("button", name="Attribute", exact=True))
    hand.search(tab.locator("#r-1-key"), "ci", "City city text")
    hand.search(tab.locator("#r-1-value"), "ly", "Lyon 5 customers", with_keys=True)
    hand.click(tab.get_by_role("button", name="Bought", exact=True))
    hand.click(tab.locator("#c-r-2").get_by_text("Stores", exact=True))
    hand.search(tab.locator("#r-2-more_stores"), "pres", "Presqu’île", with_keys=True)
    expect(tab.get_by_role("button", name="Remove Presqu’île")).to_be_visible()
    hand.click(tab.get_by_role("button", name="Save segment"))
    expect(tab.get_by_role("heading", level=1)).to_have_text("Linen in Lyon")
    expect(tab.locator("#r-1-value")).to_have_value("Lyon")
    assert (hand.clicks, hand.letters) == (SEGMENT_CLICKS, [4, 2, 2, 4])
