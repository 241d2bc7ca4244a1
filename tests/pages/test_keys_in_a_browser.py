"""With a browser: a key is made, used, limited and revoked; a type is previewed and changed without a script."""

import re

import pytest
from playwright.sync_api import Page, expect
from tests.support import samples
from tests.support.client import Api, get_url
from tests.support.drain_queues import drain_queues
from tests.support.shared_tabs import tab_of
from tests.support.tenant import Tenant
from tests.support.visitor import Visitor

SECRET = re.compile(r"rgl_[0-9A-Za-z]{36}")


@pytest.fixture
def tab(chromium, owner):
    with tab_of(chromium, owner) as tab:
        yield tab


def get(visitor: Visitor, path: str, key: str) -> int:
    return get_url(f"{visitor.base_url}{path}", headers={"x-api-key": key}).status_code


def make_key(tab: Page, visitor: Visitor) -> str:
    tab.goto(visitor.url("/keys"))
    tab.get_by_role("link", name="Create a key").click()
    tab.get_by_label("Name").fill("Annecy tills")
    tab.get_by_label("Write only").check()
    tab.get_by_role("button", name="Create the key").click()
    expect(tab.get_by_text("Shown only once")).to_be_visible()
    return SECRET.findall(tab.content())[0]


def reload_until(tab: Page, text: str) -> None:
    """The use of a key shows when the log is written, a moment later."""
    for _ in range(300):
        tab.reload()
        if tab.get_by_text(text, exact=True).count():
            return
        tab.wait_for_timeout(100)
    raise AssertionError(f"The page never said {text}.")


def test_a_key_is_made_shown_once_used_and_revoked(tab: Page, owner: Visitor):
    secret = make_key(tab, owner)
    expect(tab.get_by_text("Waiting for its first request")).to_be_visible()
    assert (get(owner, "/v1/stores", secret), get(owner, "/v1/profiles", secret)) == (200, 403)
    reload_until(tab, "Active")
    assert secret not in tab.content()
    tab.get_by_role("link", name="Revoke key…").click()
    tab.get_by_label("Nothing uses this key any more").check()
    tab.get_by_role("button", name="Revoke key", exact=True).click()
    expect(tab.get_by_text("Revoked", exact=True)).to_be_visible()
    assert secret not in tab.content()


def test_the_page_of_a_new_key_notices_its_first_request(tab: Page, owner: Visitor):
    secret = make_key(tab, owner)
    assert get(owner, "/v1/stores", secret) == 200
    expect(tab.get_by_text("Waiting for its first request")).to_have_count(0)


def test_a_refused_form_comes_back_with_focus_on_what_is_wrong(tab: Page, owner: Visitor):
    tab.goto(owner.url("/keys/new"))
    tab.get_by_label("Name").fill("   ")
    tab.get_by_role("button", name="Create the key").click()
    expect(tab.get_by_role("alert")).to_be_focused()
    expect(tab.get_by_label("Name")).to_have_attribute("aria-invalid", "true")


def test_a_type_is_previewed_and_then_changed(chromium, owner: Visitor, api: Api, tenant: Tenant, api_database_url):
    for size in ("1", "2", "n/a"):
        api.post("/v1/profiles", samples.profile(attributes={"size": size}))
    with tab_of(chromium, owner, java_script_enabled=False) as tab:
        tab.goto(owner.url("/attributes/size"))
        tab.get_by_label("Type", exact=True).select_option("text")
        tab.get_by_role("button", name="Preview the change").click()
        expect(tab.get_by_role("heading", name="Preview: type text")).to_be_visible()
        drain_queues(api_database_url, tenant.organization_id)
        tab.reload()
        expect(tab.get_by_text("of 3 stored values fit the type")).to_be_visible()
        tab.get_by_role("button", name="Change to text").click()
        expect(tab.locator(".page-title .tag")).to_have_text("text")


def test_the_values_of_an_enum_are_asked_for_when_it_is_chosen(tab: Page, owner: Visitor, api: Api):
    api.post("/v1/profiles", samples.profile(attributes={"tier": "gold"}))
    tab.goto(owner.url("/attributes/tier"))
    expect(tab.get_by_label("Allowed values")).to_be_hidden()
    tab.get_by_label("Type", exact=True).select_option("enum")
    expect(tab.get_by_label("Allowed values")).to_be_visible()


def test_a_key_can_be_made_with_the_keyboard_alone(tab: Page, owner: Visitor):
    tab.goto(owner.url("/keys/new"))
    tab.keyboard.type("Kiosk")
    tab.keyboard.press("Tab")
    tab.keyboard.press("Space")
    tab.keyboard.press("Enter")
    expect(tab.get_by_text("Shown only once")).to_be_visible()
