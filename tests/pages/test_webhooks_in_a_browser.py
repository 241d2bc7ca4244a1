"""With a browser: an endpoint is added, a delivery fails and is seen, the receiver is fixed, and it is sent again."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from tests.support import samples
from tests.support.client import new_http
from tests.support.drain_queues import drain_queues
from tests.support.server import Server, running_server
from tests.support.shared_tabs import tab_of
from tests.support.tenant import new_tenant
from tests.support.visitor import Visitor, sign_in_now
from tests.webhooks.hooks import LOOPBACK, Hook

from regulars.web.access import Role

TURNS_MAX = 20


@pytest.fixture(scope="module")
def hook_server(api_database_url) -> Iterator[Server]:
    with running_server(api_database_url, webhook_allow=LOOPBACK) as server:
        yield server


def work_until(tab: Page, work, words: str) -> None:
    """The worker's turns, one after another, until the page says it."""
    for _ in range(TURNS_MAX):
        work()
        tab.reload()
        if tab.get_by_text(words).count():
            return
    raise AssertionError(f"The page never said {words}.")


def test_a_delivery_that_failed_is_seen_and_sent_again_when_the_receiver_is_fixed(
    chromium, hook_server, api_database_url
):
    tenant = new_tenant(api_database_url)
    hook = Hook()
    hook.status, hook.answer = 503, b"Down for maintenance"

    def work() -> None:
        drain_queues(api_database_url, tenant.organization_id)

    with new_http() as http:
        owner = Visitor(http, hook_server.url, sign_in_now(api_database_url, tenant.organization_id, Role.OWNER))
        with tab_of(chromium, owner) as tab:
            tab.goto(owner.url("/webhooks"))
            tab.get_by_role("link", name="Add endpoint").click()
            tab.get_by_label("Address").fill(hook.url)
            tab.get_by_role("button", name="Add the endpoint").click()
            expect(tab.get_by_text("Shown only once")).to_be_visible()
            expect(tab.get_by_text("whsec_").first).to_be_visible()
            http.post(
                f"{hook_server.url}/v1/profiles", json=samples.profile(), headers={"x-api-key": tenant.key}
            ).raise_for_status()
            work_until(tab, work, "Failing")
            tab.get_by_role("link", name="profile.created").first.click()
            expect(tab.get_by_text("Down for maintenance")).to_be_visible()
            expect(tab.get_by_text("1: 503")).to_be_visible()
            hook.status, hook.answer = 204, b""
            tab.get_by_role("button", name="Replay now").click()
            work_until(tab, work, "Delivered in")
            tab.goto(owner.url("/webhooks"))
            expect(tab.get_by_text("Healthy")).to_be_visible()
    hook.close()
    assert len({headers["webhook-id"] for headers, _ in hook.received}) == 1
