"""What holds for every page there is: found by links, safe with hostile data, open to the right roles, usable by all."""

import re

import pytest
from tests.pages.full_house import MARKER
from tests.support.browser import DESKTOP, block_htmx, context_of
from tests.support.crawl import crawl, unreached_pages
from tests.support.enter import find_typed_forms
from tests.support.page_checks import EVERY_LOOK, examine
from tests.support.shared_tabs import tab_of
from tests.support.visitor import Visitor

from regulars.kit.settings import Settings
from regulars.server import page_table
from regulars.web.access import Action, Role
from regulars.web.route import Audience

TABLE = page_table(Settings())
# No link leads to these: they are sent to people, or opened by typing.
WITHOUT_A_LINK = re.compile(r"/link/.*|/sign-in.*|/search|/first-run.*|.*\{token\}.*")
# There only while the demo is being made.
SOMETIMES = {"/demo"}
# Shared by the workers; the daily set has the first one.
PARTS = 20

OWN, ADM, MAR, ANA, DEV = Role
# The ruling, written out a second time.
WHO_MAY = {
    Action.READ: {OWN, ADM, MAR, ANA, DEV},
    Action.SEE_PERSONAL: {OWN, ADM, MAR},
    Action.ERASE_CUSTOMERS: {OWN, ADM},
    Action.DECIDE_COLLISIONS: {OWN, ADM, MAR},
    Action.EDIT_CATALOGS: {OWN, ADM, MAR},
    Action.EDIT_JOURNEYS: {OWN, ADM, MAR},
    Action.READ_SEGMENTS: {OWN, ADM, MAR, ANA},
    Action.EDIT_SEGMENTS: {OWN, ADM, MAR},
    Action.MANAGE_INGEST_KEYS: {OWN, ADM, DEV},
    Action.MANAGE_FULL_KEYS: {OWN, ADM},
    Action.READ_REQUEST_LOG: {OWN, ADM, DEV},
    Action.READ_WEBHOOKS: {OWN, ADM, DEV},
    Action.REPLAY_WEBHOOKS: {OWN, ADM, DEV},
    Action.DRAFT_WEBHOOKS: {OWN, ADM, DEV},
    Action.MANAGE_WEBHOOKS: {OWN, ADM},
    Action.WRITE_TEXTS: {OWN, ADM, MAR},
    Action.HOLD_TEXTS: {OWN, ADM, MAR},
    Action.MANAGE_TEXTS: {OWN, ADM},
    Action.MANAGE_ORGANIZATION: {OWN, ADM},
    Action.MANAGE_TEAM: {OWN, ADM},
    Action.MANAGE_OWNERS: {OWN},
    Action.MANAGE_SERVER: {OWN},
    Action.READ_AUDIT_LOG: {OWN, ADM},
}


@pytest.fixture(scope="session")
def seen(full_house):
    return crawl(full_house[1], TABLE)


def test_every_page_opens_and_a_link_leads_to_it(seen):
    assert [(one.path, one.status) for one in seen if one.status >= 400 and one.page.path not in SOMETIMES] == []
    assert {address for address in unreached_pages(seen, TABLE) if not WITHOUT_A_LINK.fullmatch(address)} == set()


def test_what_is_stored_never_becomes_markup(seen):
    assert sum(MARKER in one.text for one in seen) > len(seen) / 2
    for one in seen:
        if not one.is_html:
            # A file is handed over as it is, and never as a page.
            assert not one.text or one.media_type.startswith(("text/csv", "application/json")), one.path
            continue
        assert "<img src=x" not in one.text, one.path
        assert "</title></script>" not in one.text, one.path
        assert "onerror=alert('planted')>" not in one.text, one.path


def test_no_page_names_a_python_exception(seen):
    """The reference may say what a program of the reader's own raises."""
    name = re.compile(r"\b[A-Z][A-Za-z]*(?:Error|Exception)\b|Traceback")
    found = {one.path: name.findall(one.text) for one in seen if "/reference" not in one.path}
    assert {path: names for path, names in found.items() if names} == {}


