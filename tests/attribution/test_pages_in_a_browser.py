"""The pages of attribution in a browser: on a phone and a desk, light and dark, and without scripts."""

from dataclasses import replace
from decimal import Decimal

import msgspec
import pytest
from playwright.sync_api import expect
from tests.attribution.results_shop import ResultsShop, arm, open_results
from tests.attribution.test_pages import LESS, MORE, SAME, first_month
from tests.support.browser import PHONE, context_of
from tests.support.page_checks import examine
from tests.support.shared_tabs import tab_of

from regulars.kit.db import Tx
from regulars.kit.ids import CAMPAIGN, JOURNEY
from regulars.texts.settings.model import Price
from regulars.texts.settings.store import load_texting, save_texting
from regulars.web.access import Role

PATH = "/analyse/attribution"
# The number of lines of text in an element.
LINES = """(one) => {
    const range = document.createRange()
    range.selectNodeContents(one)
    return new Set([...range.getClientRects()].map((it) => it.top)).size
}"""


@pytest.fixture
def shop(api, api_database_url) -> ResultsShop:
    """A result of every state, in two currencies."""
    shop = open_results(api, api_database_url)
    names = ("Rentrée", "We miss you", "Lin lavé, early access", "Strasbourg opening hours", "Percale week", "Birthday")
    shop.ids.update({name: shop.campaign(name, holdout_percent=0 if name == "Birthday" else 10) for name in names})
    for number, campaign in enumerate(shop.ids.values()):
        shop.attribute("campaign", campaign, 20_000_000 // (number + 1))
    shop.attribute("campaign", shop.ids["Rentrée"], 9_000_000, currency="CHF")
    shop.measure("campaign", shop.ids["Rentrée"], MORE, LESS)
    shop.measure("campaign", shop.ids["We miss you"], MORE, LESS, state="provisional")
    shop.measure("campaign", shop.ids["Lin lavé, early access"], MORE, SAME)
    shop.measure("campaign", shop.ids["Strasbourg opening hours"], arm(900, 90, 60), arm(100, 8, 60))
    shop.measure("campaign", shop.ids["Percale week"], None, state="open", days=3)
    shop.ids["journey"] = shop.journey()
    shop.attribute("journey", shop.ids["journey"], 400_000, step="thanks")
    shop.measure("journey", shop.ids["journey"], MORE, LESS, step="half", period=first_month(shop), state="provisional")
    return shop


def test_axe_finds_nothing_and_the_pages_fit_every_screen(chromium, shop, visitor_as):
    """At four widths, in light and dark."""
    owner = visitor_as(Role.OWNER)
    paths = (
        PATH,
        f"{PATH}?by=month",
        f"{PATH}/tickets",
        f"/campaigns/{CAMPAIGN.encode(shop.ids['Rentrée'])}/results",
        f"/journeys/{JOURNEY.encode(shop.ids['journey'])}/results",
        "/settings/attribution",
    )
    with context_of(chromium, owner, bypass_csp=True) as context:
        tab = context.new_page()
        findings = [(path, *found) for path in paths for found in examine(tab, owner.url(path))]
    assert findings == []


def price_texts(shop: ResultsShop) -> None:
    """Texts to three countries, each with a price in its currency."""
    for country in ("CH", "GB"):
        shop.send("campaign", shop.ids["Rentrée"], country=country, texts=63_000)
    prices = {code: Price(Decimal("0.05"), name) for code, name in (("FR", "EUR"), ("CH", "CHF"), ("GB", "GBP"))}

    async def save(tx: Tx) -> None:
        texting = await load_texting(tx, shop.organization_id)
        assert texting is not None
        settings = msgspec.structs.replace(texting.settings, prices=prices)
        await save_texting(tx, shop.organization_id, replace(texting, settings=settings))

    shop.do(save)


def test_the_name_of_a_month_stays_on_one_line_beside_costs_in_three_currencies(chromium, shop, visitor_as):
    price_texts(shop)
    owner = visitor_as(Role.OWNER)
    with context_of(chromium, owner, theme=None, bypass_csp=True) as context:
        tab = context.new_page()
        tab.goto(owner.url(f"{PATH}?by=month"))
        name = tab.locator("td.clip .name").first
        expect(tab.get_by_text("£6,300.00").first).to_be_visible()
        assert name.evaluate(LINES) == 1
        # The three costs are shown, and none is broken.
        costs = tab.locator("td.amounts").filter(has_text="£6,300.00").first
        assert costs.evaluate("(one) => one.scrollWidth <= one.clientWidth")
        assert costs.evaluate(LINES) <= 3
        assert list(examine(tab, owner.url(f"{PATH}?by=month"))) == []


def test_a_phone_without_scripts_filters_opens_a_result_and_changes_the_windows(chromium, shop, visitor_as):
    owner = visitor_as(Role.OWNER)
    with tab_of(chromium, owner, viewport=PHONE, java_script_enabled=False) as tab:
        tab.goto(owner.url(f"{PATH}?period=12m&currency=EUR"))
        expect(tab.locator(".lead")).to_contain_text("were extra")
        tab.locator("select[name=state]").select_option("final")
        tab.get_by_role("button", name="Apply filters").click()
        assert "period=12m" in tab.url
        assert "currency=EUR" in tab.url
        assert "state=final" in tab.url
        # The drawing stands under the name, with its words.
        expect(tab.locator("td .is-narrow svg[role=img]").first).to_be_visible()
        tab.get_by_role("button", name="Definitions").click()
        expect(tab.get_by_role("dialog", name="Definitions")).to_contain_text("19 times out of 20")
        tab.keyboard.press("Escape")
        tab.get_by_role("link", name="Rentrée", exact=True).click()
        expect(tab.get_by_role("heading", name="Texted and holdout")).to_be_visible()
        tab.goto(owner.url("/settings/attribution"))
        tab.get_by_label("Days after a personal click").fill("3")
        tab.get_by_role("button", name="Preview change").click()
        expect(tab.get_by_role("heading", name="What the change would do")).to_be_visible()
        tab.get_by_role("button", name="Save new windows").click()
        expect(tab.get_by_text("3 days after a click")).to_be_visible()
