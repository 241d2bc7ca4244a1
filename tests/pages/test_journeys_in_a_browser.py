"""With a browser: a journey is written from nothing, played back, activated, and followed to a STOP; the keyboard
alone; many steps on a phone; also without a script."""

import re

from playwright.sync_api import Page, expect
from tests.support import samples
from tests.support.browser import PHONE
from tests.support.drain_queues import SETTINGS, drain_queues
from tests.support.journeys import add_endpoint, make_journey
from tests.support.shared_tabs import tab_of
from tests.support.texts import open_at_any_hour
from tests.support.visitor import Visitor

TABS_MAX = 120
DEEP = {"do": "branch", "if": {"type": "subscribed"}}


def write_journey(tab: Page, journeys_url: str, *, name: str, trigger: str) -> str:
    """From nothing to a version; the journey's address."""
    tab.goto(journeys_url)
    tab.get_by_role("link", name="New journey").click()
    tab.get_by_role("button", name="Create blank journey").click()
    tab.get_by_label("Name", exact=True).fill(name)
    tab.locator(f"input[name=trigger][value={trigger}]").check()
    tab.get_by_label("Do not enter again").check()
    tab.get_by_role("button", name="Save trigger").click()
    tab.get_by_role("link", name="Send a text").click()
    # The script replaces the field; until it has run, the label leads to one that will be hidden.
    tab.wait_for_load_state()
    tab.get_by_label("Text", exact=True).fill("Welcome {{ profile.first_name }}, it’s good to have you.")
    tab.get_by_role("button", name="Show preview").click()
    tab.get_by_role("button", name="Replace with").click()
    expect(tab.locator("#f-text")).to_have_value("Welcome {{ profile.first_name }}, it's good to have you.")
    tab.get_by_role("button", name="Add step").click()
    tab.get_by_role("link", name="Add a step").click()
    tab.get_by_role("link", name="Wait", exact=True).click()
    tab.get_by_label("Days").fill("2")
    tab.get_by_role("button", name="Add step").click()
    tab.get_by_role("button", name="Save as version 1").click()
    expect(tab.get_by_role("heading", level=1)).to_have_text(name)
    return tab.url.partition("?")[0]


def test_a_welcome_from_nothing_to_a_stop_without_a_script(chromium, owner: Visitor, api, api_database_url):
    organization_id = api.tenant.organization_id
    open_at_any_hour(api_database_url, organization_id)
    add_endpoint(api_database_url, organization_id, SETTINGS)
    customer = api.post("/v1/profiles", samples.profile(first_name="Odile", last_name="Fictive")).json()
    with tab_of(chromium, owner, java_script_enabled=False, locale="en-GB") as tab:
        journey = write_journey(tab, owner.url("/journeys"), name="Welcome after opt-in", trigger="opt_in")
        tab.get_by_role("navigation", name="Journey").get_by_role("link", name="Backtest").click()
        tab.get_by_role("button", name="Run backtest").click()
        drain_queues(api_database_url, organization_id, SETTINGS)
        tab.reload()
        expect(tab.get_by_text("Would enter")).to_be_visible()
        tab.get_by_role("link", name="Activate journey…").click()
        tab.get_by_role("button", name="Activate version 1").click()
        expect(tab.get_by_text("Version 1, live since")).to_be_visible()

        number = samples.phone()
        consent = {"phone_number": number, "consent_source": "WEBSITE", "consented_at": samples.ago(minutes=1)}
        assert api.post("/v1/subscriptions/opt-in", {**consent, "profile_id": customer["id"]}).status == 201
        for _ in range(3):
            drain_queues(api_database_url, organization_id, SETTINGS)

        tab.goto(owner.url("/simulator"))
        tab.get_by_role("link", name=re.compile("Odile Fictive")).first.click()
        expect(tab.get_by_role("log")).to_contain_text("Welcome Odile, it's good to have you.")
        tab.get_by_role("button", name="STOP", exact=True).click()
        for _ in range(3):
            drain_queues(api_database_url, organization_id, SETTINGS)
        tab.reload()
        did = tab.locator("#followed")
        for part in ("entry 2 of this number", "Left the journey Welcome after opt-in", "subscription.unsubscribed"):
            expect(did).to_contain_text(part)

        tab.goto(f"{journey}/runs")
        expect(tab.get_by_role("cell", name="Opted out")).to_be_visible()
        tab.get_by_role("link", name="Odile Fictive").click()
        expect(tab.get_by_text("Left the journey")).to_be_visible()
        tab.goto(owner.url(f"/customers/{customer['id']}"))
        expect(tab.get_by_text("Record intact: 2 entries checked")).to_be_visible()
        expect(tab.get_by_text("Replied")).to_be_visible()
        expect(tab.get_by_role("link", name="Entered Welcome after opt-in")).to_be_visible()