def test_no_page_has_inline_script_or_style(seen):
    inline = re.compile(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=[\"']|javascript:")
    assert [one.path for one in seen if one.is_html and inline.search(one.text.replace("onerror=", ""))] == []


def test_enter_in_a_form_of_several_actions_does_none_of_them(seen):
    """Enter in a search field searches, and the field of an editor checks the draft."""
    forms = [(one.path, key, form) for one in seen if one.is_html for key, form in find_typed_forms(one.text).items()]
    several = [it for it in forms if it[2].has_several_actions]
    assert several
    assert [it[:2] for it in several if not (it[2].is_checked_by_enter or it[2].is_left_by_enter)] == []


@pytest.mark.parametrize("role", list(Role))
def test_each_role_gets_what_it_may_and_nothing_else(visitor_as, analysis, role):
    """`analysis`: without its process, the files of figures wait for it for eight seconds each."""
    visitor: Visitor = visitor_as(role)
    wrong = []
    for page in TABLE:
        if not isinstance(page.needs, Action):
            continue
        path = re.sub(r"\{\w+\}", "nobody", page.path)
        answer = visitor.get(path) if page.method == "GET" else visitor.post(path)
        if (answer.status_code == 403) == (role in WHO_MAY[page.needs]):
            wrong.append((page.method, page.path, answer.status_code))
    assert wrong == []


def test_a_stranger_gets_no_page_and_sends_no_form(visitor_as):
    visitor: Visitor = visitor_as(Role.OWNER)
    for page in TABLE:
        if page.needs is Audience.OPEN:
            continue
        path = re.sub(r"\{\w+\}", "nobody", page.address.replace("{slug}", visitor.who.slug))
        answer = visitor.http.request(
            page.method, f"{visitor.base_url}{path}", data={} if page.method == "POST" else None
        )
        assert answer.status_code in {303, 403}, page.address
        assert answer.headers.get("location", "/sign-in").startswith("/sign-in"), page.address


@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
def test_no_page_keeps_people_out_or_leaves_its_screen(full_house, seen, chromium, part):
    """axe finds nothing, nothing is wider than the window, and nothing planted ran: light and dark, wide and narrow."""
    visitor = full_house[1]
    ran: list[str] = []
    findings = []
    with context_of(chromium, visitor, bypass_csp=True) as context:
        tab = context.new_page()
        block_htmx(tab)
        tab.on("dialog", lambda dialog: (ran.append(tab.url), dialog.dismiss()))
        pages = list({one.page: one for one in seen if one.status == 200 and one.is_document}.values())
        for page in pages[part::PARTS]:
            findings += [(page.path, *found) for found in examine(tab, f"{visitor.base_url}{page.path}")]
    assert findings == []
    assert ran == []


def test_chart_text_keeps_its_size_and_only_controls_have_a_ring(full_house, chromium):
    visitor = full_house[1]
    with tab_of(chromium, visitor) as tab:
        tab.goto(visitor.url("/"))
        sizes = set()
        for width in (look.width for look in EVERY_LOOK):
            tab.set_viewport_size({**DESKTOP, "width": width})
            sizes.add(tab.locator(".bars text").first.evaluate("text => text.getBoundingClientRect().height"))
            assert tab.locator(".bars").evaluate("chart => chart.getBoundingClientRect().width") > width / 4
        assert len(sizes) == 1
        tab.keyboard.press("Tab")
        ring = "() => getComputedStyle(document.activeElement).outlineStyle"
        assert tab.evaluate(ring) == "solid"
        tab.evaluate("document.querySelector('#heading').focus()")
        assert tab.evaluate(ring) == "none"
        assert tab.evaluate(
            "document.fonts.check('14px Inter') && [...document.fonts].some((one) => one.status == 'loaded')"
        )
