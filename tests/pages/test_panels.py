"""What opens inside a page is accessible too: the panels of the builders, refused forms, questions without an answer."""

import pytest
from playwright.sync_api import Page, expect
from tests.pages.segment_shop import SegmentShop
from tests.support.browser import DESKTOP, PHONE, add_axe, block_htmx, context_of
from tests.support.journeys import make_journey
from tests.support.page_checks import find_violations
from tests.support.visitor import Visitor

from regulars.catalog.model import AttributeType
from regulars.web.access import Role

# Those with many controls; the pages themselves are looked at where every page is.
PANELS = (
    "entry=1",
    "filter=1",
    "step=1",
    "step=1.then.1",
    "step=1.then.2",
    "add=1.then.1&kind=send_text",
)


BRANCH = {
    "do": "branch",
    "if": {"type": "all", "of": [{"type": "subscribed"}, {"type": "attribute", "key": "size", "comparison": "is_set"}]},
    "then": [{"do": "send_text", "text": "Hello “you”"}, {"do": "wait", "days": 1}],
    "else": [{"do": "exit"}],
}


def addresses(journey: str) -> list[str]:
    edit = f"/journeys/{journey}/edit"
    return [
        *(f"{edit}?{panel}" for panel in PANELS),
        "/segments/new?from=best",
        "/search?q=nobody-has-this",
        "/tickets?currency=USD",
        "/messages?state=failed",
        "/webhooks/deliveries?state=pending",
    ]


@pytest.mark.timeout(300)
def test_panels_and_answers_are_accessible_light_and_dark(visitor_as, api, tenant, api_database_url, chromium):
    visitor = visitor_as(Role.OWNER)
    shop = SegmentShop(api, api_database_url, tenant.organization_id, store="")
    shop.customer("Lou", size="12")
    shop.declare("size", AttributeType.ENUM, *(f"Size {number}" for number in range(30)))
    amount = {"type": "amount", "at_least_cents": 100}
    journey = make_journey(api_database_url, tenant.organization_id, BRANCH, is_live=False, filter=amount)
    findings = []
    with context_of(chromium, visitor, bypass_csp=True) as context:
        tab = context.new_page()
        block_htmx(tab)
        tab.emulate_media(reduced_motion="reduce")
        for place, path in enumerate(addresses(journey)):
            # Half of them on a phone: the window has no say in what most rules find.
            tab.set_viewport_size(PHONE if place % 2 else DESKTOP)
            assert tab.goto(visitor.url(path)).ok, path
            add_axe(tab)
            findings += [(path, *found) for found in find_violations(tab)]
        tab.goto(visitor.url("/stores"))
        add_axe(tab)
        for size in (DESKTOP, PHONE):
            tab.set_viewport_size(size)
            tab.keyboard.press("/")
            tab.keyboard.type("n")
            expect(tab.get_by_role("option", name="New campaign")).to_be_visible()
            findings += [("results", *found) for found in find_violations(tab)]
            tab.keyboard.press("Escape")
            tab.get_by_label("Find anything").fill("")
            tab.locator("h1").focus()
        tab.keyboard.press("?")
        expect(tab.get_by_role("dialog")).to_be_visible()
        findings += [("shortcuts", *found) for found in find_violations(tab)]
        open_suggested_values(tab, visitor)
        findings += [("suggestions", *found) for found in find_violations(tab)]
    assert findings == []


def open_suggested_values(tab: Page, visitor: Visitor) -> None:
    """More values than the list has room for."""
    tab.set_viewport_size(DESKTOP)
    tab.goto(visitor.url("/segments/new"))
    tab.get_by_role("button", name="Attribute", exact=True).click()
    tab.locator("#r-1-key").fill("size")
    tab.keyboard.press("Enter")
    tab.locator('[data-of="attribute_values"]').click()
    values = tab.locator("#suggestions > [role=option]")
    expect(values).to_have_count(20)
    listbox = tab.get_by_role("listbox", name="Suggestions")
    assert listbox.evaluate("(list) => list.scrollHeight > list.clientHeight")
    tab.keyboard.press("ArrowUp")
    expect(values.last).to_be_in_viewport()
    add_axe(tab)