def test_a_place_is_put_where_the_cursor_stands_and_counted_at_once(chromium, owner: Visitor, tenant, api_database_url):
    journey = make_journey(
        api_database_url, tenant.organization_id, {"do": "send_text", "text": "Hello , welcome"}, is_live=False
    )
    with tab_of(chromium, owner) as tab:
        tab.goto(owner.url(f"/journeys/{journey}/edit?step=1"))
        text, stored = tab.get_by_role("textbox", name="Text", exact=True), tab.locator("#f-text")
        text.press("Home")
        for _ in range(6):
            tab.keyboard.press("ArrowRight")
        tab.get_by_label("Personalise").select_option(label="the customer's first name")
        tab.get_by_role("button", name="Insert").click()
        expect(stored).to_have_value('Hello{{ profile.first_name | before(" ") }}, welcome')
        expect(text).to_have_text("Hellofirst name, else nothing, welcome")
        expect(tab.get_by_text("Where values are missing: 1 SMS part")).to_be_visible()
        # The place is a chip: what it writes without a value is changed in a field of its own.
        chip = text.get_by_role("button", name="first name")
        chip.click()
        tab.get_by_label("Text before first name, left out with it").fill(" dear ")
        expect(stored).to_have_value('Hello{{ profile.first_name | before(" dear ") }}, welcome')
        tab.get_by_role("button", name="Write a fallback instead").click()
        tab.get_by_label("Fallback when first name is missing").fill("dear friend")
        expect(stored).to_have_value('Hello dear {{ profile.first_name | default("dear friend") }}, welcome')
        tab.get_by_role("button", name="Leave it out instead").click()
        expect(stored).to_have_value('Hello dear{{ profile.first_name | before(" ") }}, welcome')
        tab.keyboard.press("Enter")
        tab.keyboard.type(" ’")
        expect(tab.get_by_text("makes SMS parts shorter")).to_be_visible()
        # The chip of a link shows where it leads, and its address is asked for at once.
        tab.get_by_label("Personalise").select_option(label="a link")
        tab.get_by_role("button", name="Insert").click()
        tab.get_by_label("Address of the link").fill("https://shop.example/sale")
        expect(stored).to_have_value(re.compile(r'\{\{ link\("https://shop.example/sale"\) \}\}'))
        expect(text).to_contain_text("link to shop.example/sale")
        tab.get_by_label("Each recipient gets links of their own").check()
        tab.get_by_role("button", name="Save step").click()
        expect(tab.locator("[id='s-1']")).to_contain_text("[link to shop.example/sale]")
        tab.goto(owner.url(f"/journeys/{journey}/edit?step=1"))
        expect(tab.get_by_label("Each recipient gets links of their own")).to_be_checked()


class Keys:
    """Nothing but the keyboard."""

    def __init__(self, tab: Page) -> None:
        self.tab = tab

    def to(self, name: str) -> None:
        """Press Tab until what has the focus is called so."""
        for _ in range(TABS_MAX):
            self.tab.keyboard.press("Tab")
            called = self.tab.evaluate(
                "() => { const it = document.activeElement;"
                " const label = it.labels?.[0] ?? document.getElementById(it.getAttribute('aria-labelledby')) ?? it;"
                " return (label.innerText ?? '').trim(); }"
            )
            if called.split("\n")[0] == name:
                return
        raise AssertionError(f"Tab never came to {name}.")

    def press(self, name: str) -> None:
        self.to(name)
        self.tab.keyboard.press("Enter")
        self.tab.wait_for_load_state()

    def overwrite(self, name: str, text: str) -> None:
        """The field that has the focus."""
        expect(self.tab.locator(":focus")).to_have_accessible_name(name)
        self.tab.keyboard.press("ControlOrMeta+a")
        self.tab.keyboard.type(text)


def test_four_steps_with_the_keyboard_alone(chromium, owner: Visitor):
    with tab_of(chromium, owner) as tab:
        tab.goto(owner.url("/journeys/new"))
        keys = Keys(tab)
        keys.press("Create blank journey")
        for number, (kind, field, value) in enumerate(
            (
                ("Wait", "Days", "1"),
                ("Send a text", "Text", "Hello"),
                ("Set an attribute", "Attribute", "greeted"),
                ("Exit", "", ""),
            )
        ):
            # After a step, the page offers the next one.
            tab.wait_for_url(re.compile(rf"/edit\?add={number + 1}#panel$" if number else r"/edit\?entry=1$"))
            if not number:
                keys.press("Add the first step")
                tab.wait_for_url(re.compile("add="))
            keys.press(kind)
            tab.wait_for_url(re.compile("kind="))
            if field:
                keys.overwrite(field, value)
            keys.press("Add step")
        tab.wait_for_url(re.compile(r"/edit(#.*)?$"))
        names = tab.locator("#builder .step-name").all_inner_texts()[2:]
        assert names == ["1 day", "“Hello”", "greeted =", "Exit"]
        keys.press("Save as version 1")
        expect(tab.get_by_text("Version 1 is saved")).to_be_visible()


def test_twenty_steps_three_deep_can_be_read_on_a_phone(chromium, owner: Visitor, tenant, api_database_url):
    wait, text = {"do": "wait", "days": 1}, {"do": "send_text", "text": "A text of some length, as they are. " * 3}
    third = {**DEEP, "then": [wait, text], "else": [text, wait]}
    second = {**DEEP, "then": [third, wait], "else": [wait, text]}
    first = {**DEEP, "then": [wait, second, text], "else": [second, wait]}
    journey = make_journey(
        api_database_url, tenant.organization_id, wait, first, text, is_live=False, name="Twenty steps"
    )
    with tab_of(chromium, owner, viewport=PHONE) as tab:
        for path in ("", "/edit"):
            tab.goto(owner.url(f"/journeys/{journey}{path}"))
            assert tab.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
            boxes = [one.bounding_box() for one in tab.locator(".flow .step-name").all()]
            assert len(boxes) >= 20
            for box in boxes:
                assert box["x"] >= 0
                assert box["x"] + box["width"] <= PHONE["width"]
            # What is three deep has room for words, and not for single letters.
            texts = tab.locator(".flow .step-name", has_text="A text of some length").all()
            assert min(one.bounding_box()["width"] for one in texts) > 120
