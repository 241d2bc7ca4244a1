"""With a browser: the segment of the design page is built with the keyboard; a value that its type cannot read;
why a customer is in or out; a journey that uses a segment."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.pages.segment_shop import Crowd
from tests.support.browser import WAIT_MS
from tests.support.journeys import make_journey
from tests.support.visitor import Visitor

SOME = re.compile("[0-9]")
expect.set_options(timeout=WAIT_MS)


@pytest.fixture
def use_journey(api_database_url):
    def use(crowd: Crowd, condition: dict[str, str]) -> None:
        make_journey(
            api_database_url,
            crowd.shop.organization_id,
            {"do": "exit"},
            is_live=False,
            name="We miss you",
            filter=condition,
        )

    return use


class Keyboard:
    """Only ever uses keys, once something has focus. `tests/pages/test_clicks_in_a_browser.py` has a mouse."""

    def __init__(self, tab: Page) -> None:
        self.tab = tab

    def press(self, button: Locator) -> None:
        button.focus()
        self.tab.keyboard.press("Enter")

    def choose(self, select: Locator, words: str) -> None:
        """Opened, so that nothing is chosen before Enter. Typed words would be forgotten if a letter comes late."""
        find_steps = "(it, words) => [...it.options].findIndex(one => one.label === words) - it.selectedIndex"
        steps = select.evaluate(find_steps, words)
        select.focus()
        self.tab.keyboard.press("Alt+ArrowDown")
        for _ in range(abs(steps)):
            self.tab.keyboard.press("ArrowDown" if steps > 0 else "ArrowUp")
        self.tab.keyboard.press("Enter")

    def write(self, field: Locator, text: str) -> None:
        field.focus()
        self.tab.keyboard.press("Control+A")
        self.tab.keyboard.type(text)

    def leave(self) -> None:
        self.tab.keyboard.press("Tab")


class Builder:
    def __init__(self, tab: Page) -> None:
        self.hand = Keyboard(tab)
        self.tab = tab

    def at(self, member: str) -> Locator:
        return self.tab.locator(f"#{member}")

    def add(self, group: str, kind: str, place: str) -> None:
        row = self.tab.locator(f"#c-{group} > .group-list > .adder")
        button = row.get_by_role("button", name=kind, exact=True)
        if not button.is_visible():
            self.hand.press(row.locator("summary"))
        self.hand.press(button)
        expect(self.at(f"c-{place}")).to_be_visible()

    def add_group(self, group: str, place: str, kind: str) -> None:
        row = self.tab.locator(f"#c-{group} > .group-list > .adder")
        self.hand.press(row.get_by_role("button", name="Group", exact=True))
        expect(self.at(f"c-{place}")).to_be_visible()
        if kind != "Any of these":
            self.hand.choose(self.at(f"{place}-kind"), kind)
            expect(self.at(f"c-{place}").locator("legend").first).to_have_text(kind)

    def key(self, place: str, member: str, key: str) -> None:
        self.hand.write(self.at(f"{place}-{member}"), key)
        self.hand.leave()
        expect(self.at(f"{place}-{'p' if member == 'pkey' else ''}cmp")).to_be_visible()

    def compare(self, place: str, words: str, then: str) -> None:
        self.hand.choose(self.at(f"{place}-cmp"), words)
        expect(self.at(f"{place}-{then}")).to_be_visible()

    def figure(self, place: str, number: str) -> None:
        expect(self.at(f"fig-{place}")).to_have_text(number)


def build_gold_who_slow_down(builder: Builder) -> None:
    hand, at = builder.hand, builder.at
    hand.write(at("f-name"), "Gold who slow down")
    hand.press(at("c-r-0").get_by_role("button", name="Remove this condition"))
    expect(at("c-r-0")).to_have_count(0)
    builder.add("r", "Attribute", "r-0")
    builder.key("r-0", "key", "tier")
    for tier in ("Gold", "Platinum"):
        hand.write(at("r-0-more_values"), tier)
        hand.leave()
        expect(at("c-r-0").get_by_role("button", name=f"Remove {tier}")).to_be_visible()
    builder.figure("r-0", "4")
    builder.add("r", "Attribute", "r-1")
    builder.key("r-1", "key", "points_balance")
    builder.compare("r-1", "is between", "high")
    hand.write(at("r-1-low"), "200")
    hand.write(at("r-1-high"), "1500")
    builder.figure("r-1", "4")
    builder.add("r", "Attribute", "r-2")
    builder.key("r-2", "key", "newsletter")
    builder.figure("r-2", "5")
    builder.add_group("r", "r-3", "Any of these")
    builder.add("r-3", "Net spend", "r-3-0")
    hand.write(at("r-3-0-low"), "200.00")
    builder.figure("r-3-0", "2")
    builder.add("r-3", "Articles bought", "r-3-1")
    hand.write(at("r-3-1-low"), "2")
    hand.choose(at("r-3-1-window"), "at any time")
    expect(at("r-3-1-days")).to_have_count(0)
    hand.press(at("c-r-3-1").get_by_text("Product property", exact=True))
    builder.key("r-3-1", "pkey", "collection")
    hand.write(at("r-3-1-pvalue"), "lin lavé")
    builder.figure("r-3-1", "2")
    builder.add_group("r", "r-4", "None of these")
    builder.add("r-4", "Bought", "r-4-0")
    hand.write(at("r-4-0-days"), "60")
    builder.figure("r-4-0", "1")
    expect(builder.tab.locator("#count output")).to_have_text("2")


@pytest.mark.timeout(300)
def test_gold_who_slow_down_is_built_saved_and_asked_about(tab: Page, marketer: Visitor, crowd: Crowd):
    tab.goto(marketer.url("/segments/new"))
    expect(tab.locator("#count output")).to_have_text(SOME)
    builder = Builder(tab)
    build_gold_who_slow_down(builder)
    # A value that its type cannot read is counted beside the condition, with a way to it.
    expect(tab.locator("#note-r-1")).to_contain_text("1 customer has a value that cannot be read as number")
    builder.hand.press(tab.get_by_role("button", name="Save segment"))
    expect(tab.get_by_role("heading", level=1)).to_have_text("Gold who slow down")
    expect(tab.locator("#count output")).to_have_text("2")
    # Why a customer is in or out, with the values that were read.
    for customer, word in ((crowd.busy, "not in the segment"), (crowd.slow, "in the segment")):
        builder.hand.write(tab.get_by_role("searchbox", name="Customer", exact=True), customer)
        builder.hand.press(tab.get_by_role("button", name="Explain"))
        expect(tab.locator("#why-answer .badge")).to_have_text(word)
    expect(tab.locator("#why-answer")).to_contain_text("points_balance is “500”")
    expect(tab.locator("#why-answer")).to_contain_text("Net spend €300.00 in the last 365 days")


# Changes a field in the moment in which it is drawn.
CHANGE_AT_ONCE = """([id, value]) => new MutationObserver((_, observer) => {
    const field = document.getElementById(id);
    if (!field) return;
    observer.disconnect();
    field.value = value;
    field.dispatchEvent(new Event("change", { bubbles: true }));
}).observe(document.body, { childList: true, subtree: true })"""


def test_a_field_that_is_changed_as_soon_as_it_is_drawn_is_sent(tab: Page, marketer: Visitor):
    tab.goto(marketer.url("/segments/new"))
    tab.evaluate(CHANGE_AT_ONCE, ["r-1-kind", "none"])
    tab.locator("#c-r > .group-list > .adder").get_by_role("button", name="Group", exact=True).click()
    expect(tab.locator("#c-r-1 > legend")).to_have_text("None of these")


def test_the_answer_leads_to_the_ticket_that_excludes_the_customer(tab: Page, marketer: Visitor, crowd: Crowd):
    fields = {"r~kind": "none", "r.0~kind": "bought", "r.0~low": "1", "r.0~days": "60"}
    saved = marketer.post("/segments/save", name="Slow", **fields)
    tab.goto(f"{marketer.base_url}{saved.headers['location']}?who={crowd.busy}")
    expect(tab.locator("#why-answer .badge")).to_have_text("not in the segment")
    tab.locator("#why-answer").get_by_role("link", name=crowd.ticket).click()
    expect(tab.get_by_role("heading", level=1)).to_contain_text("€20.00 in Lyon")


def test_a_journey_that_uses_a_segment_is_named_and_keeps_it(tab: Page, marketer: Visitor, crowd: Crowd, use_journey):
    saved = marketer.post("/segments/save", name="Named", **{"r~kind": "all", "r.0~kind": "named"})
    url = saved.headers["location"]
    use_journey(crowd, {"type": "segment", "id": url.rpartition("/")[2]})
    tab.goto(f"{marketer.base_url}{url}")
    used = tab.locator("section", has=tab.get_by_role("heading", name="Used by"))
    expect(used).to_contain_text("We miss you")
    tab.locator("#r-0-named").select_option(label="Not known by name")
    expect(tab.locator("#state")).to_contain_text("Unsaved changes")
    expect(tab.get_by_text("0 would join, 5 would leave")).to_be_visible()
    tab.goto(f"{marketer.base_url}{url}/delete")
    expect(tab.get_by_text("It cannot be deleted while it is used")).to_be_visible()
