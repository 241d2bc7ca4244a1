"""Invite, join, turn on the second factor, sign in with it, sign out everywhere; with the keyboard, and without script."""

import re

import pyotp
import pytest
from tests.support.browser import DESKTOP, PHONE, WAIT_MS
from tests.support.shared_tabs import tab_of

from regulars.web.access import Role

PASSWORD = "four words in a row"


@pytest.fixture
def stranger(chromium):
    context = chromium.new_context(viewport=DESKTOP)
    context.set_default_timeout(WAIT_MS)
    yield context.new_page()
    context.close()


def invite(chromium, visitor, email):
    """What an owner does; the link they pass on."""
    with tab_of(chromium, visitor) as page:
        page.goto(visitor.url("/settings/team"))
        page.get_by_role("link", name="Invite a person").click()
        page.get_by_label("Email").fill(email)
        page.get_by_label("Developer").check()
        page.get_by_role("button", name="Create invitation link").click()
        link = page.locator(".copy code").inner_text()
        page.reload()
        assert link not in page.content()
        assert page.get_by_text(email).is_visible()
    return link


def join(page, link):
    page.goto(link)
    page.get_by_label("Your name").fill("Jules Mirage")
    page.get_by_label("Choose a password").fill(PASSWORD)
    page.get_by_label("Repeat password").fill(PASSWORD)
    page.get_by_role("button", name=re.compile("Join")).click()


def turn_on_second_factor(page, base_url):
    page.goto(f"{base_url}/account/second-factor")
    secret = page.locator("input[name=secret]").get_attribute("value")
    assert page.locator("svg.qr").bounding_box()["width"] > 100
    page.get_by_label("Code from the app").fill(pyotp.TOTP(secret).now())
    page.get_by_label("Your password").fill(PASSWORD)
    page.get_by_role("button", name="Turn on second factor").click()
    codes = page.locator("ul.code li").all_inner_texts()
    assert len(codes) == 10
    return codes


def sign_in(page, base_url, email, code):
    page.goto(f"{base_url}/sign-in")
    page.get_by_label("Email").fill(email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_label("Code").fill(code)
    page.get_by_role("button", name="Sign in").click()


def test_invite_join_second_factor_and_sign_out_everywhere(chromium, visitor_as, stranger):
    owner = visitor_as(Role.OWNER)
    email = f"jules-{owner.who.slug}@corvelle.example"
    join(stranger, invite(chromium, owner, email))
    codes = turn_on_second_factor(stranger, owner.base_url)
    second = chromium.new_context(viewport=PHONE)
    second.set_default_timeout(WAIT_MS)
    phone = second.new_page()
    sign_in(phone, owner.base_url, email, codes[0])
    phone.wait_for_url(re.compile("/o/"))
    stranger.goto(f"{owner.base_url}/account/sessions")
    assert stranger.get_by_text("Signed in on 2 browsers").is_visible()
    stranger.get_by_role("button", name="Sign out all browsers").click()
    stranger.wait_for_url(re.compile("/sign-in"))
    phone.goto(f"{owner.base_url}/account")
    assert phone.url.startswith(f"{owner.base_url}/sign-in")
    second.close()


def test_the_main_tasks_with_the_keyboard_alone(chromium, visitor_as):
    owner = visitor_as(Role.OWNER)
    with tab_of(chromium, owner) as page:
        page.goto(owner.url("/settings/team"))
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        page.get_by_role("link", name="Invite a person").focus()
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile("/invite"))
        page.keyboard.type("keys@corvelle.example")
        page.keyboard.press("Tab")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="One-time link").wait_for()
        page.keyboard.press("j")
        assert page.evaluate("document.activeElement.className") == "name"
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="Role").wait_for()
        page.get_by_role("link", name="Remove").focus()
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog")
        dialog.wait_for()
        assert page.evaluate("document.activeElement.textContent") == "Cancel"
        page.keyboard.press("Escape")
        dialog.wait_for(state="detached")
        assert page.evaluate("document.activeElement.textContent") == "Remove member…"


def test_a_question_is_a_page_without_javascript(chromium, visitor_as):
    owner, analyst = visitor_as(Role.OWNER), visitor_as(Role.ANALYST)
    with tab_of(chromium, owner, java_script_enabled=False) as page:
        page.goto(owner.url("/settings/team"))
        page.get_by_role("link", name="Some analyst").click()
        page.get_by_role("link", name="Remove").click()
        page.get_by_role("button", name="Remove Some analyst").click()
        assert page.get_by_text("Some analyst is no longer a member.").is_visible()
        assert analyst.get("/").status_code == 404


def test_the_organization_s_settings_change_its_address_and_its_times(chromium, visitor_as):
    owner = visitor_as(Role.OWNER)
    with tab_of(chromium, owner) as page:
        page.goto(owner.url("/settings/organization"))
        page.get_by_label("Web address", exact=True).fill("No Slug!")
        page.get_by_role("button", name="Save").click()
        assert page.get_by_role("alert").get_by_role("link").is_visible()
        new = f"{owner.who.slug[:30].rstrip('-')}-new"
        page.get_by_label("Web address", exact=True).fill(new)
        page.get_by_label("Time zone").select_option("Asia/Tokyo")
        page.get_by_role("button", name="Save").click()
        page.wait_for_url(re.compile(f"/o/{new}/settings/organization"))
        page.goto(owner.url("/settings/audit"))
        assert page.url.endswith(f"/o/{new}/settings/audit")
        assert page.locator(".mono", has_text="organization.change").first.is_visible()
        assert page.get_by_text("Asia/Tokyo").first.is_visible()
