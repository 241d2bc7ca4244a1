"""With a browser whose server goes away and comes back: each live form says so, shows no old figure as new, goes on."""

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect
from tests.explore.shop import open_shop as open_explored_shop
from tests.pages.segment_shop import open_shop
from tests.support.browser import WAIT_MS
from tests.support.journeys import make_journey
from tests.support.shared_tabs import tab_of
from tests.support.visitor import Visitor

OLD = re.compile(r"\bis-old\b")
expect.set_options(timeout=WAIT_MS)


def is_old(part: Locator) -> bool:
    """Whether it is marked already, without a wait for the request that fails later."""
    return OLD.search(part.get_attribute("class") or "") is not None


def test_a_segment_marks_its_count_as_old_and_counts_when_the_server_is_back(
    tab: Page, marketer: Visitor, api, analysis, api_database_url
):
    open_shop(api, marketer, api_database_url)
    tab.goto(marketer.url("/segments/new"))
    count, away = tab.locator("#count"), tab.locator("#away")
    expect(count.locator("output")).to_have_text("1")
    tab.context.set_offline(True)
    expect(away).to_contain_text("The server does not respond")
    tab.locator("#r-0-days").fill("401")
    assert is_old(count)
    expect(tab.locator("#fig-r-0")).to_have_class(OLD)
    expect(count.locator("output")).to_have_text("1")
    # What would be lost with the page is not sent into nowhere.
    tab.get_by_role("button", name="Save segment").click()
    expect(away).to_contain_text("nothing was sent")
    tab.context.set_offline(False)
    expect(count.locator("output")).to_have_text("3")
    expect(count).not_to_have_class(OLD)
    expect(away).to_have_count(0)
    expect(tab.locator("#r-0-days")).to_have_value("401")


def test_a_button_that_was_pressed_without_a_server_does_its_work_once_it_is_back(tab: Page, marketer: Visitor):
    tab.goto(marketer.url("/segments/new"))
    tab.context.set_offline(True)
    tab.get_by_role("button", name="Attribute", exact=True).click()
    expect(tab.locator("#away")).to_be_visible()
    tab.context.set_offline(False)
    expect(tab.locator("#c-r-1")).to_be_visible()
    expect(tab.locator("#c-r-2")).to_have_count(0)


def test_the_text_of_a_journey_is_counted_when_the_server_is_back(
    tab: Page, marketer: Visitor, tenant, api_database_url
):
    step = {"do": "send_text", "text": "Hello"}
    journey = make_journey(api_database_url, tenant.organization_id, step, is_live=False)
    tab.goto(marketer.url(f"/journeys/{journey}/edit?step=1"))
    tab.context.set_offline(True)
    tab.get_by_label("Text", exact=True).fill("It’s new")
    assert is_old(tab.locator("#measured"))
    tab.get_by_role("button", name="Save step").click()
    expect(tab.locator("#away")).to_contain_text("nothing was sent")
    tab.context.set_offline(False)
    expect(tab.get_by_text("makes SMS parts shorter")).to_be_visible()
    expect(tab.locator("#measured")).not_to_have_class(OLD)
    tab.get_by_role("button", name="Save step").click()
    expect(tab.locator("#s-1")).to_contain_text("It’s new")


@pytest.fixture
def owner_tab(chromium, owner):
    with tab_of(chromium, owner, locale="en-GB") as tab:
        yield tab


def live_parts(owner: Visitor, api, organization_id, api_database_url) -> dict[str, str]:
    """Addresses of pages that refresh a part of themselves while no worker runs, with the part."""
    shop = open_explored_shop(api)
    journey = make_journey(api_database_url, organization_id, {"do": "send_text", "text": "Hello"}, is_live=False)
    owner.post(f"/journeys/{journey}/backtest", days="30")
    owner.post("/attributes/count")
    owner.post("/customers/prepare", query="last=30")
    key = owner.post("/keys", name="Lyon tills", permission="ingest").headers["location"]
    endpoint = owner.post("/webhooks", url="https://hooks.example/in", events="profile.*").headers["location"]
    delivery = owner.post("//" + endpoint.removeprefix("/") + "/ping").headers["location"]
    demo = owner.post("/first-steps/demo").headers["location"]
    return {
        f"{owner.base_url}{key}": "#first-use",
        owner.url("/attributes"): "#counting",
        owner.url(f"/journeys/{journey}/backtest"): "#report",
        owner.url("/consent"): "#figures",
        owner.url("/"): "#figures",
        owner.url("/customers?last=30"): "#results [data-live]",
        owner.url(f"/simulator?q={quote(shop.customer['phone_number'])}"): "#talk",
        f"{owner.base_url}{delivery}": "#attempts",
        f"{owner.base_url}{demo}": "#demo",
    }


def check_old_until_the_server_is_back(context: BrowserContext, parts: dict[str, str]) -> None:
    """All pages lose the server together and have it back together, so that their waits pass at the same time."""
    opened = []
    for address, part in parts.items():
        tab = context.new_page()
        tab.goto(address)
        expect(tab.locator(part), address).not_to_have_class(OLD)
        opened.append((address, tab.locator(part), tab.locator("#away")))
    context.set_offline(True)
    for address, part, away in opened:
        expect(part, address).to_have_class(OLD)
        expect(away, address).to_contain_text("The server does not respond")
    context.set_offline(False)
    for address, part, away in opened:
        expect(part, address).not_to_have_class(OLD)
        expect(away, address).to_have_count(0)


def test_every_part_that_refreshes_itself_is_old_until_the_server_is_back(
    owner_tab: Page, owner: Visitor, api, tenant, api_database_url
):
    # The first steps refresh themselves only while nothing has arrived.
    check_old_until_the_server_is_back(
        owner_tab.context, {owner.url("/first-steps"): "#steps", owner.url("/first-steps/developer"): "#arrived"}
    )
    parts = live_parts(owner, api, tenant.organization_id, api_database_url)
    check_old_until_the_server_is_back(owner_tab.context, parts)


def test_filters_and_a_question_are_answered_when_the_server_is_back(tab: Page, marketer: Visitor, api):
    away, shop = tab.locator("#away"), open_explored_shop(api)
    tab.goto(marketer.url("/customers"))
    tab.context.set_offline(True)
    tab.locator("#q").fill("nobody of this name")
    assert is_old(tab.locator("#results"))
    tab.context.set_offline(False)
    expect(tab.locator("#results")).to_contain_text("No customer found")
    expect(tab.locator("#results")).not_to_have_class(OLD)
    expect(away).to_have_count(0)
    tab.goto(marketer.url(f"/consent/numbers/{shop.number['id']}"))
    tab.context.set_offline(True)
    tab.locator("#at").fill("2020-01-01T10:00")
    assert is_old(tab.locator("#answer"))
    tab.get_by_role("button", name="Check date").click()
    expect(away).to_contain_text("The server does not respond")
    tab.context.set_offline(False)
    expect(tab.locator("#answer")).to_contain_text("2020")
    expect(tab.locator("#answer")).not_to_have_class(OLD)
    expect(away).to_have_count(0)
