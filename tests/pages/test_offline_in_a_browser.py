"""With a browser whose server goes away and comes back: each live form says so, shows no old figure as new, goes on."""

import re

import pytest
from playwright.sync_api import Page, expect
from tests.explore.shop import open_shop as open_explored_shop
from tests.pages.segment_shop import open_shop
from tests.support.browser import WAIT_MS, context_of
from tests.support.journeys import make_journey
from tests.support.visitor import Visitor

from regulars.web.access import Role

OLD = re.compile(r"\bis-old\b")
expect.set_options(timeout=WAIT_MS)


@pytest.fixture
def marketer(visitor_as) -> Visitor:
    return visitor_as(Role.MARKETER)


@pytest.fixture
def tab(chromium, marketer):
    with context_of(chromium, marketer, locale="en-GB") as context:
        yield context.new_page()


def test_a_segment_marks_its_count_as_old_and_counts_when_the_server_is_back(
    tab: Page, marketer: Visitor, api, analysis, api_database_url
):
    open_shop(api, marketer, api_database_url)
    tab.goto(marketer.url("/segments/new"))
    count, away = tab.locator("#count"), tab.locator("#away")
    expect(count.locator("output")).to_have_text("1")
    tab.context.set_offline(True)
    expect(away).to_contain_text("The server does not answer")
    tab.locator("#r-0-days").fill("401")
    expect(count).to_have_class(OLD, timeout=200)
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
    expect(tab.locator("#measured")).to_have_class(OLD, timeout=200)
    tab.get_by_role("button", name="Keep").click()
    expect(tab.locator("#away")).to_contain_text("nothing was sent")
    tab.context.set_offline(False)
    expect(tab.get_by_text("forces Unicode")).to_be_visible()
    expect(tab.locator("#measured")).not_to_have_class(OLD)
    tab.get_by_role("button", name="Keep").click()
    expect(tab.locator("#s-1")).to_contain_text("It’s new")


def test_a_list_and_a_part_that_refreshes_itself_are_old_until_the_server_is_back(tab: Page, marketer: Visitor, api):
    away = tab.locator("#away")
    tab.goto(marketer.url("/first-steps"))
    tab.context.set_offline(True)
    expect(tab.locator("#arrived")).to_have_class(OLD)
    expect(away).to_contain_text("The server does not answer")
    tab.context.set_offline(False)
    expect(tab.locator("#arrived")).not_to_have_class(OLD)
    expect(away).to_have_count(0)
    open_explored_shop(api)
    tab.goto(marketer.url("/customers"))
    tab.context.set_offline(True)
    tab.locator("#q").fill("nobody of this name")
    expect(tab.locator("#results")).to_have_class(OLD, timeout=200)
    tab.context.set_offline(False)
    expect(tab.locator("#results")).to_contain_text("Nobody is found")
    expect(tab.locator("#results")).not_to_have_class(OLD)
    expect(away).to_have_count(0)
