"""The five pages in a browser: on a phone and a desk, light and dark, with and without scripts."""

import pytest
from playwright.sync_api import expect
from tests.analytics.pages_shop import SOAP
from tests.analytics.test_customer_pages import prepare
from tests.support.browser import PHONE, context_of
from tests.support.page_checks import examine
from tests.support.shared_tabs import tab_of
from tests.support.waiting import ask_until

from regulars.web.access import Role

READY = {
    "/analyse/sales": ">Sales by day, EUR</h2>",
    "/analyse/customers": 'id="cohorts"',
    "/analyse/products": "Net sales by product code",
    "/analyse/stores": "Sales by store",
    "/analyse/explore?rows=store&then=newness": "New in the period",
}


@pytest.fixture(scope="module")
def marketer(read_shop, analysis, reader_as):
    shop, marketer = read_shop, reader_as(Role.MARKETER)
    for name, days in (("ada", 100), ("ada", 40), ("ada", 1), ("ben", 1), ("cleo", 70)):
        shop.sell(shop.paris, days=days, cents=10_000, profile_id=name, product=SOAP)
    shop.count()
    prepare(shop, marketer)
    for path, words in READY.items():
        ask_until(words, lambda path=path: marketer.get(path))
    return marketer


def test_axe_finds_nothing_and_the_pages_fit_every_screen(chromium, marketer):
    """At four widths, in light and dark."""
    with context_of(chromium, marketer, bypass_csp=True) as context:
        tab = context.new_page()
        findings = [(path, *found) for path in READY for found in examine(tab, marketer.url(path))]
    assert findings == []


def test_a_printed_page_names_its_products_and_has_all_columns(chromium, marketer):
    path = '/analyse/products?in={"key":{},"value":"SOAP"}'
    ask_until('id="basket"', lambda: marketer.get(path))
    with tab_of(chromium, marketer, theme="dark", viewport=PHONE) as tab:
        tab.goto(marketer.url(path))
        expect(tab.get_by_role("columnheader", name="Return rate")).to_be_hidden()
        tab.emulate_media(media="print")
        expect(tab.get_by_text("Product code: SOAP")).to_be_visible()
        expect(tab.get_by_role("columnheader", name="Return rate")).to_be_visible()
        expect(tab.get_by_role("link", name="Remove Product code: SOAP")).to_be_hidden()
        expect(tab.get_by_role("form", name="Period and filters")).to_be_hidden()
        assert tab.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"


def test_filters_work_without_scripts_and_figures_follow_with_them(chromium, marketer):
    with tab_of(chromium, marketer, viewport=PHONE, java_script_enabled=False) as tab:
        tab.goto(marketer.url("/analyse/sales?period=30d&currency=EUR"))
        tab.get_by_label("Compare with").select_option("before")
        tab.locator("summary", has_text="All stores").click()
        tab.get_by_label("Geneva").check()
        tab.get_by_role("button", name="Apply filters").first.click()
        expect(tab.get_by_text("No ticket in this period").or_(tab.get_by_text("Net sales, CHF"))).to_be_visible()
        assert "period=30d" in tab.url
        assert "compare=before" in tab.url
        assert "store=store_" in tab.url
        assert "currency=EUR" in tab.url
        tab.goto(marketer.url("/analyse/stores"))
        tab.get_by_role("link", name="Paris", exact=True).click()
        expect(tab.get_by_role("heading", name="Sales", exact=True)).to_be_visible()
    with tab_of(chromium, marketer) as tab:
        tab.goto(marketer.url("/analyse/sales"))
        tab.get_by_role("button", name="Definitions").click()
        expect(tab.get_by_role("dialog", name="Definitions")).to_contain_text("Gross minus returns, with tax.")
        tab.keyboard.press("Escape")
        tab.locator("summary", has_text="Saved views").click()
        tab.get_by_label("Name").fill("Monday")
        tab.get_by_role("button", name="Save this view").click()
        expect(tab.locator("#toasts")).to_contain_text("View saved as “Monday”.")
        tab.locator("summary", has_text="Saved views").click()
        expect(tab.get_by_role("link", name="Monday")).to_be_visible()
