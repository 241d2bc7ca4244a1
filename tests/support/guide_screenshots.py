"""Follows the guides for marketers step by step on the demo data, and takes their screenshots.

`python -m tests.support.guide_screenshots` follows `docs/first-journey.md` and the first campaign of
`docs/campaigns.md`.
"""

import re
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from uuid import UUID

from playwright.sync_api import Page, expect
from tests.support import database, samples
from tests.support.analysis import running_analysis
from tests.support.browser import context_of, launched
from tests.support.client import new_http, post_url
from tests.support.drain_queues import SETTINGS, drain_queues
from tests.support.run_async import run_async
from tests.support.screenshots import IMAGES, fill_demo
from tests.support.server import running_server
from tests.support.texts import open_at_any_hour
from tests.support.visitor import Visitor

SALES = 5_000
WINDOW = {"width": 1280, "height": 860}


def main() -> None:
    with ExitStack() as stack:
        server_url = stack.enter_context(database.throwaway_server(database.new_data_folder()))
        template = stack.enter_context(database.migrated_template(server_url))
        url = stack.enter_context(database.new_database(server_url, template=template))
        organization_id, who, keys = run_async(fill_demo(url, SALES))
        server = stack.enter_context(running_server(url))
        visitor = Visitor(stack.enter_context(new_http()), server.url, who)
        stack.enter_context(running_analysis(server))
        open_at_any_hour(url, organization_id)
        settings = replace(SETTINGS, data_dir=Path(server.environment["REGULARS_DATA_DIR"]))
        work = partial(drain_queues, url, organization_id, settings)
        for browser in launched():
            with context_of(browser, visitor, viewport=WINDOW, device_scale_factor=1) as context:
                follow(context.new_page(), visitor, url, organization_id, keys[0])
                send_a_campaign(context.new_page(), visitor, work)


def follow(tab: Page, visitor: Visitor, database_url: str, organization_id: UUID, key: str) -> None:
    begin_with_one_that_works(tab, visitor)
    write_the_text(tab)
    tab.get_by_role("button", name="Save as version 1").click()
    journey = tab.url.partition("?")[0]
    tab.get_by_role("navigation", name="Journey").get_by_role("link", name="Backtest").click()
    tab.get_by_role("button", name="Run backtest").click()
    drain_queues(database_url, organization_id)
    tab.reload()
    expect(tab.get_by_text("Would enter")).to_be_visible()
    _picture(tab, "journey-backtest")
    tab.get_by_role("link", name="Activate journey…").click()
    tab.get_by_role("button", name="Activate version 1").click()
    expect(tab.get_by_text("Version 1, live since")).to_be_visible()
    opt_customer_in(visitor, key)
    for _ in range(3):
        drain_queues(database_url, organization_id)
    tab.goto(f"{journey}/runs")
    tab.locator(".table a.name").first.click()
    expect(tab.get_by_role("heading", name="History in this journey")).to_be_visible()
    _picture(tab, "journey-run")


def send_a_campaign(tab: Page, visitor: Visitor, work: Callable[[], None]) -> None:
    # Counts the customers of the segments.
    work()
    tab.goto(visitor.url("/segments"))
    tab.get_by_role("region", name="Segments").get_by_role("link", name="Lapsed 60 to 365 days").click()
    tab.get_by_role("link", name="Text this segment…").click()
    tab.get_by_label("Name").fill("We miss you")
    tab.get_by_role("button", name="Create draft").click()
    tab.wait_for_url(re.compile("/campaigns/cmp_"))
    campaign = tab.url.partition("?")[0].removesuffix("/edit")
    tab.goto(f"{campaign}/edit")
    write_the_text_of_the_campaign(tab)
    tab.get_by_role("button", name="Save and review…").click()
    expect(tab.get_by_text("Confirm what is sent")).to_be_visible()
    _picture(tab, "campaign-confirm")
    tab.get_by_role("button", name=re.compile("^Send .* texts? now$")).click()
    tab.wait_for_url(campaign)
    for _ in range(4):
        work()
    tab.reload()
    expect(tab.get_by_text("By country")).to_be_visible()
    _picture(tab, "campaign-sent")


def write_the_text_of_the_campaign(tab: Page) -> None:
    text = tab.get_by_label("Text", exact=True)
    text.fill('{{ profile.first_name | default("Hello") }}, it’s been a while. Your store has something for you.')
    text.blur()
    expect(tab.get_by_text("makes SMS parts shorter")).to_be_visible()
    _picture(tab, "campaign-editor")
    tab.get_by_role("button", name=re.compile("Replace with")).first.click()
    expect(tab.get_by_text("makes SMS parts shorter")).to_have_count(0)


def begin_with_one_that_works(tab: Page, visitor: Visitor) -> None:
    tab.goto(visitor.url("/journeys"))
    tab.get_by_role("link", name="New journey").click()
    _picture(tab, "journey-new")
    tab.get_by_role("region", name="Welcome after opt-in").get_by_role("button").click()
    tab.wait_for_url(re.compile("/edit"))
    _picture(tab, "journey-builder")


def write_the_text(tab: Page) -> None:
    tab.get_by_role("link", name=re.compile("Edit step 2")).click()
    text = tab.get_by_label("Text", exact=True)
    text.fill('Welcome, {{ profile.first_name | default("there") }}. It’s good to have you with us.')
    expect(tab.get_by_text("makes SMS parts shorter")).to_be_visible()
    _picture(tab, "journey-message")
    tab.get_by_role("button", name=re.compile("Replace with")).click()
    expect(tab.get_by_text("makes SMS parts shorter")).to_have_count(0)
    tab.get_by_role("button", name="Save step").click()


def opt_customer_in(visitor: Visitor, key: str) -> None:
    def send(path: str, body: object) -> None:
        headers = {"x-api-key": key}
        answer = post_url(f"{visitor.base_url}{path}", json=body, headers=headers)
        assert answer.status_code in {200, 201}, answer.text

    profile = {"external_id": "C-GUIDE-1", "first_name": "Odile", "last_name": "Fictive"}
    send("/v1/profiles", profile)
    consent = {
        "phone_number": "+33639984107",
        "consent_source": "POINT_OF_SALE",
        "consented_at": samples.ago(minutes=1),
    }
    send("/v1/subscriptions/opt-in", {**consent, "profile_id": profile["external_id"]})


def _picture(tab: Page, name: str) -> None:
    tab.wait_for_timeout(400)
    tab.screenshot(path=IMAGES / f"{name}.png")


if __name__ == "__main__":
    main()
