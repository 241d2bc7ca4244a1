"""With a browser: how many clicks a marketer needs. Keys are free; a choice from a list is two clicks."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.support.browser import WAIT_MS
from tests.support.shared_tabs import tab_of
from tests.support.visitor import Visitor

SEGMENT_CLICKS_MAX = 8
JOURNEY_CLICKS_MAX = 12
expect.set_options(timeout=WAIT_MS)


class Hand:
    def __init__(self, tab: Page) -> None:
        self.tab = tab
        self.clicks = 0

    def click(self, target: Locator) -> None:
        self.clicks += 1
        target.click()

    def write(self, field: Locator, text: str) -> None:
        """Into a field that has the focus, or that is clicked first."""
        expect(field).to_be_visible()
        if not field.evaluate("(field) => field === document.activeElement"):
            self.click(field)
        self.tab.keyboard.press("Control+A")
        self.tab.keyboard.type(text)


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


def test_a_segment_of_three_conditions_is_saved_in_eight_clicks(hand: Hand, marketer: Visitor):
    tab = hand.tab
    tab.goto(marketer.url("/segments"))
    hand.click(tab.get_by_role("link", name="New segment"))
    hand.write(tab.get_by_label("Name", exact=True), "Good customers")
    hand.write(tab.locator("#r-0-days"), "90")
    hand.click(tab.get_by_role("button", name="Consent", exact=True))
    expect(tab.locator("#c-r-1")).to_be_visible()
    hand.click(tab.get_by_role("button", name="Net spend", exact=True))
    hand.write(tab.locator("#r-2-low"), "200")
    hand.click(tab.get_by_role("button", name="Save segment"))
    expect(tab.get_by_role("heading", level=1)).to_have_text("Good customers")
    assert [tab.locator(f"#r-{field}").input_value() for field in ("0-days", "1-state", "2-low")] == [
        "90",
        "may_be_texted",
        "200.00",
    ]
    assert hand.clicks <= SEGMENT_CLICKS_MAX
