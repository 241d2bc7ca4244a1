"""Enter in a field of an editor checks the draft and saves nothing, with a script and without."""

import re
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import expect
from tests.pages.segment_shop import open_counted
from tests.support.enter import find_typed_forms
from tests.support.journeys import make_campaign, make_journey
from tests.support.open_database import in_transaction
from tests.support.shared_tabs import tab_of
from tests.support.visitor import Visitor

from regulars.campaigns.definition import read_definition as read_campaign
from regulars.campaigns.manage import create_campaign
from regulars.campaigns.pages.definition_form import fill_form
from regulars.kit.etag import etag_of
from regulars.kit.ids import CAMPAIGN

BOUGHT = {"type": "bought", "at_least": 1}
STEPS = ({"do": "wait", "days": 3}, {"do": "send_text", "text": "Hello"}, {"do": "branch", "if": BOUGHT})
JOURNEY_FORMS = (
    "entry=1",
    "filter=1",
    "step=1",
    "step=2",
    "step=3",
    "add=4&kind=wait",
    "add=4&kind=wait_until",
    "add=4&kind=wait_for_purchase",
    "add=4&kind=split",
    "add=4&kind=set_attribute",
    "add=4&kind=send_text",
)


def test_the_first_button_of_every_editor_checks(marketer, tenant, api_database_url):
    journey = make_journey(api_database_url, tenant.organization_id, *STEPS, is_live=False, filter=BOUGHT)
    campaign = make_campaign(api_database_url, tenant.organization_id)
    pages = [f"/journeys/{journey}/edit?{form}" for form in JOURNEY_FORMS]
    for path in ("/segments/new", f"/campaigns/{campaign}/edit", *pages):
        forms = find_typed_forms(marketer.get(path).text)
        search = marketer.url("/search").removeprefix(marketer.base_url)
        editors = {form for form in forms if not form.startswith(f"{search}#")}
        assert editors, path
        for form in editors:
            assert forms[form].buttons[0].get("formaction", "").rpartition("/")[2] != "save", path
            assert forms[form].is_checked_by_enter, (path, form)


def test_a_checked_form_of_a_journey_says_what_is_wrong_and_adds_nothing(marketer, tenant, api_database_url):
    journey = make_journey(api_database_url, tenant.organization_id, *STEPS, is_live=False)
    for act, fields, says in (
        ("add", {"place": "1", "kind": "wait", "days": "400"}, "A whole number from 0 to 365."),
        ("add", {"place": "1", "kind": "wait", "days": "4"}, 'value="4"'),
        ("entry", {"name": "", "trigger": "purchase", "reentry": "always"}, "Fill this in."),
    ):
        checked = marketer.post(f"/journeys/{journey}/edit/{act}", check="1", was="", **fields)
        assert (checked.status_code, says in checked.text) == (200, True), fields
    assert "no changes yet" in marketer.get(f"/journeys/{journey}/edit").text


@pytest.mark.parametrize("has_script", [True, False])
def test_enter_counts_a_segment_and_explains_a_customer(chromium, marketer, crowd, has_script):
    fields = {"r~kind": "all", "r.0~kind": "spend", "r.0~low": "900", "r.0~days": "365"}
    url = marketer.post("/segments/save", name="Best", **fields).headers["location"]
    open_counted(marketer, url.removeprefix(f"/o/{marketer.who.slug}"))
    with tab_of(chromium, marketer, java_script_enabled=has_script, locale="en-GB") as tab:
        tab.goto(f"{marketer.base_url}{url}")
        tab.locator("#r-0-low").fill("100")
        tab.locator("#r-0-low").press("Enter")
        expect(tab.locator("#count output")).to_have_text("2")
        expect(tab.locator("#state")).to_contain_text("Unsaved changes")
        tab.locator("#who").fill(crowd.slow)
        tab.locator("#who").press("Enter")
        expect(tab.locator("#why-answer .badge")).to_have_text("in the segment")
        tab.goto(f"{marketer.base_url}{url}")
        expect(tab.get_by_text("Version 1, saved")).to_be_visible()


def test_saving_without_a_change_makes_no_version(api, marketer, analysis, tenant, api_database_url):
    fields = {"r~kind": "all", "r.0~kind": "bought", "r.0~low": "1", "r.0~days": "30"}
    segment = marketer.post("/segments/save", name="Buyers", **fields).headers["location"]
    segment = segment.removeprefix(f"/o/{marketer.who.slug}")
    assert marketer.post(f"{segment}/save", name="Buyers", **fields).headers["location"].endswith(segment)
    assert "Version 1, saved" in marketer.get(segment).text
    assert marketer.post(f"{segment}/save", name="Buyers!", was=etag_of(1), **fields).is_redirect
    assert "Version 2, saved" in marketer.get(segment).text

    journey = make_journey(api_database_url, tenant.organization_id, *STEPS, is_live=False)
    edit = f"/journeys/{journey}/edit"
    set_wait(marketer, edit, "3")
    assert "no changes yet" in marketer.get(edit).text
    set_wait(marketer, edit, "4")
    set_wait(marketer, edit, "3")
    draft = re.search(r'/edit/save".*?name="was" value="(\w+)"', marketer.get(edit).text, re.DOTALL)[1]
    assert "version=1" in marketer.post(f"{edit}/save", was=draft).headers["location"]

    definition = read_campaign(b'{"name": "Spring", "include": ["seg_1"], "variants": [{"text": "Hello"}]}')
    campaign = in_transaction(api_database_url, lambda tx: create_campaign(tx, tenant.organization_id, definition))
    edit = f"/campaigns/{CAMPAIGN.encode(campaign.row.id)}/edit"
    values = {**fill_form(definition, ZoneInfo("UTC")).values, "was": etag_of(1)}
    assert marketer.post(edit, **values).is_redirect
    assert f'name="was" value="{etag_of(1)}"' in marketer.get(edit).text
    assert marketer.post(edit, **{**values, "rate": "100"}).is_redirect
    assert f'name="was" value="{etag_of(2)}"' in marketer.get(edit).text


def set_wait(marketer: Visitor, edit: str, days: str) -> None:
    """Saves the first step of the journey with so many days."""
    was = re.search(r'name="was" value="(\w+)"', marketer.get(edit, step="1").text.partition('id="panel"')[2])[1]
    assert marketer.post(f"{edit}/step", place="1", kind="wait", days=days, was=was).is_redirect
