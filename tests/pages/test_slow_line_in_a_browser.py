"""With a browser on a slow line: whatever the user types while an answer is on its way stays where it was typed."""

import psycopg
import pytest
from playwright.sync_api import Page, expect
from tests.pages.segment_shop import open_shop
from tests.support.browser import WAIT_MS
from tests.support.journeys import make_journey
from tests.support.paused_requests import PausedRequests
from tests.support.visitor import Visitor

expect.set_options(timeout=WAIT_MS)


@pytest.fixture
def journey(tenant, api_database_url) -> str:
    return make_journey(api_database_url, tenant.organization_id, {"do": "send_text", "text": "Hello"}, is_live=False)


def test_a_late_script_does_not_take_the_focus_from_a_field(tab: Page, marketer: Visitor, journey: str):
    line = PausedRequests(tab, "**/assets/*.js")
    tab.goto(marketer.url(f"/journeys/{journey}/edit?add=1&kind=send_text"), wait_until="commit")
    text = tab.get_by_label("Text", exact=True)
    text.focus()
    tab.keyboard.type("Hel")
    line.open()
    tab.wait_for_load_state()
    # What htmx does once the page is ready comes after that.
    tab.wait_for_function("() => new Promise((done) => setTimeout(() => done(true)))")
    tab.keyboard.type("lo")
    expect(tab.locator("#f-text")).to_have_value("Hello")
    expect(text).to_be_focused()


def test_a_panel_that_opens_has_the_focus_on_its_heading_or_first_field(tab: Page, marketer: Visitor, journey: str):
    tab.goto(marketer.url(f"/journeys/{journey}/edit?add=1"))
    expect(tab.locator("#pn")).to_be_focused()
    tab.goto(marketer.url(f"/journeys/{journey}/edit?add=1&kind=send_text"))
    expect(tab.get_by_label("Text", exact=True)).to_be_focused()


def test_a_text_is_counted_while_it_is_written_on(tab: Page, marketer: Visitor, journey: str):
    tab.goto(marketer.url(f"/journeys/{journey}/edit?add=1&kind=send_text"))
    text = tab.get_by_label("Text", exact=True)
    text.focus()
    line = PausedRequests(tab, "**/edit/measure")
    tab.keyboard.type("Hel")
    line.wait()
    tab.keyboard.type("lo’")
    line.open()
    expect(tab.get_by_text("makes SMS parts shorter")).to_be_visible()
    tab.keyboard.type("s")
    expect(tab.locator("#f-text")).to_have_value("Hello’s")


def test_what_stands_in_the_panel_of_a_journey_outlives_the_choice_of_a_property(
    tab: Page, marketer: Visitor, journey: str, api, api_database_url
):
    open_shop(api, marketer, api_database_url)
    tab.goto(marketer.url(f"/journeys/{journey}/edit?filter=1"))
    tab.locator("summary", has_text="More").click()
    tab.get_by_role("button", name="Product", exact=True).click()
    expect(tab.locator("#r-0-pkey")).to_be_visible()
    line = PausedRequests(tab, "**/edit/condition")
    tab.locator("#r-0-pkey").fill("collection")
    products = tab.locator("#r-0-more_products")
    products.focus()
    line.wait()
    tab.keyboard.type("LIN")
    line.open()
    expect(tab.locator("#r-0-pcmp")).to_be_visible()
    tab.keyboard.type("-1")
    expect(products).to_have_value("LIN-1")


def test_what_is_typed_into_a_segment_outlives_an_answer_that_draws_its_fields_anew(tab: Page, marketer: Visitor):
    tab.goto(marketer.url("/segments/new?from=best"))
    line = PausedRequests(tab, "**/segments/draft")
    tab.locator("#r-0-window").select_option("between")
    line.wait()
    tab.locator("#r-0-low").focus()
    tab.keyboard.press("Control+A")
    tab.keyboard.type("12")
    # It is counted too, though nothing more is typed.
    with tab.expect_request(lambda request: (request.post_data_json or {}).get("r.0~low") == "12"):
        line.open()
    expect(tab.locator("#r-0-from")).to_be_visible()
    tab.keyboard.type("50")
    expect(tab.locator("#r-0-low")).to_have_value("1250")
    expect(tab.locator("#r-0-low")).to_be_focused()


def test_figures_that_follow_replace_no_field(tab: Page, marketer: Visitor, api, analysis, api_database_url):
    open_shop(api, marketer, api_database_url)
    line = PausedRequests(tab, "**/segments/draft")
    with psycopg.connect(api_database_url) as holding:
        # Nothing can be read for a count while this is held, so the page asks again.
        holding.execute("LOCK TABLE segment_runs IN ACCESS EXCLUSIVE MODE")
        tab.goto(marketer.url("/segments/new"))
        tab.locator("#seg").evaluate("(form) => { form.dataset.drawn = 'first' }")
        line.wait()
    tab.locator("#r-0-days").focus()
    tab.keyboard.press("Control+A")
    tab.keyboard.type("4")
    line.open()
    expect(tab.locator("#count output")).to_have_text("1")
    tab.keyboard.type("01")
    expect(tab.locator("#count output")).to_have_text("3")
    expect(tab.locator("#r-0-days")).to_have_value("401")
    expect(tab.locator("#sample")).to_contain_text("Inès")
    expect(tab.locator("#seg[data-drawn]")).to_have_count(1)


def test_a_late_condition_does_not_take_the_focus_from_a_field(tab: Page, marketer: Visitor):
    tab.goto(marketer.url("/segments/new"))
    line = PausedRequests(tab, "**/segments/draft")
    tab.get_by_role("button", name="Attribute", exact=True).click()
    line.wait()
    tab.locator("#f-name").focus()
    tab.keyboard.press("Control+A")
    tab.keyboard.type("Ser")
    line.open()
    expect(tab.locator("#r-1-key")).to_be_visible()
    tab.keyboard.type("ious")
    expect(tab.locator("#f-name")).to_have_value("Serious")


def test_a_condition_whose_place_changes_keeps_what_is_typed_into_it(tab: Page, marketer: Visitor):
    tab.goto(marketer.url("/segments/new"))
    for place in (1, 2):
        tab.get_by_role("button", name="Bought", exact=True).click()
        expect(tab.locator(f"#r-{place}-days")).to_be_visible()
    line = PausedRequests(tab, "**/segments/draft")
    tab.locator("#c-r-0").get_by_role("button", name="Remove this condition").click()
    line.wait()
    tab.locator("#r-1-days").focus()
    tab.keyboard.press("Control+A")
    tab.keyboard.type("4")
    line.open()
    expect(tab.locator("#c-r-2")).to_have_count(0)
    tab.keyboard.type("5")
    expect(tab.locator("#r-0-days")).to_have_value("45")
    expect(tab.locator("#r-1-days")).to_have_value("30")


def test_two_values_picked_one_after_the_other_are_both_in(tab: Page, marketer: Visitor):
    tab.goto(marketer.url("/segments/new"))
    tab.locator("summary", has_text="More").click()
    tab.get_by_role("button", name="Phone number from", exact=True).click()
    expect(tab.locator("#r-1-more_countries")).to_be_visible()
    # The new field must be in its place before it is changed: a change of the old one would be lost with it.
    tab.wait_for_load_state("networkidle")
    line = PausedRequests(tab, "**/segments/draft")
    tab.locator("#r-1-more_countries").select_option("FR")
    line.wait()
    tab.locator("#r-1-more_countries").select_option("CH")
    line.wait(2)
    line.open()
    for name in ("France", "Switzerland"):
        expect(tab.get_by_role("button", name=f"Remove {name}")).to_be_visible()
