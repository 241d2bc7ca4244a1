"""With a browser: a customer is found, the consent question answered, the certificate printed, the person erased; with
the mouse, and with the keyboard alone. Without a script, tests/explore/test_house.py sends the same forms."""

import pytest
from playwright.sync_api import Page, expect
from tests.explore.shop import Shop, open_shop
from tests.support.browser import PHONE
from tests.support.shared_tabs import tab_of
from tests.support.visitor import Visitor


@pytest.fixture
def shop(api) -> Shop:
    return open_shop(api)


@pytest.fixture
def tab(chromium, owner):
    with tab_of(chromium, owner, locale="en-GB") as tab:
        yield tab


def find(tab: Page, owner: Visitor, text: str) -> None:
    tab.goto(owner.url("/"))
    tab.get_by_label("Find anything").fill(text)
    tab.keyboard.press("Enter")


def test_a_customer_is_found_asked_about_certified_and_erased(tab: Page, owner: Visitor, shop: Shop):
    find(tab, owner, "fictive")
    tab.get_by_role("link", name="Odile Fictive Odile").click()
    expect(tab.get_by_role("heading", level=1)).to_have_text("Odile Fictive Odile")
    expect(tab.get_by_text("Record intact: 1 entry checked")).to_be_visible()
    tab.get_by_label("Were we allowed to text on this date?").fill("2001-02-03T18:30")
    tab.get_by_role("button", name="Check date").click()
    expect(tab.get_by_text("No, not on 3 Feb 2001, 18:30")).to_be_visible()
    # The address reproduces the view.
    assert "at=2001-02-03T18%3A30" in tab.url
    tab.get_by_role("link", name="Certificate of consent").click()
    expect(tab.get_by_role("heading", name="Certificate of consent")).to_be_visible()
    expect(tab.get_by_text("Were we allowed to text on 3 Feb 2001, 18:30?")).to_be_visible()
    tab.emulate_media(media="print")
    expect(tab.get_by_role("navigation", name="Main")).to_be_hidden()
    expect(tab.get_by_text("How to verify this")).to_be_visible()
    tab.emulate_media(media="screen")
    tab.goto(owner.url(f"/customers/{shop.customer['id']}"))
    tab.get_by_label("More actions").click()
    tab.get_by_role("link", name="Erase customer…").click()
    tab.get_by_label("to confirm").fill(shop.customer["external_id"])
    tab.get_by_role("button", name="Erase customer", exact=True).click()
    expect(tab.get_by_text("The customer is erased.")).to_be_visible()
    assert shop.api.get(f"/v1/profiles/{shop.customer['id']}").status == 404


def test_a_ticket_a_collision_and_a_store_are_reached_by_links(tab: Page, owner: Visitor, shop: Shop):
    tab.goto(owner.url("/collisions"))
    tab.get_by_role("link", name=shop.ticket["external_id"]).click()
    expect(tab.get_by_text("+ total_amount_cents: 1", exact=True)).to_be_visible()
    tab.get_by_label("Note").fill("A till in training.")
    # The form has two actions, so Enter does neither.
    tab.keyboard.press("Enter")
    tab.get_by_role("button", name="Dismiss with the note").click()
    expect(tab.get_by_text("No conflict to review")).to_be_visible()
    tab.goto(owner.url("/tickets"))
    tab.get_by_role("link", name=shop.ticket["external_id"], exact=True).click()
    expect(tab.get_by_text("Lines add up")).to_be_visible()
    tab.get_by_role("main").get_by_role("link", name="Lyon Odile").first.click()
    expect(tab.get_by_role("heading", level=1)).to_have_text("Lyon Odile")


def test_the_keyboard_alone_finds_opens_and_asks(chromium, owner: Visitor, shop: Shop):
    with tab_of(chromium, owner, locale="en-GB") as tab:
        tab.goto(owner.url("/stores"))
        tab.keyboard.press("?")
        expect(tab.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
        tab.keyboard.press("Escape")
        tab.keyboard.press("/")
        tab.keyboard.type("fictive")
        found = tab.get_by_role("option", name="Odile Fictive Odile")
        expect(found).to_be_visible()
        tab.keyboard.press("Escape")
        expect(found).to_be_hidden()
        tab.keyboard.press("Enter")
        tab.wait_for_url("**/search")
        tab.locator("h1").focus()
        tab.keyboard.press("j")
        expect(tab.get_by_role("link", name="Odile Fictive Odile")).to_be_focused()
        tab.keyboard.press("/")
        tab.keyboard.type("fictive")
        expect(found).to_be_visible()
        tab.keyboard.press("ArrowDown")
        expect(found).to_have_attribute("aria-selected", "true")
        tab.keyboard.press("Enter")
        tab.wait_for_url(f"**/customers/{shop.customer['id']}")
        field = tab.get_by_label("Were we allowed to text on this date?")
        field.focus()
        # In which order the parts of a date are typed is the browser's business.
        field.fill("2001-02-03T18:30")
        tab.keyboard.press("Enter")
        expect(tab.get_by_text("No, not on 3 Feb 2001, 18:30")).to_be_visible()


def test_a_list_narrows_while_the_user_types_and_the_field_keeps_its_focus(chromium, owner: Visitor, shop: Shop):
    with tab_of(chromium, owner, viewport=PHONE) as tab:
        tab.goto(owner.url("/customers"))
        field = tab.get_by_role("searchbox", name="Search customers")
        field.press_sequentially("zzz", delay=30)
        expect(tab.get_by_text("No customer found")).to_be_visible()
        expect(field).to_be_focused()
        field.fill("odile")
        expect(tab.get_by_role("link", name="Odile Fictive Odile")).to_be_visible()
        assert "q=odile" in tab.url
